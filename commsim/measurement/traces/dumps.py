"""What does a trace of collectives that hang hold: what each rank has begun, and what it believes is done?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.units import Seconds


class Entry(NamedTuple):
    """One collective of a group on one rank: what it is and how far it has come (scheduled, started or completed)."""

    op: str
    sizes: str
    dtypes: str
    state: str
    seconds: Seconds | None


@dataclass(frozen=True)
class Group:
    """What one rank says of a process group: its entries by number, and the last it has enqueued and completed.

    These two count messages as well, unlike the numbers of entries; -1 where the dump does not say.
    """

    entries: Mapping[int, Entry]
    enqueued: int
    completed: int

    @property
    def last(self) -> int:
        """The number of the last collective that the rank has begun."""
        return max(self.entries, default=self.enqueued)


@dataclass(frozen=True)
class DumpTrace:
    """What each rank says of each group, by the group's name; `members` of groups where the dumps tell them."""

    groups: Mapping[str, Mapping[int, Group]]
    members: Mapping[str, tuple[int, ...]]
    ranks: tuple[int, ...]
    source: str = ""
    repairs: tuple[str, ...] = ()
