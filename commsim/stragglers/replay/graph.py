"""What waits for what in the steps of a trace?

The dependencies are those of ByteDance's what-if analysis ("Understanding Stragglers in Large Model Training Using
What-if Analysis", OSDI 2025, section 3): a stage computes in its recorded order; a message starts once both ends are
there; collectives of data parallelism, and the norm of the gradients, wait for all replicas.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from commsim.errors import InputError
from commsim.measurement.traces.steps import (
    BACKWARD,
    CLIP,
    EMBEDDING,
    FORWARD,
    GATHER,
    LAYERNORM,
    OPTIMIZER,
    PASSES,
    PAUSE,
    RECEIVES,
    SCATTER,
    SENDS,
    SEPARATE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.measurement.traces.steps import StepTrace

SYNCED = frozenset({GATHER, SCATTER, SEPARATE, CLIP})
_SECOND = 2


class Node(NamedTuple):
    """An operation of a stage."""

    op: str
    stage: int
    turn: int


@dataclass(frozen=True)
class Meeting:
    """Operations that start together: one that computes, or the ends of what is communicated.

    Each member waits for the nodes in `after`, then all for the last of them, and if `synced` for all replicas.
    """

    members: tuple[Node, ...]
    after: tuple[tuple[Node, ...], ...]
    synced: bool


def meetings(trace: StepTrace) -> tuple[Meeting, ...]:
    """Return the meetings of a step, each after all that it waits for; InputError where the trace contradicts that."""
    waits = _Waits(trace)
    for stage in range(trace.stages):
        _compute(waits, stage)
        _messages(waits, stage)
        _data(waits, stage)
        _end(waits, stage)
    groups = [*_pairs(trace, waits), *_shared(waits)]
    return _in_turn(waits.after, groups, trace.source)


@dataclass
class _Waits:
    """Which nodes each node waits for, as they are found."""

    trace: StepTrace
    after: dict[Node, list[Node]] = field(default_factory=lambda: defaultdict(list))

    def nodes(self, op: str, stage: int) -> list[Node]:
        """The nodes of a stage's operation, each entered."""
        found = [Node(op, stage, turn) for turn in self.trace.turns(op, stage)]
        for node in found:
            self.after[node] += []
        return found

    def chain(self, nodes: Iterable[Node], first: Iterable[Node] = ()) -> None:
        """Let each node wait for the one before."""
        last = list(first)
        for node in nodes:
            self.after[node] += last
            last = [node]


def _computes(trace: StepTrace, stage: int) -> list[Node]:
    return [Node(turn.op, stage, turn.number) for turn in trace.order[stage]]


def _compute(waits: _Waits, stage: int) -> None:
    waits.chain(_computes(waits.trace, stage))


def _messages(waits: _Waits, stage: int) -> None:
    """A pass waits for its input; an input is taken once the pass before it is over; the output follows the pass."""
    for kind in PASSES:
        sends, receives = waits.nodes(SENDS[kind], stage), waits.nodes(RECEIVES[kind], stage)
        waits.chain(sends)
        waits.chain(receives)
        for send in sends:
            waits.after[send].append(Node(kind, stage, send.turn))
        for receive in receives:
            waits.after[Node(kind, stage, receive.turn)].append(receive)
            if receive.turn:
                waits.after[receive].append(Node(kind, stage, receive.turn - 1))
    _first_backward(waits, stage)


def _first_backward(waits: _Waits, stage: int) -> None:
    """The first messages of the backward pass start once the last forward but one of the warm-up is over."""
    order = _computes(waits.trace, stage)
    first = next((turn for turn, node in enumerate(order) if node.op == BACKWARD), 0)
    if first >= _SECOND:
        for op in (SENDS[BACKWARD], RECEIVES[BACKWARD]):
            if 0 in waits.trace.turns(op, stage):
                waits.after[Node(op, stage, 0)].append(order[first - _SECOND])


