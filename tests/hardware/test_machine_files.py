"""Do the files that people have read as what they are?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.hardware.dumps import from_file
from commsim.hardware.fabrics import members
from commsim.hardware.nccl_xml import read_xml, write_xml
from tests.hardware.boxes import nvlink_bandwidth, wires

if TYPE_CHECKING:
    from pathlib import Path

Row = tuple[str, str | None, int, float, int, float, int]
XML_FILES: list[Row] = [  # of topo_xml: accelerator to be named, GPUs, GB/s of NVLink or xGMI a GPU, NICs, Gb/s, CPUs
    ("amd_mi250_8gcd", None, 8, 150, 1, 1, 1),
    ("amd_mi250x_16gcd", None, 16, 350, 8, 200, 4),
    ("amd_mi300x_8p", None, 8, 448, 8, 400, 2),
    ("aws_p4d_a100_40g", None, 8, 300, 4, 100, 2),
    ("azure_ncv4_a100_pcie", None, 4, 0, 1, 100, 4),
    ("azure_ndv4_a100", "a100-sxm-40gb", 8, 300, 8, 200, 4),
    ("azure_ndv5_h100", "h100-sxm", 8, 450, 8, 400, 2),
    ("oci_bm_a100_b4_flattened", "a100-sxm-40gb", 8, 300, 8, 200, 4),
    ("oci_bm_a100_flattened", "a100-sxm-40gb", 8, 300, 8, 200, 4),
    ("rebuilt_cx8_switch_8gpu", None, 8, 0, 8, 400, 2),
    ("rebuilt_h200_baremetal", None, 8, 450, 8, 400, 2),
    ("rtx3090_8gpu_2switch_1ib", None, 8, 0, 1, 56, 2),
]
NCCL_FILES: list[Row] = [  # the same of nccl/topologies; CPUs and NICs of one host
    ("a100", "a100-sxm-80gb", 8, 300, 8, 200, 2),
    ("a100_4nic", "a100-sxm-80gb", 8, 300, 4, 200, 2),
    ("b200", "b200-sxm", 8, 900, 8, 400, 2),
    ("b200_2g", "b200-sxm", 2, 900, 2, 400, 2),
    ("b200_4g", "b200-sxm", 4, 900, 4, 400, 2),
    ("b200_800", "b200-sxm", 8, 900, 8, 800, 2),
    ("b200_800g5", "b200-sxm", 8, 900, 8, 800, 2),
    ("b200_sharp", "b200-sxm", 8, 900, 8, 400, 2),
    ("b300", "b300-sxm", 8, 900, 8, 800, 2),
    *((f"gb200_nvl{gpus}", "gb200", gpus, 900, 4, 400, 2) for gpus in (4, 8, 16, 32, 36, 64, 72)),
    ("gb300_nvl72", "gb300", 72, 900, 4, 800, 2),
    ("h100", "h100-sxm", 8, 450, 8, 400, 2),
    ("h100_1g", "h100-sxm", 1, 450, 1, 400, 1),
    ("h100_2g", "h100-sxm", 2, 450, 2, 400, 2),
    ("h100_4g", "h100-sxm", 4, 450, 4, 400, 2),
    ("h100_amd", "h100-sxm", 8, 450, 8, 400, 2),
    ("h100_sharp", "h100-sxm", 8, 450, 8, 400, 2),
    ("h200_4nic", "h200-sxm", 8, 450, 4, 400, 2),
    ("pcie2_amd", "l40s", 2, 0, 0, 0, 1),
    ("pcie4_h100", "h100-pcie", 4, 0, 2, 400, 2),
    ("pcie8_amd", "l40s", 8, 0, 2, 200, 2),
    ("pcie8_l40s", "l40s", 8, 0, 2, 200, 2),
    ("pcie8_rtx6000", "rtx-pro-6000", 8, 0, 4, 400, 2),
    ("rubin_nvl72", "rubin", 72, 1800, 4, 800, 2),
]
FOLDERS = {"formats/topo_xml": XML_FILES, "nccl/topologies": NCCL_FILES}


@pytest.mark.data
@pytest.mark.parametrize(("folder", "row"), [(folder, row) for folder, rows in FOLDERS.items() for row in rows])
def test_public_topology_files(data: Path, folder: str, row: Row) -> None:
    name, accelerator, gpus, nvlink, nics, gigabits, cpus = row
    system = read_xml(data / folder / f"{name}.xml", accelerator)
    assert system.gpus == gpus
    assert nvlink_bandwidth(system) / 1e9 == pytest.approx(nvlink)
    assert (len(members(system.cell, "nic")), len(members(system.cell, "cpu"))) == (nics, cpus)
    assert (system.scale_out.nic * 8e-9 if system.scale_out else 0) == pytest.approx(gigabits)
    others = np.arange(1, gpus)
    assert system.topology.route(np.zeros_like(others), others).links.shape[0] == gpus - 1
    copy = read_xml(write_xml(system), system.accelerator.name)
    assert sorted(wires(copy).values()) == sorted(wires(system).values())
    assert write_xml(copy) == write_xml(system)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "words"),
    [("aws_g5_a10g", "no GPU"), ("amd_8gpu_pcie", "gfx906"), ("amd_8p_rome_4nic", "gfx906")],
)
def test_public_files_that_say_too_little(data: Path, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_xml(data / "formats/topo_xml" / f"{name}.xml")


@pytest.mark.data
@pytest.mark.parametrize(("name", "xgmi", "cpus"), [("amd_8gpu_pcie", 0, 1), ("amd_8p_rome_4nic", 92, 7)])
def test_public_files_of_an_accelerator_of_ones_own(
    data: Path, tmp_path: Path, name: str, xgmi: float, cpus: int
) -> None:
    (tmp_path / "mi50.yaml").write_text("like: mi250x\nname: mi50\ntitle: AMD Instinct MI50\n", encoding="utf-8")
    system = read_xml(data / "formats/topo_xml" / f"{name}.xml", str(tmp_path / "mi50.yaml"))
    assert (system.gpus, len(members(system.cell, "cpu"))) == (8, cpus)
    assert nvlink_bandwidth(system) / 1e9 == pytest.approx(xgmi)


@pytest.mark.data
def test_no_public_topology_file_is_forgotten(data: Path) -> None:
    known = {name for rows in FOLDERS.values() for name, *_ in rows} | {
        "aws_g5_a10g",
        "amd_8gpu_pcie",
        "amd_8p_rome_4nic",
    }
    assert {path.stem for folder in FOLDERS for path in (data / folder).glob("*.xml")} == known


MATRICES = [  # of topo_matrix: accelerator, GPUs, GB/s of NVLink a GPU, NICs, CPUs (NUMA domains), NVSwitches
    ("a100_4gpu_nv4_2hca_nps4_oldnicnames", "a100-sxm-40gb", 4, 300, 2, 4, 0),
    ("a100_8gpu_1nic_nps4", "a100-sxm-80gb", 8, 300, 1, 4, 1),
    ("a100_8gpu_8nic_pxb_pairs", "a100-sxm-80gb", 8, 300, 8, 2, 1),
    ("a800_8gpu_nv8_9nic_shuffled", "a800-sxm-80gb", 8, 200, 9, 3, 1),
    ("aws_g5_48xlarge", "a10g", 8, 0, 0, 1, 0),
    ("aws_g5g_2xlarge", "t4", 1, 0, 0, 1, 0),
    ("aws_g6f_4xlarge", "l4", 1, 0, 0, 1, 0),
    ("aws_p3_16xlarge", "v100-sxm2-16gb", 8, 150, 0, 1, 0),
    ("aws_p4d_24xlarge", "a100-sxm-40gb", 8, 300, 0, 2, 1),
    ("aws_p4de_24xlarge", "a100-sxm-80gb", 8, 300, 0, 2, 1),
    ("dgx2_16xv100_nv6_10hca", "v100-sxm2-32gb", 16, 150, 10, 2, 1),
    ("gb200_tray_4gpu_8nic", "gb200", 4, 900, 8, 2, 1),
    ("gcp_a3ultra_h200_8nic", "h200-sxm", 8, 450, 8, 2, 1),
    ("h100_8gpu_10nic_gap", "h100-sxm", 8, 450, 10, 9, 1),
    ("h100_8gpu_5nic_half_rails_node", "h100-sxm", 8, 450, 5, 2, 1),
    ("h100_8gpu_8nic_rail_optimised", "h100-sxm", 8, 450, 8, 2, 1),
    ("h20_amd_2nic_one_socket", "h20", 8, 450, 2, 2, 1),
    ("l4_2gpu_sys", "l4", 2, 0, 0, 2, 0),
    ("quirk_comment_prefix", "h100-sxm", 8, 450, 8, 2, 1),
    ("quirk_spaces_aligned", "h100-sxm", 8, 450, 8, 2, 1),
    ("quirk_wrapped_header", "h100-sxm", 8, 450, 8, 2, 1),
    ("rtx4090_6gpu_amd_npsdisabled", "rtx-4090", 6, 0, 0, 4, 0),
    ("rtx5090_2gpu_phb", "rtx-5090", 2, 0, 0, 1, 0),
    ("t4_4gpu_1plus3", "t4", 4, 0, 0, 2, 0),
    ("v100_4gpu_nv2_1hca_node_oldlayout", "v100-sxm2-32gb", 4, 150, 1, 1, 0),
    ("v100_4gpu_nv2_2edr", "v100-sxm2-32gb", 4, 150, 2, 2, 0),
]
NO_MATRIX = {
    "aws_p4d_24xlarge_numa_topo": "no matrix|NCCL topology XML or",
    "aws_p5_48xlarge_numa_topo": "no matrix|NCCL topology XML or",
    "rtx5090_2gpu_p2p_rw": "topo -p2p",
}


@pytest.mark.data
@pytest.mark.parametrize("row", MATRICES)
def test_public_matrices(data: Path, row: tuple[str, str, int, float, int, int, int]) -> None:
    name, accelerator, gpus, nvlink, nics, cpus, switches = row
    system = from_file(data / "formats/topo_matrix" / f"{name}.txt", accelerator)
    assert system is not None
    assert system.gpus == gpus
    assert {nvlink_bandwidth(system, gpu) / 1e9 for gpu in members(system.cell, "gpu")} == {nvlink}
    found = [len(members(system.cell, part)) for part in ("nic", "cpu", "nvswitch")]
    assert found == [nics, cpus, switches]
    others = np.arange(1, gpus)
    assert system.topology.route(np.zeros_like(others), others).links.shape[0] == gpus - 1
    assert not [line for line in system.assumptions if "farther apart" in line]


@pytest.mark.data
@pytest.mark.parametrize("name", NO_MATRIX)
def test_public_files_that_hold_no_matrix(data: Path, name: str) -> None:
    with pytest.raises(InputError, match=NO_MATRIX[name]):
        from_file(data / "formats/topo_matrix" / f"{name}.txt", "l4")


@pytest.mark.data
def test_quirks_of_pasting_change_nothing(data: Path) -> None:
    folder = data / "formats/topo_matrix"
    plain = from_file(folder / "h100_8gpu_8nic_rail_optimised.txt", "h100-sxm")
    assert plain is not None
    for quirk in folder.glob("quirk_*.txt"):
        system = from_file(quirk, "h100-sxm")
        assert system is not None
        assert wires(system) == wires(plain)


@pytest.mark.data
def test_no_public_matrix_is_forgotten(data: Path) -> None:
    found = {path.stem for path in (data / "formats/topo_matrix").glob("*.txt")}
    assert found == {name for name, *_ in MATRICES} | set(NO_MATRIX)
