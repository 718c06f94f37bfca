"""How well do predictions agree with what was measured?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

T = TypeVar("T")
K = TypeVar("K", bound="Hashable")


@dataclass(frozen=True)
class Agreement:
    """How far predictions of some cases are off, as shares of what was measured.

    `median_error` and `p90_error` are of the errors' sizes, `bias` is the median with its sign: above 0 means too slow.
    """

    count: int
    median_error: float
    p90_error: float
    bias: float

    @classmethod
    def of(cls, errors: Iterable[float]) -> Self:
        """Return the agreement of cases by their errors; at least one belongs here."""
        signed = np.array([*errors])
        sizes = np.abs(signed)
        return cls(signed.size, float(np.median(sizes)), float(np.quantile(sizes, 0.9)), float(np.median(signed)))


@dataclass(frozen=True)
class GroupAgreement:
    """As `Agreement`, each group of cases counting once: by the median size of its errors, and its median error.

    `median_error` and `p75_error` are over groups, so that a cluster that was measured often weighs as any other.
    """

    groups: int
    count: int
    median_error: float
    p75_error: float
    bias: float

    @classmethod
    def of(cls, errors: Mapping[str, Sequence[float]]) -> Self:
        """Return the agreement of cases by the errors of each group; at least one group of one belongs here."""
        sizes = [float(np.median(np.abs(one))) for one in errors.values()]
        signed = [float(np.median(one)) for one in errors.values()]
        count = sum(len(one) for one in errors.values())
        return cls(
            len(sizes), count, float(np.median(sizes)), float(np.quantile(sizes, 0.75)), float(np.median(signed))
        )


def grouped(cases: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the cases by a key, in the order in which each key is first met."""
    found: dict[K, list[T]] = {}
    for case in cases:
        found.setdefault(key(case), []).append(case)
    return found


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation, ties sharing their mean rank; 0 when either has no order at all."""
    ranks = [_ranks(np.asarray(values, float)) for values in (first, second)]
    centred = [one - one.mean() for one in ranks]
    spread = float(np.prod([np.sqrt((one**2).sum()) for one in centred]))
    return float(centred[0] @ centred[1]) / spread if spread else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    found: NDArray[np.float64] = (last - (counts - 1) / 2)[places]
    return found
