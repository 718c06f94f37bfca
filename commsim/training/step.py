"""Of what is the step of one setting made: what many plans share, each worked out once, and the course of its pipeline?

The terms of a step depend on few of a plan's choices each: the profile on how a micro-batch is cut, the sync on who
holds the same weights, the delays on where the stages lie. They are remembered with the machine; `search` works them
out for many plans at once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from commsim.collectives.remembered import remembered
from commsim.libraries.calibration import NOMINAL, Case
from commsim.training.axes import Data
from commsim.training.compute import kernels
from commsim.training.links import links
from commsim.training.memory import buffers
from commsim.training.passes import Machine, passes
from commsim.training.pipeline.course import Course
from commsim.training.profile import Profile, profile
from commsim.training.steps import Step, Steps
from commsim.training.sync import Sync, sync

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from commsim.libraries.library import Library
    from commsim.training.axes import Traffic
    from commsim.training.passes import Said
    from commsim.training.pipeline import Program
    from commsim.training.setting import Setting

Spoken = tuple[tuple["Said", ...], ...]
"""What each piece says."""
Term = TypeVar("Term")


def machine_of(setting: Setting, library: Library, case: Case = NOMINAL) -> Machine:
    """Return what times a setting in a case; remembered, so that settings on one system share what it has timed."""
    recipe, system = setting.recipe, setting.system
    question = "machine", library, case, setting.kernel, recipe.cuda_graphs, recipe.efficiency

    def made() -> Machine:
        tuned = kernels(
            system.accelerator, case, kernel=setting.kernel, cuda_graphs=recipe.cuda_graphs, compiled=recipe.compiled
        )
        return Machine(tuned.slowed(system.gpus).at(recipe.efficiency), library, case)

    return remembered(system.topology, question, made) if _hashable(library) else made()


def step(setting: Setting, machine: Machine) -> Step:
    """Return the step on a machine: the pipeline solved with its real stage times, and what comes once a step."""
    return steps(setting, machine).step(said=said(setting, machine))


def steps(setting: Setting, machine: Machine) -> Steps:
    """Return the same as the one plan of an array of them."""
    message, delays = links(setting, machine)
    return Steps(
        course_of(setting),
        setting.chunks,
        setting.recipe,
        profile_of(setting, machine),
        sync_of(setting, machine),
        delays,
        np.atleast_1d(buffers(one.traffic for one in message)),
        machine.kernels.memory,
    )


def said(setting: Setting, machine: Machine) -> tuple[Said, ...]:
    """Return everything that is said in a step, with its time."""
    message, _ = links(setting, machine)
    return (*(one for piece in setting.chunks.pieces for one in machine.said(setting, piece)), *message)


def course_of(setting: Setting, communication: str = "") -> Course:
    """Return what the pipeline runs: its schedule, and how its stages communicate.

    Without overlap a message occupies both stages in 1F1B, and its sender in other schedules. 1F1B does not overlap
    unless the recipe says so, the others do (Megatron-LM's choices). A lone stage takes one micro-batch after the
    other, so its course has one.
    """
    plan, one_by_one = setting.plan, setting.schedule == "1f1b"
    asked = setting.recipe.overlap_pipeline
    waiting = "rendezvous" if one_by_one else "blocking"
    how = communication or (waiting if (one_by_one if asked is None else not asked) else "asynchronous")
    times = setting.microbatches if one_by_one and plan.pipeline == 1 else 1
    return Course(setting.schedule, plan.pipeline, setting.microbatches // times, plan.virtual, how, times)


def program_of(setting: Setting, communication: str = "") -> Program:
    """Return the pipeline's program (see `course_of`)."""
    return course_of(setting, communication).program


def profile_of(setting: Setting, machine: Machine) -> Profile:
    """Return what the rank does with a micro-batch; remembered."""
    return _remembered(setting, machine, ("profile", *setting.cut, *_layouts(setting, _CUT)), _profile)


def sync_of(setting: Setting, machine: Machine) -> Sync:
    """Return what those say that hold the same weights; remembered."""
    plan, axis = setting.plan, setting.plan.axis(Data)
    shared = setting.cut, axis.zero, axis.shard, plan.pipeline if setting.recipe.recompute_layers else 0
    return _remembered(setting, machine, ("sync", *shared, *_layouts(setting, _SYNC)), _sync)


_CUT = ("tensor", "context", "expert", "expert tensor")
_SYNC = "ends", *(f"{kind}data{of}" for kind in ("", "expert ") for of in ("", " shard", " replicas"))


def _layouts(setting: Setting, groups: tuple[str, ...]) -> tuple[Hashable, ...]:
    return tuple(setting.plan.layout(group) for group in groups)


def _remembered(
    setting: Setting, machine: Machine, question: tuple[Hashable, ...], answer: Callable[[Setting, Machine], Term]
) -> Term:
    return remembered(setting.system.topology, (machine, *question), partial(answer, setting, machine))


def _profile(setting: Setting, machine: Machine) -> Profile:
    pieces = setting.chunks.pieces
    spoken = [[one for one in machine.said(setting, piece) if not of_weights(one.traffic)] for piece in pieces]
    both = [passes(machine, piece, heard) for piece, heard in zip(pieces, spoken)]
    return profile(pieces, both, buffers(one.traffic for some in spoken for one in some))


def _sync(setting: Setting, machine: Machine) -> Sync:
    pieces = setting.chunks.pieces
    spoken = [[one for one in machine.said(setting, piece) if of_weights(one.traffic)] for piece in pieces]
    heard = buffers(one.traffic for some in spoken for one in some)
    return sync(machine, setting.plan, pieces, spoken, heard)


def of_weights(traffic: Traffic) -> bool:
    """Whether it is about weights that several ranks hold."""
    return traffic.axis == "data" or traffic.when == "step"


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
