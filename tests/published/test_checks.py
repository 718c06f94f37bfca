"""Does `check` say of public runs what those who ran them found out?

Figures are those of the threads and files that each test names; what NCCL's maintainers answered is the verdict.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

import commsim as cs
from commsim.errors import InputError
from commsim.measurement.check.held import LARGE
from commsim.measurement.check.judge import OF_THE_MODEL, Check, check
from commsim.measurement.joining import joined
from commsim.measurement.read import measurements
from commsim.validation.measured import read_measured
from tests.measurement.check.tables import busbw

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.records import Measurement

GIB = 2.0**30


def verdict(op: str, system: cs.System, gb_per_s: float, size: float = 8 * GIB) -> Check:
    """The verdict on one row: an operation of all GPUs of a system at a bus bandwidth, GB/s."""
    return check(busbw(op, system, size, gb_per_s), system)


def suspected(found: Check) -> list[str]:
    """The three likeliest causes."""
    return [one.cause.name for one in found.causes[:3]]


@pytest.mark.parametrize(
    ("op", "gpus", "reached"),
    [
        ("all_reduce", 8, 481.9),
        ("all_gather", 8, 365.9),
        ("reduce_scatter", 8, 365.0),
        ("all_to_all", 8, 347.9),
        ("send_recv", 8, 367.2),
        ("all_reduce", 4, 367.9),
        ("all_gather", 4, 360.6),
        ("reduce_scatter", 4, 355.0),
        ("all_to_all", 4, 356.9),
        ("send_recv", 4, 367.9),
    ],
)
def test_one_h100_box(op: str, gpus: int, reached: float) -> None:
    """NVIDIA/nccl-tests#212 and the summary of ten nodes of one cluster: peak bus bandwidths, all right."""
    assert verdict(op, cs.load("hgx-h100", gpus=gpus), reached).verdict == "good"


@pytest.mark.parametrize(
    ("system", "gpus", "reached"),
    [
        *[("hgx-h100", gpus, 370) for gpus in (2, 3, 4)],
        *[("hgx-h100", gpus, reached) for gpus, reached in ((5, 420), (6, 440), (7, 460), (8, 480))],
        ("hgx-a100", 8, 230),
        ("hgx-b200", 8, 835),
        ("hgx-h800", 8, 200),
    ],
)
def test_reference_boxes(system: str, gpus: int, reached: float) -> None:
    """All-reduce of single boxes: NVIDIA/nccl#1455, #1374, #1807, #1411, nccl-tests#149."""
    found = verdict("all_reduce", cs.load(system, gpus=gpus), reached)
    assert found.verdict == "good"
    assert found.rows[0].expected == pytest.approx(reached * 1e9, rel=0.25)


def test_nics_of_200_gigabits() -> None:
    """NVIDIA/nccl-tests#119, nccl#412: 24 GB/s a NIC is right; 15.3 of 24 is a NIC that hangs on the CPU."""
    four = cs.load("hgx-a100", nodes=4, nics_per_node=4)
    assert verdict("all_reduce", four, 96).verdict == "good"
    twelve = cs.load("hgx-a100", nodes=12, nics_per_node=1, nic="200 Gb/s")
    found = verdict("all_reduce", twelve, 15.3)
    assert found.verdict == "low"
    assert "no-gpudirect" in suspected(found)


def test_boxes_without_peer_to_peer() -> None:
    """NVIDIA/nccl#1639, nccl-tests#332: eight RTX 5090 at 28, four at 35 GB/s; all-to-all from 22 to 33: all right."""
    for gpus, reached in ((8, 28), (4, 35)):
        assert verdict("all_reduce", cs.load("pcie-5090", gpus=gpus), reached).verdict == "good"
    for reached in (22, 25, 33):
        assert verdict("all_to_all", cs.load("pcie-5090"), reached).verdict == "good"


def test_virtual_machines() -> None:
    """NVIDIA/nccl-tests#256: two H200 nodes: 458 to 489 bare metal, 28 to 105 in virtual machines; ATS and ACS."""
    two = cs.load("hgx-h200", nodes=2)
    assert [verdict("all_reduce", two, reached).verdict for reached in (458.7, 488.8)] == ["good", "good"]
    for reached in (28, 55, 105):
        found = verdict("all_reduce", two, reached)
        assert found.verdict == "low"
    assert "gpudirect-hindered" in suspected(verdict("all_reduce", two, 105))


