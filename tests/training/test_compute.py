"""Does a kernel stand on the roofline: never quicker than its FLOPs, its bytes or a launch allow?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.errors import InputError
from commsim.figures import is_range
from commsim.hardware.catalogue import load
from commsim.hardware.shelf import accelerator, names
from commsim.libraries.calibration import Case
from commsim.training.compute import (
    _LAUNCH,
    NARROW,
    NARROW_POWER,
    POWER,
    SPREAD,
    START,
    AttentionFigures,
    Kernels,
    kernel_figures,
    kernels,
    slowest,
)
from commsim.training.operations import Operation, Shard, passing, product

if TYPE_CHECKING:
    from commsim.training.operations import Kind

H100 = accelerator("h100")
ONE = Shard(tokens=1.0, sequence=1.0)
DIMS = st.integers(1, 40000).map(float)


def matmul(m: float, n: float, k: float, batch: float = 1.0) -> Operation:
    """A product of m x k by k x n."""
    return product("product", ONE, (m, k, n, batch), split="none")


def attention(flops: float, keys: float = 4096.0) -> Operation:
    """Attention of so many FLOPs that moves nothing."""
    kind: Kind = "attention"
    return Operation("attention", kind, "heads", flops, 0.0, flops, 0.0, n=keys)


def plain(**changes: object) -> Kernels:
    """Round figures: a PFLOP/s, a TB/s, 100 multiprocessors, one tile shape, a launch of a microsecond."""
    base = Kernels(
        rates={"bf16": 1e15, "fp8": 2e15},
        peaks={"bf16": 1e15, "fp8": 2e15},
        memory=1e12,
        stream=1e12,
        multiprocessors=100,
        tiles=((128.0, 128.0, 1.0),),
        attention=AttentionFigures(0.5, 0.4),
        launch=1e-6,
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


@given(DIMS, DIMS, DIMS)
def test_never_above_the_roofline(m: float, n: float, k: float) -> None:
    """Williams et al. 2009: the time of the FLOPs at the best rate, of the bytes at the memory's, and of a launch."""
    one, chip = matmul(m, n, k), kernels(H100)
    seconds = chip.seconds(one, "bf16")
    assert seconds >= one.flops / chip.rates["bf16"] * (1 - 1e-12)
    assert seconds >= max(one.bytes / chip.stream, chip.launch)


@given(DIMS, DIMS, DIMS, st.integers(0, 4096))
def test_more_of_anything_never_takes_less(m: float, n: float, k: float, more: int) -> None:
    chip = kernels(H100)
    base = chip.seconds(matmul(m, n, k), "bf16")
    for larger in (matmul(m + more, n, k), matmul(m, n + more, k), matmul(m, n, k + more), matmul(m, n, k, 2)):
        assert chip.seconds(larger, "bf16") >= base


def test_waves_are_full_or_wait() -> None:
    """100 multiprocessors: 100 tiles take one wave, 101 take two (NVIDIA, Matrix Multiplication Background)."""
    chip = plain(stream=1e15)
    one, two = (chip.seconds(matmul(128 * tiles, 128, 2**20), "bf16") for tiles in (100, 101))
    assert two == pytest.approx(2 * one)


def test_tiles_are_full_or_padded() -> None:
    chip = plain(stream=1e15)
    whole, part = (chip.seconds(matmul(rows, 128 * 100, 2**20), "bf16") for rows in (128, 65))
    assert part == whole


def test_the_best_tile_is_taken() -> None:
    """A small product fills more multiprocessors with smaller tiles."""
    large, both = plain(), plain(tiles=((128.0, 128.0, 1.0), (64.0, 64.0, 0.5)))
    small = matmul(640, 640, 2**18)
    assert both.seconds(small, "bf16") < large.seconds(small, "bf16")
    assert both.seconds(matmul(12800, 12800, 4096), "bf16") == large.seconds(matmul(12800, 12800, 4096), "bf16")


def test_memory_bound_kernels_move_bytes() -> None:
    first, second, none = (passing("norm", ONE, size, size, split="sequence") for size in (1e9, 2e9, 0.0))
    assert plain().seconds(second, "bf16") - plain().seconds(first, "bf16") == pytest.approx(2e9 / 1e12)
    assert plain().seconds(first, "bf16") == pytest.approx(2e9 / 1e12 + START + 1e-6), "a start and a launch"
    assert plain().seconds(none, "bf16") == 0.0, "what moves nothing is no kernel"


