"""How does a printed row become a value, also when other output has cut it in pieces?"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commsim.measurement.records import Row, Spread, Timing

if TYPE_CHECKING:
    from commsim.measurement.readers.nccl_tests.lines import Figures

PLAIN = ("time", "algbw", "busbw", "#wrong")
SPREAD = ("i_min", "i_max", "i_p99", "i_cv%")
_GB, _US = 1e9, 1e-6
_BLANK_GROUP = 24  # the figures out of place take 31 places or more, the gap before a time at most 13
_UNEVEN = 1
_TOO_LONG = re.compile(r"\.\d{3}")  # nccl-tests prints two decimals at most
_ROOT = re.compile(r"-1|\d{1,9}")
_NAMES = {"error": "#wrong", "cputime": "time"}


@dataclass(frozen=True)
class Layout:
    """Which columns follow the type and the reduction: a root or not, and those of one side."""

    heads: frozenset[str] | None = None
    side: tuple[str, ...] = PLAIN
    counts_wrong: bool = True
    is_host_time: bool = False

    @classmethod
    def of(cls, heading: str) -> Layout:
        """Return the layout that the words of a heading after `type` tell."""
        words = heading.split()
        sides = [_NAMES.get(word, word) for word in words if _NAMES.get(word, word) in PLAIN + SPREAD]
        half = sides[: sides.index("time", 1)] if sides.count("time") > 1 else sides
        heads = frozenset({"redop", "root"} & set(words))
        return cls(heads, tuple(half) if half else PLAIN, "error" not in words, "cputime" in words)

    def has_root(self, figures: int) -> bool:
        """Whether a row of so many figures begins with a root."""
        return bool(figures % len(self.side)) if self.heads is None else "root" in self.heads


@dataclass
class OpenRow:
    """A row whose figures may still be coming."""

    line: int
    head: tuple[int, int, str, str]
    layout: Layout
    texts: list[str] = field(default_factory=list)
    blanks: list[int] = field(default_factory=list)
    foreign: str = ""
    pieces: int = 0

    def take(self, more: Figures) -> None:
        """Add what stands on this line or on a later one."""
        self.pieces += 1
        self.texts += more.texts
        self.blanks += more.blanks
        self.foreign = self.foreign or more.foreign

    @property
    def is_full(self) -> bool:
        """Whether both sides are there."""
        return len(self.texts) >= 2 * len(self.layout.side) + self.layout.has_root(_UNEVEN)

    @property
    def key(self) -> tuple[str, str, int]:
        """Return type, reduction and root: what one measurement has in common."""
        return self.head[2], self.head[3] or "none", int(self._root)

    @property
    def _root(self) -> str:
        return self.texts[0] if self.texts and self.layout.has_root(len(self.texts)) else "-1"

    def value(self) -> Row | str:
        """Return the row, or why it is none."""
        width = len(self.layout.side)
        figures = self.texts[self.layout.has_root(len(self.texts)) :]
        if self.foreign or len(figures) not in {width, 2 * width}:
            return self._broken(len(figures))
        if not _ROOT.fullmatch(self._root):
            return f"line {self.line}: row of {self.head[0]} B is broken: {self._root!r} is no root"
        if self.pieces > 1 and any(_TOO_LONG.search(text) for text in figures):
            return f"line {self.line}: row of {self.head[0]} B is broken: a host's name may touch a figure of it"
        sides = [self._timing(figures[at : at + width]) for at in range(0, len(figures), width)]
        faults = [side for side in sides if isinstance(side, str)]
        if faults:
            return f"line {self.line}: row of {self.head[0]} B: {faults[0]}"
        return self._row([side for side in sides if isinstance(side, Timing)])

    def _row(self, sides: list[Timing]) -> Row:
        size, count = self.head[:2]
        if len(sides) == 1 and self._gap() >= _BLANK_GROUP:
            return Row(size, count, in_place=sides[0])
        return Row(size, count, *sides)

    def _gap(self) -> int:
        first = len(self.texts) - len(self.layout.side)
        return self.blanks[first]

    def _broken(self, figures: int) -> str:
        width = len(self.layout.side)
        what = f"{self.foreign[:40]!r} stands in it" if self.foreign else f"{figures} figures of {width} or {2 * width}"
        return f"line {self.line}: row of {self.head[0]} B is broken: {what}"

    def _timing(self, texts: list[str]) -> Timing | str:
        """The timing of one side, or what is wrong with it."""
        named = dict(zip(self.layout.side, texts))
        numbers = {name: float(text) for name, text in named.items() if text != "N/A"}
        wrong = numbers.pop("#wrong", None) if self.layout.counts_wrong else None
        numbers.pop("#wrong", None)
        sound = all(math.isfinite(value) and value >= 0 for value in (*numbers.values(), wrong or 0.0))
        if not sound or not numbers.get("time") or "algbw" not in numbers or "busbw" not in numbers:
            return f"{' '.join(texts)!r} are no time and bandwidths"
        return Timing(
            numbers["time"] * _US,
            algbw=numbers["algbw"] * _GB,
            busbw=numbers["busbw"] * _GB,
            wrong=None if wrong is None else int(wrong),
            spread=_spread(numbers),
        )


def _spread(numbers: dict[str, float]) -> Spread | None:
    if not set(SPREAD) <= numbers.keys():
        return None
    fastest, slowest, p99, variation = (numbers[name] for name in SPREAD)
    return Spread(fastest * _US, slowest * _US, p99 * _US, variation / 100)
