"""Is an error one line that says where, what was given and what belongs there?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import CommsimError, InputError, LackError, PartialError, reason


def test_input_error_says_where_what_and_what_belongs_there() -> None:
    error = InputError("box.yaml: links: x: bandwidth", "50", "write a number with its unit")
    assert str(error) == "box.yaml: links: x: bandwidth: '50'; write a number with its unit"


def test_what_is_missing_is_nothing() -> None:
    assert (
        str(InputError("global-batch", None, "a number belongs here")) == "global-batch: nothing; a number belongs here"
    )


def test_a_near_miss_is_named() -> None:
    assert "did you mean 'hgx-h100'?" in str(InputError("system", "hgx-h10", "none", among=["hgx-h100", "mi300x"]))
    assert "did you mean 'MI300X'?" in str(InputError("system", "mi300", "none", among=["MI300X"]))


def test_few_names_are_listed_and_many_are_not() -> None:
    few = str(InputError("axis", "zzzz", "none", among=["tensor", "data"]))
    many = str(InputError("axis", "zzzz", "none", among=[f"name{i}" for i in range(50)]))
    assert "(one of: tensor, data)" in few
    assert "name7" not in many


@given(st.text(max_size=2000))
def test_any_input_gives_one_short_line(text: str) -> None:
    message = str(InputError("somewhere", text, "something else"))
    assert "\n" not in message
    assert len(message) < 200


def test_exit_codes_are_those_of_the_contract() -> None:
    codes = {error: error.exit_code for error in (CommsimError, InputError, LackError, PartialError)}
    assert list(codes.values()) == [1, 2, 3, 4]
    assert issubclass(InputError, ValueError)


def test_what_the_system_says_is_told_without_its_number() -> None:
    with pytest.raises(OSError, match="Errno") as caught:
        Path("there/is/no/such/file").read_text(encoding="utf-8")
    assert reason(caught.value) == "No such file or directory"
    assert reason(ValueError("a row is short")) == "a row is short"


def test_what_is_wrong_with_a_file_is_told_in_words() -> None:
    with pytest.raises(UnicodeDecodeError) as caught:
        b"caf\xe9".decode("utf-8")
    assert reason(caught.value) == "no text in UTF-8: byte 0xe9 at 3"
    assert reason(RecursionError("maximum recursion depth exceeded while decoding")) == "nested too deeply"
    assert reason(ValueError()) == "ValueError"
