"""How fast are the network ports, and to which fabric do they belong?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.hardware.devices import PORTS, identity
from commsim.hardware.generations import port_of_slot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commsim.hardware.nccl_xml.elements import Element
    from commsim.hardware.nccl_xml.inventory import Port
    from commsim.hardware.topology import Link

_MEGABIT, _GIGABIT = 1e6 / 8, 1e9 / 8
_NCCL_DEFAULT = 10_000
_FASTEST = 10_000_000
_AMAZON, _CRAY, _INFINIBAND_CLASS = "1d0f", "17db", "0x0207"


def speed_of(port: Port, slot: Callable[[Element], Link], notes: dict[str, None]) -> float:
    """Return the speed of a port (B/s): as NCCL says it, else of its product, else what its slot keeps busy.

    What had to be assumed is added to `notes`.
    """
    for net in port.nets:
        net.amount("latency")
    said = port.nets[0].number("speed", -1, _FASTEST) if port.nets else None
    if said is not None and said > 0:
        return said * _MEGABIT
    pci = port.places[0]
    product = identity(pci.text("vendor"), pci.text("device"))
    if product in PORTS:
        notes[f"the file gives no speed of {product} ports: {PORTS[product]} Gb/s, the fastest it was made with"] = None
        return PORTS[product] * _GIGABIT
    if pci.tag == "cpu":
        notes[f"{port.nets[0].where}: no speed: 10 Gb/s is taken, as NCCL does"] = None
        return _NCCL_DEFAULT * _MEGABIT
    speed = port_of_slot(slot(pci))
    notes[f"the file gives no speed of network ports: {speed / _GIGABIT:g} Gb/s, what their slots keep busy"] = None
    return speed


def fabric_of(xml: Mapping[str, str]) -> str:
    """Return the scale-out fabric of a port, by the attributes of its PCI device and its net: vendor, class, name.

    A port without a PCI device is a socket: TCP.
    """
    vendor = identity(xml.get("vendor", ""), xml.get("device", ""))[:4]
    name = xml.get("name", "")
    if vendor == _AMAZON or name.startswith(("efa", "rdmap")):
        return "efa"
    if vendor == _CRAY or name.startswith("cxi"):
        return "slingshot"
    if "class" not in xml:
        return "tcp"
    is_infiniband = xml.get("coll") == "1" or xml["class"].startswith(_INFINIBAND_CLASS)
    return "infiniband" if is_infiniband else "roce"
