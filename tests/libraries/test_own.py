"""Does every machine get the library of its own GPUs, and none that does not run there?"""

from __future__ import annotations

from dataclasses import replace

import pytest

import commsim as cs
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.libraries.calibration import calibration
from commsim.libraries.gloo import Gloo, gloo_figures
from commsim.libraries.ideal import Ideal
from commsim.libraries.nccl import Nccl
from commsim.libraries.own import own

RCCL = Nccl("rccl", calibration("rccl"))
GIB = 2**30


@pytest.mark.parametrize(("system", "name"), [("hgx-h100", "nccl"), ("mi300x", "rccl"), ("groq3-lpx", "nccl")])
def test_the_vendors_unless_said(system: str, name: str) -> None:
    assert own(load(system)) == Nccl(name, calibration(name))
    assert own(load(system), Nccl(name, nvls=False)) == Nccl(name, nvls=False), "as it is given, where it runs"


def test_a_vendor_without_a_library_here_gets_nccl() -> None:
    machine = load("hgx-h100")
    assert own(replace(machine, accelerator=replace(machine.accelerator, vendor="Other"))) == Nccl()


@pytest.mark.parametrize(("system", "library"), [("hgx-h100", RCCL), ("mi300x", Nccl())])
def test_another_vendors_is_refused(system: str, library: Nccl) -> None:
    machine = load(system, nodes=2)
    with pytest.raises(InputError, match=f"library: '{library.name}'; it does not run on .* of {system}"):
        cs.sweep("all_reduce", machine, [GIB], library=library)
    with pytest.raises(InputError, match=f"library: '{library.name}'"):
        cs.estimate(cs.model("llama3.1-8b"), cs.Plan(cs.Data(16)), machine, library=library, global_batch=16)
    with pytest.raises(InputError, match=f"library: '{library.name}'"):
        cs.search(cs.model("llama3.1-8b"), machine, library=library, global_batch=16)


def test_others_run_everywhere() -> None:
    for library in (Ideal(), Gloo(figures=gloo_figures("gloo"))):
        assert own(load("mi300x"), library) is library
        assert own(load("hgx-h100"), library) is library


def test_an_mi300x_is_as_quick_as_measured_without_being_asked_for_its_library() -> None:
    """Eight MI300X all-reduce 4 GiB at 336 GB/s of bus bandwidth (ROCm/rccl issue 1210)."""
    assert cs.sweep("all_reduce", load("mi300x"), [4 * GIB]).timing.busbw[0] == pytest.approx(336e9, rel=0.05)
