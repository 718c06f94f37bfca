"""Is what cannot be measured refused, each with what belongs there?"""

from __future__ import annotations

from typing import Any

import pytest

from bench.fit import need_fit
from commsim.errors import InputError
from commsim.measurement.launch.cases import Case


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (Case("all_reduce", 4, groups=((0, 2),)), "ranks from 0 to 1 belong here"),
        (Case("all_reduce", 4, late={2: 0.1}), "ranks from 0 to 1 belong here"),
        (Case("all_to_all", 4, matrix=((1,),)), "has a matrix of 2 rows"),
        (Case("all_reduce", 4, matrix=((1, 2), (3, 4))), "others have none"),
        (Case("all_to_all", 4, in_place=True), "out of place only"),
        (Case("all_reduce", 4, "f8e4m3"), "gloo in torch moves no such elements"),
        (Case("all_reduce", 4, graph=True), "a CUDA graph needs GPUs"),
        (Case("all_reduce", 4, jitter={"law": "lognormle"}), "did you mean 'lognormal'"),
        (Case("all_reduce", 4, jitter={"law": "lognormal", "parameters": {"s": 1}}), "unexpected keyword argument 's'"),
        (Case("all_reduce", 4, jitter={"law": "constant", "how": "doze"}), "sleep or spin"),
        (Case("all_reduce", 4, jitter={"low": 1}), "no such key"),
    ],
)
def test_what_does_not_fit(case: Case, said: str) -> None:
    with pytest.raises(InputError, match=said):
        need_fit([Case("barrier"), case], 2, "gloo")


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"])
@pytest.mark.parametrize("given", [{}, {"in_place": True}, {"in_place": False}, {"dtype": "bfloat16"}])
def test_what_fits(op: str, given: dict[str, Any]) -> None:
    need_fit([Case(op, 4, **given)], 2, "gloo")
