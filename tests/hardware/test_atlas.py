"""Is each way found once?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.hardware import routing
from commsim.hardware.atlas import Atlas
from tests.machines import pods

if TYPE_CHECKING:
    from commsim.hardware.routing import Path


def test_ways_are_found_once_and_looked_up_after() -> None:
    machine, asked = pods(6), list[tuple[int, int, int]]()

    def find(a: int, b: int, level: int) -> Path:
        asked.append((a, b, level))
        return routing.between(machine.cell, a, b, level)

    atlas = Atlas(find, machine.numbering, (4, 4, 4), len(machine.kinds))
    a, b, level = np.array([0, 1, 0]), np.array([1, 2, 1]), np.array([0, 2, 0])
    table, way = atlas.ways(a, b, level)
    assert sorted(asked) == [(0, 1, 0), (1, 2, 2)]
    assert len(table) == 2
    assert way[0] == way[2] != way[1]
    again, _ = atlas.ways(a[:1], b[:1], level[:1])
    assert len(asked) == 2
    assert again.hops.tolist() == [[2, 0, 0, 0]]


def test_short_ways_are_padded_with_hops_that_carry_nothing() -> None:
    table, way = pods(6).atlas.ways(np.array([0, 0, 0]), np.array([0, 1, 1]), np.array([0, 0, 2]))
    assert (table.share[way] > 0).sum(axis=1).tolist() == [0, 2, 6]
    assert table.network[way].tolist() == [0, 0, 1]
