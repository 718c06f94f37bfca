"""Which accelerator is in the machine that the file describes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware import shelf
from commsim.hardware.devices import GCN, GPUS, identity
from commsim.hardware.generations import architecture
from commsim.hardware.naming import aliases

if TYPE_CHECKING:
    from commsim.hardware.nccl_xml.elements import Element
    from commsim.hardware.nccl_xml.inventory import Gpu
    from commsim.hardware.system import Accelerator

_OLDEST, _NEWEST = 30, 999


def accelerator_of(root: Element, gpus: list[Gpu], named: str | None, notes: dict[str, None]) -> Accelerator:
    """Return the accelerator: the one that the caller named, else that of the PCI device or of the generation.

    InputError when the file does not tell it, when GPUs differ, or when it contradicts what the caller named. What had
    to be assumed is added to `notes`.
    """
    generations = list(dict.fromkeys(filter(None, map(_generation, gpus))))
    if named:
        found = shelf.accelerator(named, f"{root.where}: accelerator")
        _agree(found, generations, root)
        return found
    devices = dict.fromkeys(identity(gpu.pci.text("vendor"), gpu.pci.text("device")) for gpu in gpus)
    if len(devices) > 1 or len(generations) > 1:
        kinds = ", ".join(filter(None, [*(GPUS.get(device, device) for device in devices), *generations]))
        raise InputError(f"{root.where}: GPUs", kinds, "GPUs of one kind belong here, or name the accelerator")
    product = GPUS.get(next(iter(devices)), "")
    if product in aliases("accelerators"):
        return shelf.accelerator(product)
    fitting = [name for name in aliases("accelerators") if generations == [_generation_of(shelf.accelerator(name))]]
    if not product and len(fitting) == 1:
        notes[f"the file does not name the GPU: {fitting[0]} is taken, the only one of {generations[0]}"] = None
        return shelf.accelerator(fitting[0])
    said = " ".join(filter(None, [product, *devices, *generations])) or "no identity"
    raise InputError(f"{root.where}: GPU", said, "the catalogue does not tell its accelerator; name it", among=fitting)


def capability_of(gpu: Gpu) -> int | None:
    """Return the compute capability (90 for 9.0) that the file gives; None for AMD, where `sm` counts compute units."""
    return gpu.said.number("sm", _OLDEST, _NEWEST) if gpu.said and not gpu.said.text("gcn") else None


def _generation(gpu: Gpu) -> str:
    """What the file says of the generation of a GPU: `sm 90`, `gfx942`, or "" for nothing."""
    if gpu.said and gpu.said.text("gcn"):
        return architecture(gpu.said.text("gcn"))
    capability = capability_of(gpu)
    return f"sm {capability}" if capability else ""


def _generation_of(chip: Accelerator) -> str:
    return GCN.get(chip.name, "gfx") if chip.vendor == "AMD" else f"sm {chip.compute_capability}"


def _agree(named: Accelerator, generations: list[str], root: Element) -> None:
    """Refuse an accelerator of another generation than the file's."""
    own = _generation_of(named)
    for generation in generations:
        if own != generation and not (own == "gfx" and generation.startswith("gfx")):
            expected = f"the GPUs of the file are {generation}, this one is {own}"
            raise InputError(f"{root.where}: accelerator", named.name, expected)
