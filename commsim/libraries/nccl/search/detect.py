"""How does a topology file become the machine that NCCL sees?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.libraries.nccl.constants import step
from commsim.libraries.nccl.graphs import Path
from commsim.libraries.nccl.search.devices import LOCAL, Device, Kind, Machine, Port
from commsim.libraries.nccl.search.flatten import flatten

if TYPE_CHECKING:
    from commsim.hardware.nccl_xml.elements import Element
    from commsim.libraries.nccl.communicator import Cpu
    from commsim.libraries.nccl.constants import Links

_MB, _MICROSECOND = 1e6, 1e-6
_PCIE = {"2.5": 15, "5": 30, "5.0": 30, "8": 60, "8.0": 60, "16": 120, "16.0": 120, "32": 240, "32.0": 240, "64.0": 480}
"""Of a lane, in 100 Mb/s, by the text of its rate in GT/s; 8 GT/s where NCCL does not know the text."""
_UNKNOWN_RATE, _LANE = 60, 12.5
_VENDORS: dict[str, Cpu] = {
    "GenuineIntel": "intel",
    "AuthenticAMD": "amd",
    "CentaurHauls": "zhaoxin",
    "Shanghai": "zhaoxin",
}
_ARCHITECTURES: dict[str, Cpu] = {"arm64": "arm", "ppc64": "power"}
_INTEL_FAMILY, _YONGFENG, _YONGFENG_SPEED = 6, (7, 0x5B), 9000.0
_GPU_CLASS, _CPU_CLASS, _NO_BRIDGES = "0x03", "0x068001", ("0x02", "0x03", "0x0680")
_SLOWEST_PORT = 10_000


def detect(root: Element, speeds: Links) -> Machine:
    """Return what NCCL sees of the machine that topology XML describes; `speeds` is what its version counts for links.

    InputError when the file has no CPU or no GPU with a rank, or an attribute that is no number.
    """
    foreign = next((one for one in root.walk() if one.tag == "gpu" and one.text("gcn")), None)
    if foreign:
        raise InputError(foreign.where, foreign.text("gcn"), "NCCL runs on NVIDIA's GPUs")
    cpus = root.each("cpu")
    if not cpus:
        raise InputError(root.where, "no <cpu>", "NCCL hangs every device below a <cpu>")
    detection = _Detection(Machine(processor(cpus[0])), speeds)
    for cpu in cpus:
        detection.take_cpu(cpu)
    for device, element in detection.linked:
        detection.take_links(device, element)
    for device, element in detection.linked:
        detection.take_c2c(device, element)
    for device, element in detection.halves:
        detection.take_half(device, element)
    if not detection.machine.gpus:
        raise InputError(root.where, "no GPU with a rank", "NCCL leaves out a <gpu> without `rank`")
    flatten(detection.machine)
    detection.join_sockets()
    for device in detection.machine.devices[Kind.CPU]:
        _upward_last(device, None)
    return detection.machine.numbered()


def processor(cpu: Element) -> Cpu:
    """Return the vendor of an x86 processor, or the architecture of another; InputError when NCCL knows neither."""
    architecture, vendor = cpu.text("arch"), cpu.text("vendor")
    if architecture in _ARCHITECTURES:
        return _ARCHITECTURES[architecture]
    if vendor not in _VENDORS:
        raise InputError(f"{cpu.where}: vendor", vendor, "a processor that NCCL knows belongs here", among=_VENDORS)
    return _VENDORS[vendor]


@dataclass
class _Detection:
    """The machine so far, and what is still to be joined: GPUs with links, switches with halves, by PCI address."""

    machine: Machine
    speeds: Links
    hosts: list[str] = field(default_factory=list)
    sockets: list[tuple[Device, float]] = field(default_factory=list)
    linked: list[tuple[Device, Element]] = field(default_factory=list)
    halves: list[tuple[Device, Element]] = field(default_factory=list)
    address: dict[tuple[int, str], Device] = field(default_factory=dict)
    nics: dict[tuple[Device, str], Device] = field(default_factory=dict)
    cpu_of: dict[Device, Device] = field(default_factory=dict)

    def take_cpu(self, element: Element) -> None:
        """Add a NUMA node with everything below it."""
        key = element.text("host_hash").lower()
        self.hosts += [] if key in self.hosts else [key]
        cpu = self.machine.add(Kind.CPU, self.hosts.index(key))
        self.sockets.append((cpu, self._between_sockets(element)))
        shared: Device | None = None
        for child in element.children:
            if child.tag == "pci":
                self._take_pci(child, cpu, cpu)
            elif child.tag == "nic":
                shared = shared or self._joined(self.machine.add(Kind.NIC, cpu.host), cpu, LOCAL)
                self._take_ports(child, shared)

    def _take_pci(self, element: Element, above: Device, cpu: Device) -> None:
        """Add a PCI device: the GPU in it, or the ports of an adapter, or a switch with what is below it."""
        width = _slot(element)
        gpus = element.each("gpu")
        for gpu in gpus:
            if gpu.number("rank", -1) in (None, -1):
                return
            self._take_gpu(gpu, element, self._joined(self.machine.add(Kind.GPU, cpu.host), above, width), cpu)
        adapters = element.each("nic")
        if adapters:
            key = (cpu, _bus(element))
            if key not in self.nics:
                self.nics[key] = self._joined(self.machine.add(Kind.NIC, cpu.host), above, width)
            self._take_ports(adapters[0], self.nics[key])
        elif not gpus and not element.text("class").startswith(_NO_BRIDGES):
            self._take_switch(element, above, cpu, width)

    def _take_switch(self, element: Element, above: Device, cpu: Device, width: float) -> None:
        switch = self.machine.add(Kind.PCI, cpu.host)
        switch.identity = _identity(element)
        self.address[cpu.host, _bus(element)] = switch
        for child in element.each("pci"):
            self._take_pci(child, switch, cpu)
        self.halves += [(switch, child) for child in element.each("pcilink")]
        self._joined(switch, above, width)

    def _take_gpu(self, element: Element, pci: Element, gpu: Device, cpu: Device) -> None:
        gpu.number, gpu.capability = element.needed("dev"), element.needed("sm", 1, 1000)
        gpu.gdr = bool(element.number("gdr") or 0)
        self.address[cpu.host, _bus(pci)] = gpu
        self.cpu_of[gpu] = cpu
        self.linked.append((gpu, element))

    def _take_ports(self, element: Element, nic: Device) -> None:
        for net in element.each("net"):
            number = net.number("dev")
            if number is None or net.number("net") == 0:
                continue
            end = self.machine.add(Kind.NET, nic.host)
            end.number, end.gdr, end.port = number, bool(net.number("gdr") or 0), _port(net, nic.host, number)
            nic.join(end, Path.NET, end.port.speed)
            end.join(nic, Path.NET, end.port.speed)

    def take_links(self, gpu: Device, element: Element) -> None:
        """Join a GPU by its NVLinks: to other GPUs, to a CPU, or to the one vertex of the NVSwitches."""
        lane = step(self.speeds.nvlink, gpu.capability) / _MB
        for link in element.each("nvlink"):
            bandwidth, target = link.needed("count", 1, 1000) * lane, link.text("tclass")
            if target.startswith(_GPU_CLASS):
                peer = self.address.get((gpu.host, link.text("target").lower()))
                if peer is not None and peer is not gpu:
                    gpu.join(peer, Path.NVL, bandwidth)
                continue
            switches = self.machine.devices[Kind.NVSWITCH]
            if target.startswith(_CPU_CLASS):
                far = self.cpu_of[gpu]
            else:
                far = switches[0] if switches else self.machine.add(Kind.NVSWITCH)
            gpu.join(far, Path.NVL, bandwidth)
            far.join(gpu, Path.NVL, bandwidth)

    def take_c2c(self, gpu: Device, element: Element) -> None:
        """Join a GPU to its CPU by C2C."""
        for c2c in element.each("c2c"):
            bandwidth = float(c2c.needed("bw") * c2c.needed("count", 1, 1000))
            gpu.join(self.cpu_of[gpu], Path.C2C, bandwidth)
            self.cpu_of[gpu].join(gpu, Path.C2C, bandwidth)

    def take_half(self, switch: Device, element: Element) -> None:
        """Join the halves of one PCIe switch."""
        other = self.address.get((switch.host, element.text("target").lower()))
        if other is not None:
            switch.join(other, Path.LOC, LOCAL)

    def join_sockets(self) -> None:
        """Join the CPUs of a host, every two."""
        for cpu, bandwidth in self.sockets:
            for other, _ in self.sockets:
                if cpu is not other and cpu.host == other.host:
                    cpu.join(other, Path.SYS, bandwidth)

    def _joined(self, device: Device, above: Device, bandwidth: float) -> Device:
        """The device, joined to what is above it."""
        device.join(above, Path.PIX, bandwidth)
        above.join(device, Path.PIX, bandwidth)
        return device

    def _between_sockets(self, cpu: Element) -> float:
        kind = processor(cpu)
        family, model = cpu.number("familyid") or 0, cpu.number("modelid") or 0
        if kind == "intel":
            return step(self.speeds.intel, model if family == _INTEL_FAMILY else 0) / _MB
        if kind == "zhaoxin" and (family, model) == _YONGFENG:
            return _YONGFENG_SPEED
        return {"amd": self.speeds.amd, "arm": self.speeds.arm, "power": self.speeds.power}.get(
            kind, self.speeds.zhaoxin
        ) / _MB


def _slot(pci: Element) -> float:
    """What a PCI device carries, MB/s."""
    rate = pci.text("link_speed").split(" GT/s")[0]
    return (pci.number("link_width") or 16) * _PCIE.get(rate, _UNKNOWN_RATE) * _LANE


def _bus(pci: Element) -> str:
    return pci.text("busid").lower()


def _identity(pci: Element) -> int:
    """Vendor, device, subsystem vendor and device in one number."""
    words = [pci.text(name) or "0" for name in ("vendor", "device", "subsystem_vendor", "subsystem_device")]
    try:
        return sum(int(word, 16) << shift for word, shift in zip(words, (48, 32, 16, 0)))
    except ValueError:
        raise InputError(pci.where, " ".join(words), "hexadecimal numbers belong in vendor and device") from None


def _port(net: Element, host: int, number: int) -> Port:
    """What NCCL knows of a port; the same guid and port number in two places is one wire."""
    speed = net.number("speed", -1) or 0
    guid = net.text("guid")
    wire = int(guid, 16) if guid else -1 - ((host << 32) + number)
    return Port(
        speed=(speed if speed > 0 else _SLOWEST_PORT) / 8,
        latency=net.amount("latency") * _MICROSECOND,
        wire=(wire, net.number("port") or 0),
        rail=net.number("rail", -1) if net.text("rail") not in ("", "-1") else None,
        plane=net.number("plane", -1) if net.text("plane") not in ("", "-1") else None,
        collnet=bool(net.number("coll") or 0),
    )


def _upward_last(device: Device, above: Device | None) -> None:
    """Let the link upward stand last in every device of a PCIe tree."""
    device.links.sort(key=lambda link: link.target is above)
    for link in device.links:
        if link.kind == Path.PIX and link.target is not above:
            _upward_last(link.target, device)
