"""What does one rank compute, move and keep for one micro-batch?

Every number here may be an array with one entry a plan, so that a search asks once for all its plans.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = float | npt.NDArray[np.float64]
Kind = Literal["matmul", "attention", "memory"]
Split = Literal["columns", "rows", "groups", "heads", "sequence", "experts", "none"]
Recomputed = frozenset[str]

NOTHING: Recomputed = frozenset()
SELECTIVE: Recomputed = frozenset({"core_attn"})
FULL: Recomputed = frozenset({"layer"})
"""The three classic choices of what the backward pass computes again (Korthikanti et al. 2022, section 5)."""
MATMULS: Recomputed = frozenset({"matmul", "second_matmul"})
"""Products with weights, or every second of them (Operation.again)."""
MODULES = (
    *("core_attn", "layernorm", "mla_up_proj", "activation", "mlp", "moe_act", "moe", "shared_experts"),
    *sorted(MATMULS),
    "layer",
)
"""What can be computed again alone, by the names of Megatron's --recompute-modules (`activation`: of a dense MLP)."""
_HALF = 0.5

AT_ONCE: Recomputed = frozenset({"loss"})
"""What the loss keeps: its backward pass follows at once, so that it is there once, however much is in flight."""
PLAIN = ("norm", "activation", "loss", "softmax", "clamp")
"""What a trainer may leave to PyTorch's own kernels, one after the other, where others have one for all of it:
`softmax` is that of unfused attention, `clamp` the activation of experts with biases."""

GRADIENT_BYTES = 8.0
"""A weight's gradient is added to what is there, which is read and written: fp32, unless the recipe says otherwise."""
SCORE_BYTES = 4.0
"""Logits, router scores and the softmax statistics of fused attention are fp32."""


@dataclass(frozen=True, eq=False)
class Shard:
    """What one rank is given: numbers, or arrays with one entry a plan.

    `tokens` is micro-batch × sequence / context; `element` the bytes of an activation, `saved` those that a matmul
    keeps of a number of its input, `gradient` those moved to add to a weight's gradient. With `sequence_parallel` the
    tensor ranks share the tokens wherever the hidden dimension is whole. Unfused attention writes its scores to memory;
    `unfused` names what else PyTorch's own kernels do. Without `loss_parallel` every tensor rank has all logits.
    `copies` tells whether tokens are copied for each of their experts before they are sent, `sorts` whether a kernel of
    its own sorts them by expert where they arrive; `neighbours`: experts of a token follow each other by number.
    `scales` are the bytes that finding its scale moves of a number that is cast. `ring`: keys and values of other
    context ranks come block by block.
    """

    tokens: Array
    sequence: Array
    tensor: Array = 1.0
    context: Array = 1.0
    expert: Array = 1.0
    expert_tensor: Array = 1.0
    element: Array = 2.0
    sequence_parallel: bool = True
    fused_attention: bool = True
    saved: Array = 2.0
    unfused: frozenset[str] = NOTHING
    loss_parallel: bool = True
    gradient: float = GRADIENT_BYTES
    copies: bool = True
    sorts: bool = True
    neighbours: bool = False
    scales: float = 0.0
    ring: bool = True

    @property
    def spread(self) -> Array:
        """Tokens of the rank in norms, residuals and the router."""
        return self.tokens / self.tensor if self.sequence_parallel else self.tokens

    @property
    def copied(self) -> Array:
        """Bytes that a matmul keeps of a number which another kernel keeps, too: none when they share the tensor."""
        return self.saved if self.narrow else 0.0

    @property
    def narrow(self) -> bool:
        """Whether matmuls take numbers of a narrower format than other kernels."""
        return bool(np.all(self.saved < self.element))

    def rows(self, top_k: Array) -> Array:
        """Return the tokens that reach the rank, each so many times, when all experts are equally loaded."""
        return self.tokens / self.tensor * top_k * self.expert_tensor

    def lanes(self, count: int) -> Array:
        """Return how many of `count` heads the rank holds: at least one, so few KV heads are replicated."""
        held: Array = count / np.minimum(self.tensor, count)
        return held


