"""Search once for what NCCL finds on the catalogue's machines that exist, and write topologies/nccl/found.csv.

    python scripts/find_nccl.py

To be run again when a system of the catalogue, the XML that is written of it, or the newest constants change: what no
longer fits is searched for when it is asked for, which takes up to four seconds.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.hardware.nccl_xml import write_xml
from commsim.hardware.shelf import names
from commsim.libraries.nccl.form import Node, key, see
from commsim.libraries.nccl.found import row
from commsim.libraries.nccl.knobs import Knobs
from commsim.shipped import folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commsim.hardware.system import System
    from commsim.libraries.nccl.form import Members

HOSTS = (1, 2, 3, 4, 6, 8, 9, 12, 16, 18)
"""Hosts of a rack that groups are of, beside all of them."""


def nodes(system: System) -> Iterator[Node]:
    """Yield the nodes that groups of a machine form: boxes, or as many hosts of a rack as have a rank of the group."""
    whole = system.nodes_per_domain
    for hosts in sorted({count for count in (*HOSTS, whole) if count <= whole}):
        sized = replace(system, nodes=hosts)
        try:
            xml = write_xml(sized)
        except InputError:
            return
        for members in dict.fromkeys(parts(sized.gpus, sized.gpus // hosts)):
            yield Node(xml, members)


def parts(gpus: int, each: int) -> Iterator[Members]:
    """Yield which GPUs take part, of hosts with so many `each`: all; every second or one of each host; a few of one."""
    yield ()
    if gpus > each:
        yield from (tuple(range(0, gpus, stride)) for stride in (2, each) if 1 < stride <= each)
        return
    for stride, count in itertools.product((1, 2, 4, 8), repeat=2):
        if (count - 1) * stride < gpus and count < gpus and (count > 1 or stride == 1):
            yield tuple(range(0, count * stride, stride))


def main() -> None:
    """Search, and write the file."""
    file, rows = folder("topologies") / "nccl" / "found.csv", {}
    for name in names():
        system = load(name)
        if system.accelerator.vendor != "NVIDIA" or system.template:
            continue
        for node in nodes(system):
            for inter in (False, True):
                try:
                    seen = see(node, Knobs(), "", inter=inter)
                except InputError:
                    continue
                rows[key(node, "", inter=inter)] = row(key(node, "", inter=inter), seen)
        print(name, len(rows), flush=True)
        file.write_text("".join(line + "\n" for line in sorted(rows.values())), encoding="ascii")


if __name__ == "__main__":
    main()
