"""Is every measured row answered, or its table skipped with the reason, and is all of it summed up fairly?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commsim.errors import InputError
from commsim.libraries.calibration import calibration
from commsim.validation.collectives import VIEWS, validate
from commsim.validation.constants import constants
from commsim.validation.measured import read_measured
from tests.validation.tables import MIB, write

if TYPE_CHECKING:
    from pathlib import Path


def test_rows_beside_their_predictions(tmp_path: Path) -> None:
    rows = [{"size_bytes": 0, "time_s": 1e-5}, {"size_bytes": MIB, "time_s": 2e-4}, {"size_bytes": MIB}]
    (case,) = validate(read_measured([write(tmp_path, rows=rows)])[0]).cases
    assert (case.size, case.measured, case.band) == (MIB, 2e-4, "1 to 64 MiB")
    assert case.error == pytest.approx(case.predicted / 2e-4 - 1)


def test_health_changes_no_prediction(tmp_path: Path) -> None:
    for health in ("healthy", "degraded", "unknown"):
        write(tmp_path, id=health, health=health)
    found = validate(read_measured([tmp_path])[0])
    predicted = [case.predicted for case in found.cases]
    assert {case.table.id for case in found.cases} == {"healthy"}
    assert [case.predicted for case in found.apart] == 2 * predicted
    assert [(name, one.groups) for name, one in found.apart_by_health().items()] == [("degraded", 1), ("unknown", 1)]


def test_each_cluster_counts_once(tmp_path: Path) -> None:
    """Two tables 10 % too fast of one cluster, one table that takes twice as long as predicted of another."""
    (first,) = validate(read_measured([write(tmp_path, rows=[{"size_bytes": MIB, "time_s": 1.0}])])[0]).cases
    (tmp_path / "a.json").unlink()
    for name, group, factor in (("b", "g", 1.25), ("c", "g", 1.25), ("d", "h", 2.0)):
        write(tmp_path, id=name, group=group, rows=[{"size_bytes": MIB, "time_s": first.predicted * factor}])
    (band,) = validate(read_measured([tmp_path])[0]).by("band").values()
    assert (band.groups, band.count) == (2, 3)
    assert band.median_error == pytest.approx((0.2 + 0.5) / 2)
    assert band.p75_error == pytest.approx(0.2 + 0.75 * 0.3)
    assert band.bias == pytest.approx(-0.35)


def test_bands_and_views(tmp_path: Path) -> None:
    found = validate(read_measured([write(tmp_path)])[0])
    assert list(found.by("band")) == ["< 1 MiB", "1 to 64 MiB", ">= 64 MiB"]
    assert [one.count for one in found.by("band").values()] == [1, 1, 2]
    assert [list(found.by(view)) for view in ("op", "machine")] == [["all_reduce"], ["hgx-h100"]]
    with pytest.raises(InputError):
        found.by("colour")


def test_what_is_skipped_says_why(tmp_path: Path) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "b": {"system": "other"},
        "c": {"library": "mpi"},
        "d": {"rows": []},
        "e": {"settings": {"algorithm": "X"}},
    }
    for name, changes in wrong.items():
        write(tmp_path, id=name, **changes)
    found = validate(read_measured([tmp_path])[0])
    assert [one.id for one in found.skipped] == [*wrong]
    assert [one.reason.partition(":")[0] for one in found.skipped] == ["system", "library", "rows", "algorithm"]
    assert (found.cases, found.by("op")) == ((), {})


def test_constants_are_counted() -> None:
    """What is NCCL's own, and what nothing of NVIDIA's was measured of, is counted apart: 60 may be fitted."""
    every, fitted = constants(calibration("nccl"))
    assert 40 < fitted <= 60
    assert every > fitted


@pytest.mark.data
def test_nearly_all_public_tables_are_answered(data: Path) -> None:
    """At least 95 % of the tables of healthy runs of NCCL and RCCL, and every row of them stands in each view."""
    tables, unread = read_measured([data / "collectives"])
    found = validate(tables, unread)
    asked = {one.id for one in tables if one.health == "healthy" and one.measurement.library in {"nccl", "rccl"}}
    answered = {case.table.id for case in found.cases}
    assert unread == []
    assert answered <= asked
    assert len(answered) >= 0.95 * len(asked)
    assert {one.id for one in found.skipped} >= asked - answered
    assert {sum(one.count for one in found.by(view).values()) for view in VIEWS} == {len(found.cases)}
