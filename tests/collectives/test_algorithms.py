"""Does each algorithm of the table end with what its operation promises?"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commsim.collectives.algorithms import ALGORITHMS, Algorithm, Group, algorithm, serving
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, REDUCE, REDUCE_SCATTER, SEND_RECV
from commsim.collectives.schedule import NOTHING, rounds
from commsim.errors import InputError
from tests.collectives.flow import carried, exchanges, gathers, heard, mirrored, steps, sums
from tests.collectives.groups import LARGE, SMALL, SPLIT, cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.collectives.kinds import Collective
    from tests.collectives.flow import Step, Vertex


def of(name: str, op: Collective, group: Group) -> list[Step]:
    return steps(ALGORITHMS[name].schedule(op, group))


def watched(n: int) -> list[int]:
    return sorted({0, 1, n // 2, n - 1}) if n > 6 else list(range(n))


def evenly(n: int) -> dict[Vertex, float]:
    return dict.fromkeys(range(n), 1 / n)


# What each operation promises, by flow: exact for every algorithm whose data may be cut at will.


@cases((*SMALL, *SPLIT), "all_gather")
def test_all_gather_brings_everything_to_everyone(name: str, op: Collective, group: Group) -> None:
    assert gathers(of(name, op, group), evenly(group.size), watched(group.size))


@cases((*SMALL, *SPLIT), "reduce_scatter")
def test_reduce_scatter_brings_every_part_to_its_rank(name: str, op: Collective, group: Group) -> None:
    assert gathers(mirrored(of(name, op, group)), evenly(group.size), watched(group.size))


@cases((*SMALL, *SPLIT), "broadcast")
def test_broadcast_brings_everything_to_everyone(name: str, op: Collective, group: Group) -> None:
    assert gathers(of(name, op, group), {0: 1.0}, watched(group.size))


@cases((*SMALL, *SPLIT), "reduce")
def test_reduce_brings_everything_to_the_root(name: str, op: Collective, group: Group) -> None:
    assert gathers(mirrored(of(name, op, group)), {0: 1.0}, watched(group.size))


@cases((*SMALL, *SPLIT), "all_reduce")
def test_all_reduce_reduces_somewhere_and_gathers_from_there(name: str, op: Collective, group: Group) -> None:
    moved = of(name, op, group)
    assert sums(moved, group.size) or any(meets(moved, have, group.size) for have in places(group))


def meets(moved: list[Step], have: dict[Vertex, float], n: int) -> bool:
    """Whether some first steps can reduce everything to `have`, and the others gather it from there."""
    middle = len(moved) / 2
    return any(
        gathers(moved[turn:], have, watched(n)) and gathers(mirrored(moved[:turn]), have, watched(n))
        for turn in sorted(range(len(moved) + 1), key=lambda turn: abs(turn - middle))
    )


def places(group: Group) -> Iterator[dict[Vertex, float]]:
    """Where the sums of an all-reduce can meet: places of the group, or of its rails, or the switches of the rails."""
    yield from owners(group.size)
    for have in owners(group.outer):
        yield {d * group.inner + r: share / group.inner for d, share in have.items() for r in range(group.inner)}
    yield {frozenset(rail): 1 / group.inner for rail in group.rails.tolist()}


def owners(n: int) -> Iterator[dict[Any, float]]:
    """Evenly everywhere; at one root; half at each of two; evenly where a group is folded to a power of two."""
    yield dict.fromkeys(range(n), 1 / n)
    yield {0: 1.0}
    yield dict(Counter({0: 0.5}) + Counter({n - 1 if n % 2 == 0 else min(1, n - 1): 0.5}))
    core = 1 << (n.bit_length() - 1)
    yield {place + min(place, n - core): 1 / core for place in range(core)}


@cases((*SMALL, *SPLIT, *LARGE), "all_to_all")
def test_all_to_all_brings_every_block_to_its_target(name: str, op: Collective, group: Group) -> None:
    assert exchanges(of(name, op, group), group.size)


# What holds for any size: who hears from whom, and how much has to move.


@cases((*SMALL, *SPLIT, *LARGE), "all_reduce", "all_gather", "reduce_scatter", "all_to_all")
def test_every_rank_hears_from_every_rank(name: str, op: Collective, group: Group) -> None:
    assert heard(of(name, op, group), group.size).all()


@cases((*SMALL, *SPLIT, *LARGE), "broadcast")
def test_every_rank_hears_from_the_root(name: str, op: Collective, group: Group) -> None:
    assert heard(of(name, op, group), group.size)[:, 0].all()


@cases((*SMALL, *SPLIT, *LARGE), "reduce")
def test_the_root_hears_from_every_rank(name: str, op: Collective, group: Group) -> None:
    assert heard(of(name, op, group), group.size)[0].all()


@cases((*SMALL, *LARGE), "send_recv")
def test_every_rank_hears_from_the_one_before(name: str, op: Collective, group: Group) -> None:
    ranks = np.arange(group.size)
    assert heard(of(name, op, group), group.size)[ranks, ranks - 1].all()


def least(op: Collective, n: int) -> tuple[float, float]:
    """What every rank has to send and to receive, of the size: its own data goes out, that of the others comes in."""
    own, others = 1 / n, (n - 1) / n
    each = {ALL_GATHER: (own, others), REDUCE_SCATTER: (others, own), ALL_TO_ALL: (others, others)}
    return each.get(op, (1.0, 1.0))


@cases((*SMALL, *SPLIT, *LARGE), "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
def test_every_rank_moves_what_it_has_to(name: str, op: Collective, group: Group) -> None:
    out, into = carried(of(name, op, group), group.size)
    least_out, least_in = least(op, group.size)
    assert out.min() >= least_out - 1e-9
    assert into.min() >= least_in - 1e-9


@cases((*SMALL, *SPLIT, *LARGE), "all_reduce")
def test_without_switches_all_reduce_moves_twice_the_size_less_one_rank(
    name: str, op: Collective, group: Group
) -> None:
    """Patarasuk and Yuan 2009, lower bound of section 3: at least 2 (n - 1) sizes in all."""
    if not ALGORITHMS[name].in_network:
        assert carried(of(name, op, group), group.size)[0].sum() >= 2 * (group.size - 1) - 1e-9


@cases((*SMALL, *SPLIT, *LARGE), "broadcast", "reduce")
def test_everyone_but_the_root_moves_everything(name: str, op: Collective, group: Group) -> None:
    out, into = carried(of(name, op, group), group.size)
    assert (into if op is BROADCAST else out)[1:].min() >= 1 - 1e-9


# The table.


@cases((Group(1, 1),))
def test_one_rank_moves_nothing(name: str, op: Collective, group: Group) -> None:
    assert ALGORITHMS[name].schedule(op, group) is NOTHING


def test_nothing_but_what_serves_is_offered() -> None:
    offered = {one.name for one in serving(ALL_REDUCE, Group(16, 8))}
    assert {"ring", "tree", "two_level", "nvls_tree", "sharp"} <= offered
    assert "nvls" not in offered
    assert "nvls" in {one.name for one in serving(ALL_REDUCE, Group(8, 8))}
    assert [one.name for one in serving(SEND_RECV, Group(8, 8))] == ["pair"]


@pytest.mark.parametrize(
    ("name", "op", "group", "message"),
    [
        ("ring", ALL_TO_ALL, Group(8), r"algorithm ring: 'all_to_all'; it does all_reduce, all_gather"),
        ("nvls", ALL_REDUCE, Group(16, 8), r"algorithm nvls: '16 ranks, 8 in each .*'; it needs ranks of one scale-up"),
        (
            "two_level",
            ALL_REDUCE,
            Group(8, 8),
            r"algorithm two_level: '8 ranks, .*'; it needs several scale-up domains",
        ),
    ],
)
def test_what_an_algorithm_cannot_do_is_refused(name: str, op: Collective, group: Group, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ALGORITHMS[name].schedule(op, group)


def test_a_decorated_function_enters_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commsim.collectives.algorithms.table.ALGORITHMS", table := dict[str, Algorithm]())
    build = algorithm("lazy", REDUCE)(lambda *_: rounds())
    assert table["lazy"].build is build
    assert table["lazy"].ops == (REDUCE,)


@pytest.mark.parametrize(("inner", "outer"), [*product((2, 3, 4, 8), (2, 3, 4, 5))])
def test_rings_of_several_domains_add_up_to_what_is_sent(inner: int, outer: int) -> None:
    """Each ring passes every rank once, and together they load each step as the schedule does."""
    group = Group(inner * outer, inner)
    sent: Counter[tuple[int, int]] = Counter()
    for order in rings(group):
        assert sorted(order) == list(range(group.size))
        sent.update(zip(order, order[1:] + order[:1]))
    step = of("ring", ALL_GATHER, group)[0]
    moved: Counter[tuple[int, int]] = Counter()
    for message in step:
        assert isinstance(message.source, int)
        assert isinstance(message.target, int)
        moved[message.source, message.target] += round(message.share * inner * group.size)
    assert moved == sent


def rings(group: Group) -> Iterator[list[int]]:
    """The ring of each rail, written out: in at member r, round the domain to r - 1, back the other way in the next."""
    for rail in range(group.inner):
        round_ = [(rail + step) % group.inner for step in range(group.inner)]
        yield [d * group.inner + m for d in range(group.outer) for m in (round_ if d % 2 == 0 else round_[::-1])]
