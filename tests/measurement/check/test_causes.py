"""Is the true cause of a slow curve the first suspect?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import commsim as cs
from commsim.libraries.calibration import Case
from commsim.libraries.nccl import Nccl
from commsim.measurement.check.causes import CAUSES
from commsim.measurement.check.judge import check
from commsim.measurement.read import measurements
from tests.measurement.check.tables import H100, TWO, by_model, made

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.hardware.system import System
    from commsim.measurement.records import Measurement


def suspected(op: str, system: System, case: Case, **more: Any) -> list[str]:  # noqa: ANN401
    found = check(made(op, system, by_model(op, system, case=case), **more), system)
    assert found.verdict == "low"
    return [one.cause.name for one in found.causes]


def slower(kind: str, share: float) -> Case:
    return Case(faster=((kind, share),))


def test_names_are_told_apart() -> None:
    assert len({cause.name for cause in CAUSES}) == len(CAUSES)


def test_one_nic_of_eight() -> None:
    assert suspected("all_reduce", TWO, slower("* nic", 1 / 8))[0] == "one-nic"


def test_half_the_rails() -> None:
    assert suspected("all_gather", TWO, slower("* nic", 1 / 2))[0] == "half-rails"


def test_what_leaves_less_open_comes_first() -> None:
    """0.48 is nearer to what ACS may leave than to a half; but that may leave anything."""
    found = suspected("all_gather", TWO, slower("* nic", 0.48))
    assert found.index("half-rails") < found.index("gpudirect-hindered")


def test_what_fits_comes_before_what_leaves_nothing_open() -> None:
    found = suspected("all_gather", TWO, slower("* nic", 0.33))
    assert found.index("gpudirect-hindered") < found.index("half-rails")


def test_what_explains_little_is_not_said() -> None:
    assert not {"sockets", "one-nic", "nvls-off"} & {*suspected("all_gather", TWO, slower("* nic", 0.5))}


def test_sockets() -> None:
    """CoreWeave's two H200 nodes without InfiniBand: 3.75 GB/s instead of 480."""
    case = slower("* nic", 3.75 / 400)
    assert suspected("all_reduce", TWO, case)[0] == "sockets"


def test_sixty_gigabytes_a_second_are_no_sockets() -> None:
    assert "sockets" not in suspected("all_gather", TWO, slower("* nic", 0.15))


def test_what_the_run_says_comes_first() -> None:
    case = slower("* nic", 0.3)
    unsaid = suspected("all_reduce", TWO, case)
    said = suspected("all_reduce", TWO, case, settings={"NCCL_IB_DISABLE": "1"})
    assert unsaid[0] != "sockets"
    assert said[0] == "sockets"


def test_nvls_off() -> None:
    table = made("all_reduce", H100, by_model("all_reduce", H100, library=Nccl(nvls=False)) * 1.1)
    found = check(table, H100)
    assert found.verdict == "low"
    assert found.causes[0].cause.name == "nvls-off"


def test_no_peer_to_peer() -> None:
    """A DGX A100 with NCCL_P2P_DISABLE=1: 5.2 GB/s instead of 235."""
    box = cs.load("hgx-a100", gpus=4)
    found = suspected("all_reduce", box, slower("nvlink*", 5.2 / 235), settings={"NCCL_P2P_DISABLE": "1"})
    assert found[0] == "p2p-disabled"


@pytest.mark.parametrize(
    ("op", "version", "told"),
    [
        *[("all_reduce", version, True) for version in ("2.11.4", "2.16.5", "2.26.2")],
        *[("all_reduce", version, False) for version in ("2.10.3", "2.17.1", "2.24.3", "2.28.3", "", "a fork")],
        ("all_gather", "2.12.12", False),
    ],
)
def test_versions_that_are_known_to_be_slow(op: str, version: str, told: bool) -> None:  # noqa: FBT001
    """NVIDIA/nccl#837: two nodes of eight A100 with two NICs, 57 GB/s with 2.10 and 7 with 2.11 to 2.16."""
    few = cs.load("hgx-a100", nodes=2, nics_per_node=2, nic="200 Gb/s")
    found = suspected(op, few, slower("* nic", 7 / 57), version=version)
    assert ("version-regression" in found) == told
    assert (found[0] == "version-regression") == told


