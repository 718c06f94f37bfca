"""Where does a number come from?"""

from __future__ import annotations

import math
from typing import Any, Literal, Self, get_args

from commsim.errors import InputError

Status = Literal["announced", "measured", "derived", "estimated", "from memory", "given"]
Corner = Literal["nominal", "low", "high"]
STATUSES: tuple[str, ...] = get_args(Status)


class Figure(float):
    """A float that knows its origin: status, source, and the range when nobody has announced the value.

    It calculates as the float it is; arithmetic gives plain floats. `low` and `high` are the ends of the range (equal
    to the value when it is certain), `note` says how it was formed, `printed` what the vendor prints (which may be a
    sum of both directions, or with sparsity).
    """

    __slots__ = ("high", "low", "note", "printed", "source", "status")
    status: Status
    source: tuple[str, ...]
    low: float
    high: float
    note: str
    printed: str

    def __new__(
        cls,
        value: float,
        *,
        status: Status = "given",
        source: tuple[str, ...] = (),
        low: float | None = None,
        high: float | None = None,
        note: str = "",
        printed: str = "",
    ) -> Self:
        """Build the figure; InputError unless low <= value <= high are finite and the status is one of STATUSES."""
        figure = super().__new__(cls, value)
        figure.low, figure.high = value if low is None else low, value if high is None else high
        figure.status, figure.source, figure.note, figure.printed = status, source, note, printed
        if not all(map(math.isfinite, (figure.low, value, figure.high))):
            raise InputError("figure", (figure.low, value, figure.high), "finite numbers belong here")
        if not figure.low <= value <= figure.high:
            raise InputError("figure", (figure.low, value, figure.high), "low <= value <= high must hold")
        if status not in STATUSES:
            raise InputError("figure: status", status, "how the value is known belongs here", among=STATUSES)
        return figure

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the origin with the number (a float alone would lose it)."""
        return _rebuilt, (float(self), {name: getattr(self, name) for name in self.__slots__})


def _rebuilt(value: float, origin: dict[str, Any]) -> Figure:
    """Return the figure that `__reduce__` took apart."""
    return Figure(value, **origin)


def at(value: float, corner: Corner) -> float:
    """Return the value at one end of its range; a plain float is certain, so it is itself at each end."""
    return float(value) if corner == "nominal" else float(getattr(value, corner, value))


def is_range(value: float) -> bool:
    """Tell whether the value is known only as a range."""
    return at(value, "low") != at(value, "high")


def origin(value: float) -> str:
    """Return one line on where the value comes from, for tables: `measured [STAS_NETB]`."""
    if not isinstance(value, Figure):
        return "given"
    sources = f" [{', '.join(value.source)}]" if value.source else ""
    return f"{value.status}{sources}"
