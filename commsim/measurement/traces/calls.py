"""What is a trace that says how long operations took, but not when?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from commsim.measurement.traces.steps import Floats, Ints


@dataclass(frozen=True, eq=False)
class CallTrace:
    """How long each call took on each rank: `seconds` [call, rank], NaN where it is not known.

    `op` names the operation of each call, `count` says how many calls a row is the mean of, `meets` [call] whether
    ranks wait for each other in it. `transfer` [call] is what it takes once all are there, NaN where nobody says so,
    and `skew` [call] how far apart ranks come to it.
    """

    op: tuple[str, ...]
    count: Ints
    seconds: Floats
    meets: NDArray[np.bool_]
    ranks: tuple[int, ...]
    transfer: Floats
    skew: Floats
    steps: int | None = None
    world: int | None = None
    source: str = ""
    repairs: tuple[str, ...] = ()
