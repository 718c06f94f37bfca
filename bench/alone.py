"""How long does one GPU take for each kind of work that it does alone?"""

from __future__ import annotations

import datetime as dt
import math
import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from bench.journal import Journal
from bench.kernels import FULL, KINDS, TINY, Work, device
from bench.machine import clocks, processor, settings, versions
from bench.timing import timer
from commsim.measurement.readers.json_lines import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.timing import Timer
    from commsim.units import Seconds

_NS = 1e-9
_WARMUP = 3
_LEAST, _MOST = 5, 200
"""How often a piece is timed: as often as its share of time allows, within these."""
_SHORT, _REPEATED = 1e-3, 100
"""Seconds below which a piece is repeated within an iteration, and how often at most."""


class _Done:
    """The work of something that is done, or that its stream waits for, when its call returns."""

    def wait(self) -> None:
        pass


def timed(work: Work, clock: Timer, budget: Seconds) -> list[Seconds]:
    """Return seconds of one repetition, by iteration.

    What is short is repeated within an iteration, so that reading the clock does not count.
    """
    first = min(clock.once(lambda: _repeated(work, 1))[1] for _ in range(_WARMUP)) * _NS
    many = math.ceil(min(_SHORT / max(first, _NS), _REPEATED))
    found: list[Seconds] = []
    until = time.monotonic() + budget
    while len(found) < _LEAST or (len(found) < _MOST and time.monotonic() < until):
        found.append(clock.once(lambda: _repeated(work, many))[1] * _NS / many / work.times)
    return found


def _repeated(work: Work, many: int) -> _Done:
    for _ in range(many):
        work.run()
    return _Done()


def record(work: Work, samples: Sequence[Seconds]) -> dict[str, Any]:
    """Return the record of a piece: what it was, its samples, and the rate of their median."""
    typical = median(samples)
    rates = {"bytes_per_s": work.moved / typical, "flop_per_s": work.flop / typical}
    return {
        "record": "kernel",
        "kind": work.kind,
        **work.like,
        "bytes": work.moved,
        "flop": work.flop,
        "time_s": typical,
        **{key: value for key, value in rates.items() if value},
        "samples_s": [[round(one, 12) for one in samples]],
    }


def run_record(on: torch.device) -> dict[str, Any]:
    """Return what the figures come from."""
    is_gpu = on.type == "cuda"
    name = torch.cuda.get_device_name(on) if is_gpu else ""
    memory = torch.cuda.get_device_properties(on).total_memory if is_gpu else 0
    return {
        "record": "run",
        "schema": SCHEMA,
        "library": "nccl" if is_gpu else "gloo",
        "machine": {
            "nodes": 1,
            "hosts": [{"ranks": [0], "accelerator": name}],
            "accelerator_memory_bytes": memory,
            **processor(),
        },
        "versions": versions(),
        "settings": settings("nccl" if is_gpu else "gloo"),
        "clocks": clocks(),
        "origin": {
            "program": "bench/gpu.py",
            "status": "measured",
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
        },
    }


def measure(name: str, out: Path, budget: Seconds) -> None:
    """Write every record of a device (cuda, cpu); `budget` is how long each piece is repeated. LackError without it."""
    on = device(name)
    journal, clock = Journal(out), timer(on)
    journal.begin(run_record(on))
    store = dist.HashStore()  # type: ignore[attr-defined]
    dist.init_process_group("nccl" if on.type == "cuda" else "gloo", store=store, rank=0, world_size=1)
    for kind in KINDS:
        for work in kind(FULL if on.type == "cuda" else TINY, on):
            journal.write(record(work, timed(work, clock, budget)))
            sys.stderr.write(f"{work.kind} {' '.join(f'{key}={value}' for key, value in work.like.items())}\n")
    dist.destroy_process_group()
