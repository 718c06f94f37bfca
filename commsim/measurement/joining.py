"""Which tables are one sweep, cut up because every size had a process of its own?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.measurement.records import Measurement


def joined(parts: Iterable[Measurement]) -> list[Measurement]:
    """Return the measurements with tables that differ in nothing but their sizes made one (one process per size)."""
    found: dict[object, Measurement] = {}
    for part in parts:
        key = _what(part)
        first = found.get(key)
        found[key] = part if first is None else _with_rows(first, part)
    return list(found.values())


def _what(one: Measurement) -> object:
    """All that two tables must share to be one: not the sizes, nor the settings that say which sizes."""
    ops = tuple((kind.name, ranks) for kind, ranks in one.candidates)
    settings = tuple(sorted(item for item in one.settings.items() if item[0] not in {"min_bytes", "max_bytes"}))
    machine = (one.hosts, one.accelerators, one.nodes, one.system, one.library, one.version, one.tool, one.tool_version)
    return (ops, one.dtype, one.redop, one.root, machine, settings, one.source)


def _with_rows(first: Measurement, more: Measurement) -> Measurement:
    return dataclasses.replace(
        first,
        rows=tuple(sorted((*first.rows, *more.rows), key=lambda row: row.size)),
        settings={**first.settings, **{key: value for key, value in more.settings.items() if key == "max_bytes"}},
        notes=tuple(dict.fromkeys((*first.notes, *more.notes))),
        problems=tuple(dict.fromkeys((*first.problems, *more.problems))),
    )
