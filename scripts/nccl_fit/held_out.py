"""How near are times to what their constants were not fitted on?

Both measures compare the same statistic, the median over groups of the group's median |error| by band: of halves,
tables held out beside tables fitted, averaged over the seeds; of groups, each one when it was left out beside the same
one when it was not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scripts.nccl_fit.fit import Fit
from scripts.nccl_fit.measured import errors

if TYPE_CHECKING:
    from commsim.libraries.calibration import Calibration
    from scripts.nccl_fit.measured import Family, Table

LEAST, SEEDS = 4, 5
"""Tables of a family of which half are held out; how often."""
Errors = dict[str, list[float]]
"""By band."""


def families(every: list[Table]) -> dict[Family, list[Table]]:
    """Return the tables by family."""
    found: dict[Family, list[Table]] = {}
    for one in every:
        found.setdefault(one.family, []).append(one)
    return found


def halves(every: list[Table], start: Calibration, rounds: int) -> tuple[Errors, Errors]:
    """Return the errors on fitted halves and on those held out, seed by seed, of families with LEAST tables or more."""
    large = [found for found in families(every).values() if len(found) >= LEAST]
    inside = [one for found in large for one in found]
    fitted, apart = Errors(), Errors()
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        held = {id(one) for found in large for one in rng.permutation(np.array(found, dtype=object))[: len(found) // 2]}
        found = _fitted([one for one in every if id(one) not in held], start, rounds)
        _add(fitted, [one for one in inside if id(one) not in held], found)
        _add(apart, [one for one in inside if id(one) in held], found)
    return fitted, apart


def groups(every: list[Table], start: Calibration, rounds: int) -> tuple[Errors, Errors]:
    """Return the errors on groups that were fitted and on the same left out, of families with two groups or more."""
    places = {(family, one.of.group) for family, found in families(every).items() for one in found}
    several = [place for place in sorted(places) if sum(family == place[0] for family, _ in places) > 1]
    whole = _fitted(every, start, rounds)
    without = {
        group: _fitted([one for one in every if one.of.group != group], start, rounds)
        for group in sorted({group for _, group in several})
    }
    fitted, apart = Errors(), Errors()
    for family, group in several:
        own = [one for one in every if (one.family, one.of.group) == (family, group)]
        _add(fitted, own, whole)
        _add(apart, own, without[group])
    return fitted, apart


def _fitted(of: list[Table], start: Calibration, rounds: int) -> Calibration:
    fit = Fit(of, start)
    found: Calibration = fit.at(fit.run(rounds))
    return found


def _add(to: Errors, of: list[Table], fitted: Calibration) -> None:
    for band, found in errors(of, fitted).items():
        to.setdefault(band, []).append(found.median_error)
