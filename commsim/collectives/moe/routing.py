"""Which experts do tokens go to, and how often is one of them on a given rank?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DRAWS = 64
"""Draws of the experts' popularity: the mean of the fullest of 32 ranks is known to 3 % at the measured skew."""
MEASURED_SKEW = 1.07
"""The skew at which the fullest of 32 ranks gets 2.56 times the mean, as DeepSeek-R1's did (TensorRT-LLM's EPLB)."""
MOST_EXPERTS, MOST_SKEW = 2**14, 10.0


@dataclass(frozen=True)
class Routing:
    """Each token goes to `top_k` of the `experts`, which stand in at most `groups` scale-up domains (None: in any).

    The experts' popularity is lognormal, `skew` the standard deviation of its logarithm: 0 is uniform. `seed` picks the
    draws. Limiting domains (DeepSeek-V3, section 2.1.2: nodes) saves what goes through NICs.
    """

    experts: int
    top_k: int
    groups: int | None = None
    skew: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse routing that sends tokens nowhere; InputError."""
        for name, most in (("experts", MOST_EXPERTS), ("top_k", self.experts), ("groups", MOST_EXPERTS)):
            given = getattr(self, name)
            if given is None and name == "groups":
                continue
            if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
                raise InputError(
                    f"routing: {name.replace('_', '-')}", given, f"a whole number, 1 to {most}, belongs here"
                )
        if not 0 <= self.skew <= MOST_SKEW:
            raise InputError("routing: skew", self.skew, f"0 (uniform) to {MOST_SKEW:g} belong here; 1.07 is measured")

    def chances(self) -> Floats:
        """Return the chance that a token goes to an expert, [draw, expert]: `top_k` in sum, none above 1."""
        return _chances(self)

    def spread(self, domains: Sequence[int]) -> Spread:
        """Return where tokens go when the experts are dealt to ranks in order; domains[rank] is that of each.

        InputError when some rank would get no expert.
        """
        return _spread(self, tuple(domains))


@dataclass(frozen=True, eq=False)
class Spread:
    """Where the tokens of any rank go, a row for each draw of the experts' popularity.

    `copies`[draw, rank] are the experts that a token has on a rank; `to_rank`[draw, rank] and `to_domain`[draw, one]
    are the chances that it has one there at all, so that one copy serves (deduplication). `domain`[rank] is its own.
    """

    copies: Floats
    to_rank: Floats
    to_domain: Floats
    domain: Ints

    @property
    def imbalance(self) -> float:
        """Tokens of the fullest rank over the mean, each copy counted, in the mean over draws."""
        return float((self.copies.max(axis=1) / self.copies.mean(axis=1)).mean())


@lru_cache(maxsize=64)
def _chances(routing: Routing) -> Floats:
    if not routing.skew:
        return np.full((1, routing.experts), routing.top_k / routing.experts)
    drawn = np.random.default_rng(routing.seed).standard_normal((DRAWS, routing.experts))
    return _capped(np.exp(routing.skew * (drawn - drawn.max(axis=1, keepdims=True))), routing.top_k)


@lru_cache(maxsize=64)
def _spread(routing: Routing, domains: tuple[int, ...]) -> Spread:
    ranks = len(domains)
    if ranks > routing.experts:
        expected = f"at least one expert for each of the {ranks} ranks belongs here (copies of an expert count)"
        raise InputError("routing: experts", routing.experts, expected)
    names, domain = np.unique(np.array(domains), return_inverse=True)
    owner = np.arange(routing.experts) * ranks // routing.experts
    of_expert, chances = domain[owner], routing.chances()
    chosen = _chosen(routing, chances, of_expert, len(names))
    within = np.minimum(chances / chosen[:, of_expert], 1.0)
    to_domain = chosen * _hit(within, of_expert, routing.top_k) * _favour(routing, len(names))
    return Spread(
        copies=np.add.reduceat(chances, _starts(owner), axis=1),
        to_rank=chosen[:, domain] * _hit(within, owner, routing.top_k),
        to_domain=np.minimum(to_domain, chosen),
        domain=domain,
    )


def _chosen(routing: Routing, chances: Floats, domain: Ints, domains: int) -> Floats:
    """The chance that a token may go to a domain at all, [draw, one], in proportion to how popular its experts are.

    InputError when so few domains have fewer experts than a token needs.
    """
    limit = domains if routing.groups is None else min(routing.groups, domains)
    if limit < domains and limit * (routing.experts // domains) < routing.top_k:
        expected = (
            f"{limit} of {domains} domains have fewer than the {routing.top_k} experts of a token: more belong here"
        )
        raise InputError("routing: groups", routing.groups, expected)
    popular = [chances[:, domain == one].sum(axis=1) for one in range(domains)]
    return _capped(np.stack(popular, axis=1), limit)


def _favour(routing: Routing, domains: int) -> float:
    """How many more of the domains that a token is limited to it goes to, because they are those of its best experts.

    Going down the list of a token's experts, its domains are the first `groups` to be met: so it has experts in
    min(groups, D) of them, D being those of its first top_k experts: j of n with chance C(n, j) / C(X, k) x the sum
    over i of (-1)^(j - i) C(j, i) C(i X / n, k) (inclusion and exclusion). By lot, the hypergeometric number.
    """
    if routing.groups is None or routing.groups >= domains:
        return 1.0
    each, k = routing.experts // domains, routing.top_k
    ways = [
        comb(domains, j) * sum((-1) ** (j - i) * comb(j, i) * comb(i * each, k) for i in range(1, j + 1))
        for j in range(1, domains + 1)
    ]
    best: float = sum(min(j, routing.groups) * way for j, way in enumerate(ways, 1)) / sum(ways)
    pool = routing.groups * each
    lot = routing.groups * (1 - comb(pool - each, k) / comb(pool, k))
    return best / lot


def _capped(weights: Floats, total: int) -> Floats:
    """Chances [draw, one] in proportion to the weights, `total` in sum: whatever would pass 1 is left to the others."""
    found = total * weights / weights.sum(axis=1, keepdims=True)
    while (found > 1 + 1e-12).any():
        full = found >= 1
        rest = np.where(full, 0.0, weights)
        left = total - full.sum(axis=1, keepdims=True)
        found = np.where(full, 1.0, left * rest / np.maximum(rest.sum(axis=1, keepdims=True), np.finfo(float).tiny))
    below: Floats = np.minimum(found, 1.0)
    return below


def _hit(chances: Floats, unit: Ints, top_k: int) -> Floats:
    """The chance that at least one of a token's experts is in a unit, [draw, unit]; unit[expert].

    Expert after expert of the unit is missed; each time what was missed falls to all others in proportion, so that the
    next is taken with chance p k / (k - sum of p before it). With equal chances that is exact (hypergeometric): a unit
    with e of X experts is missed with C(X - e, k) / C(X, k).
    """
    order = np.argsort(unit, kind="stable")
    sorted_, starts = chances[:, order], _starts(unit[order])
    before = np.cumsum(sorted_, axis=1) - sorted_
    firsts = np.repeat(starts, np.diff([*starts, len(unit)]))
    left = np.maximum(top_k - (before - before[:, firsts]), np.finfo(float).tiny)
    taken = np.clip(sorted_ * top_k / left, 0.0, 1.0)
    missed: Floats = np.multiply.reduceat(1 - taken, starts, axis=1)
    return 1 - missed


def _starts(unit: Ints) -> Ints:
    """Where each unit begins in unit[expert], which is sorted."""
    return np.flatnonzero(np.diff(unit, prepend=-1))
