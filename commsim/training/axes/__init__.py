"""Along which axes is training split, and what does each of them say? The table of axes, one file an entry."""

from __future__ import annotations

from commsim.training.axes.axis import Axis, Behind, Traffic, When
from commsim.training.axes.context import Context
from commsim.training.axes.data import Data
from commsim.training.axes.expert import Expert
from commsim.training.axes.pipeline import Pipeline
from commsim.training.axes.tensor import Tensor

AXES: dict[str, type[Axis]] = {axis.name: axis for axis in (Tensor, Context, Expert, Pipeline, Data)}
ORDER = ("tensor", "context", "expert", "data", "pipeline")
"""Megatron's order of ranks, the innermost first; the expert axis multiplies nothing."""

__all__ = [
    "AXES",
    "ORDER",
    "Axis",
    "Behind",
    "Context",
    "Data",
    "Expert",
    "Pipeline",
    "Tensor",
    "Traffic",
    "When",
]
