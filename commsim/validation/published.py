"""What does a table of published training results say, one row a result?

Its columns are the fields of `Published`, under the same names; others are left alone. Blank means: not stated.
"""

from __future__ import annotations

import csv
from dataclasses import MISSING, dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError, reason
from commsim.validation.cells import values

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MOST_ROWS = 20_000
"""Rows that are read at most: whoever writes more made a mistake."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """One result that somebody published: model, machine, plan and recipe as stated, and the time of a step.

    None, empty text and a size of 0 mean that the source does not say. `core` results have a complete plan, `headline`
    are those of them that are reported first, `group` are results of one model on one size of machine.
    """

    row_id: str
    model_id: str
    seq_len: int
    n_gpus: int
    tp: int
    pp: int
    dp: int
    micro_batch: int
    global_batch: int
    system: str
    step_time_to_predict_s: float | None
    model_overrides: str = ""
    source: str = ""
    framework: str = ""
    trainer: str = ""
    year: int | None = None
    group: str = ""
    core: bool | None = None
    headline: bool | None = None
    exact_duplicate_of: str = ""
    accelerator: str = ""
    gpus_per_node: int | None = None
    scale_up_ranks: int | None = None
    fabric: str = ""
    fabric_gbit_per_s_per_node: float | None = None
    nics_per_node: int | None = None
    sp: bool | None = None
    cp: int | None = None
    vpp: int | None = None
    ep: int | None = None
    etp: int | None = None
    zero_stage: int | None = None
    shard_ranks: int | None = None
    recompute_mode: str = ""
    recompute_modules: str = ""
    recompute_every: int | None = None
    number_format: str = ""
    gradient_format: str = ""
    overlap_tensor: bool | None = None
    overlap_data: bool | None = None
    overlap_pipeline: bool | None = None
    overlap_expert: bool | None = None
    cuda_graph: str = ""
    attention_kernel: str = ""
    moe_balance: str = ""
    moe_dispatcher: str = ""
    capacity_factor: float | None = None
    packed: bool | None = None
    parallel_block: bool | None = None
    fused_norm: bool | None = None

    @property
    def missing(self) -> list[str]:
        """The columns without which there is nothing to estimate, of those that this result leaves blank."""
        return [item.name for item in fields(self) if item.default is MISSING and not getattr(self, item.name)]


def read_published(path: Path) -> list[Published]:
    """Return the results of a table. InputError when it is no such table, or for a cell that cannot be read."""
    rows = rows_of(path)
    _check_columns(path, list(rows[0]) if rows else [])
    results = [_result(str(path), number, row) for number, row in enumerate(rows, start=2)]
    _check_names(path, [result.row_id for result in results])
    return results


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table, text by column. InputError for what is no table, or is too long."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(islice(csv.DictReader(file), MOST_ROWS + 1))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), reason(error), "a readable CSV file belongs here") from None
    if len(rows) > MOST_ROWS:
        raise InputError(str(path), f"more than {MOST_ROWS} rows", f"at most {MOST_ROWS} results are read")
    return rows


def changed(result: Published, where: str, row: Mapping[str, str]) -> Published:
    """Return the result with these cells in the place of its own. InputError for one that cannot be read."""
    said = values(Published, where, row, blank=True)
    return replace(result, **{name: value for name, value in said.items() if name in row})


def _check_columns(path: Path, columns: list[str]) -> None:
    missing = [item.name for item in fields(Published) if item.default is MISSING and item.name not in columns]
    if missing:
        expected = f"{'columns are' if missing[1:] else 'a column is'} missing: {', '.join(missing)}"
        raise InputError(str(path), columns or "nothing", expected)


def _check_names(path: Path, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            raise InputError(f"{path}: row_id", name, "a name of its own belongs in every row")
        seen.add(name)


def _result(where: str, line: int, row: Mapping[str, Any]) -> Published:
    cells = list(row.values())
    if None in row or None in cells:
        raise InputError(f"{where}: line {line}", cells, "as many cells as columns belong here")
    return Published(**values(Published, f"{where}: {row['row_id'] or f'line {line}'}", row, blank=True))
