"""What can be done about stragglers, how long is a step then, and what is lost for it?

A mitigation is one class, entered in the table `MITIGATIONS`: it changes the causes, the step, the work or how the
replicas wait for each other, and says what it loses and who has shown it.
"""

from commsim.stragglers.mitigations.balance import (
    ExpertRebalancing,
    MicroBatchRebalancing,
    Redistribution,
    UnevenLayers,
)
from commsim.stragglers.mitigations.mitigation import Mitigation
from commsim.stragglers.mitigations.outcome import Outcome, mitigate
from commsim.stragglers.mitigations.ranks import MoveStage, Screening, Spares
from commsim.stragglers.mitigations.sources import PacketSpraying, PlannedGc
from commsim.stragglers.mitigations.waiting import BackupWorkers, DropCompute, LocalSgd

MITIGATIONS: dict[str, type[Mitigation]] = {
    "spares": Spares,
    "screening": Screening,
    "move-stage": MoveStage,
    "uneven-layers": UnevenLayers,
    "micro-batch-rebalancing": MicroBatchRebalancing,
    "redistribution": Redistribution,
    "expert-rebalancing": ExpertRebalancing,
    "planned-gc": PlannedGc,
    "packet-spraying": PacketSpraying,
    "backup-workers": BackupWorkers,
    "drop-compute": DropCompute,
    "local-sgd": LocalSgd,
}
"""Every mitigation by its name."""

__all__ = [
    "MITIGATIONS",
    "BackupWorkers",
    "DropCompute",
    "ExpertRebalancing",
    "LocalSgd",
    "MicroBatchRebalancing",
    "Mitigation",
    "MoveStage",
    "Outcome",
    "PacketSpraying",
    "PlannedGc",
    "Redistribution",
    "Screening",
    "Spares",
    "UnevenLayers",
    "mitigate",
]
