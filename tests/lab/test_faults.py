"""Are faults read, seen by the model, and told to the ranks?"""

from __future__ import annotations

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.lab.faults import (
    FAULTS,
    HEALTHY,
    Fault,
    FlappingLink,
    Jitter,
    LateRank,
    SlowLink,
    StoppedRank,
    fault,
    slowed,
    written,
)
from commsim.measurement.launch.cases import Case
from commsim.stragglers.laws import Gamma, Uniform
from tests.lab.networks import MBIT, star

RNG = np.random.default_rng(0)
EXAMPLES = {
    "slow-link: link=gpu1,switch0 factor=2": SlowLink(("gpu1", "switch0"), 2.0),
    "flapping-link: link=gpu1,switch0 down=20ms every=60ms": FlappingLink(("gpu1", "switch0"), 0.02, 0.06),
    "late-rank: rank=3 by=50ms": LateRank(3, 0.05),
    "stopped-rank: rank=1 lasting=0.5s": StoppedRank(1, 0.5),
    "jitter: law=uniform(0, 10ms)": Jitter(Uniform(0.0, 0.01)),
}


@pytest.mark.parametrize(("text", "value"), EXAMPLES.items())
def test_faults_are_read(text: str, value: Fault) -> None:
    assert fault(text) == value


def test_every_fault_has_an_example() -> None:
    assert {type(value) for value in EXAMPLES.values()} == set(FAULTS.values())


@pytest.mark.parametrize("value", EXAMPLES.values())
def test_what_is_written_begins_with_the_name_of_the_kind(value: Fault) -> None:
    name, _, fields = written(value).partition(": ")
    assert FAULTS[name] is type(value)
    assert fields.count("=") >= 1


def test_nothing_is_written_as_nothing() -> None:
    assert written(HEALTHY) == ""
    assert written(fault("late-rank: rank=3 by=50ms")) == "late-rank: rank=3 by=0.05"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slow-lnk: link=a,b factor=2", "did you mean 'slow-link'"),
        ("slow-link: link=gpu1,switch0 factor=0.5", "1 or more"),
        ("slow-link: link=gpu1,switch0", "needs the key 'factor'"),
        ("flapping-link: link=gpu1,switch0 down=2s every=1s", "less than `every`"),
        ("late-rank: rank=three by=1s", "whole number"),
    ],
)
def test_what_is_no_fault_is_told(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        fault(text)


def test_a_slow_link_is_slow_both_ways_and_alone() -> None:
    topology = slowed(star(100, 100), ("gpu1", "switch0"), 4.0)
    rate = {(u, v): data["link"].bandwidth for u, v, data in topology.cell.edges(data=True)}
    assert rate["gpu1", "switch0"] == rate["switch0", "gpu1"] == 25 * MBIT
    assert rate["gpu0", "switch0"] == rate["switch0", "gpu0"] == 100 * MBIT


def test_no_such_link() -> None:
    with pytest.raises(InputError, match="no link joins these two"):
        slowed(star(100, 100), ("gpu1", "gpu0"), 2.0)


def test_a_flapping_link_has_the_rest_of_its_bandwidth() -> None:
    seen = FlappingLink(("gpu1", "switch0"), 0.02, 0.08).seen(star(100, 100))
    assert seen.cell.edges["gpu1", "switch0"]["link"].bandwidth == pytest.approx(75 * MBIT)


def test_the_ranks_are_told() -> None:
    case = Case("all_reduce", 2**20)
    assert LateRank(2, 0.1).asked(case).late == {2: 0.1}
    told = Jitter(Gamma(2.0, 0.03), how="spin", seed=5).asked(case).jitter
    assert told == {"law": "gamma", "parameters": {"shape": 2.0, "mean": 0.03}, "seed": 5, "how": "spin"}
    assert HEALTHY.asked(case) is case


def test_when_ranks_come() -> None:
    assert LateRank(1, 0.1).arrivals(3, 2, RNG).tolist() == [[0, 0], [0.1, 0.1], [0, 0]]
    drawn = Jitter(Gamma(2.0, 0.03)).arrivals(4, 4000, RNG)
    assert drawn.shape == (4, 4000)
    assert drawn.mean() == pytest.approx(0.03, rel=0.05)
    with pytest.raises(InputError, match="0 to 2 belong here"):
        LateRank(3, 0.1).arrivals(3, 1, RNG)
