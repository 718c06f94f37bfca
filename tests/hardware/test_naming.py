"""Is every name understood, and every ambiguous or unknown one refused with the mend?"""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.hardware.naming import aliases, described
from commsim.hardware.shelf import accelerator, names

if TYPE_CHECKING:
    from pathlib import Path

WANTED = {
    "": (
        "dgx-1v",
        "dgx-2",
        "gb10",
        "groq3-lpx",
        "vr-nvl72",
        "feynman-nvl1152",
        "a100-nvlink-mesh-4",
        "h100-nvlink-mesh-4",
    ),
    "mi": ("250x", "300x", "325x", "355x"),
    "hgx-": ("a100", "h100", "h200", "h800", "h20", "b200", "b300"),
    "pcie-": (
        "3090",
        "4090",
        "5090",
        "l4",
        "l40s",
        "t4",
        "a6000",
        "a100",
        "h100",
        "h100-bridge",
        "rtx-pro-6000",
        "gen6",
    ),
    "rubin-ultra-nvl": ("144", "288", "576"),
    "gh200-": ("nvlink-mesh-4", "nvl32"),
    "gb": ("200-nvl72", "300-nvl72"),
}


def test_every_wanted_system_is_there() -> None:
    assert {first + rest for first, rests in WANTED.items() for rest in rests} <= set(names())


@pytest.mark.parametrize("chip", ["a100", "h100", "h200", "h800", "h20", "b200", "b300", "gb200", "gb300", "mi300x"])
def test_a_chip_is_also_the_name_of_the_machine_that_it_is_usually_in(chip: str) -> None:
    system = load(chip)
    assert system.name in (chip, f"hgx-{chip}", f"{chip}-nvl72")
    assert system.accelerator.name == load(system.name).accelerator.name == accelerator(chip).name


@pytest.mark.parametrize("group", ["systems", "accelerators"])
def test_a_file_bears_the_name_that_it_gives(group: str) -> None:
    assert {name: described(group, name, "test")["name"] for name in aliases(group)} == {n: n for n in aliases(group)}


@pytest.mark.parametrize("group", ["systems", "accelerators"])
def test_every_alias_means_its_system(group: str) -> None:
    meant = {other: name for name, others in aliases(group).items() for other in others}
    assert {other: described(group, other, "test")["name"] for other in meant} == meant


@pytest.mark.parametrize("name", ["HGX H100", "hgx_h100", " hgx-h100 ", "DGX-H100", "HGX-H100-8"])
def test_case_blanks_and_underlines_do_not_matter(name: str) -> None:
    assert load(name).name == "hgx-h100"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Vera Rubin NVL72", "vr-nvl72"),
        ("Vera Rubin NVL144", "vr-nvl72"),  # the name of 2025, which counted dies
        ("VR200 NVL72", "vr-nvl72"),
        ("kyber", "rubin-ultra-nvl144"),
        ("Rubin Ultra NVL144", "rubin-ultra-nvl144"),
        ("Rubin Ultra NVL576", "rubin-ultra-nvl576"),
        ("nvl72", "gb200-nvl72"),
    ],
)
def test_names_of_racks(name: str, meant: str) -> None:
    assert load(name).name == meant


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("nvl144", "vr-nvl72", "rubin-ultra-nvl144"), ("NVL576", "rubin-ultra-nvl144", "rubin-ultra-nvl576")],
)
def test_a_name_that_meant_another_rack_in_2025_is_refused(name: str, first: str, second: str) -> None:
    with pytest.raises(InputError, match="several machines bear this name") as refused:
        load(name)
    assert repr(first) in str(refused.value)
    assert repr(second) in str(refused.value)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("hgx-h10", "hgx-h100"), ("gb200-nlv72", "gb200-nvl72"), ("mi300", "mi300x"), ("hgx-h10O", "hgx-h100")],
)
def test_unknown_names_bring_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(InputError, match=f"system: '{name}'; no such name in the catalogue; did you mean '{nearest}'"):
        load(name)


