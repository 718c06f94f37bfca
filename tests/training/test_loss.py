"""What do the two ways to take a cross entropy move and keep?"""

from __future__ import annotations

import dataclasses

from commsim.training.configs.well_known import model
from commsim.training.loss import loss
from commsim.training.operations import Shard

LLAMA = model("llama3.1-8b")
SHARD = Shard(tokens=4096.0, sequence=4096.0, tensor=8.0)
LOGITS = 4096 * 128256


def test_a_split_loss_keeps_its_part_in_fp32() -> None:
    """4sbv/t (Korthikanti et al. 2022, section 4.3)."""
    operation, kept = loss(LLAMA, SHARD)
    assert (kept.bytes, kept.gradient) == (4 * LOGITS / 8, 2 * LOGITS / 8)
    assert (operation.bytes, operation.backward_bytes) == (6 * LOGITS / 8, 4 * LOGITS / 8)


def test_without_a_split_every_rank_has_all_logits() -> None:
    whole = loss(LLAMA, dataclasses.replace(SHARD, loss_parallel=False))
    alone = loss(LLAMA, dataclasses.replace(SHARD, tensor=1.0))
    assert [one.bytes for one in whole] == [one.bytes for one in alone]


def test_pytorchs_own_kernels_move_and_keep_more() -> None:
    operation, kept = loss(LLAMA, dataclasses.replace(SHARD, unfused=frozenset({"loss"})))
    assert (kept.bytes, kept.gradient) == (6 * LOGITS / 8, 8 * LOGITS / 8)
    assert (operation.bytes, operation.backward_bytes) == (14 * LOGITS / 8, 22 * LOGITS / 8)
