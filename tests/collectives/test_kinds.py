"""Are sizes and bus factors those of nccl-tests, and are names understood?"""

from __future__ import annotations

import pytest

from commsim.collectives.kinds import COLLECTIVES, collective
from commsim.errors import InputError

BUS_FACTORS = {  # nccl-tests, doc/PERFORMANCE.md, for 8 ranks
    "all_reduce": 2 * 7 / 8,
    "all_gather": 7 / 8,
    "reduce_scatter": 7 / 8,
    "all_to_all": 7 / 8,
    "broadcast": 1.0,
    "reduce": 1.0,
    "send_recv": 1.0,
}


def test_every_operation_has_its_bus_factor() -> None:
    assert {name: op.factor(8) for name, op in COLLECTIVES.items()} == pytest.approx(BUS_FACTORS)


@pytest.mark.parametrize(
    ("name", "op"), [("AllReduce", "all_reduce"), ("all-to-all", "all_to_all"), ("sendrecv", "send_recv")]
)
def test_names_are_read_as_they_are_written_elsewhere(name: str, op: str) -> None:
    assert collective(name) is COLLECTIVES[op]


def test_an_unknown_operation_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"operation: 'all_redcue'; no such collective; did you mean 'all_reduce'\?"):
        collective("all_redcue")
