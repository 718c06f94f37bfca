"""Is what was searched for once what would be found now?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from commsim.hardware.catalogue import load
from commsim.hardware.nccl_xml import write_xml
from commsim.libraries.nccl.form import Node, key, see
from commsim.libraries.nccl.found import digest, known
from commsim.libraries.nccl.knobs import Knobs


@pytest.mark.parametrize(
    ("name", "members", "inter"),
    [("hgx-h100", (), False), ("hgx-a100", (0,), True), ("hgx-b200", (0, 1, 2, 3), False), ("pcie-t4", (), False)],
)
def test_as_found_now(name: str, members: tuple[int, ...], *, inter: bool) -> None:
    node = Node(write_xml(replace(load(name), nodes=1)), members)
    shipped = known(key(node, "", inter=inter))
    assert shipped is not None, "run scripts/find_nccl.py again"
    assert shipped == see(node, Knobs(), "", inter=inter)


def test_what_differs_has_another_key() -> None:
    keys = {
        digest(xml, members, version, inter=inter)
        for xml in ("<a/>", "<b/>")
        for members in ((), (0,), (0, 1))
        for version in ("2.29", "2.30")
        for inter in (False, True)
    }
    assert len(keys) == 24
    assert known(keys.pop()) is None
