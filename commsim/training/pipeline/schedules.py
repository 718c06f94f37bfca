"""In which order does each stage of a pipeline work?

One function a schedule, entered in the table `SCHEDULES` by its decorator. A schedule returns operations by number,
`[stage, turn]`: `Shape.operation` numbers them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    Schedule = Callable[["Shape"], "Integers"]

Integers = NDArray[np.intp]
FORWARD, BACKWARD, WEIGHT = range(3)
KINDS = ("forward", "backward", "weight")
"""Kinds of operation. Where a schedule has the third, the second is the gradient of the input alone."""


@dataclass(frozen=True)
class Shape:
    """How a step is cut: chunk c of the model is on stage c modulo `stages`, `virtual` chunks a stage.

    `group` is how many micro-batches a stage takes through one chunk before it turns to its next chunk.
    """

    stages: int
    microbatches: int
    virtual: int = 1
    group: int | None = None

    @property
    def chunks(self) -> int:
        """Return the number of chunks of the model."""
        return self.stages * self.virtual

    def operation(self, kind: int, chunk: Integers, microbatch: Integers) -> Integers:
        """Return the number of an operation: row-major in [kind, chunk, micro-batch]."""
        return (kind * self.chunks + chunk) * self.microbatches + microbatch


SCHEDULES: dict[str, Schedule] = {}


def _schedule(*names: str) -> Callable[[Schedule], Schedule]:
    """The decorator that enters a schedule in the table under its names."""

    def enter(order: Schedule) -> Schedule:
        SCHEDULES.update(dict.fromkeys(names, order))
        return order

    return enter


@_schedule("gpipe", "afab")
def all_forward_all_backward(shape: Shape) -> Integers:
    """Return every forward, then every backward (GPipe, Huang et al. 2019); several chunks: breadth first."""
    _refuse_group(shape)
    breadth_first = replace(shape, group=shape.microbatches)
    return _woven(breadth_first, np.full(shape.stages, shape.virtual * shape.microbatches))


@_schedule("1f1b")
def one_forward_one_backward(shape: Shape) -> Integers:
    """Return one forward, one backward in turns after p - 1 - s forwards (PipeDream-Flush, Narayanan et al. 2021)."""
    _refuse_group(shape)
    _refuse_chunks(shape)
    return _woven(replace(shape, group=shape.microbatches), _later_stages(shape))


@_schedule("interleaved")
def interleaved(shape: Shape) -> Integers:
    """Return 1F1B over several chunks a stage (Narayanan et al. 2021, section 2.2; groups as in Megatron-LM).

    The warm-up is 2 (p - 1 - s) + (v - 1) g forwards, with g micro-batches a group: p where p divides m, else the
    fewest that Megatron-LM takes (the last group must not have fewer than p).
    """
    if shape.virtual == 1:
        raise InputError("pipeline: virtual", 1, "interleaved needs 2 or more chunks a stage (1f1b has one)")
    shape = replace(shape, group=group_of(shape))
    return _woven(shape, 2 * _later_stages(shape) + (shape.virtual - 1) * (shape.group or 0))


@_schedule("zero-bubble", "zb-h1")
def zero_bubble(shape: Shape) -> Integers:
    """Return ZB-H1 (Qi et al. 2024): 1F1B whose weight gradients wait s micro-batches, to fill the drain.

    No stage holds more than the p micro-batches that the first stage of 1F1B holds.
    """
    order, last = one_forward_one_backward(shape), shape.microbatches - 1
    stage, microbatch = np.ogrid[: shape.stages, : shape.microbatches]
    behind = _turn_of_backward(_later_stages(shape), last + 1)[stage, np.minimum(microbatch + stage, last)]
    turns = np.concatenate([np.broadcast_to(np.arange(2 * last + 2), order.shape), behind + 0.5], axis=1)
    everything = np.concatenate([order, shape.operation(WEIGHT, stage, microbatch)], axis=1)
    return np.take_along_axis(everything, np.argsort(turns, axis=1, kind="stable"), axis=1)


@_schedule("forward")
def forward_only(shape: Shape) -> Integers:
    """Return the forwards alone, as in inference and evaluation; several chunks: breadth first."""
    return all_forward_all_backward(shape)[:, : shape.virtual * shape.microbatches]


def _woven(shape: Shape, warmup: Integers) -> Integers:
    """The 1F1B family: `warmup[stage]` forwards, then a forward and a backward in turns, then the other backwards.

    Forward k and backward k of a stage belong to chunks counted from opposite ends of the stage's chunks.
    """
    chunk, microbatch = _rotation(shape)
    stage, turns = np.arange(shape.stages)[:, None], chunk.size
    k = np.arange(turns)
    order = np.empty((shape.stages, 2 * turns), dtype=np.intp)
    forward = shape.operation(FORWARD, chunk * shape.stages + stage, microbatch)
    backward = shape.operation(BACKWARD, (shape.virtual - 1 - chunk) * shape.stages + stage, microbatch)
    np.put_along_axis(order, np.maximum(k, 2 * k - warmup[:, None]), forward, axis=1)
    np.put_along_axis(order, _turn_of_backward(warmup, turns), backward, axis=1)
    return order


def _turn_of_backward(warmup: Integers, turns: int) -> Integers:
    """[stage, k]: the turn at which backward k runs: in turns with forwards, and without pause once they are done."""
    k = np.arange(turns)
    return np.minimum(np.minimum(warmup, turns)[:, None] + 2 * k + 1, turns + k)


def _rotation(shape: Shape) -> tuple[Integers, Integers]:
    """The chunk of the stage and the micro-batch of its k-th forward: group by group, chunk by chunk within a group."""
    group = shape.group or shape.stages
    k = np.arange(shape.virtual * shape.microbatches)
    first = k // (group * shape.virtual) * group
    size, within = np.minimum(group, shape.microbatches - first), k - first * shape.virtual
    return within // size, first + within % size


def _later_stages(shape: Shape) -> Integers:
    """[stage]: how many stages come after it."""
    return np.arange(shape.stages)[::-1]


def group_of(shape: Shape) -> int:
    """Return the micro-batches of a group, given or the fewest that Megatron-LM takes (both by its own bounds)."""
    p, m = shape.stages, shape.microbatches
    if m < p:
        raise InputError("pipeline: microbatches", m, f"interleaved needs at least as many as stages ({p})")
    group = shape.group or next(size for size in range(p, m + 1) if _fits(size, shape))
    if not p <= group <= m or not _fits(group, shape):
        expected = f"{p} to {m}, with no remainder of {m} micro-batches below {p}, belongs here"
        raise InputError("pipeline: group", group, expected)
    return group


def _fits(group: int, shape: Shape) -> bool:
    """Whether no group has fewer micro-batches than there are stages."""
    return not 0 < shape.microbatches % group < shape.stages


def _refuse_group(shape: Shape) -> None:
    if shape.group is not None:
        raise InputError("pipeline: group", shape.group, "only the interleaved schedule has groups; leave it out")


def _refuse_chunks(shape: Shape) -> None:
    if shape.virtual != 1:
        expected = "this schedule has one chunk a stage; interleaved has several"
        raise InputError("pipeline: virtual", shape.virtual, expected)
