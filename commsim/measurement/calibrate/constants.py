"""Which constants does a calibration hold, and what is it with other ones?

A constant is named by where it stands: `links.nvlink4.efficiency`, `protocols.LL.base`. Nothing here knows which fields
a calibration has: whatever is a number in it is a constant.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[str, ...]
"""The keys on the way to a constant."""
T = TypeVar("T")
SHARE = "1"
MADE = ("payload", "slot", "bytes_per_thread", "mtu", "framing")
"""What a library's authors chose, the same on every machine: users' runs do not change it."""


@dataclasses.dataclass(frozen=True)
class Constant:
    """A number of a calibration: where it stands, its value in SI, its dimension (a key of `units.UNITS`)."""

    place: Place
    value: float
    dimension: str

    @property
    def name(self) -> str:
        """How people call it."""
        return ".".join(self.place)

    @property
    def most(self) -> float:
        """The most that it can be: a share is at most 1, what is more already has no end."""
        return 1.0 if self.dimension == SHARE and self.value <= 1 else float("inf")


def constants(calibration: object) -> list[Constant]:
    """Return the constants of a calibration that a machine can change, in its order.

    One that is 0 says that something is absent, and what is MADE is not the machine's.
    """
    return [one for one in _walk(calibration, ()) if one.value > 0 and not _is_made(one)]


def _is_made(one: Constant) -> bool:
    return any(one.place[-1] == name or fnmatch.fnmatchcase(one.name, name) for name in MADE)


def _walk(value: Any, place: Place) -> Iterator[Constant]:  # noqa: ANN401 - any dataclass
    hints = get_type_hints(type(value), include_extras=True)
    for field in dataclasses.fields(value):
        yield from _inside(hints[field.name], getattr(value, field.name), (*place, field.name))


def _inside(hint: Any, value: Any, place: Place) -> Iterator[Constant]:  # noqa: ANN401
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _inside(get_args(hint)[1], one, (*place, key))
    elif dataclasses.is_dataclass(value):
        yield from _walk(value, place)
    elif isinstance(value, float):
        dimensions = [get_args(one)[1] for one in (hint, *get_args(hint)) if get_origin(one) is Annotated]
        if dimensions:
            yield Constant(place, float(value), dimensions[0])


def changed(calibration: T, values: Mapping[Place, float]) -> T:
    """Return the calibration with other values at those places."""
    made: T = _changed(calibration, values)
    return made


def _changed(value: Any, values: Mapping[Place, Any]) -> Any:  # noqa: ANN401
    if () in values:
        return values[()]
    keys = dict.fromkeys(place[0] for place in values)
    below = {key: {place[1:]: one for place, one in values.items() if place[0] == key} for key in keys}
    if isinstance(value, Mapping):
        return {**value, **{key: _changed(value[key], inner) for key, inner in below.items()}}
    return dataclasses.replace(value, **{key: _changed(getattr(value, key), inner) for key, inner in below.items()})
