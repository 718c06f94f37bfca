"""Which constants make NCCL's times those that were measured, and how well do they do on what they were not fitted on?

    python -m scripts.fit_nccl TABLES [--hold-out] [--rounds 12]

TABLES is a folder of measured tables as `commsim validate collectives` reads them. Each group of a band of sizes
weighs the same. Prints every constant with its value, one standard deviation (tables resampled, one step of the fit),
and what is expected of it; with --hold-out, how near times come to tables and to groups that were left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from commsim.libraries.calibration import calibration
from scripts.nccl_fit.fit import Fit
from scripts.nccl_fit.held_out import groups, halves
from scripts.nccl_fit.measured import errors, tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.libraries.calibration import Calibration
    from scripts.nccl_fit.held_out import Errors
    from scripts.nccl_fit.measured import Table


def main() -> None:
    """Fit, and print what was found."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("tables", type=Path)
    asked.add_argument("--hold-out", action="store_true")
    asked.add_argument("--rounds", type=int, default=12)
    given = asked.parse_args()
    every, start = tables(given.tables), calibration("nccl")
    if given.hold_out:
        _print_held_out("halves, mean of the seeds", halves(every, start, given.rounds), fmean)
        _print_held_out("groups, median", groups(every, start, given.rounds), median)
    else:
        _print_fit(every, start, given.rounds)


def _print_fit(every: list[Table], start: Calibration, rounds: int) -> None:
    fit = Fit(every, start)
    x = fit.run(rounds)
    rows = sum(len(one.sizes) for one in every)
    print(f"{len(x)} constants on {rows} rows, which decide on {fit.free(x):.0f} of them")
    for name, found in (("shipped", start), ("fitted", fit.at(x))):
        print(name, {b: f"{e.median_error:.1%}, 75th {e.p75_error:.1%}" for b, e in errors(every, found).items()})
    for one, value, known, deviation in zip(fit.constants, x, fit.expected, fit.deviations(x)):
        now, before = np.exp(value), np.exp(known)
        print(f"{one.name:36s} {one.value:10.4g} -> {now:10.4g}  ± {deviation:.0%}, expected {before:.4g}")


def _print_held_out(name: str, found: tuple[Errors, Errors], middle: Callable[[list[float]], float]) -> None:
    fitted, apart = found
    print(name)
    for band in fitted:
        inside, outside = middle(fitted[band]), middle(apart[band])
        print(f"  {band:12s} fitted {inside:.1%}, held out {outside:.1%}: {outside / inside:.2f}x")


if __name__ == "__main__":
    main()
