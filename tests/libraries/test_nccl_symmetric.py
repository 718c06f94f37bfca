"""Does NCCL take its kernels on symmetric windows where it has them, in a time that links allow?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.collectives.kinds import ALL_REDUCE, ALL_TO_ALL, collective
from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.libraries.calibration import COPYING, Case
from commsim.libraries.ideal import Ideal
from commsim.libraries.library import CHANNELS
from commsim.libraries.nccl import Nccl
from commsim.libraries.nccl.symmetric import COPIED, SYMMETRIC

if TYPE_CHECKING:
    from commsim.libraries.library import Timing

OPS = ("all_reduce", "all_gather", "reduce_scatter")
MIB, GIB = 2.0**20, 2.0**30
SIZES = np.logspace(3, 35, 33, base=2)


def timed(system: str, op: str, sizes: np.ndarray = SIZES, case: Case | None = None, **settings: object) -> Timing:
    machine = load(system) if system != "gb200-nvl72" else load(system, nodes=18)
    by = Nccl(**{"symmetric": True, **settings})  # type: ignore[arg-type]
    return by.time(collective(op), sizes, Layout.first(machine.gpus), machine.topology, case=case or Case())


def names(found: Timing) -> list[str]:
    return [f"{one.algorithm} {one.protocol}" for one in map(found.choice, range(len(found.sizes)))]


@pytest.mark.parametrize("system", ["hgx-h100", "hgx-b200", "gb200-nvl72", "hgx-a100", "a100-nvlink-mesh-4"])
@pytest.mark.parametrize("op", OPS)
def test_never_quicker_than_the_wire(system: str, op: str) -> None:
    """NCCL's own model is: 1,143 us for 1 GiB on eight B200, whose links need 1,342 us."""
    found = timed(system, op)
    machine = load(system) if system != "gb200-nvl72" else load(system, nodes=18)
    layout = Layout.first(machine.gpus)
    wire = Ideal().time(collective(op), SIZES, layout, machine.topology).seconds
    assert {one.algorithm for one in map(found.choice, range(len(SIZES)))} == {SYMMETRIC}
    assert (found.seconds > wire).all()
    for one in (one for one in found.candidates if one.algorithm == SYMMETRIC):
        assert (np.diff(one.seconds) >= 0).all()
        assert (one.seconds > wire).all()


def test_large_all_reduces_reach_what_nvls_does() -> None:
    """Less its loops: 500 GB/s on eight H100, where ordinary NVLS reaches 473 to 482 (nccl-tests tables)."""
    busbw = timed("hgx-h100", "all_reduce", np.array([8 * GIB])).busbw[0] / 1e9
    ordinary = timed("hgx-h100", "all_reduce", np.array([8 * GIB]), symmetric=False).busbw[0] / 1e9
    assert ordinary < busbw < 1.1 * ordinary


@pytest.mark.parametrize(("system", "measured", "given"), [("hgx-h200", 2.3, 4.97), ("hgx-b200", 3.0, 11.5)])
def test_a_small_call_is_slower_than_the_best_that_was_measured(system: str, measured: float, given: float) -> None:
    """8 B, tuned for latency (NVIDIA/nccl#1940): NCCL's model counts what a call costs the host, and so do we."""
    found = timed(system, "all_reduce", np.array([8.0])).seconds[0] * 1e6
    assert found == pytest.approx(given, rel=0.01)
    assert measured < found < 4 * measured


def test_four_gb200_take_about_what_was_measured_with_calls_of_the_host() -> None:
    """Under 8 us up to 1 KiB on four GB200 (NVIDIA/nccl-tests#333); NCCL's model says 11."""
    machine = load("gb200-nvl72", nodes=1)
    found = Nccl(symmetric=True).time(ALL_REDUCE, np.array([1024.0]), Layout.first(4), machine.topology)
    assert 8 < found.seconds[0] * 1e6 < 1.5 * 8


