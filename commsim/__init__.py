"""How long is a training step, what should its network deliver, and what do stragglers cost?

Everything a user needs is an attribute of this package, imported from its room when it is first asked for, so that
`import commsim` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commsim.collectives.algorithms.direct import all_to_all_v as all_to_all_v
    from commsim.collectives.layout import Layout as Layout
    from commsim.collectives.moe.routing import Routing as Routing
    from commsim.collectives.price import price as price
    from commsim.errors import CommsimError as CommsimError
    from commsim.errors import InputError as InputError
    from commsim.hardware.catalogue import load as load
    from commsim.hardware.system import System as System
    from commsim.hardware.topology import Topology as Topology
    from commsim.libraries.ideal import Ideal as Ideal
    from commsim.libraries.moe.machine import combine as combine
    from commsim.libraries.moe.machine import dispatch as dispatch
    from commsim.libraries.nccl import Nccl as Nccl
    from commsim.libraries.sweep import Sweep as Sweep
    from commsim.libraries.sweep import sweep as sweep
    from commsim.measurement.calibrate.fit import calibrate as calibrate
    from commsim.measurement.check.judge import check as check
    from commsim.measurement.launch.run import bench as bench
    from commsim.measurement.read import measurements as measurements
    from commsim.stragglers.causes import cause as cause
    from commsim.stragglers.kinds import Jitter as Jitter
    from commsim.stragglers.kinds import SlowLink as SlowLink
    from commsim.stragglers.kinds import SlowRank as SlowRank
    from commsim.stragglers.mitigations import mitigate as mitigate
    from commsim.stragglers.presets import preset as preset
    from commsim.stragglers.replay.replay import replay as replay
    from commsim.stragglers.replay.result import Replay as Replay
    from commsim.stragglers.run import Run as Run
    from commsim.stragglers.run import run as run
    from commsim.tables.records import to_frame as to_frame
    from commsim.training.axes import Context as Context
    from commsim.training.axes import Data as Data
    from commsim.training.axes import Expert as Expert
    from commsim.training.axes import Pipeline as Pipeline
    from commsim.training.axes import Tensor as Tensor
    from commsim.training.configs.well_known import model as model
    from commsim.training.estimate import Estimate as Estimate
    from commsim.training.estimate import estimate as estimate
    from commsim.training.plan import Plan as Plan
    from commsim.training.search.search import Search as Search
    from commsim.training.search.search import search as search

__version__ = "0.1.0"

_ROOMS = {
    "CommsimError": "commsim.errors",
    "Context": "commsim.training.axes",
    "Data": "commsim.training.axes",
    "Estimate": "commsim.training.estimate",
    "Expert": "commsim.training.axes",
    "Ideal": "commsim.libraries.ideal",
    "InputError": "commsim.errors",
    "Jitter": "commsim.stragglers.kinds",
    "Layout": "commsim.collectives.layout",
    "Nccl": "commsim.libraries.nccl",
    "Pipeline": "commsim.training.axes",
    "Plan": "commsim.training.plan",
    "Replay": "commsim.stragglers.replay.result",
    "Routing": "commsim.collectives.moe.routing",
    "Run": "commsim.stragglers.run",
    "Search": "commsim.training.search.search",
    "SlowLink": "commsim.stragglers.kinds",
    "SlowRank": "commsim.stragglers.kinds",
    "Sweep": "commsim.libraries.sweep",
    "System": "commsim.hardware.system",
    "Tensor": "commsim.training.axes",
    "Topology": "commsim.hardware.topology",
    "all_to_all_v": "commsim.collectives.algorithms.direct",
    "bench": "commsim.measurement.launch.run",
    "calibrate": "commsim.measurement.calibrate.fit",
    "cause": "commsim.stragglers.causes",
    "check": "commsim.measurement.check.judge",
    "combine": "commsim.libraries.moe.machine",
    "dispatch": "commsim.libraries.moe.machine",
    "estimate": "commsim.training.estimate",
    "load": "commsim.hardware.catalogue",
    "measurements": "commsim.measurement.read",
    "mitigate": "commsim.stragglers.mitigations",
    "model": "commsim.training.configs.well_known",
    "preset": "commsim.stragglers.presets",
    "price": "commsim.collectives.price",
    "replay": "commsim.stragglers.replay.replay",
    "run": "commsim.stragglers.run",
    "search": "commsim.training.search.search",
    "sweep": "commsim.libraries.sweep",
    "to_frame": "commsim.tables.records",
}
"""Where each public name lives. The imports above say the same to type checkers; tests/house keeps the two alike."""

__all__ = ["__version__", *_ROOMS]  # noqa: PLE0604 - the keys are texts


if not TYPE_CHECKING:  # else every misspelt name would pass for an object

    def __getattr__(name: str) -> object:
        """Return the public name from its room (PEP 562). AttributeError when there is none."""
        if name not in _ROOMS:
            raise AttributeError(f"module 'commsim' has no attribute {name!r}")
        return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    """Return what a person sees after `commsim.` and the tabulator."""
    return sorted(__all__)
