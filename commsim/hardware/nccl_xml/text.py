"""How is an element written down?"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Written:
    """An element to be written: tag, attributes in order, children in order."""

    tag: str
    attributes: dict[str, str]
    children: list[Written] = field(default_factory=list)

    def lines(self, depth: int = 0) -> list[str]:
        """Return the lines of the element, indented by its depth."""
        inside = "".join(f' {name}="{escape(value)}"' for name, value in self.attributes.items())
        indent = "  " * depth
        if not self.children:
            return [f"{indent}<{self.tag}{inside}/>"]
        below = [line for child in self.children for line in child.lines(depth + 1)]
        return [f"{indent}<{self.tag}{inside}>", *below, f"{indent}</{self.tag}>"]
