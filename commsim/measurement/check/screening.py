"""Which node or link is bad, and which nodes share a leaf? From runs of every node alone, of every pair, or of some."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commsim.units import BytesPerSecond, Share

LOW = 0.9
"""Share of the typical bandwidth below which a pair is low. Healthy pairs of a cluster of H100 nodes differ by 2 %."""
FAILING = 1 / 3
"""Share of a node's runs that fail from which on it is the node that fails."""
FEWEST_PARTNERS = 3
"""Partners that tell a bad node from a bad partner."""
FASTER, AGREE = 1.08, 0.95
"""How much faster pairs under one leaf are at least, and which share of all pairs must fit the leaves that are told."""


@dataclass(frozen=True)
class Trial:
    """One run of a node, or of two: its bus bandwidth, B/s; None when it failed. `test` tells kinds of runs apart."""

    nodes: tuple[str, ...]
    busbw: BytesPerSecond | None
    test: str = ""


@dataclass(frozen=True)
class Judgement:
    """A node, or two nodes: the share of the typical bandwidth in the worst test, and runs that are low or failed."""

    nodes: tuple[str, ...]
    share: Share
    test: str
    low: int
    failed: int
    runs: int

    @property
    def usually(self) -> bool:
        """Whether at least half of the runs are low or failed."""
        return 2 * (self.low + self.failed) >= self.runs


@dataclass(frozen=True)
class Screen:
    """Runs of one or two nodes, screened. Shares are of the median bandwidth of all runs of the same test."""

    trials: tuple[Trial, ...]

    @cached_property
    def typical(self) -> Mapping[str, BytesPerSecond]:
        """The median bandwidth of each test, B/s."""
        found: dict[str, list[float]] = {}
        for pair in self.trials:
            if pair.busbw is not None:
                found.setdefault(pair.test, []).append(pair.busbw)
        return {test: float(np.median(values)) for test, values in found.items()}

    @cached_property
    def bad_nodes(self) -> tuple[Judgement, ...]:
        """Nodes that are low, or fail, with whomever they are paired; the worst first.

        In a test a node is low where the median over its partners is; one test is enough, since a fault may show in
        one only. Of partners of a bad node nothing follows.
        """
        low = {name for test in self.typical for name in self._low(test)}
        judged = [self._judged((name,)) for name in sorted({name for pair in self.trials for name in pair.nodes})]
        failing = [one.failed >= FAILING * one.runs and one.runs >= FEWEST_PARTNERS for one in judged]
        bad = [one for one, fails in zip(judged, failing) if fails or one.nodes[0] in low]
        return tuple(sorted(bad, key=lambda one: (one.share, -one.failed)))

    @cached_property
    def bad_links(self) -> tuple[Judgement, ...]:
        """Pairs of good nodes of which at least half of the runs are low or failed; the worst first."""
        return tuple(one for one in self._links if one.usually)

    @cached_property
    def unsteady(self) -> tuple[Judgement, ...]:
        """Pairs of good nodes that are sometimes low, the worst first: other traffic, or a link that comes and goes."""
        return tuple(one for one in self._links if not one.usually)

    @cached_property
    def leaves(self) -> tuple[tuple[str, ...], ...]:
        """Groups of nodes whose pairs are faster than pairs across groups; none where bandwidths do not tell.

        They are told when one threshold cuts the pairs into a fast and a slow kind, and the fast ones form groups.
        """
        for test in self.typical:
            found = _grouped([pair for pair in self.trials if pair.test == test and len(pair.nodes) > 1])
            if found:
                return found
        return ()

    @cached_property
    def _links(self) -> list[Judgement]:
        """Pairs of good nodes with at least one run that is low or failed, the worst first."""
        bad = {one.nodes[0] for one in self.bad_nodes}
        good = [pair for pair in self.trials if len(pair.nodes) > 1 and not bad.intersection(pair.nodes)]
        judged = [self._judged(nodes) for nodes in sorted({tuple(sorted(pair.nodes)) for pair in good})]
        return sorted((one for one in judged if one.low or one.failed), key=lambda one: one.share)

    def _low(self, test: str) -> list[str]:
        """The nodes that are low in a test, one after another: the worst is taken out before the next is judged."""
        left = [pair for pair in self.trials if pair.test == test and pair.busbw is not None]
        low: list[str] = []
        while left:
            shares = _shares(left, self.typical[test])
            worst = min(shares, key=lambda name: shares[name], default=None)
            if worst is None or shares[worst] >= LOW:
                break
            low.append(worst)
            left = [pair for pair in left if worst not in pair.nodes]
        return low

    def _judged(self, nodes: tuple[str, ...]) -> Judgement:
        runs = [pair for pair in self.trials if set(nodes) <= set(pair.nodes)]
        reached = [(pair.test, pair.busbw / self.typical[pair.test]) for pair in runs if pair.busbw is not None]
        medians = {test: float(np.median([x for name, x in reached if name == test])) for test, _ in reached}
        worst = min(medians, key=lambda test: medians[test], default="")
        low = sum(share < LOW for _, share in reached)
        return Judgement(nodes, medians.get(worst, 0.0), worst, low, len(runs) - len(reached), len(runs))


def screen(trials: Iterable[Trial]) -> Screen:
    """Return the screening of runs of nodes; InputError when there are none, or none that ran."""
    found = tuple(trials)
    if not any(pair.busbw is not None for pair in found):
        raise InputError("pairs", f"{len(found)} runs", "at least one run with a bandwidth belongs here")
    return Screen(found)


def _shares(pairs: Sequence[Trial], typical: BytesPerSecond) -> dict[str, Share]:
    """The median share of each node that has enough partners, or ran alone."""
    partners = Counter(name for pair in pairs for name in pair.nodes)
    alone = {pair.nodes for pair in pairs if len(pair.nodes) == 1}
    return {
        name: float(np.median([pair.busbw or 0.0 for pair in pairs if name in pair.nodes])) / typical
        for name, count in partners.items()
        if count >= FEWEST_PARTNERS or (name,) in alone
    }


def _grouped(pairs: Sequence[Trial]) -> tuple[tuple[str, ...], ...]:
    """The groups of nodes that one threshold of bandwidth tells, if it does."""
    speeds = np.sort([pair.busbw for pair in pairs if pair.busbw])
    if len(speeds) < FEWEST_PARTNERS:
        return ()
    gap = int(np.argmax(speeds[1:] / speeds[:-1]))
    if speeds[gap + 1] < speeds[gap] * FASTER:
        return ()
    between = float(np.sqrt(speeds[gap] * speeds[gap + 1]))
    graph: nx.Graph[str] = nx.Graph()
    graph.add_edges_from((pair.nodes[0], pair.nodes[1]) for pair in pairs if pair.busbw and pair.busbw > between)
    graph.add_nodes_from(name for pair in pairs for name in pair.nodes)
    groups = [tuple(sorted(group)) for group in nx.connected_components(graph)]
    of = {name: number for number, group in enumerate(groups) for name in group}
    fits = [(of[a] == of[b]) == (pair.busbw > between) for pair in pairs if pair.busbw for a, b in [pair.nodes]]
    told = len(groups) > 1 and any(len(group) > 1 for group in groups) and np.mean(fits) >= AGREE
    return tuple(sorted(groups)) if told else ()
