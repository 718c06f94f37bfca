"""Does every file and every function stay small enough to be read at once?"""

from __future__ import annotations

import ast
from statistics import median

from tests.house.source import Function, body_lines, functions, modules

LONGEST_FILE, MEDIAN_FILE = 400, 100
LONGEST_FUNCTION, MEDIAN_FUNCTION = 40, 6
POSITIONAL = 5


def lines_of_files(folder: str) -> dict[str, int]:
    return {module.path: len(module.text.splitlines()) for module in modules(folder)}


def positional(node: Function) -> int:
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_no_file_is_long() -> None:
    assert {path: lines for path, lines in lines_of_files("commsim").items() if lines > LONGEST_FILE} == {}


def test_half_of_the_files_are_short() -> None:
    assert median(lines_of_files("commsim").values()) <= MEDIAN_FILE


def test_no_function_is_long() -> None:
    lengths = {where: body_lines(node) for where, node in functions("commsim")}
    assert {where: lines for where, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}


def test_half_of_the_functions_are_short() -> None:
    assert median(body_lines(node) for _, node in functions("commsim")) <= MEDIAN_FUNCTION


def test_few_positional_parameters() -> None:
    counts = {where: positional(node) for where, node in functions("commsim")}
    too_many = {where: count for where, count in counts.items() if count > POSITIONAL}
    assert [where for where in too_many if not where.startswith("commsim/cli/")] == []


def test_measures_see_what_they_count() -> None:
    node = ast.parse('def f(self, a, /, b, *, c):\n    """Doc."""\n    x = 1\n\n    return x\n').body[0]
    assert isinstance(node, ast.FunctionDef)
    assert (body_lines(node), positional(node)) == (3, 2)
