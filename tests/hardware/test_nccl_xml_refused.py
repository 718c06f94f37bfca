"""Is a file that describes no machine refused in one clear line?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.hardware.nccl_xml import machine, read_xml
from commsim.hardware.nccl_xml.elements import DEEPEST, LARGEST_FILE, LONGEST_VALUE, MOST_ATTRIBUTES, MOST_CHILDREN
from tests.hardware.boxes import (
    A100,
    UNKNOWN,
    amd,
    box,
    cpu,
    gpu,
    net,
    nic,
    pair,
    pci,
    rack,
    tag,
    to_switch,
)
from tests.hardware.refusals import refused

if TYPE_CHECKING:
    from pathlib import Path


LONE = gpu("0000:11:00.0", 0)


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        ("<system", "well-formed"),
        ("<graphs version='1'/>", "<system>"),
        (box(cpu(0, LONE)).replace('version="1"', 'version="3"'), "'3'"),
        (box(cpu(0, LONE)).replace('version="1"', ""), "version"),
        (box(), "no GPU"),
        (box(cpu(0, pci("0000:10:00.0"))), "no GPU"),
        (box(LONE), "nothing joins it"),
        (box(cpu(0, tag("gpu", dev=0, sm=90, rank=0))), "its PCI device"),
        (box(cpu(0, LONE, gpu("0000:11:00.0", 1))), "PCIe is a tree"),
        (box(cpu(0, pci("0000:10:00.0", pci("0000:10:00.0", LONE)))), "PCIe is a tree"),
        (box(cpu(0, LONE, gpu("", 1))), "busid"),
        (box(cpu(0, LONE, gpu("0000:12:00.0", 0))), "a rank of its own"),
        (box(cpu(0, LONE, gpu("0000:12:00.0", None))), "no rank"),
        (box(cpu(0, gpu("0000:11:00.0", 0).replace('rank="0"', 'rank="x"'))), "'x'"),
        (box(cpu(0, LONE.replace("<gpu", "<gpu/><gpu"))), "2 GPUs"),
        (box(cpu(0, LONE.replace("</pci>", pci("0000:13:00.0", gpu("0000:14:00.0", 1)) + "</pci>"))), "bridge"),
        (box(cpu(0, gpu("0000:11:00.0", 0, link_speed="9 GT/s"))), "no rate of PCI Express"),
        (box(cpu(0, gpu("0000:11:00.0", 0, link_speed="nan GT/s"))), "no rate of PCI Express"),
        (box(cpu(0, gpu("0000:11:00.0", 0, link_width="-16"))), "from 0 to 32"),
        (box(cpu(0, gpu("0000:11:00.0", 0, to_switch(0)))), "count"),
        (box(cpu(0, gpu("0000:11:00.0", 0, to_switch(-3)))), "count"),
        (box(cpu(0, gpu("0000:11:00.0", 0, tag("nvlink", target=UNKNOWN)))), "count"),
        (box(cpu(0, gpu("0000:11:00.0", 0, tag("c2c", bw="nan", count=1)))), "'nan'"),
        (box(cpu(0, gpu("0000:11:00.0", 0, *[tag("c2c", bw=1, count=1)] * 2))), "two <c2c>"),
        (box(cpu(0, LONE, nic("0000:12:00.0", net(0, speed="inf")))), "'inf'"),
        (box(cpu(0, LONE, nic("0000:12:00.0", net(0, speed=-5)))), "speed"),
        (box(cpu(0, LONE, nic("0000:12:00.0", net(0, latency="nan")))), "latency"),
        (box(cpu(0, pci("0000:10:00.0", tag("pcilink", target="0000:99:00.0"), LONE))), "busid of a PCIe switch"),
        (box(cpu(0, pci("0000:10:00.0", tag("pcilink", target="0000:10:00.0"), LONE))), "joined already"),
        (box(cpu(0, LONE, gpu("0000:12:00.0", 1, sm=80, device=A100))), "one kind"),
        (box(cpu(0, gpu("0000:11:00.0", 0, device="0x9999"))), "name it"),
        (box(cpu(0, amd("0000:01:00.0", 0, "0000:02:00.0", gcn="777")), version=2), "gcn"),
        (rack(2).replace('rank="1"', 'rank="9"'), "interleaved"),
        (rack(2).replace(to_switch(), "", 1), "a host apart"),
        (rack(2).replace("</system>", cpu(0, host="0x9") + "</system>"), "without a GPU"),
    ],
)
def test_mistakes_are_told_in_one_line(xml: str, words: str) -> None:
    assert words in refused(xml)


def test_pcilinks_in_a_circle_are_refused() -> None:
    inside = [
        pci(f"0000:{n}0:00.0", tag("pcilink", target=f"0000:{(n + 1) % 3}0:00.0"), gpu(f"0000:{n}1:00.0", n))
        for n in range(3)
    ]
    assert "circle" in refused(box(cpu(0, *inside)))


@pytest.mark.parametrize(
    ("accelerator", "words"),
    [("h1000-sxm", "did you mean"), ("a100-sxm-80gb", "sm 90"), ("mi300x", "sm 90")],
)
def test_the_accelerator_named_must_be_that_of_the_file(accelerator: str, words: str) -> None:
    assert words in refused(pair(), accelerator)


def test_a_place_is_named_by_its_way() -> None:
    line = refused(box(cpu(3, pci("0000:10:00.0", gpu("0000:11:00.0", 0, to_switch(0))))))
    assert f"topology: cpu 3 > pci 0000:10:00.0 > pci 0000:11:00.0 > gpu 0 > nvlink {UNKNOWN}: count" in line


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (box(cpu(0, "<pci/>" * (MOST_CHILDREN + 1))), "children"),
        (box(cpu(0, "<pci " + " ".join(f'a{n}="1"' for n in range(MOST_ATTRIBUTES + 1)) + "/>")), "attributes"),
        (box(cpu(0, f'<pci busid="{"0" * (LONGEST_VALUE + 1)}"/>')), "characters"),
        ("<system version='1'>" + "<pci>" * DEEPEST, "levels"),
        ("<" + "x" * LARGEST_FILE, "bytes"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><system version="1">&b;</system>', "document type"),
    ],
)
def test_what_is_out_of_bounds_is_refused(xml: str, words: str) -> None:
    assert words in refused(xml)


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "huge.xml").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    assert "bytes" in refused(str(tmp_path / "huge.xml"))


def test_files_say_their_encoding() -> None:
    assert machine(pair().encode("utf-16"), "wide.xml").gpus == 2
    with pytest.raises(InputError, match="encoding"):
        machine(b'<?xml version="1.0" encoding="nonesuch"?><system version="1"/>', "odd.xml")


@pytest.mark.parametrize("path", ["nowhere.xml", "/", "a\0b"])
def test_files_that_cannot_be_read(path: str) -> None:
    assert "a readable file belongs here" in refused(path)


@given(st.one_of(st.text(), st.binary(), st.text().map(lambda text: f"<system version='1'>{text}</system>")))
def test_nothing_but_one_line_comes_of_noise(content: str | bytes) -> None:
    with pytest.raises(InputError):
        machine(content, "noise.xml")


VALUES = st.one_of(
    st.text(alphabet="0123456789abcdefx:.- GTsPCIe/", max_size=12),
    st.sampled_from(["0", "-1", "1e9", "nan", "inf", "0x030200", "0x068000", "0000:11:00.0", "999999999999", ""]),
)


@given(st.data())
def test_a_damaged_file_is_a_machine_or_one_line(data: st.DataObject) -> None:
    pieces = pair(links=to_switch()).split('"')
    for place in data.draw(st.lists(st.sampled_from(range(1, len(pieces), 2)), min_size=1, max_size=3)):
        pieces[place] = data.draw(VALUES)
    try:
        assert read_xml('"'.join(pieces), "h100-sxm").topology.size in {1, 2}
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either way is right, a traceback is not


WORDS = ["cpu", "pci", "gpu", "nic", "net", "nvlink", "xgmi", "c2c", "pcilink"]
SAID = [
    "busid",
    "class",
    "link_speed",
    "link_width",
    "rank",
    "sm",
    "gcn",
    "target",
    "count",
    "tclass",
    "bw",
    "dev",
    "guid",
]
ELEMENTS = st.recursive(
    st.builds(
        lambda name, said: tag(name, **said), st.sampled_from(WORDS), st.dictionaries(st.sampled_from(SAID), VALUES)
    ),
    lambda inside: st.builds(tag, st.sampled_from(WORDS[:4]), st.lists(inside, max_size=4)),
)


@given(st.lists(ELEMENTS, max_size=4))
def test_a_tree_of_known_words_is_a_machine_or_one_line(elements: list[str]) -> None:
    try:
        assert read_xml(box(cpu(0, LONE, *elements)), "h100-sxm").gpus > 0
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either way is right, a traceback is not
