"""Which algorithms does gloo run, and how long do they take on a machine?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.algorithms import ALGORITHMS, Group
from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECV,
    Collective,
)
from commsim.collectives.price import price
from commsim.collectives.remembered import remembered
from commsim.libraries.calibration import NOMINAL, Case, rates
from commsim.libraries.gloo.exchange import Chance, messages, together
from commsim.libraries.gloo.figures import GlooFigures, gloo_figures
from commsim.libraries.gloo.flows import crossed, ends
from commsim.libraries.library import Candidate, Floats, Timing, Wire, seconds

if TYPE_CHECKING:
    from commsim.collectives.layout import Layout
    from commsim.collectives.price import Cost
    from commsim.collectives.schedule import Schedule
    from commsim.hardware.topology import Topology

MOST_FOLLOWED = 240
"""Messages that are followed one by one: 16 ranks to each other. Of more, the busiest link is all that counts."""
_SEED, _PAIR = 0, 2


@dataclass(frozen=True)
class Way:
    """How gloo does an operation: an algorithm of the table as `algorithm` for `op`, whose links carry data both ways.

    Gloo knows no machine: its rings go through the ranks in order, whatever joins them. `words` are the messages that
    are waited for in each round: two where a rank sends before it says that it is ready to receive, as data waits for
    that word. `each`: a rank deals with all others one after another. `behind`: of two ranks, who sent first on their
    one connection may make the other wait for this part of its data.
    """

    algorithm: str
    op: Collective
    both_ways: bool = True
    reduces: bool = False
    words: float = 1.0
    each: bool = False
    behind: float = 0.0

    def messages(self, n: int) -> float:
        """Return how many messages of n ranks are waited for in each round of the algorithm."""
        return self.words * (n - 1 if self.each else 1)


WAYS = {
    ALL_REDUCE: Way("ring", ALL_REDUCE, reduces=True),
    ALL_GATHER: Way("ring", ALL_GATHER, words=2.0, behind=0.5),
    REDUCE_SCATTER: Way("ring", ALL_REDUCE, reduces=True),
    BROADCAST: Way("binomial_tree", BROADCAST, both_ways=False),
    REDUCE: Way("scatter_gather", REDUCE, reduces=True),
    ALL_TO_ALL: Way("direct", ALL_TO_ALL, words=1.5, each=True),
    SEND_RECV: Way("pair", SEND_RECV, behind=1.0),
}
"""What torch.distributed does on gloo, whatever the size (gloo/allreduce.cc, allgather.cc, broadcast.cc, reduce.cc,
alltoall.cc; torch's ProcessGroupGloo): its reduce-scatter is an all-reduce, of which each rank keeps its part. In an
all-to-all the later rank of a pair finds the other ready, so one word and a half are waited for in the mean."""


@dataclass(frozen=True)
class Gloo:
    """Gloo over TCP, with the figures of its transport."""

    name: str = "gloo"
    figures: GlooFigures = field(default_factory=gloo_figures)

    def time(
        self, op: Collective, sizes: Floats, layout: Layout, topology: Topology, *, case: Case = NOMINAL
    ) -> Timing:
        """Return the time of the one way in which gloo does it (see `Library.time`)."""
        way, asked = WAYS[op], ("gloo", op.name, layout)
        schedule = ALGORITHMS[way.algorithm].schedule(way.op, Group(layout.size))
        cost = remembered(topology, asked, lambda: price([(schedule, layout)], topology))
        bandwidth, latency = rates(cost.kinds, case)
        message = self.figures.message * way.messages(layout.size)
        wire = Wire(bandwidth, latency, self.figures.call, (message, message))
        waiting, _ = seconds(cost, np.zeros(len(sizes)), wire)
        rate = remembered(
            topology, (*asked, self.figures, case), lambda: self._rate(op, cost, (layout, topology), case)
        )
        moving = sizes * max(rate, self._handled(way, schedule, layout.size))
        busiest = int(np.argmax((cost.load / bandwidth).max(axis=0)))
        limit = np.where((moving > waiting) & (moving <= sizes * rate), busiest, -1)
        candidate = Candidate(way.algorithm, "TCP", cost, waiting + moving, limit)
        return Timing(op, layout.size, sizes, (candidate,), np.zeros(len(sizes), dtype=np.int64))

    def _rate(self, op: Collective, cost: Cost, where: tuple[Layout, Topology], case: Case) -> float:
        """How long each byte of the size takes on the wire, s/B: the busiest link of each round, or flow by flow.

        Rounds of a ring follow each other everywhere alike. The messages of a broadcast and of an all-to-all share
        links as they come; of these many, the busiest link is all that is looked at.
        """
        way = WAYS[op]
        payload = self.figures.payload(both_ways=way.both_ways)
        alone = float((cost.load / rates(cost.kinds, case)[0]).max(axis=1).sum()) / payload
        if op not in _DRAWN or where[0].size == 1:
            return alone * (1 + self.figures.waiting * way.behind) if where[0].size == _PAIR else alone
        ranks, groups = where[0].size, where[0].groups
        if groups * (ranks - 1) * (ranks if op is ALL_TO_ALL else 1) > MOST_FOLLOWED:
            return alone * (1 + self.figures.waiting / 2) if op is ALL_TO_ALL else alone
        return self._followed(op, where, case) / payload

    def _followed(self, op: Collective, where: tuple[Layout, Topology], case: Case) -> float:
        """The mean time of an operation whose messages share links and wait for each other, for each byte, s/B."""
        layout, topology = where
        chance = Chance(self.figures.waiting, self.figures.unfairness, np.random.default_rng(_SEED))
        drawn = [
            together([messages(op, layout.size, chance) for _ in range(layout.groups)], layout.ranks())
            for _ in range(_DRAWN[op])
        ]
        over = crossed(drawn[0], topology, case)
        return float(np.mean([ends(one, over).max() for one in drawn]))

    def _handled(self, way: Way, schedule: Schedule, n: int) -> float:
        """What the busiest rank's processor does for each byte of the size, s/B: send, receive, reduce."""
        sent, received = through(schedule, n)
        reduced = (n - 1) / n if way.reduces else 0.0
        return float((sent + received).max() * self.figures.copy + reduced * self.figures.reduction)


_DRAWN = {BROADCAST: 1, ALL_TO_ALL: 16}
"""Operations whose messages are followed one by one, and how many orders of arrival are drawn for each."""


def through(schedule: Schedule, n: int) -> tuple[Floats, Floats]:
    """Return what each of n ranks sends and receives, [rank] as parts of the size."""
    sent, received = np.zeros(n), np.zeros(n)
    for one in (one for phase in schedule.phases for one in phase.rounds):
        for each in one.transfers:
            share = np.broadcast_to(each.share, each.source.shape) * one.repeat
            everyone = each.how == "exchange"
            np.add.at(sent, each.source, share * (n - 1 if everyone else 1))
            np.add.at(received, each.target, share * (n - 1 if everyone else 1))
    return sent, received
