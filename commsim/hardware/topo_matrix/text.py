"""What stands in the text of `nvidia-smi topo -m`, however it was pasted?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_TEXT, MOST_DEVICES = 1_000_000, 256
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\[[0-9]{1,2}m")
_PREFIX = re.compile(r"^\s*[#>|]+(?=\s|$)")
_CODE = r"X|NV[0-9]{1,3}|SYS|NODE|PHB|PXB|PIX"
_CODES = re.compile(f"(?:{_CODE})+")
_NAME = r"GPU[0-9]{1,3}|NIC[0-9]{1,3}|mlx[0-9]_(?:bond_)?[0-9]{1,3}"
_NAMES = re.compile(f"(?:{_NAME})+")
_GPU = re.compile("GPU[0-9]{1,3}")
_LEGEND = re.compile(r"\s*(NIC[0-9]{1,3}):\s*(\S+)\s*")
_COLUMNS = {"cpu": "CPU Affinity", "numa": "NUMA Affinity", "memory": "GPU NUMA ID"}
_WORDS = ("CPU", "NUMA", "GPU", "Affinity", "ID")
_PEER_ACCESS = ("OK", "CNS", "GNS", "TNS", "NS", "DR", "U")


@dataclass(frozen=True)
class Matrix:
    """The matrix as printed: devices, the code of each pair (both ways), and the columns beside it by GPU.

    `affinity` holds for a GPU what stands in the columns `cpu`, `numa` (of its CPU) and `memory` (of its own memory, on
    machines where that is a NUMA node); `names` tells what a NIC is called on the host.
    """

    devices: tuple[str, ...]
    codes: dict[tuple[int, int], str]
    affinity: dict[int, dict[str, str]]
    names: dict[int, str]

    @property
    def gpus(self) -> list[int]:
        """The places of the GPUs among the devices."""
        return [place for place, device in enumerate(self.devices) if _GPU.fullmatch(device)]

    def code(self, a: int, b: int) -> str:
        """Return the code of a pair, "" when it is not printed."""
        return self.codes.get((a, b), "")


def parse(text: str, where: str) -> Matrix:
    """Return the matrix that the text holds; InputError when it holds none, half of one, or two different halves."""
    if len(text) > LARGEST_TEXT:
        raise InputError(where, f"{len(text)} characters", f"at most {LARGEST_TEXT} are read")
    lines = [_PREFIX.sub("", _ANSI.sub("", line)) for line in text.splitlines()]
    words = [line.split() for line in lines]
    first = next((number for number, row in enumerate(words) if _is_row(row)), None)
    if first is None:
        raise InputError(where, "no matrix", "the output of `nvidia-smi topo -m` belongs here")
    devices, columns = _header(words[:first], f"{where}: header")
    rows = dict(_rows(words[first:], devices, where))
    missing = [device for place, device in enumerate(devices) if _GPU.fullmatch(device) and place not in rows]
    if missing:
        raise InputError(f"{where}: rows", f"none of {missing[0]}", "a row for each GPU of the header belongs here")
    legend = {match[1]: match[2] for match in map(_LEGEND.fullmatch, lines) if match}
    return Matrix(
        devices,
        _both_ways({place: row[: len(devices)] for place, row in rows.items()}, devices, where),
        {place: dict(zip(columns, row[len(devices) :])) for place, row in rows.items()},
        {place: legend.get(device, device) for place, device in enumerate(devices)},
    )


def holds_matrix(text: str) -> bool:
    """Tell whether the text looks like a matrix between GPUs."""
    return any(_is_row(_PREFIX.sub("", _ANSI.sub("", line)).split()) for line in text.splitlines())


def _is_row(words: list[str]) -> bool:
    return len(words) > 1 and bool(_GPU.fullmatch(words[0])) and bool(_CODES.fullmatch(words[1]))


def _header(above: list[list[str]], where: str) -> tuple[tuple[str, ...], list[str]]:
    """The devices and the further columns, from the lines above the first row; long headers wrap when pasted."""
    words: list[str] = []
    for line in reversed(above):
        if not line or not (_NAMES.fullmatch(line[0]) or line[0] in _WORDS):
            break
        words = line + words
    end = next((place for place, word in enumerate(words) if word in _WORDS), len(words))
    devices = [name for word in words[:end] for name in (re.findall(_NAME, word) if _NAMES.fullmatch(word) else [word])]
    beside = " ".join(words[end:])
    if not devices or len(devices) > MOST_DEVICES or len(set(devices)) < len(devices):
        raise InputError(
            where, " ".join(words), f"GPU0 GPU1 ..., each once and at most {MOST_DEVICES}, belongs above the rows"
        )
    return tuple(devices), [key for key, column in _COLUMNS.items() if column in beside]


def _rows(lines: list[list[str]], devices: tuple[str, ...], where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the place of each row's device with its codes and what stands beside them; a wrapped row is one row."""
    place_of = {device: place for place, device in enumerate(devices)}
    seen: set[str] = set()
    row: list[str] = []
    for words in [*lines, []]:
        begins = len(words) > 1 and words[0] in place_of and bool(_CODES.fullmatch(words[1]))
        if row and (begins or not words):
            yield place_of[row[0]], _split(row, len(devices), f"{where}: row {row[0]}")
            row = []
        if begins and words[0] in seen:
            raise InputError(f"{where}: row {words[0]}", "stands twice", "one matrix belongs in a file")
        if begins or row:
            row += words
            seen.add(row[0])


def _split(row: list[str], width: int, where: str) -> list[str]:
    """The codes of a row, one by one (terminals run them together), and then the rest."""
    codes: list[str] = []
    for place, word in enumerate(row[1:], start=1):
        if len(codes) >= width:
            return codes + row[place:]
        if word in _PEER_ACCESS:
            expected = "this is `topo -p2p`, which tells what is allowed, not what is wired; give `nvidia-smi topo -m`"
            raise InputError(where, word, expected)
        if not _CODES.fullmatch(word):
            raise InputError(where, word, "X, NV#, PIX, PXB, PHB, NODE or SYS belongs here")
        codes += re.findall(_CODE, word)
    if len(codes) != width:
        raise InputError(where, f"{len(codes)} codes", f"{width} belong here, one for each device of the header")
    return codes


def _both_ways(rows: dict[int, list[str]], devices: tuple[str, ...], where: str) -> dict[tuple[int, int], str]:
    """The code of every pair that is printed, both ways round; InputError when the two ways differ."""
    codes: dict[tuple[int, int], str] = {}
    for a, row in rows.items():
        for b, code in enumerate(row):
            if (code == "X") != (a == b) or codes.get((a, b), code) != code:
                expected = f"X on the diagonal, and the same as {devices[b]}-{devices[a]}, belongs here"
                raise InputError(f"{where}: {devices[a]}-{devices[b]}", code, expected)
            codes[a, b] = codes[b, a] = code
    return codes