@pytest.mark.parametrize(
    ("name", "said"), [("", "this is a folder"), ("/topo", "no such file"), (".xml", "no such file")]
)
def test_what_is_meant_to_be_a_file_is_called_one(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=f"system: '{tmp_path}{name}'; {said}"):
        load(f"{tmp_path}{name}")


def test_a_folder_that_is_called_as_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever keeps results in a folder of that name still means the machine."""
    (tmp_path / "hgx-h100").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load("hgx-h100").name == "hgx-h100"


def test_unknown_accelerators_bring_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'a100-sxm4-40gb'"):
        accelerator("a100-sxm4-40")


# like:


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder / f"{next(iter(texts))}.yaml"


def test_a_file_says_only_what_differs(tmp_path: Path) -> None:
    own = write(tmp_path, lab="like: gb200-nvl72\naccelerator: gb300\nscale_out: {nic: 800 Gb/s}\n")
    mine, base = load(own), load("gb200-nvl72")
    assert (mine.name, mine.status, mine.aliases) == ("lab", "given", ())
    assert mine.accelerator.name == "gb300"
    assert mine.scale_out is not None
    assert base.scale_out is not None
    assert (mine.scale_out.nic, mine.scale_out.fabric) == (100e9, base.scale_out.fabric)
    assert mine.topology.size == base.topology.size


def test_like_is_found_beside_the_file_that_says_it(tmp_path: Path) -> None:
    own = write(tmp_path, lab="like: base.yaml\naccelerator: h200-sxm\n", base="like: hgx-h100\nname: base\n")
    assert load(own).accelerator.name == "h200-sxm"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("like: lab.yaml", "lab.yaml: like: 'lab.yaml -> lab.yaml'; a chain of `like:` must end"),
        ("like: other.yaml", "lab.yaml -> other.yaml -> lab.yaml"),
        ("like: hgx-h10", "did you mean 'hgx-h100'"),
        ("like: 5", "lab.yaml: like: '5'; no such name"),
        ("like: [hgx-h100]", "no such name"),
        ("like: nvl144", "several machines bear this name"),
        ("like: absent.yaml", "absent.yaml"),
    ],
)
def test_a_like_that_leads_nowhere_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError) as refused:
        load(write(tmp_path, lab=text, other="like: lab.yaml"))
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_accelerator_may_say_what_differs(tmp_path: Path) -> None:
    own = write(tmp_path, lab="like: hgx-h100\naccelerator: {like: h100-sxm, memory: 96 GB}\n")
    mine = load(own).accelerator
    assert (mine.memory, mine.peak["bf16"]) == (96e9, 989e12)
    assert load(own, accelerator="h200-sxm").accelerator == accelerator("h200-sxm")


# Names in public data.


@pytest.mark.data
def test_names_of_the_published_training_runs(data: Path) -> None:
    with (data / "training" / "published.csv").open(encoding="utf-8") as file:
        rows = {(row["system"], row["accelerator"]) for row in csv.DictReader(file)}
    assert all(
        described("accelerators", chip, "test") and described("systems", system, "test") for system, chip in rows
    )


@pytest.mark.data
def test_names_of_the_measured_collectives(data: Path) -> None:
    systems = {json.loads(path.read_text(encoding="utf-8"))["system"] for path in (data / "collectives").glob("*.json")}
    assert {described("systems", name, "test")["name"] for name in systems - {"other", "cloud-v100-1gpu"}} <= set(
        names()
    )


@pytest.mark.data
def test_names_of_the_measured_expert_exchanges(data: Path) -> None:
    with (data / "moe" / "rows.csv").open(encoding="utf-8") as file:
        assert {row["system"] for row in csv.DictReader(file)} <= set(names())


@pytest.mark.data
def test_names_of_the_table_of_systems(data: Path) -> None:
    table = json.loads((data / "systems.json").read_text(encoding="utf-8"))
    meant = {key: said["catalogue_name"] for key, said in table["systems"].items()}
    assert {key: described("systems", key, "test")["name"] for key in meant} == meant
    assert all(described("accelerators", key, "test") for key in table["accelerators"])
