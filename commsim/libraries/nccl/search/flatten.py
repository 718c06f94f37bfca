"""Which PCIe switches are two levels only on paper?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.libraries.nccl.search.devices import Kind

if TYPE_CHECKING:
    from commsim.libraries.nccl.search.devices import Device, Machine

_FOURTH, _FIFTH, _DONE = 0x1000C0101000A, 0x1000C03010000, 0xFFFF
_REVISION = 12


def flatten(machine: Machine) -> None:
    """Join what is below the second level of Broadcom's PEX switches to the first: all ports carry their full speed."""
    switch = _first(machine)
    while switch is not None:
        generation = _generation(switch, 0)
        lower = [link.target for link in switch.links if link.target.kind is Kind.PCI]
        for below in [one for one in lower if _generation(one, 1) == generation]:
            _raise(machine, below, switch)
        switch.identity |= _DONE
        switch = _first(machine)


def _first(machine: Machine) -> Device | None:
    return next((switch for switch in machine.devices[Kind.PCI] if _generation(switch, 0)), None)


def _generation(switch: Device, level: int) -> int:
    """The generation of a PEX switch of that level; 0 for any other device."""
    family = switch.identity >> _REVISION
    return 4 if family == _FOURTH else 5 if family == _FIFTH | level else 0


def _raise(machine: Machine, below: Device, switch: Device) -> None:
    """Hang everything below one switch on another instead."""
    for link in [link for link in below.links if link.target is not switch]:
        switch.links.append(link)
        back = next(other for other in link.target.links if other.target is below)
        back.target = switch
    machine.remove(below)
