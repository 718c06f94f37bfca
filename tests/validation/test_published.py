"""Is a table of published results read as it stands, and is one that is none refused in a line?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.validation import rows
from commsim.validation.published import changed, read_published
from tests.validation.published_rows import SHIPPED, cells, result, write

if TYPE_CHECKING:
    from pathlib import Path


def test_cells_are_read_by_kind(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", cells(cp="2.0", sp="0", overlap_data="", fabric_gbit_per_s_per_node="1600"))
    expected = result(cp=2, sp=False, overlap_data=None, fabric_gbit_per_s_per_node=1600.0)
    assert read_published(path) == [expected]


def test_columns_of_others_are_left_alone(tmp_path: Path) -> None:
    assert read_published(write(tmp_path / "a.csv", {**cells(), "weather": "fine"})) == [result()]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", cells())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_published(path)[0].row_id == "A1"


def test_what_is_not_stated_is_told(tmp_path: Path) -> None:
    (read,) = read_published(write(tmp_path / "a.csv", cells(tp="", system="")))
    assert read.missing == ["tp", "system"]


def test_shipped_results_name_their_source() -> None:
    shipped = read_published(SHIPPED / "training.csv")
    assert len(shipped) == 1029
    assert [one.row_id for one in shipped if not one.source] == []


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("seq_len", "nan"),
        ("seq_len", "-1"),
        ("seq_len", "4096.5"),
        ("tp", "eight"),
        ("n_gpus", "1e30"),
        ("step_time_to_predict_s", "inf"),
        ("step_time_to_predict_s", "-2"),
        ("core", "yes"),
    ],
)
def test_what_is_no_figure_is_refused(tmp_path: Path, column: str, text: str) -> None:
    with pytest.raises(InputError, match=f"A1: {column}: '{text}'"):
        read_published(write(tmp_path / "a.csv", cells(**{column: text})))


def test_missing_columns_are_named(tmp_path: Path) -> None:
    row = {key: value for key, value in cells().items() if key not in {"tp", "system"}}
    with pytest.raises(InputError, match="columns are missing: tp, system"):
        read_published(write(tmp_path / "a.csv", row))


@pytest.mark.parametrize("names", [("A1", "A1"), ("A1", "")])
def test_every_row_needs_a_name_of_its_own(tmp_path: Path, names: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="row_id"):
        read_published(write(tmp_path / "a.csv", *(cells(row_id=name) for name in names)))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"row_id\n\x00", b"a" * 200_000, b"row_id,tp\nA1\n"])
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.csv"):
        read_published(path)


def test_a_row_of_another_length_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", cells())
    path.write_text(path.read_text(encoding="utf-8") + "A2,llama3-8b\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3"):
        read_published(path)


def test_an_endless_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 3)
    path = write(tmp_path / "a.csv", *(cells(row_id=f"A{number}") for number in range(4)))
    with pytest.raises(InputError, match="more than 3 rows"):
        read_published(path)
    assert len(read_published(write(path, *(cells(row_id=f"A{number}") for number in range(3))))) == 3


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a readable CSV file belongs here"):
        read_published(tmp_path / "nonesuch.csv")


def test_a_blank_cell_takes_the_place_of_what_was_stated() -> None:
    stated = result(cp=2, attention_kernel="flash2", overlap_data=True)
    blank = {"cp": "", "attention_kernel": "", "overlap_data": ""}
    assert changed(stated, "a", blank) == result(cp=None, attention_kernel="", overlap_data=None)
    assert changed(stated, "a", {"cp": "4"}) == result(cp=4, attention_kernel="flash2", overlap_data=True)
