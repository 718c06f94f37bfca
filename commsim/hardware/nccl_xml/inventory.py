"""Which GPUs, PCIe switches, network ports and processors does the file list, and in which hosts?"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from commsim.errors import InputError
from commsim.hardware.devices import AMD, NVIDIA, identity

if TYPE_CHECKING:
    from commsim.hardware.nccl_xml.elements import Element

GPU_TAGS = ("gpu", "apu")
_GPU_CLASSES, _SURE_GPU_CLASSES, _NIC_CLASS = ("0x03", "0x12"), ("0x0302", "0x0380", "0x12"), "0x02"
_LAST = 10**9


@dataclass(frozen=True, eq=False)
class Gpu:
    """A GPU: its host, its PCI device and, unless the file is a skeleton, what NCCL says of it."""

    host: int
    pci: Element
    said: Element | None

    @property
    def rank(self) -> int | None:
        """Its rank, None when the file gives none (or -1)."""
        rank = self.said.number("rank", -1) if self.said else None
        return None if rank == -1 else rank

    def links(self, *tags: str) -> list[Element]:
        """Return what NCCL says of its links: `nvlink`, `xgmi`, `c2c`."""
        return self.said.each(*tags) if self.said else []

    @property
    def unranked(self) -> tuple[int, int, str]:
        """What GPUs without ranks are ordered by: host, number, PCI address."""
        return (self.host, (self.said and self.said.number("dev")) or 0, self.pci.text("busid").lower())


@dataclass(eq=False)
class Port:
    """A port of a network adapter: what NCCL says of it, and the PCI devices (or the CPU) that lead to it."""

    host: int
    nets: list[Element] = field(default_factory=list)
    places: list[Element] = field(default_factory=list)

    @property
    def order(self) -> tuple[int, int, str]:
        """What ports are ordered by: host, NCCL's number, PCI address."""
        dev = self.nets[0].number("dev") if self.nets else None
        return (self.host, _LAST if dev is None else dev, self.places[0].text("busid").lower())


@dataclass(eq=False)
class Inventory:
    """What a file lists: GPUs in the order of their ranks, ports in the order of their numbers, the rest as it stands.

    In a skeleton without any `<gpu>` (or any `<net>`), PCI classes tell which devices are GPUs (or ports).
    """

    gpus_by_class: bool = False
    ports_by_class: bool = False
    cpus: list[tuple[int, Element]] = field(default_factory=list)
    switches: list[tuple[int, Element]] = field(default_factory=list)
    gpus: list[Gpu] = field(default_factory=list)
    ports: list[Port] = field(default_factory=list)
    unused: list[Element] = field(default_factory=list)

    @property
    def hosts(self) -> list[int]:
        """The hosts in the order of the ranks of their GPUs."""
        return list(dict.fromkeys(gpu.host for gpu in self.gpus))

    def of(self, host: int) -> Inventory:
        """Return what one host has."""
        return Inventory(
            self.gpus_by_class,
            self.ports_by_class,
            [entry for entry in self.cpus if entry[0] == host],
            [entry for entry in self.switches if entry[0] == host],
            [gpu for gpu in self.gpus if gpu.host == host],
            [port for port in self.ports if port.host == host],
        )


def take(root: Element) -> Inventory:
    """Return what the file lists. InputError for what has no place in a machine, stands twice, or has no clear rank."""
    tags = {element.tag for element in root.walk()}
    found = Inventory(gpus_by_class=not tags & set(GPU_TAGS), ports_by_class="net" not in tags)
    _no_strays(root, ("pci", "nic", *GPU_TAGS), "nothing joins it to the rest; a <cpu> belongs around it")
    hashes = [cpu.text("host_hash") for cpu in root.each("cpu")]
    one_host = len({key for key in hashes if key}) <= 1
    shared: dict[tuple[int, str, str], Port] = {}
    for cpu, key in zip(root.each("cpu"), hashes):
        host = 0 if one_host else hashes.index(key)
        found.cpus.append((host, cpu))
        _no_strays(cpu, GPU_TAGS, "its PCI device belongs around it")
        _take_ports(cpu, host, found, shared)
        _take_below(cpu, host, found, shared)
    _only_once(found)
    found.gpus = _ordered(root, found.gpus)
    found.ports.sort(key=lambda port: port.order)
    return found


def _no_strays(place: Element, tags: tuple[str, ...], expected: str) -> None:
    strays = place.each(*tags)
    if strays:
        raise InputError(strays[0].where, f"<{strays[0].tag}> in a <{place.tag}>", expected)


_Shared = dict[tuple[int, str, str], Port]


