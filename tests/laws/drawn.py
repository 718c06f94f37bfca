"""Which machines and groups do the laws of the algorithms speak of?"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from commsim.collectives.algorithms import Group, can_reduce, serving
from commsim.collectives.kinds import COLLECTIVES
from commsim.collectives.layout import Dim, Layout
from tests.machines import SMALL

if TYPE_CHECKING:
    from commsim.collectives.algorithms import Algorithm
    from commsim.collectives.kinds import Collective
    from commsim.collectives.schedule import Schedule
    from commsim.hardware.topology import Topology

Case = tuple["Algorithm", "Collective", "Schedule"]


def cases(layout: Layout, topology: Topology) -> list[Case]:
    """Return every algorithm with every operation that it can do in these groups, and its schedule."""
    group = Group.of(layout, topology)
    found = [(one, op) for op in COLLECTIVES.values() for one in serving(op, group)]
    return [(one, op, one.schedule(op, group)) for one, op in found if can_reduce(one, layout, topology)]


@st.composite
def placed(draw: st.DrawFn) -> tuple[Topology, Layout]:
    """Draw a machine, and groups on it as the axes of a plan place them: shapes with strides, some of them copies."""
    topology = SMALL[draw(st.sampled_from(sorted(SMALL)))]
    dims = draw(axes(topology.size))
    member = draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
    members = tuple(dim for dim, chosen in zip(dims, member) if chosen) or dims[:1]
    copies = tuple(dim for dim in dims if dim not in members)
    return topology, Layout(members, copies)


@st.composite
def axes(draw: st.DrawFn, room: int) -> tuple[Dim, ...]:
    """Draw extents that fill the room at most, each with the product of those before as its stride."""
    extents: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        left = room // prod(extents)
        if left > 1:
            extents.append(draw(st.integers(2, left)))
    return tuple((extent, prod(extents[:place])) for place, extent in enumerate(extents))


@st.composite
def scattered(draw: st.DrawFn) -> tuple[Topology, Layout]:
    """Draw a machine and a group of any of its ranks in any order."""
    topology = SMALL[draw(st.sampled_from(sorted(SMALL)))]
    ranks = draw(st.lists(st.integers(0, topology.size - 1), min_size=2, max_size=9, unique=True))
    return topology, Layout.of(ranks)


def groups() -> st.SearchStrategy[tuple[Topology, Layout]]:
    """Draw a machine with regular groups or with a group that has no shape."""
    return st.one_of(placed(), scattered())
