"""How long is a training step, what should its network deliver, and what do stragglers cost?

Everything a user needs is an attribute of this package, imported from its room when it is first asked for, so that
`import commsim` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commsim.collectives.layout import Layout as Layout
    from commsim.collectives.price import price as price
    from commsim.errors import CommsimError as CommsimError
    from commsim.errors import InputError as InputError
    from commsim.hardware.catalogue import load as load
    from commsim.hardware.system import System as System
    from commsim.hardware.topology import Topology as Topology

__version__ = "0.1.0"

_ROOMS = {
    "CommsimError": "commsim.errors",
    "InputError": "commsim.errors",
    "Layout": "commsim.collectives.layout",
    "System": "commsim.hardware.system",
    "Topology": "commsim.hardware.topology",
    "load": "commsim.hardware.catalogue",
    "price": "commsim.collectives.price",
}
"""Where each public name lives. The imports above say the same to type checkers; tests/house keeps the two alike."""

__all__ = ["__version__", *_ROOMS]  # noqa: PLE0604 - the keys are texts


if not TYPE_CHECKING:  # else every misspelt name would pass for an object

    def __getattr__(name: str) -> object:
        """Return the public name from its room (PEP 562). AttributeError when there is none."""
        if name not in _ROOMS:
            raise AttributeError(f"module 'commsim' has no attribute {name!r}")
        return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    """Return what a person sees after `commsim.` and the tabulator."""
    return sorted(__all__)
