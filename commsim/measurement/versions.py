"""Which version of a library does a number or a line of text mean?"""

from __future__ import annotations

_NEW_CODES = 10_000


def version_of(code: int) -> str:
    """Return `2.30.7` for NCCL's own number of a version, 23007 (2.9 on) or 2708 (before: 2.7.8)."""
    major, rest = divmod(code, _NEW_CODES) if code >= _NEW_CODES else divmod(code, 1_000)
    return f"{major}.{rest // 100}.{rest % 100}"


def code_of(version: str) -> int:
    """Return NCCL's own number of a version `2.30.7`: 23007."""
    major, minor, patch = (*(int(part) for part in version.split(".")), 0, 0)[:3]
    old = (major, minor) < (2, 9)
    return major * (1_000 if old else _NEW_CODES) + minor * 100 + patch
