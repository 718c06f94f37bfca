"""Are the measured tables that commsim carries read as what they are?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commsim.errors import InputError
from commsim.validation.carried import carried

if TYPE_CHECKING:
    from pathlib import Path

HEAD = (
    "id,group,health,health_reason,op,dtype,system,nodes,gpus_per_node,ranks,nics_per_node,nic_gbit_per_s,fabric,library,"
    "library_version,algorithm,protocol,nvls,as_stated,gpu,source,us_by_bytes\n"
)


def test_all_of_them() -> None:
    found = carried()
    assert len(found) > 200
    assert all(one.measurement.rows and one.group and one.measurement.source for one in found)
    assert {one.health for one in found} == {"healthy", "degraded", "unknown"}


def test_one(tmp_path: Path) -> None:
    file = tmp_path / "tables.csv"
    file.write_text(
        HEAD
        + "a,g,healthy,,all_reduce,float,hgx-h100,2,8,16,8,400,roce,nccl,2.21.5,,,,,,me: there,1024=50/49 2048=60\n"
    )
    (found,) = carried(file)
    one = found.measurement
    assert (one.ranks, one.nodes, one.version) == (16, 2, "2.21.5")
    assert one.nics is not None
    assert (one.nics.per_node, one.nics.bandwidth, one.nics.fabric) == (8, 50e9, "roce")
    assert [row.size for row in one.rows] == [1024, 2048]
    assert [row.timing.seconds for row in one.rows] == pytest.approx([50e-6, 60e-6])
    assert one.rows[0].in_place is not None
    assert one.rows[0].in_place.seconds == pytest.approx(49e-6)


@pytest.mark.parametrize(
    "cells", ["x" + "," * 20, "a,g,healthy,,all_reduce,float,hgx-h100,two,8,16,,,,nccl,,,,,,,s,1=2"]
)
def test_mistakes(tmp_path: Path, cells: str) -> None:
    file = tmp_path / "tables.csv"
    file.write_text(HEAD + cells + "\n")
    with pytest.raises(InputError):
        carried(file)
