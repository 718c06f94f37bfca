"""What makes ranks slow?

A kind is one class, entered in the table `KINDS`. Its fields are what a person knows of the cause, its `effects` what
it does to a step. Parameters stand with those who measured them; where a field has no default, nobody published one.
"""

from commsim.stragglers.kinds.balance import ExpertImbalance, SequenceImbalance
from commsim.stragglers.kinds.compute import Jitter, LastStage, SharedJitter, SlowRank, Throttling, Variation
from commsim.stragglers.kinds.failures import Failures
from commsim.stragglers.kinds.host import DataLoading, OsNoise, Pause
from commsim.stragglers.kinds.network import Collisions, Congestion, FlappingLink, SlowLink, SlowNetwork
from commsim.stragglers.kinds.straggler import Effected, Straggler

KINDS: dict[str, type[Straggler]] = {
    "effects": Effected,
    "variation": Variation,
    "jitter": Jitter,
    "shared-jitter": SharedJitter,
    "slow-rank": SlowRank,
    "slow-link": SlowLink,
    "slow-network": SlowNetwork,
    "flapping-link": FlappingLink,
    "collisions": Collisions,
    "congestion": Congestion,
    "throttling": Throttling,
    "os-noise": OsNoise,
    "pause": Pause,
    "sequence-imbalance": SequenceImbalance,
    "expert-imbalance": ExpertImbalance,
    "last-stage": LastStage,
    "data-loading": DataLoading,
    "failures": Failures,
}
"""Every kind of cause by its name."""

__all__ = [
    "KINDS",
    "Collisions",
    "Congestion",
    "DataLoading",
    "Effected",
    "ExpertImbalance",
    "Failures",
    "FlappingLink",
    "Jitter",
    "LastStage",
    "OsNoise",
    "Pause",
    "SequenceImbalance",
    "SharedJitter",
    "SlowLink",
    "SlowNetwork",
    "SlowRank",
    "Straggler",
    "Throttling",
    "Variation",
]
