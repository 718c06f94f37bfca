"""Does the model say what must follow from who is late and what is slow?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, REDUCE, REDUCE_SCATTER, SEND_RECV
from commsim.errors import InputError
from commsim.lab.faults import HEALTHY, Jitter, LateRank, SlowLink, StoppedRank
from commsim.lab.prediction import Asked, in_lab, layout_of, predicted
from commsim.stragglers.laws import Gamma
from tests.lab.networks import MBIT, star

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective

OPS = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, ALL_TO_ALL, SEND_RECV)
LIBRARY = in_lab(4)
MIB = 2**20
FOUR = star(100, 100, 100, 100)


def asked(op: Collective, size: float = MIB) -> Asked:
    return Asked(op, size, FOUR)


@pytest.mark.parametrize("op", [ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND_RECV])
def test_a_late_rank_delays_rings_by_all_that_it_is_late(op: Collective) -> None:
    healthy = predicted(asked(op), HEALTHY, LIBRARY).typical
    late = predicted(asked(op), LateRank(2, 0.3), LIBRARY).typical
    assert late == pytest.approx(healthy + 0.3)


def test_a_leaf_that_is_late_does_not_delay_a_broadcast_that_waits_for_others() -> None:
    healthy = predicted(asked(BROADCAST), HEALTHY, LIBRARY).typical
    soon = predicted(asked(BROADCAST), LateRank(3, 0.05), LIBRARY).typical
    assert soon == pytest.approx(healthy)
    after = predicted(asked(BROADCAST), LateRank(3, 1.0), LIBRARY).typical
    assert 1.0 + MIB / (100 * MBIT) < after < 1.0 + healthy


def test_who_is_last_to_an_all_to_all_sends_and_receives_alone() -> None:
    late = predicted(asked(ALL_TO_ALL), LateRank(1, 1.0), LIBRARY).typical - 1.0
    least = 3 / 4 * MIB / (100 * MBIT)
    assert least < late < 2 * least


@pytest.mark.parametrize("op", OPS)
def test_a_slow_link_never_helps(op: Collective) -> None:
    slow = predicted(asked(op), SlowLink(("gpu1", "switch0"), 2.0), LIBRARY).typical
    assert slow >= predicted(asked(op), HEALTHY, LIBRARY).typical


def test_a_ring_is_as_fast_as_its_slowest_link() -> None:
    large = 64 * MIB
    healthy = predicted(asked(ALL_REDUCE, large), HEALTHY, LIBRARY).typical
    slow = predicted(asked(ALL_REDUCE, large), SlowLink(("gpu1", "switch0"), 2.0), LIBRARY).typical
    assert slow / healthy == pytest.approx(2.0, rel=0.01)


def test_a_stopped_rank_holds_up_those_who_wait_for_it() -> None:
    stopped = StoppedRank(1, 0.5)
    healthy = predicted(asked(ALL_REDUCE), HEALTHY, LIBRARY).typical
    assert predicted(asked(ALL_REDUCE), stopped, LIBRARY).typical == pytest.approx(healthy + 0.5)
    with pytest.raises(InputError, match="all wait for all"):
        predicted(asked(BROADCAST), stopped, LIBRARY)


def test_jitter_delays_by_the_last_of_all_in_the_mean() -> None:
    law = Gamma(2.0, 0.05)
    drawn = predicted(asked(ALL_REDUCE), Jitter(law), LIBRARY).seconds
    healthy = predicted(asked(ALL_REDUCE), HEALTHY, LIBRARY).typical
    came = law.sample(np.random.default_rng(1), (4, 20_000))
    assert drawn.mean() == pytest.approx(healthy + (came.max(axis=0) - came.min(axis=0)).mean(), rel=0.05)


def test_groups_as_layouts() -> None:
    layout = layout_of(((0, 2, 4), (1, 3, 5)))
    assert layout.ranks().tolist() == [[0, 2, 4], [1, 3, 5]]
    assert layout_of(((4, 1, 2),)).ranks().tolist() == [[4, 1, 2]]
    for groups in (((0, 2, 4), (1, 3, 6)), ((1, 3), (2, 4)), ((0, 1), (5, 4))):
        with pytest.raises(InputError, match="groups such as"):
            layout_of(groups)


def test_ranks_that_share_processors_take_longer_for_a_message() -> None:
    cores = len(os.sched_getaffinity(0))
    alone, crowd = in_lab(1).figures, in_lab(4 * cores).figures
    assert crowd.message == pytest.approx(4 * alone.message)
    assert crowd.framing == 14
