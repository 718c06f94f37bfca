"""Does `commsim show` say what a machine is made of, and where each figure is from?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.hardware.catalogue import load
from commsim.hardware.shelf import names
from tests.hardware.boxes import pair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


def test_document(commsim: Callable[..., Answer]) -> None:
    """144 cables: 8 GPUs of 18 NVLinks (NVIDIA H100 datasheet: 900 GB/s a GPU, both directions)."""
    nvlink = commsim("show", "hgx-h100", "--json").document["links"]["nvlink4"]
    assert (nvlink["count"], nvlink["bandwidth_bytes_per_s"], nvlink["range"]) == (144, 25e9, None)
    assert nvlink["source"].startswith("announced [")
    assert nvlink["latency_s"] > 0


def test_what_software_reaches_is_of_the_vendors_library(commsim: Callable[..., Answer]) -> None:
    """48 of the 64 GB/s of a link of MI300X, by RCCL (ROCm/rccl issue 1210)."""
    links = commsim("show", "mi300x", "--json").document["links"]
    assert links["xgmi-mi300x"]["efficiency"] == pytest.approx(48 / 64)


def test_uncertain_figures_are_ranges(commsim: Callable[..., Answer]) -> None:
    nvlink = commsim("show", "rubin-ultra-nvl576", "--json").document["links"]["nvlink7"]
    low, high = nvlink["range"]["bandwidth_bytes_per_s"]
    assert low < high
    assert low <= nvlink["bandwidth_bytes_per_s"] <= high


@pytest.mark.parametrize("name", names())
def test_every_system_is_shown(commsim: Callable[..., Answer], name: str) -> None:
    answer = commsim("show", name, "--sources")
    assert (answer.code, answer.err) == (0, "")
    assert [link.kind for link in load(name).topology.kinds if link.kind not in answer.out.replace("\n", " ")] == []


def test_options_change_the_machine(commsim: Callable[..., Answer]) -> None:
    options = ("--nodes", 4, "--gpus-per-node", 4, "--nics-per-node", 2, "--nic", "200 Gb/s", "--fabric", "roce")
    shown = commsim("show", "hgx-h100", *options, "--oversubscription", 2, "--json").document
    nic = next(link for kind, link in shown["links"].items() if kind.startswith("roce"))
    assert (shown["gpus"], shown["nodes"], shown["nics_per_node"]) == (16, 4, 2)
    assert nic["bandwidth_bytes_per_s"] == pytest.approx(25e9)


def test_part_of_a_scale_up_domain(commsim: Callable[..., Answer]) -> None:
    shown = commsim("show", "gb200-nvl72", "--gpus", 128, "--gpus-per-domain", 64, "--json").document
    assert (shown["gpus"], shown["nodes"]) == (128, 32)


def test_another_accelerator(commsim: Callable[..., Answer]) -> None:
    assert commsim("show", "hgx-h100", "--accelerator", "h200-sxm", "--json").document["accelerator"] == "h200-sxm"


def test_calibration_says_what_is_reached(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text('name: mine\nlinks: {"*": {efficiency: 0.25}}\n', encoding="utf-8")
    links = commsim("show", "hgx-h100", "--calibration", file, "--json").document["links"]
    assert {link["efficiency"] for link in links.values()} == {0.25}


def test_topology_file(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    """A user's own box, as NCCL dumps it: two sockets with an H100 and a NIC each."""
    file = tmp_path / "box.xml"
    file.write_text(pair(), encoding="utf-8")
    shown = commsim("show", file, "--accelerator", "h100-pcie", "--json").document
    assert (shown["gpus"], shown["nics_per_node"], shown["accelerator"]) == (2, 2, "h100-pcie")


def test_words_in_brackets_are_words(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text('like: hgx-h100\ntitle: "[red]A[/] [bold]box"\nassumptions: ["[link=x]y"]\n', encoding="utf-8")
    out = commsim("show", file).out
    assert "[red]A[/] [bold]box" in out
    assert "[link=x]y" in out


def test_own_file(commsim: Callable[..., Answer], tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text("like: hgx-h100\ntitle: My box\nscale_out: {nic: 200 Gb/s}\n", encoding="utf-8")
    answer = commsim("show", file, "--nodes", 2)
    assert (answer.code, answer.err) == (0, "")
    assert "My box" in answer.out
    assert "8 NICs of 200 Gb/s a node" in answer.out
