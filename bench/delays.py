"""Who is late on purpose? A rank that sleeps before each iteration, and jitter drawn for each rank and iteration."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.laws import LAWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.measurement.launch.cases import Case
    from commsim.stragglers.laws import Law
    from commsim.units import Seconds

_KEYS = ("law", "parameters", "seed", "how")


def drawn(case: Case, rank: int, iterations: int) -> list[Seconds]:
    """Return how long a rank holds back before each iteration, in seconds; the same for the same seed."""
    late = case.late.get(rank, 0.0)
    if not case.jitter:
        return [late] * iterations
    rng = np.random.default_rng([int(case.jitter.get("seed", 0)), rank])
    return [late + max(0.0, float(one)) for one in law(case.jitter).sample(rng, iterations)]


def law(jitter: Mapping[str, Any]) -> Law:
    """Return the law of a case's jitter; InputError."""
    for key in jitter:
        if key not in _KEYS:
            raise InputError("jitter", key, "no such key", among=_KEYS)
    kind = LAWS.get(str(jitter.get("law", "")))
    if kind is None:
        raise InputError("jitter: law", jitter.get("law"), "no such law", among=LAWS)
    if jitter.get("how", "sleep") not in {"sleep", "spin"}:
        raise InputError("jitter: how", jitter["how"], "sleep or spin belongs here")
    try:
        return kind(**jitter.get("parameters", {}))
    except TypeError as error:
        raise InputError("jitter: parameters", jitter.get("parameters"), str(error)) from None


def hold_back(seconds: Seconds, *, spinning: bool) -> None:
    """Let so much time pass: asleep, or busy as a rank that computes."""
    if not spinning:
        time.sleep(seconds) if seconds else None
        return
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
