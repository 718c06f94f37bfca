"""What does gloo's transport cost: of the wire, of the processor, in time?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from commsim.errors import InputError
from commsim.reading import load_yaml, read
from commsim.shipped import folder
from commsim.units import Bytes, Seconds, Share

_HEADERS = 52
"""IPv4 20, TCP 20, its timestamps 12 (RFC 791, RFC 9293, RFC 7323)."""
_FRAMES_PER_ACKNOWLEDGEMENT = 2
"""A receiver acknowledges every second full segment (RFC 5681, section 4.2)."""


@dataclass(frozen=True)
class GlooFigures:
    """What a message costs over TCP.

    `mtu` is the bytes of IP in a frame, `framing` what a link carries beside them (38 on Ethernet: header, check sum,
    preamble, gap). `call` is what an operation takes before its first message, `message` what the software on both
    sides adds to each message that is waited for; `copy` and `reduction` are what the busiest rank's processor takes
    for each byte that it sends or receives, and that it reduces, in seconds a byte. `waiting` and `unfairness` are
    those of an all-to-all (see `exchange.Chance`).
    """

    name: str
    mtu: Bytes
    framing: Bytes
    call: Seconds
    message: Seconds
    copy: Seconds
    reduction: Seconds
    waiting: Share
    unfairness: Share
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse frames without room for data, and shares that are none; InputError."""
        if self.mtu <= _HEADERS:
            raise InputError("gloo: mtu", float(self.mtu), f"more than the {_HEADERS} B of headers belong here")
        if not 0 <= self.waiting <= 1:
            raise InputError("gloo: waiting", float(self.waiting), "a share from 0 to 1 belongs here")

    def payload(self, *, both_ways: bool) -> float:
        """Return the share of a link's bytes that are data, where acknowledgements share it with data or do not."""
        frame = self.mtu + self.framing
        beside = (_HEADERS + self.framing) / _FRAMES_PER_ACKNOWLEDGEMENT if both_ways else 0.0
        return float((self.mtu - _HEADERS) / (frame + beside))


@lru_cache(maxsize=8)
def gloo_figures(name: str = "gloo") -> GlooFigures:
    """Return the shipped figures of gloo, or those of a YAML file; InputError for a file that holds none."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder("topologies") / "calibrations" / f"{name}.yaml"
    return read(GlooFigures, load_yaml(path), path.name)
