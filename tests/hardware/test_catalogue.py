"""Does every figure of the catalogue say where it comes from, and is every file that cannot be refused in one line?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commsim.errors import InputError
from commsim.figures import Figure, is_range
from commsim.hardware.catalogue import figures, load
from commsim.hardware.entries import FabricFigures, LinkFigures, SystemFigures
from commsim.hardware.naming import aliases, described
from commsim.hardware.shelf import accelerator, link_kinds, names, sources
from commsim.hardware.system import Accelerator
from commsim.reading import load_yaml, read
from commsim.shipped import folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

every_system = pytest.mark.parametrize("name", sorted(names()))
every_accelerator = pytest.mark.parametrize("name", sorted(aliases("accelerators")))


def within(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Every value below, with its path; a dataclass is its fields."""
    below = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    if below is None and isinstance(value, tuple):
        below = dict(enumerate(value))
    if isinstance(value, Figure) or not below:
        yield path, value
    else:
        for key, inner in below.items():
            yield from within(inner, f"{path}: {key}")


def unsourced(value: object, path: str) -> list[str]:
    """The paths of the figures that do not say how they are known, or cite what is no source."""
    known = sources()
    found = [(where, figure) for where, figure in within(value, path) if isinstance(figure, Figure)]
    assert found
    return [where for where, f in found if f.status == "given" or not f.source or not set(f.source) <= set(known)]


def bare(value: object, path: str) -> list[str]:
    """The paths of the numbers with a fraction that are no figures."""
    return [where for where, number in within(value, path) if type(number) is float and number != 1.0]


@pytest.mark.parametrize(("file", "kind"), [("links.yaml", LinkFigures), ("fabrics.yaml", FabricFigures)])
def test_every_figure_of_links_and_networks_has_its_source(file: str, kind: type[object]) -> None:
    table = load_yaml(folder("topologies") / file)
    said = {name: read(kind, value, name) for name, value in table.items()}
    assert unsourced(said, file) + bare(said, file) == []


@every_accelerator
def test_every_figure_of_an_accelerator_has_its_source(name: str) -> None:
    said = read(Accelerator, described("accelerators", name, "test"), name)
    assert unsourced(said, name) + bare(said, name) == []


@every_system
def test_every_figure_of_a_system_has_its_source(name: str) -> None:
    said = read(SystemFigures, described("systems", name, "test"), name)
    assert said.source
    assert set(said.source) <= set(sources())
    assert said.summary
    if said.scale_out:
        assert unsourced(said.scale_out, name) + bare(said.scale_out, name) == []
    assert said.template == "" or said.template in names()


def test_figures_behind_a_system() -> None:
    behind = figures(load("hgx-h100", nodes=2))
    assert behind["accelerator: peak: bf16"] == 989e12
    assert behind["links: nvlink4: bandwidth"].source == ("STAS_NET", "NVSW3")
    assert behind["links: infiniband nic: bandwidth"] == 50e9
    assert "links: nvlink5: bandwidth" not in behind
    assert "links: infiniband nic: bandwidth" not in figures(load("hgx-h100"))


@every_system
def test_ranges_are_of_what_nobody_has_announced(name: str) -> None:
    """A range in a result means that the machine is not published: what ships has none, the others have some."""
    system = load(name)
    ranges = [path for path, figure in figures(system).items() if is_range(figure)]
    assert bool(ranges) == (system.status in ("announced", "roadmap", "rumour"))


@every_accelerator
def test_an_accelerator_says_what_kernels_need(name: str) -> None:
    chip = accelerator(name)
    assert chip.peak
    assert {key for key in chip.achieved if key != "memory"} <= set(chip.peak)
    assert "memory" in chip.achieved
    assert all(0 < share <= 1 for share in chip.achieved.values())
    order = [chip.peak[key] for key in ("tf32", "bf16", "fp8", "nvfp4") if key in chip.peak]
    assert order == sorted(order)


def test_every_link_is_used_or_named() -> None:
    used = {link.kind for name in names() for link in load(name).topology.kinds}
    spare = {"nvlink1", "nvlink3-bridge"}  # for a user's own file
    assert set(link_kinds()) - used == spare


