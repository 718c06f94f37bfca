"""What does the scan of a recurrent mixer cost?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.training.operations import Operation, union

if TYPE_CHECKING:
    from commsim.training.operations import Array, Shard

CHUNK = 128.0
"""Tokens of a chunk (Megatron's --mamba-chunk-size)."""
STATE_BYTES = 12.0, 34.0
"""Bytes that a scan moves for each element of each chunk's state (Dao and Gu 2024, section 6). Forward: written by the
chunk in fp32, read in fp32 and written in bf16 as states pass from chunk to chunk, read for the result. Backward: the
same again in fp32 (12), gradients of states written (4), passed back with the states (8 read, 4 written in bf16), and
read for the gradients of inputs, of input maps and of output maps (6)."""
TOUCHED = 1.5, 5.5
"""Times that a scan moves its inputs and outputs: forward inputs are read for states and for results; backward ten
kernels read inputs five times and output gradients as often."""
REACHED = 0.7
"""What a scan reaches of the rate at which other kernels pass bytes: short kernels that wait for each other. Fitted on
published step times of Nemotron-H on H100."""
SCAN_BACKWARD = 2.5
"""Chunked scans are taken to cost in the backward pass what attention does: states again, then two gradients each."""


def scan(name: str, shard: Shard, flops: Array, moved: Array, sizes: tuple[int, int, int]) -> Operation:
    """Return the kernels of a recurrent mixer, chunk by chunk; `sizes` = heads, head width, state.

    `flops` and `moved` (elements) are per token of the rank.
    """
    heads, width, state = sizes
    states = shard.lanes(heads) * width * state / CHUNK
    forward, backward = (
        shard.tokens * (touched * moved * shard.element + written * states) / REACHED
        for touched, written in zip(TOUCHED, STATE_BYTES)
    )
    flops = flops * shard.tokens
    return Operation(
        name,
        "attention",
        "heads",
        flops,
        forward,
        SCAN_BACKWARD * flops,
        backward,
        m=shard.tokens,
        n=float(state),
        k=float(width),
        batch=shard.lanes(heads),
        recompute=union("core_attn"),
    )
