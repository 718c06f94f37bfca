"""How is a cable given its bandwidth?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commsim.units import BytesPerSecond

HEADER = 14.0
"""Bytes of a frame beside its IP as the kernel counts them: the header of Ethernet."""
FRAME = 1500 + int(HEADER)
"""Bytes of a full frame."""
_LEAST_WINDOW = 16_384
_NAP = 2e-3
"""Seconds for which a busy machine may forget a shaper; what it could have sent is made up for afterwards."""
_ROUND_TRIP = 1.3e-3
"""Seconds from a frame to its acknowledgement, of a busy machine."""


def window(fastest: BytesPerSecond) -> int:
    """Return the bytes that a connection has under way at most: enough to fill the fastest cable, and no more.

    More would stand in the queue before the slowest cable, and every word that ranks say to each other behind it.
    """
    return max(_LEAST_WINDOW, int(fastest * _ROUND_TRIP))


def burst(rate: BytesPerSecond) -> int:
    """Return the bytes that may leave at once: two frames at least, and few against any message that is measured."""
    return max(2 * FRAME, int(rate * _NAP))
