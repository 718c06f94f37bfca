"""What does any trace say of who was late?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.measurement.traces.calls import CallTrace
from commsim.measurement.traces.dumps import DumpTrace
from commsim.measurement.traces.events import EventTrace
from commsim.measurement.traces.read import trace
from commsim.stragglers.replay.calls import replay_calls
from commsim.stragglers.replay.dumps import replay_dumps
from commsim.stragglers.replay.events import replay_events
from commsim.stragglers.replay.steps import replay_steps

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.traces.read import Trace
    from commsim.stragglers.replay.result import Replay


def replay(*files: str | Path, schedule: str = "1f1b", virtual: int = 1) -> Replay:
    """Return what a trace says: one file, or one for each rank, of any format that is known.

    `schedule`, with `virtual` chunks of the model a stage, is the order of a pipeline's operations where a trace holds
    none. InputError for files that cannot be used, LackError where this machine lacks what reads them.
    """
    return replayed(trace(files), schedule=schedule, virtual=virtual)


def replayed(found: Trace, *, schedule: str = "1f1b", virtual: int = 1) -> Replay:
    """Return what a trace says that has been read."""
    if isinstance(found, EventTrace):
        return replay_events(found)
    if isinstance(found, CallTrace):
        return replay_calls(found)
    if isinstance(found, DumpTrace):
        return replay_dumps(found)
    return replay_steps(found, schedule, virtual)
