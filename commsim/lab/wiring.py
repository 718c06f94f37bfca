"""How does a blueprint become namespaces, cables and routes?"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.lab import shaping
from commsim.lab.isolation import new_network, within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commsim.lab.blueprint import Blueprint
    from commsim.units import BytesPerSecond

_PERMANENT = 0x80
"""A neighbour that nobody asks for (NUD_PERMANENT)."""
_ON_LINK = 4
"""The next hop is at the other end of the cable, whatever its address (RTNH_F_ONLINK)."""
_LOOPBACK = 1
_SMALLEST, _FOR_EXPERIMENTS = 60, 0x88B5
"""Bytes of the smallest frame of Ethernet, and the type of frames for local experiments (IEEE 802)."""
_ALWAYS = {
    "ip_forward": "1",
    "tcp_congestion_control": "reno",
    "tcp_slow_start_after_idle": "0",
    "tcp_no_metrics_save": "1",
    "tcp_limit_output_bytes": "4096",
    "tcp_min_tso_segs": "1",
}
"""Settings of every namespace: what a connection has learnt it keeps between collectives, and no connection fills the
queue before a cable, so that those which share it take turns frame by frame."""
_FRAMES_AT_ONCE = 2


class Wired:
    """A network that stands: its namespaces as file descriptors, and its cables, which can be shaped anew."""

    def __init__(self, plan: Blueprint) -> None:
        """Lay it out, from the namespace in which this process is."""
        self.plan = plan
        with within():
            self.networks = [new_network() for _ in plan.spaces]
        self._window = shaping.window(max(cable.rate for cable in plan.cables))
        settings = _ALWAYS | dict.fromkeys(("tcp_rmem", "tcp_wmem"), f"4096 {2 * self._window} {2 * self._window}")
        self._links = [_opened(network, settings) for network in self.networks]
        self._frames = [_raw(network) for network in self.networks]
        self._ports: dict[tuple[int, int], int] = {}
        for number in range(len(plan.cables)):
            self._lay(number)
            self.shape(number, plan.cables[number].rate, "add")
        self._route()

    def shape(self, cable: int, rate: BytesPerSecond, how: str = "change") -> None:
        """Give both directions of a cable a bandwidth."""
        most = len(self.plan.ranks) ** 2 * 2 * self._window  # every connection's window: nothing is ever lost
        for space in self.plan.cables[cable].ends:
            bucket = {"rate": int(rate), "burst": shaping.burst(rate), "limit": most}
            self._links[space].tc(how, "tbf", index=self._ports[space, cable], handle="1:", **bucket)
            self._wake(space, cable)

    def _wake(self, space: int, cable: int) -> None:
        """Send a frame that nobody understands: a shaper looks at its new bandwidth when it is given something."""
        self._frames[space].sendto(bytes(_SMALLEST), (self.plan.port(space, cable), _FOR_EXPERIMENTS))

    def _lay(self, number: int) -> None:
        """Lay one cable: a pair of ports that know each other."""
        plan = self.plan
        a, b = ends = plan.cables[number].ends
        names = [plan.port(space, number) for space in ends]
        there = {"ifname": names[1], "net_ns_fd": self.networks[b]}
        self._links[a].link("add", ifname=names[0], kind="veth", peer=there)
        hardware = [self._address(space, number, name) for space, name in zip(ends, names)]
        for space, other, address in zip(ends, ends[::-1], hardware[::-1]):
            port = self._ports[space, number]
            self._links[space].neigh("add", dst=plan.address(other), lladdr=address, ifindex=port, state=_PERMANENT)

    def _address(self, space: int, number: int, name: str) -> str:
        """Give a port the address of its namespace, and return its hardware's."""
        link = self._links[space]
        port = self._ports[space, number] = link.link_lookup(ifname=name)[0]
        link.link("set", index=port, state="up", gso_max_segs=_FRAMES_AT_ONCE)
        link.addr("add", index=port, address=self.plan.address(space), prefixlen=32)
        return str(link.get_links(port)[0].get_attr("IFLA_ADDRESS"))

    def _route(self) -> None:
        """Tell every namespace where to send what is for each rank."""
        for space, rank, cable in self.plan.routes:
            (other,) = set(self.plan.cables[cable].ends) - {space}
            self._links[space].route(
                "add",
                dst=f"{self.plan.address(self.plan.ranks[rank])}/32",
                gateway=self.plan.address(other),
                oif=self._ports[space, cable],
                flags=_ON_LINK,
                prefsrc=self.plan.address(space),
            )


def _raw(network: int) -> socket.socket:
    """A socket for frames of any kind."""
    with within(network):
        return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)


def _opened(network: int, settings: Mapping[str, str]) -> Any:  # noqa: ANN401 - pyroute2 has no types
    """The socket through which a namespace is set up; its TCP has the settings."""
    from pyroute2 import IPRoute  # type: ignore[import-untyped]

    with within(network):
        for name, value in settings.items():
            Path("/proc/sys/net/ipv4", name).write_text(value, encoding="ascii")
        link = IPRoute()
    link.link("set", index=_LOOPBACK, state="up")
    return link
