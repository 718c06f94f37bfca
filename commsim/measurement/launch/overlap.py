"""What does a matmul beside a collective cost each of the two?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from commsim.measurement.fields import samples
from commsim.measurement.samples import typical

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commsim.units import Bytes, Seconds

    Record = dict[str, Any]


@dataclass(frozen=True)
class Overlap:
    """A collective beside square products of one dimension: what each takes alone, and beside the other.

    The collective's time is that of all ranks, the product's that of the slowest of them.
    """

    op: str
    dtype: str
    size: Bytes
    dimension: int
    alone: Seconds
    beside: Seconds
    product_alone: Seconds
    product_beside: Seconds

    @property
    def slowdown(self) -> float:
        """How many times as long the collective takes beside the products."""
        return self.beside / self.alone

    @property
    def product_slowdown(self) -> float:
        """How many times as long a product takes beside the collective."""
        return self.product_beside / self.product_alone


def overlaps(out: Path) -> list[Overlap]:
    """Return what a file of a run says of cases that were measured both alone and beside products."""
    records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    operations = [one for one in records if one.get("record") == "op" and "samples_s" in one]
    alone = {_key(one): one for one in operations if not _dimension(one)}
    pairs = ((one, alone.get(_key(one))) for one in operations if _dimension(one))
    return [_overlap(one, bare) for one, bare in pairs if bare is not None]


def _overlap(of: Record, bare: Record) -> Overlap:
    return Overlap(
        of["op"],
        of["dtype"],
        of["size_bytes"],
        _dimension(of),
        _time(bare),
        _time(of),
        max(of["matmul_alone_s"]),
        max(median(rank) for rank in of["matmul_s"]),
    )


def _dimension(of: Record) -> int:
    return int(of.get("conditions", {}).get("matmul", 0))


def _key(of: Record) -> str:
    """What two cases share that differ in the products alone."""
    others = {key: value for key, value in of.get("conditions", {}).items() if key != "matmul"}
    return json.dumps(
        [of["op"], of["dtype"], of["size_bytes"], of["ranks"], of.get("in_place"), others], sort_keys=True
    )


def _time(of: Record) -> Seconds:
    found: Iterator[Any] = (samples(of[key], key) for key in ("samples_s", "arrival_s"))
    return typical(*found)
