"""How long does each operation of a pipeline take, and each message between its stages?

Durations are arrays [kind, chunk, micro-batch, ...batch] in seconds, delays the same of the messages that carry the
outputs of operations to other stages; delays of outputs that stay on their stage count for nothing. An axis of length
1 stands for all: `per_chunk` and `per_link` make arrays with one entry for all micro-batches. Batch axes broadcast.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commsim.errors import InputError
from commsim.training.pipeline.schedules import BACKWARD, FORWARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from commsim.training.pipeline.program import Program

    Floats = NDArray[np.float64]

_AXES = 3


class Costs(NamedTuple):
    """Durations and delays, both [kind, chunk, micro-batch, column], and the batch axes that the columns are."""

    durations: Floats
    delays: Floats
    batch: tuple[int, ...]

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return prod(self.batch)

    def blocks(self, size: int) -> Iterator[tuple[slice, Costs]]:
        """Yield the columns in parts, and the costs of each part; a lone column stands for all."""
        for first in range(0, self.width, size):
            part = slice(first, min(first + size, self.width))
            durations, delays = (array if array.shape[-1] == 1 else array[..., part] for array in self[:2])
            yield part, Costs(durations, delays, (part.stop - first,))


def per_chunk(*seconds: ArrayLike) -> Floats:
    """Return durations [kind, chunk, 1, ...batch] from those of one micro-batch, [chunk, ...batch] for each kind.

    The kinds are forward, backward and, where the schedule splits it off, the gradient of the weights.
    """
    return np.stack(np.broadcast_arrays(*seconds))[:, :, None].astype(float, copy=False)


def per_link(program: Program, seconds: ArrayLike) -> Floats:
    """Return delays [kind, chunk, 1, ...batch] from those of the links, [stage, ...batch], the same both ways.

    Link s joins stage s to the next; the last one leads back to stage 0, and is used where stages have several chunks.
    """
    links = np.asarray(seconds, dtype=float)
    if not links.ndim or len(links) != program.shape.stages:
        raise InputError("pipeline: links", links.shape, f"one delay for each of {program.shape.stages} stages first")
    stage = np.arange(program.dims[1]) % program.shape.stages
    delays = np.zeros((program.dims[0], program.dims[1], 1, *links.shape[1:]))
    delays[FORWARD, :, 0] = links[stage]
    delays[BACKWARD : BACKWARD + 1, :, 0] = links[stage - 1]
    return delays


def costs_of(program: Program, durations: ArrayLike, delays: ArrayLike) -> Costs:
    """Return durations and delays with one axis of columns for the batch axes that they broadcast to."""
    both = (_checked(program, "durations", durations), _checked(program, "delays", delays))
    batch = np.broadcast_shapes(*(array.shape[_AXES:] for array in both))
    durations, delays = (_columns(program, array, batch) for array in both)
    return Costs(durations, delays, batch)


def _checked(program: Program, what: str, values: ArrayLike) -> Floats:
    """The values with their first three axes; a bare number stands for all operations."""
    array = np.asarray(values, dtype=float)
    array = array if array.ndim else array.reshape(1, 1, 1)
    if array.ndim < _AXES or any(have not in {1, want} for have, want in zip(array.shape, program.dims)):
        kind, chunk, microbatch = program.dims
        expected = f"[{kind} kinds, {chunk} chunks, {microbatch} micro-batches, ...batch] (or 1 for all) belongs here"
        raise InputError(f"pipeline: shape of {what}", array.shape, expected)
    if array.size and not (array.min() >= 0 and array.max() < np.inf):
        wrong = array[~(np.isfinite(array) & (array >= 0))].flat[0]
        raise InputError(f"pipeline: {what}", float(wrong), "seconds that are finite and not negative belong here")
    return array


def _columns(program: Program, array: Floats, batch: tuple[int, ...]) -> Floats:
    """The values as [kind, chunk, micro-batch, column]; one column where they do not depend on the batch."""
    first = (*program.dims[:2], array.shape[2])
    own = batch if prod(array.shape[_AXES:]) != 1 else (1,) * (array.ndim - _AXES)
    return np.broadcast_to(array, (*first, *own)).reshape(*first, prod(own))
