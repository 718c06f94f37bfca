"""How many bytes is a token on its way to an expert?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

PRECISIONS: Mapping[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1 + 4 / 128,
    "mxfp8": 1 + 1 / 32,
    "nvfp4": 1 / 2 + 1 / 16,
    "mxfp4": 1 / 2 + 1 / 32,
}
"""Bytes of a value with its share of a scale: fp8 has one of 4 bytes for 128 values (DeepSeek-V3), mxfp8 and mxfp4 one
of 1 byte for 32 (OCP Microscaling 1.0), nvfp4 one of 1 byte for 16."""


def token_bytes(hidden: int, precision: str) -> float:
    """Return the bytes of a token of so many values with its scales. InputError for an unknown precision."""
    if precision not in PRECISIONS:
        raise InputError("precision", precision, "no such format of tokens", among=PRECISIONS)
    if isinstance(hidden, bool) or hidden < 1:
        raise InputError("hidden", hidden, "a whole number of at least 1 belongs here")
    return hidden * PRECISIONS[precision]


@dataclass(frozen=True)
class Load:
    """What each rank has to send: so many tokens, each of so many bytes with its scales."""

    tokens: float
    token: float

    def __post_init__(self) -> None:
        """Refuse loads that are none; InputError."""
        for name, given in (("tokens", self.tokens), ("token: bytes", self.token)):
            if not 0 < given < float("inf"):
                raise InputError(name, given, "a finite number above 0 belongs here")
