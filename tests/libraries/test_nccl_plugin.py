"""Would NCCL's sample tuner plugin make the same choices from our file?"""

from __future__ import annotations

import numpy as np
import pytest

from commsim.errors import InputError
from commsim.libraries.nccl.plugin import COLUMNS, plugin_csv
from commsim.libraries.nccl.tuner import tune
from tests.libraries.graphs import BOXES, communicator

COMM = communicator(BOXES, 2)
SPELT = {"tree": "Tree", "ring": "Ring", "nvls_tree": "NVLSTree", "ll": "LL", "ll128": "LL128", "simple": "Simple"}


def chosen(rows: list[list[str]], collective: str, size: int) -> str:
    """What the plugin takes: the first row that fits, as its matching of every field does."""
    row = next(row for row in rows if row[0] == collective and int(row[1]) <= size <= int(row[2]))
    return f"{SPELT[row[3]]}/{SPELT[row[4]]}"


def test_the_plugin_chooses_as_the_tuner() -> None:
    sizes = [2.0**power for power in range(3, 34)]
    picks = [tune(COMM).picks(op, sizes) for op in ("all_reduce", "all_gather")]
    head, *lines = plugin_csv(COMM, picks).splitlines()
    assert head == "# " + ",".join(COLUMNS)
    rows = [line.split(",") for line in lines]
    assert {tuple(row[5:]) for row in rows} == {("-1", "2", "16")}
    assert max(map(len, lines)) < 256  # what the plugin reads of a line
    for found, collective in zip(picks, ("allreduce", "allgather")):
        for size, index in zip(sizes, found.chosen):
            assert chosen(rows, collective, int(size)) == found.names[index]
    assert chosen(rows, "allreduce", 0) == chosen(rows, "allreduce", 8)
    assert chosen(rows, "allreduce", 2**60) == chosen(rows, "allreduce", 2**33)


def test_nothing_picked_nothing_written() -> None:
    none = tune(communicator(BOXES, 2, algo="CollNetChain")).picks("all_reduce", [1.0])
    assert plugin_csv(COMM, [none]).count("\n") == 1


def test_sizes_must_rise() -> None:
    with pytest.raises(InputError, match=r"picks of all_reduce: .*sizes that rise belong here"):
        plugin_csv(COMM, [tune(COMM).picks("all_reduce", np.array([2.0, 1.0]))])
