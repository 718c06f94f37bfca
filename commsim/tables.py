"""How do values become rows: records with the unit in each name, a DataFrame?

`records` is the one place that says which keys an answer has; the command line's JSON is made of the same records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.errors import InputError
from commsim.figures import at, is_range, origin
from commsim.hardware.system import Accelerator, System
from commsim.hardware.topology import Link, Topology
from commsim.libraries.library import Candidate, Timing
from commsim.libraries.sweep import Sweep
from commsim.training.estimate import Estimate
from commsim.training.passes import Said

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from commsim.training.memory import Memory
    from commsim.training.step import Step

Record = dict[str, Any]
Pair = list[float]


@singledispatch
def records(value: object) -> list[Record]:
    """Return the rows of a value: a value of commsim, a mapping, or any number of these. InputError for others.

    Keys end in their unit. `range` holds {key: [low, high]}, or None when every figure behind the row is certain.
    """
    raise InputError("table", type(value).__name__, "a value of commsim, a mapping or several of these belong here")


def to_frame(value: object) -> pd.DataFrame:
    """Return the rows of a value as a DataFrame; what is nested becomes columns such as `breakdown.compute_s`."""
    import pandas as pd

    return pd.json_normalize(records(value))


@records.register
def _mapping(value: Mapping) -> list[Record]:  # type: ignore[type-arg] # singledispatch takes no subscripts
    return [dict(value)]


@records.register
def _several(values: Iterable) -> list[Record]:  # type: ignore[type-arg]
    return [record for value in values for record in records(value)]


@records.register
def _text(value: str) -> list[Record]:
    raise InputError("table", value, "a value of commsim, not its name, belongs here")


@records.register
def _system(system: System) -> list[Record]:
    return [
        {
            "name": system.name,
            "aliases": list(system.aliases),
            "accelerator": system.accelerator.name,
            "gpus": system.gpus,
            "status": system.status,
            "summary": system.summary,
        }
    ]


@records.register
def _accelerator(gpu: Accelerator) -> list[Record]:
    figures = {
        **{f"peak_{name}_flops_per_s": peak for name, peak in gpu.peak.items()},
        "memory_bytes": gpu.memory,
        "memory_bandwidth_bytes_per_s": gpu.memory_bandwidth,
    }
    named = {"name": gpu.name, "title": gpu.title, "architecture": gpu.architecture}
    return [named | _figures(figures, "memory_bandwidth_bytes_per_s")]


@records.register
def _topology(topology: Topology) -> list[Record]:
    cables = _cables(topology)
    return [{**row, "count": int(count)} for row, count in zip(records(topology.kinds), cables) if count]


@records.register
def _link(link: Link) -> list[Record]:
    figures = {"bandwidth_bytes_per_s": link.bandwidth, "latency_s": link.latency}
    return [{"kind": link.kind} | _figures(figures, "bandwidth_bytes_per_s")]


@records.register
def _timing(timing: Timing) -> list[Record]:
    return [_timed(timing, timing.choice(index), index) for index in range(len(timing.sizes))]


@records.register
def _sweep(sweep: Sweep) -> list[Record]:
    ends = [records(end) for end in sweep.ends] if sweep.ends else []
    return [row | {"range": _between(*others) or None} for row, *others in zip(records(sweep.timing), *ends)]


@records.register
def _said(one: Said) -> list[Record]:
    traffic, timed = one.traffic, records(one.timing)[0]
    timed.pop("range")
    place = {"axis": traffic.axis, "group": traffic.group, "layers": one.kind, "when": traffic.when}
    return [{**place, "hidden_behind": traffic.behind, "count": traffic.count, **timed}]


@records.register
def _estimate(estimate: Estimate) -> list[Record]:
    step = estimate.step
    return [
        {
            "step_time_s": estimate.step_time,
            "tokens_per_s_per_gpu": estimate.tokens_per_second_per_gpu,
            "mfu": estimate.mfu,
            "model_flops_per_gpu": estimate.model_flops_per_gpu,
            "memory_bytes": estimate.memory.total,
            "fits": estimate.memory.fits,
            "breakdown": {
                "compute_s": step.compute,
                "bubble_s": step.bubble,
                "exposed_s": dict(step.exposed),
                "optimizer_s": step.optimizer,
            },
            "assumptions": list(estimate.assumptions),
            "range": _estimate_range(estimate),
        }
    ]


def candidates(sweep: Sweep) -> list[Record]:
    """Return a row for every candidate of every size, quickest first; `chosen` tells which the library takes.

    Of candidates that a library knows by one name (rings in several orders) one stands for all: what it takes, else the
    quickest.
    """
    return [row for index in range(len(sweep.sizes)) for row in _candidates(sweep, index)]


def _candidates(sweep: Sweep, index: int) -> list[Record]:
    timings, chosen = [sweep.timing, *(sweep.ends or ())], int(sweep.timing.chosen[index])
    quickest = np.argsort([one.seconds[index] for one in sweep.timing.candidates], kind="stable").tolist()
    rows: dict[tuple[str, str], Record] = {}
    for place in (chosen, *quickest):
        row, *ends = (_timed(timing, timing.candidates[place], index) for timing in timings)
        told = {**row, "range": _between(*ends) or None, "chosen": place == chosen}
        rows.setdefault((row["algorithm"], row["protocol"]), told)
    return sorted(rows.values(), key=lambda row: float(row["time_s"]))


def time_parts(step: Step) -> dict[str, float]:
    """Return what the time of a step goes to, s, under names for people."""
    exposed = {f"exposed: {axis}": seconds for axis, seconds in step.exposed.items()}
    return {"compute": step.compute, "pipeline bubble": step.bubble, **exposed, "optimizer": step.optimizer}


def memory_parts(memory: Memory) -> dict[str, float]:
    """Return what the memory of the fullest GPU holds, B, under names for people."""
    return {name: getattr(memory, name) for name in ("weights", "gradients", "optimizer", "activations", "other")}


def _timed(timing: Timing, one: Candidate, index: int) -> Record:
    size, seconds = float(timing.sizes[index]), float(one.seconds[index])
    rate = size / seconds if seconds else 0.0  # alone a rank moves nothing, on the wire in no time
    return {
        "op": timing.op.name,
        "ranks": timing.ranks,
        "size_bytes": int(size),
        "time_s": seconds,
        "algbw_bytes_per_s": rate,
        "busbw_bytes_per_s": rate * timing.op.factor(timing.ranks),
        "algorithm": one.algorithm,
        "protocol": one.protocol,
        "bottleneck": one.limit(index),
        "range": None,
    }


def _estimate_range(estimate: Estimate) -> dict[str, Pair] | None:
    """Step time, throughput and MFU at both ends of the figures, each against the peak at that end."""
    if not estimate.range:
        return None
    setting, number_format = estimate.setting, estimate.setting.recipe.matmul_format
    peaks = [at(setting.system.accelerator.peak[number_format], corner) for corner in ("high", "low")]
    ends = [
        {
            "step_time_s": seconds,
            "tokens_per_s_per_gpu": setting.tokens_per_step / seconds / setting.system.gpus,
            "mfu": estimate.model_flops_per_gpu / seconds / peak,
        }
        for seconds, peak in zip(estimate.range, peaks)
    ]
    return _between(*ends)


def _figures(figures: Mapping[str, float], main: str) -> Record:
    """The figures as plain numbers, where each is from (`source`: the main one), and the ranges of uncertain ones."""
    ranges = {key: [at(value, "low"), at(value, "high")] for key, value in figures.items() if is_range(value)}
    plain = {key: float(value) for key, value in figures.items()}
    sources = {key: origin(value) for key, value in figures.items()}
    return {**plain, "source": sources[main], "sources": sources, "range": ranges or None}


def _between(*ends: Record) -> dict[str, Pair]:
    """The range of every number that differs between the ends: {key: [low, high]}."""
    timed = ("_s", "mfu", "per_gpu")
    return {
        key: sorted(float(end[key]) for end in ends)
        for key in (ends[0] if ends else ())
        if key.endswith(timed) and isinstance(ends[0][key], float)
    }


def _cables(topology: Topology) -> NDArray[np.float64]:
    """How many cables of each kind there are: copies of every edge of the cell, both directions as one."""
    numbering = topology.numbering
    units = -(-topology.nodes // numbering.span)
    full, rest = np.divmod(units, numbering.siblings)
    meshed = full * numbering.siblings * (numbering.siblings - 1) + rest * (rest - 1)
    copies = np.where(numbering.siblings > 1, meshed, units)
    both = np.bincount(numbering.kind_index, weights=copies * numbering.count, minlength=len(topology.kinds))
    return both / 2