def test_other_libraries_have_their_own_versions() -> None:
    few = cs.load("hgx-a100", nodes=2, nics_per_node=2)
    assert "version-regression" not in suspected(
        "all_reduce", few, slower("* nic", 7 / 57), version="2.12.1", library="rccl"
    )


def test_nodes_with_a_nic_for_each_gpu_were_not_slower() -> None:
    assert "version-regression" not in suspected("all_reduce", TWO, slower("* nic", 7 / 57), version="2.12.1")


@pytest.mark.parametrize(
    ("nodes", "version", "told"), [(4, "2.20.3", True), (2, "2.20.3", False), (4, "2.21.5", False)]
)
def test_all_to_all_with_fewer_channels(nodes: int, version: str, told: bool) -> None:  # noqa: FBT001
    """NVIDIA/nccl#1316: eight H800 a node; 50 GB/s with 2.18, 37 with 2.19 and 2.20 on three to eight nodes."""
    system = cs.load("hgx-h800", nodes=nodes)
    found = suspected("all_to_all", system, slower("* nic", 0.72), version=version)
    assert ("version-regression" in found) == told
    assert not told or found[0] == "version-regression"


def debugged(tmp_path: Path, *lines: str, warmup: int = 5, nodes: int = 2, busbw: float = 60) -> Measurement:
    """What nccl-tests prints of an all-reduce at a bus bandwidth, GB/s, with messages of NCCL before its rows."""
    ranks = 8 * nodes
    text = [f"# nThread 1 nGpus 1 minBytes 1 maxBytes 9 step: 2(factor) warmup iters: {warmup} iters: 20"]
    text += [
        f"#  Rank {n} Group 0 Pid 1 on host{n // 8} device {n % 8} [0000:1b:00] NVIDIA H100 80GB HBM3"
        for n in range(ranks)
    ]
    text += [f"host0:1:2 [0] NCCL INFO {line}" for line in lines]
    for size in (2**28, 2**30):
        us = size * 2 * (ranks - 1) / ranks / busbw / 1e3
        half = f"{us:.1f} {size / us / 1e3:.2f} {busbw:.2f} 0"
        text.append(f"{size} {size // 4} float sum -1 {half} {half}")
    path = tmp_path / "all_reduce.log"
    path.write_text("\n".join(text) + "\n")
    (table,) = measurements(path)
    return table


