"""Which machine was a result measured on?"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from commsim.hardware.catalogue import load

if TYPE_CHECKING:
    from commsim.hardware.system import System
    from commsim.validation.published import Published

_ALIKE = {"omni-path": "infiniband"}
"""Networks that the catalogue lacks, and those that stand in for them at the same rate."""

_MESHES = {"hgx-a100": "a100-nvlink-mesh-4", "hgx-h100": "h100-nvlink-mesh-4", "hgx-h200": "h100-nvlink-mesh-4"}
"""Boards of four GPUs: they have no NVSwitch, a third of a GPU's NVLinks leads to each of the others."""
_ON_A_MESH = 4


def machine(result: Published) -> tuple[System, list[str]]:
    """Return the machine of a result, and what is assumed of it. InputError when there is no such machine."""
    board, on_board = _board(result)
    changes: dict[str, Any] = {"gpus": result.n_gpus} | on_board
    assumed = []
    if result.accelerator:
        changes["accelerator"] = result.accelerator
    network = _network(result)
    if result.fabric in _ALIKE:
        assumed.append(f"{result.fabric} is taken for {_ALIKE[result.fabric]} of the same rate")
    domain = _domain(result)
    if domain:
        changes["gpus_per_domain"] = domain
        assumed.append(f"{domain} GPUs of each scale-up domain are used: the most whose nodes divide the job")
    return _loaded(board, tuple(sorted((changes | network).items()))), assumed


def _board(result: Published) -> tuple[str, dict[str, Any]]:
    """The system, and what is changed of it: a part of a board of eight is wired otherwise than a board of four.

    The latter keeps the chip and the network of the system that it is stated to be.
    """
    per_node, name = result.gpus_per_node, result.system
    if per_node == _ON_A_MESH and name in _MESHES:
        usual = load(name)
        nic = {"nic": float(usual.scale_out.nic)} if usual.scale_out else {}
        return _MESHES[name], {"accelerator": usual.accelerator.name, **nic}
    return name, {"gpus_per_node": per_node} if per_node and result.n_gpus >= per_node else {}


@lru_cache(maxsize=512)
def _loaded(name: str, changes: tuple[tuple[str, Any], ...]) -> System:
    return load(name, **dict(changes))


def _network(result: Published) -> dict[str, Any]:
    """The network between nodes as it is stated; the machine's own where it is not."""
    rate, nics = result.fabric_gbit_per_s_per_node, result.nics_per_node
    found: dict[str, Any] = {"fabric": _ALIKE.get(result.fabric, result.fabric)} if result.fabric else {}
    if rate:
        nics = nics or result.gpus_per_node or 8
        found["nic"] = rate / nics * 1e9 / 8
    if nics:
        found["nics_per_node"] = nics
    return found


def _domain(result: Published) -> int | None:
    """GPUs used of each scale-up domain, where a job spans several of many nodes.

    Schedulers are asked for equal segments, the largest that divide the job: 16 trays of an NVL72 for 64.
    """
    domain, per_node = result.scale_up_ranks, result.gpus_per_node
    if not domain or not per_node or domain <= per_node or result.n_gpus <= domain:
        return None
    return _largest_divisor(result.n_gpus // per_node, domain // per_node) * per_node


def _largest_divisor(number: int, most: int) -> int:
    """The largest divisor of a number that is no more than `most`."""
    small = [one for one in range(1, math.isqrt(number) + 1) if number % one == 0]
    return max(one for one in (*small, *(number // one for one in small)) if one <= most)
