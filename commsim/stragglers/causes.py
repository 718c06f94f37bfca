"""How does a person write causes down?

As text, `slow-rank: factor=1.1 count=1` or `os-noise: rate=3350 lasting=lognormal(0.5, mean=5.7us) seen=0.1`, or as a
table, `{kind: slow-rank, factor: 1.1, count: 1}`, many of which stand in a YAML file under `causes:`. The fields of a
kind are its keys; a law is its name with its own fields, `lognormal(sigma=0.5)` or `{lognormal: {sigma: 0.5}}`.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from commsim.errors import InputError
from commsim.reading import load_yaml, read
from commsim.stragglers.kinds import KINDS, Straggler
from commsim.stragglers.laws import LAWS, Law
from commsim.units import UNITS, parse

T = TypeVar("T")
_OPEN, _CLOSE = "([", ")]"
_EXAMPLE = "a name with its fields, as in 'slow-rank: factor=1.1 count=1', belongs here"


def cause(text: str) -> Straggler:
    """Return the cause that a text describes; InputError for an unknown kind or field, or a value that is none."""
    return described(KINDS, text, "cause")


def described(table: Mapping[str, type[T]], text: str, what: str) -> T:
    """Return the value of a table that a text describes in the same way; InputError names `what` it should be."""
    name, _, rest = text.partition(":")
    if not name.strip() or "=" in name:
        raise InputError(what, text, _EXAMPLE)
    return _made(table, name.strip(), _fields(rest.split(), text), what)


def cause_of(table: object, where: str = "cause") -> Straggler:
    """Return the cause that a table describes; errors as in `cause`."""
    if isinstance(table, str):
        return cause(table)
    if not isinstance(table, Mapping) or "kind" not in table:
        raise InputError(where, table, "a table with the key 'kind', or a text, belongs here")
    return _made(KINDS, str(table["kind"]), {key: table[key] for key in table if key != "kind"}, where)


def causes(path: Path | str) -> tuple[Straggler, ...]:
    """Return the causes that a YAML file lists under `causes:`; InputError says which one does not fit."""
    content = load_yaml(Path(path))
    listed = content.get("causes")
    if not isinstance(listed, list) or len(content) > 1:
        raise InputError(str(path), sorted(map(str, content)), "a list under the one key 'causes' belongs here")
    return tuple(cause_of(one, f"{path}: causes[{number}]") for number, one in enumerate(listed))


def table_of(value: Straggler) -> dict[str, Any]:
    """Return the cause as a table that `cause_of` reads back; defaults are left out."""
    return {"kind": kind_of(value), **_plain(value)}


def kind_of(value: Straggler) -> str:
    """Return the name of the cause's kind."""
    return next(name for name, kind in KINDS.items() if type(value) is kind)


def written(value: Straggler) -> str:
    """Return the cause as a line, as `cause` reads it (but for effects, which only tables describe)."""
    fields = " ".join(f"{name}={_line(one).strip('[]')}" for name, one in _plain(value).items())
    return f"{kind_of(value)}: {fields}" if fields else kind_of(value)


def law(given: object, where: str = "law") -> Law:
    """Return the law of a text such as `lognormal(0.5, mean=5.7us)` or a table `{lognormal: {sigma: 0.5}}`."""
    if isinstance(given, Law):
        return given
    if isinstance(given, Mapping) and len(given) == 1:
        ((name, fields),) = given.items()
        return _made(LAWS, str(name), fields, where)
    name, opened, rest = str(given).strip().partition("(")
    if not isinstance(given, str) or not name or (opened and not rest.endswith(")")):
        raise InputError(where, given, "a law, such as lognormal(sigma=0.5) or {lognormal: {sigma: 0.5}}, belongs here")
    if name not in LAWS:
        raise InputError(where, name, "no such law", among=LAWS)
    names = [field.name for field in dataclasses.fields(LAWS[name])]  # type: ignore[arg-type] # all are dataclasses
    return _made(LAWS, name, _fields(_split(rest[:-1], ","), given, names), where)


def _made(table: Mapping[str, type[T]], name: str, fields: object, where: str) -> T:
    """The value of that name with its fields."""
    if name not in table:
        raise InputError(where, name, "no such law" if table is LAWS else "no such kind", among=table)
    return read(table[name], _meant(table[name], fields, where), name)


