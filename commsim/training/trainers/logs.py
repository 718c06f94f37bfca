"""How long did a step take, by what a trainer printed?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.units import parse

if TYPE_CHECKING:
    from commsim.units import Seconds

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MEGATRON = re.compile(r"elapsed time per iteration \(ms\):\s*(\d+(?:\.\d+)?)")
_TORCHTITAN = re.compile(r"\btps:\s*([\d,]+)")
_NEMO = re.compile(r"train_step_timing in s[:=]\s*(\d+(?:\.\d+)?)")
_DEEPSPEED = re.compile(r"\biter(?:ation)? time \(s\):\s*(\d+(?:\.\d+)?)")
_BAR = re.compile(r"(\d+(?:\.\d+)?)\s*s/it\b")
_QUICK_BAR = re.compile(r"(\d+(?:\.\d+)?)\s*it/s\b")
_QUANTITY = re.compile(r"\s*(?:[-+.\d]|nan|inf)", re.IGNORECASE)


def measured_step(text: str, tokens_per_rank: float) -> Seconds:
    """Return the time of a step that a person measured, s: `12.3 s`, or a line of a trainer's log.

    torchtitan prints tokens per second and device, of which `tokens_per_rank` (tokens of a step over all ranks) make a
    step; bars of progress, as of Hugging Face's trainer, seconds a step or steps a second. InputError for a text that
    says no time.
    """
    plain = _COLOURS.sub("", text)
    for expression, unit in ((_MEGATRON, 1e-3), (_NEMO, 1.0), (_DEEPSPEED, 1.0), (_BAR, 1.0)):
        found = expression.search(plain)
        if found:
            return _positive(float(found[1]) * unit, text)
    for expression, each in ((_TORCHTITAN, tokens_per_rank), (_QUICK_BAR, 1.0)):
        rate = expression.search(plain)
        if rate:
            return each / _positive(float(rate[1].replace(",", "") or 0), text)
    if not _QUANTITY.match(plain):
        raise InputError("measured", text, "a time such as '12.3 s' belongs here, or a line of a log that says one")
    return _positive(parse(plain, "s", "measured", "12.3 s"), text)


def _positive(value: float, text: str) -> float:
    if value <= 0:
        raise InputError("measured", text, "a time above 0 s belongs here, or a line of a trainer's log")
    return value
