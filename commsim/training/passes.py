"""How long do the forward and the backward pass of one piece take, and what sticks out of them?"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from commsim.collectives.kinds import SEND_RECV
from commsim.training.overlap import Cover
from commsim.units import Seconds, show, show_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from commsim.collectives.layout import Layout
    from commsim.libraries.calibration import Case
    from commsim.libraries.library import Library, Timing
    from commsim.training.axes import Traffic
    from commsim.training.compute import Kernels
    from commsim.training.operations import Array, Operation
    from commsim.training.pieces import Piece
    from commsim.training.setting import Setting


Timed = tuple["Operation", "Array"]
HOST = 3.1e-3
"""What a host needs to launch the forward pass of a dropless layer with experts, s; backward twice that. It cannot run
ahead, as it waits for the counts of tokens. Fitted on public runs on H100; those on GB200 whose GPUs have less to do
take as long, and less when the whole step is one CUDA graph (Megatron-Bridge's performance summary)."""
ASSEMBLY = 20e-6
"""What a collective takes before it starts, s: it waits for compute, is launched, and the last of its ranks arrives.
Fitted on public step times of A100 and H100, range 10 to 40 us; back to back, as benchmarks run them, there is none."""


class Spoken(Protocol):
    """What a pass needs to know of a collective."""

    @property
    def traffic(self) -> Traffic:
        """What is said."""
        ...

    @property
    def seconds(self) -> Array:
        """Time of all its occurrences in one pass of the piece."""
        ...


@dataclass(frozen=True)
class Pass:
    """One pass of a piece for one micro-batch, s: its compute, what each axis exposes, and what is still to hide.

    Each is a number, or an array with one entry a plan.

    `later` is what each axis says behind everything that the chunk computes, `free` the compute that hides nothing yet,
    `weights` the part of the compute that only gives the gradients of weights.
    """

    compute: Array
    free: Array
    exposed: Mapping[str, Array]
    later: Mapping[str, Array]
    weights: Array = 0.0


@dataclass(frozen=True, eq=False)
class Said:
    """One collective of the estimate: what was said, by which group and piece (`kind`), and how long it takes.

    `assembly` is what its ranks need to meet before it starts, s.
    """

    traffic: Traffic
    timing: Timing
    kind: str
    assembly: Seconds = 0.0

    @cached_property
    def seconds(self) -> Array:
        """Time of all its occurrences in one pass of the piece: a number, or an array where its size is one."""
        each = self.timing.seconds if np.ndim(self.traffic.size) else float(self.timing.seconds[0])
        return (each + self.assembly) * self.traffic.count

    def __str__(self) -> str:
        """What is said and how, on one line."""
        traffic, choice = self.traffic, self.timing.choice(0)
        what = f"{traffic.count:g} x {traffic.op.name} of {show_size(float(traffic.size))}, {self.timing.ranks} ranks"
        each = f"{show(float(self.timing.seconds[0]), 's', 3)} each"
        hidden = "exposed" if traffic.behind == "nothing" else f"behind {traffic.behind}"
        how = f"{choice.algorithm} {choice.protocol}, limited by {choice.limit(0)}; {hidden}"
        return f"{self.kind} {traffic.when}: {what}: {each}, {how}".strip()


class Explanation(tuple[Said, ...]):
    """What is said along an axis; printed, one line each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))


@dataclass(frozen=True, eq=False)
class Machine:
    """What times compute and communication: kernels, a library, and the case (range end, what-if) that is asked.

    It serves the settings of one system, whose collectives it remembers. `assembly` is what the ranks of a collective
    need to meet, s; messages of a pipeline wait for each other in its schedule.
    """

    kernels: Kernels
    library: Library
    case: Case
    assembly: Seconds = ASSEMBLY

    @cached_property
    def _known(self) -> dict[tuple[str, Layout, bytes], Timing]:
        """Pieces and passes say much alike: each collective is timed once."""
        return {}

    def timed(self, setting: Setting, traffic: Traffic, kind: str) -> Said:
        """Return the traffic with its time on the machine of the setting."""
        layout = setting.plan.layout(traffic.group)
        sizes, topology = np.atleast_1d(np.asarray(traffic.size, dtype=float)), setting.system.topology
        asked = traffic.op.name, layout, sizes.tobytes()
        if asked not in self._known:
            self._known[asked] = self.library.time(traffic.op, sizes, layout, topology, case=self.case)
        return Said(traffic, self._known[asked], kind, 0.0 if traffic.op is SEND_RECV else self.assembly)

    def said(self, setting: Setting, piece: Piece) -> tuple[Said, ...]:
        """Return everything that a piece says along all axes of the plan, with its time."""
        return tuple(self.timed(setting, one, piece.name) for one in setting.traffic(piece))

    def seconds(self, operation: Operation, piece: Piece, *, backward: bool = False) -> Array:
        """Return the time of an operation of the piece, s."""
        number_format = piece.formats[operation.kind != "matmul"]
        return self.kernels.seconds(operation, number_format, backward=backward)


def passes(machine: Machine, piece: Piece, said: Iterable[Spoken]) -> tuple[Pass, Pass]:
    """Return the forward and the backward pass of a piece, with what its communication exposes.

    The backward pass first repeats what is recomputed, communication included.
    """
    spoken = list(said)
    forward = [(one, machine.seconds(one, piece)) for one in piece.work.operations]
    again = [(one, share * seconds) for (one, seconds), share in zip(forward, piece.again) if share]
    gradients = [(one, machine.seconds(one, piece, backward=True)) for one in piece.work.backward]
    ahead = [one for one in spoken if one.traffic.when == "forward"]
    repeated = [one for one in ahead if one.traffic.repeated]
    back = [one for one in spoken if one.traffic.when == "backward"]
    return (
        _pass(forward, ahead, HOST * piece.waits),
        _pass([*again, *gradients], [*repeated, *back], 2 * HOST * piece.waits),
    )


def _pass(timed: list[Timed], said: list[Spoken], host: float) -> Pass:
    """What hides behind the whole chunk is left for later; the rest hides here, in the order in which axes speak.

    A pass that the host launches piece by piece takes as long as the host needs at least.
    """
    whole = sum((seconds for _, seconds in timed), 0.0)
    cover = Cover(
        {
            "columns": _sum(timed, _of_columns),
            "matmul": _sum(timed, _matmul),
            "attention": _sum(timed, _attention),
            "pass": whole,
        }
    )
    exposed, later = defaultdict[str, "Array"](float), defaultdict[str, "Array"](float)
    for one in said:
        if one.traffic.behind == "pass":
            later[one.traffic.axis] = later[one.traffic.axis] + one.seconds
        else:
            adds = cover.exposed(one.seconds, one.traffic.behind)
            exposed[one.traffic.axis] = exposed[one.traffic.axis] + adds
    idle = np.maximum(host - whole - sum(exposed.values(), 0.0), 0.0) if host else 0.0
    return Pass(whole + idle, cover.left["pass"] + idle, exposed, later, _sum(timed, _of_weights))


def _sum(timed: list[Timed], of: Callable[[Operation], bool]) -> Array:
    return sum((seconds for one, seconds in timed if of(one)), 0.0)


def _matmul(one: Operation) -> bool:
    return one.kind == "matmul"


def _attention(one: Operation) -> bool:
    return one.kind == "attention"


def _of_columns(one: Operation) -> bool:
    """The two gradient matmuls of a matrix whose columns are split."""
    return one.kind == "matmul" and one.split == "columns" and one.name.endswith("gradient")


def _of_weights(one: Operation) -> bool:
    """The gradient of a weight, which nobody waits for; unfused attention multiplies no weights."""
    return one.kind == "matmul" and one.split != "heads" and one.name.endswith("weight gradient")
