"""Which library does the collectives of a machine?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.libraries.calibration import calibration
from commsim.libraries.nccl import Nccl

if TYPE_CHECKING:
    from commsim.hardware.system import System
    from commsim.libraries.library import Library

OF_VENDOR = {"NVIDIA": "nccl", "AMD": "rccl"}
"""A library that runs on one vendor's GPUs only, by the vendor."""


def own(system: System, given: Library | None = None) -> Library:
    """Return the library that is given, else that of the machine's vendor (NCCL where a vendor has none here).

    InputError for the library of another vendor's GPUs: it does not run there.
    """
    vendor = system.accelerator.vendor
    name = OF_VENDOR.get(vendor, "nccl")
    if given is None:
        return Nccl(name, calibration(name))
    if given.name in OF_VENDOR.values() and given.name != name:
        where = f"it does not run on {vendor}'s GPUs of {system.name}"
        raise InputError("library", given.name, f"{where}: say --library {name}, gloo or ideal")
    return given
