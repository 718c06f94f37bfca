"""Which steps are in an archive of arrays [stage, micro-batch, step, replica] in seconds, one for each operation?

The names are those of StragglerAnalysis with underscores, and communication is its transfer alone. What is not in it:
the order of operations, and the numbers of ranks, which are counted by stage.
"""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import numpy as np

from commsim.errors import InputError
from commsim.measurement.traces.places import Grid, complete
from commsim.measurement.traces.steps import FORWARD, OPERATIONS, StepTrace

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.traces.steps import Floats, Ints

MOST = 2**30
"""Bytes that the arrays may take."""
_AXES = 4
_STEP = "actual_step_s"
_NAMES = {op.replace("-", "_"): op for op in OPERATIONS}


def read(path: Path) -> StepTrace:
    """Return the steps of an archive; InputError for one that is damaged, too large, or holds anything else."""
    arrays = _arrays(path)
    measured = arrays.pop(_STEP, None)
    seconds = {_NAMES[name]: array for name, array in arrays.items() if name in _NAMES}
    unknown = sorted(arrays.keys() - _NAMES.keys())
    if FORWARD not in seconds:
        raise InputError(path.name, unknown, "an array forward_compute, and others of operations, belong here")
    first = seconds[FORWARD]
    for op, array in seconds.items():
        _check(f"{path.name}: {op}", array, first)
    stages, _, steps, replicas = first.shape
    ranks = np.arange(stages * replicas).reshape(stages, replicas)
    grid = Grid(seconds, seconds, {}, ranks, np.arange(steps), np.arange(replicas))
    grid, repairs = complete(grid, path.name)
    return StepTrace(
        seconds=grid.seconds,
        ranks=grid.ranks,
        steps=tuple(grid.steps.tolist()),
        measured=_measured(path.name, measured, grid.steps, steps),
        replica_numbers=tuple(grid.replicas.tolist()),
        source=path.name,
        repairs=(*repairs, *(f"{name}: left out, no operation that is known" for name in unknown)),
    )


def _arrays(path: Path) -> dict[str, Floats]:
    """The arrays of an archive, none of them a pickle, all of them together no larger than MOST."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > MOST:
            raise InputError(path.name, f"{size} B of arrays", f"at most {MOST} B are read")
        with np.load(path, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name], dtype=np.float64) for name in archive.files}
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile, SyntaxError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(path.name, str(error), "an archive of arrays of seconds (npz) belongs here") from None


def _check(where: str, array: Floats, first: Floats) -> None:
    """Refuse arrays of other shapes than the first, and figures that are no times."""
    if array.ndim != _AXES or not array.size:
        raise InputError(where, array.shape, "[stage, micro-batch, step, replica] belongs here")
    apart = [axis for axis in (0, 2, 3) if array.shape[axis] != first.shape[axis]]
    if apart:
        raise InputError(where, array.shape, f"as many stages, steps and replicas as the others, {first.shape}")
    wrong = array[np.isinf(array) | (array < _BACKWARDS)]
    if wrong.size:
        raise InputError(where, float(wrong[0]), "seconds that are finite and not negative belong here")


_BACKWARDS = -0.01
"""Transfers may be a little negative where clocks disagree (StragglerAnalysis keeps them down to 10 ms)."""


def _measured(source: str, given: Floats | None, kept: Ints, steps: int) -> Floats | None:
    if given is None:
        return None
    if given.shape != (steps,) or not (np.isfinite(given).all() and np.all(given > 0)):
        raise InputError(f"{source}: {_STEP}", given.shape, f"{steps} times above 0 belong here, one for each step")
    found: Floats = given[kept]
    return found
