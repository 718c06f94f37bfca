"""How do choices become the file that NCCL's sample tuner plugin reads?"""

from __future__ import annotations

import csv
import io
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.libraries.nccl.communicator import Communicator
    from commsim.libraries.nccl.tuner import Picks

COLUMNS = ("collective", "min_bytes", "max_bytes", "algorithm", "protocol", "channels", "nNodes", "nRanks")
_ANY = -1
_ALGORITHMS = {
    "Tree": "tree",
    "Ring": "ring",
    "CollNetDirect": "collnet_direct",
    "CollNetChain": "collnet_chain",
    "NVLS": "nvls",
    "NVLSTree": "nvls_tree",
    "PAT": "pat",
}
"""As the plugin spells them (NCCL 2.30, ext-tuner/example)."""


def plugin_csv(comm: Communicator, picks: list[Picks]) -> str:
    """Return the CSV that makes the plugin of NCCL_TUNER_PLUGIN choose so, for this number of nodes and ranks.

    A choice holds from its size up to the next size; the first holds from 0 on, the last has no upper end. The number
    of channels is left to NCCL. InputError when sizes do not rise.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    text.write("# " + ",".join(COLUMNS) + "\n")
    for pick in picks:
        if any(low >= high for low, high in pairwise(pick.sizes)):
            raise InputError(f"picks of {pick.op}", list(pick.sizes), "sizes that rise belong here")
        starts = [next(group) for _, group in groupby(range(len(pick.sizes)), key=lambda index: pick.chosen[index])]
        for start, end in zip(starts, [*starts[1:], None]):
            low = 0 if start == 0 else int(pick.sizes[start])
            high = _LAST if end is None else int(pick.sizes[end]) - 1
            algorithm, protocol = pick.names[pick.chosen[start]].split("/")
            row = (pick.op.replace("_", ""), low, high, _ALGORITHMS[algorithm], protocol.lower(), _ANY)
            writer.writerow((*row, comm.nodes, comm.ranks))
    return text.getvalue()


_LAST = 2**63 - 1
