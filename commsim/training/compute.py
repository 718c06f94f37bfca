"""How long does a kernel take?

Each operation stands on the roofline (Williams et al. 2009): FLOPs at the rate that its shape allows, bytes at the rate
of the memory, and never less than a kernel launch. Everything takes arrays, one entry a plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping  # noqa: TC003 - the reader of YAML needs it when it runs
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.figures import at
from commsim.libraries.calibration import NOMINAL, Case
from commsim.reading import load_yaml, read
from commsim.shipped import folder
from commsim.units import FlopsPerSecond, Seconds, Share, Watts

if TYPE_CHECKING:
    from commsim.figures import Corner
    from commsim.hardware.system import Accelerator
    from commsim.training.operations import Array, Operation

NARROW = ("fp8", "nvfp4", "fp4")
DEEP = 128.0
"""Elements of k that prologue and epilogue of a tile cost: it loads and stores while the matrix units wait."""
FEW_KEYS = 300.0
"""Keys a query sees at which an attention kernel reaches half of its rate: short rows leave blocks of the causal mask
half empty (Shah et al. 2024, figure 5, causal, head 128: 450, 530, 600, 640 TFLOP/s at 2, 4, 8, 16 thousand tokens)."""
CAST_BYTES = {"fp8": 4.0, "nvfp4": 5.125, "fp4": 5.125}
"""Bytes moved for each element that is cast: bf16 is read, the value and its transpose are written (NVIDIA Transformer
Engine user guide, "FP8 primer": a matmul of the backward pass needs the transposed operand). NVFP4 first reads all for
the scale of the tensor, and writes the fp8 scale of each 16 as well (NVIDIA, Pretraining LLMs with NVFP4, 2025)."""
POWER = 0.8
"""How the sustained rate of matrix units follows the power that there is for each FLOP/s of peak: rate ~ power^POWER.
Where clocks and voltage fall together power goes with their cube and rate with power^1/3, where only clocks fall rate
goes with power. Fitted on public step times of H100 at 500 and 700 W, range 0.6 to 0.9."""
NARROW_POWER = 0.82
"""Power that matrix units draw at their peak in narrow formats, of that in bf16. Fitted on public step times of B200
and GB200 in fp8, range 0.75 to 0.9 (an H100 has power to spare for them)."""
COMPILED = 0.73
"""Share of what streams reach of the memory that kernels reach which a compiler fuses: 1.5 TB/s on an H100 of 2.4 TB/s,
whose streams reach 2.06 (a cast with its transpose in one kernel of Inductor: pytorch/pytorch issue 133242). No small
kernels stand beside them, which `passing` stands for."""
START = 7.5e-6
"""What a kernel that only moves bytes takes besides, s: its blocks start and end unevenly, and small kernels stand
beside it. Fitted on public step times of A100 and H100, range 3 to 15 us."""
SPREAD = 0.02
"""Standard deviation of the rates of GPUs of one kind under one power limit (Sinha et al. 2022: 0.017 to 0.028 in
matmuls and ResNet training on V100, A100 and RTX 5000, 0.0004 where memory limits)."""
_LAUNCH, _GRAPH = 2.5e-6, 1.3e-6
"""Kernels back to back, in a stream and in a CUDA graph (te42kyfo/gpu-benches, H200): where no figure is given."""
_LIKE = {"turing": "volta", "lovelace": "ada", "rubin-ultra": "rubin", "blackwell-ultra": "blackwell"}


@dataclass(frozen=True)
class AttentionFigures:
    """The share of the dense peak that an attention kernel reaches, forward and backward."""

    forward: Share
    backward: Share


@dataclass(frozen=True)
class KernelFigures:
    """What `topologies/kernels.yaml` says of an architecture; attention and sustained are shares (see there).

    `density` is the power for each PFLOP/s of dense bf16 peak at which `sustained` is kept up.
    """

    tiles: tuple[tuple[float, ...], ...]
    sustained: Share
    passing: Share
    attention: Mapping[str, AttentionFigures]
    density: Watts | None = None

    def kernel(self, generation: str | None) -> AttentionFigures:
        """Return the attention kernel of that generation (None: the newest); InputError when there is none."""
        if generation is not None and generation not in self.attention:
            raise InputError("attention", generation, "this architecture has no such kernel", among=self.attention)
        return self.attention[generation or list(self.attention)[-1]]


@dataclass(frozen=True)
class Kernels:
    """What one accelerator's kernels reach.

    `rates` are what matrix units sustain at the best shape and `peaks` the datasheet's, by number format. `stream` is
    what a plain copy reaches of the memory, B/s, `memory` what kernels between matmuls do. `tiles` are (rows, columns,
    share of the rate), `attention` shares of the peak.
    """

    rates: dict[str, FlopsPerSecond]
    peaks: dict[str, FlopsPerSecond]
    memory: float
    stream: float
    multiprocessors: int
    tiles: tuple[tuple[float, ...], ...]
    attention: AttentionFigures
    launch: Seconds = _LAUNCH

    def seconds(self, operation: Operation, number_format: str, *, backward: bool = False) -> Array:
        """Return the time of an operation in that number format of its matmuls, s."""
        if operation.kind == "matmul":
            once = np.maximum((operation.bytes - operation.accumulated) / self.stream, self.launch)
            product = np.maximum(self._matmul(operation, number_format), once)
            return product + operation.accumulated / self.stream + self._cast(operation, number_format)
        if operation.kind == "attention":
            share = self.attention.backward if backward else self.attention.forward
            busy = operation.flops / (self._peak(number_format) * share) * (1 + FEW_KEYS / operation.n)
            return np.maximum(busy, self._moved(operation.bytes)) + operation.accumulated / self.memory
        return self._moved(operation.bytes)

    def slowed(self, gpus: int) -> Kernels:
        """Return the kernels of the slowest of so many GPUs, for which all others wait; memory is alike everywhere."""
        return self._with_rates(1 / (1 + SPREAD * slowest(gpus)), 1.0)

    def at(self, efficiency: float) -> Kernels:
        """Return the kernels of a trainer that reaches that share of all rates."""
        return self._with_rates(efficiency, efficiency)

    def _with_rates(self, compute: float, memory: float) -> Kernels:
        rates, peaks = ({key: rate * compute for key, rate in each.items()} for each in (self.rates, self.peaks))
        return replace(self, rates=rates, peaks=peaks, memory=self.memory * memory, stream=self.stream * memory)

    def _moved(self, size: Array) -> Array:
        """The time of a kernel that only moves bytes; without bytes there is none."""
        return np.where(size, size / self.memory + self.launch + START, 0.0)

    def _cast(self, one: Operation, number_format: str) -> Array:
        """The time to bring a matmul's moving operand (m x k) to a narrow format; weights are cast once a step.

        Each expert's rows are cast by a kernel of their own, as each has a scale.
        """
        if number_format not in NARROW or not one.casts:
            return 0.0
        kernels = one.batch if one.split == "experts" else 1.0
        size = (CAST_BYTES[number_format] + one.scales) * one.m * one.k * one.batch
        return size / self.stream + kernels * (self.launch + START)

    def _matmul(self, one: Operation, number_format: str) -> Array:
        """The fastest of the tile shapes that a library could choose.

        Tiles fill the multiprocessors in waves, and the last wave takes as long as a full one (NVIDIA, Matrix
        Multiplication Background User's Guide, "tile" and "wave quantization").
        """
        rate = self._rate(number_format) / self.multiprocessors
        fastest: Array = np.inf
        for rows, columns, share in self.tiles:
            tiles = np.ceil(one.m / rows) * np.ceil(one.n / columns) * one.batch
            waves = np.ceil(tiles / self.multiprocessors)
            fastest = np.minimum(fastest, waves * 2 * rows * columns * (one.k + DEEP) / (rate * share))
        return fastest

    def _rate(self, number_format: str) -> float:
        return _known(self.rates, number_format)

    def _peak(self, number_format: str) -> float:
        return _known(self.peaks, number_format)


def _known(table: dict[str, float], number_format: str) -> float:
    if number_format not in table:
        raise InputError("precision", number_format, "this accelerator has no such matrix unit", among=table)
    return table[number_format]


@lru_cache(maxsize=1)
def _figures() -> dict[str, KernelFigures]:
    table = load_yaml(folder("topologies") / "kernels.yaml")
    return {name: read(KernelFigures, said, f"kernels.yaml: {name}") for name, said in table.items()}


def kernel_figures(accelerator: Accelerator) -> KernelFigures:
    """Return what is said of its architecture's kernels; InputError for an architecture without kernels."""
    name = _LIKE.get(accelerator.architecture, accelerator.architecture)
    if name not in _figures():
        raise InputError(f"{accelerator.name}: architecture", name, "no kernels are described for it", among=_figures())
    return _figures()[name]


def kernels(
    accelerator: Accelerator,
    case: Case = NOMINAL,
    *,
    kernel: str | None = None,
    cuda_graphs: bool = False,
    compiled: bool = False,
) -> Kernels:
    """Return what the accelerator's kernels reach, in that case.

    `kernel` is the generation of the attention kernel (None: the newest); `compiled`: a compiler fuses the rest. A
    format whose achieved share nobody measured takes that of bf16. InputError for an architecture or a kernel that is
    not described.
    """
    said, corner = kernel_figures(accelerator), case.corner
    attention = said.kernel(kernel)
    faster = {what: case.factor(what) for what in ("compute", "memory")}
    share = {key: at(value, corner) for key, value in accelerator.achieved.items()}
    peaks = {key: at(value, corner) * faster["compute"] for key, value in accelerator.peak.items()}
    best = {key: peak * share.get(key, share.get("bf16", 0.75)) for key, peak in peaks.items()}
    sustained = _sustained(accelerator, said, corner)
    launch = float(accelerator.launch or _LAUNCH)
    stream = at(accelerator.memory_bandwidth, corner) * share.get("memory", 0.85) * faster["memory"]
    return Kernels(
        rates={key: rate * sustained["narrow" if key in NARROW else "wide"] for key, rate in best.items()},
        peaks=peaks,
        memory=stream * max(at(said.passing, corner), COMPILED * compiled),
        stream=stream,
        multiprocessors=accelerator.multiprocessors or 128,
        tiles=said.tiles,
        attention=AttentionFigures(at(attention.forward, corner), at(attention.backward, corner)),
        launch=min(launch, _GRAPH) if cuda_graphs else launch,
    )


def _sustained(accelerator: Accelerator, said: KernelFigures, corner: Corner) -> dict[str, float]:
    """Shares of the best-shape rate that narrow and other formats keep up, by the power that there is for them.

    No more than all of it; where no power is known, what is said of the architecture.
    """
    figure, peak = at(said.sustained, corner), float(accelerator.peak.get("bf16", accelerator.peak["fp16"]))
    if not (accelerator.power and said.density):
        return {"wide": figure, "narrow": figure}
    there, drawn = float(accelerator.power) / (peak / 1e15) / said.density, {"wide": 1.0, "narrow": NARROW_POWER}
    return {name: min(1.0, figure * (there / power) ** POWER) for name, power in drawn.items()}


@lru_cache(maxsize=4096)
def slowest(gpus: int) -> float:
    """Return by how many standard deviations the slowest of so many GPUs is slower than the mean one.

    The mean of the largest of n normal numbers, by its Gumbel limit: (1 - g) z(1 - 1/n) + g z(1 - 1/(e n)).
    """
    if gpus == 1:
        return 0.0
    quantile = NormalDist().inv_cdf
    return (1 - _EULER) * quantile(1 - 1 / gpus) + _EULER * quantile(1 - 1 / (math.e * gpus))


_EULER = 0.5772156649
