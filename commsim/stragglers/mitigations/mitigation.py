"""What may a mitigation change, and what must it say?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.stragglers.kinds import Straggler
    from commsim.stragglers.laws.law import Floats
    from commsim.stragglers.parts import Ends
    from commsim.stragglers.simulate import Stage, Work

K = TypeVar("K")


class Case(NamedTuple):
    """A step with its causes."""

    stage: Stage
    causes: tuple[Straggler, ...]


class Ended(NamedTuple):
    """How long steps are, s, and which share of their samples is dropped: [step] both, or one for all."""

    seconds: Floats
    dropped: Floats | float = 0.0


@dataclass(frozen=True)
class Mitigation:
    """Something that is done about stragglers.

    source: who has shown it. loses: what it costs, in words. steps: how many steps of one job it looks at together.
    """

    source: ClassVar[str] = ""
    loses: ClassVar[str] = ""

    @property
    def steps(self) -> int:
        """How many steps of one job it looks at together."""
        return 1

    def mended(self, case: Case) -> Case:
        """Return the step and its causes as they are then; InputError when there is nothing that it mends."""
        return case

    def dealt(self, work: Work) -> Work:
        """Return the work of some steps as it is dealt out then."""
        return work

    def ended(self, stage: Stage, ends: Ends) -> Ended:
        """Return how long the steps are then."""
        return Ended(stage.parts.finished(ends))

    def lost(self, case: Case) -> float:  # noqa: ARG002 - most take nobody from his work
        """Return the share of the GPUs whose work is lost for it."""
        return 0.0


def changed(case: Case, kind: type[K], change: Callable[[K], Straggler | None]) -> Case:
    """Return the case with causes of a kind changed, or left out; InputError when there is none of it."""
    if not any(isinstance(one, kind) for one in case.causes):
        words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).strip()
        given = ", ".join(type(one).__name__ for one in case.causes) or "no cause"
        raise InputError("mitigation", given, f"it mends the kind of cause '{words}', and there is none")
    found = (change(one) if isinstance(one, kind) else one for one in case.causes)
    return case._replace(causes=tuple(one for one in found if one is not None))
