"""What does each of NCCL's ways cost in a group: the columns from which its times follow?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, REDUCE, REDUCE_SCATTER
from commsim.libraries.nccl.constants import numbers
from commsim.libraries.nccl.timing import LARGEST_PIECE, Sent, Streaming, Switched

if TYPE_CHECKING:
    from commsim.libraries.library import Floats
    from commsim.libraries.nccl.rates import Priced, Rates
    from commsim.libraries.nccl.team import Team

_ROOTED = (BROADCAST, REDUCE)
_LOOPS = {"NVLS": (64, 8, 2), "NVLSTree": (4, 1, 0)}
"""Loops of reduction in the switches below which pieces are of 64, of 32 and of 16 KiB."""
_FAR = 4
"""Nodes from which on NVLSTree reduces in pieces of half the size."""
_MOST_WAITED = 8
"""Ranks for each of which the switches wait: those of a box, where small sizes are measured. In larger groups nobody
published any; NCCL's own model has 25 us for however many, as these come to."""
_BETTER = 0.8
"""Rings that NCCL found count where they need less than this share of the time of rings in the order of the ranks."""
_OLD_PART, _OLD_LEAST = 2.0**21, 2.0**16
_LEAST_OF_CHUNK, _MOST_OF_CHUNK = 1 / 8, 32
_NVLINK_CHUNK, _CHUNK = 2.0**19, 2.0**17
_PCIE_CHANNELS = 2
_HOPPER, _WHOLE = 90, (2, 22)
_CHAIN = 3
"""Slots that each rank of a chain copies, with half of its threads, up and down."""
_LL_PART = 2.0**14
"""Bytes of a channel that a message of LL fits in."""


def streaming(one: Rates, name: str) -> Streaming:
    """Return what a ring, a tree or their like costs; `name` is NCCL's of the algorithm."""
    of, protocol, older = one.of, one.protocol, one.fitted.older if one.older else None
    rate, kind = busiest(one, one.per_byte())
    if name == "Ring" and of.team.rings:
        reached = one.inside.efficiency * protocol.payload * one.case.factor(of.team.inside)
        found = of.op.factor(of.team.ranks) / (of.team.rings * reached)
        rate = found if found < _BETTER * rate else rate
    inside = one.inside.copy and _copied(of, name) / (one.inside.copy * protocol.copy * one.hastened)
    each = protocol.bytes_per_thread * (of.team.ranks if (name, of.protocol) == ("Ring", "LL") else 1)
    return Streaming(
        wait=_cell(protocol.base + one.start + one.near(name) + one.beyond + one.wire),
        opening=_cell(older.channel if older else 0.0),
        later=_cell(one.fitted.later * one.beyond),
        rate=_cell(rate),
        kind=_cell(kind),
        copy=_cell(inside),
        drift=_cell(one.fitted.drift if of.protocol == "Simple" else 0.0),
        share=_cell(protocol.threads * each),
        most=_cell(of.team.channels),
        slot=_cell(protocol.slot),
        fill=_cell(_filling(one, name)),
    )


def switched(one: Rates, name: str) -> Switched:
    """Return what reduction in the switches costs; `name` is NCCL's of the algorithm."""
    of, switching = one.of, one.fitted.switching
    per_byte = one.per_byte("in_network")
    near = np.array([link.kind == of.team.inside for link in of.cost.kinds])
    inside, kind = busiest(one, per_byte * near)
    rate, other = busiest(one, per_byte * ~near)
    beyond = float(switching.network) + float(of.cost.steps[:, 1].sum()) * one.nic if of.team.nodes > 1 else 0.0
    halved = name == "NVLSTree" and of.team.nodes >= _FAR
    many, some, few = _LOOPS[name]
    return Switched(
        wait=_cell(one.start + one.wire + switching.rank * min(of.team.local, _MOST_WAITED) + beyond),
        rate=_cell(rate),
        other=_cell(other),
        inside=_cell(inside),
        kind=_cell(kind),
        loop=_cell(switching.loop),
        fill=_cell(switching.fill),
        together=_cell(of.team.switching * of.team.heads),
        largest=_cell(LARGEST_PIECE / 2 if halved else LARGEST_PIECE),
        many=_cell(many),
        some=_cell(some),
        few=_cell(few),
    )


