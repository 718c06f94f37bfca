"""What lies in the buffers of an operation before it, and is it right afterwards?"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from commsim.errors import InputError

if TYPE_CHECKING:
    from bench.operations import Piece, Plan

TYPES = {
    "int8": torch.int8,
    "uint8": torch.uint8,
    "int32": torch.int32,
    "int64": torch.int64,
    "half": torch.float16,
    "float": torch.float32,
    "double": torch.float64,
    "bfloat16": torch.bfloat16,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
}
"""Types of elements by nccl-tests' name."""
_TILE = 8_191
"""A prime, so that a part which lands in the wrong place shows."""
_BLOCK = 2_048
"""Tiles that are compared at a time: the memory that a comparison needs."""


class Buffers:
    """What a rank gives and takes in an operation; filled anew before each iteration and checked after it."""

    def __init__(self, plan: Plan, dtype: torch.dtype, device: torch.device, *, in_place: bool) -> None:
        """Take the memory."""
        self._plan, self._copies = plan, plan.copies and not in_place
        shared = plan.shared if in_place else None
        self._whole = [torch.empty(n, dtype=dtype, device=device) for n in _apart(plan, shared)]
        if shared is None:
            self.given, self.taken = self._whole
        elif plan.within_given:
            self.given, self.taken = self._whole[0], self._whole[0][shared]
        else:
            self.given, self.taken = self._whole[0][shared], self._whole[0]

    def fill(self, me: int, ranks: int) -> None:
        """Write what rank `me` gives, and what nobody gives into the rest."""
        for buffer in self._whole:
            buffer.zero_()
        _lay(self.given, _tile(me, ranks, self.given.dtype, self.given.device))

    def start(self) -> Any:  # noqa: ANN401 - torch's work
        """Begin the operation and return its work, which somebody has to wait for."""
        if self._copies:
            self.taken.copy_(self.given)
        return self._plan.run(self.given, self.taken)

    def is_right(self, ranks: int) -> bool:
        """Whether every element is what belongs there."""
        place = 0
        for piece in self._plan.pieces:
            if not _holds(self.taken[place : place + piece.count], piece, ranks):
                return False
            place += piece.count
        return True


def element(name: str, backend: str) -> torch.dtype:
    """Return torch's type of that name; InputError for one that the backend cannot move."""
    can = [one for one in TYPES if backend != "gloo" or not one.startswith("f8")]
    if name not in can:
        raise InputError("dtype", name, f"{backend} in torch moves no such elements", among=can)
    return TYPES[name]


def _apart(plan: Plan, shared: slice | None) -> tuple[int, ...]:
    """The elements of each buffer: one for both where they are shared."""
    return (plan.given, plan.taken) if shared is None else (max(plan.given, plan.taken),)


@cache
def _tile(rank: int | None, ranks: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """What a rank gives, or (None) the sum over the ranks: zeros and ones, of which no more meet than the type adds."""
    apart = math.ceil(ranks / _exact(dtype))
    bits = sum((_bits(one, apart) for one in range(ranks)), torch.tensor(0)) if rank is None else _bits(rank, apart)
    return bits.to(dtype).to(device)


def _bits(rank: int, apart: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rank)
    bits = torch.randint(0, 2, (_TILE,), generator=generator)
    return bits * ((torch.arange(_TILE) + rank) % apart == 0)


def _exact(dtype: torch.dtype) -> int:
    """How many ones a type adds one by one without rounding: bfloat16 stays at 256."""
    return round(2 / torch.finfo(dtype).eps) if dtype.is_floating_point else torch.iinfo(dtype).max


def _lay(buffer: torch.Tensor, tile: torch.Tensor) -> None:
    """Repeat the tile over the buffer."""
    full = buffer.numel() // _TILE * _TILE
    buffer[:full].view(-1, _TILE).copy_(tile)
    buffer[full:].copy_(tile[: buffer.numel() - full])


def _holds(found: torch.Tensor, piece: Piece, ranks: int) -> bool:
    """Whether a part of the result is that part of the pattern."""
    tile = _tile(piece.of, ranks, found.dtype, found.device).roll(-(piece.start % _TILE))
    blocks = found[: found.numel() // _TILE * _TILE].view(-1, _TILE)
    rest = found[blocks.numel() :]
    parts = [*torch.split(blocks, _BLOCK), rest] if blocks.numel() else [rest]
    return all(bool((part == tile[: part.shape[-1]]).all()) for part in parts)
