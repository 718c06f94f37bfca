"""Do the notebooks tell stories, and leave definitions to the package?"""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING

from tests.house.source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def definitions(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    trees = [ast.parse("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]
    return [ast.unparse(node) for tree in trees for node in ast.walk(tree) if isinstance(node, DEFINITIONS)]


def test_notebooks_hold_no_definitions() -> None:
    found = {notebook.name: definitions(notebook) for notebook in (ROOT / "notebooks").rglob("*.ipynb")}
    assert {name: defined for name, defined in found.items() if defined} == {}


def test_a_definition_would_be_found(tmp_path: Path) -> None:
    cells = [{"cell_type": "markdown", "source": ["def"]}, {"cell_type": "code", "source": ["def f():\n", "    pass"]}]
    (tmp_path / "story.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert definitions(tmp_path / "story.ipynb") == ["def f():\n    pass"]
