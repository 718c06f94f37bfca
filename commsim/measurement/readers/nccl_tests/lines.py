"""Which kinds of line does an nccl-tests log have?

One expression a kind. Lines may carry a launcher's tag, NCCL's own messages may stand between and inside them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from commsim.measurement.dtypes import ITEM_BYTES

_TYPES = "|".join(sorted(ITEM_BYTES, key=len, reverse=True))
REDOPS = ("mulsum", "none", "prod", "sum", "max", "min", "avg")
REGISTRATION = r"(?:^|\s)(?:-R|--local_register[ =])\s*([012])(?=\s|$)"
"""How buffers are registered, as arguments say it: 2 stands for symmetric windows."""

KINDS: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (kind, literal, re.compile(expression))
    for kind, literal, expression in (
        ("tool", "nccl-tests version", r"nccl-tests version (\S+).*?nccl-library=(\d+)"),
        ("rccl", "rccl-tests", r"rccl-tests:? [Vv]ersion ([\w.:-]+)"),
        ("name", "test starting", r"Collective test starting: (\S+)"),
        ("header", "nThread", r"nThread (\d+) nGpus (\d+) minBytes (\d+) maxBytes (\d+) step: (\d+\(\w+\))(.*)"),
        (
            "device",
            "Rank",
            r"#\s+Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*?)\s*$",
        ),
        ("reduced", "Reducing maxBytes", r"Reducing maxBytes to (\d+)"),
        ("heading", "busbw", r"size\s+count\s+(?:\(elements\)\s+)?type\s+(.*\bbusbw\b.*)$"),
        ("wrong", "Out of bounds", r"Out of bounds values\s*:\s*(\S+)\s*(OK|FAILED)?"),
        ("average", "Avg bus bandwidth", r"Avg bus bandwidth\s*:\s*([\d.e+-]+)"),
        ("end", "test concluded", r"Collective test concluded"),
        ("failure", "failure", r"(Test (?:NCCL|CUDA|HIP|RCCL) failure .*)"),
        ("failure", "# error:", r"# (error: .*)"),
        ("setting", "set by environment", r"([NR]CCL_\w+) set by environment to (\S+?)\.?\s*$"),
        ("network", "Using network", r"Using network (\w+(?: \w+)?)"),
        ("ports", "NET/IB : Using", r"NET/IB : Using((?:\s+\[\d+\][\w.-]+:\d+/\w+)+)"),
        ("transport", " via ", r"NCCL INFO Channel \d+.* via (P2P|SHM|NET/IB\w*)(?:/\S*?(GDRDMA))?"),
        ("multicast", "NVLS multicast", r"NVLS multicast support is not (available)"),
        ("library", "CCL version", r"(NCCL|RCCL) version\s*:?\s*(\d+\.\d+(?:\.\d+)?)(\S*)"),
        ("symmetric", "[Symmetric]", r"NCCL INFO (\w+) \[Symmetric\]: \d+ Bytes -> Kernel"),
        ("op", "NCCL INFO", r"NCCL INFO (\w+): (?:opCount|\d+ Bytes -> Algo)"),
        ("command", "_perf ", rf"_perf .*?{REGISTRATION}"),
    )
)
"""Each kind of line: a text that it must hold, then its expression. An earlier kind wins."""

ROW = re.compile(rf"(?<![\w.])(\d+)\s+(\d+)\s+({_TYPES})(?=\s)(?:\s+({'|'.join(REDOPS)}))?(.*)$")
"""Size, elements, type, reduction, and what follows."""
_TAG = re.compile(r"^\s*(?:\[\d+,(\d+)\]<std\w+>:|(\d+):(?=\s)|\[(\d+)\](?=[\s#]))")
_INNER_TAG = re.compile(r"\[\d+,\d+\]<std\w+>:")
_MESSAGE = re.compile(r"[\w.-]*:\d+:\d+ \[-?\d+\]")
_ADDRESSED = r"[\d.]+:\d+:\d+ \["  # a host that is known by its address, not a figure
_STAMP = re.compile(r"\s\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$")
_FIGURE = re.compile(rf"(\s+)(?!{_ADDRESSED})([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|N/A|[+-]?nan|[+-]?inf)")


@dataclass(frozen=True)
class Figures:
    """What a stretch of a row holds: numbers as printed, the blanks before the first of two, and what is no number."""

    texts: tuple[str, ...]
    blanks: tuple[int, ...]
    foreign: str

    @property
    def is_whole_line(self) -> bool:
        """Whether nothing stands there but numbers (or numbers and then a message of NCCL)."""
        return bool(self.texts) and not self.foreign


def untagged(line: str) -> tuple[int | None, str]:
    """Return the rank that a launcher's tag names, if any, and the line without tags."""
    found = _TAG.match(line)
    rank = next((int(text) for text in found.groups() if text), None) if found else None
    return rank, _INNER_TAG.sub("", line[found.end() :] if found else line)


def kind_of(line: str) -> tuple[str, re.Match[str]] | None:
    """Return the kind of a line and what its expression found; None for a line of no kind."""
    for kind, literal, expression in KINDS:
        if literal in line and (found := expression.search(line)):
            return kind, found
    return None


def figures(text: str) -> Figures:
    """Return the numbers at the beginning of a text, as far as they go without a break."""
    texts, blanks, at = [], [], 0
    plain = _STAMP.sub("", text)
    while found := _FIGURE.match(plain, at):
        texts.append(found[2])
        blanks.append(len(found[1]))
        at = found.end()
    rest = plain[at:].strip()
    return Figures(tuple(texts), tuple(blanks), "" if _MESSAGE.match(rest) else rest)
