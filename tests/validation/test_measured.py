"""Are measured tables read with what their publishers say of them, and is what cannot be read named?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.validation.measured import read_measured
from tests.validation.tables import published, write

if TYPE_CHECKING:
    from pathlib import Path

LOG = """#       size         count      type   redop    root   time   algbw   busbw #wrong   time   algbw  busbw #wrong
#        (B)    (elements)                             (us)  (GB/s)  (GB/s)          (us)  (GB/s) (GB/s)
     1048576        262144     float     sum      -1    41.49   25.27   44.23      0    41.30   25.39   44.43      0
"""


def test_what_is_said_of_a_run(tmp_path: Path) -> None:
    (one,), skipped = read_measured([write(tmp_path, id="b", group="g", health="degraded", health_reason="sockets")])
    assert (one.id, one.group, one.health, one.reason) == ("b", "g", "degraded", "sockets")
    assert skipped == []


def test_a_folder_holds_many(tmp_path: Path) -> None:
    write(tmp_path, id="b")
    (tmp_path / "c.jsonl").write_text("".join(f"{json.dumps(published(id=name))}\n" for name in "de"))
    assert [one.id for one in read_measured([tmp_path])[0]] == ["b", "d", "e"]


def test_a_log_is_of_a_cluster_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text(LOG)
    (one,), _ = read_measured([tmp_path / "run.txt"])
    assert (one.id, one.group, one.health, one.measurement.ranks) == ("run", "run", "healthy", 8)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("{")
    write(tmp_path, id="c", health="fine")
    tables, skipped = read_measured([tmp_path, write(tmp_path, id="d")])
    assert [one.id for one in tables] == ["d", "d"]
    assert [one.id for one in skipped] == ["b", "c"]
    assert "health: 'fine'" in skipped[1].reason


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "a folder with .json files"),
        ("none.json", "^measurements: .*No such file"),
        ("b.txt", "^b.txt: 'no table'"),
    ],
)
def test_no_table_at_all(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "b.txt").write_text("nothing")
    with pytest.raises(InputError, match=said):
        read_measured([tmp_path / name])
