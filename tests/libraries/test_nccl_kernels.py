"""Are NCCL's kernels for symmetric windows, their blocks and times those of NCCL's own code?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.libraries.nccl.constants import Symmetric, constants
from commsim.libraries.nccl.kernels import KERNELS, Belief, Kernel, softened

KIB, MIB, GIB = 2**10, 2**20, 2**30
ALL, NO_MULTICAST = 2, 0
OPS = ("all_reduce", "all_gather", "reduce_scatter")


def known(version: str = "") -> Symmetric:
    found = constants(version).symmetric
    assert found is not None
    return found


def picked(capability: int, ranks: int, op: str, size: float, *, multicast: bool = True) -> tuple[str, int, float]:
    """Return kernel, blocks and microseconds that NCCL's model takes for a rank's buffer."""
    kernels = [one for one in KERNELS if one.op.name == op and (multicast or not one.multicast)]
    belief = Belief.of([Belief.of_kernel(one, ranks, capability, known()) for one in kernels])
    found = belief.launched(np.array([float(size)]))
    row = int(np.argmin(found.weighed[:, 0]))
    return kernels[row].name, int(found.blocks[row, 0]), float(found.seconds[row, 0]) * 1e6


@pytest.mark.parametrize(
    ("capability", "ranks", "expected"),
    [
        (90, 8, (5.0, 9.4, 153, 2351)),
        (100, 8, (11.5, 20.3, 89, 1144)),
        (100, 72, (12.0, 20.2, 82, 1032)),
    ],
)
def test_all_reduce_as_evaluated_from_the_source(capability: int, ranks: int, expected: tuple[float, ...]) -> None:
    """1 KiB, 1 MiB, 64 MiB and 1 GiB: an evaluation of NCCL 2.30.7's formulas by others, to the digits they gave."""
    found = [picked(capability, ranks, "all_reduce", size)[2] for size in (KIB, MIB, 64 * MIB, GIB)]
    assert found == pytest.approx(expected, rel=0.007)


@pytest.mark.parametrize(
    ("machine", "op", "multicast", "size", "expected"),
    [
        ((90, 8), "all_reduce", ALL, 1024, ("AGxLLMC_R", 2, 4.9713974)),
        ((90, 8), "all_reduce", ALL, 16384, ("AGxLLMC_R", 6, 7.13093567)),
        ((90, 8), "all_reduce", ALL, MIB, ("RSxLDMC_AGxSTMC", 1, 9.44534492)),
        ((90, 8), "all_reduce", ALL, GIB, ("RSxLDMC_AGxSTMC", 2, 2350.60742)),
        ((90, 8), "all_reduce", NO_MULTICAST, MIB, ("RSxLD_AGxST", 7, 12.2822475)),
        ((100, 8), "all_reduce", ALL, 65536, ("RSxLDMC_AGxSTMC", 1, 19.8576832)),
        ((100, 8), "all_gather", ALL, 4096, ("LLMC", 5, 9.14853668)),
        ((100, 8), "all_gather", ALL, MIB, ("STMC", 3, 23.4948063)),
        ((100, 72), "all_gather", NO_MULTICAST, 16 * MIB, ("ST", 13, 1880.91907)),
        ((100, 4), "reduce_scatter", ALL, 1024, ("LL", 1, 11.5228148)),
        ((100, 36), "reduce_scatter", ALL, 4 * MIB, ("LDMC", 1, 239.867462)),
        ((80, 8), "reduce_scatter", NO_MULTICAST, 256 * MIB, ("LD", 9, 5601.33496)),
        ((80, 4), "all_gather", NO_MULTICAST, 2048, ("LL", 3, 4.9826231)),
        ((103, 72), "all_reduce", ALL, 8192, ("RSxLDMC_AGxSTMC", 1, 19.8153477)),
    ],
)
def test_picks_of_nccl_itself(
    machine: tuple[int, int], op: str, multicast: int, size: float, expected: tuple[str, int, float]
) -> None:
    """What the functions of NCCL 2.30.7's src/sym_kernels.cc give, compiled and run by themselves."""
    name, blocks, time = picked(*machine, op, size, multicast=multicast == ALL)
    assert (name, blocks) == expected[:2]
    assert time == pytest.approx(expected[2], rel=1e-6)


@given(st.sampled_from(KERNELS), st.sampled_from([2, 4, 8, 36, 72]), st.sampled_from([80, 90, 100]))
def test_blocks_are_the_fewest_near_the_quickest(kernel: Kernel, ranks: int, capability: int) -> None:
    belief = Belief.of_kernel(kernel, ranks, capability, known())
    sizes = np.geomspace(1024, 2**34, 40)
    found = belief.launched(sizes)
    blocks, seconds = found.blocks[0], found.seconds[0]
    each = belief.base.T + softened(belief.moved.T * sizes / belief.rate[0][:, None])
    assert (seconds <= each[-1] * 1.0251).all()
    fewer = blocks > 1
    assert (each[blocks[fewer] - 2, np.flatnonzero(fewer)] > each[-1][fewer] * 1.0249).all()


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_bytes_add_to_a_call_softly(passing: list[float]) -> None:
    """More bytes never take less; many take what they take less 1 us."""
    added = softened(np.sort(np.array(passing)))
    assert (np.diff(added) >= 0).all()
    assert softened(np.array([1.0]))[0] == pytest.approx(1.0 - 1e-6)


@pytest.mark.parametrize("version", ["2.27", "2.28", "2.29", "2.30"])
def test_versions(version: str) -> None:
    """Before 2.28 buffers are not cut into cells; from 2.29 on copy engines gather on Blackwell."""
    found = known(version)
    assert set(found.block["volta"]) == set(OPS)
    assert found.cell == (1 if version == "2.27" else 1024)
    assert bool(found.copied) == (version in ("2.29", "2.30"))
    assert found.multicast_ranks == (3 if version == "2.30" else 1)
    assert constants("2.26").symmetric is None
