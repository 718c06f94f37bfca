"""Is this well-formed topology XML, and what do its elements say?"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from commsim.errors import InputError, reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST_FILE = 4_000_000
"""Bytes that are read at most; the file of an NVL72 rack has 50,000."""
MOST_ATTRIBUTES, MOST_CHILDREN, LONGEST_VALUE = 16, 640, 255
"""What NCCL's own parser holds (MAX_ATTR_COUNT, MAX_SUBS, MAX_STR_LEN); what it cannot read is no topology."""
DEEPEST, MOST_ELEMENTS = 32, 50_000
_WHOLE = re.compile(r"-?[0-9]{1,12}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?", re.ASCII)
_NAMES = ("busid", "numaid", "name", "target", "dev")


@dataclass(eq=False)
class Element:
    """One element: tag, attributes, children, and the place where it stands, which errors name."""

    tag: str
    attributes: dict[str, str]
    above: Element | None = None
    children: list[Element] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The way to this element: `box.xml: cpu 0 > pci 0000:18:00.0 > gpu`."""
        if self.above is None or self.above.above is None:
            return self.above.tag if self.above else self.tag
        name = next((f" {self.attributes[key]}" for key in _NAMES if key in self.attributes), "")
        return f"{self.above.where}{' > ' if self.above.above.above else ': '}{self.tag}{name}"

    def each(self, *tags: str) -> list[Element]:
        """Return the children of these tags."""
        return [child for child in self.children if child.tag in tags]

    def walk(self) -> Iterator[Element]:
        """Yield this element and everything below it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()

    def text(self, name: str) -> str:
        """Return an attribute, or "" when it is absent."""
        return self.attributes.get(name, "").strip()

    def number(self, name: str, least: int = 0, most: int = 10**9) -> int | None:
        """Return an attribute that is a whole number, None when it is absent or empty; InputError when it is none."""
        given = self.text(name)
        if not given:
            return None
        if not _WHOLE.fullmatch(given) or not least <= int(given) <= most:
            raise InputError(f"{self.where}: {name}", given, f"a whole number from {least} to {most} belongs here")
        return int(given)

    def amount(self, name: str) -> float:
        """Return an attribute that is a decimal number, 0 when it is absent; InputError when it is none or negative."""
        given = self.text(name) or "0"
        if not _DECIMAL.fullmatch(given):
            raise InputError(f"{self.where}: {name}", given, "a number that is not negative belongs here")
        return float(given)

    def needed(self, name: str, least: int = 0, most: int = 10**9) -> int:
        """Return an attribute that must be there, a whole number; InputError when it is absent."""
        found = self.number(name, least, most)
        if found is None:
            raise InputError(f"{self.where}: {name}", "", f"a whole number from {least} to {most} belongs here")
        return found


class _Tree:
    """What the parser calls: it builds elements, and stops at the first that is out of bounds."""

    def __init__(self, name: str) -> None:
        self.file = Element(name, {})
        self.open = [self.file]
        self.elements = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        above = self.open[-1]
        element = Element(tag[:LONGEST_VALUE], dict(attributes), above)
        above.children.append(element)
        self.open.append(element)
        self.elements += 1
        _within(element, "attributes", len(attributes), MOST_ATTRIBUTES)
        _within(element, "characters in a value", max(map(len, attributes.values()), default=0), LONGEST_VALUE)
        _within(above, "children", len(above.children), MOST_CHILDREN)
        _within(element, "levels", len(self.open) - 1, DEEPEST)
        _within(element, "elements", self.elements, MOST_ELEMENTS)

    def end(self, _: str) -> None:
        self.open.pop()

    def close(self) -> None:
        """Nothing is left to do."""


def _within(element: Element, what: str, count: int, most: int) -> None:
    if count > most:
        raise InputError(element.where, f"{count} {what}", f"at most {most} {what} are read here")


def parse(content: bytes | str, name: str) -> Element:
    """Return the root of topology XML; `name` names the file in errors. InputError when it is none."""
    if len(content) > LARGEST_FILE:
        raise InputError(name, f"{len(content)} bytes", f"at most {LARGEST_FILE} bytes are read")
    tree = _Tree(name)
    parser = DefusedXMLParser(target=tree, forbid_dtd=True)
    try:
        parser.feed(content)
        parser.close()
    except DefusedXmlException:
        raise InputError(name, "a document type or entity", "plain XML without them belongs here") from None
    except ParseError as error:
        raise InputError(name, str(error), "well-formed XML belongs here") from None
    except (LookupError, UnicodeError) as error:
        raise InputError(name, str(error), "XML in a known encoding, such as UTF-8, belongs here") from None
    root = tree.file.children[0]
    if root.tag != "system":
        raise InputError(name, f"<{root.tag}>", "a <system> belongs here: what NCCL_TOPO_DUMP_FILE writes")
    if root.text("version") not in ("1", "2"):
        raise InputError(f"{root.where}: version", root.text("version"), "1 (NCCL) or 2 (RCCL) belongs here")
    return root


def opened(path: Path) -> bytes:
    """Return the bytes of a file; InputError when it is absent, unreadable or too large."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise InputError(str(path), reason(error), "a readable file belongs here") from None
    if len(content) > LARGEST_FILE:
        raise InputError(str(path), f"more than {LARGEST_FILE} bytes", f"at most {LARGEST_FILE} bytes are read")
    return content