def test_attention_has_a_share_of_the_peak_of_its_own() -> None:
    """Backward less than forward, and less with few keys."""
    chip, one = plain(), attention(1e12)
    forward, backward = (chip.seconds(one, "bf16", backward=way) for way in (False, True))
    assert backward / forward == pytest.approx(0.5 / 0.4)
    assert forward > 1e12 / 1e15 / 0.5
    assert chip.seconds(attention(1e12, keys=512.0), "bf16") > forward


def test_attention_with_little_to_compute_moves_its_bytes() -> None:
    """2 GB at 1 TB/s, a start and a launch (1 us), where the FLOPs take less than that."""
    one = dataclasses.replace(attention(1e9), bytes=2e9)
    assert plain().seconds(one, "bf16") == pytest.approx(2e-3 + START + 1e-6, rel=1e-9)


def test_blocks_of_a_ring_are_merged() -> None:
    """A terabyte that is moved to add the attention to further blocks takes a second."""
    once = attention(1e12)
    merged = dataclasses.replace(once, accumulated=1e12)
    assert plain().seconds(merged, "bf16") - plain().seconds(once, "bf16") == pytest.approx(1)


def test_compiled_kernels_move_more_bytes_a_second() -> None:
    plain_, fused = (kernels(accelerator("h100-sxm"), compiled=compiled) for compiled in (False, True))
    assert fused.memory == pytest.approx(0.73 * fused.stream)
    assert plain_.memory < fused.memory
    assert dataclasses.replace(fused, memory=plain_.memory) == plain_


def test_narrow_formats_are_cast_first() -> None:
    """Twice the rate, and a kernel that reads and writes each element of the moving operand."""
    each, start = 4 * 12800 * 8192 / 1e12, plain().launch + START
    wide, narrow = (plain().seconds(matmul(12800, 12800, 8192), form) for form in ("bf16", "fp8"))
    assert "fp8" in NARROW
    assert narrow == pytest.approx(wide / 2 + each + start)
    scaled = plain().seconds(dataclasses.replace(matmul(12800, 12800, 8192), scales=2.0), "fp8")
    assert scaled - narrow == pytest.approx(each / 2)
    batched = matmul(12800, 12800, 8192, batch=3)
    wide, narrow = (plain().seconds(batched, form) for form in ("bf16", "fp8"))
    assert narrow == pytest.approx(wide / 2 + 3 * each + start), "each product of a batch has its operand"
    experts = plain().seconds(dataclasses.replace(batched, split="experts"), "fp8")
    assert experts - narrow == pytest.approx(2 * start), "and the rows of each expert their kernel"


def test_a_gradient_finds_its_operands_cast_and_is_added_to_what_is_there() -> None:
    """The gradient of the weight: no cast, and 8 bytes an element that nothing hides, 2 of which every product has."""
    chip, one = plain(), matmul(12800, 12800, 8192)
    of_input, of_weight = (chip.seconds(part, "fp8", backward=True) for part in one.backward)
    assert of_input == pytest.approx(chip.seconds(one, "fp8") + 4 * 12800 * (12800 - 8192) / 1e12, rel=0.01)
    plainly = dataclasses.replace(one.backward[1], accumulated=0.0, bytes=one.bytes)
    assert of_weight == pytest.approx(chip.seconds(plainly, "fp8") + 6 * 12800 * 8192 / 1e12)


def test_less_power_for_each_flop_is_a_lower_clock() -> None:
    """500 W instead of 700 W: between the cube root and the power itself."""
    full, less = (kernels(accelerator(name)) for name in ("h100", "h100-sxm-96gb-500w"))
    assert (500 / 700) < less.rates["bf16"] / full.rates["bf16"] < (500 / 700) ** (1 / 3)
    assert less.rates["fp8"] / less.peaks["fp8"] <= accelerator("h100").achieved["fp8"]
    plenty = dataclasses.replace(H100, power=7000.0)
    assert kernels(plenty).rates["bf16"] == pytest.approx(989e12 * H100.achieved["bf16"]), "no more than at its best"


def test_narrow_formats_draw_less_power() -> None:
    """At 300 W both formats are held back; that which draws 0.82 of the power keeps up (1 / 0.82)^0.8 of the share."""
    chip = kernels(dataclasses.replace(H100, power=300.0))
    narrow, wide = (chip.rates[name] / chip.peaks[name] / H100.achieved[name] for name in ("fp8", "bf16"))
    assert narrow / wide == pytest.approx((1 / NARROW_POWER) ** POWER)


