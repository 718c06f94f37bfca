"""Can everything that a machine, a plan and a recipe know be said on the command line?"""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from commsim.cli import job, options
from commsim.errors import InputError
from commsim.hardware.changes import Changes
from commsim.libraries.gloo import Gloo, gloo_figures
from commsim.libraries.ideal import Ideal
from commsim.libraries.nccl import Nccl
from commsim.training.axes import Data, Pipeline
from commsim.training.plan import Plan
from commsim.training.recipe import Recipe


def test_every_change_of_a_machine_is_an_option() -> None:
    assert {field.name for field in dataclasses.fields(Changes)} == {*inspect.signature(options.machine).parameters} - {
        "system"
    }


def test_every_choice_of_a_recipe_is_an_option_and_what_is_not_given_is_left_to_it() -> None:
    said = {name: one.default for name, one in inspect.signature(job.recipe).parameters.items()}
    assert {*said} == {field.name for field in dataclasses.fields(Recipe)}
    assert {*said.values()} == {None}
    assert job.recipe() == {}
    assert job.recipe(global_batch=8, overlap_data=False) == {"global_batch": 8, "overlap_data": False}


def test_a_plan_from_options() -> None:
    made = job.plan("pipeline=4,data=8", virtual_stages=2, zero=3, shard=4)
    assert made == Plan(Pipeline(4, virtual=2), Data(8, zero=3, shard=4))


def test_a_library_from_options() -> None:
    """NVSwitches reduce unless they are told not to, network switches only if they are; nothing said is no library."""
    assert options.library() is None
    assert options.library("nccl") == options.library(sharp=False) == Nccl()
    assert options.library(nvls=False) == Nccl(nvls=False)
    assert options.library("nccl", nvls=True, sharp=True) == Nccl(collnet=True)
    assert options.library("ideal") == Ideal()


def test_gloo_takes_other_figures_and_nothing_else() -> None:
    assert options.library("gloo", calibrated="gloo") == options.library("gloo") == Gloo(figures=gloo_figures("gloo"))
    with pytest.raises(InputError, match="nvls: False; the library 'gloo' has one way"):
        options.library("gloo", nvls=False)


def test_an_empty_word_is_no_part_of_a_machine() -> None:
    with pytest.raises(InputError, match="fabric: ''; a name or a quantity belongs here"):
        options.machine("hgx-h100", fabric="")


def test_commands_get_what_they_ask_for() -> None:
    def maker(size: int = 2, colour: str = "red") -> str:
        return f"{size} {colour}"

    def command(first: int, made: str, last: bool = False) -> None:  # noqa: FBT001, FBT002 - as a command writes it
        seen.append((first, made, last))

    seen: list[tuple[int, str, bool]] = []
    both = options.takes(made=maker)(command)
    both(first=1, size=3, colour="blue", last=True)
    assert list(inspect.signature(both).parameters) == ["first", "size", "colour", "last"]
    assert seen == [(1, "3 blue", True)]
