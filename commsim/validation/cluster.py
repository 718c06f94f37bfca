"""On which machine, and with which settings of which library, was a table measured?"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from commsim.collectives.kinds import ALL_TO_ALL, SEND_RECV
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.libraries.nccl import Nccl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.hardware.system import System
    from commsim.measurement.records import Measurement

LIBRARIES = ("nccl", "")
"""Whose tables can be predicted; a benchmark that does not say which library it ran is one of NCCL's."""
_UNTUNED = (ALL_TO_ALL, SEND_RECV)
"""What NCCL does by sends and receives, whatever algorithm and protocol it was told."""
_OFF = ("0", "false", "no", "off")


def cluster(table: Measurement) -> System:
    """Return the machine of a table with the network that is stated beside it.

    InputError when it names none that is known, and when its ranks do not fill its nodes evenly.
    """
    if not table.system:
        raise InputError("system", None, "the table does not say on which machine it was measured")
    if table.nodes is None:
        return _loaded(table.system, (("gpus", table.ranks),))
    each, rest = divmod(table.ranks, table.nodes)
    if rest or not each:
        raise InputError("ranks", table.ranks, f"a multiple of its {table.nodes} nodes belongs here")
    changes = {"nodes": table.nodes, "gpus_per_node": each, **(_network(table) if table.nodes > 1 else {})}
    return _loaded(table.system, tuple(sorted(changes.items())))


@lru_cache(maxsize=512)
def _loaded(name: str, changes: tuple[tuple[str, Any], ...]) -> System:
    return load(name, **dict(changes))


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
        raise InputError("library", table.library, "only nccl is predicted")
    said = table.settings
    on = _setting(said, "nvls", "NCCL_NVLS_ENABLE")
    tuned = table.op not in _UNTUNED
    return Nccl(
        nvls=on is None or on.lower() not in _OFF,
        collnet=said.get("NCCL_COLLNET_ENABLE") == "1",
        algorithm=_alone(_setting(said, "algorithm", "NCCL_ALGO")) if tuned else None,
        protocol=_alone(_setting(said, "protocol", "NCCL_PROTO")) if tuned else None,
    )


def _setting(said: Mapping[str, str], *names: str) -> str | None:
    """The setting by the first of its names that is there, as a published table or a log calls it."""
    return next((said[name] for name in names if said.get(name)), None)


def _alone(wanted: str | None) -> str | None:
    """The one algorithm or protocol of a setting such as `Ring` or `allreduce:ring`."""
    return wanted.rpartition(":")[2] if wanted else None
