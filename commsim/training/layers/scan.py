"""What does the scan of a recurrent mixer cost?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.training.layers.core import BACKWARD_BYTES
from commsim.training.operations import Operation, union

if TYPE_CHECKING:
    from commsim.training.operations import Array, Shard

CHUNK = 128.0
"""Tokens of a chunk (Megatron's --mamba-chunk-size)."""
STATE_BYTES = 16.0
"""Bytes that a scan moves for each element of each chunk's state, in fp32: written by the chunk, read and written as
states pass from chunk to chunk, read for the result (Dao and Gu 2024, section 6; four kernels)."""
SCAN_BACKWARD = 2.5
"""Chunked scans are taken to cost in the backward pass what attention does: states again, then two gradients each."""


def scan(name: str, shard: Shard, flops: Array, moved: Array, sizes: tuple[int, int, int]) -> Operation:
    """Return the kernels of a recurrent mixer, chunk by chunk; `sizes` = heads, head width, state.

    `flops` and `moved` (elements) are per token of the rank.
    """
    heads, width, state = sizes
    states = STATE_BYTES * shard.lanes(heads) * width * state / CHUNK
    flops, moved = flops * shard.tokens, (moved * shard.element + states) * shard.tokens
    return Operation(
        name,
        "attention",
        "heads",
        flops,
        moved,
        SCAN_BACKWARD * flops,
        BACKWARD_BYTES * moved,
        m=shard.tokens,
        n=float(state),
        k=float(width),
        batch=shard.lanes(heads),
        recompute=union("core_attn"),
    )
