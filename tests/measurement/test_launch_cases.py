"""Are cases read as they were written, and what is no case refused?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.measurement.launch.asked import groups, jitter, late, sweep
from commsim.measurement.launch.cases import OPS, Case, read_cases, write_cases
from commsim.measurement.launch.kept import kept
from commsim.measurement.launch.memory import need_memory

if TYPE_CHECKING:
    from pathlib import Path

CASES = st.builds(
    Case,
    st.sampled_from(OPS),
    st.integers(0, 2**40),
    st.sampled_from(["float", "bfloat16", "int8"]),
    groups=st.sampled_from([(), ((0, 1),), ((2, 0), (1, 3))]),
    iterations=st.integers(1, 100),
    warmup=st.integers(0, 10),
    in_place=st.sampled_from([None, True, False]),
    matmul=st.integers(0, 4096),
    matrix=st.sampled_from([(), ((0, 4), (8, 0))]),
    late=st.dictionaries(st.integers(0, 9), st.floats(0, 10)),
    label=st.text(max_size=5),
    wait_for=st.sampled_from(["", "fault-1"]),
)


@given(cases=st.lists(CASES, min_size=1, max_size=3))
def test_written_cases_read_the_same(cases: list[Case], tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("cases") / "cases.json"
    write_cases(cases, file)
    assert read_cases(file) == cases
    assert len({case.digest for case in cases}) == len({json.dumps(case.document) for case in cases})


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"op": "all_rduce"}, "did you mean 'all_reduce'"),
        ({"op": "all_reduce", "size_byte": 8}, "did you mean 'size_bytes'"),
        ({"op": "all_reduce", "size_bytes": -8}, "finite number >= 0"),
        (
            {"op": "all_reduce", "dtype": "float33"},
            "case 1: dtype: 'float33'; no such type of elements; did you mean 'float'",
        ),
        ({"op": "all_reduce", "iterations": 0}, "from 1 to"),
        ({"op": "all_reduce", "in_place": "yes"}, "true or false"),
        ({"op": "all_reduce", "group": [[0, 1], [1, 2]]}, "share no rank"),
        ({"op": "all_reduce", "group": [[0, 1], [2]]}, "equally large"),
        ({"op": "all_reduce", "group": "0"}, "a list of ranks"),
        ({"op": "all_to_all", "matrix": [[1, 2]]}, "as many rows"),
        ({"op": "all_reduce", "late": {"one": 1}}, "seconds by rank"),
        ({"op": "all_reduce", "late": {"1": float("nan")}}, "seconds by rank"),
        ({"op": "all_reduce", "wait_for": "../x"}, "letters, digits"),
        ("all_reduce", "a JSON object"),
    ],
)
def test_what_is_no_case(case: object, said: str, tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([case]), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_cases(tmp_path / "cases.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"op"', "3"])
def test_what_is_no_file_of_cases(text: str, tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="belongs here"):
        read_cases(tmp_path / "cases.json")


def test_an_unknown_type_says_once_where_it_stands() -> None:
    with pytest.raises(InputError, match=r"^dtype: 'floot'; no such type of elements"):
        sweep("all_reduce", "1K", 2, "floot")


def test_a_sweep_goes_through_sizes_first() -> None:
    found = sweep("all_reduce,barrier", "1K..4K", 2, "float,half", iterations=3)
    assert [(case.op, case.size, case.dtype) for case in found] == [
        *(("all_reduce", size, dtype) for dtype in ("float", "half") for size in (1024, 2048, 4096)),
        ("barrier", 0, "float"),
    ]
    assert {case.iterations for case in found} == {3}


def test_with_products_each_case_is_measured_alone_first() -> None:
    found = sweep("all_reduce", "1K,2K", 2, "float", matmul=64)
    assert [(case.size, case.matmul) for case in found] == [(1024, 0), (1024, 64), (2048, 0), (2048, 64)]


def test_words_of_the_command_line() -> None:
    assert groups("0-2,5") == ((0, 1, 2, 5),)
    assert groups("0,2/1,3") == ((0, 2), (1, 3))
    assert late(["3=50ms", "0=1 s"]) == {3: 0.05, 0: 1.0}
    assert jitter("lognormal: sigma=1 mean=0.01", 4) == {
        "law": "lognormal",
        "parameters": {"sigma": 1.0, "mean": 0.01},
        "seed": 4,
    }


@pytest.mark.parametrize("text", ["0-", "a", "0,0", "0,1/1,2", "0/1,2", "3-1,x"])
def test_what_is_no_group(text: str) -> None:
    with pytest.raises(InputError, match="group"):
        groups(text)


@pytest.mark.parametrize("text", ["3", "x=50ms", "3=50", "3="])
def test_what_is_no_lateness(text: str) -> None:
    with pytest.raises(InputError, match="late"):
        late([text])


def test_kept_counts_each_case_once(tmp_path: Path) -> None:
    case, other = Case("all_reduce", 8), Case("all_reduce", 16)
    lines: list[dict[str, Any]] = [{"record": "run"}, {"record": "op", "case": case.digest}]
    (tmp_path / "run.jsonl").write_text("\n".join([*map(json.dumps, lines), '{"rec']), encoding="utf-8")
    assert kept([case, other, case], tmp_path / "run.jsonl") == 1
    assert kept([other], tmp_path / "run.jsonl") == 0
    assert kept([case], tmp_path / "none.jsonl") == 0


def test_more_than_this_machine_has_is_refused() -> None:
    need_memory([Case("all_reduce", 1024)], 2)
    with pytest.raises(Exception, match="choose fewer or smaller"):
        need_memory([Case("all_reduce", 2**60)], 2)
