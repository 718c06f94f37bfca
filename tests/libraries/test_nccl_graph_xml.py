"""Are the graphs read that NCCL_GRAPH_DUMP_FILE writes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.libraries.nccl.graph_xml import read_graphs
from commsim.libraries.nccl.graphs import Graph, Path, Pattern

if TYPE_CHECKING:
    from pathlib import Path as File

CHANNEL = '<channel><net dev="0"/><gpu dev="0" rank="0"/><gpu dev="1" rank="1"/><net dev="0"/></channel>'
RING = (
    'id="0" pattern="4" crossnic="2" nchannels="2" speedintra="30" speedinter="24" latencyinter="1.5" '
    'typeintra="NVL" typeinter="PIX" samechannels="1"'
)


def dumped(*graphs: str, channels: int = 2) -> str:
    """A file with these graphs."""
    inside = "".join(f"<graph {one}>{CHANNEL * channels}</graph>" for one in graphs)
    return f'<graphs version="1">{inside}</graphs>'


def test_a_graph() -> None:
    expected = Graph(
        Pattern.RING, 2, 30e9, 24e9, Path.NVL, Path.PIX, same_channels=True, cross_nic=2, latency_inter=1.5e-6
    )
    assert read_graphs(dumped(RING)).ring == expected


def test_five_graphs_by_their_numbers(tmp_path: File) -> None:
    numbers = {0: 4, 1: 1, 2: 3, 3: 5, 4: 6}
    texts = [RING.replace('id="0" pattern="4"', f'id="{key}" pattern="{pattern}"') for key, pattern in numbers.items()]
    file = tmp_path / "graphs.xml"
    file.write_text(dumped(*texts), encoding="utf-8")
    found = read_graphs(file)
    assert {name: int(one.pattern) for name, one in found.named().items()} == {
        "ring": 4,
        "tree": 1,
        "collnet_chain": 3,
        "nvls": 5,
        "collnet_direct": 6,
    }
    assert read_graphs(str(file)) == found


def test_what_is_absent_is_empty() -> None:
    assert read_graphs(dumped(RING)).tree.channels == 0


def test_channels_are_counted_when_their_number_is_absent() -> None:
    assert read_graphs(dumped(RING.replace('nchannels="2"', ""), channels=5)).ring.channels == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<graphs", "graphs.xml: .*well-formed XML belongs here"),
        ("<system/>", "graphs.xml: '<system>'; <graphs> belongs here"),
        ("<graphs/>", "graphs.xml: 'no graph'; <graph> elements belong here"),
        (dumped(RING, RING), "graph: id: 0; 0 to 4 belong here, each once"),
        (dumped(RING.replace('id="0"', 'id="7"')), "graph: id: 7; 0 to 4 belong here"),
        (dumped(RING.replace('pattern="4"', 'pattern="9"')), "graph: pattern: 9; a pattern from 1"),
        (
            dumped(RING.replace("NVL", "NVQ")),
            "graph: typeintra: 'NVQ'; a kind of path belongs here; did you mean 'NVL'?",
        ),
        (dumped(RING.replace('speedintra="30"', 'speedintra="-3"')), "speedintra: '-3'; a number that is not negative"),
        (dumped(RING.replace('speedintra="30"', 'speedintra="nan"')), "speedintra: 'nan'; a number"),
        (dumped(RING.replace('samechannels="1"', "")), "graph: samechannels: ''; a whole number from 0 to 1"),
        ('<!DOCTYPE x [<!ENTITY y "z">]><graphs/>', "a document type or entity"),
    ],
)
def test_mistakes_are_one_line(text: str, said: str, tmp_path: File) -> None:
    file = tmp_path / "graphs.xml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said) as refused:
        read_graphs(file)
    assert "\n" not in str(refused.value)


def test_an_absent_file() -> None:
    with pytest.raises(InputError, match=r"nowhere\.xml: .*a readable file belongs here"):
        read_graphs("nowhere.xml")
