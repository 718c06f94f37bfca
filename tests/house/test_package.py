"""Is `import commsim` light, and does it offer what it says?"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys

import pytest

import commsim
from tests.house.source import ROOT, modules

HEAVY = {"matplotlib", "pandas", "scipy", "torch"}


def loaded_by(code: str) -> set[str]:
    """Return the packages outside the standard library that a fresh Python loads for `code`."""
    names = "{name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names"
    program = f"import json, sys\nbefore = set(sys.modules)\n{code}\nprint(json.dumps(sorted({names})))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(run.stdout))


def test_import_loads_the_package_alone() -> None:
    assert loaded_by("import commsim") == {"commsim"}


def test_no_public_name_loads_a_heavy_package() -> None:
    loaded = loaded_by("import commsim\nfor name in dir(commsim): getattr(commsim, name)")
    assert loaded & HEAVY == set()


def test_a_heavy_package_would_be_seen() -> None:
    assert "yaml" in loaded_by("import yaml")


@pytest.mark.parametrize("name", commsim.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(commsim, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        commsim.nonesuch  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    tree = next(module.tree for module in modules("commsim") if module.path == "commsim/__init__.py")
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    typed = {alias.asname: node.module for node in imports for alias in node.names if alias.asname}
    assert typed == commsim._ROOMS


def test_rooms_take_only_the_version_from_the_package() -> None:
    """Import-linter cannot see which room a lazy name comes from, so no room may ask the package for one."""
    nodes = [(module.path, node) for module in modules("commsim") for node in ast.walk(module.tree)]
    imports = [(path, n.names) for path, n in nodes if isinstance(n, ast.ImportFrom) and n.module == "commsim"]
    lazy = [(path, alias.name) for path, names in imports for alias in names if alias.name in commsim._ROOMS]
    assert lazy == []


def test_version_stands_in_the_changelog() -> None:
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert versions[0] in {"Unreleased", commsim.__version__}
    assert commsim.__version__ in versions
