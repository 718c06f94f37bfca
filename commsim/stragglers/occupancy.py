"""How full is the fullest of several paths, or the most loaded of several ranks?"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.stragglers.laws import Discrete, Lognormal

if TYPE_CHECKING:
    from numpy.random import Generator

    from commsim.stragglers.laws.law import Floats

_MOST = 2048
"""Flows at most: tables of flows x flows are kept."""
_ALL = 1 - 1e-11
"""A chance that counts as certain: sums of so many chances are right to a few parts in 1e13."""


@lru_cache(maxsize=64)
def loads(flows: int, paths: int) -> Discrete:
    """Return the law of the load of the fullest path over the fair load, for equal flows hashed on to equal paths.

    Exact: path by path, the flows left fall on it with a binomial law. InputError for no flows or too many, or no path.
    """
    if not 1 <= flows <= _MOST:
        raise InputError("collisions: flows", flows, f"1 to {_MOST} belong here")
    if not 1 <= paths <= _MOST:
        raise InputError("collisions: paths", paths, f"1 to {_MOST} belong here")
    chances = [0.0]
    least = -(-flows // paths)
    for most in range(least, flows + 1):
        chances.append(min(_none_fuller(flows, paths, most), 1.0))
        if chances[-1] >= _ALL:
            break
    found = np.diff([*chances[:-1], 1.0])
    values = np.arange(least, least + found.size) * paths / flows
    return Discrete(tuple(values.tolist()), tuple(found.tolist()))


def _none_fuller(flows: int, paths: int, most: int) -> float:
    """The chance that no path has more than so many flows."""
    chance = np.zeros(flows + 1)  # [flows]: that so many fall on the paths so far, none of which is too full
    chance[: most + 1] = 1.0
    for path in range(2, paths + 1):
        chance = _with_path(chance, 1 / path, min(most, flows))
    return float(chance[-1])


def _with_path(chance: Floats, share: float, most: int) -> Floats:
    """The same, with one path more, which takes a share of the flows."""
    flows = np.arange(chance.size)
    found = np.zeros_like(chance)
    for on in range(most + 1):
        some = flows[on:]
        log = _log_factorials(chance.size)
        weight = log[some] - log[on] - log[some - on] + on * math.log(share) + (some - on) * math.log1p(-share)
        found[on:] += np.exp(weight) * chance[: chance.size - on]
    return found


@lru_cache(maxsize=8)
def _log_factorials(size: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size)))])


def expert_excess(experts: int, ranks: int, rng: Generator, *, sigma: float = 1.07, trials: int = 2000) -> float:
    """Return how much more than the mean the fullest of the ranks has, in parts of the mean, averaged over trials.

    Each rank has as many experts; their popularity is lognormal. sigma 1.07 gives the 1.564 and the 0.48 of the mean
    that DeepSeek-R1 shows on 32 ranks (TensorRT-LLM).
    """
    if ranks < 1 or experts < ranks or experts % ranks:
        raise InputError("experts", experts, f"a multiple of the {ranks} ranks belongs here")
    load = Lognormal(sigma).sample(rng, (trials, ranks, experts // ranks)).sum(axis=2)
    return float((load.max(axis=1) / load.mean(axis=1)).mean() - 1)
