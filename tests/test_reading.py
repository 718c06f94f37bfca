"""Does a person's YAML become the value that was meant, or one line that says what is wrong?"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the reader needs it when it runs
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.figures import Figure
from commsim.reading import LARGEST_FILE, load_yaml, merged, parse_yaml, read
from commsim.units import BytesPerSecond, Seconds

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Cable:
    bandwidth: BytesPerSecond
    latency: Seconds | None = None


@dataclass(frozen=True)
class Box:
    name: str
    gpus: int
    kind: Literal["small", "large"] = "small"
    cables: Mapping[str, Cable] = field(default_factory=dict)
    pairs: tuple[tuple[int, ...], ...] = ()
    ends: tuple[str, str] = ("a", "b")
    quiet: bool = False


GOOD = """
name: box
gpus: 8
kind: large
cables:
  short: {bandwidth: 50 GB/s}
  long:
    bandwidth: {value: 25 GB/s, low: 20 GB/s, high: 30 GB/s, status: measured, source: LAB, note: cold}
    latency: 1 us
pairs: [[0, 1], [1, 2, 4]]
ends: [x, y]
quiet: true
"""


def test_every_annotation_is_read() -> None:
    box = read(Box, parse_yaml(GOOD, "box.yaml"), "box.yaml")
    assert (box.name, box.gpus, box.kind, box.pairs, box.ends, box.quiet) == (
        "box", 8, "large", ((0, 1), (1, 2, 4)), ("x", "y"), True,
    )  # fmt: skip
    figure = box.cables["long"].bandwidth
    assert isinstance(figure, Figure)
    assert (figure, figure.low, figure.high, figure.status, figure.source) == (25e9, 20e9, 30e9, "measured", ("LAB",))
    assert box.cables["short"].latency is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("gpus: eight", "box.yaml: gpus: 'eight'; a whole number belongs here"),
        ("gpus: true", "a whole number belongs here"),
        ("gpus: -8", "not negative"),
        ("gpus: .nan", "a whole number belongs here"),
        ("kind: medium", "not one of the choices"),
        ("gpsu: 8", "did you mean 'gpus'?"),
        ("cables: {x: {bandwidth: 50}}", "box.yaml: cables: x: bandwidth: 50; write a number with its unit"),
        ("cables: {x: {bandwidth: .nan}}", "finite"),
        ("cables: {x: {bandwidth: {value: 5 GB/s, low: 6 GB/s}}}", "low <= value <= high"),
        ("cables: {x: {bandwidth: {value: 5 GB/s, status: guessed}}}", "not one of the choices"),
        ("cables: {x: {bandwidth: {low: 5 GB/s}}}", "needs the key 'value'"),
        ("cables: {x: {}}", "needs the key 'bandwidth'"),
        ("cables: [1, 2]", "a table belongs here"),
        ("pairs: {a: 1}", "a list belongs here"),
        ("ends: [a]", "a list of 2 belongs here"),
        ("name: [a, b]", "text belongs here"),
    ],
)
def test_what_does_not_fit_is_named(change: str, said: str) -> None:
    table = {**parse_yaml("name: box\ngpus: 8", "box.yaml"), **parse_yaml(change, "box.yaml")}
    with pytest.raises(InputError) as caught:
        read(Box, table, "box.yaml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n- b",
        "a: [1, 2",
        "a: 1\na: 2",
        "a: &x [1]\nb: *x",
        "\t- x: :",
        "a: !!python/object:os.system {}",
        "just text",
    ],
)
def test_what_is_no_table_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"^file\.yaml") as caught:
        parse_yaml(text, "file.yaml")
    assert "\n" not in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_a_table_or_one_line(text: str) -> None:
    with suppress(InputError):
        assert isinstance(parse_yaml(text, "file.yaml"), dict)


def test_a_file_that_is_absent_or_huge_or_no_text_is_refused(tmp_path: Path) -> None:
    huge, binary = tmp_path / "huge.yaml", tmp_path / "binary.yaml"
    huge.write_text("a: 1\n" * (LARGEST_FILE // 5 + 1), encoding="utf-8")
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "absent.yaml", tmp_path, huge, binary):
        with pytest.raises(InputError) as caught:
            load_yaml(path)
        assert "\n" not in str(caught.value)


def test_a_change_lies_over_its_base_but_replaces_figures_whole() -> None:
    base: dict[str, dict[str, object]] = {"a": {"x": 1, "y": 2}, "bw": {"value": "1 GB/s", "low": "0.5 GB/s"}}
    assert merged(base, {"a": {"y": 3}, "bw": {"value": "9 GB/s"}}) == {
        "a": {"x": 1, "y": 3},
        "bw": {"value": "9 GB/s"},
    }
    assert base["a"]["y"] == 2
