"""Along which axes is training split, and what does each of them say to the others?

An axis is one class in the table `AXES`: its size, its own options, and its `traffic`, the collectives that it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from commsim.collectives.kinds import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    SEND_RECV,
    Collective,
)
from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.training.setting import Setting
    from commsim.units import Bytes

When = Literal["forward", "backward", "first forward", "last backward", "message"]
"""Once a layer and micro-batch in the forward or backward pass; once a step and layer behind the first micro-batch's
forward or the last one's backward pass; once a micro-batch between two chunks of layers."""
Behind = Literal["nothing", "matmul", "attention", "pass"]
"""What can hide it: nothing, the matmuls or the attention of the same layer and pass, or all that the pass computes."""


@dataclass(frozen=True)
class Traffic:
    """One collective that an axis needs: what, how large (as the collective counts it), how often, what can hide it.

    `group` names the layout of the plan that takes part; `count` is per layer of the kind asked for.
    """

    axis: str
    group: str
    op: Collective
    size: Bytes
    when: When
    behind: Behind = "nothing"
    count: float = 1.0


@dataclass(frozen=True)
class Axis:
    """A dimension of parallelism; `size` ranks share along it."""

    size: int
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse an axis without ranks; InputError."""
        if not isinstance(self.size, int) or isinstance(self.size, bool) or self.size < 1:
            raise InputError(f"plan: {self.name}", self.size, "a whole number of at least 1 belongs here")

    def traffic(self, setting: Setting, kind: str) -> tuple[Traffic, ...]:
        """Return what one layer of that kind says along this axis."""
        raise NotImplementedError


@dataclass(frozen=True)
class Tensor(Axis):
    """Each matrix is split (Shoeybi et al. 2019); with `sequence` the rest is split along the sequence as well.

    With sequence parallelism an all-reduce becomes reduce-scatter and all-gather (Korthikanti et al. 2022, section 4.2.2).
    """

    sequence: bool = True
    name: ClassVar[str] = "tensor"

    def traffic(self, setting: Setting, kind: str) -> tuple[Traffic, ...]:
        """Return, for each part of the layer, what joins its input and sums its output.

        Backward, Megatron gathers the input again behind the matmul of the input's gradient, and scatters that gradient
        behind the matmul of the weight's.
        """
        parts = setting.tensor_parts(kind)
        if self.size == 1 or not parts:
            return ()
        size = setting.hidden_bytes
        behind: Behind = "matmul" if setting.recipe.overlap_tensor else "nothing"
        if not self.sequence:
            return (
                Traffic("tensor", "tensor", ALL_REDUCE, size, "forward", behind, parts),
                Traffic("tensor", "tensor", ALL_REDUCE, size, "backward", "matmul", parts),
            )
        return (
            Traffic("tensor", "tensor", ALL_GATHER, size, "forward", behind, parts),
            Traffic("tensor", "tensor", REDUCE_SCATTER, size, "forward", behind, parts),
            Traffic("tensor", "tensor", ALL_GATHER, size, "backward", behind, parts),
            Traffic("tensor", "tensor", ALL_GATHER, size, "backward", "matmul", parts),
            Traffic("tensor", "tensor", REDUCE_SCATTER, size, "backward", "matmul", parts),
        )


@dataclass(frozen=True)
class Context(Axis):
    """The sequence is split; attention needs the keys and values of the others.

    `by` is how they travel: `ring` passes them round behind the attention (Liu et al. 2023), `all_gather` collects them
    before it (Llama 3 herd 2024, section 3.3.2).
    """

    by: Literal["ring", "all_gather"] = "ring"
    name: ClassVar[str] = "context"

    def traffic(self, setting: Setting, kind: str) -> tuple[Traffic, ...]:
        """Return the gathering of keys and values, and backward that again and the summing of their gradients."""
        size = setting.exchanged_bytes(kind) * self.size
        if self.size == 1 or not size:
            return ()
        behind: Behind = "attention" if self.by == "ring" else "nothing"
        return (
            Traffic("context", "context", ALL_GATHER, size, "forward", behind),
            Traffic("context", "context", ALL_GATHER, size, "backward", behind),
            Traffic("context", "context", REDUCE_SCATTER, size, "backward", behind),
        )


@dataclass(frozen=True)
class Expert(Axis):
    """Experts are dealt out; `tensor` ranks share each of them. It multiplies nothing: the ranks of tensor, context and
    data inside a pipeline stage are folded again (Megatron-Core's MoE parallel folding, Liu et al. 2025).
    """

    tensor: int = 1
    name: ClassVar[str] = "expert"

    def traffic(self, setting: Setting, kind: str) -> tuple[Traffic, ...]:
        """Return dispatch and combine, forward and backward, of each token to its top-k experts."""
        size = setting.dispatched_bytes(kind)
        if not size:
            return ()
        found: tuple[Traffic, ...] = ()
        if self.size > 1:
            behind: Behind = "pass" if setting.recipe.overlap_expert else "nothing"
            found += tuple(
                Traffic("expert", "expert", ALL_TO_ALL, size * setting.recipe.imbalance, when, behind, 2)
                for when in ("forward", "backward")
            )
        if self.tensor > 1:
            gathered = size * self.tensor
            found += tuple(
                Traffic("expert", "expert tensor", op, gathered, when)
                for when in ("forward", "backward")
                for op in (ALL_GATHER, REDUCE_SCATTER)
            )
        return found


@dataclass(frozen=True)
class Pipeline(Axis):
    """Layers are split into stages; each stage holds `virtual` chunks of layers (Narayanan et al. 2021)."""

    virtual: int = 1
    name: ClassVar[str] = "pipeline"

    def __post_init__(self) -> None:
        """Refuse what is no pipeline; InputError."""
        super().__post_init__()
        if not isinstance(self.virtual, int) or self.virtual < 1:
            raise InputError("plan: virtual stages", self.virtual, "a whole number of at least 1 belongs here")
        if self.size == 1 and self.virtual > 1:
            raise InputError("plan: virtual stages", self.virtual, "1 belongs here: there is only one pipeline stage")

    def traffic(self, setting: Setting, kind: str) -> tuple[Traffic, ...]:
        """Return nothing: a pipeline speaks between chunks, not inside layers (see `message`)."""
        del setting, kind
        return ()

    def message(self, setting: Setting) -> Traffic:
        """Return the activations that go from one chunk of layers to the next, one rank's part of them."""
        size = setting.hidden_bytes / (setting.plan.tensor if setting.plan.sequence else 1)
        return Traffic("pipeline", "pipeline", SEND_RECV, size, "message")


@dataclass(frozen=True)
class Data(Axis):
    """Batches are dealt out. `zero` 1 to 3 shards optimizer state, gradients, weights (Rajbhandari et al. 2020) over
    `shard` ranks (all when None; fewer is hybrid sharding).
    """

    zero: int = 1
    shard: int | None = None
    name: ClassVar[str] = "data"

    def __post_init__(self) -> None:
        """Refuse what is no sharding; InputError."""
        super().__post_init__()
        if self.zero not in (0, 1, 2, 3):
            raise InputError("plan: zero", self.zero, "0, 1, 2 or 3 belongs here")
        if self.shard is not None and (self.shard < 1 or self.size % self.shard):
            raise InputError("plan: shard", self.shard, f"a divisor of the {self.size} data ranks belongs here")

    def traffic(self, setting: Setting, kind: str) -> tuple[Traffic, ...]:
        """Return the summing of gradients and, with sharding, the gathering of weights, of one layer.

        Stage 3 gathers the weights for each micro-batch's forward and backward pass and scatters its gradients.
        """
        shared, experts = setting.weights(kind)
        return (*self._of(setting, "data", shared), *self._of(setting, "expert data", experts))

    def _of(self, setting: Setting, group: str, weights: float) -> tuple[Traffic, ...]:
        if not weights or setting.plan.layout(group).size == 1:
            return ()
        gradients, values = weights * setting.recipe.gradient_bytes, weights * setting.recipe.weight_bytes
        behind: Behind = "pass" if setting.recipe.overlap_data else "nothing"
        if self.zero == 0:
            return (Traffic("data", group, ALL_REDUCE, gradients, "last backward", behind),)
        if self.zero < 3:  # noqa: PLR2004 - the stage that also shards weights
            return (
                Traffic("data", group, REDUCE_SCATTER, gradients, "last backward", behind),
                Traffic("data", group, ALL_GATHER, values, "first forward", behind),
            )
        return (
            Traffic("data", group, ALL_GATHER, values, "forward", "pass"),
            Traffic("data", group, ALL_GATHER, values, "backward", "pass"),
            Traffic("data", group, REDUCE_SCATTER, gradients, "backward", "pass"),
        )


AXES: dict[str, type[Axis]] = {axis.name: axis for axis in (Tensor, Context, Expert, Pipeline, Data)}
ORDER = ("tensor", "context", "data", "pipeline")
"""Megatron's order of ranks, the innermost first; the expert axis re-folds all but the pipeline."""
