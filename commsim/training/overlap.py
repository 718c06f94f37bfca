"""What hides behind what, and what does hiding cost?"""

from __future__ import annotations

from dataclasses import dataclass

CONTENTION = 0.15
"""What a second of hidden communication costs the compute that hides it, s: about 16 to 24 of 132 multiprocessors run
NCCL's channels meanwhile (facts of NCCL 2.18-2.30: one channel is one multiprocessor). Estimated, range 0.05 to 0.3."""


@dataclass(frozen=True)
class Cover:
    """How much of a pass can hide communication, by what it hides behind: s of one layer, or of one stage's pass."""

    matmul: float = 0.0
    attention: float = 0.0
    whole: float = 0.0

    def behind(self, what: str) -> float:
        """Return the seconds that hide communication which hides behind that."""
        return {"nothing": 0.0, "matmul": self.matmul, "attention": self.attention, "pass": self.whole}[what]


def exposed(seconds: float, cover: float) -> float:
    """Return what communication adds to the pass that hides it: what sticks out, and the contention of what does not."""
    hidden = min(seconds, cover)
    return seconds - hidden + CONTENTION * hidden
