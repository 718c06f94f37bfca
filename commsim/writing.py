"""How does a value become YAML that a person can read and change? The reverse of `reading`."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import yaml

from commsim.figures import Figure
from commsim.units import UNITS

DIGITS = 6
"""Significant digits that are written: a fitted constant is never known better."""
_UNITS = {"s": "us", "B": "B", "B/s": "GB/s", "FLOP": "FLOP", "FLOP/s": "FLOP/s", "W": "W", "1": ""}


def to_yaml(value: Any) -> str:  # noqa: ANN401 - any dataclass that `reading` reads
    """Return the YAML of a dataclass: `reading` reads it as the same value, figures with their origin."""
    return yaml.safe_dump(plain(value), sort_keys=False, width=120, allow_unicode=True)


def plain(value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a dataclass as tables, lists, texts and quantities with their units; what is as by default is left out."""
    hints = get_type_hints(type(value), include_extras=True)
    said = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    defaults = {field.name: _default(field) for field in dataclasses.fields(value)}
    return {name: _plain(hints[name], one) for name, one in said.items() if one != defaults[name]}


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _plain(hint: Any, value: Any) -> Any:  # noqa: ANN401
    form = get_origin(hint)
    if form is Annotated:
        return _figure(value, get_args(hint)[1])
    if form in (Union, types.UnionType):
        return None if value is None else _plain(next(one for one in get_args(hint) if one is not type(None)), value)
    if isinstance(value, Mapping):
        return {key: _plain(get_args(hint)[1], one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(get_args(hint)[0], one) for one in value]
    return plain(value) if dataclasses.is_dataclass(value) else value


def _figure(value: float, dimension: str) -> object:
    """A quantity with its unit; of a figure its origin, too."""
    if not isinstance(value, Figure):
        return quantity(value, dimension)
    ends = {"low": value.low, "high": value.high} if value.low < value.high else {}
    numbers = {name: quantity(one, dimension) for name, one in {"value": float(value), **ends}.items()}
    said = {"status": value.status, "source": list(value.source), "note": value.note, "printed": value.printed}
    return numbers | {name: one for name, one in said.items() if one}


def quantity(value: float, dimension: str) -> object:
    """Return a number in the unit in which people say it (`5.3 us`); a bare number where there is no unit."""
    unit = _UNITS[dimension]
    number = float(f"{value / UNITS[dimension][unit]:.{DIGITS}g}")
    return f"{number:.{DIGITS}g} {unit}" if unit else number
