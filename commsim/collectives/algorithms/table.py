"""Which ways of doing a collective are there, and whom do they serve?

An algorithm is one decorated function that returns, for an operation and a group, a schedule: data, which one
interpreter (`price`) prices. The textbook formulas are not written down; they follow, and the tests say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from commsim.collectives.kinds import Collective
from commsim.collectives.remembered import remembered
from commsim.collectives.schedule import NOTHING, Schedule
from commsim.errors import InputError
from commsim.hardware.transfers import reducible

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commsim.collectives.layout import Layout
    from commsim.hardware.topology import Topology

    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """What an algorithm knows of a group: how many ranks, and how many in a row share one scale-up domain (or node)."""

    size: int
    inner: int = 1

    @classmethod
    def of(cls, layout: Layout, topology: Topology) -> Group:
        """Return what an algorithm knows of this layout on this machine."""
        return cls(layout.size, layout.within(topology.domain_size))

    @property
    def outer(self) -> int:
        """How many such rows there are: the domains that the group touches, or more where it fills them unevenly."""
        return self.size // self.inner

    @property
    def blocks(self) -> Ints:
        """The places by domain: int[domain, member]."""
        return np.arange(self.size).reshape(self.outer, self.inner)

    @property
    def rails(self) -> Ints:
        """The places that stand alike in their domains: int[member, domain]."""
        return self.blocks.T


Build = Callable[[Collective, Group], Schedule]
Serves = Callable[[Group], bool]
Joined = Literal["blocks", "rails"]


@dataclass(frozen=True)
class Algorithm:
    """A way of doing some operations: the function that builds its schedule, and which groups it serves.

    `needs` says in words what `serves` asks of a group; `in_network` names the parts of the group that must be joined
    by switches which reduce and multicast: the `blocks` of ranks that share a domain, the `rails` between domains.
    `meshed`: it gains something only where GPUs are wired to each other. `instead` names the algorithm that sends the
    same messages at once, and so never costs more on the wire.
    """

    name: str
    ops: tuple[Collective, ...]
    build: Build
    serves: Serves = lambda _: True
    needs: str = ""
    in_network: tuple[Joined, ...] = ()
    meshed: bool = False
    instead: str = ""

    def schedule(self, op: Collective, group: Group) -> Schedule:
        """Return the schedule; InputError when the algorithm does not do the operation or does not serve the group."""
        if op not in self.ops:
            raise InputError(f"algorithm {self.name}", op.name, f"it does {', '.join(o.name for o in self.ops)}")
        if not self.serves(group):
            given = f"{group.size} ranks, {group.inner} in each scale-up domain"
            raise InputError(f"algorithm {self.name}", given, f"it needs {self.needs}")
        return self.build(op, group) if group.size > 1 else NOTHING


ALGORITHMS: dict[str, Algorithm] = {}


def algorithm(
    name: str,
    *ops: Collective,
    serves: Serves = lambda _: True,
    needs: str = "",
    in_network: tuple[Joined, ...] = (),
    meshed: bool = False,
    instead: str = "",
) -> Callable[[Build], Build]:
    """Enter the decorated function in the table (see `Algorithm`)."""

    def enter(build: Build) -> Build:
        ALGORITHMS[name] = Algorithm(name, ops, build, serves, needs, in_network, meshed, instead)
        return build

    return enter


def serving(op: Collective, group: Group) -> list[Algorithm]:
    """Return the algorithms that do this operation in this group, whatever the switches can do."""
    return [one for one in ALGORITHMS.values() if op in one.ops and one.serves(group)]


def serving_on(op: Collective, layout: Layout, topology: Topology) -> tuple[Algorithm, ...]:
    """Return the algorithms that do this operation in these groups of this machine; remembered for the machine.

    Those are left out `instead` of which there is one that never costs more, and those for meshes where there is none;
    `priced` knows them too.
    """
    return remembered(topology, ("serving", op.name, layout), lambda: _serving_on(op, layout, topology))


def can_reduce(algorithm: Algorithm, layout: Layout, topology: Topology) -> bool:
    """Tell whether switches that reduce and multicast join the parts of the group that the algorithm needs joined."""
    folded = layout.on(topology)
    group, ranks = Group.of(folded, topology), folded.ranks()
    parts = [getattr(group, part) for part in algorithm.in_network]
    return all(reducible(topology, ranks[:, part].reshape(-1, part.shape[1])) for part in parts)


def _serving_on(op: Collective, layout: Layout, topology: Topology) -> tuple[Algorithm, ...]:
    found = serving(op, Group.of(layout.on(topology), topology))
    found = [one for one in found if not one.instead and (topology.meshed or not one.meshed)]
    return tuple(one for one in found if can_reduce(one, layout, topology))
