"""What do the ranks that share the experts say?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from commsim.collectives.kinds import ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER
from commsim.training.axes.axis import Axis, Behind, Traffic, When, need_whole

if TYPE_CHECKING:
    from commsim.training.pieces import Piece
    from commsim.training.setting import Setting

_PASSES: tuple[When, When] = ("forward", "backward")


def _sent_once(setting: Setting) -> float:
    """Return the share of a token's copies that leave it: one to each place that has some of its experts.

    A place is a scale-up domain where the experts span several, else a rank. With evenly drawn experts k copies meet
    on average n (1 - (1 - 1/n)^k) of n places; neighbours reach fewer (`Experts.reached`).
    """
    experts = next((block.experts for block in setting.model.blocks if block.experts), None)
    if setting.recipe.dispatcher == "alltoall" or not experts:
        return 1.0
    ranks = setting.plan.layout("expert").ranks()[0]
    domains = len({int(rank) for rank in ranks // setting.system.topology.domain_size})
    places = domains if domains > 1 else len(ranks)
    return float(experts.reached(float(places), setting.shard) / experts.top_k)


@dataclass(frozen=True, repr=False)
class Expert(Axis):
    """Experts are dealt out; `tensor` ranks share each of them.

    It multiplies nothing: the ranks of tensor, context and data inside a pipeline stage are folded again
    (Megatron-Core's MoE parallel folding, Liu et al. 2025).
    """

    tensor: int = 1
    name: ClassVar[str] = "expert"

    def __post_init__(self) -> None:
        """Refuse experts without ranks; InputError."""
        super().__post_init__()
        need_whole("plan: expert-tensor", self.tensor)

    def traffic(self, setting: Setting, piece: Piece) -> tuple[Traffic, ...]:
        """Return dispatch and combine, forward and backward, of each token to its top-k experts.

        All wait for the rank that gets most tokens. The ranks that share an expert first gather its tokens, and at last
        scatter the sums.
        """
        if not piece.sent:
            return ()
        size = setting.bytes_of(piece.sent) / setting.plan.tensor * setting.imbalance * _sent_once(setting)
        behind: Behind = "pass" if setting.recipe.overlap_expert else "nothing"
        again = bool(piece.recomputed & {"moe", "layer"})
        moved = [
            Traffic("expert", "expert", ALL_TO_ALL, size, when, behind, 2, repeated=again, held=1.0) for when in _PASSES
        ]
        shared = [
            Traffic("expert", "expert tensor", op, size * self.tensor, when, repeated=again, held=1.0)
            for when in _PASSES
            for op in (ALL_GATHER, REDUCE_SCATTER)
        ]
        return (*moved, *shared)
