"""How do values become rows: records with the unit in each name, a DataFrame?

`records` is the one place that says which keys an answer has; the command line's JSON is made of the same records. What
they are for a kind of value stands in a file of this folder, which is read when such a value is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch
from importlib import import_module
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Record = dict[str, Any]
ROOMS = {
    "commsim.hardware": "machines",
    "commsim.lab": "labs",
    "commsim.libraries": "collectives",
    "commsim.libraries.moe": "moe",
    "commsim.measurement": "checks",
    "commsim.stragglers": "stragglers",
    "commsim.stragglers.replay": "replays",
    "commsim.training": "estimates",
    "commsim.training.comparing": "comparisons",
    "commsim.training.search": "searches",
}
"""Which file of this folder knows the values of a room; of two that fit, the longer name counts."""


@singledispatch
def records(value: object) -> list[Record]:
    """Return the rows of a value: a value of commsim, a mapping, or any number of these. InputError for others.

    Keys end in their unit. `range` holds {key: [low, high]}, or None when every figure behind the row is certain.
    """
    room = _room(type(value))
    known = records.dispatch(type(value))
    if room:
        import_module(f"commsim.tables.{room}")
    if records.dispatch(type(value)) is known:
        raise InputError("table", type(value).__name__, "a value of commsim, a mapping or several of these belong here")
    return records(value)


def _room(kind: type) -> str:
    """The file that knows a kind of value; "" when none does."""
    bases = [base.__module__ for base in kind.__mro__]
    fitting = [room for room in ROOMS for module in bases if module == room or module.startswith(f"{room}.")]
    return ROOMS[max(fitting, key=len)] if fitting else ""


def to_frame(value: object) -> pd.DataFrame:
    """Return the rows of a value as a DataFrame; what is nested becomes columns such as `breakdown.compute_s`."""
    import pandas as pd

    return pd.json_normalize(records(value))


@records.register
def _mapping(value: Mapping) -> list[Record]:  # type: ignore[type-arg] # singledispatch takes no subscripts
    return [dict(value)]


@records.register
def _several(values: Iterable) -> list[Record]:  # type: ignore[type-arg]
    return [record for value in values for record in records(value)]


@records.register
def _text(value: str) -> list[Record]:
    raise InputError("table", value, "a value of commsim, not its name, belongs here")
