"""What does a link of each generation carry?

Files from machines name generations (a compute capability, 32 GT/s by 16 lanes, a processor model), not bandwidths.
Here they become kinds of link: the catalogue's own where it has the kind, so that a user's box and a shipped system
share figures and calibrations; else the rate of the standard, with the latency of the nearest kind in the catalogue.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from commsim.figures import Figure
from commsim.hardware.shelf import link_kinds
from commsim.hardware.topology import Link

PCIE_RATES = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""Generation of PCI Express by its transfer rate in GT/s for each lane."""
_PCIE_PAYLOAD = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256}
"""Share of the raw rate after encoding (PCI-SIG: 8b/10b, 128b/130b, 242 of 256 bytes of a flit)."""
INSIDE_A_SWITCH = Link("inside a pcie switch", 5000e9, 0.0)
"""Between two halves of one PCIe switch: NCCL's constant for what is never the narrowest."""
PORT = "port of"
"""How the kinds of link inside adapters are called."""
_PORTS = tuple(gigabits * 1e9 / 8 for gigabits in (1, 10, 25, 50, 100, 200, 400, 800, 1600))


@dataclass(frozen=True)
class NVLink:
    """A generation of NVLink: from which compute capability on, its kind of link, and how many a GPU has at most."""

    capability: int
    kind: str
    most: int


_NVLINKS = (
    NVLink(60, "nvlink1", 4),
    NVLink(70, "nvlink2", 6),
    NVLink(80, "nvlink3", 12),
    NVLink(86, "nvlink3-bridge", 4),
    NVLink(90, "nvlink4", 18),
    NVLink(100, "nvlink5", 18),
    NVLink(104, "nvlink6", 36),
)
_XGMI = {
    "gfx906": "xgmi-mi50",
    "gfx908": "xgmi-mi100",
    "gfx90a": "xgmi-mi250x",
    "gfx942": "xgmi-mi300x",
    "gfx950": "xgmi-mi355x",
}
"""The kind of one link of Infinity Fabric between AMD GPUs, by their architecture."""
_OLD_XGMI = Figure(46e9, status="from memory", source=("GK",), printed="92 GB/s a link, both directions")


@dataclass(frozen=True)
class Processors:
    """Processors of a vendor (or architecture), from a family and model on: the kind of link between their sockets."""

    vendor: str
    family: int
    model: int
    kind: str


PROCESSORS = (
    Processors("GenuineIntel", 6, 0, "upi-broadwell"),
    Processors("GenuineIntel", 6, 0x55, "upi-skylake"),
    Processors("GenuineIntel", 6, 0x6A, "upi-icelake"),
    Processors("GenuineIntel", 6, 0x8F, "upi-sapphire-rapids"),
    Processors("GenuineIntel", 6, 0xAD, "upi-granite-rapids"),
    Processors("GenuineIntel", 6, 0xCF, "upi-emerald-rapids"),
    Processors("AuthenticAMD", 23, 0, "xgmi-epyc"),
    Processors("AuthenticAMD", 25, 0, "xgmi-epyc"),
    Processors("AuthenticAMD", 25, 0x10, "xgmi-epyc-genoa"),
    Processors("AuthenticAMD", 25, 0x20, "xgmi-epyc"),
    Processors("AuthenticAMD", 25, 0xA0, "xgmi-epyc-genoa"),
    Processors("AuthenticAMD", 26, 0, "xgmi-epyc-genoa"),
    Processors("arm64", 0, 0, "socket-arm"),
    Processors("ppc64", 0, 0, "socket-power9"),
    Processors("CentaurHauls", 6, 0, "socket-zhaoxin"),
    Processors("Shanghai", 6, 0, "socket-zhaoxin"),
)
"""In the order of families and models of each vendor; families and models are CPUID's."""
_NCCL_SOCKETS = {"socket-power9": 32e9, "socket-zhaoxin": 6e9}
"""What NCCL counts between sockets for which the catalogue has no kind."""
_C2C = ((90, "c2c-gh200"), (100, "c2c-gb200"), (104, "c2c-vera"), (120, "c2c-gb10"))
"""The coherent link of a GPU to its CPU, by the compute capability from which it is that one."""


def nvlink(capability: int) -> NVLink:
    """Return the generation of NVLink of a compute capability (90 for 9.0)."""
    place = bisect_right([generation.capability for generation in _NVLINKS], capability)
    return _NVLINKS[max(0, place - 1)]