@pytest.mark.parametrize(
    ("system", "op", "small", "large"),
    [
        ("hgx-h100", "all_reduce", "AGxLLMC_R", "RSxLDMC_AGxSTMC"),
        ("hgx-h100", "all_gather", "LLMC", "STMC"),
        ("hgx-h100", "reduce_scatter", "LL", "LDMC"),
        ("hgx-b200", "all_gather", "LLMC", COPIED),
        ("hgx-a100", "all_reduce", "AGxLL_R", "RSxLD_AGxST"),
    ],
)
def test_kernels(system: str, op: str, small: str, large: str) -> None:
    """NVSwitches of A100 do not multicast; on Blackwell copy engines gather what is large."""
    found = names(timed(system, op))
    assert (found[0], found[-1]) == (f"{SYMMETRIC} {small}", f"{SYMMETRIC} {large}")


def test_without_nvls_nothing_multicasts() -> None:
    assert names(timed("hgx-h100", "all_reduce", nvls=False))[-1] == f"{SYMMETRIC} RSxLD_AGxST"


@pytest.mark.parametrize(("version", "large"), [("2.28", "STMC"), ("2.29", COPIED)])
def test_copy_engines_gather_above_8_mi_elements(version: str, large: str) -> None:
    """Of a rank: 32 MiB of 32-bit floats are not above, an element more is."""
    sizes = np.array([8 * 32 * MIB, 8 * (32 * MIB + 4)])
    found = timed("hgx-b200", "all_gather", sizes, version=version)
    assert names(found) == [f"{SYMMETRIC} STMC", f"{SYMMETRIC} {large}"]
    assert all(one.bottleneck[-1] != CHANNELS for one in found.candidates if one.protocol == COPIED)


def test_two_ranks_multicast_before_2_30_alone() -> None:
    machine, sizes = load("hgx-h100").topology, np.array([GIB])
    found = [
        names(Nccl(symmetric=True, version=version).time(ALL_REDUCE, sizes, Layout.first(2), machine))[0]
        for version in ("2.29", "2.30")
    ]
    assert found == [f"{SYMMETRIC} RSxLDMC_AGxSTMC", f"{SYMMETRIC} RSxLD_AGxST"]


@pytest.mark.parametrize("system", ["dgx-1v", "pcie-h100"])
def test_gpus_that_nvlink_does_not_join_each_with_each(system: str) -> None:
    machine, sizes = load(system), np.array([MIB])
    ordinary, asked = (
        Nccl(symmetric=on).time(ALL_REDUCE, sizes, Layout.first(machine.gpus), machine.topology) for on in (False, True)
    )
    assert [one.algorithm for one in asked.candidates] == [one.algorithm for one in ordinary.candidates]
    assert asked.seconds.tolist() == ordinary.seconds.tolist()


@pytest.mark.parametrize(("op", "nodes"), [(ALL_REDUCE, 2), (ALL_TO_ALL, 1)])
def test_what_has_no_kernel_takes_an_ordinary_way(op: object, nodes: int) -> None:
    machine = load("hgx-b200", nodes=nodes)
    found = Nccl(symmetric=True).time(op, SIZES, Layout.first(machine.gpus), machine.topology)  # type: ignore[arg-type]
    assert SYMMETRIC not in {one.algorithm for one in found.candidates}


def test_from_64_gib_on_an_ordinary_way_is_taken() -> None:
    found = timed("hgx-h100", "all_reduce", np.array([2.0**36 - 1, 2.0**36]))
    assert [one.split()[0] for one in names(found)] == [SYMMETRIC, "NVLS"]


def test_quicker_links_and_channels_help() -> None:
    sizes = np.array([GIB])
    usual, links = (timed("hgx-h100", "all_reduce", sizes, case) for case in (Case(), Case(faster=(("nvlink*", 2.0),))))
    assert links.seconds[0] < 0.8 * usual.seconds[0]
    slow, quick = (timed("hgx-h100", "all_reduce", np.array([16384.0]), Case(faster=((COPYING, by),))) for by in (1, 8))
    assert quick.seconds[0] < slow.seconds[0]


@pytest.mark.parametrize("version", ["2.18", "2.26.5"])
def test_older_versions_have_no_windows(version: str) -> None:
    with pytest.raises(InputError, match=f"^symmetric: 'NCCL {version}'; only 2.27 or newer"):
        Nccl(symmetric=True, version=version)
