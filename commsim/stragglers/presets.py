"""What is usually slow, in a cluster of one's own and in one that is shared?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from commsim.errors import InputError
from commsim.stragglers.kinds import Congestion, Jitter, SharedJitter, SlowRank, Straggler, Throttling, Variation
from commsim.stragglers.laws import Lognormal

_BYTEDANCE = "traces of healthy ranks, ByteDance StragglerAnalysis (OSDI 2025)"
_GREYHOUND = "Greyhound (ATC 2025), table 1"


@dataclass(frozen=True)
class Preset:
    """Causes that come together, each with who measured it."""

    causes: tuple[Straggler, ...]
    sources: tuple[str, ...]


_HEALTHY = {
    Variation(0.02): "matmul-bound work on V100, RTX 5000 and A100 clusters (blox-pal)",
    SlowRank(factor=1.1, chance=0.005): "MegaScale (NSDI 2024): 10 % slower on 0.5 % of the machines",
    Jitter(0.015): _BYTEDANCE,
    SharedJitter(0.01): _BYTEDANCE,
    Throttling(): _GREYHOUND,
}
_OTHERS = {Congestion(): _GREYHOUND}

POPULATION = Lognormal(sigma=0.97, mean=math.exp(-2.49 + 0.97**2 / 2))
"""The slowdown of jobs above 1: 3,079 jobs on 128 GPUs or more of a dedicated cluster (ByteDance, OSDI 2025), by three
of their published quantiles."""

PRESETS = {
    "dedicated": Preset(tuple(_HEALTHY), tuple(_HEALTHY.values())),
    "shared": Preset((*_HEALTHY, *_OTHERS), (*_HEALTHY.values(), *_OTHERS.values())),
}
"""Clusters: `dedicated` has a network of its own, `shared` one on which other jobs weigh."""


def preset(name: str) -> Preset:
    """Return the causes of a kind of cluster; InputError for one that is not known."""
    if name not in PRESETS:
        raise InputError("preset", name, "no such cluster", among=PRESETS)
    return PRESETS[name]


def source_of(cause: Straggler) -> str:
    """Return who measured a cause with just these parameters, as the presets name them; "" when nobody did."""
    known = dict(zip(PRESETS["shared"].causes, PRESETS["shared"].sources))
    return known.get(cause, "")
