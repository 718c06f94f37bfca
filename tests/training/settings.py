"""Small settings that several tests ask about: machines, models, and an estimate in one call."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from commsim.hardware.catalogue import load
from commsim.training.configs.well_known import model
from commsim.training.estimate import Estimate, estimate
from commsim.training.plan import Plan
from commsim.training.recipe import Recipe
from commsim.training.setting import Setting

if TYPE_CHECKING:
    from commsim.hardware.system import System
    from commsim.training.axes import Axis
    from commsim.training.pieces import Piece


@lru_cache(maxsize=64)
def machine(gpus: int, name: str = "hgx-h100") -> System:
    """Return a machine of so many GPUs, remembered with its prices."""
    return load(name, gpus=gpus)


def setting(name: str, *axes: Axis, on: str = "hgx-h100", **recipe: Any) -> Setting:  # noqa: ANN401 - the fields of Recipe
    """Return a model under a plan of these axes on a machine that it fills; by default 64 sequences of 4,096."""
    plan = Plan(*axes)
    return Setting(model(name), plan, Recipe(**{"global_batch": 64, "sequence": 4096} | recipe), machine(plan.gpus, on))


def estimated(name: str, *axes: Axis, on: str = "hgx-h100", **recipe: Any) -> Estimate:  # noqa: ANN401 - the fields of Recipe
    """Return the estimate of the same."""
    plan = Plan(*axes)
    return estimate(model(name), plan, machine(plan.gpus, on), **{"global_batch": 64, "sequence": 4096} | recipe)


def piece(asked: Setting, name: str) -> Piece:
    """Return the piece of that name."""
    return next(one for one in asked.chunks.pieces if one.name == name)
