"""Can collectives be measured from Python?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import commsim as cs

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sweep(tmp_path: Path) -> None:
    (found,) = cs.bench(
        "broadcast", tmp_path / "run.jsonl", ranks=1, backend="gloo", sizes="8,64", iterations=2, warmup=0
    )
    assert (found.op.name, list(found.sizes), found.library) == ("broadcast", [8, 64], "gloo")
    assert [len(row.timing.samples[0]) for row in found.rows] == [2, 2]


def test_another_backend(tmp_path: Path) -> None:
    with pytest.raises(cs.InputError, match="did you mean 'gloo'"):
        cs.bench("broadcast", tmp_path / "run.jsonl", ranks=1, backend="glo")


def test_what_does_not_fit_into_memory(tmp_path: Path) -> None:
    with pytest.raises(cs.CommsimError, match="choose fewer or smaller"):
        cs.bench("broadcast", tmp_path / "run.jsonl", ranks=2, backend="gloo", sizes="1P")


def test_a_rank_says_what_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(cs.CommsimError, match="ranks from 0 to 0 belong here") as told:
        cs.bench("broadcast", tmp_path / "run.jsonl", ranks=1, backend="gloo", sizes="8", late={3: 0.1})
    assert told.value.exit_code == 2
