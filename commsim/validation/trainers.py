"""What does a trainer do where nobody said what it did?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from commsim.training.setting import UNFUSED

if TYPE_CHECKING:
    from collections.abc import Mapping

NEWEST = 9999
"""The year of a result that does not tell it."""


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """A trainer as it was from some year on: its defaults.

    `attention` names the kernel by architecture (the newest of an architecture that is not named), `gathers_fp8`
    whether weights travel in fp8 when matmuls are fp8, `context` how keys and values travel. One that `rematerialises`
    computes as much again as memory demands; one that `splits_experts` puts the tensor axis on them, too, where it
    folds. One that chooses operations to recompute `saves_products`, or only every second.
    `overlap_tensor` is said of dense models. `overlap_backward`, `unfused`, `loss_parallel`,
    `expandable_segments`, `stops_early`, `dispatcher` (by architecture) and `efficiency` are as in a recipe.
    """

    name: str
    since: int = 0
    sequence: bool = True
    zero: int = 1
    recompute: str = "none"
    rematerialises: bool = False
    gradients: str = "fp32"
    gathers_fp8: bool = False
    overlap_data: bool = True
    overlap_backward: bool = True
    unfused: str = ""
    loss_parallel: bool = True
    expandable_segments: bool = True
    stops_early: bool = False
    saves_products: bool = True
    dispatcher: Mapping[str, str] = field(default_factory=dict)
    efficiency: float = 1.0
    overlap_tensor: bool = False
    splits_experts: bool = False
    context: Literal["ring", "all_gather"] = "ring"
    attention: Mapping[str, str] = field(default_factory=dict)


_UNFUSED = dict.fromkeys(("volta", "ampere", "hopper"), UNFUSED)
_FLASH_2 = {"hopper": "flash2"}
_DEEPEP = {"hopper": "deepep"}
_ONCE = {"hopper": "deepep", "blackwell": "hybridep", "blackwell-ultra": "hybridep"}

TRAINERS: Mapping[str, tuple[Trainer, ...]] = {
    "megatron": (
        # Narayanan et al. 2021: gradients are all-reduced in fp16 after the last backward pass.
        Trainer(
            name="Megatron-LM of 2021",
            expandable_segments=False,
            sequence=False,
            zero=0,
            overlap_data=False,
            overlap_backward=False,
            gradients="fp16",
            attention=_UNFUSED,
            unfused="loss",
            efficiency=1.06,
        ),
        # Korthikanti et al. 2022 add sequence parallelism; selective recomputation exists because scores are written.
        Trainer(
            name="Megatron-LM of 2022",
            expandable_segments=False,
            since=2022,
            zero=0,
            overlap_data=False,
            gradients="fp16",
            attention=_UNFUSED,
            unfused="loss",
            efficiency=1.07,
        ),
        # --use-flash-attn and --use-distributed-optimizer; bf16 gradients are accumulated and reduced in fp32.
        Trainer(
            name="Megatron-LM of 2023",
            expandable_segments=False,
            since=2023,
            attention={"ampere": "flash1", "hopper": "flash2"},
            unfused="loss",
        ),
        # Transformer Engine takes cuDNN's attention; --overlap-grad-reduce and --overlap-param-gather.
        Trainer(name="Megatron-Core", since=2024, splits_experts=True),
    ),
    "nemo": (
        # Its launcher recomputes attention selectively, as its scores are written.
        Trainer(name="NeMo of 2023", gradients="bf16", attention=_UNFUSED, efficiency=0.96),
        # Performance recipes: tp_comm_overlap for dense models, grad_reduce_in_fp32=False, fp8_param_gather.
        Trainer(
            name="NeMo recipes",
            since=2024,
            gradients="bf16",
            gathers_fp8=True,
            overlap_tensor=True,
            splits_experts=True,
        ),
    ),
    "megatron-bridge": (  # as NeMo, but expert_tensor_parallel_size is 1, and tokens are sent once to each place
        Trainer(
            name="Megatron-Bridge recipes of 2025",
            gradients="bf16",
            gathers_fp8=True,
            overlap_tensor=True,
            unfused="clamp",
            dispatcher=_DEEPEP,
        ),
        Trainer(
            name="Megatron-Bridge recipes",
            since=2026,
            gradients="bf16",
            gathers_fp8=True,
            overlap_tensor=True,
            unfused="clamp",
            dispatcher=_ONCE,
        ),
    ),
    # DeepSpeed reduces in the format of the gradients after the last micro-batch; its fused softmax writes the scores.
    "megatron-deepspeed": (
        Trainer(
            name="Megatron-DeepSpeed of 2021",
            expandable_segments=False,
            sequence=False,
            overlap_data=False,
            overlap_backward=False,
            gradients="fp16",
            attention=_UNFUSED,
            unfused="loss",
            efficiency=0.88,
        ),
        Trainer(
            name="Megatron-DeepSpeed",
            expandable_segments=False,
            since=2024,
            sequence=False,
            overlap_data=False,
            overlap_backward=False,
            gradients="fp16",
            attention=_UNFUSED,
            unfused="loss",
            efficiency=1.07,
        ),
    ),
    "deepspeed": (
        Trainer(
            name="DeepSpeed",
            sequence=False,
            zero=3,
            overlap_data=False,
            overlap_backward=False,
            gradients="fp16",
            attention=_UNFUSED,
            unfused="loss",
            efficiency=0.52,
        ),
    ),
    # Gradients stay bf16; all logits are gathered for PyTorch's cross entropy, norm and SwiGLU are PyTorch's kernels
    # (Aleph-Alpha/scaling: lm_head.py, cross_entropy.py, mlp.py, rms_norm.py).
    "aa-scaling": (
        Trainer(
            name="AA-Scaling",
            sequence=False,
            gradients="bf16",
            loss_parallel=False,
            unfused="norm+activation+loss",
            expandable_segments=False,
            attention={"ampere": "flash1", "hopper": "flash2"},
            efficiency=1.045,
        ),
    ),
    "internevo": (Trainer(name="InternEvo", gradients="bf16", efficiency=0.97),),
    # Each model of Pax has a checkpoint policy of its own; the result does not say which.
    "jax": (Trainer(name="Pax", zero=3, gradients="bf16", rematerialises=True, efficiency=0.93),),
    # MixedPrecision(reduce_dtype=bfloat16); PyTorch's scaled_dot_product_attention is FlashAttention 2.
    "fsdp": (Trainer(name="PyTorch FSDP", zero=3, gradients="bf16", attention=_FLASH_2),),
    # torch.utils.checkpoint; reduce_dtype is float32. Torch 2.11 with cuDNN 9.19 takes cuDNN's attention on Hopper; a
    # DTensor's input gradient is summed once both gradients are there, and all logits are gathered for the loss.
    "kempnerforge": (
        Trainer(
            name="KempnerForge",
            zero=3,
            stops_early=True,
            overlap_backward=False,
            loss_parallel=False,
        ),
    ),
    # examples/llm_benchmark: activation_checkpointing is true, attention Transformer Engine's; reduce_dtype is float32.
    "automodel": (Trainer(name="NeMo AutoModel", zero=3, recompute="full", stops_early=True),),
    # mixed_precision_reduce is float32, activation checkpointing selective by operation, context parallel all-gather.
    "torchtitan": (
        Trainer(
            name="torchtitan",
            zero=3,
            recompute="selective",
            stops_early=True,
            saves_products=False,
            overlap_backward=False,
            context="all_gather",
            attention=_FLASH_2,
        ),
    ),
}
"""By name, the oldest first; `trainer_of` tells which one a result was made with. Efficiencies are fitted on published
step times, against those whose figures say nothing else."""
_FRAMEWORKS = {
    "torchtitan": "torchtitan",
    "nemo/": "nemo",
    "megatron-bridge": "megatron-bridge",
    "aa-scaling": "aa-scaling",
    "kempnerforge": "kempnerforge",
    "nemo automodel": "automodel",
}
"""Frameworks with settings of their own, by how their names begin."""


def trainer_of(name: str, framework: str, year: int | None) -> Trainer | None:
    """Return the trainer of a result as it was in that year; None for one that is not known.

    A framework with settings of its own counts before the trainer on which it is built.
    """
    special = (known for start, known in _FRAMEWORKS.items() if framework.lower().startswith(start))
    known = TRAINERS.get(next(special, name), ())
    return next((one for one in reversed(known) if one.since <= (year or NEWEST)), None)
