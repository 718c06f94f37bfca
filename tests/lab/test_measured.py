"""Is what the model says what a real network delivers, healthy and with something wrong?

A prediction may be off by 10 %. What is not near enough at once is measured again, later and longer: a wrong model
stays wrong, a machine that somebody else slows down (a virtual one whose processors are lent out) does not.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from commsim.lab.experiment import Compared, Experiment, experiment, run
from commsim.lab.faults import FlappingLink, Jitter, LateRank, SlowLink, StoppedRank, written
from commsim.stragglers.laws import Gamma
from tests.lab.networks import needs_root, ring, star, two_level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.hardware.topology import Topology

MIB = 2**20
NEAR = 0.1
ATTEMPTS, PAUSE = 6, 10.0
OPS = ("all_reduce", "all_gather", "broadcast", "all_to_all")
pytestmark = [needs_root, pytest.mark.usefixtures("alone")]
NETWORKS = {
    "one switch": (star(*[150] * 6), SlowLink(("gpu1", "switch0"), 2.0)),
    "two levels, 4:1": (two_level(6, 150, 112.5), SlowLink(("leaf0", "spine0"), 2.0)),
    "unequal links": (star(150, 75, 150, 75, 150, 75), SlowLink(("gpu3", "switch0"), 2.0)),
}


def far(done: Iterable[Compared]) -> list[str]:
    return [
        f"{one.trial.asked.op.name} {written(one.trial.fault)}: {one.typical:.4f} s, {one.error:+.1%}"
        for one in done
        if abs(one.error) > NEAR
    ]


def repeated(wanted: Experiment) -> list[Compared]:
    """What was measured; what is far off, again. Each attempt stands by itself: one is taken whole or not at all."""
    done = list(run(wanted))
    for attempt in range(2, ATTEMPTS + 1):
        assert all(one.checked for one in done)
        ops = tuple(dict.fromkeys(one.trial.asked.op for one in done if abs(one.error) > NEAR))
        if not ops:
            break
        time.sleep((attempt - 2) * PAUSE)
        again = list(run(replace(wanted, ops=ops, iterations=attempt * wanted.iterations)))
        done = [one for one in done if one.trial.asked.op not in ops] + again
    return done


@pytest.mark.parametrize(("network", "slow"), NETWORKS.values(), ids=NETWORKS.keys())
def test_collectives(network: Topology, slow: SlowLink) -> None:
    done = repeated(experiment(network, OPS, [MIB], faults=(slow,), iterations=4))
    assert len(done) == 2 * len(OPS)
    assert not far(done)


def test_faults() -> None:
    wrong = (
        LateRank(2, 0.2),
        StoppedRank(1, 0.3),
        FlappingLink(("gpu0", "switch0"), 0.02, 0.06),
        Jitter(Gamma(2.0, 0.04)),
    )
    done = repeated(experiment(star(*[100] * 4), ["all_reduce"], [MIB], faults=wrong, iterations=8))
    assert not far(done)
    healthy, late, *_ = done
    assert late.typical - healthy.typical == pytest.approx(0.2, rel=NEAR)


def test_two_groups_at_once_on_rails_of_their_own() -> None:
    groups = ((0, 1, 2), (3, 4, 5))
    wanted = experiment(two_level(6, 100, 50), ["all_reduce", "all_gather"], [MIB], groups=groups, iterations=4)
    assert not far(repeated(wanted))


def test_ranks_that_forward_for_each_other() -> None:
    wanted = experiment(ring(5, 100), ["all_reduce", "broadcast", "reduce_scatter", "send_recv"], [MIB], iterations=4)
    assert not far(repeated(wanted))
