"""Are NCCL's own tables of latency and bandwidth read?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.measurement.readers.nccl_debug import tuning_tables

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = (
    "  Algorithm   |                 Tree                  |                 Ring                  |",
    "  Protocol    |         LL |      LL128 |     Simple |         LL |      LL128 |     Simple |",
    " Max NThreads |        512 |        640 |        512 |        512 |        640 |        256 |",
    "    Broadcast |   0.0/ 0.0 |   0.0/ 0.0 |   0.0/ 0.0 |   9.3/ 1.2 |  18.0/ 0.0 |  22.4/ 2.4 |",
    "    AllReduce |  16.8/ 0.5 |  31.0/ 0.0 |  36.4/ 1.9 |  16.6/ 1.2 |  31.0/ 0.0 |  36.4/ 2.4 |",
)


def written(path: Path, *lines: str) -> Path:
    target = path / "debug.log"
    target.write_text("\n".join(lines), encoding="utf-8")
    return target


def test_interleaved_ranks_print_one_table(tmp_path: Path) -> None:
    lines = [f"gpu-a7:42:{43 + rank} [{rank}] NCCL INFO {line}" for line in BLOCK for rank in (0, 1)]
    (table,) = tuning_tables(written(tmp_path, *lines))
    assert sorted(table) == ["all_reduce", "broadcast"]
    assert sorted(table["all_reduce"]) == ["Ring/LL", "Ring/Simple", "Tree/LL", "Tree/Simple"]
    cell = table["all_reduce"]["Tree/LL"]
    assert (cell.latency, cell.algbw) == pytest.approx((16.8e-6, 0.5e9))


def test_a_cut_row_and_no_table_are_refused(tmp_path: Path) -> None:
    said = "gpu-a7:42:43 [0] NCCL INFO "
    with pytest.raises(InputError, match=r"line 3: .*6 pairs of latency and bandwidth"):
        tuning_tables(written(tmp_path, *(said + line for line in (*BLOCK[:2], BLOCK[3][:50]))))
    with pytest.raises(InputError, match="TUNING belongs here"):
        tuning_tables(written(tmp_path, said + "Connected all rings"))


@pytest.mark.data
def test_a_log_of_two_ranks_over_sockets(data: Path) -> None:
    (table,) = tuning_tables(data / "formats" / "nccl_debug" / "tuning_table_2.29.7_socket_2rank.log")
    pat = table["all_gather"]["PAT/Simple"]
    assert (pat.latency, pat.algbw) == pytest.approx((17.6e-6, 3.6e9))
    assert table["all_reduce"]["Ring/Simple"].algbw == pytest.approx(2.4e9)
    assert "CollNetDirect/Simple" not in table["all_reduce"]
