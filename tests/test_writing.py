"""Does YAML that was written read as the same value?"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import yaml

from commsim.figures import Figure
from commsim.libraries.calibration import Calibration, calibration
from commsim.reading import parse_yaml, read
from commsim.units import BytesPerSecond, Seconds, Share
from commsim.writing import plain, quantity, to_yaml


@dataclass(frozen=True)
class Thing:
    """Something that a person describes."""

    name: str
    speed: BytesPerSecond
    share: Share = 0.5
    delays: tuple[Seconds, ...] = ()
    count: int = 1


def reread(value: Thing) -> Thing:
    return read(Thing, parse_yaml(to_yaml(value), "written"), "written")


def test_round() -> None:
    value = Thing("a", 25e9, 0.8, (1e-6, 2.5e-3), 3)
    assert reread(value) == value


def test_what_is_by_default_is_left_out() -> None:
    assert plain(Thing("a", 25e9)) == {"name": "a", "speed": "25 GB/s"}


def test_figures_keep_their_origin() -> None:
    figure = Figure(25e9, status="measured", source=("us",), low=20e9, high=30e9, note="one evening")
    speed = reread(Thing("a", figure)).speed
    assert isinstance(speed, Figure)
    assert (speed, speed.low, speed.high) == (25e9, 20e9, 30e9)
    assert (speed.status, speed.source, speed.note) == ("measured", ("us",), "one evening")


def test_what_is_certain_has_no_range() -> None:
    written = yaml.safe_load(to_yaml(Thing("a", Figure(25e9, status="measured", source=("us",)))))["speed"]
    assert written == {"value": "25 GB/s", "status": "measured", "source": ["us"]}


def test_the_shipped_calibration() -> None:
    shipped = calibration("nccl")
    again = read(Calibration, parse_yaml(to_yaml(shipped), "written"), "written")
    assert yaml.safe_load(to_yaml(again)) == yaml.safe_load(to_yaml(shipped))
    assert again.links.keys() == shipped.links.keys()


@pytest.mark.parametrize(
    ("value", "dimension", "said"),
    [
        (5.3e-6, "s", "5.3 us"),
        (3.0, "s", "3e+06 us"),
        (0.8, "1", 0.8),
        (25e9, "B/s", "25 GB/s"),
        (4096.0, "B", "4096 B"),
    ],
)
def test_quantities(value: float, dimension: str, said: object) -> None:
    assert quantity(value, dimension) == said
