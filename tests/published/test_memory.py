"""Are activations, weights and optimizer as large as those who trained the models published?"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pytest

from commsim.hardware.catalogue import load
from commsim.shipped import folder
from commsim.training.axes import Pipeline, Tensor
from commsim.training.configs.rows import read_rows
from commsim.training.configs.well_known import model
from commsim.training.estimate import Estimate, estimate
from commsim.training.memory import FRAGMENTATION
from commsim.training.plan import Plan
from commsim.validation.job import job
from commsim.validation.memory import Validation, validate
from commsim.validation.outcomes import read_outcomes
from commsim.validation.published import read_published

GIB = 2.0**30


class Run(NamedTuple):
    """A run of Korthikanti et al. 2022, table 3: on tensor x pipeline ranks, alone in its data group."""

    model: str
    pipeline: int
    virtual: int
    micro_batch: int
    batch: int


GPT_22B = Run("korthikanti-22b", 1, 1, 4, 4)
GPT_3 = Run("gpt3-175b", 8, 3, 1, 64)
MT_NLG = Run("turing-530b", 35, 3, 1, 280)
GPT_1T = Run("megatron-1t", 64, 1, 1, 512)


@lru_cache
def trained(run: Run, recompute: str, sequence: bool) -> Estimate:  # noqa: FBT001 - a cell of the tables below
    """The run on A100 with 8 tensor ranks, fp16, attention not fused."""
    plan = Plan(Tensor(8, sequence=sequence), Pipeline(run.pipeline, run.virtual))
    return estimate(
        model(run.model),
        plan,
        load("hgx-a100", gpus=plan.gpus),
        global_batch=run.batch,
        micro_batch=run.micro_batch,
        sequence=2048,
        precision="fp16",
        attention="unfused",
        recompute=recompute,
    )


def activations(run: Run, recompute: str, *, sequence: bool) -> float:
    """Bytes that layers have in flight on the first stage: the paper's figures leave the embedding out."""
    steps = trained(run, recompute, sequence).steps
    layer, layers = float(steps.chunks.pieces[0].kept), steps.chunks.counts[:: run.pipeline, 0]
    return float((steps.course.peaks[0] @ layers).max()) * layer


@pytest.mark.parametrize(
    ("run", "recompute", "sequence", "gib"),
    [
        (GPT_22B, "selective", True, 9.5625),
        (GPT_3, "none", False, 66.84375),
        (MT_NLG, "selective", True, 23.076171875),
        (GPT_1T, "none", False, 131.25),
    ],
)
def test_activations(run: Run, recompute: str, sequence: bool, gib: float) -> None:  # noqa: FBT001
    """Korthikanti et al. 2022, figure 1, as Calculon's validation carries its values."""
    assert activations(run, recompute, sequence=sequence) / GIB == pytest.approx(gib, rel=0.001)


@pytest.mark.parametrize(("run", "gib"), [(GPT_22B, 45.5625), (GPT_3, 45.5625), (MT_NLG, 31.64), (GPT_1T, 32.96)])
def test_weights_gradients_and_optimizer(run: Run, gib: float) -> None:
    """The same figure: an even share, of which the first stage has more, because it has the embedding."""
    memory, of = trained(run, "none", sequence=True).memory, model(run.model)
    owned = memory.weights + memory.gradients + memory.optimizer
    embedding = 18 * of.vocabulary * of.hidden / 8 * (1 - 1 / run.pipeline)
    assert (owned - embedding) / GIB == pytest.approx(gib, rel=0.03)


@pytest.mark.parametrize(
    ("run", "recompute", "sequence", "percent"),
    [
        (GPT_22B, "none", True, 66.84),
        (GPT_22B, "selective", True, 16.18),
        (GPT_3, "selective", False, 56.53),
        (GPT_3, "full", False, 8.71),
        (MT_NLG, "none", True, 58.31),
        (MT_NLG, "selective", True, 20.27),
        (GPT_1T, "selective", False, 62.04),
        (GPT_1T, "full", False, 9.42),
    ],
)
def test_share_of_tensor_parallelism_alone(run: Run, recompute: str, sequence: bool, percent: float) -> None:  # noqa: FBT001
    """Figure 7, in % of what a run holds with neither sequence parallelism nor recomputation."""
    share = activations(run, recompute, sequence=sequence) / activations(run, "none", sequence=False)
    assert 100 * share == pytest.approx(percent, abs=0.6)


ALLOCATED = {
    "SM001": 66.55,
    "SM003": 39.07,
    "SM004": 28.29,
    "SM026": 81.59,
    "SM028": 38.57,
    "SM038": 104.51,
    "SM041": 112.67,
}
"""GiB that PyTorch had allocated at most on B200, by shipped result: Llama 3 70B of 12 layers and 405B of 4 on tensor,
context, pipeline and data ranks, sequences of 4,096 to 131,072 (SimuMax release v1.2, measured side)."""


@pytest.mark.parametrize("row", ALLOCATED)
def test_what_pytorch_allocated(row: str) -> None:
    """Without the process, NCCL and what the allocator holds beyond tensors; too little where matrices are large."""
    shipped = folder("bench") / "published"
    result = next(one for one in read_published(shipped / "training.csv") if one.row_id == row)
    memory = job(result, read_rows(shipped / "models.csv")).estimate.memory
    tensors = memory.activations / (1 + FRAGMENTATION[True])
    allocated = memory.weights + memory.gradients + memory.optimizer + tensors
    assert allocated / GIB == pytest.approx(ALLOCATED[row], rel=0.06)


@lru_cache
def tried() -> Validation:
    """Runs of Hagemann et al. 2023 and of BLOOM's engineers that fitted, and that ran out of memory: every third."""
    shipped = folder("bench") / "published"
    outcomes = read_outcomes(shipped / "memory.csv", read_published(shipped / "training.csv"))
    return validate(outcomes[::3], read_rows(shipped / "models.csv"))


def test_it_is_told_whether_a_run_fits() -> None:
    found = tried()
    assert not found.skipped
    assert (found.told().share or 0.0) >= 0.92
    assert min(found.told(fits=fits).share or 0.0 for fits in (True, False)) >= 0.85


def test_what_is_told_wrongly_is_near_the_border() -> None:
    wrong = [one.share for one in tried().cases if not one.right]
    assert np.median(np.abs(np.array(wrong) - 1)) < 0.2
