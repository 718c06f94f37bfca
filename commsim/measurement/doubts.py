"""What is to be said about a table beside its figures, without saying the same thing a thousand times?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = 5


@dataclass
class Doubts:
    """Notes (inferred, repaired) and problems (lost, contradictory, failed) in the order in which they were found."""

    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, said: str) -> None:
        """Add a note."""
        self.notes.append(said)

    def problem(self, said: str) -> None:
        """Add a problem."""
        self.problems.append(said)

    def many(self, said: Sequence[str]) -> None:
        """Add problems of one sort: the first few, and how many more there are."""
        unlike = list(dict.fromkeys(said))
        self.problems += unlike[:_SHOWN]
        if len(unlike) > _SHOWN:
            self.problems.append(f"and {len(unlike) - _SHOWN} more of that sort")