@dataclass(frozen=True, eq=False)
class Operation:
    """One kernel of the forward pass, and what its backward pass costs.

    A matmul is `batch` products of m × k by k × n; attention has m queries, n keys seen on average, keys of width k and
    `batch` heads. `bytes` is what must cross HBM when every tensor is touched once. `recompute` names the modules that
    repeat it; what is not `counted` is left out of the model's FLOPs. `accumulated` bytes are moved when the
    product, or the attention to a block of keys, is added to what is there; `casts`: m × k must first be brought to the
    matmul's format, whose scales need `scales` bytes more of each number.
    """

    name: str
    kind: Kind
    split: Split
    flops: Array
    bytes: Array
    backward_flops: Array
    backward_bytes: Array
    m: Array = 0.0
    n: Array = 0.0
    k: Array = 0.0
    batch: Array = 1.0
    recompute: Recomputed = FULL
    counted: bool = True
    accumulated: Array = 0.0
    casts: bool = True
    scales: float = 0.0

    def again(self, recomputed: Recomputed) -> float:
        """Return the share of it that runs a second time when these modules are recomputed.

        torchtitan's policy for single operations saves every second result of torch.mm; in Llama's blocks keys, output
        and one half of gate and up have half of the weights of all but the last matrix.
        """
        found = self.recompute & recomputed
        return _HALF if found == {"second_matmul"} else float(bool(found))

    @property
    def backward(self) -> tuple[Operation, ...]:
        """The operations of the backward pass: a matmul has two, the gradients of its input and of its weight.

        The second finds both operands in the matmul's format: each was cast together with its transpose.
        """
        if self.kind != "matmul":
            name = f"{self.name} gradient"
            return (dataclasses.replace(self, name=name, flops=self.backward_flops, bytes=self.backward_bytes),)
        of_input = dataclasses.replace(self, name=f"{self.name} input gradient", n=self.k, k=self.n)
        of_weight = dataclasses.replace(self, name=f"{self.name} weight gradient", m=self.k, k=self.m)
        added = self.backward_bytes - self.bytes
        return of_input, dataclasses.replace(of_weight, bytes=self.backward_bytes, accumulated=added, casts=False)


@dataclass(frozen=True, eq=False)
class Stored:
    """A tensor that the backward pass needs: its bytes on the rank, and the modules whose recomputation frees it.

    `gradient` is what is there besides while its gradient is worked out, B: as much again when None.
    """

    name: str
    bytes: Array
    split: Split
    recompute: Recomputed = FULL
    gradient: Array | None = None


@dataclass(frozen=True, eq=False)
class Work:
    """What one layer, or one end of the model, asks of a rank: operations, stored tensors and weights held."""

    operations: tuple[Operation, ...]
    stored: tuple[Stored, ...]
    weights: Array
    expert_weights: Array = 0.0

    @property
    def flops(self) -> Array:
        """FLOPs of the forward pass."""
        return sum((operation.flops for operation in self.operations), 0.0)

    @cached_property
    def backward(self) -> tuple[Operation, ...]:
        """The operations of the backward pass, without what is computed again."""
        return tuple(part for operation in reversed(self.operations) for part in operation.backward)

    def again(self, recomputed: Recomputed, *, early: bool = False) -> tuple[float, ...]:
        """Return the share of each operation that runs a second time when these modules are recomputed.

        No backward pass reads what the last matmul gives. PyTorch's checkpoints that are not reentrant stop before it
        (torch.utils.checkpoint.set_checkpoint_early_stop, on by default since 2.1); a compiler finds it dead: `early`.
        """
        shares = [one.again(recomputed) for one in self.operations]
        matmuls = [place for place, one in enumerate(self.operations) if one.kind == "matmul"]
        read = matmuls[-1] if early and matmuls else len(shares)
        return (*shares[:read], *(0.0 for _ in shares[read:]))

    def kept(self, recomputed: Recomputed = NOTHING) -> Array:
        """Return the bytes that stay on the rank from forward to backward when these modules are recomputed."""
        return sum((tensor.bytes for tensor in self.stored if not tensor.recompute & recomputed), 0.0)

    @property
    def gradients(self) -> Array:
        """Bytes of the gradients of stored tensors that are on the rank at once: those of the largest."""
        found: Array = 0.0
        for one in self.stored:
            found = np.maximum(found, one.bytes if one.gradient is None else one.gradient)
        return found

    def __add__(self, other: Work) -> Work:
        return Work(
            self.operations + other.operations,
            self.stored + other.stored,
            self.weights + other.weights,
            self.expert_weights + other.expert_weights,
        )


def passing(
    name: str, shard: Shard, forward: Array, backward: Array, *, split: Split, recompute: Recomputed = FULL
) -> Operation:
    """Return a memory-bound operation that moves so many elements in the forward and in the backward pass."""
    moved = shard.element * forward, shard.element * backward
    return Operation(name, "memory", split, 0.0, moved[0], 0.0, moved[1], recompute=recompute)


def product(
    name: str,
    shard: Shard,
    shape: tuple[Array, Array, Array, Array],
    *,
    split: Split,
    gradient: Array | None = None,
    recompute: Recomputed = FULL,
    counted: bool = True,
) -> Operation:
    """Return the matmul of shape (m, k, n, batch).

    `gradient` is bytes moved per element of the second gradient (None: that of a weight).
    """
    m, k, n, batch = shape
    added = shard.gradient if gradient is None else gradient
    flops = 2 * m * k * n * batch
    moved = shard.element * (m * k + k * n + m * n) * batch
    with_gradient = moved + (added - shard.element) * k * n * batch
    return Operation(
        name,
        "matmul",
        split,
        flops,
        moved,
        2 * flops,
        with_gradient,
        m=m,
        n=n,
        k=k,
        batch=batch,
        recompute=recompute,
        counted=counted,
        scales=shard.scales,
    )


def union(*modules: str) -> Recomputed:
    """Return the modules, and the whole layer, which frees and repeats everything in it."""
    return FULL.union(modules)
