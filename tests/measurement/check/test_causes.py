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
from tests.measurement.check.tables import H100, TWO, by_model, made

if TYPE_CHECKING:
    from commsim.hardware.system import System


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


def test_sockets() -> None:
    """CoreWeave's two H200 nodes without InfiniBand: 3.75 GB/s instead of 480."""
    case = slower("* nic", 3.75 / 400)
    assert suspected("all_reduce", TWO, case)[0] == "sockets"


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


def test_misaligned_pieces() -> None:
    """CoreWeave's 7 A100: 8.3 GB/s at 7 GPUs beside 220 at 6, as a seventh is no multiple of 16 bytes."""
    box = cs.load("hgx-a100", gpus=7)
    found = check(made("all_to_all", box, by_model("all_to_all", box) * 25), box)
    assert "misaligned" in [one.cause.name for one in found.causes]
    even = cs.load("hgx-a100", gpus=8)
    assert "misaligned" not in [
        one.cause.name for one in check(made("all_to_all", even, by_model("all_to_all", even) * 25), even).causes
    ]


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
