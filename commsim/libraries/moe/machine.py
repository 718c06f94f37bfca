"""How long does a dispatch or a combine take among the GPUs of a machine?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.collectives.layout import Layout
from commsim.errors import InputError
from commsim.libraries.calibration import NOMINAL, Case
from commsim.libraries.moe.payload import Load, token_bytes
from commsim.libraries.moe.timing import Exchange, Where, exchange
from commsim.libraries.own import own

if TYPE_CHECKING:
    from commsim.collectives.moe.routing import Routing
    from commsim.hardware.system import System
    from commsim.libraries.library import Library


def dispatch(
    system: System,
    routing: Routing,
    *,
    tokens: int,
    hidden: int,
    ep: int | None = None,
    precision: str = "bf16",
    mode: str = "normal",
    multiprocessors: int | None = None,
    library: Library | None = None,
    case: Case = NOMINAL,
) -> Exchange:
    """Return how the tokens of each rank, `hidden` values each, go to their experts; `ep` ranks (all) share these.

    As many groups of `ep` neighbours as there are act at once. `mode` is `normal`, `hybrid`, `low_latency` or `nccl`
    (see `exchange`). InputError for whatever is unknown, or more than the machine has.
    """
    where, by = _where(system, ep, case), own(system, library)
    _need_multiprocessors(system, multiprocessors)
    load = Load(tokens, token_bytes(hidden, precision))
    return exchange("dispatch", load, routing, where, mode=mode, multiprocessors=multiprocessors, library=by)


def combine(
    system: System,
    routing: Routing,
    *,
    tokens: int,
    hidden: int,
    ep: int | None = None,
    precision: str = "bf16",
    mode: str = "normal",
    multiprocessors: int | None = None,
    library: Library | None = None,
    case: Case = NOMINAL,
) -> Exchange:
    """Return how the experts' results come back and are added: as `dispatch`, backwards."""
    where, by = _where(system, ep, case), own(system, library)
    _need_multiprocessors(system, multiprocessors)
    load = Load(tokens, token_bytes(hidden, precision))
    return exchange("combine", load, routing, where, mode=mode, multiprocessors=multiprocessors, library=by)


BY_NAME = {"dispatch": dispatch, "combine": combine}


def _need_multiprocessors(system: System, given: int | None) -> None:
    """InputError for more than a GPU has, where that is known."""
    chip = system.accelerator
    if given is not None and chip.multiprocessors is not None and given > chip.multiprocessors:
        raise InputError("multiprocessors", given, f"at most the {chip.multiprocessors} of {chip.title} belong here")


def _where(system: System, ep: int | None, case: Case) -> Where:
    ranks = system.gpus if ep is None else ep
    if isinstance(ranks, bool) or not 1 <= ranks <= system.gpus:
        raise InputError("ep", ranks, f"1 to {system.gpus} belong here: the machine's GPUs (--nodes N takes more)")
    return Where(Layout(((ranks, 1),), ((system.gpus // ranks, ranks),)), system.topology, case)
