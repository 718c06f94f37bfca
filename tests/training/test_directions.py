"""Does what one changes move the step the right way, and by the size that first principles give?

Rates here are those of the hardware times what NCCL is known to reach of them: 80 % of NVLink in rings, 94 % of a NIC,
67 % of NVLink 5 in an all-to-all (nccl-tests on a published HGX B200: busbw 605 of 900 GB/s at 1 GiB).
"""

from __future__ import annotations

import pytest

from commsim.hardware.catalogue import load
from commsim.libraries.nccl import Nccl
from commsim.training.axes import Data, Expert, Pipeline, Tensor
from commsim.training.configs.well_known import model
from commsim.training.estimate import Estimate
from commsim.training.overlap import CONTENTION
from commsim.training.plan import Plan
from commsim.training.recipe import Recipe
from commsim.training.setting import Setting
from tests.training.settings import estimated

LLAMA, LAYERS = "llama3.1-8b", 32
NVLINK4, NVLINK5, NIC = 450e9, 900e9, 50e9
"""B/s of one GPU in one direction: 18 links of 25, of 50, and one adapter of 400 Gb/s."""
RING, NETWORK, EXCHANGE, SENT = 0.80, 0.94, 0.67, 0.81
HALF = 4096 * 4096 * 2.0
"""Bytes of the activations between two layers of one sequence."""


def test_nvls_saves_what_the_switches_do() -> None:
    """Without sequence parallelism a layer has two all-reduces forward, and two hidden backward that slow it.

    On eight H100 NCCL reaches a bus bandwidth of about 360 GB/s in rings, 475 with NVLS, from 2 GiB up (nccl-tests on
    HGX H100).
    """
    ring, switch = (
        estimated(LLAMA, Tensor(8, sequence=False), library=Nccl(nvls=nvls), global_batch=64, micro_batch=64).step
        for nvls in (False, True)
    )
    size = 64 * HALF
    each = 2 * 7 / 8 * size * (1 / 360e9 - 1 / 475e9)
    said = 2 * LAYERS * (1 + CONTENTION) + 1 + CONTENTION
    assert ring.exposed["tensor"] - switch.exposed["tensor"] == pytest.approx(each * said, rel=0.15)
    assert ring.seconds - switch.seconds == pytest.approx(ring.exposed["tensor"] - switch.exposed["tensor"])


def test_sharp_saves_half_of_an_all_reduce_between_nodes() -> None:
    """A ring of 16 sends each byte 2 (n - 1)/n = 1.875 times through each NIC, switches that reduce take it once."""
    ring, reduced = (
        estimated(LLAMA, Tensor(8), Data(16, zero=0), library=Nccl(collnet=on), overlap_data=False).step
        for on in (False, True)
    )
    gradients = 8.03e9 / 8 * 4
    assert ring.exposed["data"] == pytest.approx(1.875 * gradients / (NIC * NETWORK), rel=0.1)
    assert reduced.exposed["data"] == pytest.approx(gradients / (NIC * NETWORK), rel=0.1)
    assert ring.seconds - reduced.seconds == pytest.approx(ring.exposed["data"] - reduced.exposed["data"])


def test_sharp_does_nothing_inside_a_node() -> None:
    without, asked = (estimated(LLAMA, Data(8, zero=0), library=Nccl(collnet=on)).step_time for on in (False, True))
    assert without == asked


def test_experts_of_a_rack_against_boxes() -> None:
    """64 GPUs share experts. In boxes of eight 56 of 64 parts leave through one NIC a GPU; in a rack 63 go over NVLink.

    40 GB/s against 600 GB/s: 13 times. Everything else is the same chip.
    """
    boxes, rack = (estimated("deepseek-v3", Expert(64), Data(64), on=on).step for on in ("hgx-b200", "gb200-nvl72"))
    tokens, copies = 4096, 8 * 7168 * 2.0
    said = 4 * 59  # dispatch and combine, forward and backward, of 58 layers and the prediction module's
    by_nic = 56 / 64 * tokens * copies / (NIC * SENT)
    by_nvlink = 63 / 64 * tokens * copies / (NVLINK5 * EXCHANGE)
    assert boxes.exposed["expert"] == pytest.approx(said * by_nic, rel=0.1)
    assert rack.exposed["expert"] == pytest.approx(said * by_nvlink, rel=0.2)
    assert boxes.exposed["expert"] / rack.exposed["expert"] == pytest.approx(by_nic / by_nvlink, rel=0.15)


