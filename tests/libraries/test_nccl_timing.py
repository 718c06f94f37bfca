"""Do times follow from what ways cost?"""

from __future__ import annotations

import numpy as np
import pytest

from commsim.collectives.kinds import collective
from commsim.collectives.layout import Layout
from commsim.hardware.catalogue import load
from commsim.libraries.calibration import COPYING, Case
from commsim.libraries.library import CHANNELS, LATENCY
from commsim.libraries.nccl import Nccl
from commsim.libraries.nccl.timing import LARGEST_PIECE, Sent, Streaming, Switched


def cells(**values: float) -> dict[str, np.ndarray]:
    return {name: np.array([[value]]) for name, value in values.items()}


RING = {
    "wait": 10e-6,
    "opening": 0,
    "later": 0,
    "rate": 1e-11,
    "kind": 3,
    "copy": 1e-10,
    "drift": 0,
    "share": 1e4,
    "most": 20,
    "slot": 5e5,
    "fill": 0,
}


def test_the_busiest_of_links_and_channels_counts() -> None:
    """1 GB: links 10 ms; 20 channels of 10 GB/s 5 ms, of 2.5 GB/s 20 ms. 100 bytes: nothing but the wait."""
    sizes = np.array([100.0, 1e9])
    seconds, limits = Streaming(**cells(**RING)).seconds(sizes)
    assert seconds[0, 1] == pytest.approx(10e-6 + 10e-3)
    assert limits.tolist() == [[LATENCY, 3]]
    seconds, limits = Streaming(**cells(**{**RING, "copy": 4e-10})).seconds(sizes)
    assert seconds[0, 1] == pytest.approx(10e-6 + 20e-3)
    assert limits[0, 1] == CHANNELS


def test_channels_are_opened_as_sizes_grow() -> None:
    """One for 10 kB each, at 3 us: one of them for 5 kB, ten for 100 kB, twenty for 1 MB."""
    seconds, _ = Streaming(**cells(**{**RING, "opening": 3e-6, "copy": 0, "rate": 0})).seconds(
        np.array([5e3, 1e5, 1e6])
    )
    assert seconds[0].tolist() == pytest.approx([13e-6, 40e-6, 70e-6])


def test_the_last_of_many_channels_is_later() -> None:
    """By 3 us with each doubling of them: one for 5 kB, two for 20 kB, eight for 80 kB, twenty for 1 MB."""
    ring = Streaming(**cells(**{**RING, "later": 3e-6, "copy": 0, "rate": 0}))
    seconds, _ = ring.seconds(np.array([5e3, 2e4, 8e4, 1e6]))
    assert seconds[0].tolist() == pytest.approx([10e-6, 13e-6, 19e-6, 10e-6 + 3e-6 * np.log2(20)])


def test_channels_drift_apart() -> None:
    """10 ms of copying and a drift of 10 us: sqrt(10 ms x 10 us) = 316 us more; four times the bytes lose twice it."""
    ring = Streaming(**cells(**{**RING, "wait": 0, "copy": 2e-10, "rate": 0, "drift": 10e-6}))
    seconds, _ = ring.seconds(np.array([1e9, 4e9]))
    lost = seconds[0] - np.array([10e-3, 40e-3])
    assert lost.tolist() == pytest.approx([316.2e-6, 632.5e-6], rel=1e-3)


NVLS = {"wait": 0, "rate": 0, "other": 1, "inside": 0, "kind": 0, "loop": 1e-6, "fill": 0, "together": 128}
STAIRS = {"largest": LARGEST_PIECE, "many": 64, "some": 8, "few": 2}


def test_pieces_of_switches() -> None:
    """128 at a time: of 128 KiB from 1 GiB on, of 64 KiB from 64 MiB, of 32 KiB from 8 MiB, else of 16 KiB."""
    one = Switched(**cells(**NVLS, **STAIRS))
    sizes = np.array([2.0**30, 2.0**30 - 1, 2.0**26, 2.0**26 - 1, 2.0**23, 2.0**23 - 1])
    assert one.pieces(sizes)[0].tolist() == [2**17, 2**16, 2**16, 2**15, 2**15, 2**14]
    assert one.seconds(sizes)[0][0].tolist() == pytest.approx([64e-6, 128e-6, 8e-6, 16e-6, 2e-6, 4e-6])


def test_a_loop_that_has_begun_takes_as_long_as_a_full_one() -> None:
    """Two and a half loops cost three, half of one costs half of one."""
    one = Switched(**cells(**{**NVLS, "inside": 1e-11}, **{**STAIRS, "some": 0, "few": 0, "many": 0}))
    loop = 128 * LARGEST_PIECE
    seconds = one.seconds(loop * np.array([0.5, 2.5]))[0][0]
    assert seconds.tolist() == pytest.approx([0.5 * (1e-6 + loop * 1e-11), 3 * (1e-6 + loop * 1e-11)])


def test_parts_of_sends() -> None:
    """Four channels of 20 GB/s up to 16 MiB each, then more of them, 32 at most."""
    columns = {"wait": 0, "rate": 0, "kind": 0, "drift": 0, "part": 1, "peers": 1, "least": 4, "most": 32, "all": 32}
    one = Sent(**cells(**columns, least_part=2**16, most_part=2**24, send=1 / 20e9))
    sizes = np.array([2.0**16, 2.0**26, 2.0**28, 2.0**30])
    assert one.channels(sizes).tolist() == [[1, 4, 16, 32]]
    seconds, _ = one.seconds(sizes)
    assert seconds[0, 1:].tolist() == pytest.approx([2**24 / 20e9, 2**24 / 20e9, 2**25 / 20e9])


@pytest.mark.parametrize(("op", "ranks", "size"), [("all_gather", 2, 2.0**30), ("send_recv", 8, 2.0**26)])
def test_quicker_channels_are_quicker_where_they_limit(op: str, ranks: int, size: float) -> None:
    """Two H100 gather, and eight send, at what channels copy, less than links carry: what is twice as quick shows."""
    machine = load("hgx-h100")
    usual, twice = (
        Nccl().time(collective(op), np.array([size]), Layout.first(ranks), machine.topology, case=Case(faster=faster))
        for faster in ((), ((COPYING, 2.0),))
    )
    assert usual.choice(0).limit(0) == "channels"
    assert usual.seconds[0] / 2 * (1 - 1e-9) <= twice.seconds[0] < 0.8 * usual.seconds[0]