def _data(waits: _Waits, stage: int) -> None:
    """Parameters come before a chunk's first forward; gradients leave after its last backward, or at the end."""
    gathers, scatters = waits.nodes(GATHER, stage), waits.nodes(SCATTER, stage)
    waits.chain([*gathers, *scatters])
    chunk, order = waits.trace.chunk, _computes(waits.trace, stage)
    for gather in {int(chunk[GATHER][stage, node.turn]): node for node in gathers}.items():
        _before(waits, order, *gather)
    if SEPARATE in waits.trace.seconds:
        first = {int(chunk[SCATTER][stage, node.turn]): node for node in reversed(scatters)}
        for number, scatter in first.items():
            own = [one for one in order if one.op == BACKWARD and chunk[BACKWARD][stage, one.turn] == number]
            waits.after[scatter] += own[-1:]


def _before(waits: _Waits, order: list[Node], chunk: int, gather: Node) -> None:
    own = waits.trace.chunk[FORWARD]
    first = next((one for one in order if one.op == FORWARD and own[one.stage, one.turn] == chunk), None)
    if first:
        waits.after[first].append(gather)


def _end(waits: _Waits, stage: int) -> None:
    """After the last pass: a pause if there is one, the other gradients, their norm, the optimizer."""
    pause = Node(PAUSE, stage, 0)
    waits.after[pause] += _computes(waits.trace, stage)[-1:]
    layernorm, embedding, scatters, separate, clip, optimizer = (
        waits.nodes(op, stage) for op in (LAYERNORM, EMBEDDING, SCATTER, SEPARATE, CLIP, OPTIMIZER)
    )
    overlapped = SEPARATE in waits.trace.seconds
    late = [] if overlapped else scatters
    first = [pause, *(scatters[-1:] if overlapped else [])]
    waits.chain([*layernorm, *embedding, *late, *separate, *clip, *optimizer], first)


def _pairs(trace: StepTrace, waits: _Waits) -> list[tuple[Node, ...]]:
    """Each send with its receive: the n-th of a stage with the n-th of the next (forward), or of the one before."""
    found: list[tuple[Node, ...]] = []
    for kind, way in zip(PASSES, (1, -1)):
        last = trace.chunks - 1 if way == 1 else 0
        for stage in range(trace.stages):
            peer = (stage + way) % trace.stages
            own = trace.chunk[kind]
            sends = [one for one in waits.nodes(SENDS[kind], stage) if own[stage, one.turn] != last]
            taken = waits.nodes(RECEIVES[kind], peer)
            takes = [one for one in taken if own[peer, one.turn] != trace.chunks - 1 - last]
            if len(sends) != len(takes):
                given = f"{len(sends)} sends of stage {stage} ({kind}), {len(takes)} receives of stage {peer}"
                raise InputError(trace.source, given, "as many of each belong here")
            found += zip(sends, takes)
    return found


def _shared(waits: _Waits) -> list[tuple[Node, ...]]:
    """What stages do together: the gradients of the embedding, the norm of all gradients."""
    every = [[node for node in waits.after if node.op == op] for op in (EMBEDDING, CLIP)]
    return [tuple(sorted(nodes, key=lambda node: node.stage)) for nodes in every if nodes]


def _in_turn(after: dict[Node, list[Node]], groups: list[tuple[Node, ...]], source: str) -> tuple[Meeting, ...]:
    """The meetings in an order in which they can be solved."""
    of = {node: group for group in groups for node in group}
    whole = list(dict.fromkeys(of.get(node, (node,)) for node in after))
    needs = {one: {of.get(other, (other,)) for node in one for other in after[node]} - {one} for one in whole}
    followers: dict[tuple[Node, ...], list[tuple[Node, ...]]] = defaultdict(list)
    for one, others in needs.items():
        for other in others:
            followers[other].append(one)
    left = {one: len(others) for one, others in needs.items()}
    ready, found = deque(one for one in whole if not left[one]), list[Meeting]()
    while ready:
        one = ready.popleft()
        before = tuple(tuple(dict.fromkeys(after[node])) for node in one)
        found.append(Meeting(one, before, one[0].op in SYNCED))
        for follower in followers[one]:
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    if len(found) < len(whole):
        raise InputError(source, "operations that wait for each other", "an order that does not deadlock belongs here")
    return tuple(found)
