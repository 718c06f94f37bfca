"""Which file of the catalogue is meant by a name, and what does it say in full?"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from commsim.errors import InputError
from commsim.reading import load_yaml, merged, parse_yaml
from commsim.shipped import folder

Table = Mapping[str, Any]
_FILES = (".xml", ".txt", ".json")


def aliases(group: str) -> dict[str, tuple[str, ...]]:
    """Return the names of a folder of the catalogue (`systems`, `accelerators`) with their aliases."""
    return {name: tuple(head.get("aliases", ())) for name, head in _heads(group).items()}


def described(group: str, name: str | Path, where: str) -> Table:
    """Return the table of that name, alias or YAML file, with everything that its `like:` says filled in.

    InputError for an unknown name (with the nearest one), for one that two machines bear, for a file that is none.
    """
    path = _path(group, str(name), where, Path())
    return filled(group, load_yaml(path), path)


def filled(group: str, table: Table, path: Path, chain: tuple[Path, ...] = ()) -> Table:
    """Return the table of the file `path` laid over that which `like:` names; InputError when that never ends."""
    if "like" not in table:
        return table
    chain = (*chain, path)
    base = _path(group, str(table["like"]), f"{path.name}: like", path.parent)
    if base.resolve() in [known.resolve() for known in chain]:
        names = " -> ".join(known.name for known in (*chain, base))
        raise InputError(f"{chain[0].name}: like", names, "a chain of `like:` must end in a file without one")
    below = filled(group, load_yaml(base), base, chain)
    title = f"{path.stem}, like {base.stem}"
    own = {"name": path.stem, "title": title, "summary": "", "aliases": [], "shared": [], "status": "given"}
    change = {key: value for key, value in table.items() if key != "like"}
    return merged({**below, **{key: value for key, value in own.items() if key in below}}, change)


def _path(group: str, name: str, where: str, beside: Path) -> Path:
    """The file that a name, an alias or a path (relative to `beside`) means."""
    if Path(name).suffix in (".yaml", ".yml"):
        return beside / name
    found = _bearers(group).get(_plain(name), ())
    if len(found) == 1:
        return folder("topologies") / group / f"{found[0]}.yaml"
    if found:
        meant = " or ".join(f"{stem!r} ({_heads(group)[stem]['title']})" for stem in found)
        raise InputError(where, name, f"several machines bear this name; say {meant}")
    raise InputError(where, name, _unknown(name), among=_bearers(group))


def _unknown(name: str) -> str:
    """What is wrong with a name that means nothing: often it is meant to be a file."""
    if name and os.path.isdir(name):  # noqa: PTH112 - it answers for impossible names as well
        return "this is a folder; a file, or a name of the catalogue, belongs here"
    if Path(name).name != name or Path(name).suffix in _FILES:
        return "no such file"
    return "no such name in the catalogue"


@lru_cache(maxsize=4)
def _bearers(group: str) -> dict[str, tuple[str, ...]]:
    """Who bears a name, in its plain form: one, or several for a name that alone means none of them."""
    found: dict[str, tuple[str, ...]] = {}
    for stem, head in _heads(group).items():
        for name in dict.fromkeys(_plain(str(n)) for n in (stem, *head.get("aliases", ()), *head.get("shared", ()))):
            found[name] = (*found.get(name, ()), stem)
    return found


def _plain(name: str) -> str:
    """A name without what people write differently: `HGX H100` and `hgx_h100` are `hgx-h100`."""
    return re.sub(r"[\s_]+", "-", name.strip().lower())


@lru_cache(maxsize=4)
def _heads(group: str) -> dict[str, Table]:
    """The first keys of every file, name to title: to know all names it need not be read in full."""
    paths = sorted((folder("topologies") / group).glob("*.yaml"))
    return {path.stem: parse_yaml(_head(path.read_text(encoding="utf-8")), path.name) for path in paths}


def _head(text: str) -> str:
    match = re.match(r".*?^title:[^\n]*\n", text, re.DOTALL | re.MULTILINE)
    return match[0] if match else text