def nvlink_kind(capability: int) -> Link:
    """Return the kind of link of that generation; `bandwidth` is one direction of one link."""
    return link_kinds()[nvlink(capability).kind]


def architecture(gcn: str) -> str:
    """Return AMD's name of an architecture; RCCL writes `gfx942`, and older ones as 906 or 910 (gfx90a)."""
    return "gfx90a" if gcn == "910" else gcn if gcn.startswith("gfx") else f"gfx{gcn}"


def xgmi_kind(gfx: str) -> Link | None:
    """Return the kind of link between AMD GPUs of an architecture (`gfx942`); None when it is unknown."""
    return _kind(_XGMI[gfx], _OLD_XGMI, "xgmi") if gfx in _XGMI else None


def pcie_kind(generation: int, lanes: int = 16) -> Link:
    """Return PCI Express of a generation and width: raw rate x lanes after encoding, one direction."""
    rate = next(rate for rate, number in PCIE_RATES.items() if number == generation)
    bandwidth = rate * 1e9 / 8 * lanes * _PCIE_PAYLOAD[generation]
    figure = Figure(bandwidth, status="derived", source=("DERIVED",), note="PCI-SIG's rate x lanes, after encoding")
    return _kind(f"pcie{generation}-x{lanes}", figure, "pcie")


def pcie_generation(capability: int) -> int:
    """Return the generation of PCI Express that servers with GPUs of that compute capability have."""
    firsts = ((0, 3), (80, 4), (90, 5), (103, 6), (120, 5))
    return max((first, generation) for first, generation in firsts if first <= capability)[1]


def processors(vendor: str, family: int, model: int) -> Processors | None:
    """Return the entry for processors of a vendor (x86) or architecture (arm64, ppc64); None for unknown ones.

    A family such as 175 is the raw one of CPUID, which NCCL dumps for AMD: 15 + 10 = 25.
    """
    plain = 15 + (family >> 4) if family & 15 == 15 and family > 15 else family  # noqa: PLR2004 - CPUID's own escape
    fitting = [
        entry for entry in PROCESSORS if entry.vendor == vendor and (entry.family, entry.model) <= (plain, model)
    ]
    return fitting[-1] if fitting else None


def processors_beside(generation: int) -> Processors:
    """Return Intel's processors that have PCI Express of that generation."""
    model = {1: 0, 2: 0, 3: 0x55, 4: 0x6A, 5: 0x8F}.get(generation, 0xAD)
    return next(entry for entry in PROCESSORS if (entry.vendor, entry.model) == ("GenuineIntel", model))


def socket_kind(kind: str) -> Link:
    """Return the kind of link between two sockets, of that name."""
    return _kind(kind, Figure(_NCCL_SOCKETS.get(kind, 6e9), status="derived", source=("NCCL",)), "upi")


def c2c_kind(capability: int, bandwidth: float = 0.0) -> Link:
    """Return the coherent link of a GPU to its CPU: the catalogue's, unless its bandwidth differs by more than 2 %."""
    close = 0.02
    place = bisect_right([first for first, _ in _C2C], capability)
    usual = link_kinds().get(_C2C[max(0, place - 1)][1])
    if usual and (not bandwidth or abs(usual.bandwidth / bandwidth - 1) < close):
        return usual
    return Link(f"c2c of {bandwidth / 1e9:g} GB/s", bandwidth, _latency("c2c"))


def port_kind(speed: float) -> Link:
    """Return the inside of an adapter, between its slot and one of its ports, which is as fast as the port (B/s)."""
    return Link(f"{PORT} {speed * 8 / 1e9:g} Gb/s", speed, 0.0)


def port_of_slot(slot: Link) -> float:
    """Return the fastest usual port (B/s) that a slot keeps busy: 400 Gb/s for PCIe 5 x16."""
    return max((port for port in _PORTS if port <= slot.bandwidth), default=_PORTS[0])


def _kind(name: str, bandwidth: Figure, family: str) -> Link:
    """The catalogue's kind of that name, or a new one with the latency of the family."""
    return link_kinds().get(name) or Link(name, bandwidth, _latency(family))


@lru_cache(maxsize=16)
def _latency(family: str) -> float:
    """The latency of the catalogue's first kind whose name begins so."""
    return next(link.latency for name, link in link_kinds().items() if name.startswith(family))
