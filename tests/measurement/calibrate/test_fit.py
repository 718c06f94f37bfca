"""Are known constants recovered within the stated uncertainty, and is what the data do not tell said?"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import commsim as cs
from commsim.collectives.kinds import ALL_GATHER, ALL_REDUCE, collective
from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.libraries.ideal import Ideal
from commsim.libraries.nccl import Nccl
from commsim.measurement.calibrate.constants import Place, changed
from commsim.measurement.calibrate.fit import Fit, Run, calibrate, fit
from commsim.measurement.records import Measurement, Row, Timing

BOX = cs.load("hgx-a100").topology
GROUP = Layout.first(8)
SIZES = np.logspace(10, 32, 12, base=2, dtype=np.float64)
NVLINK, BASE = ("links", "nvlink3", "efficiency"), ("protocols", "LL", "base")


def measured(values: dict[Place, float], noise: float = 0.0, seed: int = 0) -> list[Run]:
    """Runs on a machine whose library has those constants, each row off by some noise."""
    rng = np.random.default_rng(seed)
    by = dataclasses.replace(Nccl(), fitted=changed(Nccl().fitted, values))
    runs = []
    for op in (ALL_REDUCE, ALL_GATHER):
        seconds = by.time(op, SIZES, GROUP, BOX).seconds * np.exp(rng.normal(0, noise, len(SIZES)))
        rows = tuple(Row(int(size), int(size) // 4, Timing(float(one))) for size, one in zip(SIZES, seconds))
        runs.append(Run(Measurement(((op, 8),), rows), GROUP, BOX))
    return runs


def found(result: Fit, place: Place) -> tuple[float, float, float, bool]:
    one = next(one for one in result.constants if one.constant.place == place)
    return one.value, one.low, one.high, one.told


@pytest.mark.parametrize("share", [0.3, 0.4])
def test_known_constants_are_recovered(share: float) -> None:
    result = fit(Nccl(), measured({NVLINK: share}, noise=0.02))
    value, low, high, told = found(result, NVLINK)
    assert told
    assert low <= share <= high
    assert value == pytest.approx(share, rel=0.05)
    assert np.median(np.abs(result.after)) < 0.03 < np.median(np.abs(result.before))


def test_without_noise() -> None:
    result = fit(Nccl(), measured({NVLINK: 0.6}))
    assert found(result, NVLINK)[0] == pytest.approx(0.6, rel=0.02)
    assert np.abs(result.after).max() < 0.02
    first, *told = str(result).splitlines()
    assert first.startswith("24 rows: median |error| ")
    assert len(told) == len(result.told)
    assert any(line.startswith("  links.nvlink3.efficiency: 0.") and ", shipped 0." in line for line in told)


def test_what_the_data_do_not_tell_stays() -> None:
    """Large messages alone say nothing of what small ones cost."""
    large = [
        dataclasses.replace(run, table=dataclasses.replace(run.table, rows=run.table.rows[-3:]))
        for run in measured({NVLINK: 0.7})
    ]
    result = fit(Nccl(), large)
    assert found(result, NVLINK)[3]
    assert BASE not in [one.constant.place for one in result.told]
    assert all(one.value / one.low < 1.5 for one in result.told)
    assert any(one.high / one.value >= 1.5 for one in result.constants if not one.told)


def test_the_same_seed_gives_the_same() -> None:
    runs = measured({NVLINK: 0.7}, noise=0.05)
    assert fit(Nccl(), runs, seed=3).constants == fit(Nccl(), runs, seed=3).constants


def test_more_noise_is_less_sure() -> None:
    widths = []
    for noise in (0.01, 0.15):
        _, low, high, _ = found(fit(Nccl(), measured({NVLINK: 0.7}, noise)), NVLINK)
        widths.append(high / low)
    assert widths[0] < widths[1]


def test_an_odd_row_weighs_little() -> None:
    runs = measured({NVLINK: 0.7})
    rows = list(runs[0].table.rows)
    rows[-2] = dataclasses.replace(rows[-2], out_of_place=Timing(rows[-2].timing.seconds * 10))
    odd = dataclasses.replace(runs[0], table=dataclasses.replace(runs[0].table, rows=tuple(rows)))
    assert found(fit(Nccl(), [odd, runs[1]]), NVLINK)[0] == pytest.approx(0.7, rel=0.05)


def test_a_library_without_constants() -> None:
    with pytest.raises(InputError, match="a library that has constants"):
        fit(Ideal(), measured({}))


def test_nothing_measured() -> None:
    empty = Run(Measurement(((collective("all_reduce"), 8),), ()), GROUP, BOX)
    with pytest.raises(InputError, match="at least one row"):
        fit(Nccl(), [empty])


def test_runs_of_another_library_are_refused() -> None:
    """Gloo's times say nothing of NCCL's constants; logs of RCCL's benchmarks look like NCCL's, and may be."""
    tables = [dataclasses.replace(run.table, library="gloo", source="ours") for run in measured({NVLINK: 0.6})]
    with pytest.raises(InputError, match="ours: library: 'gloo'; runs of nccl belong here"):
        calibrate(cs.load("hgx-a100"), tables)
    alike = [dataclasses.replace(table, library="rccl") for table in tables]
    assert found(calibrate(cs.load("hgx-a100"), alike), NVLINK)[0] == pytest.approx(0.6, rel=0.02)
    with pytest.raises(InputError, match="a library that has constants"):
        calibrate(cs.load("hgx-a100"), tables, library=Ideal())


def test_on_a_machine() -> None:
    tables = [run.table for run in measured({NVLINK: 0.6})]
    result = calibrate(cs.load("hgx-a100"), tables)
    assert found(result, NVLINK)[0] == pytest.approx(0.6, rel=0.02)
    with pytest.raises(InputError, match="at least the 8 GPUs"):
        calibrate(cs.load("hgx-a100", gpus=4), tables)
