"""Are archives and tables of steps read as they are meant, and refused or mended where they are damaged?"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from commsim.errors import InputError
from commsim.measurement.traces import npz, operations
from commsim.measurement.traces.steps import BACKWARD, FORWARD, GATHER, MESSAGES, RECEIVES, SCATTER, SEPARATE
from commsim.stragglers.replay.steps import replay_steps
from tests.stragglers.traced import REPLICAS, SHAPE, STAGES, STEPS, even, messages, rows, trace

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.traces.steps import StepTrace


@pytest.fixture(scope="module")
def made() -> StepTrace:
    """Return steps with jitter, messages and collectives of data parallelism."""
    rng = np.random.default_rng(0)
    once = (STAGES, 1, STEPS, REPLICAS)
    seconds = {**even(), **messages(0.01), GATHER: np.full(once, 0.2), SCATTER: np.full(once, 0.3)}
    return trace({op: one * rng.lognormal(0.0, 0.1, one.shape) for op, one in seconds.items()})


@pytest.fixture(scope="module")
def table(made: StepTrace) -> list[str]:
    """Return the lines of their table."""
    return rows(made)


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_table_says_what_the_archive_says(tmp_path: Path, made: StepTrace, table: list[str]) -> None:
    told, found = replay_steps(made), replay_steps(operations.read(written(tmp_path / "t.csv", table)))
    assert found.actual == pytest.approx(told.actual)
    assert found.ideal == pytest.approx(told.ideal)
    assert found.by_op == pytest.approx(told.by_op)
    assert found.measured == pytest.approx(found.actual)


def test_parquet_and_gzip_hold_the_same(tmp_path: Path, table: list[str]) -> None:
    plain = written(tmp_path / "t.csv", table)
    pq.write_table(pa.csv.read_csv(plain), tmp_path / "t.parquet")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    times = [operations.read(tmp_path / name).seconds[FORWARD] for name in ("t.csv", "t.parquet", "t.csv.gz")]
    assert np.allclose(times[0], times[1], rtol=1e-12, atol=0)
    assert np.array_equal(times[0], times[2])


def test_chunks_of_a_stage_and_gradients_that_leave_early(tmp_path: Path) -> None:
    """Interleaved chunks, each with a gather and a scatter of its own: from the order of the table alone."""
    rng, size = np.random.default_rng(1), (2, 8, 2, 2)
    seconds = {FORWARD: rng.uniform(1, 2, size), BACKWARD: rng.uniform(2, 3, size)}
    seconds |= {op: np.full((2, 2, 2, 2), 0.5) for op in (GATHER, SCATTER)} | {SEPARATE: np.full((2, 1, 2, 2), 0.1)}
    made = trace(seconds, "interleaved", 2)
    chunk = np.array([[0, 2], [1, 3]])
    made = type(made)(**{**vars(made), "chunk": {**made.chunk, GATHER: chunk, SCATTER: chunk[:, ::-1]}})
    found = operations.read(written(tmp_path / "t.csv", rows(made)))
    assert found.order == made.order
    assert np.array_equal(found.chunk[SCATTER], chunk[:, ::-1])
    assert replay_steps(found).actual == pytest.approx(replay_steps(made).actual)


def test_the_first_receive_of_a_pipeline_may_be_missing(tmp_path: Path) -> None:
    """Of interleaved chunks the first stage receives, too; profilers leave out what it would receive first."""
    rng, size = np.random.default_rng(2), (2, 8, 2, 2)
    seconds = {FORWARD: rng.uniform(1, 2, size), BACKWARD: rng.uniform(2, 3, size)}
    seconds |= {op: rng.uniform(0.1, 0.2, size) for op in MESSAGES}
    seconds[RECEIVES[FORWARD]][0, 0] = np.nan
    made = trace(seconds, "interleaved", 2)
    found = operations.read(written(tmp_path / "t.csv", rows(made)))
    assert np.array_equal(np.isnan(found.seconds[RECEIVES[FORWARD]]), np.isnan(seconds[RECEIVES[FORWARD]]))
    assert replay_steps(found).actual == pytest.approx(replay_steps(made).actual)


def test_messages_that_move_nothing_are_dropped(tmp_path: Path, made: StepTrace, table: list[str]) -> None:
    """A receive after the last forward pass of stage 1, in every step of every replica."""
    more = [
        f"{replica},1,{REPLICAS + replica},{step},forward-recv,{100 * step + 60},0.1,8,0"
        for step, replica in np.ndindex(made.shape)
    ]
    found = replay_steps(operations.read(written(tmp_path / "t.csv", table + more)))
    assert found.actual == pytest.approx(replay_steps(made).actual)


def test_clocks_apart_are_set(tmp_path: Path, made: StepTrace, table: list[str]) -> None:
    """Replica 1 of stage 2 is 7 s ahead."""
    late = [table[0]]
    for line in table[1:]:
        one = line.split(",")
        one[5] = repr(float(one[5]) + 7.0 * (one[:2] == ["1", "2"]))
        late.append(",".join(one))
    found = replay_steps(operations.read(written(tmp_path / "t.csv", late)))
    assert found.actual == pytest.approx(replay_steps(made).actual, rel=1e-3)
    assert found.measured == pytest.approx(found.actual, rel=1e-2)
    assert not any("set to 0" in said for said in found.repairs)
    assert any("clocks 7 s apart" in said for said in found.repairs)


def test_ranks_of_a_tensor_group_are_one(tmp_path: Path, table: list[str]) -> None:
    peers = [line.replace(",0,0,", ",0,900,", 1) for line in table if line.startswith("0,0,0,")]
    assert peers
    found = operations.read(written(tmp_path / "t.csv", table + peers))
    assert found.ranks[0, 0] == 0
    assert any("share a stage" in said for said in found.repairs)


@pytest.mark.parametrize(
    ("gone", "left", "said"),
    [("3,2,", (STEPS, REPLICAS - 1), "replicas 3"), ("0,0,0,2,", (STEPS - 1, REPLICAS), f"1 of {STEPS} steps")],
)
def test_what_is_missing_is_left_out(
    tmp_path: Path, table: list[str], gone: str, left: tuple[int, int], said: str
) -> None:
    found = operations.read(written(tmp_path / "t.csv", [line for line in table if not line.startswith(gone)]))
    assert found.shape == left
    assert any(said in one for one in found.repairs)


def test_numbers_of_replicas_and_steps_are_kept(tmp_path: Path, table: list[str]) -> None:
    odd = [line for line in table if not line.startswith(("0,", "1,"))]
    assert replay_steps(operations.read(written(tmp_path / "t.csv", odd))).by_rank.keys() == set(range(2, REPLICAS))


def test_operations_that_few_steps_have_are_left_out(tmp_path: Path, table: list[str]) -> None:
    found = operations.read(written(tmp_path / "t.csv", [*table, "0,0,0,0,separate-grads-all-reduce,50.0,1.0,0,0"]))
    assert any("1 operations that most steps do not have" in said for said in found.repairs)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [lines[0]], "optype"),
        (lambda lines: [line for line in lines if line.split(",")[1] != "2"], "no forward-compute of stage 2"),
        (lambda lines: [lines[0].replace("duration", "took"), *lines[1:]], "column 'duration'"),
        (lambda lines: [*lines, "0,0,0,0,forward-compute,nan,1.0,0,0"], "start_ts, row"),
        (lambda lines: [*lines, "0,0,0,0,forward-compute,0.0,-1.0,0,0"], "at least 0"),
        (lambda lines: [*lines, "0,0.5,0,0,forward-compute,0.0,1.0,0,0"], "whole number"),
        (lambda lines: [*lines, "0,0,0,0,forward-compute,soon,1.0,0,0"], "'soon'"),
        (lambda lines: [*lines, "0,0,0,0,forward-compute,0.0,1.0,99999,0"], "seq_id"),
        (lambda lines: [line.replace("forward-compute", "step") for line in lines], "forward-compute"),
    ],
)
def test_tables_that_are_none(tmp_path: Path, table: list[str], change: object, said: str) -> None:
    assert callable(change)
    with pytest.raises(InputError, match=said):
        operations.read(written(tmp_path / "t.csv", change(table)))


def test_damaged_rows_are_counted(tmp_path: Path, table: list[str]) -> None:
    found = operations.read(written(tmp_path / "t.csv", [*table, "0,0,0"]))
    assert "1 rows with missing fields: left out" in found.repairs


def test_parquet_cut_short(tmp_path: Path, table: list[str]) -> None:
    pq.write_table(pa.csv.read_csv(written(tmp_path / "t.csv", table)), tmp_path / "t.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:2000])
    with pytest.raises(InputError, match="whole Parquet file"):
        operations.read(tmp_path / "cut.parquet")


def archive(path: Path, **arrays: object) -> Path:
    np.savez(path, **{name: np.asarray(one) for name, one in arrays.items()})  # type: ignore[arg-type]
    return path


PASSES = {"forward_compute": np.ones(SHAPE), "backward_compute": np.ones(SHAPE)}


def test_archive_with_gaps(tmp_path: Path) -> None:
    gaps = np.ones(SHAPE)
    gaps[1, 2, 3, 4] = np.nan
    gaps[:, :, :, 6] = np.nan
    found = npz.read(archive(tmp_path / "t.npz", **PASSES | {"forward_compute": gaps, "actual_step_s": np.ones(STEPS)}))
    assert found.steps == (0, 1, 2, 4, 5)
    assert found.numbers == (0, 1, 2, 3, 4, 5, 7)
    assert found.measured is not None
    assert found.measured.size == STEPS - 1


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"something": np.ones(3)}, "forward_compute"),
        ({"forward_compute": np.ones((2, 3))}, "micro-batch"),
        ({"forward_compute": -np.ones(SHAPE)}, "not negative"),
        ({"forward_compute": np.full(SHAPE, np.inf)}, "finite"),
        ({"forward_compute": np.full(SHAPE, np.nan)}, "one of each stage"),
        ({"forward_compute": np.array([{}])}, "npz"),
        (PASSES | {"backward_compute": np.ones((STAGES, 8, STEPS + 1, REPLICAS))}, "as many stages"),
        (PASSES | {"actual_step_s": np.ones(2)}, "one for each step"),
    ],
)
def test_archives_that_are_none(tmp_path: Path, arrays: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        npz.read(archive(tmp_path / "t.npz", **arrays))


def test_archive_cut_short(tmp_path: Path) -> None:
    path = archive(tmp_path / "t.npz", **PASSES)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(InputError, match="npz"):
        npz.read(path)


def test_archives_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "MOST", 1000)
    with pytest.raises(InputError, match="at most 1000 B"):
        npz.read(archive(tmp_path / "t.npz", **PASSES))
