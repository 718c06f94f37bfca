"""What does our own source look like? Modules and functions, read without importing them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """A file of Python: its path below the checkout, its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module


class Defined(NamedTuple):
    """A function and where it stands: `commsim/units.py:parse`."""

    where: str
    node: Function


@cache
def modules(folder: str) -> tuple[Module, ...]:
    """Return the modules below a folder of the checkout."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob("*.py"))}
    return tuple(Module(str(path.relative_to(ROOT)), text, ast.parse(text)) for path, text in texts.items())


def functions(folder: str) -> Iterator[Defined]:
    """Yield every function and method below a folder, nested ones too."""
    for module in modules(folder):
        for node in ast.walk(module.tree):
            if isinstance(node, Function):
                yield Defined(f"{module.path}:{node.name}", node)


def body_lines(node: Function) -> int:
    """Return how many lines the body takes, the docstring left out."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
