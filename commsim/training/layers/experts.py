"""What is a layer of experts?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from commsim.errors import InputError
from commsim.training.layers.feed_forward import GATED_PASSES, PLAIN_PASSES, FeedForward
from commsim.training.layers.part import need_positive
from commsim.training.operations import SCORE_BYTES, Array, Operation, Shard, Stored, passing, union
from commsim.training.projections import Lanes, Projection, Share, replicated

CLAMPED_PASSES = 24.0, 45.0
"""Widths that the activation of experts with biases moves when each of its operations is a kernel: bias, two copies out
of the interleaved result, two clamps, scale, sigmoid, product, shift, product, router's weight (gpt-oss, 2025)."""
_MOE = union("moe")
_ACTIVATION = union("moe", "moe_act")
_SHARED = union("moe", "shared_experts")
Named = TypeVar("Named", Projection, Operation, Stored)


@dataclass(frozen=True)
class Experts:
    """`count` small feed-forward layers of `width`; a router sends each token to `top_k` of them (Shazeer et al. 2017).

    `shared` is the width that every token passes besides; with `latent`, tokens are projected to that width before
    they are sent and back afterwards. Each operation takes equal loads; who prices imbalance scales them.
    """

    count: int
    top_k: int
    width: int
    gated: bool = True
    shared: int = 0
    latent: int | None = None
    latent_norm: bool = False
    shared_gate: bool = False
    bias: bool = False
    router_bias: bool = False

    def __post_init__(self) -> None:
        need_positive(self, "count", "top_k", "width")
        if self.top_k > self.count:
            raise InputError("Experts: top_k", self.top_k, f"at most the {self.count} experts that there are")

    @property
    def label(self) -> str:
        """`moe`."""
        return "moe"

    def sent(self, hidden: int) -> int:
        """Return the width of a token on its way to an expert."""
        return self.latent or hidden

    @property
    def _shared(self) -> tuple[FeedForward, ...]:
        return (FeedForward(self.shared, self.gated),) if self.shared else ()

    def projections(self, hidden: int) -> tuple[Projection, ...]:
        """Return the router, the way to the latent, the experts' up and down, the way back, the shared experts."""
        sent = self.sent(hidden)
        up = self._matrix("expert up", sent, (self.width, 1 + self.gated), "expert columns")
        down = self._matrix("expert down", self.width, (sent, 1), "expert rows")
        there = (replicated("latent down", hidden, sent, _MOE),) if self.latent else ()
        back = (replicated("latent up", sent, hidden, _MOE),) if self.latent else ()
        router = replicated("router", hidden, self.count, _MOE, counted=False)
        gate = (replicated("shared gate", hidden, 1, _SHARED, counted=False),) if self.shared_gate else ()
        shared = (part for layer in self._shared for part in _named(layer.projections(hidden)))
        return router, *there, up, down, *back, *gate, *shared

    def _matrix(self, name: str, inputs: int, lanes: Lanes, share: Share) -> Projection:
        return Projection(name, inputs, (lanes,), share, copies=self.count, used=self.top_k, recompute=_MOE)

    def vectors(self, hidden: int) -> int:
        """Return the biases of experts and router, and the norm of the latent."""
        biases = self.count * (self._bias(hidden) + 1) if self.bias else 0
        latent = (self.latent or 0) if self.latent_norm else 0
        return biases + latent + self.router_bias * self.count

    def _bias(self, hidden: int) -> int:
        """The biases of one expert."""
        return self.width * (1 + self.gated) + hidden

    def idle(self, hidden: int) -> int:
        """Return how many of the biases belong to experts that a token does not pass."""
        return (self.count - self.top_k) * self._bias(hidden) if self.bias else 0

    def operations(self, hidden: int, shard: Shard) -> tuple[Operation, ...]:
        """Return router, shared experts (they wait for nobody), permutation, experts and combination.

        What is done to tokens as they arrive is undone, in reverse, before they leave.
        """
        routed = [part.operation(shard) for part in self.projections(hidden) if "shared" not in part.name]
        gates = [part.operation(shard) for part in self.projections(hidden) if part.name == "shared gate"]
        shared = [part for layer in self._shared for part in _named(layer.operations(hidden, shard))]
        up = next(number for number, part in enumerate(routed) if part.name == "expert up")
        before, (first, second), after = routed[:up], routed[up : up + 2], routed[up + 2 :]
        there, sort, activation, back = self._moves(hidden, shard)
        arrived = (*(sort,) * shard.sorts, *self._pads(hidden, shard))
        to, fro = ((there, *arrived), (*arrived[::-1], back)) if shard.copies else (arrived, arrived[::-1])
        routed_path = *to, first, activation, second, *fro, *after
        return *before, self._choice(shard), *gates, *shared, *routed_path

    def _choice(self, shard: Shard) -> Operation:
        """Return the softmax and the choice: scores read and written in fp32, and their gradient."""
        scores = shard.spread * self.count * SCORE_BYTES / shard.element
        return passing("routing", shard, 2 * scores, 3 * scores, split="sequence", recompute=_MOE)

    def _moves(self, hidden: int, shard: Shard) -> tuple[Operation, Operation, Operation, Operation]:
        """Return permutation, sorting by local expert (needed where tokens come from several ranks), activation, sum.

        Copies are made and summed on the token's own rank, or where they arrive if tokens are sent once to each rank;
        sorting reads what arrives and writes a row for each expert, the sum the other way round.
        """
        sent = self.sent(hidden)
        own = shard.tokens / shard.tensor * sent
        copied = own * (1 + self.top_k)
        arriving = self.top_k if shard.copies else self.reached(shard.expert, shard)
        alone = np.minimum(shard.expert * shard.expert_tensor - 1, 1)
        sorted_ = (shard.rows(arriving) + shard.rows(self.top_k)) * sent * alone
        inner = shard.rows(self.top_k) * self.width / shard.expert_tensor
        forward, backward = self._passes(shard)
        return (
            passing("permute", shard, copied, copied, split="sequence", recompute=_MOE),
            passing("sort by expert", shard, sorted_, sorted_, split="experts", recompute=_MOE),
            passing(
                "expert activation", shard, forward * inner, backward * inner, split="experts", recompute=_ACTIVATION
            ),
            passing("unpermute", shard, copied, copied, split="sequence", recompute=_MOE),
        )

    def _pads(self, hidden: int, shard: Shard) -> tuple[Operation, ...]:
        """Return the copy that fills up the rows of each expert as narrow formats want it; its inverse moves as much.

        FP8 takes multiples of 16 rows or more (Transformer Engine's `Fp8Padding`); Hybrid-EP leaves gaps as it sorts.
        """
        if not (shard.sorts and shard.narrow):
            return ()
        moved = 2 * shard.rows(self.top_k) * self.sent(hidden)
        return (passing("pad", shard, moved, moved, split="experts", recompute=_MOE),)

    def reached(self, places: Array, shard: Shard) -> Array:
        """Return on how many of these places, which share the experts out, the experts of a token are.

        Evenly drawn: n (1 - (1 - 1/n)^k) of n. Neighbours: the first, and one more for each border between places that
        lies among them; k neighbours have k - 1 steps, each of which is a border once in experts / n.
        """
        if shard.neighbours:
            return np.minimum(1 + (self.top_k - 1) * places / self.count, places)
        return places * (1 - (1 - 1 / places) ** self.top_k)

    def _passes(self, shard: Shard) -> tuple[float, float]:
        """Widths that the activation moves, forward and backward."""
        if self.bias and "clamp" in shard.unfused:
            return CLAMPED_PASSES
        return GATED_PASSES if self.gated else PLAIN_PASSES

    def stored(self, hidden: int, shard: Shard) -> tuple[Stored, ...]:
        """Return scores, the tokens that reached the experts, and the activation's input and result.

        Router weights are multiplied into the activation's result (Megatron Core since 0.12), so what the experts give
        back is not kept.
        """
        rows = shard.rows(self.top_k)
        inner = rows * self.width / shard.expert_tensor
        latent = shard.element * shard.spread * (self.latent or 0) * (1 + self.latent_norm)
        shared = (part for layer in self._shared for part in _named(layer.stored(hidden, shard)))
        return (
            Stored("router scores", SCORE_BYTES * shard.spread * self.count, "sequence", _MOE),
            *((Stored("latents", latent, "sequence", _MOE),) if self.latent else ()),
            Stored("expert input", shard.saved * rows * self.sent(hidden), "experts", _MOE),
            Stored("expert up", shard.element * inner * (1 + self.gated), "experts", _MOE),
            Stored("expert activated", shard.saved * inner, "experts", _ACTIVATION),
            *shared,
        )


def _named(parts: tuple[Named, ...]) -> tuple[Named, ...]:
    """Return the parts of a dense layer under the names and modules of a shared expert."""
    return tuple(dataclasses.replace(part, name=f"shared {part.name}", recompute=_SHARED) for part in parts)
