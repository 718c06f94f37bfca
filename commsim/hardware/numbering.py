"""Which number does a link have?

Links are numbered by arithmetic, not by looking them up: the edges of the cell one after another, and within an edge by
the unit of its tier that the copy belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    import networkx as nx

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Numbering:
    """The number of every link, and what the edges of the cell are: one entry an edge in each array.

    `span` is how many nodes share one copy of the edge, `copies` how often it is there, `siblings` how many copies an
    edge between sibling units has for each unit (1 for every other edge), `joins` whether a switch that reduces sends
    into it, `splits` whether a switch that multicasts receives from it.
    """

    order: dict[tuple[str, str], int]
    names: list[tuple[str, str]]
    kind_index: Ints
    count: Floats
    offset: Ints
    span: Ints
    copies: Ints
    siblings: Ints
    joins: NDArray[np.bool_]
    splits: NDArray[np.bool_]
    total: int

    @classmethod
    def of(cls, cell: nx.DiGraph[str], kinds: Sequence[str], units: Sequence[int], nodes: int) -> Numbering:
        """Return the numbering for a cell on so many nodes; `units` are those of each tier, `kinds` those of links."""
        vertices, edges = cell.nodes, list(cell.edges(data=True))
        tiers = [min(vertices[end]["tier"] for end in (u, v)) for u, v, _ in edges]
        siblings = [units[t] if d.get("peers") else 1 for t, (_, _, d) in zip(tiers, edges)]
        span = np.cumprod([1, *units], dtype=np.int64)[tiers]
        copies = -(-nodes // span) * np.array(siblings, dtype=np.int64)
        ends = np.cumsum(copies)
        return cls(
            order={(u, v): number for number, (u, v, _) in enumerate(edges)},
            names=[(u, v) for u, v, _ in edges],
            kind_index=np.array([kinds.index(d["link"].kind) for _, _, d in edges], dtype=np.int64),
            count=np.array([d.get("count", 1) for _, _, d in edges], dtype=np.float64),
            offset=ends - copies,
            span=span,
            copies=copies,
            siblings=np.array(siblings, dtype=np.int64),
            joins=np.array([bool(vertices[u].get("reduces")) for u, _, _ in edges]),
            splits=np.array([bool(vertices[v].get("multicasts")) for _, v, _ in edges]),
            total=int(ends[-1]) if len(ends) else 0,
        )

    def links(self, edge: Ints, side: Ints, nodes: tuple[Ints, Ints]) -> Ints:
        """Return link numbers int[transfer, hop] for the edges of the cell on the source's or target's side."""
        here, far = (np.where(side == end, nodes[0][:, None], nodes[1][:, None]) for end in (0, 1))
        return self.offset[edge] + self.place(here // self.span[edge], far // self.span[edge], self.siblings[edge])

    def place(self, unit: Ints, far: Ints, siblings: Ints) -> Ints:
        """Return which copy of an edge it is: that of the unit, and of its sibling `far` where there are such edges."""
        if self.siblings.max(initial=1) == 1:
            return unit
        return np.where(siblings > 1, unit * siblings + far % siblings, unit)

    def name(self, edge: int) -> str:
        """Return an edge of the cell as people read it; empty for none."""
        return "" if edge < 0 else " -> ".join(self.names[edge])

    def busiest(self, load: Floats, kinds: int) -> tuple[Floats, Ints]:
        """Return, for a load on every link, the largest load per cable of each kind, and the edge that carries it."""
        by_edge = np.maximum.reduceat(load, self.offset) / self.count
        order = np.lexsort((by_edge, self.kind_index))
        last = np.searchsorted(self.kind_index, np.arange(kinds), side="right", sorter=order) - 1
        most = by_edge[order[last]]
        return most, np.where(most > 0, order[last], -1)
