"""Which trainer's configuration is a file, and what does it say?"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError, reason
from commsim.reading import LARGEST_FILE, parse_yaml
from commsim.training.trainers import deepspeed, megatron, nemo, torchtitan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from commsim.training.trainers.job import Job

TRAINERS = (megatron, nemo, torchtitan, deepspeed)
KNOWN = "Megatron-LM's arguments or YAML, torchtitan's TOML, NeMo's YAML or DeepSpeed's JSON"


def read_job(path: Path) -> Job:
    """Return the job that a trainer's configuration describes.

    InputError for a file that cannot be read, that is none of a known trainer's, and at the first value that does not
    fit.
    """
    where = path.name
    table = contents(path)
    trainer = next((one for one in TRAINERS if one.recognises(table)), None)
    if trainer is None:
        given = f"the keys {', '.join(map(str, list(table)[:6]))}" if table else None
        raise InputError(where, given, f"{KNOWN} belongs here")
    found: Job = trainer.job(table, where)
    return found


def contents(path: Path) -> Mapping[str, Any]:
    """Return the table that a file holds: TOML, JSON, YAML, else the arguments of a command line."""
    text = _text(path)
    if path.suffix == ".toml":
        return _toml(text, path.name)
    if path.suffix == ".json":
        return _json(text, path.name)
    if path.suffix in {".yaml", ".yml"}:
        return parse_yaml(text, path.name)
    return megatron.arguments(text, path.name)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise InputError(path.name, "a larger file", f"a configuration, {LARGEST_FILE} bytes at most")
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), reason(error), "a readable configuration belongs here") from None


def _toml(text: str, where: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(where, reason(error), "well-formed TOML belongs here") from None


def _json(text: str, where: str) -> Mapping[str, Any]:
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(where, reason(error), "well-formed JSON belongs here") from None
    if not isinstance(table, dict):
        raise InputError(where, table, f"{KNOWN} belongs here")
    return table
