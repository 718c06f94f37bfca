"""Does every room ask one question, under a name of its own?"""

from __future__ import annotations

import ast
from pathlib import PurePath
from typing import TYPE_CHECKING

import pytest

from tests.house.source import modules

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_ROOMS = {"utils", "util", "common", "base", "types", "helpers", "misc"}
Described = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
CODE = ("commsim", "bench")


@pytest.mark.parametrize("folder", [*CODE, "tests", "scripts"])
def test_no_room_for_odds_and_ends(folder: str) -> None:
    assert [m.path for m in modules(folder) if NO_ROOMS.intersection(PurePath(m.path).with_suffix("").parts)] == []


@pytest.mark.parametrize("folder", [*CODE, "tests", "scripts"])
def test_every_module_says_its_question(folder: str) -> None:
    assert [m.path for m in modules(folder) if not ast.get_docstring(m.tree)] == []


@pytest.mark.parametrize("folder", CODE)
def test_everything_public_is_described(folder: str) -> None:
    nodes = [(module.path, node) for module in modules(folder) for node in public(module.tree)]
    assert [f"{path}:{node.name}" for path, node in nodes if not ast.get_docstring(node)] == []


def test_what_is_public() -> None:
    tree = ast.parse("class A:\n def b(self): ...\n def _c(self): ...\nclass _D:\n def e(self): ...\ndef f(): ...")
    assert [node.name for node in public(tree)] == ["A", "b", "f"]


def public(place: ast.Module | ast.ClassDef) -> Iterator[Described]:
    """Yield the public classes and functions of a module and the public methods of such classes; tests are not."""
    for node in place.body:
        if isinstance(node, Described) and not node.name.startswith(("_", "test_")):
            yield node
            yield from public(node) if isinstance(node, ast.ClassDef) else ()
