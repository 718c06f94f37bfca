"""How does one rank collect what the others have reduced?"""

from __future__ import annotations

import numpy as np

from commsim.collectives.algorithms.table import Group, algorithm
from commsim.collectives.kinds import REDUCE, Collective
from commsim.collectives.schedule import Phase, Round, Schedule, rounds, transfer


@algorithm("scatter_gather", REDUCE)
def scatter_gather(_: Collective, group: Group) -> Schedule:
    """Reduce-scatter round a ring of the ranks in order, then place 0 gathers all parts at once.

    Thakur, Rabenseifner and Gropp 2005, section 4 (reduce), with a ring in place of recursive halving.
    """
    n, places, others = group.size, np.arange(group.size), np.arange(1, group.size)
    passed = transfer(places, np.roll(places, -1), 1 / n)
    scatter = Schedule((Phase((Round((passed,), n - 1, relayed=True),)),))
    return scatter.then(rounds(transfer(others, 0, 1 / n)))
