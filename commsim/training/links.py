"""How long is a message between two stages of a pipeline under way?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.collectives.layout import Layout
from commsim.collectives.remembered import remembered
from commsim.training.axes import Pipeline

if TYPE_CHECKING:
    from commsim.training.passes import Machine, Said
    from commsim.training.setting import Setting

Floats = NDArray[np.float64]


def links(setting: Setting, machine: Machine) -> tuple[tuple[Said, ...], Floats]:
    """Return the message over the slowest link, and the seconds of one from each stage to the next, [stage, plan].

    There are as many plans as sizes of the message. The last stage's goes to the first. Links inside a scale-up domain
    are timed apart from those that leave it; without a pipeline there is no message.
    """
    plan = setting.plan
    if plan.pipeline == 1:
        return (), np.zeros((1, 1))
    message = machine.timed(setting, plan.axis(Pipeline).message(setting), "")
    question = "links", machine, plan.layout("pipeline"), message.timing.sizes.tobytes()
    return (message,), remembered(setting.system.topology, question, lambda: _links(setting, machine, message))


def _links(setting: Setting, machine: Machine, message: Said) -> Floats:
    """The seconds of a message from each stage to the next, [stage, plan]."""
    layout, topology, inside = setting.plan.layout("pipeline"), setting.system.topology, _inside(setting)
    seconds = np.repeat(np.atleast_1d(message.seconds)[None], setting.plan.pipeline, axis=0)
    if inside[0] and not inside.all():
        (_, stride), *_ = layout.members
        pair = Layout(((2, stride),), layout.copies)
        sizes = message.timing.sizes
        seconds[inside] = machine.library.time(message.traffic.op, sizes, pair, topology, case=machine.case).seconds
    return seconds


def _inside(setting: Setting) -> NDArray[np.bool_]:
    """Whether the link from each stage to the next stays inside the scale-up domain, in all copies of the pipeline."""
    domains = setting.plan.layout("pipeline").ranks() // setting.system.topology.domain_size
    stays: NDArray[np.bool_] = (domains == np.roll(domains, -1, axis=1)).all(axis=0)
    return stays
