"""How long does an operation typically take, by the samples of its ranks and iterations?"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commsim.measurement.records import Samples
    from commsim.units import Seconds


def typical(samples: Samples, arrivals: Samples = ()) -> Seconds:
    """Return the median over iterations of the time that one took for all ranks, in seconds.

    An iteration takes as long as its slowest rank; where it is known when each rank arrived, it takes from the last
    arrival to the last end, so that waiting for a late rank is not counted as communication.
    """
    if not arrivals:
        return float(median(max(iteration) for iteration in zip(*samples)))
    ends = [[came + took for came, took in zip(*rank)] for rank in zip(arrivals, samples)]
    return float(median(max(over) - max(came) for over, came in zip(zip(*ends), zip(*arrivals))))
