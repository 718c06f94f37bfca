"""What does one case give, on every rank and in every iteration?"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from bench.buffers import Buffers, element
from bench.clocks import NS, Offsets, offsets
from bench.delays import drawn, hold_back
from bench.operations import PLANS, Seat, is_in_place, whole
from bench.products import Products
from bench.timing import captured, timer
from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.team import Team
    from commsim.measurement.launch.cases import Case
    from commsim.measurement.launch.whereabouts import Trace

_NONE = -1
"""Stands for the samples of a rank that takes no part."""


class Bench:
    """A case on one rank: its group, its buffers, its delays, and the clock."""

    def __init__(self, case: Case, team: Team, trace: Trace) -> None:
        """Make everything ready; InputError where the case does not fit the ranks."""
        self.case, self.team, self.trace = case, team, trace
        self.groups = case.groups or (tuple(range(team.size)),)
        seats = [_seat(team, ranks) for ranks in self.groups]
        self.seat = next((seat for seat in seats if seat is not None), None)
        self.dtype = element(case.dtype, team.backend)
        self.in_place = is_in_place(case)
        self.count, self.size = whole(case, len(self.groups[0]), self.dtype.itemsize)
        self.buffers = self._buffers(self.seat) if self.seat else None
        self.products = Products(case.matmul, team.device) if case.matmul else None
        self.timer = timer(team.device)
        self.delays = drawn(case, team.rank, case.warmup + case.iterations)

    def record(self) -> dict[str, Any]:
        """Run the iterations and return the record; every rank calls this, every rank gets the same."""
        before = offsets(self.team)
        taken, right = self._iterated()
        clocks = before.between(offsets(self.team))
        mine = [*(ns for pair in taken for ns in pair), int(right), *self._beside(), *self._held()]
        return self._document(self.team.gathered(mine), clocks)

    def _buffers(self, seat: Seat) -> Buffers:
        matrix = tuple(tuple(size // self.dtype.itemsize for size in row) for row in self.case.matrix)
        plan = PLANS[self.case.op](seat, self.count, matrix)
        return Buffers(plan, self.dtype, self.team.device, in_place=self.in_place)

    def _iterated(self) -> tuple[list[tuple[int, int]], bool]:
        """Begin and duration of each iteration in ns, after the warm-up, and whether all results were right."""
        start = self.buffers.start if self.buffers else None
        right = self._warmed(start)
        if start and self.case.graph:
            start = captured(start)
        taken = []
        for number in range(self.case.iterations):
            taken.append(self._once(start, number))
            right &= self._is_right()
        return taken, right

    def _warmed(self, start: Callable[[], Any] | None) -> bool:
        """Run the iterations that do not count."""
        longest, right = 0, True
        for number in range(-self.case.warmup, 0):
            longest = max(longest, self._once(start, number)[1])
            right &= self._is_right()
        if self.products:
            self.products.cover(longest)
            self.products.took.clear()
        return right

    def _once(self, start: Callable[[], Any] | None, number: int) -> tuple[int, int]:
        """One iteration of everybody: fill, meet, hold back, begin, wait."""
        if self.buffers and self.seat:
            self.buffers.fill(self.seat.me, self.seat.count)
        self.trace.at("warming up" if number < 0 else "before the operation", iteration=max(number, 0))
        self.team.barrier()
        hold_back(self.delays[number + self.case.warmup], spinning=self.case.jitter.get("how") == "spin")
        if start is None:
            return _NONE, _NONE
        if number >= 0:
            self.trace.at("in the operation", iteration=number)
        with self.products or nullcontext():
            return self.timer.once(start)

    def _is_right(self) -> bool:
        return not (self.buffers and self.seat) or self.buffers.is_right(self.seat.count)

    def _beside(self) -> list[int]:
        """What one product took beside the operation, and what it takes alone, in ns."""
        if self.products is None:
            return []
        took = self.products.took or [_NONE] * self.case.iterations
        return [*took, round(self.products.alone)]

    def _held(self) -> list[int]:
        """How long this rank held back before each iteration that counts, in ns."""
        return [round(one / NS) for one in self.delays[self.case.warmup :]]

    def _document(self, gathered: list[list[int]], clocks: Offsets) -> dict[str, Any]:
        """The record of the case from what each rank has: times, whether all was right, products, delays."""
        case, many = self.case, self.case.iterations
        ranks = [rank for group in self.groups for rank in group]
        began = [[ns - clocks.ahead[rank] for ns in gathered[rank][0 : 2 * many : 2]] for rank in ranks]
        first = [min(iteration) for iteration in zip(*began)]
        rest = [gathered[rank][2 * many + 1 :] for rank in ranks]
        record: dict[str, Any] = {
            "record": "op",
            "op": case.op,
            "dtype": case.dtype,
            "size_bytes": self.size,
            "ranks": len(self.groups[0]),
            "in_place": self.in_place,
            "timed": self.timer.timed,
            "warmup": case.warmup,
            "samples_s": [_seconds(gathered[rank][1 : 2 * many : 2]) for rank in ranks],
            "arrival_s": [_seconds([ns - least for ns, least in zip(rank, first)]) for rank in began],
            "clock_uncertainty_s": clocks.uncertainty,
            "checked": all(gathered[rank][2 * many] for rank in ranks),
        }
        if self.case.op in {"all_reduce", "reduce_scatter", "reduce"}:
            record["redop"] = "sum"
        if self.case.op in {"broadcast", "reduce"}:
            record["root"] = 0
        if self.size != case.size:
            record["asked_bytes"] = case.size
        if self.products:
            record["matmul_s"] = [_seconds(rank[:many]) for rank in rest]
            record["matmul_alone_s"] = [rank[many] * NS for rank in rest]
        if case.late or case.jitter:
            record["delay_s"] = [_seconds(rank[-many:]) for rank in rest]
        return record | ({"conditions": case.conditions} if case.conditions else {}) | {"case": case.digest}


def _seat(team: Team, ranks: tuple[int, ...]) -> Seat | None:
    """This rank's seat among those, if it has one; every rank asks for every group."""
    if max(ranks) >= team.size:
        raise InputError("group", list(ranks), f"ranks from 0 to {team.size - 1} belong here")
    group = team.group(ranks)
    return Seat(ranks.index(team.rank), ranks, group) if team.rank in ranks else None


def _seconds(ns: list[int]) -> list[float]:
    return [round(one * NS, 9) for one in ns]