def _fields(parts: list[str], whole: str, names: list[str] | None = None) -> dict[str, str]:
    """The fields of `key=value` parts; those without a key have the names in order."""
    found: dict[str, str] = {}
    for part, name in zip(_joined(parts), [*(names or ()), *[""] * len(parts)]):
        key, equals, value = part.partition("=")
        named = equals and key.strip().isidentifier()
        key, value = (key.strip(), value.strip()) if named else (name, part.strip())
        if not key or not value or key in found:
            raise InputError("cause", whole, f"key=value, each once, belongs at {part.strip()!r}")
        found[key] = value
    return found


def _joined(parts: list[str]) -> Iterator[str]:
    """The parts, those of one bracket put together again."""
    held = ""
    for part in parts:
        held = f"{held} {part}".strip()
        if _depth(held) <= 0:
            yield held
            held = ""
    if held:
        yield held


def _depth(text: str) -> int:
    return sum((letter in _OPEN) - (letter in _CLOSE) for letter in text)


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that stand in no bracket."""
    found = [""]
    for letter in text:
        if letter == separator and _depth(found[-1]) == 0:
            found.append("")
        else:
            found[-1] += letter
    return [part for part in found if part.strip()]


def _meant(kind: object, given: object, where: str) -> object:
    """What is given where a dataclass belongs, its texts turned into what its annotations say."""
    if not isinstance(given, Mapping):
        return given
    hints = get_type_hints(kind, include_extras=True)
    return {key: _value(hints.get(str(key)), one, f"{where}: {key}") for key, one in given.items()}


def _value(hint: Any, given: Any, where: str) -> Any:  # noqa: ANN401 - it reads any annotation
    if get_origin(hint) in (Union, types.UnionType):
        return None if given is None else _value(get_args(hint)[0], given, where)
    if hint is Law:
        return law(given, where)
    if get_origin(hint) is tuple:
        listed = _split(str(given).strip("[]"), ",") if isinstance(given, str | int | float) else given
        return [_value(get_args(hint)[0], one, where) for one in listed] if isinstance(listed, list) else listed
    if dataclasses.is_dataclass(hint):
        return _meant(hint, given, where)
    return _scalar(hint, given.strip(), where) if isinstance(given, str) else given


def _scalar(hint: Any, text: str, where: str) -> Any:  # noqa: ANN401
    """A number, a truth value or a quantity of a text; times in laws are seconds."""
    if get_origin(hint) is Annotated or hint not in (bool, int, float):
        return text
    if hint is bool:
        return {"true": True, "yes": True, "false": False, "no": False}.get(text.lower(), text)
    if any(text.endswith(unit) for unit in UNITS["s"]) and hint is float:
        return parse(text, "s", where, "50 ms")
    try:
        return hint(text)
    except ValueError:
        return text


def _plain(value: object) -> dict[str, Any]:
    """The fields of a dataclass that are not as they are by default, in numbers, texts, lists and tables."""
    found = {}
    hints = get_type_hints(type(value), include_extras=True)
    for field in dataclasses.fields(value):  # type: ignore[arg-type]
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        given = getattr(value, field.name)
        if given != default:
            quantity = "Annotated" in str(hints[field.name])
            found[field.name] = f"{float(given)!r} s" if quantity else _shown(given)
    return found


def _shown(value: object) -> Any:  # noqa: ANN401
    if isinstance(value, Law):
        return {type(value).__name__.lower(): _plain(value)}
    if isinstance(value, tuple):
        return [_shown(one) for one in value]
    return _plain(value) if dataclasses.is_dataclass(value) else value


def _line(value: object) -> str:
    """A value as text without blanks outside of brackets."""
    if isinstance(value, dict):
        ((name, fields),) = value.items() if len(value) == 1 else (("...", value),)
        inner = fields.items() if isinstance(fields, dict) else ()
        return f"{name}({', '.join(f'{key}={_line(one)}' for key, one in inner)})"
    if isinstance(value, list):
        return f"[{','.join(map(_line, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value).replace(" ", "")
