"""Which groups are the algorithms tried on, and which algorithms do which operation there?"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from commsim.collectives.algorithms import ALGORITHMS, Group

if TYPE_CHECKING:
    from collections.abc import Iterable

SMALL = (*(Group(n, n) for n in range(2, 10)), Group(12, 12), Group(16, 16), Group(17, 17))
SPLIT = tuple(Group(*pair) for pair in ((4, 2), (5, 1), (6, 3), (8, 2), (9, 3), (10, 2), (12, 4)))
LARGE = (
    *(Group(n, n) for n in (*range(10, 16), 24, 32, 64)),
    *(Group(*pair) for pair in ((15, 5), (16, 8), (24, 8), (64, 8), (64, 16))),
)
OPERATIONS = sorted({op.name for one in ALGORITHMS.values() for op in one.ops})


def cases(groups: Iterable[Group], *ops: str) -> pytest.MarkDecorator:
    """Return the parametrisation over each algorithm of the table that does one of the operations in each group."""
    found = [
        pytest.param(name, op, group, id=f"{name}-{op.name}-{group.outer}x{group.inner}")
        for (name, algorithm), group in product(ALGORITHMS.items(), groups)
        for op in algorithm.ops
        if op.name in (ops or OPERATIONS) and algorithm.serves(group)
    ]
    return pytest.mark.parametrize(("name", "op", "group"), found)
