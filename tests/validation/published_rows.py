"""Which results do the tests of validation start from? A complete one, and models to go with it."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from commsim.shipped import folder
from commsim.training.configs.rows import read_rows
from commsim.validation.published import Published

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SHIPPED = folder("bench") / "published"
MODELS: Mapping[str, Mapping[str, str]] = read_rows(SHIPPED / "models.csv")
_STATED: dict[str, Any] = {
    "row_id": "A1",
    "model_id": "llama3-8b",
    "seq_len": 4096,
    "n_gpus": 16,
    "tp": 2,
    "pp": 2,
    "dp": 4,
    "micro_batch": 1,
    "global_batch": 16,
    "system": "hgx-h100",
    "step_time_to_predict_s": 1.0,
    "trainer": "megatron",
    "year": 2025,
    "core": True,
    "headline": True,
}


def result(**changes: object) -> Published:
    """Return a result of Llama 3 8B on 16 H100, with changes."""
    return Published(**{**_STATED, **changes})


def cells(**changes: object) -> dict[str, str]:
    """Return the same result as cells of a table."""
    return {key: "1" if value is True else str(value) for key, value in {**_STATED, **changes}.items()}


def write(path: Path, *rows: Mapping[str, str]) -> Path:
    """Write the rows as a table and return where it is."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
