"""What do our own JSON lines say? One `run` record, then one `op` record for each operation, type and size.

A run: `{"record": "run", "schema": 1, "machine": {...}, "versions": {...}, "settings": {...}, "seed": 0}`. An op:
`{"record": "op", "op", "dtype", "size_bytes", "ranks", "samples_s": [[rank][iteration]], "arrival_s", "checked"}`; a
record without samples has `time_s`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from commsim.collectives.kinds import COLLECTIVES, collective
from commsim.errors import InputError
from commsim.measurement import fields
from commsim.measurement.doubts import Doubts
from commsim.measurement.records import Host, Measurement, Row, Timing
from commsim.measurement.samples import typical

if TYPE_CHECKING:
    from commsim.measurement.fields import Entry

SCHEMA = 1


def recognises(document: Entry) -> bool:
    """Whether an object is a record of ours."""
    return document.get("record") in ("run", "op")


def read(documents: list[Entry], source: str, *, is_cut: bool) -> list[Measurement]:
    """Return a measurement for each run, operation, type and number of ranks."""
    run: Entry = {}
    groups: dict[tuple[int, str, str, int], list[Entry]] = defaultdict(list)
    runs: list[Entry] = []
    for number, document in enumerate(documents, 1):
        where = f"{source}: record {number}"
        if document.get("record") == "run":
            run = _checked(document, where)
            runs.append(run)
            continue
        if not runs:
            raise InputError(where, "op", "a record of kind run comes first")
        key = (fields.text(document, "op", where), fields.text(document, "dtype", where, ""))
        groups[len(runs) - 1, *key, fields.ranks(document, "ranks", where)].append(document)
    return [_measurement(runs[n], group, source, is_cut=is_cut) for (n, *_), group in groups.items()]


def _checked(run: Entry, where: str) -> Entry:
    if run.get("schema") != SCHEMA:
        raise InputError(f"{where}: schema", run.get("schema"), f"schema {SCHEMA} is read here")
    return run


def _measurement(run: Entry, ops: list[Entry], source: str, *, is_cut: bool) -> Measurement:
    doubts, first = Doubts(), ops[0]
    if is_cut:
        doubts.problem("the JSON lines end early")
    doubts.many([f"wrong results at {one.get('size_bytes')} B" for one in ops if one.get("checked") is False])
    machine, versions = (fields.entry(run.get(key) or {}, f"{source}: {key}") for key in ("machine", "versions"))
    settings = fields.entry(run.get("settings") or {}, f"{source}: settings")
    hosts = tuple(_host(one, source) for one in fields.entries(machine.get("hosts"), source))
    kind = collective(fields.text(first, "op", source))
    library = fields.text(run, "library", source, "")
    return Measurement(
        candidates=((COLLECTIVES[kind.name], fields.ranks(first, "ranks", source)),),
        rows=tuple(_row(one, f"{source}: op {n}") for n, one in enumerate(ops, 1)),
        dtype=fields.text(first, "dtype", source, ""),
        redop=fields.text(first, "redop", source, "none"),
        root=-1 if first.get("root") is None else fields.whole(first, "root", source),
        nodes=fields.whole(machine, "nodes", source) if machine.get("nodes") is not None else None,
        hosts=hosts,
        accelerators=tuple(dict.fromkeys(host.accelerator for host in hosts if host.accelerator)),
        system=fields.text(machine, "system", source, ""),
        library=library,
        version=fields.text(versions, library, source, ""),
        tool="commsim",
        tool_version=fields.text(versions, "commsim", source, ""),
        settings={str(key): str(value) for key, value in settings.items()},
        source=source,
        notes=tuple(doubts.notes),
        problems=tuple(doubts.problems),
    )


def _host(of: Entry, source: str) -> Host:
    ranks = of.get("ranks")
    if not isinstance(ranks, list) or not all(isinstance(one, int) and one >= 0 for one in ranks):
        raise InputError(f"{source}: ranks of a host", ranks, "a list of ranks belongs here")
    return Host(tuple(ranks), fields.text(of, "accelerator", source, ""))


def _row(of: Entry, where: str) -> Row:
    sides = [_timing(of, prefix, where) for prefix in ("", "in_place_")]
    if not any(sides):
        raise InputError(where, None, "samples_s or time_s belongs here")
    count = fields.whole(of, "count", where) if "count" in of else 0
    return Row(fields.whole(of, "size_bytes", where), count, *sides)


def _timing(of: Entry, prefix: str, where: str) -> Timing | None:
    taken, time = of.get(f"{prefix}samples_s"), of.get(f"{prefix}time_s")
    if taken is None and time is None:
        return None
    samples = fields.samples(taken, where) if taken is not None else ()
    arrived = of.get(f"{prefix}arrival_s")
    arrivals = fields.samples(arrived, where) if arrived is not None else ()
    if arrivals and [len(rank) for rank in arrivals] != [len(rank) for rank in samples]:
        raise InputError(f"{where}: arrival_s", None, "one arrival for each sample belongs here")
    seconds = fields.number(of, f"{prefix}time_s", where) if time is not None else typical(samples, arrivals)
    return Timing(seconds, samples=samples, arrivals=arrivals)