def _take_below(place: Element, host: int, found: Inventory, shared: _Shared) -> bool:
    """Take what stands below a cpu or a switch; tell whether anything of use does."""
    any_use = False
    for pci in place.each("pci"):
        at, device = len(found.switches), _take_device(pci, host, found, shared)
        bridge = _take_below(pci, host, found, shared)
        if device and bridge:
            raise InputError(pci.where, "a device with devices below it", "only a bridge has devices below it")
        if bridge:
            found.switches.insert(at, (host, pci))
        any_use = any_use or device or bridge
    return any_use


def _take_device(pci: Element, host: int, found: Inventory, shared: _Shared) -> bool:
    """Take the device when it is a GPU or a network adapter, and tell so."""
    gpus = pci.each(*GPU_TAGS)
    if len(gpus) > 1:
        raise InputError(
            pci.where, f"{len(gpus)} GPUs in one device", "one <gpu> belongs here: a package, not its parts"
        )
    if gpus or (found.gpus_by_class and _looks_like_gpu(pci)):
        found.gpus.append(Gpu(host, pci, gpus[0] if gpus else None))
        return True
    if found.ports_by_class and pci.text("class").startswith(_NIC_CLASS):
        found.ports.append(Port(host, [], [pci]))
        return True
    return _take_ports(pci, host, found, shared)


def _looks_like_gpu(pci: Element) -> bool:
    """Tell a GPU by its class: a display adapter counts only of a vendor of GPUs (a server has one for its console)."""
    if not identity(pci.text("vendor"), pci.text("device")):
        return pci.text("class").startswith(_SURE_GPU_CLASSES)
    vendor = pci.text("vendor").lower().removeprefix("0x")
    return pci.text("class").startswith(_GPU_CLASSES) and vendor in (NVIDIA, AMD)


def _take_ports(place: Element, host: int, found: Inventory, shared: _Shared) -> bool:
    """Take the ports of an adapter, and tell whether there are any.

    The same guid and port number in two places is one port with two ways to it: NCCL lets them share its bandwidth.
    """
    nets = [net for nic in place.each("nic") for net in nic.each("net")]
    used = [net for net in nets if net.text("dev") and net.text("net") != "0"]
    found.unused += [net for net in nets if net not in used]
    for net in used:
        guid = net.text("guid").lower().removeprefix("0x").lstrip("0")
        key = (host, guid or str(id(net)), net.text("port"))
        if key not in shared:
            shared[key] = Port(host)
            found.ports.append(shared[key])
        shared[key].nets.append(net)
        shared[key].places += [place] if place not in shared[key].places else []
    return bool(used)


def _only_once(found: Inventory) -> None:
    """Refuse an address that stands twice in a host: the tree would hold a loop."""
    seen: set[tuple[int, str]] = set()
    places = dict.fromkeys((port.host, place) for port in found.ports for place in port.places if place.tag == "pci")
    for host, pci in [*found.switches, *((gpu.host, gpu.pci) for gpu in found.gpus), *places]:
        address = pci.text("busid").lower()
        if not address:
            raise InputError(f"{pci.where}: busid", "", "a PCI address such as 0000:18:00.0 belongs here")
        if (host, address) in seen:
            raise InputError(f"{pci.where}: busid", address, "stands twice in this host; PCIe is a tree")
        seen.add((host, address))


def _ordered(root: Element, gpus: list[Gpu]) -> list[Gpu]:
    """The GPUs in the order of their ranks; of their numbers or PCI addresses when no GPU has a rank."""
    if not gpus:
        raise InputError(root.where, "no GPU", "a <gpu>, or a pci device of class 0x0302, 0x0380 or 0x12, belongs here")
    by_rank: dict[int | None, Gpu] = {}
    for gpu in gpus:
        if gpu.rank is not None and gpu.rank in by_rank:
            raise InputError(f"{gpu.pci.where}: rank", gpu.rank, "stands twice; every GPU has a rank of its own")
        by_rank.setdefault(gpu.rank, gpu)
    if list(by_rank) == [None]:
        return sorted(gpus, key=lambda gpu: gpu.unranked)
    if None in by_rank:
        raise InputError(
            by_rank[None].pci.where, "no rank", "NCCL leaves such a GPU out; every <gpu> needs one, or none"
        )
    ordered = [by_rank[rank] for rank in sorted(rank for rank in by_rank if rank is not None)]
    blocks = [host for host, _ in groupby(ordered, key=lambda gpu: gpu.host)]
    if len(blocks) > len(set(blocks)):
        raise InputError(root.where, "hosts interleaved", "the ranks of one host_hash belong next to each other")
    return ordered
