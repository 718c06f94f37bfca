"""What is a quantity?

Inside commsim every quantity is a plain float in SI: seconds, bytes, bytes per second, FLOP, FLOP per second, watts.
The unit is written in the type (`Seconds`, `Bytes`, ...); people and files write it beside the number.
"""

from __future__ import annotations

import math
import re
from typing import Annotated

from commsim.errors import InputError

Seconds = Annotated[float, "s"]
Duration = Annotated[float, "s", "50 ms"]
"""Seconds that a person notices, with an example for those who forget the unit."""
Bytes = Annotated[float, "B"]
BytesPerSecond = Annotated[float, "B/s"]
FlopsPerSecond = Annotated[float, "FLOP/s"]
Watts = Annotated[float, "W"]
Share = Annotated[float, "1"]

_SI = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{prefix}i": 2.0 ** (10 * power) for power, prefix in enumerate("KMGTPE", start=1)}
_BITS = {f"{prefix}{bit}": factor / 8 for prefix, factor in _SI.items() for bit in ("b", "bit")}
_BYTES = {f"{prefix}B": factor for prefix, factor in (_SI | _BINARY).items()}
_RATE_NAMES = ("{}/s", "{}ps")
_MINUTE, _HOUR = 60.0, 3600.0

UNITS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": _MINUTE, "h": _HOUR},
    "B": _BYTES | _BITS,
    "B/s": {form.format(name): factor for name, factor in (_BYTES | _BITS).items() for form in _RATE_NAMES},
    "FLOP": {f"{prefix}FLOP": factor for prefix, factor in _SI.items()},
    "FLOP/s": {f"{prefix}{name}": f for prefix, f in _SI.items() for name in ("FLOP/s", "FLOPS", "FLOPs")},
    "W": {f"{prefix}W": factor for prefix, factor in _SI.items()},
    "1": {"": 1.0, "%": 1e-2},
}
"""Every unit that is read, by dimension: its factor to SI."""

_SHOWN: dict[str, tuple[str, ...]] = {
    "s": ("s", "ms", "us", "ns"),
    "B": ("EB", "PB", "TB", "GB", "MB", "kB", "B"),
    "B/s": ("PB/s", "TB/s", "GB/s", "MB/s", "kB/s", "B/s"),
    "FLOP": ("EFLOP", "PFLOP", "TFLOP", "GFLOP", "MFLOP", "FLOP"),
    "FLOP/s": ("EFLOP/s", "PFLOP/s", "TFLOP/s", "GFLOP/s", "FLOP/s"),
    "W": ("MW", "kW", "W"),
    "1": ("",),
}
_EXAMPLES = {"s": "2.5 us", "B": "80 GB", "B/s": "400 Gb/s", "FLOP": "3 TFLOP", "FLOP/s": "989 TFLOP/s", "W": "700 W"}
_NUMBER = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|[+-]?inf\w*"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([^\d\s]*)\s*", re.IGNORECASE)
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGTP])(?:i?B)?|B)?\s*", re.IGNORECASE)


def parse(text: object, dimension: str, where: str, example: str = "") -> float:
    """Return the SI value of a written quantity such as `400 Gb/s`.

    `dimension` is a key of `UNITS`. Raises InputError for a bare number where a unit belongs, an unknown unit, and
    for what is not a finite number >= 0; it shows an `example` of what is usual there.
    """
    units = UNITS[dimension]
    usual = example or _EXAMPLES.get(dimension)
    expected = f"a number with its unit, such as {usual!r}" if usual else "a plain number"
    match = _QUANTITY.fullmatch(str(text))
    if match is None or isinstance(text, bool):
        raise InputError(where, text, f"{expected} belongs here")
    number, unit = float(match[1].replace("_", "")), match[2]
    if not math.isfinite(number) or number < 0:
        raise InputError(where, text, "a finite number that is not negative belongs here")
    if unit not in units and not (number == 0 and not unit):
        raise InputError(where, text, f"{f'{unit!r} is no unit of this quantity; ' if unit else ''}write {expected}")
    return _scaled(number, units.get(unit, 1.0))


def show(value: float, dimension: str, digits: int | None = None) -> str:
    """Return the quantity as text: exact (`parse` gives `value` back) unless `digits` significant ones are asked."""
    units = UNITS[dimension]
    names = _SHOWN[dimension]
    name = next((name for name in names if abs(value) >= units[name]), names[-1])
    if value == 0:
        name = min(names, key=lambda other: abs(math.log(units[other])))
    if digits is not None:
        return f"{_rounded(_scaled(value, 1 / units[name]), digits)} {name}".strip()
    base = next(other for other in names if units[other] == 1.0)
    exact = [f"{_scaled(value, 1 / units[name])!r} {name}".strip(), f"{value!r} {base}".strip()]
    return next(text for text in exact if parse(text, dimension, "show") == value)


def _scaled(number: float, factor: float) -> float:
    """The product; a factor below 1 divides by its (exact) inverse, so that `2.5 us` is the float 2.5e-06."""
    return number / round(1 / factor) if factor < 1 and round(1 / factor) == 1 / factor else number * factor


def _rounded(number: float, digits: int) -> str:
    """The number to so many significant digits, without exponent and without empty decimals."""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    text = f"{number:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_size(text: object, where: str = "size") -> int:
    """Return bytes of a message size as nccl-tests writes it: bare = bytes, K, M, G, T = powers of 1024."""
    match = _SIZE.fullmatch(str(text))
    if match is None or isinstance(text, bool):
        raise InputError(where, text, "a size such as 4096, 64K or 1GiB belongs here (K, M, G = 1024-based)")
    power = " KMGTP".index(match[2].upper()) if match[2] else 0
    return int(float(match[1]) * 1024**power)


def parse_sizes(text: str, factor: float = 2.0, where: str = "sizes") -> list[int]:
    """Return the sizes of a list `8..8GiB` (each `factor` times the one before) or `1K,4K,1M`."""
    if factor <= 1:
        raise InputError(f"{where}: factor", factor, "a factor above 1 belongs here")
    if ".." not in text:
        return [parse_size(part, where) for part in text.split(",")]
    first, last = text.split("..", 1)
    if not first.strip() or not last.strip():
        raise InputError(where, text, "the first and the last size belong here, such as 1KiB..8GiB")
    low, high = parse_size(first, where), parse_size(last, where)
    if not 0 < low <= high:
        raise InputError(where, text, "the first size must be above 0 and not above the last")
    steps = math.floor(math.log(high / low, factor) + 1e-9)
    return list(dict.fromkeys(round(low * factor**step) for step in range(steps + 1)))


def show_size(size: float) -> str:
    """Return a message size for people in 1024-based units, as nccl-tests counts: `64 MiB`."""
    power = min(5, max(0, math.floor(math.log(size, 1024) + 1e-12))) if size >= 1 else 0
    name = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")[power]
    return f"{_rounded(size / 1024**power, 4)} {name}"


def counted(count: int, noun: str) -> str:
    """Return a number of things: `1 node`, `2,048 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
