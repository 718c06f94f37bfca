"""Which causes are known? From threads of people whose collectives were slow, with what mended them.

The shares left are between the extremes that were reported.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commsim.collectives.kinds import ALL_REDUCE, ALL_TO_ALL, SEND_RECV
from commsim.libraries.nccl import Nccl
from commsim.measurement.check.causes.cause import Cause, Left
from commsim.measurement.check.causes.regressions import regression

if TYPE_CHECKING:
    from commsim.libraries.library import Library
    from commsim.measurement.check.expected import Expected
    from commsim.units import BytesPerSecond

NICS, NVLINKS, PCIE = ("* nic",), ("nvlink*",), ("pcie*",)
SOCKETS = (0.1e9, 10e9)
"""B/s of a node over TCP sockets: 0.6 of a 100 Gb/s port to 9 of two of 200 (nccl-tests#154, Argonne's Polaris)."""
STAGED = (1.0e9, 9e9)
"""B/s of a GPU through the host's memory: 1.4 across sockets, 5.2 in a DGX A100 (NCCL_P2P_DISABLE=1)."""
OVER_PCIE = (6e9, 50e9)
"""B/s of a GPU to its peers over PCIe, generations 3 to 5."""
ALIGNED = 16
"""Bytes of which a piece must be a multiple to be copied quickly."""


def _several(of: Expected) -> bool:
    return of.system.nodes > 1


def _alone(of: Expected) -> bool:
    return not _several(of)


def _has(of: Expected, kind: str) -> bool:
    return any(link.kind.startswith(kind) for link in of.system.topology.kinds)


def _nics(of: Expected) -> int:
    return of.system.nics_per_node if of.system.scale_out else 1


def _node_rate(of: Expected) -> BytesPerSecond:
    return float(of.system.scale_out.nic) * _nics(of) if of.system.scale_out else 1.0


def _scale_up_rate(of: Expected) -> BytesPerSecond:
    """What leaves a GPU over NVLink."""
    cell = of.system.topology.cell
    gpu = next(name for name, data in cell.nodes(data=True) if data["part"] == "gpu")
    edges = cell.out_edges(gpu, data=True)
    links = [data for *_, data in edges if data["link"].kind.startswith("nvlink")]
    return float(sum(data["link"].bandwidth * data["count"] for data in links))


def _of_rate(rate: BytesPerSecond, left: Left) -> Left:
    return min(1.0, left[0] / rate), min(1.0, left[1] / rate)


def _without_nvls(library: Library) -> Library:
    return replace(library, nvls=False) if isinstance(library, Nccl) else library


def _without_windows(library: Library) -> Library:
    return replace(library, symmetric=False) if isinstance(library, Nccl) else library


def _uneven(of: Expected) -> bool:
    return of.table.op in {ALL_TO_ALL, SEND_RECV} and any(size / of.table.ranks % ALIGNED for size in of.sizes)


CAUSES = (
    Cause(
        "no-warm-up",
        "the first calls were timed, in which connections are made",
        "measure again with -w 5 (warm-up iterations) and -n 20",
        lambda of: of.table.settings.get("warmup") == "0",
        settings=(r"\bwarmup=0\b",),
    ),
    Cause(
        "no-windows",
        "buffers were to be symmetric windows, and ordinary kernels ran",
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING must say [Symmetric]; unset NCCL_WIN_ENABLE and NCCL_CUMEM_ENABLE",
        lambda of: isinstance(of.library, Nccl) and of.library.symmetric,
        without=_without_windows,
        settings=(r"NCCL_WIN_ENABLE\s*=\s*0", r"NCCL_CUMEM_ENABLE\s*=\s*0"),
    ),
    Cause(
        "nvls-off",
        "NVLink switches do not reduce (NVLS is off)",
        "leave NCCL_NVLS_ENABLE unset; look for 'NVLS multicast support is not available' in NCCL_DEBUG=INFO; the "
        "fabric manager must run, and containers need its device files",
        lambda of: of.table.op is ALL_REDUCE and _has(of, "nvlink"),
        without=_without_nvls,
        settings=(
            r"NCCL_NVLS_ENABLE\s*=\s*0",
            r"NVLS (is )?(off|not used|not available)",
            r"nvls=False",
            r"nvls_multicast=unavailable",
        ),
    ),
    Cause(
        "one-nic",
        "one NIC of a node is used instead of all",
        "look at 'NET/... : Using' in NCCL_DEBUG=INFO; unset NCCL_IB_HCA; every port must be active (ibstat)",
        lambda of: _several(of) and _nics(of) > 1,
        NICS,
        lambda of: (1 / _nics(of), 1 / _nics(of)),
        settings=(r"NCCL_IB_HCA\s*=\s*[^^,\s]+(?=\s|$)", r"\bports=1\b"),
    ),
    Cause(
        "half-rails",
        "half of the NICs are used, or half of the rails are slow",
        "compare ports with ibstat; run ib_write_bw on each rail; NCCL_TOPO_DUMP_FILE shows which NICs were found",
        lambda of: _several(of) and _nics(of) > 1,
        NICS,
        lambda _: (0.5, 0.5),
    ),
    Cause(
        "sockets",
        "NCCL fell back to TCP sockets",
        "NCCL_DEBUG=INFO must say 'Using network IB' (or the name of the plugin: OFI, gIB, FasTrak); install the "
        "network plugin, pass /dev/infiniband into containers, unset NCCL_IB_DISABLE and NCCL_NET",
        _several,
        NICS,
        lambda of: _of_rate(_node_rate(of), SOCKETS),
        settings=(
            r"NCCL_IB_DISABLE\s*=\s*1",
            r"NCCL_NET\s*=\s*Socket",
            r"network=Socket",
            r"\bsockets\b",
            r"IB not enabled",
        ),
        refuted=r"network=(?!Socket)",
    ),
    Cause(
        "gpudirect-hindered",
        "PCIe ACS or an IOMMU that translates sends GPU-to-NIC traffic through the CPU",
        "turn ACS off on PCIe bridges (setpci) or in the BIOS, boot with iommu=pt; in virtual machines ask for ATS and "
        "a topology file (NCCL_TOPO_FILE); then NCCL_IB_SPLIT_DATA_ON_QPS=1 on RoCE",
        _several,
        NICS,
        lambda _: (0.1, 0.85),
    ),
    Cause(
        "no-gpudirect",
        "NICs do not read GPU memory (no GPUDirect RDMA)",
        "'GDRDMA' must stand behind 'via NET/IB' in NCCL_DEBUG=INFO; load nvidia-peermem or use DMA-BUF; NCCL_NET_GDR_"
        "LEVEL must not be LOC",
        _several,
        NICS,
        lambda _: (0.3, 0.7),
        settings=(r"NCCL_NET_GDR_LEVEL\s*=\s*(LOC|0)\b", r"gpudirect=no"),
        refuted=r"gpudirect=yes",
    ),
    Cause(
        "version-regression",
        "this version of NCCL is slower than others here",
        "run another version and compare (commsim check --baseline): 2.11 to 2.16 over few NICs (NVIDIA/nccl#837), "
        "all-to-all in 2.19 and 2.20 (NVIDIA/nccl#1316: unset NCCL_NCHANNELS_PER_NET_PEER), rings through one port "
        "from 2.25 on (NVIDIA/nccl-tests#352: NCCL_PXN_DISABLE=1)",
        lambda of: regression(of) is not None,
        NICS,
        lambda of: getattr(regression(of), "left", (1.0, 1.0)),
    ),
    Cause(
        "crowded-network",
        "the network between nodes is congested, oversubscribed, or has a slow link",
        "screen the nodes in pairs (commsim check --pairs); look at the switches' congestion counters, PFC and ECN "
        "(RoCE), adaptive routing (InfiniBand)",
        _several,
        NICS,
        lambda _: (0.1, 0.9),
    ),
    Cause(
        "p2p-disabled",
        "GPUs do not reach each other and copy through the host's memory (no peer-to-peer)",
        "unset NCCL_P2P_DISABLE; nvidia-smi topo -p2p r must say OK; turn ACS off, iommu=pt",
        lambda of: _alone(of) and _has(of, "nvlink"),
        NVLINKS,
        lambda of: _of_rate(_scale_up_rate(of), STAGED),
        settings=(r"NCCL_P2P_DISABLE\s*=\s*1", r"NCCL_P2P_LEVEL\s*=\s*LOC", r"between_gpus=SHM"),
        refuted=r"between_gpus=P2P",
    ),
    Cause(
        "nvlink-off",
        "a GPU is off NVLink, and all of them use PCIe",
        "nvidia-smi nvlink --status and nvidia-smi topo -m: every pair must say NV; look for Xid 74 in dmesg; the "
        "fabric manager must run",
        lambda of: _alone(of) and _has(of, "nvlink"),
        NVLINKS,
        lambda of: _of_rate(_scale_up_rate(of), OVER_PCIE),
    ),
    Cause(
        "host-staged",
        "GPUs without peer-to-peer share the host's memory and the link between sockets",
        "GPUs of this box do not reach each other over PCIe (nvidia-smi topo -p2p r); bind memory to the near socket, "
        "fill all memory channels; a driver that allows peer-to-peer helps",
        lambda of: _alone(of) and not _has(of, "nvlink"),
        PCIE,
        lambda _: (0.03, 0.6),
        settings=(r"NCCL_P2P_DISABLE\s*=\s*1", r"P2P.{0,8}disabled", r"between_gpus=SHM"),
        refuted=r"between_gpus=P2P",
    ),
    Cause(
        "few-channels",
        "too few channels (CTAs) are allowed",
        "unset NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS and NCCL_NTHREADS; on GCP the NCCL plugin's environment caps them",
        lambda of: _alone(of) and _has(of, "nvlink"),
        NVLINKS,
        lambda _: (0.2, 0.9),
        settings=(r"NCCL_MAX_(NCHANNELS|CTAS)\s*=\s*\d+", r"limits? channels", r"\d+ channels forced"),
    ),
    Cause(
        "misaligned",
        "each pair's piece is not a multiple of 16 bytes, and takes the slow way of copying",
        "choose sizes that the ranks divide into multiples of 16 bytes (pad the tensors)",
        lambda of: _alone(of) and _uneven(of),
        ("nvlink*", "pcie*"),
        lambda _: (0.02, 0.2),
    ),
)
"""From the ones that leave least open to those that could explain anything."""
