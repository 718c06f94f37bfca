"""Does the check of a result see what is wrong with it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.buffers import TYPES, Buffers
from bench.operations import PLANS, Seat, whole
from commsim.measurement.launch.cases import Case

if TYPE_CHECKING:
    from collections.abc import Sequence

CPU = torch.device("cpu")
MOVED = ["all_gather", "all_to_all", "send_recv", "broadcast"]
REDUCED = ["all_reduce", "reduce_scatter", "reduce"]


def buffers(op: str, ranks: int, count: int, dtype: torch.dtype, *, in_place: bool = False) -> list[Buffers]:
    """Those of every rank, filled."""
    plans = [PLANS[op](Seat(me, tuple(range(ranks)), None), count, ()) for me in range(ranks)]
    made = [Buffers(plan, dtype, CPU, in_place=in_place) for plan in plans]
    for me, one in enumerate(made):
        one.fill(me, ranks)
    return made


def deliver(op: str, made: Sequence[Buffers]) -> None:
    """Do what the operation does, by hand."""
    given, n = [one.given.clone() for one in made], len(made)
    wide = torch.float64 if given[0].dtype.is_floating_point else torch.int64
    total = torch.stack([one.to(wide) for one in given]).sum(0).to(given[0].dtype) if op in REDUCED else None
    for me, one in enumerate(made):
        each = one.given.numel() // n
        results: dict[str, Any] = {
            "all_reduce": lambda: total,
            "reduce": lambda me=me: total if me == 0 else None,
            "reduce_scatter": lambda me=me, each=each: None if total is None else total[me * each : (me + 1) * each],
            "broadcast": lambda: given[0],
            "all_gather": lambda: torch.cat(given),
            "send_recv": lambda me=me: given[me - 1],
            "all_to_all": lambda me=me, each=each: torch.cat([of[me * each : (me + 1) * each] for of in given]),
        }
        result = results[op]()
        if result is not None:
            one.taken.copy_(result)


@pytest.mark.parametrize("op", [*MOVED, *REDUCED])
@settings(max_examples=10)
@given(ranks=st.integers(1, 5), count=st.integers(0, 20_000), name=st.sampled_from(sorted(TYPES)))
def test_a_right_result_is_right(op: str, ranks: int, count: int, name: str) -> None:
    count, _ = whole(Case(op, count * TYPES[name].itemsize), ranks, TYPES[name].itemsize)
    made = buffers(op, ranks, count, TYPES[name])
    deliver(op, made)
    assert all(one.is_right(ranks) for one in made)


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce"])
def test_in_place_the_buffers_are_one(op: str) -> None:
    made = buffers(op, 3, 300, torch.float32, in_place=True)
    assert all(one.given.untyped_storage().data_ptr() == one.taken.untyped_storage().data_ptr() for one in made)
    deliver(op, made)
    assert all(one.is_right(3) for one in made)


@pytest.mark.parametrize("op", [*MOVED, *REDUCED])
@settings(max_examples=10)
@given(data=st.data())
def test_one_wrong_element_is_seen(op: str, data: st.DataObject) -> None:
    made = buffers(op, 2, 20_000, torch.float32)
    deliver(op, made)
    place = data.draw(st.integers(0, made[0].taken.numel() - 1))
    made[0].taken[place] += 1
    assert not made[0].is_right(2)


@pytest.mark.parametrize("op", [*MOVED, *REDUCED])
def test_nothing_delivered_is_seen(op: str) -> None:
    made = buffers(op, 2, 1000, torch.float32)
    assert not made[0].is_right(2)


def test_parts_in_the_wrong_order_are_seen() -> None:
    made = buffers("all_gather", 2, 2 * 8_191, torch.float32)
    deliver("all_gather", made)
    made[0].taken.copy_(made[0].taken.roll(8_191))
    assert not made[0].is_right(2)


def test_sums_are_exact_however_many_ranks_add_in_whatever_order() -> None:
    ranks = 600  # bfloat16 adds ones up to 256
    plan = PLANS["all_reduce"](Seat(0, tuple(range(ranks)), None), 100, ())
    one, total = Buffers(plan, torch.bfloat16, CPU, in_place=False), torch.zeros(100, dtype=torch.bfloat16)
    for rank in range(ranks):
        one.fill(rank, ranks)
        total += one.given
    one.taken.copy_(total)
    assert one.is_right(ranks)
    assert 64 < total.max() <= 256