def test_sixteen_tensor_ranks_of_a_rack_against_two_boxes() -> None:
    """In two boxes a ring of 16 leaves each box through 8 NICs, 400 GB/s together; in a rack each GPU has 900."""
    options = {"global_batch": 16, "micro_batch": 8}
    boxes, rack = (
        estimated("llama3.1-70b", Tensor(16), Data(2), on=on, **options).step for on in ("hgx-b200", "gb200-nvl72")
    )
    said = [one.seconds for one in boxes.said if one.traffic.axis == "tensor" and one.traffic.when == "forward"]
    near = [one.seconds for one in rack.said if one.traffic.axis == "tensor" and one.traffic.when == "forward"]
    assert said[0] / near[0] == pytest.approx(NVLINK5 * RING / (8 * NIC * NETWORK), rel=0.2)
    assert boxes.exposed["tensor"] > 1.5 * rack.exposed["tensor"]


def test_tensor_ranks_across_boxes_wait_for_their_nics() -> None:
    """One rank of each box instead of one box: each group has one NIC where it had NVLink, 50 against 450 GB/s."""
    inside, across = (
        estimated(LLAMA, *axes, global_batch=64, micro_batch=8).step
        for axes in ((Tensor(8), Data(8)), (Data(8), Tensor(8)))
    )
    ratio = NVLINK4 * RING / (NIC * NETWORK)
    times = [
        next(one.seconds for one in step.said if one.traffic.axis == "tensor" and one.kind == "full-dense")
        for step in (inside, across)
    ]
    assert times[1] / times[0] == pytest.approx(ratio, rel=0.15)
    assert across.exposed["tensor"] > ratio / 2 * inside.exposed["tensor"], "backward, less of it hides"
    assert across.compute == inside.compute


def test_a_pipeline_across_boxes_waits_less_than_tensor_ranks_would() -> None:
    """A stage sends one rank's part of the activations once a micro-batch, tensor ranks all ten times a layer."""
    piped, split = (estimated(LLAMA, *axes, global_batch=32).step for axes in ((Tensor(8), Pipeline(4)), (Tensor(32),)))
    assert piped.exposed["pipeline"] < 0.1 * split.exposed["tensor"]
    assert piped.seconds < split.seconds


def test_half_the_nic_doubles_gradients() -> None:
    """With gradients in the open, their time is the NIC's."""
    plan, recipe = Plan(Tensor(8), Data(8, zero=0)), Recipe(64, sequence=4096, overlap_data=False)
    slow, fast = (
        Estimate(Setting(model(LLAMA), plan, recipe, load("hgx-h100", gpus=64, nic=nic)), Nccl()).step
        for nic in ("200 Gb/s", "400 Gb/s")
    )
    assert slow.exposed["data"] / fast.exposed["data"] == pytest.approx(2, rel=0.05)
    assert slow.compute == fast.compute


def test_scarce_uplinks_slow_what_crosses_them() -> None:
    """Two groups of 64 boxes share experts under leaves of 51, 51 and 26 boxes with 13 uplinks each (3.9 to 1).

    The second leaf has 13 boxes of the first group and 38 of the second, and sends up 13 x 51/64 + 38 x 26/64 boxes'
    traffic through 13 cables; without oversubscription 504/512 of a box's go through its own. What 512 messages of
    5 MiB, and ranks that meet, take before they flow is alike in both.
    """
    plan, recipe = Plan(Expert(512), Data(1024)), Recipe(16384, micro_batch=16, sequence=4096)
    full, scarce = (
        Estimate(Setting(model("qwen3-next-80b-a3b"), plan, recipe, load("hgx-h100", gpus=1024, **wiring)), Nccl()).step
        for wiring in ({}, {"oversubscription": 4.0})
    )
    expected = (13 * 51 / 64 + 38 * 26 / 64) / 13 / (504 / 512)
    assert scarce.exposed["expert"] / full.exposed["expert"] == pytest.approx(expected, rel=0.05)
    assert scarce.compute == full.compute
