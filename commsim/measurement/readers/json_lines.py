"""What do our own JSON lines say? One `run` record, then one `op` record for each operation, type and size.

A run: `{"record": "run", "schema": 1, "machine": {...}, "versions": {...}, "settings": {...}, "seed": 0}`. An op:
`{"record": "op", "op", "dtype", "size_bytes", "ranks", "samples_s": [[rank][iteration]], "arrival_s", "checked"}`; a
record without samples has `time_s`. `in_place` says that its times are those in place; `timed` where the clock was
read; `conditions` what sets it apart from the bare operation (a matmul beside it, a rank that is late, a label).
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from commsim.collectives.kinds import COLLECTIVES, collective
from commsim.errors import InputError
from commsim.measurement import fields
from commsim.measurement.doubts import Doubts
from commsim.measurement.launch.cases import BARRIER
from commsim.measurement.launch.issue import need_waited
from commsim.measurement.records import Candidate, Host, Measurement, Row, Timing
from commsim.measurement.samples import typical

if TYPE_CHECKING:
    from commsim.measurement.fields import Entry

SCHEMA = 1
_ENDS = ("wait", "events")
"""Where the clock may have been read: after the wait, or by events of the device."""


def recognises(document: Entry) -> bool:
    """Whether an object is a record of ours."""
    return document.get("record") in ("run", "op")


def read(documents: list[Entry], source: str, *, is_cut: bool) -> list[Measurement]:
    """Return a measurement for each run, operation, type, number of ranks and conditions."""
    groups: dict[tuple[int, str, str, str, int], list[Entry]] = defaultdict(list)
    runs: list[Entry] = []
    for number, document in enumerate(documents, 1):
        where = f"{source}: record {number}"
        if document.get("record") == "run":
            runs.append(_checked(document, where))
            continue
        if not runs:
            raise InputError(where, "op", "a record of kind run comes first")
        need_read_after_wait(document, where)
        conditions = json.dumps(fields.part(document, "conditions"), sort_keys=True)
        key = (fields.text(document, "op", where), fields.text(document, "dtype", where, ""), conditions)
        groups[len(runs) - 1, *key, fields.ranks(document, "ranks", where)].append(document)
    return [_measurement(runs[n], group, source, is_cut=is_cut) for (n, *_), group in groups.items()]


def _checked(run: Entry, where: str) -> Entry:
    if run.get("schema") != SCHEMA:
        raise InputError(f"{where}: schema", run.get("schema"), f"schema {SCHEMA} is read here")
    return run


def need_read_after_wait(of: Entry, where: str) -> None:
    """Refuse a record that says its clock was read before the operation was done; InputError."""
    if of.get("timed", _ENDS[0]) not in _ENDS:
        raise InputError(f"{where}: timed", of["timed"], "the time of issue is no time of a transfer: wait, or events")


def _measurement(run: Entry, ops: list[Entry], source: str, *, is_cut: bool) -> Measurement:
    doubts, first = Doubts(), ops[0]
    if is_cut:
        doubts.problem("the JSON lines end early")
    doubts.many([f"wrong results at {one.get('size_bytes')} B" for one in ops if one.get("checked") is False])
    machine, versions = (fields.entry(run.get(key) or {}, f"{source}: {key}") for key in ("machine", "versions"))
    settings = fields.entry(run.get("settings") or {}, f"{source}: settings")
    hosts = tuple(_host(one, source) for one in fields.entries(machine.get("hosts"), source))
    conditions = fields.part(first, "conditions")
    library = fields.text(run, "library", source, "")
    return Measurement(
        candidates=_candidates(first, source),
        rows=tuple(_row(one, library, f"{source}: op {n}") for n, one in enumerate(ops, 1)),
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
        settings={str(key): str(value) for key, value in {**settings, **conditions}.items()},
        source=source,
        notes=tuple(doubts.notes),
        problems=tuple(doubts.problems),
    )


def _candidates(of: Entry, source: str) -> tuple[Candidate, ...]:
    """The operation and its ranks; none for a barrier, which moves nothing that a collective of the table moves."""
    name = fields.text(of, "op", source)
    if name == BARRIER:
        return ()
    return ((COLLECTIVES[collective(name).name], fields.ranks(of, "ranks", source)),)


def _host(of: Entry, source: str) -> Host:
    ranks = of.get("ranks")
    if not isinstance(ranks, list) or not all(isinstance(one, int) and one >= 0 for one in ranks):
        raise InputError(f"{source}: ranks of a host", ranks, "a list of ranks belongs here")
    return Host(tuple(ranks), fields.text(of, "accelerator", source, ""))


def _row(of: Entry, library: str, where: str) -> Row:
    sides = [_timing(of, prefix, where) for prefix in ("", "in_place_")]
    if not any(sides):
        raise InputError(where, None, "samples_s or time_s belongs here")
    if of.get("in_place") is True:
        sides.reverse()
    count = fields.whole(of, "count", where) if "count" in of else 0
    row = Row(fields.whole(of, "size_bytes", where), count, *sides)
    if of["op"] != BARRIER:
        need_waited(library, row.size * collective(of["op"]).factor(of["ranks"]), row.timing.seconds, where)
    return row


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
