"""Which reasons are known for a step to take another time than was estimated?

Options that trainers leave off, or on, without saying so, and machines that are slower than their data sheets. The
shares left are between the extremes that were reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commsim.training.estimate import links_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.training.setting import Setting
    from commsim.units import Share

Options = dict[str, Any]


@dataclass(frozen=True)
class Reason:
    """A way in which a run differs from its estimate.

    `options` are options of the recipe that are other than said; `resources` are what is slower (`compute`, `memory`,
    patterns of kinds of link), of which a share between the least and the most of `left` is left, `usual` where people
    met it.
    """

    name: str
    title: str
    advice: str
    applies: Callable[[Setting], bool] = lambda _: True
    options: Callable[[Setting], Options] = lambda _: {}
    resources: Callable[[Setting], tuple[str, ...]] = lambda _: ()
    left: tuple[Share, Share] = (1.0, 1.0)
    usual: Share = 1.0


def _option(name: str, *, value: object) -> tuple[Callable[[Setting], bool], Callable[[Setting], Options]]:
    """An option of the recipe that has another value than said: when that is a difference, and the option."""
    return (lambda setting: getattr(setting.recipe, name) != value), (lambda _: {name: value})


def _links(which: str) -> Callable[[Setting], tuple[str, ...]]:
    return lambda setting: tuple(links_of(setting.system)[which])


def _several(setting: Setting) -> bool:
    return setting.system.nodes > 1


REASONS = (
    Reason(
        "full-recompute",
        "every layer is recomputed",
        "look for --recompute-granularity full, activation_checkpoint mode full, gradient_checkpointing",
        *_option("recompute", value="full"),
    ),
    Reason(
        "no-recompute",
        "nothing is recomputed",
        "look whether activation checkpointing is on as you think",
        *_option("recompute", value="none"),
    ),
    Reason(
        "data-exposed",
        "gradients and weights are not exchanged behind compute",
        "turn on --overlap-grad-reduce and --overlap-param-gather; look at CUDA_DEVICE_MAX_CONNECTIONS",
        *_option("overlap_data", value=False),
    ),
    Reason(
        "bf16",
        "matmuls run in bf16",
        "look whether fp8 is really on: recipe, hardware, and dimensions that are multiples of 16",
        lambda setting: setting.recipe.matmul_format not in {"bf16", "fp16"},
        lambda _: {"precision": "bf16"},
    ),
    Reason(
        "unfused-attention",
        "attention is not fused",
        "look which kernel runs: flash attention needs its package, a supported head size and no arbitrary mask",
        lambda setting: setting.recipe.attention != "unfused" and setting.recipe.sequence <= 2**15,
        lambda _: {"attention": "unfused"},
    ),
    Reason(
        "imbalance",
        "tokens are dealt unevenly to experts",
        "log tokens by expert; use the auxiliary loss or bias balancing, or a capacity factor",
        lambda setting: setting.plan.expert > 1 and setting.recipe.imbalance == 1,
        lambda _: {"imbalance": 1.5},
    ),
    Reason(
        "slow-network",
        "the network between nodes is slower than its data sheet",
        "run nccl-tests on these nodes and `commsim check` on what it prints; screen nodes in pairs",
        _several,
        resources=_links("network"),
        left=(0.02, 0.85),
        usual=0.3,
    ),
    Reason(
        "slow-scale-up",
        "links inside the scale-up domain are slower than their data sheet",
        "run nccl-tests on one node and `commsim check` on what it prints; nvidia-smi nvlink --status",
        lambda setting: setting.system.gpus > 1,
        resources=_links("scale-up"),
        left=(0.05, 0.85),
        usual=0.7,
    ),
    Reason(
        "slow-gpus",
        "GPUs compute slower: low clocks, or one of them is slow and all wait for it",
        "nvidia-smi -q -d CLOCK,PERFORMANCE: look for thermal and power caps; time each rank (`commsim replay`)",
        resources=lambda _: ("compute", "memory"),
        left=(0.4, 0.95),
        usual=0.9,
    ),
)
"""From the ones that leave nothing open to those that could explain much."""
