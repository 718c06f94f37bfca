"""Does an estimate say in words what each axis says?"""

from __future__ import annotations

import pytest

import commsim as cs
from commsim.errors import InputError


@pytest.fixture(scope="module")
def step() -> cs.Estimate:
    plan = cs.Plan(cs.Tensor(8), cs.Data(8))
    return cs.estimate(cs.model("llama3.1-8b"), plan, cs.load("hgx-h100", nodes=8), global_batch=64)


def test_a_line_a_collective(step: cs.Estimate) -> None:
    said = step.explain("tensor")
    lines = str(said).splitlines()
    assert len(lines) == len(said) == len([one for one in step.step.said if one.traffic.axis == "tensor"])
    assert all(f"{one.timing.ranks} ranks" in line for one, line in zip(said, lines))


def test_a_line_says_how_and_what_limits_it(step: cs.Estimate) -> None:
    """Weights of a layer go between nodes: the NIC is the narrowest way."""
    line = next(line for line in str(step.explain("data")).splitlines() if "all_gather" in line)
    assert "Ring" in line
    assert "limited by infiniband nic (" in line


def test_an_axis_that_says_nothing(step: cs.Estimate) -> None:
    with pytest.raises(InputError, match="one of: tensor, data"):
        step.explain("context")


def test_printed_an_estimate_is_a_summary(step: cs.Estimate) -> None:
    assert [
        word
        for word in ("llama3.1-8b on 64 GPUs of hgx-h100", "MFU", "tensor exposed", "fits")
        if word not in str(step)
    ] == []
