"""Which logs are the tests about? Small ones, laid out as each generation of nccl-tests lays out its own."""

from __future__ import annotations

_SIDE = "    time   algbw   busbw {wrong}"
_START = "#       size         count      type"
HEADS = {
    "new": f"{_START}   redop    root {_SIDE.format(wrong='#wrong') * 2}",
    "old": f"{_START}   redop {_SIDE.format(wrong=' error') * 2}",
    "bare": f"{_START} {_SIDE.format(wrong=' error') * 2}",
    "rooted": f"{_START}    root {_SIDE.format(wrong=' error') * 2}",
}
HALVES = (
    (
        "     1048576        262144     float     sum      -1",
        "    100.0   10.49   18.35      0",
        "    105.0    9.99   17.48      0",
    ),
    (
        "     2097152        524288     float     sum      -1",
        "    150.0   13.98   24.47      0",
        "    160.0   13.11   22.94      0",
    ),
)
"""All_reduce on 8 ranks: what was measured, its time out of place and in place."""
ROWS = tuple("".join(parts) for parts in HALVES)
FOOTER = ("# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 20.81 ")
HEADER = (
    "# nThread 1 nGpus 8 minBytes {low} maxBytes {high} step: 2(factor) "
    "warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"
)
MESSAGE = "gpu-a7:4242:4250 [3] NCCL INFO Channel 00/0 : 7[3] -> 0[0] [receive] via NET/IB/2/GDRDMA"


def devices(ranks: int = 8, hosts: int = 1, name: str = "NVIDIA H100 80GB HBM3") -> list[str]:
    """Return the list of devices as it has been since 2.14, with real names of hosts."""
    each = ranks // hosts
    places = [(rank, f"gpu-a{rank // each}", rank % each) for rank in range(ranks)]
    line = "#  Rank {:2d} Group  0 Pid   4242 on {:>10} device {:2d} [0000:1b:00] {}"
    return ["# Using devices", *(line.format(*place, name) for place in places)]


def log(*rows: str, head: str = "new", ranks: int = 8, high: int = 2097152) -> str:
    """Return a whole log of the rows given, or of `ROWS`."""
    preamble = [HEADER.format(low=1048576, high=high), "#", *devices(ranks), "#", HEADS[head]]
    return "\n".join([*preamble, *(rows or ROWS), *(FOOTER if not rows else FOOTER[:1]), ""])
