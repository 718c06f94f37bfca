"""Which graphs does NCCL find on a machine?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.libraries.nccl.graphs import Graph, Graphs, Pattern
from commsim.libraries.nccl.search.attempt import Found
from commsim.libraries.nccl.search.paths import Paths
from commsim.libraries.nccl.search.relax import Search

if TYPE_CHECKING:
    from commsim.libraries.nccl.constants import Constants
    from commsim.libraries.nccl.knobs import Knobs
    from commsim.libraries.nccl.search.devices import Machine

_HOPPER = 90


def find(machine: Machine, constants: Constants, knobs: Knobs, *, inter: bool) -> Graphs:
    """Return the graphs of a machine; `inter` says that there are other nodes, so that channels go through its ports.

    Rings and trees have as many channels as each other; graphs that the settings do not ask for are empty.
    """
    search = Search(Paths.of(machine, knobs), constants, inter=inter)
    most = constants.channels.most
    ring = search.graph(Found(Pattern.RING, 1, most // 2))
    tree = search.graph(Found(Pattern.BALANCED_TREE, ring.channels, ring.channels))
    chain, direct, nvls = Graph(Pattern.TREE), Graph(Pattern.COLLNET_DIRECT), Graph(Pattern.NVLS)
    if knobs.collnet_enable and inter:
        chain = search.graph(Found(Pattern.TREE, ring.channels, ring.channels, collnet=True))
        direct = search.graph(Found(Pattern.COLLNET_DIRECT, 1, most, collnet=True))
    if knobs.nvls_enable and machine.switched and machine.capability >= _HOPPER and len(machine.gpus) > 1:
        nvls = search.graph(Found(Pattern.NVLS, 1, most))
    return Graphs(ring, tree, chain, direct, nvls)
