"""What are the rows of machines: systems, accelerators, topologies, links?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commsim.hardware.system import Accelerator, System
from commsim.hardware.topology import Link, Topology
from commsim.tables.ranges import figures
from commsim.tables.records import Record, records

if TYPE_CHECKING:
    from numpy.typing import NDArray


@records.register
def _system(system: System) -> list[Record]:
    return [
        {
            "name": system.name,
            "aliases": list(system.aliases),
            "accelerator": system.accelerator.name,
            "gpus": system.gpus,
            "status": system.status,
            "summary": system.summary,
        }
    ]


@records.register
def _accelerator(gpu: Accelerator) -> list[Record]:
    said = {
        **{f"peak_{name}_flops_per_s": peak for name, peak in gpu.peak.items()},
        "memory_bytes": gpu.memory,
        "memory_bandwidth_bytes_per_s": gpu.memory_bandwidth,
    }
    named = {"name": gpu.name, "title": gpu.title, "architecture": gpu.architecture}
    return [named | figures(said, "memory_bandwidth_bytes_per_s")]


@records.register
def _topology(topology: Topology) -> list[Record]:
    cables = _cables(topology)
    return [{**row, "count": int(count)} for row, count in zip(records(topology.kinds), cables) if count]


@records.register
def _link(link: Link) -> list[Record]:
    said = {"bandwidth_bytes_per_s": link.bandwidth, "latency_s": link.latency}
    return [{"kind": link.kind} | figures(said, "bandwidth_bytes_per_s")]


def _cables(topology: Topology) -> NDArray[np.float64]:
    """How many cables of each kind there are: copies of every edge of the cell, both directions as one."""
    numbering = topology.numbering
    units = -(-topology.nodes // numbering.span)
    full, rest = np.divmod(units, numbering.siblings)
    meshed = full * numbering.siblings * (numbering.siblings - 1) + rest * (rest - 1)
    copies = np.where(numbering.siblings > 1, meshed, units)
    both = np.bincount(numbering.kind_index, weights=copies * numbering.count, minlength=len(topology.kinds))
    return both / 2
