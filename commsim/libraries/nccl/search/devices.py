"""What does NCCL see of a machine: which devices, joined by which links, how fast in its own count?

Devices and links stand in the order in which NCCL meets them in a topology file, for its search goes by that order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from commsim.errors import InputError

if TYPE_CHECKING:
    from commsim.libraries.nccl.communicator import Cpu
    from commsim.libraries.nccl.graphs import Path

LOCAL = 5_000_000.0
"""MB/s: what NCCL counts where nothing limits."""


class Kind(Enum):
    """What a device is."""

    GPU = "gpu"
    NVSWITCH = "nvswitch"
    PCI = "pci"
    CPU = "cpu"
    NIC = "nic"
    NET = "net"


@dataclass(eq=False)
class Port:
    """What NCCL knows of a network port: speed (MB/s), latency (s), and which others share its wire or its rail."""

    speed: float = 0.0
    latency: float = 0.0
    wire: tuple[int, int] = (0, 0)
    rail: int | None = None
    plane: int | None = None
    collnet: bool = False


@dataclass(eq=False)
class Link:
    """One direction of a link: its kind (as the path over it alone), what it leads to, and what it carries (MB/s)."""

    kind: Path
    target: Device
    bandwidth: float
    number: int = -1


@dataclass(eq=False)
class Device:
    """A vertex of NCCL's graph: a GPU, all NVSwitches of a domain, a PCIe switch, a NUMA node, a NIC, or a port.

    `index` counts devices of a kind; `number` is NVML's of a GPU, the plugin's of a port (which also has a `port`).
    """

    kind: Kind
    index: int
    host: int = 0
    number: int = 0
    capability: int = 0
    gdr: bool = False
    identity: int = 0
    port: Port = field(default_factory=Port)
    links: list[Link] = field(default_factory=list)

    def join(self, target: Device, kind: Path, bandwidth: float) -> None:
        """Add a link to `target`, or widen the one that is there; the widest links stand first."""
        link = next((link for link in self.links if link.target is target and link.kind == kind), None)
        if link is None:
            link = Link(kind, target, 0.0)
            self.links.append(link)
        link.bandwidth += bandwidth
        place = self.links.index(link)
        while place and self.links[place - 1].bandwidth < link.bandwidth:
            place -= 1
        self.links.remove(link)
        self.links.insert(place, link)


@dataclass(eq=False)
class Machine:
    """A node or an NVLink domain as NCCL sees it."""

    cpu: Cpu
    devices: dict[Kind, list[Device]] = field(default_factory=lambda: {kind: [] for kind in Kind})

    def add(self, kind: Kind, host: int = 0) -> Device:
        """Add a device and return it."""
        device = Device(kind, len(self.devices[kind]), host)
        self.devices[kind].append(device)
        return device

    def only(self, members: tuple[int, ...]) -> Machine:
        """Return the machine with these of its GPUs alone: no channel goes over a GPU outside of a communicator.

        InputError for a number that no GPU has.
        """
        beyond = next((member for member in members if not 0 <= member < len(self.gpus)), None)
        if beyond is not None or len(set(members)) != len(members):
            raise InputError(
                "GPUs of a node", members, f"numbers from 0 to {len(self.gpus) - 1}, each once, belong here"
            )
        for gpu in [gpu for gpu in self.gpus if gpu.index not in members]:
            self.remove(gpu)
        return self.numbered()

    def remove(self, device: Device) -> None:
        """Take a device and its links away."""
        self.devices[device.kind].remove(device)
        for index, other in enumerate(self.devices[device.kind]):
            other.index = index
        for one in (one for devices in self.devices.values() for one in devices):
            one.links = [link for link in one.links if link.target is not device]

    def numbered(self) -> Machine:
        """Number the links, and return the machine."""
        links = [link for devices in self.devices.values() for device in devices for link in device.links]
        for number, link in enumerate(links):
            link.number = number
        return self

    @property
    def gpus(self) -> list[Device]:
        """The GPUs, in the order of the file."""
        return self.devices[Kind.GPU]

    @property
    def nets(self) -> list[Device]:
        """The network ports, in the order of the file."""
        return self.devices[Kind.NET]

    @property
    def switched(self) -> bool:
        """Whether NVSwitches join the GPUs."""
        return bool(self.devices[Kind.NVSWITCH])

    @property
    def hosts(self) -> int:
        """The number of hosts."""
        return len({cpu.host for cpu in self.devices[Kind.CPU]})

    @property
    def capability(self) -> int:
        """The lowest compute capability."""
        return min(gpu.capability for gpu in self.gpus)

    @property
    def highest_capability(self) -> int:
        """The highest compute capability."""
        return max(gpu.capability for gpu in self.gpus)
