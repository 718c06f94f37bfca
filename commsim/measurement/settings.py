"""Which settings of an environment may be kept? Those that change what a library does, and never what names a place."""

from __future__ import annotations

import re

KNOBS = frozenset(
    f"NCCL_{name}"
    for name in (
        "ALGO",
        "BUFFSIZE",
        "COLLNET_ENABLE",
        "CROSS_NIC",
        "CUMEM_ENABLE",
        "CUMEM_HOST_ENABLE",
        "DMABUF_ENABLE",
        "IB_AR_THRESHOLD",
        "IB_DISABLE",
        "IB_GID_INDEX",
        "IB_PCI_RELAXED_ORDERING",
        "IB_QPS_PER_CONNECTION",
        "IB_SL",
        "IB_SPLIT_DATA_ON_QPS",
        "IB_TC",
        "IB_TIMEOUT",
        "IGNORE_CPU_AFFINITY",
        "LL128_BUFFSIZE",
        "LL_BUFFSIZE",
        "MAX_CTAS",
        "MAX_NCHANNELS",
        "MIN_CTAS",
        "MIN_NCHANNELS",
        "MNNVL_ENABLE",
        "NCHANNELS_PER_NET_PEER",
        "NET_GDR_C2C",
        "NET_GDR_LEVEL",
        "NET_GDR_READ",
        "NET_SHARED_BUFFERS",
        "NSOCKS_PERTHREAD",
        "NTHREADS",
        "NVB_DISABLE",
        "NVLS_ENABLE",
        "NVLS_NCHANNELS",
        "P2P_DISABLE",
        "P2P_LEVEL",
        "P2P_NET_CHUNKSIZE",
        "P2P_PXN_LEVEL",
        "PROTO",
        "PXN_C2C",
        "PXN_DISABLE",
        "SHM_DISABLE",
        "SOCKET_NTHREADS",
        "WIN_ENABLE",
    )
)
"""Settings that take a number or a word of NCCL's own: none can hold a host, an address, a path or a secret."""
_PLAIN = re.compile(r"-?\d{1,12}|\^?[A-Za-z0-9_]{1,16}(?:[,;:^=]{1,2}[A-Za-z0-9_]{1,16}){0,16}")


def is_knob(name: str, value: str) -> bool:
    """Whether a setting may be kept: a known one (RCCL reads them by NCCL's names) with a plain value."""
    return name in KNOBS and _PLAIN.fullmatch(value) is not None


def knobs(environment: list[str]) -> dict[str, str]:
    """Return what may be kept of an environment written as `NAME=value`."""
    pairs = (entry.partition("=") for entry in environment)
    return {name: value for name, _, value in pairs if is_knob(name, value)}
