"""What is expected of NCCL's constants before any table is looked at, and which are others, too?

Latencies are those that NCCL's own tuner assumes (less the wire, which the graph has), shares those of framing and
flow control, and the rest orders of magnitude. Beside each value stands how far off it may be: the standard deviation
of its logarithm, 0.5 for a factor of 1.6.
"""

from __future__ import annotations

import fnmatch
from typing import NamedTuple

SHARE = 0.03
"""Of shares of a link's bandwidth: machines of a kind differ by 1 to 3 %."""
_FACTOR, _UNSURE = 0.5, 0.7


class Expected(NamedTuple):
    """A value, SI, and the standard deviation of its logarithm."""

    value: float
    spread: float = _FACTOR


EXPECTED = {
    "links.pcie?.staged": Expected(0.5, SHARE),
    "links.pcie?.efficiency": Expected(0.7, SHARE),
    "links.* nic.efficiency": Expected(0.93, SHARE),
    "links.nvlink3.efficiency": Expected(0.78, SHARE),
    "links.*.efficiency": Expected(0.82, SHARE),
    "links.*.in_network": Expected(0.72, SHARE),
    "links.*.in_network_bus": Expected(1.0, SHARE),
    "links.nvlink*.hop.LL": Expected(0.35e-6),
    "links.nvlink*.hop.Simple": Expected(3.4e-6),
    "links.pcie?.hop.LL": Expected(0.6e-6),
    "links.pcie?.*hop.Simple": Expected(5e-6),
    "links.infiniband nic.hop.LL": Expected(5e-6, 0.3),
    "links.efa nic.hop.LL": Expected(10e-6, _UNSURE),
    "links.tcpx nic.hop.LL": Expected(30e-6, 1.0),
    "links.tcpxo nic.hop.LL": Expected(30e-6, _UNSURE),
    "links.* nic.hop.LL": Expected(10e-6, _UNSURE),
    "links.*.start": Expected(3e-6),
    "links.*.copy": Expected(15e9),
    "links.*.send": Expected(15e9),
    "protocols.LL.base": Expected(6.6e-6),
    "protocols.LL128.base": Expected(14e-6),
    "protocols.Simple.base": Expected(8.4e-6),
    "protocols.Simple.network": Expected(1.5),
    "protocols.LL.copy": Expected(0.35, 0.3),
    "protocols.LL128.copy": Expected(0.6, 0.3),
    "older.channel": Expected(1e-6),
    "switching.loop": Expected(2.5e-6),
    "switching.rank": Expected(2.5e-6),
    "switching.network": Expected(30e-6),
    "switching.fill": Expected(1.5),
    "switching.through": Expected(0.95, SHARE),
    "sending.inside": Expected(1.0, SHARE),
    "sending.outside": Expected(0.95, SHARE),
    "sending.base": Expected(6.6e-6),
    "sending.wait": Expected(3e-6),
    "sending.hops": Expected(3.0),
    "sending.peer": Expected(0.7e-6),
    "sending.channel": Expected(11e9, 0.3),
    "sending.drift": Expected(5e-6, _UNSURE),
    "meshed": Expected(0.95, SHARE),
    "fill": Expected(0.2),
    "drift": Expected(5e-6, _UNSURE),
    "later": Expected(0.2),
    "posting": Expected(1.5e-6, 0.3),
}
"""By patterns of names, the first that fits: NCCL 2.30's tuner assumes 6.6, 14 and 8.4 us for a call, 0.6 and 3.4 us
for a message over NVLink, 1 and 5.7 us over PCIe, 5 us through a NIC (8.5 with LL128, 14 with Simple), 25 us for NVLS
on eight GPUs, 11 us x log2(nodes) twice beyond them, and 20.6 of an NVLink's 25 GB/s."""
TIED = {
    "links.nvlink2.hop.LL": "links.nvlink4.hop.LL",
    "links.nvlink2.hop.Simple": "links.nvlink3.hop.Simple",
    "links.nvlink2.send": "links.nvlink3.send",
    "links.nvlink3.hop.LL": "links.nvlink4.hop.LL",
    "links.nvlink[567]*.in_network": "links.nvlink4.in_network",
    "links.nvlink[567]*.send": "links.nvlink4.send",
    "links.tcpxo nic.efficiency": "links.tcpx nic.efficiency",
    "links.efa nic.efficiency": "links.* nic.efficiency",
    "links.infiniband nic.efficiency": "links.* nic.efficiency",
    "links.efa nic.staged": "links.pcie*.staged",
    "links.pcie*.staged_hop.LL": "links.pcie*.hop.LL",
    "older.hop": "links.nvlink3.hop.Simple",
}
"""Constants that are others, too: what measurements do not tell apart."""


def expected(name: str) -> Expected:
    """Return what is expected of a constant; KeyError when nothing is."""
    for pattern, one in EXPECTED.items():
        if fnmatch.fnmatchcase(name, pattern):
            return one
    raise KeyError(name)