@pytest.mark.parametrize(
    ("nodes", "line", "cause", "evidence"),
    [
        (2, "Using network Socket", "sockets", "network=Socket"),
        (2, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:1.2.3.4<0>", "one-nic", "ports=1"),
        (2, "Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0(3)", "no-gpudirect", "gpudirect=no"),
        (2, "NVLS multicast support is not available on dev 0", "nvls-off", "nvls_multicast=unavailable"),
        (1, "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "p2p-disabled", "between_gpus=SHM"),
    ],
)
def test_what_a_log_says_is_evidence(tmp_path: Path, nodes: int, line: str, cause: str, evidence: str) -> None:
    found = {one.cause.name: one.evidence for one in check(debugged(tmp_path, line, nodes=nodes)).causes}
    assert found[cause] == evidence
    assert [name for name, said in found.items() if said] == [cause]


def test_what_is_right_in_a_log_is_no_evidence(tmp_path: Path) -> None:
    lines = (
        "Using network IB",
        "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:1.2.3.4<0>",
        "Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0(3)/GDRDMA",
        "Channel 00/0 : 3[3] -> 11[3] [receive] via NET/IBext_v8/0/GDRDMA/Shared",
        "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
    )
    table = debugged(tmp_path, *lines)
    assert {table.settings[name] for name in ("ports", "gpudirect", "between_gpus")} == {"2", "yes", "P2P"}
    assert not any(one.evidence for one in check(table).causes)


@pytest.mark.parametrize(
    ("nodes", "busbw", "line", "cause"),
    [
        (2, 4, "Using network AWS Libfabric", "sockets"),
        (2, 200, "Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0(3)/GDRDMA", "no-gpudirect"),
        (1, 8, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", "p2p-disabled"),
    ],
)
def test_what_a_log_says_rules_out(tmp_path: Path, nodes: int, busbw: float, line: str, cause: str) -> None:
    before, after = (
        {one.cause.name for one in check(debugged(tmp_path, *said, nodes=nodes, busbw=busbw)).causes}
        for said in ((), (line,))
    )
    assert before - after == {cause}


def test_one_channel_without_gpudirect_is_enough(tmp_path: Path) -> None:
    lines = [f"Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0{end}" for end in ("/GDRDMA", "", "/GDRDMA")]
    assert debugged(tmp_path, *lines).settings["gpudirect"] == "no"
    lines = [f"Channel 00 : 0[0] -> 1[1] via {how}" for how in ("P2P/IPC", "SHM/direct/direct", "P2P/IPC")]
    assert debugged(tmp_path, *lines).settings["between_gpus"] == "SHM"


def test_what_a_named_change_costs_is_known(tmp_path: Path) -> None:
    """Without NVLS two nodes lose a little: a tenth of the bandwidth is missing for another reason."""
    found = check(debugged(tmp_path, "NVLS multicast support is not available on dev 0")).causes
    assert found[0].cause.name != "nvls-off"


def test_without_warm_up(tmp_path: Path) -> None:
    found = check(debugged(tmp_path, warmup=0)).causes[0]
    assert (found.cause.name, found.evidence) == ("no-warm-up", "warmup=0")
    assert found.finding == "what it costs is not known"


def test_misaligned_pieces() -> None:
    """CoreWeave's 7 A100: 8.3 GB/s at 7 GPUs beside 220 at 6, as a seventh is no multiple of 16 bytes."""
    box = cs.load("hgx-a100", gpus=7)
    found = check(made("all_to_all", box, by_model("all_to_all", box) * 25), box)
    assert "misaligned" in [one.cause.name for one in found.causes]
    even = cs.load("hgx-a100", gpus=8)
    assert "misaligned" not in [
        one.cause.name for one in check(made("all_to_all", even, by_model("all_to_all", even) * 25), even).causes
    ]


@pytest.mark.parametrize(("more", "misaligned"), [(4, True), (8, True), (16, False)])
def test_pieces_of_16_bytes(more: int, misaligned: bool) -> None:  # noqa: FBT001
    """What is a multiple of 4 or 8 bytes is copied no quicker."""
    box = cs.load("hgx-a100")
    sizes = 8 * (np.logspace(20, 28, 9, base=2, dtype=np.float64) + more)
    found = check(made("all_to_all", box, by_model("all_to_all", box) * 25, sizes), box)
    assert ("misaligned" in [one.cause.name for one in found.causes]) == misaligned


@pytest.mark.parametrize("share", [0.15, 0.46, 0.6])
def test_what_is_left_is_told(share: float) -> None:
    """NVIDIA/nccl#2409: ACS and an IOMMU left 216 of 470 GB/s."""
    found = check(made("all_gather", TWO, by_model("all_gather", TWO, case=slower("* nic", share))), TWO)
    hindered = next(one for one in found.causes if one.cause.name == "gpudirect-hindered")
    assert hindered.implied == pytest.approx(share, rel=0.1)
    assert hindered.explained > 0.9
    assert "iommu=pt" in hindered.cause.advice


def test_every_suspect_is_said_in_words() -> None:
    seconds = by_model("all_reduce", TWO) * np.linspace(2, 9, 9)
    for one in check(made("all_reduce", TWO, seconds), TWO).causes:
        assert one.finding.endswith("of what is missing")
        assert dataclasses.asdict(one.cause)["title"]
