"""On which machine, and with which settings of which library, was a table measured?"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from commsim.collectives.kinds import ALL_TO_ALL, SEND_RECV
from commsim.errors import InputError
from commsim.hardware import shelf
from commsim.hardware.catalogue import load
from commsim.libraries.calibration import calibration
from commsim.libraries.nccl import Nccl
from commsim.libraries.nccl.constants import constants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.hardware.system import System
    from commsim.measurement.records import Measurement

LIBRARIES = {"nccl": "nccl", "": "nccl", "rccl": "rccl"}
"""Whose tables can be predicted; a benchmark that does not say which library it ran is one of NCCL's."""
_UNTUNED = (ALL_TO_ALL, SEND_RECV)
"""What NCCL does by sends and receives, whatever algorithm and protocol it was told."""
DEVICES = {
    r"\bGB300\b": "gb300-nvl72",
    r"\bGB200\b": "gb200-nvl72",
    r"\bB300\b": "hgx-b300",
    r"\bB200\b": "hgx-b200",
    r"\bH200\b": "hgx-h200",
    r"\bH800\b": "hgx-h800",
    r"\bH20\b": "hgx-h20",
    r"\bH100\b(?!.*(PCIe|NVL))": "hgx-h100",
    r"\bA100-SXM": "hgx-a100",
    r"\bA100[- ].*PCIE": "pcie-a100",
    r"\bV100-SXM2": "dgx-1v",
    r"\bV100-SXM3": "dgx-2",
    r"\bRTX 5090\b": "pcie-5090",
    r"\bRTX 4090\b": "pcie-4090",
    r"\bRTX 3090\b": "pcie-3090",
    r"\bL40S\b": "pcie-l40s",
    r"\bMI300X\b": "mi300x",
    r"\bMI355X\b": "mi355x",
}
"""The usual box of a GPU, by what the driver calls it. Where several are usual (GH200, H100 PCIe), none is guessed."""
_OFF = ("0", "false", "no", "off")


def named(table: Measurement) -> str | None:
    """Return the system that a table names, or the usual one of its GPUs; None when neither is known."""
    if table.system:
        known = {alias: name for name, aliases in shelf.names().items() for alias in (name, *aliases)}
        return known.get(table.system)
    found = {_usual(device) for device in table.accelerators}
    return found.pop() if len(found) == 1 else None


def _usual(device: str) -> str | None:
    return next((name for pattern, name in DEVICES.items() if re.search(pattern, device, re.IGNORECASE)), None)


def of_others(table: Measurement, system: System) -> str:
    """Return, in words, that the GPUs which a table names are of another architecture than a system's; "" if not."""
    for device in table.accelerators:
        usual = _usual(device)
        if usual and _loaded(usual, ()).accelerator.architecture != system.accelerator.architecture:
            return f"the GPUs are {device}, those of {system.name} are {system.accelerator.title}"
    return ""


def cluster(table: Measurement, system: str | None = None, **changes: Any) -> System:  # noqa: ANN401 - see load
    """Return the machine of a table, with as many nodes and GPUs as took part and the network that is stated beside it.

    `system` and `changes` (see `load`) come before what the table says. InputError when no machine is known, and when
    ranks do not fill nodes evenly.
    """
    name = (table.system or named(table)) if system is None else system
    if name is None:
        raise InputError("system", None, "the table does not say on which machine it was measured")
    return _loaded(name, tuple(sorted((_size(table, changes) | changes).items())))


@lru_cache(maxsize=512)
def _loaded(name: str, changes: tuple[tuple[str, Any], ...]) -> System:
    return load(name, **dict(changes))


def _size(table: Measurement, changes: Mapping[str, Any]) -> dict[str, Any]:
    """How much of the machine took part, and its network where there are several nodes."""
    nodes = changes.get("nodes") or table.nodes or len(table.hosts) or None
    if "gpus" in changes or nodes is None:
        return {} if changes.keys() & {"gpus", "nodes"} else {"gpus": table.ranks}
    each, rest = divmod(table.ranks, nodes)
    if rest or not each:
        raise InputError("ranks", table.ranks, f"a multiple of its {nodes} nodes belongs here")
    return {"nodes": nodes, "gpus_per_node": each, **(_network(table) if nodes > 1 else {})}


def _network(table: Measurement) -> dict[str, Any]:
    """The network between nodes as it is stated; the machine's own where it is not."""
    nics = table.nics
    stated = {
        "nics_per_node": nics and nics.per_node,
        "nic": nics and nics.bandwidth,
        "fabric": nics and nics.fabric,
    }
    return {key: value for key, value in stated.items() if value}


def library(table: Measurement) -> Nccl:
    """Return the library that a table was measured with, as it was configured.

    InputError for a library that cannot be predicted, and for settings that name no algorithm or protocol.
    """
    if table.library not in LIBRARIES:
        raise InputError("library", table.library, "only nccl and rccl are predicted")
    said = table.settings
    on = _setting(said, "nvls", "NCCL_NVLS_ENABLE")
    tuned = table.op not in _UNTUNED
    name = LIBRARIES[table.library]
    return Nccl(
        name=name,
        fitted=calibration(name),
        nvls=on is None or on.lower() not in _OFF,
        collnet=said.get("NCCL_COLLNET_ENABLE") == "1",
        algorithm=_alone(_setting(said, "algorithm", "NCCL_ALGO")) if tuned else None,
        protocol=_alone(_setting(said, "protocol", "NCCL_PROTO")) if tuned else None,
        version=table.version,
        symmetric=on_windows(table),
    )


def on_windows(table: Measurement) -> bool:
    """Tell whether its buffers were registered as symmetric windows; nccl-tests does so for NCCL 2.27 and newer."""
    asked = table.settings.get("local_register") == "2" and LIBRARIES.get(table.library) == "nccl"
    return asked and constants(table.version).symmetric is not None


def _setting(said: Mapping[str, str], *names: str) -> str | None:
    """The setting by the first of its names that is there, as a published table or a log calls it."""
    return next((said[name] for name in names if said.get(name)), None)


def _alone(wanted: str | None) -> str | None:
    """The one algorithm or protocol of a setting such as `Ring` or `allreduce:ring`."""
    return wanted.rpartition(":")[2] if wanted else None
