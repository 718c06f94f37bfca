"""What does a rank do with each piece of the model for one micro-batch, and what does it keep of it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.training.axes import AXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commsim.training.operations import Array
    from commsim.training.passes import Pass
    from commsim.training.pieces import Piece

Floats = NDArray[np.float64]
SUMMED = 5 + 4 * len(AXES)
"""Rows of a profile that add up over the pieces of a chunk."""


@dataclass(frozen=True, eq=False)
class Profile:
    """What plans that cut a micro-batch alike have in common: `values`[number, piece, plan] in s and B.

    It says what a `Pass` says, without what the data axis says; and what a piece keeps. `buffers`[plan]: the memory for
    what is said meanwhile, B. Summed over the pieces of chunks (see `stages`) it has chunks in the place of pieces.
    """

    values: Floats
    buffers: Floats

    @property
    def compute(self) -> Floats:
        """[pass, piece, plan], s."""
        return self.values[0:2]

    @property
    def free(self) -> Floats:
        """Compute that hides nothing yet, [pass, piece, plan], s."""
        return self.values[2:4]

    @property
    def weights(self) -> Floats:
        """The part of the backward compute that gives the gradients of weights, [piece, plan], s."""
        found: Floats = self.values[4]
        return found

    @property
    def exposed(self) -> Floats:
        """[axis, pass, piece, plan], s."""
        return self.values[5 : 5 + 2 * len(AXES)].reshape(len(AXES), 2, *self.values.shape[1:])

    @property
    def later(self) -> Floats:
        """What is said behind everything that the chunk computes, [axis, pass, piece, plan], s."""
        return self.values[5 + 2 * len(AXES) : SUMMED].reshape(len(AXES), 2, *self.values.shape[1:])

    @property
    def kept(self) -> Floats:
        """[piece, plan], B from the forward to the backward pass."""
        found: Floats = self.values[SUMMED]
        return found

    @property
    def working(self) -> Floats:
        """[piece, plan], B besides, while the backward pass computes again."""
        found: Floats = self.values[SUMMED + 1]
        return found

    def of(self, plans: NDArray[np.intp]) -> Profile:
        """Return the profile of these plans, numbers of the last axis."""
        return Profile(self.values.take(plans, axis=-1), self.buffers[plans])


def profile(pieces: Sequence[Piece], passes: Sequence[tuple[Pass, Pass]], buffers: Array = 0.0) -> Profile:
    """Return the profile of pieces with their forward and backward passes, one plan or an array of them."""
    return Profile(stacked([_numbers(*both) for both in zip(pieces, passes)]), np.atleast_1d(buffers))


def stacked(rows: Sequence[Sequence[Array]]) -> Floats:
    """Return [number, piece, plan] from the numbers of each piece, where one number may stand for all plans."""
    sizes = {np.size(one) for row in rows for one in row if isinstance(one, np.ndarray)}
    if not sizes:
        return np.array(rows, dtype=float).T[:, :, None]
    found = np.empty((len(rows[0]), len(rows), max(sizes)))
    for piece, row in enumerate(rows):
        for number, one in enumerate(row):
            found[number, piece] = one
    return found


def _numbers(piece: Piece, both: tuple[Pass, Pass]) -> list[Array]:
    forward, backward = both
    return [
        *(forward.compute, backward.compute, forward.free, backward.free, backward.weights),
        *_by_axis([forward.exposed, backward.exposed]),
        *_by_axis([forward.later, backward.later]),
        *(piece.kept, piece.working),
    ]


def _by_axis(passes: list[Mapping[str, Array]]) -> Iterator[Array]:
    for axis in AXES:
        yield from (one.get(axis, 0.0) for one in passes)
