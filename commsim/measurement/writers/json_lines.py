"""How is a measurement written as our own JSON lines, which keep every sample?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from commsim.measurement.readers.json_lines import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commsim.measurement.records import Measurement, Row, Timing


def write_lines(measurements: Iterable[Measurement]) -> str:
    """Return a `run` record and its `op` records for each measurement; InputError when operation or ranks are open."""
    records = (record for one in measurements for record in (_run(one), *_ops(one)))
    return "".join(f"{json.dumps(record, allow_nan=False)}\n" for record in records)


def _run(of: Measurement) -> dict[str, Any]:
    hosts = [{"ranks": list(host.ranks), "accelerator": host.accelerator} for host in of.hosts]
    machine = {"system": of.system, "nodes": of.nodes, "hosts": hosts}
    versions = {name: version for name, version in ((of.library, of.version), (of.tool, of.tool_version)) if version}
    return {
        "record": "run",
        "schema": SCHEMA,
        "library": of.library,
        "machine": machine,
        "versions": versions,
        "settings": dict(of.settings),
    }


def _ops(of: Measurement) -> Iterator[dict[str, Any]]:
    same = {"op": of.op.name, "dtype": of.dtype, "ranks": of.ranks, "redop": of.redop}
    root = {"root": of.root} if of.root >= 0 else {}
    for row in of.rows:
        yield {"record": "op", **same, **root, "size_bytes": row.size, "count": row.count, **_times(row)}


def _times(row: Row) -> dict[str, Any]:
    sides = (("", row.out_of_place), ("in_place_", row.in_place))
    found = {f"{prefix}{key}": value for prefix, side in sides if side for key, value in _time(side).items()}
    wrong = [side.wrong for _, side in sides if side and side.wrong is not None]
    return {**found, **({"checked": not any(wrong)} if wrong else {})}


def _time(side: Timing) -> dict[str, Any]:
    found: dict[str, Any] = {"time_s": side.seconds}
    if side.samples:
        found["samples_s"] = [list(rank) for rank in side.samples]
    if side.arrivals:
        found["arrival_s"] = [list(rank) for rank in side.arrivals]
    return found
