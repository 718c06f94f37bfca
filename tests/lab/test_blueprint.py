"""Is every rank reached from everywhere, along the cables of the topology, and is what does not fit refused?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.lab.blueprint import FASTEST, Blueprint, blueprint
from commsim.shipped import folder
from tests.lab.networks import MBIT, ring, star, two_level

if TYPE_CHECKING:
    from pathlib import Path

SHIPPED = sorted((folder("topologies") / "labs").glob("*.yaml"))


def way(plan: Blueprint, source: int, target: int) -> list[str]:
    """The namespaces that a frame passes from rank to rank, by the routes alone."""
    onward = {(space, rank): cable for space, rank, cable in plan.routes}
    space, passed = plan.ranks[source], [plan.spaces[plan.ranks[source]]]
    while space != plan.ranks[target]:
        (space,) = set(plan.cables[onward[space, target]].ends) - {space}
        passed.append(plan.spaces[space])
        assert len(passed) <= len(plan.spaces), "a loop"
    return passed


def test_two_levels() -> None:
    plan = blueprint(two_level(4, 100, 50))
    assert way(plan, 0, 1) == ["gpu0", "leaf0", "gpu1"]
    assert way(plan, 3, 0) == ["gpu3", "leaf1", "spine0", "leaf0", "gpu0"]
    assert plan.cables[plan.cable("spine0", "leaf1")].rate == 50 * MBIT


def test_ring_goes_the_shorter_way() -> None:
    plan = blueprint(ring(7, 100))
    assert way(plan, 0, 3) == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert way(plan, 0, 5) == ["gpu0", "gpu6", "gpu5"]


def test_equally_short_ways_are_dealt_out_by_the_target() -> None:
    plan = blueprint(ring(4, 100))
    assert way(plan, 0, 2) == ["gpu0", "gpu1", "gpu2"]  # 2 mod 2 = 0: the first of both neighbours
    assert way(plan, 2, 0) == ["gpu2", "gpu1", "gpu0"]
    assert way(plan, 3, 1) == ["gpu3", "gpu2", "gpu1"]  # 1 mod 2 = 1: the second


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.stem))
def test_shipped_networks_reach_everyone(path: Path) -> None:
    plan = blueprint(load(path).topology)
    ranks = range(len(plan.ranks))
    for source in ranks:
        for target in ranks:
            assert way(plan, source, target)[-1] == plan.spaces[plan.ranks[target]]


def test_ports_and_addresses_are_told_apart() -> None:
    plan = blueprint(two_level(4, 100, 50))
    leaf = plan.spaces.index("leaf0")
    mine = [number for number, cable in enumerate(plan.cables) if leaf in cable.ends]
    assert [plan.port(leaf, number) for number in mine] == ["eth0", "eth1", "eth2"]
    assert len({plan.address(space) for space in range(len(plan.spaces))}) == len(plan.spaces)


def test_what_a_machine_cannot_carry_is_refused() -> None:
    with pytest.raises(InputError, match="at most 10 Gb/s"):
        blueprint(star(100, 2 * FASTEST / MBIT))
    with pytest.raises(InputError, match="at most 128"):
        blueprint(star(*[100.0] * 200))


def test_unknown_link() -> None:
    with pytest.raises(InputError, match="did you mean 'gpu1 switch0'"):
        blueprint(star(100, 100)).cable("gpu1", "swich0")


def test_a_tiled_machine_is_drawn_out() -> None:
    system = load("hgx-h100", nodes=2)
    with pytest.raises(InputError, match="see --slower"):
        blueprint(system.topology)
