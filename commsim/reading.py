"""How does a person's YAML become a value?

One dataclass drives everything: its annotations say which keys there are, which unit belongs to which quantity, what is
a list and what a table; the errors name the file, the key, what stood there and what belongs there.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from commsim.errors import InputError, reason
from commsim.figures import STATUSES, Figure
from commsim.units import parse

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")
LARGEST_FILE = 4_000_000
"""Bytes of YAML that are read at most: a description of a machine is small, whoever sends more means harm."""
_FIGURE_KEYS = dict.fromkeys(("value", "low", "high", "status", "source", "note", "printed"))


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # libyaml's where it is there
    """The safe loader, which also refuses a key given twice and every alias (a few of them can mean gigabytes)."""

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        seen: set[int] = set()
        front = [node] if node else []
        while front:
            one = front.pop()
            if id(one) in seen:
                raise yaml.YAMLError("aliases are not read here; write the value out")
            seen.add(id(one))
            if isinstance(one, yaml.CollectionNode):
                front += [part for item in one.value for part in (item if isinstance(item, tuple) else (item,))]
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for number, key in enumerate(keys) if key in keys[:number]]
        if twice:
            raise yaml.YAMLError(f"the key {twice[0]!r} stands twice")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def load_yaml(path: Path) -> Mapping[str, Any]:
    """Return the table that a YAML file holds. InputError when it is absent, too large, no YAML or no table."""
    where = str(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(where, f"{path.stat().st_size} bytes", f"at most {LARGEST_FILE} bytes are read")
        return parse_yaml(path.read_text(encoding="utf-8"), where)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(where, reason(error), "a readable YAML file belongs here") from None


def parse_yaml(text: str, where: str) -> Mapping[str, Any]:
    """Return the table that YAML text holds; `where` names it in errors."""
    try:
        content = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader, made stricter
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or reason(error).splitlines()[0]
        raise InputError(f"{where}{line}", problem, "well-formed YAML belongs here") from None
    if not isinstance(content, Mapping):
        raise InputError(where, content, "a table of `key: value` lines belongs here")
    return content


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `change` laid over it, table by table; a figure (a table with `value`) is replaced whole."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        deeper = isinstance(old, Mapping) and isinstance(value, Mapping) and "value" not in value
        result[key] = merged(old, value) if deeper and old is not None else value
    return result


def read(kind: type[T], given: object, where: str) -> T:
    """Return the dataclass `kind` filled from the table `given`. InputError at the first thing that does not fit."""
    if not isinstance(given, Mapping):
        raise InputError(where, given, f"a table that describes a {_noun(kind)} belongs here")
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    for key in given:
        if key not in fields:
            raise InputError(f"{where}: key", key, f"a {_noun(kind)} has no such key", among=fields)
    required = (name for name, field in fields.items() if _is_required(field))
    for name in required:
        if name not in given:
            raise InputError(where, sorted(map(str, given)), f"a {_noun(kind)} needs the key {name!r}")
    values = {key: _value(hints[key], value, f"{where}: {key}") for key, value in given.items()}
    return kind(**values)


def _noun(kind: type[Any]) -> str:
    """What people call that which the dataclass describes: `SystemFigures` are a system."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__.removesuffix("Figures")).lower()


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _value(hint: Any, given: Any, where: str) -> Any:  # noqa: ANN401 - it reads any annotation
    """Return what `given` means where the annotation `hint` stands."""
    form = get_origin(hint)
    if form is Annotated:
        _, dimension, *example = get_args(hint)
        return _quantity(given, dimension, where, *example)
    if form in (Union, types.UnionType):
        inner = next(option for option in get_args(hint) if option is not type(None))
        return None if given is None else _value(inner, given, where)
    if form is Literal:
        return _chosen(get_args(hint), given, where)
    if form is tuple:
        return _list(get_args(hint), given, where)
    if isinstance(form, type) and issubclass(form, Mapping):
        return _table(get_args(hint)[1], given, where)
    reader = read if dataclasses.is_dataclass(hint) else _plain
    return reader(hint, given, where)


def _quantity(given: Any, dimension: str, where: str, example: str = "") -> float:  # noqa: ANN401
    """A figure: its text (`25 GB/s`), or a table with value, status, source, low, high, note, printed."""
    if not isinstance(given, Mapping):
        return Figure(parse(given, dimension, where, example), source=(where.split(":", maxsplit=1)[0],))
    for key in given:
        if key not in _FIGURE_KEYS:
            raise InputError(f"{where}: key", key, "a figure has no such key", among=_FIGURE_KEYS)
    if "value" not in given:
        raise InputError(where, dict(given), "a figure needs the key 'value'")
    numbers = {key: parse(given[key], dimension, f"{where}: {key}") for key in ("value", "low", "high") if key in given}
    source = given.get("source", ())
    value, low, high = (numbers.get(key, numbers["value"]) for key in ("value", "low", "high"))
    if not low <= value <= high:
        raise InputError(where, dict(given), "low <= value <= high must hold")
    return Figure(
        value,
        low=low,
        high=high,
        status=_chosen(STATUSES, given.get("status", "given"), f"{where}: status"),
        source=(source,) if isinstance(source, str) else tuple(map(str, source)),
        note=str(given.get("note", "")),
        printed=str(given.get("printed", "")),
    )


def _chosen(options: tuple[Any, ...], given: Any, where: str) -> Any:  # noqa: ANN401
    if given not in options:
        raise InputError(where, given, "not one of the choices", among=tuple(map(str, options)))
    return given


def _list(hints: tuple[Any, ...], given: Any, where: str) -> tuple[Any, ...]:  # noqa: ANN401
    if not isinstance(given, list):
        raise InputError(where, given, "a list belongs here")
    if len(hints) == 2 and hints[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...]
        hints = (hints[0],) * len(given)
    if len(hints) != len(given):
        raise InputError(where, given, f"a list of {len(hints)} belongs here")
    return tuple(_value(hint, item, f"{where}[{number}]") for number, (hint, item) in enumerate(zip(hints, given)))


def _table(hint: Any, given: Any, where: str) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(given, Mapping):
        raise InputError(where, given, "a table belongs here")
    return {str(key): _value(hint, item, f"{where}: {key}") for key, item in given.items()}


def _plain(hint: type[Any], given: Any, where: str) -> Any:  # noqa: ANN401
    """A text, a truth value, a whole number >= 0 or a plain number; nothing is converted that was not meant."""
    names = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
    fits = isinstance(given, hint) or (hint is float and isinstance(given, int))
    if not fits or (isinstance(given, bool) and hint is not bool):
        raise InputError(where, given, f"{names.get(hint, hint.__name__)} belongs here")
    if hint in (int, float) and not 0 <= given < float("inf"):
        raise InputError(where, given, "a finite number that is not negative belongs here")
    return given
