"""Which small machines do the tests of topology files describe? Pieces of XML to build them from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.hardware.fabrics import members

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commsim.hardware.system import System

GEN5, GEN4, GEN3 = "32.0 GT/s PCIe", "16.0 GT/s PCIe", "8.0 GT/s PCIe"
H100, A100, V100 = "0x2330", "0x20b2", "0x1db5"
INTEL = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"'
UNKNOWN = "fffffff:ffff:ff.0"


def tag(name: str, inside: Iterable[str] = (), /, **attributes: object) -> str:
    """Return an element; an attribute that is None is left out."""
    said = "".join(f' {key}="{value}"' for key, value in attributes.items() if value is not None)
    return f"<{name}{said}>{''.join(inside)}</{name}>"


def pci(busid: str, *inside: str, kind: str = "0x060400", **more: object) -> str:
    """Return a PCI device; without more it is a bridge in a PCIe 5 slot of 16 lanes."""
    return tag("pci", inside, busid=busid, **{"class": kind}, **({"link_speed": GEN5, "link_width": 16} | more))


def gpu(
    busid: str, rank: int | None, *links: str, sm: int | None = 90, device: str | None = H100, **more: object
) -> str:
    """Return an NVIDIA GPU (an H100 unless said otherwise) with its links."""
    inner = tag("gpu", links, dev=rank, sm=sm, rank=rank, gdr=1)
    return pci(busid, inner, kind="0x030200", **({"vendor": "0x10de", "device": device} | more))


def to_switch(count: int = 18, target: str = UNKNOWN) -> str:
    """Return NVLinks to NVSwitches."""
    return tag("nvlink", target=target, count=count, tclass="0x068000")


def to_gpu(target: str, count: int = 4) -> str:
    """Return NVLinks to another GPU."""
    return tag("nvlink", target=target, count=count, tclass="0x030200")


def net(dev: int | None, speed: float | str | None = 400_000, **more: object) -> str:
    """Return a network port."""
    return tag(
        "net",
        (),
        **({"name": f"mlx5_{dev}", "dev": dev, "speed": speed, "port": 1, "guid": f"0x{(dev or 0) + 77}"} | more),
    )


def nic(busid: str, *nets: str, kind: str = "0x020700", **more: object) -> str:
    """Return a network adapter (InfiniBand unless said otherwise) with its ports."""
    return pci(busid, tag("nic", nets), kind=kind, **({"vendor": "0x15b3", "device": "0x1021"} | more))


def cpu(numaid: int, *inside: str, host: str | None = "0x1", processors: str = INTEL) -> str:
    """Return a CPU."""
    hashed = f' host_hash="{host}"' if host else ""
    return f'<cpu numaid="{numaid}"{hashed} {processors}>{"".join(inside)}</cpu>'


def box(*cpus: str, version: int = 1) -> str:
    """Return a whole file."""
    return f'<system version="{version}">{"".join(cpus)}</system>'


def pair(*, links: str = "") -> str:
    """Return a box of two sockets, with one H100 and one NIC under a switch of each."""
    return box(
        cpu(0, pci("0000:10:00.0", gpu("0000:11:00.0", 0, links), nic("0000:12:00.0", net(0)))),
        cpu(1, pci("0000:20:00.0", gpu("0000:21:00.0", 1, links), nic("0000:22:00.0", net(1)))),
    )


def wires(system: System) -> dict[tuple[str, str], tuple[str, float]]:
    """Return every wire of the node: kind and count by its ends."""
    return {(u, v): (data["link"].kind, data["count"]) for u, v, data in system.topology.cell.edges(data=True)}


def parts(system: System) -> dict[str, int]:
    """Return how many vertices of each part a node (with the tiers above it) has."""
    cell = system.topology.cell
    return {part: len(members(cell, part)) for part in sorted({str(part) for _, part in cell.nodes(data="part")})}


def nvlink_bandwidth(system: System, name: str = "gpu0") -> float:
    """Return one direction of all NVLinks (or xGMI links) of a GPU together, B/s."""
    out = system.topology.cell.out_edges(name, data=True)
    return float(sum(d["link"].bandwidth * d["count"] for _, _, d in out if d["link"].kind[:4] in ("nvli", "xgmi")))


def rack(hosts: int, *, gpus: int = 2, **more: Any) -> str:  # noqa: ANN401 - attributes of an element
    """Return an NVLink domain of several hosts, which all use the same PCI addresses."""

    def tray(host: int) -> str:
        first = host * gpus
        inside = [gpu(f"0000:{n}1:00.0", first + n, to_switch(), sm=100, device="0x2941", **more) for n in range(gpus)]
        return cpu(0, *inside, nic("0000:f1:00.0", net(host)), host=f"0x{host + 1}", processors='arch="arm64"')

    return box(*map(tray, range(hosts)))


def amd(busid: str, rank: int, *targets: str, gcn: str | None = "gfx942", device: str | None = "0x74a1") -> str:
    """Return an AMD GPU as RCCL dumps it."""
    links = [tag("xgmi", target=target, count=1, tclass="0x120000") for target in targets]
    inner = tag("gpu", links, dev=rank, sm=304, gcn=gcn, arch=38911, rank=rank, gdr=1)
    return pci(busid, inner, kind="0x120000", vendor="0x1002", device=device)