# Held against the table of facts.


@pytest.mark.data
def test_accelerators_agree_with_the_table(data: Path) -> None:
    table = json.loads((data / "systems.json").read_text(encoding="utf-8"))["accelerators"]
    for key, said in table.items():
        chip, peak = accelerator(key), said["dense_peak"]
        for name in {"tf32", "bf16", "fp8", "fp6", "nvfp4"} & set(peak):
            ours = chip.peak["mxfp4" if chip.name == "mi355x" and name == "nvfp4" else name]
            assert ours == pytest.approx(peak[name]["value"] * 1e12), f"{chip.name} {name}"
        # The label counts GB, the driver shows nearly as many GiB.
        assert 0.95e9 <= chip.memory / said["memory_capacity"]["value"] <= 2**30, key
        assert chip.memory_bandwidth == pytest.approx(said["memory_bandwidth"]["value"] * 1e12), key


@pytest.mark.data
def test_links_agree_with_the_table(data: Path) -> None:
    table = json.loads((data / "systems.json").read_text(encoding="utf-8"))["links"]
    ours = {
        "NVLink2_V100": "nvlink2",
        "NVLink3_A100": "nvlink3",
        "NVLink4_H100": "nvlink4",
        "NVLink5_B200": "nvlink5",
        "NVLink6_RUBIN": "nvlink6",
        "NVLink7_RUBIN_ULTRA": "nvlink7",
        "xGMI_MI300X": "xgmi-mi300x",
        "xGMI_MI355X": "xgmi-mi355x",
        "PCIe_Gen3_x16": "pcie3-x16",
        "PCIe_Gen4_x16": "pcie4-x16",
        "PCIe_Gen5_x16": "pcie5-x16",
        "PCIe_Gen6_x16": "pcie6-x16",
        "NVLink_C2C_GH200": "c2c-gh200",
        "NVLink_C2C_GB200_300": "c2c-gb200",
        "LPU_C2C": "lpu-c2c",
    }
    one = ("per_link", "raw", "per_lane", "per_gpu", "per_superchip")
    theirs = {key: next(said[name]["value"] for name in one if name in said) for key, said in table.items()}
    assert {key: link_kinds()[kind].bandwidth / 1e9 for key, kind in ours.items()} == pytest.approx(
        {key: theirs[key] for key in ours}
    )


# Files that cannot be.

