"""Which collectives are there, what does their size mean, and what is their bus bandwidth?

Size and bus factor are those of nccl-tests (its doc/PERFORMANCE.md), so that numbers here can stand beside its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Collective:
    """An operation of a group of ranks.

    `size` says what its size counts, `factor` turns bytes / time into bus bandwidth for n ranks: the rate that the
    busiest link must carry whatever the algorithm, so that it can be held against the hardware.
    """

    name: str
    size: str
    factor: Callable[[int], float]
    aliases: tuple[str, ...] = ()


_EACH = "the buffer of one rank"
_WHOLE = "the whole buffer over all ranks"
ALL_REDUCE = Collective("all_reduce", _EACH, lambda n: 2 * (n - 1) / n, ("allreduce",))
ALL_GATHER = Collective("all_gather", _WHOLE, lambda n: (n - 1) / n, ("allgather",))
REDUCE_SCATTER = Collective("reduce_scatter", _WHOLE, lambda n: (n - 1) / n, ("reducescatter",))
ALL_TO_ALL = Collective("all_to_all", _EACH, lambda n: (n - 1) / n, ("alltoall", "all_to_all_single"))
BROADCAST = Collective("broadcast", _EACH, lambda _: 1.0)
REDUCE = Collective("reduce", _EACH, lambda _: 1.0)
SEND_RECV = Collective("send_recv", _EACH, lambda _: 1.0, ("sendrecv", "send", "recv"))

COLLECTIVES: dict[str, Collective] = {
    kind.name: kind for kind in (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST, REDUCE, SEND_RECV)
}


def collective(name: str) -> Collective:
    """Return the collective of that name or alias; InputError with the nearest one."""
    named = {alias: kind for kind in COLLECTIVES.values() for alias in (kind.name, *kind.aliases)}
    found = named.get(name.lower().replace("-", "_"))
    if found is None:
        raise InputError("operation", name, "no such collective", among=COLLECTIVES)
    return found
