"""Is a file known by what it holds?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.hardware.dumps import from_file
from tests.hardware.boxes import pair, to_switch

if TYPE_CHECKING:
    from pathlib import Path

MATRIX = "\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n"


@pytest.mark.parametrize("content", [pair(links=to_switch()), "\n<!-- ours -->" + pair(links=to_switch())])
def test_xml_is_known_by_its_content(tmp_path: Path, content: str) -> None:
    (tmp_path / "box.txt").write_text(content, encoding="utf-8")
    system = from_file(tmp_path / "box.txt")
    assert system is not None
    assert system.accelerator.name == "h100-sxm"


def test_a_matrix_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "box.out").write_text(f"# some host\n{MATRIX}", encoding="utf-8")
    system = from_file(str(tmp_path / "box.out"), "l4")
    assert system is not None
    assert system.gpus == 2


@pytest.mark.parametrize("name", ["hgx-h100", "nowhere.xml", "a\0b", "x" * 5000, "own.yaml"])
def test_what_is_no_such_file_is_left_to_the_catalogue(tmp_path: Path, name: str) -> None:
    (tmp_path / "own.yaml").write_text("name: own\n", encoding="utf-8")
    assert from_file(tmp_path / name) is None


@pytest.mark.parametrize("content", [b"", b"name: own\n", b"\xff\xfe\x00", b"{}"])
def test_other_files_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "box").write_bytes(content)
    with pytest.raises(InputError, match="NCCL topology XML or the output") as caught:
        from_file(tmp_path / "box")
    assert "\n" not in str(caught.value)
