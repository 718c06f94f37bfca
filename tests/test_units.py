"""Do quantities read as people and datasheets write them?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.units import UNITS, counted, parse, parse_size, parse_sizes, show, show_size

quantities = st.floats(min_value=0, allow_nan=False, allow_infinity=False)


@given(quantities, st.sampled_from(sorted(UNITS)))
def test_what_is_shown_reads_back_exactly(value: float, dimension: str) -> None:
    assert parse(show(value, dimension), dimension, "here") == value


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("400 Gb/s", "B/s", 50e9),
        ("400 Gbps", "B/s", 50e9),
        ("25GB/s", "B/s", 25e9),
        ("1 GiB/s", "B/s", 2**30),
        ("80 GB", "B", 80e9),
        ("80 GiB", "B", 80 * 2**30),
        ("2.5 us", "s", 2.5e-6),
        ("2.5 µs", "s", 2.5e-6),
        ("989 TFLOP/s", "FLOP/s", 989e12),
        ("989 TFLOPS", "FLOP/s", 989e12),
        ("10.2 kW", "W", 10.2e3),
        ("80 %", "1", 0.8),
        ("0.8", "1", 0.8),
        ("0", "B/s", 0.0),
    ],
)
def test_units_as_written(text: str, dimension: str, value: float) -> None:
    assert parse(text, dimension, "here") == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "text", ["400", "400 GW", "nan GB/s", "inf GB/s", "-1 GB/s", "", "GB/s", "1 2 GB/s", None, True]
)
def test_what_is_no_bandwidth_is_refused_in_one_line(text: object) -> None:
    with pytest.raises(InputError, match=r"^nic: ") as caught:
        parse(text, "B/s", "nic")
    assert "\n" not in str(caught.value)


def test_a_bare_number_is_told_how_to_mend_itself() -> None:
    with pytest.raises(InputError, match=r"such as '400 Gb/s'"):
        parse("400", "B/s", "nic")


@pytest.mark.parametrize("text", ["1K..", "..1K", ".."])
def test_a_range_has_two_ends(text: str) -> None:
    with pytest.raises(InputError, match=f"sizes: '{text}'; the first and the last size belong here"):
        parse_sizes(text)


def test_an_example_is_of_what_is_usual_there() -> None:
    for text in ("2.5", "2.5 sec", "soon"):
        with pytest.raises(InputError, match=r"a number with its unit, such as '12.3 s'"):
            parse(text, "s", "measured", "12.3 s")


@given(st.floats(min_value=1e-12, max_value=1e24), st.integers(1, 6))
def test_rounded_text_is_near(value: float, digits: int) -> None:
    shown = parse(show(value, "B/s", digits), "B/s", "here")
    assert math.isclose(shown, value, rel_tol=0.5 * 10 ** (1 - digits) * 1.01) or value < 1


def test_sizes_are_those_of_nccl_tests() -> None:
    assert [parse_size(text) for text in ("8", "64K", "1M", "1GiB", "1G", "16 MB")] == [
        8,
        2**16,
        2**20,
        2**30,
        2**30,
        2**24,
    ]
    assert parse_sizes("8..8GiB") == [8 * 2**i for i in range(31)]
    assert parse_sizes("1K,4K,1M") == [2**10, 2**12, 2**20]
    assert parse_sizes("1M..64M", factor=4) == [2**20, 2**22, 2**24, 2**26]


@pytest.mark.parametrize("text", ["-8", "8X", "", "8..4", "0..8", "nan", "1e30", "a..b"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_sizes(text)


def test_a_factor_that_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="factor"):
        parse_sizes("8..8GiB", factor=1)


@given(st.integers(0, 2**55))
def test_a_size_is_shown_within_a_thousandth(size: int) -> None:
    number, unit = show_size(size).split()
    power = ("B", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit)
    assert math.isclose(float(number) * 1024**power, size, rel_tol=1e-3)


@pytest.mark.parametrize(("count", "text"), [(0, "0 nodes"), (1, "1 node"), (2048, "2,048 nodes")])
def test_counted(count: int, text: str) -> None:
    assert counted(count, "node") == text
