"""What does one GPU do, and what of it is worth a number? Each kind of work with the bytes or FLOP that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.nn.functional import scaled_dot_product_attention

from commsim.errors import LackError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FP8 = "fp8"
PRECISIONS = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "tf32": torch.float32,
    FP8: torch.float8_e4m3fn,
}
_ITEM = 4


@dataclass(frozen=True)
class Work:
    """Something to time: its kind, what it is like, how many bytes or FLOP it takes, and how many times it is done."""

    kind: str
    like: dict[str, Any]
    run: Callable[[], Any]
    moved: float = 0.0
    flop: float = 0.0
    times: int = 1


@dataclass(frozen=True)
class Extent:
    """How large the work is: bytes copied, sides of square products, tokens of an MLP, sequences, kernels in a row."""

    copied: tuple[int, ...]
    sides: tuple[int, ...]
    tokens: tuple[int, ...]
    hidden: int
    sequences: tuple[int, ...]
    heads: int
    kernels: int


FULL = Extent(
    copied=tuple(2**power for power in range(20, 34, 2)),
    sides=(256, 512, 1024, 2048, 4096, 8192, 16384),
    tokens=(1024, 4096, 16384),
    hidden=8192,
    sequences=(1024, 4096, 16384),
    heads=16,
    kernels=1000,
)
"""What a data-centre GPU is measured with, within a few minutes."""
TINY = Extent(copied=(4096,), sides=(32,), tokens=(16,), hidden=32, sequences=(32,), heads=2, kernels=8)
"""What shows on a CPU that the script works."""


def copies(extent: Extent, device: torch.device) -> Iterator[Work]:
    """Yield copies within the memory, each byte read once and written once; small ones stay in the cache."""
    for size in extent.copied:
        source, target = (torch.randn(size // _ITEM, device=device) for _ in range(2))
        yield Work("copy", {"size_bytes": size}, partial(target.copy_, source), moved=2.0 * size)


def matmuls(extent: Extent, device: torch.device) -> Iterator[Work]:
    """Yield products by precision: squares, and the two of an MLP whose inner side is four times its outer."""
    wide = 4 * extent.hidden
    shapes = [(side, side, side) for side in extent.sides]
    shapes += [(many, *sides) for many in extent.tokens for sides in ((wide, extent.hidden), (extent.hidden, wide))]
    for precision in PRECISIONS:
        for m, n, k in shapes:
            run = _product(precision, (m, n, k), device)
            if run is not None:
                yield Work("matmul", {"m": m, "n": n, "k": k, "precision": precision}, run, flop=2.0 * m * n * k)


def _product(precision: str, shape: tuple[int, int, int], device: torch.device) -> Callable[[], Any] | None:
    """What multiplies; None where this device has no units for the precision."""
    m, n, k = shape
    if precision != FP8:
        if precision == "tf32" and device.type != "cuda":
            return None
        a, b = (torch.randn(rows, k, device=device).to(PRECISIONS[precision]) for rows in (m, n))
        return partial(_multiplied, a, b.T, precision == "tf32")
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 9):
        return None
    a, b = (torch.randn(rows, k, device=device).to(PRECISIONS[FP8]) for rows in (m, n))
    one, multiply = torch.ones((), device=device), torch._scaled_mm  # noqa: SLF001 - torch has no other for fp8
    return partial(multiply, a, b.T, one, one, out_dtype=torch.bfloat16)


def _multiplied(a: torch.Tensor, b: torch.Tensor, allow_tf32: bool) -> torch.Tensor:  # noqa: FBT001 - of a partial
    torch.backends.cuda.matmul.allow_tf32 = allow_tf32
    return a @ b


def attentions(extent: Extent, device: torch.device) -> Iterator[Work]:
    """Yield causal attention of one sequence, forward alone and with its backward; FLOP are those of the lower half."""
    width = 128
    for length in extent.sequences:
        shape = (1, extent.heads, length, width)
        q, k, v = (torch.randn(shape, device=device, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))

        def forward(q: Any = q, k: Any = k, v: Any = v) -> Any:  # noqa: ANN401 - tensors
            return scaled_dot_product_attention(q, k, v, is_causal=True)

        def both(forward: Callable[[], Any] = forward) -> None:
            forward().sum().backward()

        once = 2.0 * extent.heads * length**2 * width
        like = {"sequence": length, "heads": extent.heads, "head_width": width, "causal": True}
        yield Work("attention", {**like, "backward": False}, forward, flop=once)
        yield Work("attention", {**like, "backward": True}, both, flop=3.5 * once)


def launches(extent: Extent, device: torch.device) -> Iterator[Work]:
    """Yield many kernels that do nothing worth a name, one after the other: launched one by one, and as one graph."""
    small = torch.zeros(1, device=device)

    def stream() -> None:
        for _ in range(extent.kernels):
            small.add_(1)

    yield Work("launch", {"how": "stream"}, stream, times=extent.kernels)
    if device.type == "cuda":
        stream()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            stream()
        yield Work("launch", {"how": "graph"}, graph.replay, times=extent.kernels)


def collectives(extent: Extent, device: torch.device) -> Iterator[Work]:
    """Yield all-reduces of a group of one: what the library costs when nothing has to move."""
    for size in extent.copied:
        buffer = torch.zeros(size // _ITEM, dtype=torch.float32, device=device)
        yield Work("all_reduce", {"size_bytes": size, "ranks": 1}, partial(dist.all_reduce, buffer))


KINDS = (copies, matmuls, attentions, launches, collectives)
"""Everything that is measured, in this order."""


def device(name: str) -> torch.device:
    """Return the device; LackError where it is not there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise LackError("this machine has no GPU that torch can use; --device cpu shows that the script works")
    return torch.device(name)
