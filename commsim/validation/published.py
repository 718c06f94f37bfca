"""What does a table of published training results say, one row a result?

Its columns are the fields of `Published`, under the same names; others are left alone. Blank means: not stated.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING

from commsim.validation.cells import values
from commsim.validation.rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


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
    fp8_scaling: str = ""
    torch_compile: bool | None = None
    overlap_tensor: bool | None = None
    overlap_data: bool | None = None
    overlap_pipeline: bool | None = None
    overlap_expert: bool | None = None
    cuda_graph: str = ""
    attention_kernel: str = ""
    moe_balance: str = ""
    moe_routing: str = ""
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
    return read_rows(path, Published, blank=True)


def changed(result: Published, where: str, row: Mapping[str, str]) -> Published:
    """Return the result with these cells in the place of its own. InputError for one that cannot be read."""
    said = values(Published, where, row, blank=True)
    return replace(result, **{name: value for name, value in said.items() if name in row})
