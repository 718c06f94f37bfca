"""With how many channels and threads does a call run? A channel is a block of a kernel, and takes a multiprocessor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from commsim.libraries.nccl.communicator import Communicator

_WARP = 32
_LL, _LL128, _SIMPLE, _MOST_THREADS, _SLOW_THREADS = 512, 640, 512, 640, 256
_PCIE3 = 12e9
_BYTES_PER_THREAD = {"LL": 8, "LL128": 8, "Simple": 64}
_COLLNET_BYTES, _COLLNET_SWITCH, _HALVED = 512, 16, 128
_FEWEST_WARPS = 3


class Launch(NamedTuple):
    """What a call runs with: channels (each a block of the kernel), and threads of each."""

    channels: int
    threads: int


def launch(comm: Communicator, algorithm: str, protocol: str, size: float) -> Launch:
    """Return what a call of so many bytes runs with (2.30, src/enqueue.cc, topoGetAlgoInfo)."""
    if algorithm in ("NVLS", "NVLSTree"):
        count = comm.nvls_channels
        return Launch(min(count, comm.channels) if algorithm == "NVLS" and comm.nodes > 1 else count, _MOST_THREADS)
    if algorithm == "CollNetDirect":
        return Launch(_collnet_channels(comm, size), _MOST_THREADS)
    if algorithm == "PAT":
        return Launch(comm.channels, _MOST_THREADS)
    each = _BYTES_PER_THREAD[protocol] if algorithm != "CollNetChain" else _COLLNET_BYTES
    each *= comm.ranks if (algorithm, protocol) == ("Ring", "LL") else 1
    threads = _threads(comm, algorithm, protocol)
    channels = max(1, min(comm.channels, int(size // (threads * each))))
    while size < channels * threads * each and threads % _HALVED == 0:
        threads //= 2
    threads += _WARP if (algorithm, protocol) == ("Ring", "Simple") else 0
    return Launch(channels, _MOST_THREADS if algorithm == "Tree" else max(threads, _FEWEST_WARPS * _WARP))


def _threads(comm: Communicator, algorithm: str, protocol: str) -> int:
    """The threads of a large call."""
    if protocol != "Simple":
        return _LL if protocol == "LL" else _LL128
    if algorithm == "CollNetChain":
        return _MOST_THREADS
    slow = comm.graphs.ring.speed_intra * comm.graphs.ring.channels <= _PCIE3
    return _SLOW_THREADS if algorithm == "Ring" and slow else _SIMPLE


def _collnet_channels(comm: Communicator, size: float) -> int:
    """The channels of CollNetDirect: fewer for small calls, in stages that need less and less of each thread."""
    channels, each, switch = comm.channels, _COLLNET_BYTES, _COLLNET_SWITCH
    small = True
    while switch >= 1 and small:
        small = size < channels * _MOST_THREADS * comm.graphs.collnet_direct.channels * each
        while small and channels > switch:
            each //= 2 if channels == switch + switch // 2 else 1
            channels -= 1
            small = size < channels * _MOST_THREADS * comm.graphs.collnet_direct.channels * each
        switch //= 2
    return channels
