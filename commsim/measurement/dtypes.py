"""How many bytes is an element of each type, and what does nccl-tests call it?"""

from __future__ import annotations

ITEM_BYTES: dict[str, int] = {
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "half": 2,
    "float": 4,
    "double": 8,
    "bfloat16": 2,
    "f8e4m3": 1,
    "f8e5m2": 1,
    "char": 1,  # before 2.6: int8
    "int": 4,  # before 2.6: int32
    "fp8_e4m3": 1,  # RCCL's tests
    "fp8_e5m2": 1,
}
"""Bytes of an element by the name that nccl-tests prints."""

_TORCH = {
    "float16": "half",
    "float32": "float",
    "float64": "double",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "int": "int32",
    "long": "int64",
    "char": "int8",
}


def dtype(name: str) -> str:
    """Return what nccl-tests calls a type that torch calls `name` (`torch.float32` or `float32`)."""
    short = name.strip().lower().removeprefix("torch.")
    return _TORCH.get(short, short)
