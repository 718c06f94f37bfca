"""Which layers does each chunk of the pipeline hold?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.training.model import Model


@dataclass(frozen=True, eq=False)
class Chunks:
    """The layers of each chunk, counted by kind: counts[chunk, kind]; `assumption` says how they were spread, if uneven."""

    counts: NDArray[np.int64]
    assumption: str = ""


def spread(model: Model, stages: int, virtual: int) -> Chunks:
    """Return the layers of each of stages x virtual chunks, in order; InputError when a stage would be empty.

    Even when the chunks divide the layers. Else the embedding and the loss take the slot of a layer each (as Llama 3 did),
    when that comes out even; else the ends get fewer layers than the middle.
    """
    layers, chunks = len(model.layers), stages * virtual
    sizes = np.full(chunks, layers // chunks)
    assumption = ""
    if layers % chunks and (layers + 2) % chunks == 0 and chunks > 1:
        sizes = np.full(chunks, (layers + 2) // chunks)
        sizes[[0, -1]] -= 1
        assumption = f"the embedding and the loss take the slot of a layer each ({layers} + 2 in {chunks} chunks)"
    elif layers % chunks:
        sizes = np.full(chunks, -(-layers // chunks))
        missing = int(sizes.sum()) - layers
        ends = [place for pair in zip(range(chunks - 1, -1, -1), range(chunks)) for place in pair]
        sizes[list(dict.fromkeys(ends))[:missing]] -= 1
        assumption = f"{layers} layers do not divide into {chunks} chunks: those at the ends have fewer"
    per_stage = sizes.reshape(virtual, stages).sum(axis=0)
    if (per_stage < 1).any():
        empty = int(np.argmin(per_stage))
        raise InputError("plan: pipeline", f"{stages} stages x {virtual} chunks", f"stage {empty} would have no layer")
    last = np.cumsum(sizes)
    return Chunks(model.counts_between(last - sizes, last), assumption)
