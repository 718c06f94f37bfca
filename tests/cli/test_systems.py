"""Does `commsim systems` list the catalogue?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.hardware.shelf import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Answer

KEYS = ["name", "aliases", "accelerator", "gpus", "status", "summary"]


def test_document(commsim: Callable[..., Answer]) -> None:
    rows = commsim("systems", "--json").document
    assert [list(row) for row in rows] == [KEYS] * len(rows)
    assert {row["name"]: tuple(row["aliases"]) for row in rows} == names()


def test_gpus_are_those_of_one_scale_up_domain(commsim: Callable[..., Answer]) -> None:
    gpus = {row["name"]: row["gpus"] for row in commsim("systems", "--json").document}
    assert (gpus["hgx-h100"], gpus["gb200-nvl72"]) == (8, 72)


def test_table_names_every_system(commsim: Callable[..., Answer]) -> None:
    out = commsim("systems").out
    assert [name for name in names() if name not in out] == []
