"""What does each operation call in torch, on which buffers, and what must come out?

What rank r gives is the same pattern on every rank's book: tile r, repeated. So what belongs into each part of a result
is known without a second buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.measurement.launch.cases import Case, Matrix


@dataclass(frozen=True)
class Seat:
    """A rank's place in its group: its number there, how many they are, and the ranks of the whole run by number."""

    me: int
    ranks: tuple[int, ...]
    group: Any

    @property
    def count(self) -> int:
        """How many ranks the group has."""
        return len(self.ranks)


@dataclass(frozen=True)
class Piece:
    """A part of a result: so many elements of what one rank gave, or of the sum over all (None), from `start` on."""

    of: int | None
    start: int
    count: int


@dataclass(frozen=True)
class Plan:
    """What a rank gives and takes, in elements; `shared` says where what it gives lies in what it takes, in place.

    A plan that `copies` is in place as torch has it: out of place, what it gives is copied first, which counts.
    """

    given: int
    taken: int
    pieces: tuple[Piece, ...]
    run: Callable[[torch.Tensor, torch.Tensor], Any]
    shared: slice | None = None
    within_given: bool = False
    copies: bool = False


Maker = Callable[[Seat, int, "Matrix"], Plan]
PLANS: dict[str, Maker] = {}
"""How each operation is laid out for a seat and a number of elements as its size counts them."""


def _plans(made: Maker) -> Maker:
    PLANS[getattr(made, "__name__", "")] = made
    return made


def _single(new: str, old: str) -> Callable[..., Any]:
    """The call that this torch has: newer ones renamed it."""
    found: Callable[..., Any] = getattr(dist, new, None) or getattr(dist, old)
    return found


@_plans
def all_reduce(seat: Seat, n: int, _: Matrix) -> Plan:
    """Everybody gives n elements and takes their sum."""
    return Plan(n, n, (Piece(None, 0, n),), lambda _, out: _async(dist.all_reduce, out, seat), slice(n), copies=True)


@_plans
def broadcast(seat: Seat, n: int, _: Matrix) -> Plan:
    """Everybody takes the n elements of the first."""

    def run(_: torch.Tensor, out: torch.Tensor) -> Any:  # noqa: ANN401 - torch's work
        return dist.broadcast(out, seat.ranks[0], seat.group, async_op=True)

    return Plan(n, n, (Piece(0, 0, n),), run, slice(n), copies=True)


@_plans
def reduce(seat: Seat, n: int, _: Matrix) -> Plan:
    """The first takes the sum of everybody's n elements."""

    def run(_: torch.Tensor, out: torch.Tensor) -> Any:  # noqa: ANN401 - torch's work
        return dist.reduce(out, seat.ranks[0], group=seat.group, async_op=True)

    return Plan(n, n, (Piece(None, 0, n),) if seat.me == 0 else (), run, slice(n), copies=True)


@_plans
def all_gather(seat: Seat, n: int, _: Matrix) -> Plan:
    """Everybody takes what each of them gives, n elements in all."""
    each, call = n // seat.count, _single("all_gather_single", "all_gather_into_tensor")
    pieces = tuple(Piece(rank, 0, each) for rank in range(seat.count))
    return Plan(
        each,
        each * seat.count,
        pieces,
        lambda given, out: call(out, given, group=seat.group, async_op=True),
        slice(seat.me * each, (seat.me + 1) * each),
    )


@_plans
def reduce_scatter(seat: Seat, n: int, _: Matrix) -> Plan:
    """Everybody gives n elements and takes its own part of their sum."""
    each, call = n // seat.count, _single("reduce_scatter_single", "reduce_scatter_tensor")
    return Plan(
        each * seat.count,
        each,
        (Piece(None, seat.me * each, each),),
        lambda given, out: call(out, given, group=seat.group, async_op=True),
        slice(seat.me * each, (seat.me + 1) * each),
        within_given=True,
    )


@_plans
def all_to_all(seat: Seat, n: int, matrix: Matrix) -> Plan:
    """Everybody gives a part of its n elements to each; a matrix says how many elements go from whom to whom."""
    each = n // seat.count
    sent = matrix or tuple((each,) * seat.count for _ in range(seat.count))
    gives, takes = list(sent[seat.me]), [row[seat.me] for row in sent]
    pieces = tuple(Piece(rank, sum(row[: seat.me]), row[seat.me]) for rank, row in enumerate(sent))

    def run(given: torch.Tensor, out: torch.Tensor) -> Any:  # noqa: ANN401 - torch's work
        return dist.all_to_all_single(out, given, takes, gives, group=seat.group, async_op=True)

    return Plan(sum(gives), sum(takes), pieces, run)


@_plans
def send_recv(seat: Seat, n: int, _: Matrix) -> Plan:
    """Everybody gives n elements to the next and takes those of the one before, as nccl-tests does."""
    after, before = (seat.ranks[(seat.me + step) % seat.count] for step in (1, -1))

    def run(given: torch.Tensor, out: torch.Tensor) -> Any:  # noqa: ANN401 - torch's work
        pair = [
            dist.P2POp(dist.isend, given, after, seat.group),
            dist.P2POp(dist.irecv, out, before, seat.group),
        ]
        return _All(dist.batch_isend_irecv(pair))

    return Plan(n, n, (Piece((seat.me - 1) % seat.count, 0, n),), run)


@_plans
def barrier(seat: Seat, _n: int, _: Matrix) -> Plan:
    """Everybody waits for everybody."""
    return Plan(0, 0, (), lambda *_: dist.barrier(seat.group, async_op=True))


class _All:
    """Several works as one."""

    def __init__(self, works: list[Any]) -> None:
        self._works = works

    def wait(self) -> None:
        for work in self._works:
            work.wait()


def _async(call: Callable[..., Any], tensor: torch.Tensor, seat: Seat) -> Any:  # noqa: ANN401 - torch's work
    return call(tensor, group=seat.group, async_op=True)


def whole(case: Case, ranks: int, item: int) -> tuple[int, int]:
    """Return the elements of a case and its true size in bytes: what does not divide is left out, as nccl-tests does.

    All-gather, reduce-scatter and all-to-all need as many whole elements for each rank.
    """
    elements = case.size // item
    if case.op in {"all_gather", "reduce_scatter"} or (case.op == "all_to_all" and not case.matrix):
        elements -= elements % ranks
    return elements, elements * item


def is_in_place(case: Case) -> bool:
    """Whether a case runs in place: as it says, else as torch has the operation. InputError where torch cannot."""
    if case.op in {"all_to_all", "send_recv", "barrier"}:
        if case.in_place:
            raise InputError(f"{case.op}: in_place", case.in_place, "torch has this operation out of place only")
        return False
    return case.op in {"all_reduce", "broadcast", "reduce"} if case.in_place is None else case.in_place
