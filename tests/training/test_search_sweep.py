"""Are many searches done one after the other, and on the workers of a cluster?"""

from __future__ import annotations

import pickle
import warnings
from typing import TYPE_CHECKING

import pytest

from commsim.errors import LackError
from commsim.libraries.nccl import Nccl
from commsim.training.search.sweep import Case, outcome, searches

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = {"global_batch": 16, "top": 2, "recompute": "none"}
CASES = [Case("llama3.1-8b", "hgx-h100", {"gpus": gpus}, OPTIONS) for gpus in (4, 8)]
IMPOSSIBLE = Case("llama3.1-405b", "hgx-h100", {"nodes": 1}, OPTIONS)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler with one worker, both in this process."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Dask says of its own event loops
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as one:
            yield one.scheduler_address


def test_one_after_the_other() -> None:
    found = list(searches([*CASES, IMPOSSIBLE]))
    assert [(one.case, one.gpus, len(one.best)) for one in found] == [
        (CASES[0], 4, 2),
        (CASES[1], 8, 2),
        (IMPOSSIBLE, 0, 0),
    ]
    assert "none of" in found[-1].error
    assert found[0].best[0].step_time > found[1].best[0].step_time


def test_who_stops_keeps_what_is_done() -> None:
    assert next(searches(CASES)) == outcome(CASES[0])


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_finds_the_same(scheduler: str) -> None:
    here = list(searches([*CASES, IMPOSSIBLE]))
    there = list(searches([*CASES, IMPOSSIBLE], scheduler=scheduler))
    assert sorted(there, key=lambda one: str(one.case)) == sorted(here, key=lambda one: str(one.case))


@pytest.mark.filterwarnings("ignore")
def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commsim.training.search.sweep._PATIENCE", 0.2)
    with pytest.raises(LackError, match=r"dask: no scheduler answers at tcp://127\.0\.0\.1:9"):
        list(searches(CASES, scheduler="tcp://127.0.0.1:9"))


def test_cases_and_outcomes_travel() -> None:
    library = Nccl()
    case = Case("llama3.1-8b", "hgx-h100", {"gpus": 4}, OPTIONS, library)
    sent = pickle.loads(pickle.dumps(case))  # noqa: S301 - our own
    assert (sent.model, sent.options, sent.library.name) == (case.model, case.options, "nccl")
    found = outcome(case)
    assert pickle.loads(pickle.dumps(found)).best == found.best  # noqa: S301


def test_names() -> None:
    assert str(CASES[0]) == "llama3.1-8b on hgx-h100, 4 GPUs"
    assert str(IMPOSSIBLE) == "llama3.1-405b on hgx-h100, 1 node"
    assert str(Case("llama3.1-8b", "hgx-h100")) == "llama3.1-8b on hgx-h100"
