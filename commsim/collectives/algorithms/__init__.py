"""How do ranks do a collective together? The table of algorithms, one file a family; importing this enters them all."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from commsim.collectives.algorithms.table import (
    ALGORITHMS,
    Algorithm,
    Group,
    algorithm,
    can_reduce,
    serving,
    serving_on,
)

for _family in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_family.name}")

__all__ = ["ALGORITHMS", "Algorithm", "Group", "algorithm", "can_reduce", "serving", "serving_on"]