GOOD = "like: hgx-h100\n"
BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40))])
BAD: dict[str, tuple[str, str]] = {
    "no unit": (GOOD + "links: {nvlink4: {bandwidth: 50, latency: 1 us}}", "write a number with its unit"),
    "wrong unit": (GOOD + "links: {nvlink4: {bandwidth: 50 GB, latency: 1 us}}", "no unit of this quantity"),
    "nan": (GOOD + "links: {nvlink4: {bandwidth: nan GB/s, latency: 1 us}}", "finite number"),
    "infinite": (GOOD + "links: {nvlink4: {bandwidth: inf GB/s, latency: 1 us}}", "finite number"),
    "negative": (GOOD + "links: {nvlink4: {bandwidth: -5 GB/s, latency: 1 us}}", "not negative"),
    "zero": (GOOD + "links: {nvlink4: {bandwidth: 0 GB/s, latency: 1 us}}", "a bandwidth above 0"),
    "range": (GOOD + "links: {nvlink4: {bandwidth: {value: 5 GB/s, low: 6 GB/s}, latency: 1 us}}", "low <= value"),
    "status": (
        GOOD + "links: {nvlink4: {bandwidth: {value: 5 GB/s, status: heard}, latency: 1 us}}",
        "status: 'heard'",
    ),
    "no latency": (GOOD + "links: {our-cable: {bandwidth: 5 GB/s}}", "a link needs the key 'latency'"),
    "unknown key": (GOOD + "acelerator: h200", "did you mean 'accelerator'"),
    "unknown accelerator": (GOOD + "accelerator: h2000", "did you mean"),
    "accelerator is a number": (GOOD + "accelerator: 5", "the name of an accelerator"),
    "accelerator's key": (GOOD + "accelerator: {like: h100-sxm, memry: 1 GB}", "did you mean 'memory'"),
    "no accelerator": ("name: a\ntitle: b\nnode: {parts: {gpu: {}}, wires: []}", "accelerator: nothing"),
    "no node": ("name: a\ntitle: b\naccelerator: l4", "needs the key 'node'"),
    "node is a number": (GOOD + "node: 5", "a table that describes a node"),
    "unknown link": (GOOD + "node: {wires: [{ends: [gpu, cpu], link: nvlnk4}]}", "did you mean 'nvlink4'"),
    "unknown part": (GOOD + "node: {wires: [{ends: [gpu, cpus], link: nvlink4}]}", "did you mean 'cpu'"),
    "unknown wiring": (GOOD + "node: {wires: [{ends: [gpu, cpu], link: nvlink4, wiring: all}]}", "no such wiring"),
    "one end": (GOOD + "node: {wires: [{ends: [gpu], link: nvlink4}]}", "a list of 2 belongs here"),
    "nothing joined": (GOOD + "node: {wires: [{ends: [nic, pcie], link: pcie5-x16}]}", "no path joins"),
    "no gpus": (GOOD + "node: {parts: {gpu: {count: 0}}}", "part: count: 0"),
    "too many gpus": (GOOD + "node: {parts: {gpu: {count: 1000000000}}}", "1 to 1024"),
    "half a gpu": (GOOD + "node: {parts: {gpu: {count: 7.5}}}", "a whole number belongs here"),
    "no units": ("like: gb200-nvl72\nscale_up: [{tier: rack, units: 0}]", "rack: units: 0"),
    "part twice": ("like: gb200-nvl72\nscale_up: [{tier: rack, units: 2, parts: {gpu: {}}}]", "there already"),
    "unknown network": (GOOD + "scale_out: {fabric: infinband}", "did you mean 'infiniband'"),
    "lifecycle": (GOOD + "status: shiping", "did you mean 'shipping'"),
    "empty": ("", "a table of `key: value` lines"),
    "a list": ("- hgx-h100", "a table of `key: value` lines"),
    "no yaml": ("name: [unclosed", "well-formed YAML"),
    "twice": ("name: a\nname: b", "stands twice"),
    "alias bomb": (BOMB, "aliases are not read here"),
    "nested": ("[" * 100_000, "well-formed YAML"),
    "huge": ("#" * 5_000_000, "at most 4000000 bytes"),
}


@pytest.mark.parametrize(("text", "complaint"), BAD.values(), ids=BAD.keys())
def test_files_that_cannot_be_are_refused_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "box.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        load(path)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    for name in ("folder.yaml", "bytes.yaml", "absent.yaml"):
        with pytest.raises(InputError, match="a readable YAML file belongs here"):
            load(tmp_path / name)


def test_a_box_of_one_s_own(tmp_path: Path) -> None:
    path = tmp_path / "box.yaml"
    path.write_text(
        """
name: box
title: two cards and a bridge
accelerator: {like: rtx-3090, memory: 48 GB}
node:
  parts: {gpu: {count: 2}, cpu: {}}
  wires:
    - {ends: [gpu, gpu], link: bridge, wiring: mesh, count: 4}
    - {ends: [gpu, cpu], link: pcie4-x16}
links:
  bridge: {bandwidth: 14 GB/s, latency: 0.2 us}
""",
        encoding="utf-8",
    )
    box = load(path)
    assert (box.gpus, box.accelerator.memory, box.status) == (2, 48e9, "given")
    assert figures(box)["links: bridge: bandwidth"].status == "given"
    assert figures(box)["links: bridge: bandwidth"].source == (str(path),)


def test_unknown_options_are_refused() -> None:
    options: dict[str, Any] = {"node": 4}
    with pytest.raises(InputError, match="load: 'node'; no such option; did you mean 'nodes'"):
        load("hgx-h100", **options)