def test_a_cluster_that_was_mended() -> None:
    """NVIDIA/nccl#2409: 216.5 GB/s, a pair at 13.1; iommu=pt and ACS off: 358; data split over queue pairs: 456."""
    two = cs.load("hgx-h100", nodes=2, fabric="roce")
    low = verdict("all_reduce", two, 216.5)
    assert low.verdict == "low"
    hindered = next(one for one in low.causes[:3] if one.cause.name == "gpudirect-hindered")
    assert "iommu=pt" in hindered.cause.advice
    assert "NCCL_IB_SPLIT_DATA_ON_QPS" in hindered.cause.advice
    assert verdict("all_reduce", two, 456).verdict == "good"
    pair = cs.load("hgx-h100", nodes=2, gpus_per_node=1, fabric="roce")
    assert [verdict("all_gather", pair, reached).verdict for reached in (13.1, 48.4)] == ["low", "good"]


def test_too_good_to_be_true() -> None:
    """NVIDIA/nccl#2408: 87.6 GB/s over one port of 400 Gb/s; the data were wrong."""
    pair = cs.load("hgx-h100", nodes=2, gpus_per_node=1, fabric="roce")
    assert verdict("all_reduce", pair, 87.6, 2.0**20).verdict == "impossible"


def test_above_the_line_over_two_nodes() -> None:
    """NVIDIA/nccl-tests#251, #309: trees over two nodes pass the line of the NICs; that is no mistake."""
    two = cs.load("hgx-h100", nodes=2)
    assert [verdict("all_reduce", two, reached).verdict for reached in (449, 469)] == ["good", "good"]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "system", "reached"),
    [
        ("oldfmt_a100_8card", "pcie-a100", 14.93),
        ("oldfmt_h800_8card", "hgx-h800", 163.16),
        ("oldfmt_v100_8card_para", "dgx-1v", 133.96),
        ("oldfmt_4090_8card_para", "pcie-4090", 16.24),
    ],
)
def test_old_sweeps(data: Path, name: str, system: str, reached: float) -> None:
    """Eight GPUs of one box, all-reduce, one process a size, in the layout before 2.13."""
    (table,) = joined(measurements(data / "formats" / "nccl_tests" / f"{name}_all_reduce_run0.log"))
    found = check(table)
    assert found.system is not None
    assert (found.system.name, found.verdict) == (system, "good")
    row = next(row for row in found.rows if row.size == GIB)
    assert row.busbw == pytest.approx(reached * 1e9, rel=1e-3)


@pytest.fixture(scope="module")
def checked(data: Path) -> list[tuple[str, Check | None]]:
    """Each public table: what its publisher holds it for, and the verdict on it; None where there is none."""

    def verdict_on(table: Measurement) -> Check | None:
        try:
            return check(table)
        except InputError:
            return None

    return [(one.health, verdict_on(one.measurement)) for one in read_measured([data / "collectives"])[0]]


@pytest.mark.data
@pytest.mark.parametrize("seed", range(5))
def test_tolerances_of_tables_that_were_not_seen(checked: list[tuple[str, Check | None]], seed: int) -> None:
    """Learnt on a random half of the healthy tables, so that 2 % of them are low, it calls few of the others low."""
    shares: dict[str, list[float]] = {"healthy": [], "degraded": []}
    for health, one in checked:
        if one and one.expected and health in shares and (one.expected.sizes >= LARGE).any():
            large = one.expected.sizes >= LARGE
            shares[health].append(float(np.median((one.expected.seconds / one.expected.measured)[large])))
    healthy = np.random.default_rng(seed).permutation(shares["healthy"])
    learnt = np.quantile(healthy[::2], 0.02)
    assert np.mean(healthy[1::2] < learnt) <= 0.09
    assert np.mean(np.array(shares["degraded"]) < learnt) >= 0.9
    assert learnt == pytest.approx(OF_THE_MODEL.large, abs=0.12)


@pytest.mark.data
def test_public_tables(checked: list[tuple[str, Check | None]]) -> None:
    """Of runs that are called degraded four of five are found, of healthy ones 3 % at most are called low."""
    counts = Counter((health, one.verdict if one else "unanswered") for health, one in checked)
    found = {health: sum(n for (of, _), n in counts.items() if of == health) for health in ("healthy", "degraded")}
    wrong = counts["healthy", "low"] + counts["healthy", "impossible"]
    assert found["healthy"] > 150
    assert wrong <= 0.03 * found["healthy"]
    assert counts["degraded", "low"] + counts["degraded", "impossible"] >= 0.8 * found["degraded"]


@pytest.mark.data
def test_verdicts_do_not_know_the_publisher(data: Path) -> None:
    """A table without its name, its publisher and its settings in words is judged alike."""
    tables = [one.measurement for one in read_measured([data / "collectives"])[0]]
    some = [table for table in tables if table.system.startswith("hgx-h100")][::7]
    for table in some:
        bare = dataclasses.replace(table, source="", settings={}, notes=())
        assert np.array_equal([row.verdict for row in check(bare).rows], [row.verdict for row in check(table).rows])
