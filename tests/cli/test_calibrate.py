"""Does the command fit constants to runs, write them, and say what it could not tell?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.measurement.printed import log
from tests.validation.tables import MIB, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """An all-gather of eight A100 at 160 GB/s of bus bandwidth, after 40 us."""
    sizes = [MIB * 4**n for n in range(7)]
    rows = [{"size_bytes": size, "time_s": 40e-6 + size * 7 / 8 / 160e9} for size in sizes]
    return write(tmp_path, op="all_gather", system="hgx-a100", rows=rows)


def test_fit(commsim: Callable[..., Answer], ring: Path) -> None:
    answer = commsim("calibrate", "hgx-a100", ring)
    assert (answer.code, answer.err) == (0, "")
    assert "links.nvlink3.efficiency" in answer.out
    assert "not told by these runs" in answer.out


def test_document(commsim: Callable[..., Answer], ring: Path) -> None:
    found = commsim("calibrate", "hgx-a100", ring, "--json").document
    assert found["rows"] == 7
    assert found["median_error"] < found["median_error_before"]
    told = {one["constant"]: one for one in found["constants"]}
    assert all(one["low"] <= one["value"] <= one["high"] for one in told.values())
    links, channels = (
        told["links.nvlink3.efficiency"]["value"] * 300e9,
        told["links.nvlink3.copy"]["value"] * 24 * 7 / 8,
    )
    assert min(links, channels) == pytest.approx(160e9, rel=0.1), "either may be the limit: one operation does not tell"


def test_what_is_written_is_used(commsim: Callable[..., Answer], ring: Path, tmp_path: Path) -> None:
    out = tmp_path / "ours.yaml"
    answer = commsim("calibrate", "hgx-a100", ring, "--out", out)
    assert "use it with --calibration" in " ".join(answer.out.split())
    timed = [
        commsim("cost", "hgx-a100", "all_gather", "--size", "4GiB", "--json", *more).document[0]["busbw_bytes_per_s"]
        for more in ((), ("--calibration", out))
    ]
    assert timed[1] == pytest.approx(160e9, rel=0.05)
    assert timed[0] > timed[1] * 1.1


def test_one_rank_tells_nothing(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    answer = commsim("calibrate", "hgx-a100", write(tmp_path, system="hgx-a100", ranks=1))
    assert (answer.code, answer.out) == (2, "")
    assert "'1 rank'; at least two" in answer.err


def test_runs_of_other_gpus_are_refused(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    path = tmp_path / "all_reduce.log"
    path.write_text(log(), encoding="utf-8")
    answer = commsim("calibrate", "mi355x", path)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "the GPUs are NVIDIA H100 80GB HBM3, those of mi355x are AMD Instinct MI355X" in answer.err
    assert commsim("calibrate", "hgx-h200", path).code == 0  # another box of the same architecture


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("hgx-a10", "RUN"), "did you mean 'hgx-a100'"),
        (("hgx-a100", "nowhere.log"), "nowhere.log"),
        (("hgx-a100", "RUN", "--out", "ours.txt"), "a file that ends in .yaml"),
        (("hgx-a100", "RUN", "--out", "no/such/folder/ours.yaml"), "it cannot be written"),
        (("hgx-a100", "RUN", "--library", "ideal"), "a library that has constants"),
        (("hgx-a100", "RUN", "--seed", "-1"), "seed: -1"),
        (("hgx-a100", "RUN", "--op", "reduce"), "the table shows all_gather on 8 ranks"),
        (("hgx-a100", "RUN", "--ranks", "4"), "the table shows all_gather on 8 ranks"),
    ],
)
def test_mistakes(commsim: Callable[..., Answer], ring: Path, arguments: tuple[str, ...], says: str) -> None:
    answer = commsim("calibrate", *(ring if one == "RUN" else one for one in arguments))
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
