"""Which runs that somebody tried fitted into memory, and which ran out of it?

A row of the table says the plan, by the names of `Published`, and the `outcome`; what it leaves out (the machine, the
trainer) is as in the published results of the same source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.validation.published import changed
from commsim.validation.rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from commsim.validation.published import Published

FITS, RAN_OUT = ("fits",), ("OOM", "OOM Error")
UNSCORED = ("Kernel not available", "memory figure", "relative activation memory")
"""Outcomes that tell nothing of whether a run fitted."""
_PLAN = ("model_id", "model_overrides", "seq_len", "n_gpus", "tp", "sp", "pp", "dp", "micro_batch", "global_batch")
_TEXTS = ("source", "zero", "recompute", "kernel", "precision", "outcome")
_KERNELS = {"flash_attentionv1": "flash1", "flash_attention": "flash2"}
"""Kernels by how their names begin; others are called as they are."""


@dataclass(frozen=True)
class Outcome:
    """A run that somebody tried, and whether it fitted."""

    result: Published
    fits: bool


def read_outcomes(path: Path, results: Iterable[Published]) -> list[Outcome]:
    """Return the runs of a table; without one that fitted, the core `results` of its sources are those that did.

    InputError for what is no such table, and for a source without any result.
    """
    rows, known = rows_of(path), list(results)
    missing = [name for name in (*_PLAN, *_TEXTS) if not rows or name not in rows[0]]
    if missing:
        raise InputError(str(path), [*rows[0]] if rows else "nothing", f"columns are missing: {', '.join(missing)}")
    found = [*_outcomes(path, rows, known)]
    if any(one.fits for one in found):
        return found
    sources = {_source(one.result.source) for one in found}
    return [*found, *(Outcome(one, fits=True) for one in known if one.core and _source(one.source) in sources)]


def _outcomes(path: Path, rows: Iterable[Mapping[str, str]], results: list[Published]) -> Iterator[Outcome]:
    like = {_source(one.source): one for one in reversed(results)}
    for line, row in enumerate(rows, start=2):
        where, said = f"{path}: line {line}", row["outcome"]
        if said in UNSCORED:
            continue
        if said not in FITS + RAN_OUT:
            raise InputError(f"{where}: outcome", said, "no such outcome", among=(*FITS, *RAN_OUT, *UNSCORED))
        if _source(row["source"]) not in like:
            raise InputError(f"{where}: source", row["source"], "no published result is of this source")
        yield Outcome(changed(like[_source(row["source"])], where, _cells(row)), said in FITS)


def _source(name: str) -> str:
    """A source's name and year; what follows says which of its tables is meant."""
    return " ".join(name.split()[:2])


def _cells(row: Mapping[str, str]) -> dict[str, str]:
    """The cells of a row in the words of `Published`."""
    kernel, _, norm = row["kernel"].partition(" + ")
    return {name: row[name] for name in _PLAN} | {
        "row_id": row["source"],
        "zero_stage": "".join(re.findall(r"\d", row["zero"])),
        "recompute_mode": row["recompute"].split(" ")[0],
        "attention_kernel": next((one for start, one in _KERNELS.items() if kernel.startswith(start)), kernel),
        "fused_norm": "1" if norm else "",
        "number_format": row["precision"].split(" ")[0],
        "gradient_format": "fp32" if "fp32" in row["precision"] else "",
    }
