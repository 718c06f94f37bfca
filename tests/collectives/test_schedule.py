"""How are schedules put together?"""

from __future__ import annotations

import numpy as np

from commsim.collectives.schedule import SWITCH, everyone, lowered, raised, rounds, transfer


def test_ends_and_shares_are_broadcast_against_each_other() -> None:
    one = transfer(0, [1, 2], 0.5)
    assert one.source.tolist() == [[0, 0]]
    assert one.target.tolist() == [[1, 2]]
    assert one.share.tolist() == [0.5, 0.5]


def test_several_groups_do_the_same_at_once() -> None:
    pairs = np.array([[4, 5], [8, 9]])
    moved = rounds(transfer([0, 1], [1, 0], [1.0, 2.0])).on(pairs, 0.5).phases[0].rounds[0].transfers[0]
    assert moved.source.tolist() == [[4, 5], [8, 9]]
    assert moved.target.tolist() == [[5, 4], [9, 8]]
    assert moved.share.tolist() == [0.5, 1.0]


def test_groups_of_groups_are_groups() -> None:
    inner = rounds(everyone(2, 1.0)).on(np.array([[0, 1], [2, 3]]))
    moved = inner.on(np.array([[10, 11, 12, 13], [20, 21, 22, 23]])).phases[0].rounds[0].transfers[0]
    assert moved.source.tolist() == [[10, 11], [12, 13], [20, 21], [22, 23]]
    assert moved.how == "exchange"


def test_the_switch_stays_where_it_is() -> None:
    groups = np.array([[4, 6], [5, 7]])
    up, down = (one.on(groups, 1.0) for one in (raised(2, 1.0, "reduce"), lowered(2, 0.5)))
    assert up.target is SWITCH
    assert up.source.tolist() == down.target.tolist() == [[4, 6], [5, 7]]
    assert down.source is SWITCH


def test_schedules_follow_each_other_and_stream_when_one_does() -> None:
    first, second = rounds(transfer(0, 1, 1.0)), rounds(transfer(1, 2, 1.0), streaming=True)
    assert first.then(second).phases == (*first.phases, *second.phases)
    assert not first.then(first).streaming
    assert first.then(second).streaming
