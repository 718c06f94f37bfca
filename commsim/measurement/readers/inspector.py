"""What does NCCL Inspector say? One JSON object for each operation of each rank.

Its size of all_gather and reduce_scatter is that of one rank, its GB are 1e9 bytes. A row here is the median over the
operations of one size and over their ranks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median
from typing import TYPE_CHECKING

from commsim.collectives.kinds import ALL_GATHER, REDUCE_SCATTER
from commsim.measurement import fields
from commsim.measurement.doubts import Doubts
from commsim.measurement.identify import named
from commsim.measurement.records import Measurement, Row, Timing
from commsim.measurement.rounding import contradictions

if TYPE_CHECKING:
    from commsim.collectives.kinds import Collective
    from commsim.measurement.fields import Entry

_GB, _US = 1e9, 1e-6
Group = tuple[str, int, int | None]
"""The operation as NCCL calls it, ranks, hosts."""


def recognises(document: Entry) -> bool:
    """Whether an object is one operation of Inspector."""
    return "header" in document and bool({"coll_perf", "p2p_perf"} & document.keys())


def read(documents: list[Entry], source: str, *, is_cut: bool) -> list[Measurement]:
    """Return a measurement for each operation and number of ranks and hosts."""
    groups: dict[Group, list[Entry]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    for number, document in enumerate(documents, 1):
        where = f"{source}: object {number}"
        header = fields.entry(document["header"], where)
        if "coll_perf" not in document:
            left_out["point-to-point operations are left out: their size is not that of a group"] += 1
            continue
        performed = fields.entry(document["coll_perf"], where)
        nodes = fields.whole(header, "nnodes", where) if "nnodes" in header else None
        key = (fields.text(performed, "coll", where), fields.ranks(header, "n_ranks", where), nodes)
        groups[key].append(performed)
    problems = [f"{count} {what}" for what, count in left_out.items()] + ["the JSON ends early"] * is_cut
    return [_measurement(key, found, source, problems) for key, found in groups.items()]


def _measurement(key: Group, performed: list[Entry], source: str, problems: list[str]) -> Measurement:
    name, ranks, nodes = key
    kind, doubts = named(name), Doubts(problems=list(problems))
    if kind is None:
        doubts.problem(f"{name} is no operation that commsim knows")
    by_size: dict[int, list[Timing]] = defaultdict(list)
    for number, one in enumerate(performed, 1):
        where = f"{source}: {name} {number}"
        by_size[fields.whole(one, "coll_msg_size_bytes", where) * _share(kind, ranks)].append(_timing(one, where))
    every = [Row(size, 0, one) for size, timings in by_size.items() for one in timings]
    doubts.many([said for row in every for said in contradictions(row, kind, ranks)])
    sources = {str(one.get("coll_timing_source", "")) for one in performed} - {"", "kernel_gpu"}
    if sources:
        doubts.note(f"timed on the host ({', '.join(sorted(sources))}): waiting for the launch is part of it")
    return Measurement(
        candidates=((kind, ranks),) if kind else (),
        rows=tuple(Row(size, 0, _median(by_size[size])) for size in sorted(by_size)),
        nodes=nodes,
        library="nccl",
        tool="nccl-inspector",
        source=source,
        notes=tuple(doubts.notes),
        problems=tuple(doubts.problems),
    )


def _timing(of: Entry, where: str) -> Timing:
    algbw, busbw = (fields.number(of, f"coll_{key}_gbs", where) * _GB for key in ("algobw", "busbw"))
    return Timing(fields.number(of, "coll_exec_time_us", where) * _US, algbw=algbw or None, busbw=busbw or None)


def _median(timings: list[Timing]) -> Timing:
    return Timing(median(one.seconds for one in timings), samples=(tuple(one.seconds for one in timings),))


def _share(kind: Collective | None, ranks: int) -> int:
    return ranks if kind in {ALL_GATHER, REDUCE_SCATTER} else 1
