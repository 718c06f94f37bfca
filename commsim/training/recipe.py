"""How is the plan run: batches, number formats, what is recomputed, what overlaps?"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.errors import InputError
from commsim.training.operations import FULL, MODULES, NOTHING, PLAIN, SELECTIVE, Recomputed

PRECISIONS: dict[str, tuple[str, str]] = {
    "bf16": ("bf16", "bf16"),
    "fp16": ("fp16", "fp16"),
    "fp8": ("fp8", "bf16"),
    "mxfp8": ("fp8", "bf16"),
    "nvfp4": ("nvfp4", "bf16"),
}
"""For each precision the number format of the layers' matmuls, and of everything else (attention, logits)."""
DISPATCHERS = ("alltoall", "deepep", "hybridep")
"""All-to-all sends a token once to each of its experts; DeepEP and Hybrid-EP once to each place where it has some."""
SCALINGS = {"delayed": 0.0, "tensorwise": 2.0, "rowwise": 22.0}
"""How fp8 numbers are scaled, and what a cast moves for it besides, bytes a number. Delayed scales are those of earlier
steps; one scale of the tensor is found by reading it once. Rows are scaled for the forward pass and columns again for
the gradient of the weight, in kernels that stride: fitted on public step times of Llama 3 8B on 64 H100, which take a
fifth longer with scales of rows than with those of tensors."""
ROUTINGS = ("spread", "consecutive")
"""Which experts a token has: drawn evenly, or neighbours by number, as stand-ins for a router deal them out that are to
balance loads only (NeMo AutoModel, moe/layers.py, FakeBalancedGate: `arange(tokens * top_k) % experts`)."""
SAVED_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "nvfp4": 0.5625}
"""What a matmul keeps of each number of its input for its backward pass: the quantised number, of nvfp4 with the fp8
scale of each sixteen (Transformer Engine)."""
OPERATIONS = "layernorm+activation"
"""What a policy for single operations repeats beside products: none of it is on its list of what is saved."""
RECOMPUTE: dict[str, Recomputed] = {"none": NOTHING, "selective": SELECTIVE, "full": FULL}


@dataclass(frozen=True)
class Recipe:
    """The choices beside the plan, under their trainers' names.

    `global_batch` sequences a step, `micro_batch` of them at once on a rank. `scaling` is that of fp8, `compiled` tells
    whether a compiler fuses what stands between matmuls (torch.compile). `recompute` is none, selective, full or
    Megatron module names joined by `+`; `recompute_layers` limits it to so many layers of a stage. `schedule` is that
    of the pipeline (None: 1F1B, interleaved with virtual stages). `overlap_tensor` = --tp-comm-overlap, `overlap_data`
    = --overlap-grad-reduce and --overlap-param-gather, `overlap_pipeline` = --overlap-p2p-communication (None: all
    schedules but 1F1B), `overlap_expert` = hiding dispatch behind compute. `imbalance` = tokens of the most
    loaded expert rank over the mean. `attention` = the kernel: flash1, flash2, ..., `unfused`, None for the newest that
    the accelerator has. `loss_parallel` splits the vocabulary of the loss over the tensor ranks; `unfused` names what
    PyTorch's own kernels do (of PLAIN, joined by `+`), `expandable_segments` is the setting of PyTorch's allocator.
    `stops_early`: recomputation ends with the last tensor that the backward pass reads. `overlap_backward` hides sums
    of input gradients behind the matmuls of weights' gradients. `dispatcher` = how tokens reach their experts,
    `routing` which these are. `dropless`: every token does, and the host waits for their counts. `efficiency` = what
    the trainer reaches of the rates that kernels are taken to reach.
    """

    global_batch: int
    micro_batch: int = 1
    sequence: int = 8192
    precision: str = "bf16"
    scaling: str = "delayed"
    recompute: str = "none"
    recompute_layers: int | None = None
    schedule: str | None = None
    overlap_tensor: bool = False
    overlap_data: bool = True
    overlap_pipeline: bool | None = None
    overlap_expert: bool = False
    imbalance: float = 1.0
    attention: str | None = None
    cuda_graphs: bool = False
    compiled: bool = False
    loss_parallel: bool = True
    unfused: str = ""
    expandable_segments: bool = True
    stops_early: bool = False
    gradient_bytes: float = 4.0
    weight_bytes: float = 2.0
    overlap_backward: bool = True
    dispatcher: str = "alltoall"
    routing: str = "spread"
    dropless: bool = True
    efficiency: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no recipe; InputError."""
        for name in ("global_batch", "micro_batch", "sequence"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
                raise InputError(name.replace("_", "-"), value, f"a whole number from 1 to {_MOST:.0e} belongs here")
        self._check_names()
        layers = self.recompute_layers
        if layers is not None and (not isinstance(layers, int) or isinstance(layers, bool) or layers < 0):
            raise InputError("recompute-layers", layers, "a whole number that is not negative belongs here")
        if layers and not self.recomputed:
            raise InputError("recompute-layers", layers, "it needs recompute=full (or some modules) beside it")
        for name in ("gradient_bytes", "weight_bytes"):
            if not 0 < getattr(self, name) <= _WIDEST:
                raise InputError(name.replace("_", "-"), getattr(self, name), "bytes, such as 2 or 4, belong here")
        if not 1 <= self.imbalance < float("inf"):
            raise InputError("imbalance", self.imbalance, "a number of at least 1 belongs here")
        if not 0 < self.efficiency <= _QUICKEST:
            raise InputError("efficiency", self.efficiency, f"a share above 0, {_QUICKEST} at most, belongs here")

    def _check_names(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputError("precision", self.precision, "no such precision", among=PRECISIONS)
        if self.scaling not in SCALINGS:
            raise InputError("scaling", self.scaling, "no such scaling", among=SCALINGS)
        if self.routing not in ROUTINGS:
            raise InputError("routing", self.routing, "no such routing", among=ROUTINGS)
        if self.dispatcher not in DISPATCHERS:
            raise InputError("dispatcher", self.dispatcher, "no such dispatcher", among=DISPATCHERS)
        for option, known in (("recompute", (*RECOMPUTE, *MODULES)), ("unfused", ("", *PLAIN))):
            unknown = [name for name in getattr(self, option).split("+") if name not in known]
            if unknown:
                raise InputError(option, unknown[0], "no such choice", among=[name for name in known if name])

    @property
    def recomputed(self) -> Recomputed:
        """The modules whose forward pass runs again."""
        named = [RECOMPUTE.get(name, frozenset({name})) for name in self.recompute.split("+")]
        return frozenset().union(*named)

    @property
    def matmul_format(self) -> str:
        """Number format of the layers' matmuls."""
        return PRECISIONS[self.precision][0]

    @property
    def saved_bytes(self) -> float:
        """Bytes that a matmul keeps of each number of its input."""
        return SAVED_BYTES[self.matmul_format]

    @property
    def other_format(self) -> str:
        """Number format of attention and logits."""
        return PRECISIONS[self.precision][1]


_MOST, _WIDEST, _QUICKEST = 10**9, 8, 2
