"""Which model does a name, or a file, mean?"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping  # noqa: TC003 - the reader of YAML needs it when it runs
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from commsim.errors import InputError
from commsim.reading import load_yaml, parse_yaml, read
from commsim.shipped import folder
from commsim.training.block import Block  # noqa: TC001 - as above
from commsim.training.configs.huggingface import describe
from commsim.training.configs.keys import read_config
from commsim.training.configs.llama_params import describe_llama, describes_llama
from commsim.training.model import MOST_LAYERS, Model

_FILES = ("config.json", "params.json")


@dataclass(frozen=True)
class Run:
    """Layers that follow each other: kinds of block, and how often the sequence of them is repeated."""

    kinds: tuple[str, ...]
    repeat: int = 1


@dataclass(frozen=True)
class Entry:
    """A model as topologies/models.yaml, or a person's own YAML file, writes it."""

    source: str
    hidden: int
    vocabulary: int
    blocks: Mapping[str, Block]
    layers: tuple[Run, ...]
    aliases: tuple[str, ...] = ()
    tied_embeddings: bool = False
    positions: int = 0
    mtp: tuple[str, ...] = ()
    mtp_depth: int = 0
    assumptions: tuple[str, ...] = ()

    def model(self, name: str) -> Model:
        """Return the model of that name. InputError when it has too many layers, or one of no known kind."""
        count = sum(run.repeat * len(run.kinds) for run in self.layers)
        if count > MOST_LAYERS:
            raise InputError(f"{name}: layers", count, f"at most {MOST_LAYERS} layers belong here")
        return Model(
            name=name,
            source=self.source,
            hidden=self.hidden,
            vocabulary=self.vocabulary,
            blocks=tuple(dataclasses.replace(block, name=kind) for kind, block in self.blocks.items()),
            layers=tuple(kind for run in self.layers for kind in run.kinds * run.repeat),
            tied_embeddings=self.tied_embeddings,
            positions=self.positions,
            mtp=self.mtp,
            mtp_depth=self.mtp_depth,
            assumptions=self.assumptions,
        )


def model(name: str | Path) -> Model:
    """Return the model of a name or alias in topologies/models.yaml, or of a file or folder.

    A file is a Hugging Face config.json, a params.json or a YAML like an entry of models.yaml; a folder holds one of
    the first two. Raises InputError for an unknown name (did you mean), and for a file that describes no model.
    """
    if not isinstance(name, str | Path):
        raise InputError("model", name, "the name of a model, or a file that describes one, belongs here")
    known = _named().get(str(name).lower())
    if known:
        return _entry(known)
    path = Path(name)
    there = os.path.exists(name)  # noqa: PTH110 - it answers for impossible names as well
    if there or path.suffix in {".json", ".yaml", ".yml"} or path.name not in {"", str(name)}:
        return read_model(path)
    raise InputError("model", str(name), "no such model; `config.json` files are read too", among=_named())


def models() -> list[Model]:
    """Return all models of topologies/models.yaml, in its order."""
    return [_entry(name) for name in _table()]


def read_model(path: Path) -> Model:
    """Return the model that a file, or the config.json or params.json in a folder, describes."""
    file = next((path / name for name in _FILES if (path / name).is_file()), path)
    if file.is_dir():
        raise InputError(str(path), "a folder", f"one that holds {' or '.join(_FILES)}, or a file, belongs here")
    name = file.parent.resolve().name if file.name in _FILES else file.stem
    try:
        if file.suffix in {".yaml", ".yml"}:
            return read(Entry, load_yaml(file), str(file)).model(name)
        config = read_config(file)
        return (describe_llama if describes_llama(config) else describe)(config, name)
    except InputError as error:
        if str(file) in error.where:
            raise
        # a part of the layer refused what the file gave it, and does not know of the file
        raise InputError(f"{file}: {error.where}", error.given, str(error).rpartition("; ")[2]) from None


def aliases(name: str) -> tuple[str, ...]:
    """Return the other names of a model in the table."""
    return tuple(other for other, known in _named().items() if known == name and other != name)


@cache
def _table() -> dict[str, str]:
    """Return the YAML of each entry by its name: to parse one takes a millisecond, to parse all a tenth of a second."""
    text = (folder("topologies") / "models.yaml").read_text(encoding="utf-8")
    entries = re.split(r"(?m)^(?=[^\s#])", text)[1:]
    return {entry.partition(":")[0]: entry for entry in entries}


@cache
def _named() -> dict[str, str]:
    """Return the name in the table for every name and alias."""
    lines = {name: re.search(r"(?m)^  aliases: \[(.*)\]$", entry) for name, entry in _table().items()}
    named = {name: name for name in _table()}
    return named | {alias: name for name, line in lines.items() if line for alias in line[1].split(", ")}


@cache
def _entry(name: str) -> Model:
    where = f"models.yaml: {name}"
    return read(Entry, parse_yaml(_table()[name], where)[name], where).model(name)
