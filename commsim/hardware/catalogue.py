"""Which machine does the user mean?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.errors import InputError
from commsim.figures import Figure
from commsim.hardware import shelf
from commsim.hardware.changes import Changes, joined
from commsim.hardware.dumps import from_file

if TYPE_CHECKING:
    from commsim.hardware.system import System


def load(name: str | Path, **changes: Any) -> System:  # noqa: ANN401 - the fields of Changes
    """Return the system of that name, alias or file, changed as the keywords of `Changes` say.

    A file is YAML, NCCL topology XML, or the text of `nvidia-smi topo -m`, which needs `accelerator`. Without `nodes`
    or `gpus` it is one scale-up domain. InputError for unknown names (with the nearest one), files that describe no
    machine, keywords that are none, and sizes that do not fit.
    """
    known = [item.name for item in fields(Changes)]
    for key in changes:
        if key not in known:
            raise InputError("load", key, "no such option", among=known)
    if not isinstance(name, str | Path):
        raise InputError("load", name, "the name of a system, or a file that describes one, belongs here")
    wanted = Changes(**changes)
    system = _dumped(name, wanted) or shelf.system(name, wanted)
    system = replace(system, nodes=system.nodes_per_domain).sized(wanted.nodes, wanted.gpus, wanted.gpus_per_node)
    _check_paths(system)
    return system


def _dumped(name: str | Path, wanted: Changes) -> System | None:
    """The system of a file that a machine wrote about itself, joined by the network that the caller says."""
    system = from_file(name, wanted.accelerator)
    if system is None:
        return None
    if wanted.nics_per_node not in (None, system.nics_per_node):
        raise InputError("nics per node", wanted.nics_per_node, f"{name} says {system.nics_per_node}; change it there")
    out = joined(system, wanted)
    return replace(system, scale_out=out, fabric=shelf.fabric(out.fabric, out.nic) if out else None)


def figures(system: System) -> dict[str, Figure]:
    """Return every figure behind a system by its path: of its accelerator, and of the kinds of link that it has.

    Such a path is `accelerator: peak: bf16` or `links: nvlink4: bandwidth`; the figure knows its source and its range.
    """
    links = {link.kind: link for link in system.topology.kinds}
    return dict(_figures({"accelerator": system.accelerator, "links": links}, ()))


def _figures(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, Figure]]:
    if isinstance(value, Figure):
        yield ": ".join(path), value
    if is_dataclass(value):
        value = {item.name: getattr(value, item.name) for item in fields(value)}
    for key, below in value.items() if isinstance(value, Mapping) else ():
        yield from _figures(below, (*path, str(key)))


def _check_paths(system: System) -> None:
    """Refuse a machine in which some GPU does not reach the others; InputError."""
    topology = system.topology
    others = np.unique([*range(1, topology.gpus_per_node), topology.size - 1])
    topology.route(np.zeros_like(others), others)
