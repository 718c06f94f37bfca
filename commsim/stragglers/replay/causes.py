"""Which cause do the figures of a replay speak for?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commsim.stragglers.replay.result import (
    COMMUNICATION,
    LAST_STAGE,
    NO_CAUSE,
    ONE_WORKER,
    PAUSES,
    SEQUENCES,
    UNKNOWN,
    Finding,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commsim.stragglers.replay.passes import Alike
    from commsim.stragglers.replay.result import Worker

SLOW = 1.02
"""A smaller slowdown is the jitter of a healthy job, and has no cause."""
HALF = 0.5
"""A cause explains half of the time lost (OSDI 2025, section 4.2, for workers and for the last stage)."""
TOGETHER = 0.9
"""The correlation of forward and backward passes that speaks for sequences of different length (section 5.3)."""
SPREAD = 0.05
"""Passes of a healthy worker vary by less: 1.3 to 2.2 % (traces AR and ST)."""


class Signs(NamedTuple):
    """What speaks for or against a cause."""

    slowdown: float
    shares: Mapping[str, float]
    passes: Alike
    replicas: int
    worst: tuple[Worker, ...]


def recognised(signs: Signs) -> Finding:
    """Return the first cause that explains half of the time lost, with its figures."""
    if signs.slowdown < SLOW:
        return Finding(NO_CAUSE, (f"slowdown {signs.slowdown:.4f}: less than {SLOW:g}, which jitter makes",))
    found = next(_causes(signs), None)
    if found:
        return found
    best = max(signs.shares, key=lambda name: signs.shares[name])
    said = f"no single cause explains half of the time lost; nearest: {best} with {signs.shares[best]:.1%}"
    return Finding(UNKNOWN, (said, *_passes(signs)))


def _causes(signs: Signs) -> Iterator[Finding]:
    """The causes that hold, those first that others would be mistaken for."""
    shares = signs.shares
    last = f"M_S {shares['M_S']:.4f}: mending the last stage alone wins so much of the time lost"
    worst = ", ".join(f"rank {one.rank} (stage {one.stage}, replica {one.replica})" for one in signs.worst)
    if shares["M_W"] >= HALF:
        said = f"M_W {shares['M_W']:.4f}: mending {worst} alone wins so much of the time lost"
        yield Finding(ONE_WORKER, (said,)) if signs.replicas > 1 else Finding(UNKNOWN, (said, _ALONE, last))
    if signs.passes.correlation >= TOGETHER and signs.passes.spread >= SPREAD:
        yield Finding(SEQUENCES, (*_passes(signs), last))
    for name, cause in (("pauses", PAUSES), ("communication", COMMUNICATION)):
        if shares[name] >= HALF:
            yield Finding(cause, (f"without {name} {shares[name]:.1%} of the time lost would be won",))
    if shares["M_S"] >= HALF:
        yield Finding(LAST_STAGE, (last, *_passes(signs)))
    for name, share in shares.items():
        if name.startswith("stage") and share >= HALF:
            yield Finding(name, (f"mending {name} alone wins {share:.1%} of the time lost",))


_ALONE = "there is one replica: a slow worker and a stage with more work look the same"


def _passes(signs: Signs) -> tuple[str, ...]:
    correlation, spread = signs.passes
    return (f"forward and backward of a micro-batch: correlation {correlation:.3f}, spread {spread:.1%}",)
