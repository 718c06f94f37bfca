"""Is a table put on the machine, and into the hands of the library, that it was measured with?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from commsim.errors import InputError
from commsim.measurement.cluster import cluster, library, named
from commsim.validation.measured import read_measured
from tests.validation.tables import write

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.records import Measurement


@pytest.fixture
def table(tmp_path: Path) -> Any:  # noqa: ANN401 - a function of keywords
    def made(**changes: Any) -> Measurement:  # noqa: ANN401
        return read_measured([write(tmp_path, **changes)])[0][0].measurement

    return made


@pytest.mark.parametrize("fabric", ["infiniband", "roce", "efa", "tcpx", "tcpxo", "tcp"])
def test_network_as_stated(table: Any, fabric: str) -> None:  # noqa: ANN401
    nics = {"per_node": 4, "gbit_per_s": 200, "fabric": fabric}
    system = cluster(table(nodes=2, ranks=16, nics=nics))
    assert system.scale_out is not None
    found = (system.scale_out.fabric, float(system.scale_out.nic), system.nics_per_node, system.gpus)
    assert found == (fabric, 25e9, 4, 16)


def test_the_machine_keeps_what_is_not_stated(table: Any) -> None:  # noqa: ANN401
    nics = {"per_node": None, "gbit_per_s": None, "fabric": None}
    system = cluster(table(nodes=2, ranks=16, nics=nics))
    assert system.scale_out is not None
    assert (system.scale_out.fabric, float(system.scale_out.nic), system.nics_per_node) == ("infiniband", 50e9, 8)


@pytest.mark.parametrize(("nodes", "ranks", "nics"), [(2, 2, 1), (2, 2, 8), (10, 20, 2), (2, 16, 32)])
def test_gpus_that_are_used(table: Any, nodes: int, ranks: int, nics: int) -> None:  # noqa: ANN401
    stated = {"per_node": nics, "gbit_per_s": 400, "fabric": "infiniband"}
    system = cluster(table(nodes=nodes, ranks=ranks, nics=stated))
    assert (system.gpus, system.nodes) == (ranks, nodes)


def test_a_box_needs_no_network(table: Any) -> None:  # noqa: ANN401
    assert cluster(table(ranks=5, nics={"per_node": 3, "gbit_per_s": None, "fabric": "moon"})).gpus == 5
    assert cluster(table(nodes=None, ranks=4)).gpus == 4


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"system": ""}, "system"),
        ({"system": "other"}, "system"),
        ({"nodes": 3}, "ranks"),
        ({"nodes": 16}, "ranks"),
    ],
)
def test_no_such_machine(table: Any, changes: dict[str, Any], where: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=f"^{where}: "):
        cluster(table(**changes))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (True, None, None)),
        ({"nvls": False}, (False, None, None)),
        ({"algorithm": "Ring", "protocol": "Simple"}, (True, "Ring", "Simple")),
        ({"algorithm": "allreduce:nvlstree"}, (True, "nvlstree", None)),
    ],
)
def test_settings_are_honoured(table: Any, settings: dict[str, Any], expected: tuple[Any, ...]) -> None:  # noqa: ANN401
    found = library(table(settings=settings))
    assert (found.nvls, found.algorithm, found.protocol) == expected


def test_collnet(table: Any) -> None:  # noqa: ANN401
    said = [dataclasses.replace(table(), settings={"NCCL_COLLNET_ENABLE": value}) for value in ("1", "0")]
    found = [library(one).collnet for one in said]
    assert found == [True, False]


@pytest.mark.parametrize(
    ("version", "by", "value", "expected"),
    [
        ("2.27.5", "nccl", "2", [True]),
        ("", "nccl", "2", [True]),
        ("2.26.5", "nccl", "2", [False]),
        ("2.27.5", "nccl", "1", [False]),
        ("2.27.7", "rccl", "2", [False]),
    ],
)
def test_symmetric_windows(table: Any, version: str, by: str, value: str, expected: list[bool]) -> None:  # noqa: ANN401
    """nccl-tests registers buffers in the older way with a library that has no windows."""
    said = dataclasses.replace(table(library=by), version=version, settings={"local_register": value})
    assert [library(said).symmetric] == expected


@pytest.mark.parametrize(
    ("devices", "system"),
    [
        (("NVIDIA H100 80GB HBM3",), "hgx-h100"),
        (("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3 MIG"), "hgx-h100"),
        (("NVIDIA H100 PCIe",), None),
        (("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"), None),
        (("NVIDIA H100 80GB HBM3", "a GPU that nobody knows"), None),
        ((), None),
    ],
)
def test_the_usual_box_of_a_gpu(table: Any, devices: tuple[str, ...], system: str | None) -> None:  # noqa: ANN401
    """GPUs of two kinds are in no usual box."""
    assert named(dataclasses.replace(table(system=""), accelerators=devices)) == system


def test_sends_are_not_tuned(table: Any) -> None:  # noqa: ANN401
    found = library(table(op="all_to_all", settings={"algorithm": "Ring", "protocol": "LL128"}))
    assert (found.algorithm, found.protocol) == (None, None)


def test_other_libraries_are_not_predicted(table: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=r"^library: 'mpi'; only nccl"):
        library(table(library="mpi"))
    assert library(table(library="")).name == "nccl"