def test_the_slowest_of_many_is_waited_for() -> None:
    """Mean of the largest of n normal numbers: 1.42 of 8, 2.51 of 100 (tables of order statistics)."""
    assert slowest(1) == 0
    assert [slowest(n) for n in (8, 100)] == pytest.approx([1.42, 2.51], abs=0.04)
    many = plain().slowed(1024)
    assert many.rates["bf16"] == pytest.approx(1e15 / (1 + SPREAD * slowest(1024)))
    assert many.memory == plain().memory


def test_a_trainer_that_reaches_half_takes_twice() -> None:
    chip, one = plain(launch=0.0), matmul(4096, 4096, 4096)
    assert chip.at(0.5).seconds(one, "fp8") - START == pytest.approx(2 * (chip.seconds(one, "fp8") - START))


def test_arrays_are_many_questions_at_once() -> None:
    chip, rows = kernels(H100), np.array([1.0, 100.0, 4096.0])
    together = chip.seconds(matmul(rows, 4096.0, 4096.0), "bf16")  # type: ignore[arg-type]
    assert np.asarray(together).tolist() == [chip.seconds(matmul(m, 4096.0, 4096.0), "bf16") for m in rows.tolist()]


def test_every_accelerator_that_trains_has_kernels() -> None:
    """A system whose accelerator has no kernels cannot be estimated: only LPUs, which do not train."""
    chips = {load(name).accelerator.name: load(name).accelerator for name in names() if not load(name).template}
    without = set()
    for name, chip in chips.items():
        try:
            found = kernels(chip)
        except InputError as error:
            without.add(name)
            assert "no kernels are described for it" in str(error)  # noqa: PT017 - others must not raise
        else:
            assert 0 < found.rates["fp16"] <= found.peaks["fp16"]
            assert 0 < found.memory <= chip.memory_bandwidth
    assert without == {"lpu3"}


@pytest.mark.parametrize("name", ["h100", "a100", "b200", "mi300x"])
def test_no_rate_is_above_its_peak(name: str) -> None:
    chip = accelerator(name)
    found, figures = kernels(chip), kernel_figures(chip)
    assert all(found.rates[form] <= found.peaks[form] for form in found.rates)
    assert all(0 < share <= 1 for kernel in figures.attention.values() for share in (kernel.forward, kernel.backward))
    assert all(0 < share <= 1 for _, _, share in figures.tiles)


def test_what_ifs_and_ranges() -> None:
    usual, compute, memory = (
        kernels(H100, Case(faster=faster)) for faster in ((), (("compute", 2.0),), (("memory", 2.0),))
    )
    assert compute.rates["bf16"] == 2 * usual.rates["bf16"]
    assert memory.memory == 2 * usual.memory
    rubin = accelerator("rubin")
    low, nominal, high = (kernels(rubin, Case(corner)) for corner in ("low", "nominal", "high"))
    assert any(is_range(value) for value in (*rubin.peak.values(), kernel_figures(rubin).sustained))
    assert low.rates["bf16"] < nominal.rates["bf16"] < high.rates["bf16"]


def test_cuda_graphs_launch_quicker() -> None:
    assert kernels(H100, cuda_graphs=True).launch < kernels(H100).launch
    assert kernels(dataclasses.replace(H100, launch=None)).launch == _LAUNCH


def test_the_newest_attention_unless_said_otherwise() -> None:
    newest, older = kernels(H100), kernels(H100, kernel="flash2")
    assert newest.attention.forward > older.attention.forward


def test_mistakes() -> None:
    with pytest.raises(InputError, match="attention: 'flash9'; this architecture has no such kernel"):
        kernels(H100, kernel="flash9")
    with pytest.raises(InputError, match="precision: 'fp8'; this accelerator has no such matrix unit"):
        kernels(accelerator("a100")).seconds(matmul(1, 1, 1), "fp8")
    with pytest.raises(InputError, match="architecture: 'abacus'; no kernels are described for it"):
        kernels(dataclasses.replace(H100, architecture="abacus"))


def test_a_tile_pays_its_prologue_and_epilogue() -> None:
    """The same FLOPs in twice as many tiles of half the depth: each pays 128 elements of k beside its own."""
    chip = plain(stream=1e18)
    deep, shallow = (chip.seconds(matmul(12800, n, k), "bf16") for n, k in ((128, 2048), (256, 1024)))
    assert shallow / deep == pytest.approx(2 * (1024 + 128) / (2048 + 128))
