"""Are the constants of every version there, and do versions differ where NCCL's do?"""

from __future__ import annotations

import pytest

from commsim.errors import InputError
from commsim.libraries.nccl.constants import ALGORITHMS, OPS, PROTOCOLS, constants, note, row, step, versions


def test_known_versions() -> None:
    assert (versions()[0], versions()[-1]) == ("2.18", "2.30")
    assert [constants(version).version for version in versions()] == list(versions())


@pytest.mark.parametrize(
    ("asked", "found"),
    [("", "2.30"), ("2.22.3", "2.21"), ("2.27.5-1", "2.27"), ("2.17", "2.18"), ("2.40", "2.30"), ("3.0", "2.30")],
)
def test_the_version_that_stands_for_another(asked: str, found: str) -> None:
    assert constants(asked).version == found


def test_a_version_without_constants_of_its_own_is_noted() -> None:
    assert note("2.27.5") == note("") == ""
    assert note("2.12") == "NCCL 2.12 is older than 2.18: counted with the constants of 2.18"
    assert note("2.31") == "NCCL 2.31 is newer than 2.30: counted with the constants of 2.30"


@pytest.mark.parametrize("given", ["two", "2", "2.x", "2.27.5.1", "-2.18"])
def test_no_version(given: str) -> None:
    with pytest.raises(InputError, match=r"NCCL version: .*; a version such as 2\.27"):
        constants(given)


@pytest.mark.parametrize("version", versions())
def test_tables_are_whole(version: str) -> None:
    known = constants(version)
    for table in (known.does, known.latency.base, known.latency.nvlink, known.latency.pci, known.latency.net):
        assert set(table) == set(ALGORITHMS)
    assert {op for ops in known.does.values() for op in ops} == set(OPS)
    assert set(known.correction) == set(PROTOCOLS)
    assert {len(shares) for shares in known.correction.values()} == {24}
    assert "NCCL" in known.source
    for speeds in (*known.speeds.intra.values(), *known.speeds.inter.values()):
        assert list(speeds) == sorted(speeds, reverse=True)


def test_a_newer_gpu_is_counted_as_the_newest_that_the_version_knows() -> None:
    assert row(constants("2.24").caps.tree, 100) == row(constants("2.24").caps.tree, 90)
    assert row(constants("2.25").caps.tree, 107) == row(constants("2.25").caps.tree, 100) == (77.4e9, 82.8e9, 72e9)


@pytest.mark.parametrize(
    ("capability", "speed"), [(60, 18e9), (70, 20e9), (80, 20e9), (86, 12e9), (89, 20e9), (90, 20.6e9), (103, 40.1e9)]
)
def test_nvlinks(capability: int, speed: float) -> None:
    assert step(constants().links.nvlink, capability) == speed


def test_an_nvlink_of_hopper_counts_more_from_2_20_on() -> None:
    assert [step(constants(version).links.nvlink, 90) for version in ("2.19", "2.20")] == [20e9, 20.6e9]