def sent(one: Rates) -> Sent:
    """Return what sends and receives cost (NCCL 2.30, src/enqueue.cc: p2p channels and parts)."""
    of, team, sending = one.of, one.of.team, one.fitted.sending
    rate, kind = busiest(one, one.per_byte(sending=True))
    everyone = of.op is ALL_TO_ALL
    near = team.nodes == 1
    peers = (team.ranks - 1 if everyone else 1) if near else (team.ranks - team.local if everyone else 1)
    send = _per_byte(one.inside.send) if near else _per_byte(sending.channel) / team.behind_network(peers)
    wait = sending.base + one.start + one.wire + (one.hop if of.protocol == "LL" else sending.wait)
    most = team.sending if one.inside.copy else min(_PCIE_CHANNELS, team.sending)
    chunk = _NVLINK_CHUNK if one.inside.copy else _CHUNK
    return Sent(
        wait=_cell(wait + (0.0 if near else sending.hops * one.nic + sending.peer * peers)),
        rate=_cell(rate),
        kind=_cell(kind),
        drift=_cell(sending.drift if everyone and near else 0.0),
        part=_cell(1 / team.ranks if everyone else 1.0),
        peers=_cell(peers),
        least=_cell(1 if one.older else _share_of_channels(most, team.ranks, team.sending)),
        most=_cell(most if near else 1),
        all=_cell(team.sending if near else 1),
        least_part=_cell(_OLD_LEAST if one.older else chunk * _LEAST_OF_CHUNK),
        most_part=_cell(_OLD_PART if one.older else chunk * _MOST_OF_CHUNK),
        send=_cell(send / one.hastened),
    )


def short(one: Rates, columns: Sent, sizes: Floats) -> Floats:
    """Tell for which sizes messages fit in the buffers of LL; through the network none does by itself."""
    each = sizes * columns.part[-1, 0]
    found: Floats = (each <= columns.channels(each)[-1] * _LL_PART) & (one.of.team.nodes == 1)
    return found


def _share_of_channels(most: int, ranks: int, every: int) -> int:
    """The channels of a peer when all are served at once: halved until they are enough for all ranks."""
    while most > 1 and most * ranks > every:
        most //= 2
    return most


def _copied(of: Priced, name: str) -> float:
    """How often the busiest rank's channels copy each byte of the size: a ring once a step, a tree up and down.

    A tree's copies go on side by side, each with half of the threads. Up it reads its own data and that of each child:
    one in its node, and one or two in others.
    """
    op, ranks = of.op, of.team.ranks
    if name == "Tree":
        return 2.0 * (2 + min(of.team.nodes - 1, 2)) / 2
    if op is ALL_REDUCE:
        return (2 * ranks - 1) / ranks
    return 1.0 if op in (ALL_GATHER, REDUCE_SCATTER, *_ROOTED) else 0.0


def _filling(one: Rates, name: str) -> float:
    """How often the busiest rank's time for a slot passes before the pipeline is full.

    A rooted ring is a chain of all ranks but the two at its ends. A tree of Simple hands whole slots up and down the
    chain of a node's ranks: two reads up and one down, where the busiest rank reads `_copied` times.
    """
    of = one.of
    if of.op in _ROOTED:
        return one.fitted.fill * max(0, of.team.ranks - 2)
    if (name, of.protocol) == ("Tree", "Simple") and _hands_on_whole_slots(of.team):
        return _CHAIN * (of.team.local - 1) / _copied(of, name)
    return 0.0


def _hands_on_whole_slots(team: Team) -> bool:
    """Older versions cut a tree's slots by its depth; GPUs of before Hopper are taken to run one of those."""
    comm = team.comm
    return comm is not None and comm.capability >= _HOPPER and numbers(comm.constants.version) >= _WHOLE


def busiest(one: Rates, per_byte: Floats) -> tuple[float, int]:
    """Return what a byte takes on the busiest links, s, and their kind: stages that follow each other add up."""
    slowest = per_byte.max(axis=1)
    rate = float(slowest.max() if one.of.cost.streaming else slowest.sum())
    return rate, int(np.argmax(per_byte[int(np.argmax(slowest))]))


def _per_byte(bandwidth: float) -> float:
    return 1 / bandwidth if bandwidth else 0.0


def _cell(value: float) -> Floats:
    return np.array([[float(value)]])
