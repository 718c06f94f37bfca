"""Is this the time of a transfer, or only of its issue?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.units import Bytes, BytesPerSecond, Seconds

MOST_BY_SOCKETS: BytesPerSecond = 200e9
"""More than any rank moves through TCP, where the threads of one process copy every byte between it and the kernel."""


def need_waited(library: str, carried: Bytes, seconds: Seconds, where: str) -> None:
    """Refuse a time in which gloo cannot have carried so many bytes to or from one rank; InputError.

    An operation that was begun with `async_op=True` returns at once: a 16 MiB all-reduce of two ranks in 25 us would be
    670 GB/s, while its wait takes 11 ms. `carried` are the bytes of the bus bandwidth: size times bus factor.
    """
    if library == "gloo" and carried > MOST_BY_SOCKETS * seconds:
        rate = f"{carried / seconds / 1e9:.0f} GB/s" if seconds else "no time at all"
        raise InputError(where, rate, "the clock was read when the operation was issued: read it after wait()")
