"""Does an estimate name the document behind each figure?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import commsim as cs
from commsim.hardware.shelf import names, sources
from commsim.training.axes import Data, Tensor
from commsim.training.compute import kernels
from commsim.training.configs.well_known import model
from commsim.training.estimate import Estimate, estimate
from commsim.training.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator


def step(system: str = "hgx-h100", precision: str = "bf16", attention: str | None = None) -> Estimate:
    machine = cs.load(system)
    plan, recipe = Plan(Tensor(1), Data(machine.gpus)), {"precision": precision, "attention": attention}
    return estimate(model("llama3.1-8b"), plan, machine, library=None, global_batch=machine.gpus, **recipe)


def estimable() -> Iterator[str]:
    for name in names():
        machine = cs.load(name)
        if machine.gpus > 1 and not machine.template and machine.accelerator.architecture != "groq":
            yield name


@pytest.mark.parametrize("name", list(estimable()))
def test_every_document_is_known_by_its_title(name: str) -> None:
    found = step(name, precision="fp16").sources()
    known = sources()
    shorts = {short for one in found[1:-1] for short in one.documents}
    assert shorts - set(known) == set()
    assert {short: found.documents[short] for short in shorts} == {short: known[short].title for short in shorts}


def test_figures_are_those_of_the_machine() -> None:
    said = {one.what: one.value for one in step().sources()}
    assert said["nvlink4 bandwidth"] == "25 GB/s"
    assert said["h100-sxm bf16 dense peak"] == "989 TFLOP/s"


def test_only_links_that_carry_something_are_cited() -> None:
    assert [one.what for one in step().sources() if one.what.startswith("upi")] == []


def test_the_model_and_the_library_are_cited() -> None:
    first, *_, last = step().sources()
    assert "Llama Team 2024" in first.documents[0]
    assert (last.what, last.value) == ("library", "nccl")


def test_attention_that_does_not_run_is_not_cited() -> None:
    cited = [one.what for one in step(attention="unfused").sources()]
    assert [what for what in cited if "attention" in what] == []


def test_printed_it_is_a_line_a_figure() -> None:
    found = step().sources()
    lines = str(found).splitlines()
    assert lines[1].startswith("h100-sxm bf16 dense peak: 989 TFLOP/s, announced [")
    assert len(lines) == len(found) + sum(title != "" for title in found.documents.values())


def test_the_kernels_cited_are_the_kernels_used() -> None:
    used = kernels(cs.load("hgx-h100").accelerator, kernel="flash2").attention
    said = {one.what: float(one.value) for one in step(attention="flash2").sources() if "attention" in one.what}
    assert said == {
        "hopper attention forward over peak": used.forward,
        "hopper attention backward over peak": used.backward,
    }
