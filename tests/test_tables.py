"""Do values become rows that say their units, and keep their numbers?"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import commsim as cs
from commsim.errors import InputError
from commsim.hardware.shelf import names
from commsim.libraries.sweep import Sweep, sweep
from commsim.tables.collectives import candidates
from commsim.tables.estimates import memory_parts, time_parts
from commsim.tables.records import records, to_frame
from commsim.training.axes import Data, Tensor
from commsim.training.configs.well_known import model
from commsim.training.estimate import Estimate, estimate
from commsim.training.plan import Plan

if TYPE_CHECKING:
    from commsim.hardware.topology import Topology


@pytest.fixture(scope="module")
def step() -> Estimate:
    plan = Plan(Tensor(2), Data(4))
    return estimate(model("llama3.1-8b"), plan, cs.load("hgx-h100"), global_batch=8)


@pytest.fixture(scope="module")
def swept() -> Sweep:
    return sweep("all_reduce", cs.load("hgx-h100"), "1K..1G")


def test_a_frame_has_the_numbers_of_the_value(swept: Sweep) -> None:
    frame = to_frame(swept)
    assert frame["time_s"].to_list() == swept.timing.seconds.tolist()
    assert frame["busbw_bytes_per_s"].to_list() == pytest.approx(swept.timing.busbw.tolist())
    assert frame["size_bytes"].to_list() == [2**power for power in range(10, 31)]


def test_what_is_nested_becomes_columns(step: Estimate) -> None:
    frame = to_frame(step)
    assert frame.loc[0, "breakdown.compute_s"] == step.step.compute
    assert frame.loc[0, "step_time_s"] == step.step_time


def test_several_values_are_several_rows() -> None:
    machines = [cs.load("hgx-h100"), cs.load("gb200-nvl72")]
    assert to_frame(machines)["gpus"].to_list() == [8, 72]
    assert to_frame([]).empty


def test_rows_of_a_mapping_are_itself() -> None:
    assert records({"a_s": 1.0}) == [{"a_s": 1.0}]


@pytest.mark.parametrize("value", [1.0, "hgx-h100", None, [object()]])
def test_what_has_no_rows_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="belong"):
        records(value)


def test_every_row_is_json(step: Estimate, swept: Sweep) -> None:
    machine = cs.load("rubin-ultra-nvl576")
    values = [swept, step, step.explain("tensor"), machine, machine.accelerator, machine.topology, swept.timing]
    rows = [row for value in values for row in records(value)] + candidates(swept)
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


@pytest.mark.parametrize("name", names())
def test_cables_are_those_of_the_whole_graph(name: str) -> None:
    """Counted by arithmetic and drawn one by one: an edge in each direction is one cable."""
    topology = cs.load(name).topology
    assert {row["kind"]: row["count"] for row in records(topology)} == _drawn(topology)


@pytest.mark.parametrize(("name", "nodes"), [("hgx-h100", 3), ("gb200-nvl72", 20), ("rubin-ultra-nvl576", 150)])
def test_cables_of_machines_that_do_not_fill_their_tiers(name: str, nodes: int) -> None:
    topology = cs.load(name, nodes=nodes).topology
    assert {row["kind"]: row["count"] for row in records(topology)} == _drawn(topology)


def test_candidates_are_named_once_and_the_quickest_is_first(swept: Sweep) -> None:
    rows = [row for row in candidates(swept) if row["size_bytes"] == 2**20]
    assert len({(row["algorithm"], row["protocol"]) for row in rows}) == len(rows)
    assert rows == sorted(rows, key=lambda row: row["time_s"])
    assert [row["time_s"] for row in rows if row["chosen"]] == [swept.timing.seconds[10]]


def test_parts_make_the_whole(step: Estimate) -> None:
    assert sum(time_parts(step.step).values()) == pytest.approx(step.step_time)
    assert sum(memory_parts(step.memory).values()) == pytest.approx(step.memory.total)


def _drawn(topology: Topology) -> dict[str, int]:
    cables: Counter[str] = Counter()
    for _, _, data in topology.graph().edges(data=True):
        cables[data["link"].kind] += data["count"]
    return {kind: round(count / 2) for kind, count in cables.items() if count}
