"""What does a published table of a collective say, kept as JSON with its machine?

`{op, dtype, system, nodes, ranks, nics, library, library_version, settings, rows: [{size_bytes, time_s}]}`. Whether
anyone held the run for healthy is not read: a judgement must not know it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.collectives.kinds import collective
from commsim.measurement import fields
from commsim.measurement.records import Measurement, Nics, Row, Timing

if TYPE_CHECKING:
    from commsim.measurement.fields import Entry

_GBIT = 1e9 / 8
_SETTINGS = ("algorithm", "protocol", "nvls", "as_stated")


def recognises(document: Entry) -> bool:
    """Whether an object is such a table."""
    return {"op", "rows", "ranks"} <= document.keys()


def read(documents: list[Entry], source: str, *, is_cut: bool) -> list[Measurement]:
    """Return a measurement of each table."""
    problems = ("the JSON ends early",) if is_cut else ()
    return [_table(document, source, problems) for document in documents]


def _table(of: Entry, source: str, problems: tuple[str, ...]) -> Measurement:
    kind = collective(fields.text(of, "op", source))
    rows = [_row(row, f"{source}: row {n}") for n, row in enumerate(fields.entries(of["rows"], source), 1)]
    settings = fields.entry(of.get("settings") or {}, f"{source}: settings")
    gpu = fields.entry(of.get("hardware_as_stated") or {}, f"{source}: hardware_as_stated").get("gpu")
    return Measurement(
        candidates=((kind, fields.ranks(of, "ranks", source)),),
        rows=tuple(rows),
        dtype=fields.text(of, "dtype", source, ""),
        nodes=fields.whole(of, "nodes", source) if of.get("nodes") is not None else None,
        accelerators=(gpu,) if isinstance(gpu, str) and gpu else (),
        system=fields.text(of, "system", source, ""),
        nics=_nics(of.get("nics"), source),
        library=fields.text(of, "library", source, ""),
        version=fields.text(of, "library_version", source, ""),
        tool="published",
        settings={key: str(settings[key]) for key in _SETTINGS if settings.get(key) is not None},
        source=source,
        problems=problems,
    )


def _row(of: Entry, where: str) -> Row:
    size = fields.whole(of, "size_bytes", where)
    time, in_place = (Timing(fields.number(of, key, where)) if of.get(key) is not None else None for key in _TIMES)
    return Row(size, 0, time, in_place)


_TIMES = ("time_s", "in_place_time_s")


def _nics(given: object, source: str) -> Nics | None:
    if given is None:
        return None
    of, where = fields.entry(given, f"{source}: nics"), f"{source}: nics"
    ports, speed = of.get("per_node"), of.get("gbit_per_s")
    return Nics(
        per_node=None if ports is None else fields.whole(of, "per_node", where),
        bandwidth=None if speed is None else fields.number(of, "gbit_per_s", where) * _GBIT,
        fabric=fields.text(of, "fabric", where, "") or None,
    )
