"""What was asked of this machine before?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from commsim.hardware.topology import Topology

Answer = TypeVar("Answer")
_ANSWERS: WeakKeyDictionary[Topology, dict[Hashable, Any]] = WeakKeyDictionary()


def remembered(topology: Topology, question: Hashable, answer: Callable[[], Answer]) -> Answer:
    """Return the answer to a question about a machine, worked out the first time; it is forgotten with the machine."""
    answers = _ANSWERS.get(topology)
    if answers is None:
        answers = _ANSWERS[topology] = {}
    if question not in answers:
        answers[question] = answer()
    known: Answer = answers[question]
    return known
