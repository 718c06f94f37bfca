"""How long do the forward and the backward pass of one layer take, and what sticks out of them?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from commsim.training.axes import AXES, Traffic
from commsim.training.overlap import Cover, exposed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.libraries.calibration import Case
    from commsim.libraries.library import Library, Timing
    from commsim.training.compute import Kernels
    from commsim.training.operations import Operation, Work
    from commsim.training.setting import Setting


@dataclass(frozen=True)
class Pass:
    """One pass of a layer, or of one end of the model, for one micro-batch: s of compute, s that each axis exposes."""

    compute: float
    cover: Cover
    exposed: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Compute and everything exposed."""
        return self.compute + sum(self.exposed.values())


@dataclass(frozen=True, eq=False)
class Said:
    """One collective of the estimate: what was said, by which group, and how long it takes."""

    traffic: Traffic
    timing: Timing
    kind: str

    @property
    def seconds(self) -> float:
        """Time of all its occurrences in one layer's pass."""
        return float(self.timing.seconds[0]) * self.traffic.count


@dataclass(frozen=True, eq=False)
class Machine:
    """What times compute and communication: kernels, a library, and the case (range end, what-if) that is asked."""

    kernels: Kernels
    library: Library
    case: Case

    def timed(self, setting: Setting, traffic: Traffic, kind: str) -> Said:
        """Return the traffic with its time on the machine of the setting."""
        layout = setting.plan.layout(traffic.group)
        sizes = np.array([traffic.size])
        timing = self.library.time(traffic.op, sizes, layout, setting.system.topology, case=self.case)
        return Said(traffic, timing, kind)

    def compute(self, work: Work, setting: Setting, formats: tuple[str, str]) -> tuple[Pass, Pass]:
        """Return forward and backward pass of a work without communication; backward repeats what is recomputed."""
        again = work.repeated(setting.recipe.recomputed)
        forward = self._cover(work.operations, formats, backward=False)
        gradients, repeated = self._cover(work.backward, formats, backward=True), self._cover(again, formats, backward=False)
        backward = Cover(*(g + r for g, r in zip(_parts(gradients), _parts(repeated), strict=True)))
        return Pass(forward.whole, forward), Pass(backward.whole, backward)

    def _cover(self, operations: Iterable[Operation], formats: tuple[str, str], *, backward: bool) -> Cover:
        spent: dict[str, float] = defaultdict(float)
        for one in operations:
            number_format = formats[0] if one.kind == "matmul" else formats[1]
            spent[one.kind] += float(self.kernels.seconds(one, number_format, backward=backward))
        return Cover(spent["matmul"], spent["attention"], sum(spent.values()))


def _parts(cover: Cover) -> tuple[float, float, float]:
    return cover.matmul, cover.attention, cover.whole


def said_in_layer(setting: Setting, machine: Machine, kind: str) -> list[Said]:
    """Return everything that one layer of that kind says along all axes of the plan, with its time."""
    found = []
    for axis in AXES.values():
        found += [machine.timed(setting, one, kind) for one in setting.plan.axis(axis).traffic(setting, kind)]
    return found


def of_layer(setting: Setting, machine: Machine, kind: str, said: Iterable[Said]) -> tuple[Pass, Pass]:
    """Return the forward and the backward pass of a layer with what its communication exposes.

    What shares a cover is hidden together: the cover is used once. Full recomputation says the forward part again.
    """
    recipe = setting.recipe
    forward, backward = machine.compute(setting.layers[kind], setting, (recipe.matmul_format, recipe.other_format))
    again = "layer" in recipe.recomputed
    spoken = list(said)
    ahead = [one for one in spoken if one.traffic.when == "forward"]
    back = [one for one in spoken if one.traffic.when == "backward"] + (ahead if again else [])
    return (
        Pass(forward.compute, forward.cover, _exposed(ahead, forward.cover)),
        Pass(backward.compute, backward.cover, _exposed(back, backward.cover)),
    )


def _exposed(said: Iterable[Said], cover: Cover) -> dict[str, float]:
    """What sticks out, by axis; axes that hide behind the same thing share it in the order in which they speak."""
    left = {what: cover.behind(what) for what in ("nothing", "matmul", "attention", "pass")}
    found: dict[str, float] = defaultdict(float)
    for one in said:
        behind = one.traffic.behind
        found[one.traffic.axis] += exposed(one.seconds, left[behind])
        used = min(one.seconds, left[behind])
        left = {what: max(0.0, seconds - used) if what in (behind, "pass") else seconds for what, seconds in left.items()}
    return dict(found)
