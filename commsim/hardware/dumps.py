"""Is this file one that a machine wrote about itself?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware import nccl_xml, topo_matrix
from commsim.hardware.nccl_xml.elements import opened
from commsim.hardware.topo_matrix.text import holds_matrix

if TYPE_CHECKING:
    from commsim.hardware.system import System

_OURS = (".yaml", ".yml")
_MARKUP = (b"<", b"\xef\xbb\xbf<", b"\xff\xfe<", b"\xfe\xff\x00<")


def from_file(path: str | Path, accelerator: str | None = None) -> System | None:
    """Return the machine of a file with NCCL topology XML or `nvidia-smi topo -m` text, told apart by what it holds.

    None when `path` is no file, or one of the catalogue's own YAML. InputError when the file holds neither.
    """
    place = Path(path)
    if place.suffix in _OURS or not os.path.isfile(place):  # noqa: PTH113 - it answers for impossible names as well
        return None
    content = opened(place)
    if content.lstrip().startswith(_MARKUP):
        return nccl_xml.machine(content, str(path), accelerator)
    text = content.decode("utf-8", "replace")
    if holds_matrix(text):
        return topo_matrix.machine(text, str(path), accelerator)
    raise InputError(str(path), text[:40], "NCCL topology XML or the output of `nvidia-smi topo -m` belongs here")
