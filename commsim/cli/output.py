"""How does an answer reach a person, or a program?"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from commsim.units import show as quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import RenderableType

BAR_WIDTH = 30
_GLUE = "\N{NO-BREAK SPACE}"
_ENDLESS = 1000
"""Columns of a terminal on which nothing is folded."""


def document(value: object) -> None:
    """Print one JSON document; a number that is not finite would be a mistake of ours (ValueError)."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def display(*parts: RenderableType) -> None:
    """Print for people: coloured on a terminal, plain elsewhere, as wide as the terminal (or COLUMNS, or 80)."""
    console = Console(highlight=False, emoji=False)
    with console.capture() as printed:
        console.print(*parts, sep="\n")
    text = re.sub(r" +$", "", printed.get(), flags=re.MULTILINE)
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(
        text.replace("█", "#").encode(encoding, "replace").decode(encoding) if _is_narrow(encoding) else text
    )


def note(text: str) -> None:
    """Print a remark beside the answer, on stderr."""
    sys.stderr.write(f"note: {text}\n")


def table(*columns: str, title: str = "") -> Table:
    """Return an empty table without lines; a column whose name begins with `>` is set to the right."""
    made = (Column(one.lstrip(">"), justify="right" if one[:1] == ">" else "left", overflow="fold") for one in columns)
    return Table(*made, title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)


def fits(listed: Table) -> bool:
    """Tell whether the table can be printed as wide as the terminal without a break inside a word."""
    return _words(listed, Console().width) == _words(listed, _ENDLESS)


def _words(listed: Table, width: int) -> list[str]:
    """The words of the table as it is printed so wide, in the order of the alphabet."""
    console = Console(width=width, color_system=None)
    with console.capture() as printed:
        console.print(listed)
    return sorted(printed.get().split())


def folded(parts: Iterable[str], width: int, indent: str = "") -> str:
    """Return parts with a blank between, on lines of such a width, each indented; no part is broken in two."""
    words = " ".join(part.replace(" ", _GLUE) for part in parts)
    lines = textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(indent + line.replace(_GLUE, " ") for line in lines)


def points(title: str, sentences: Iterable[str]) -> list[RenderableType]:
    """Return a list of sentences under a title; nothing when there are none."""
    listed = table("", "")
    listed.show_header = False
    for sentence in sentences:
        listed.add_row("-", escape(sentence))
    return ["", f"[bold]{title}[/]", listed] if listed.row_count else []


def titled(titles: Mapping[str, str]) -> list[RenderableType]:
    """Return a list of documents: the short name by which figures cite each, and its title."""
    listed = table("document", "title")
    for name, title in titles.items():
        if title:
            listed.add_row(escape(name), escape(title))
    return ["", listed] if listed.row_count else []


def number(value: float, digits: int = 3) -> str:
    """Return a number to so many significant digits, without exponent: 8.21, 437, 1,234."""
    text = quantity(value, "1", digits)
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}"


def between(low: float, high: float, dimension: str, digits: int = 3) -> str:
    """Return a range for people: `41.7-50 GB/s`, or `850 ms-1.2 s` where the units differ."""
    first, last = quantity(low, dimension, digits), quantity(high, dimension, digits)
    unit = last.partition(" ")[2]
    return f"{first.removesuffix(unit).strip()}-{last}" if first.partition(" ")[2] == unit else f"{first}-{last}"


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """Return a bar whose full width is 1."""
    return f"[cyan]{'█' * round(min(1.0, max(0.0, share)) * width)}[/]"


def _is_narrow(encoding: str) -> bool:
    """Whether this output cannot print a bar."""
    try:
        "█".encode(encoding)
    except UnicodeEncodeError:
        return True
    return False
