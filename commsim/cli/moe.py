"""How long do dispatch and combine take on a machine, by which kernels, and what limits them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from commsim.cli.options import option
from commsim.cli.output import between as span
from commsim.cli.output import display, document, number, points, table
from commsim.collectives.moe.routing import Routing
from commsim.errors import InputError
from commsim.figures import is_range
from commsim.hardware.system import System
from commsim.libraries.calibration import NOMINAL, Case
from commsim.libraries.library import Library
from commsim.libraries.moe.kernels import kernels
from commsim.libraries.moe.machine import BY_NAME
from commsim.libraries.moe.timing import NCCL_MODE, Exchange
from commsim.libraries.nccl import Nccl
from commsim.tables.ranges import between
from commsim.tables.records import Record, records
from commsim.units import counted

OPS = tuple(BY_NAME)
_moe = partial(option, "Dispatch and combine")
_COUNTED = {
    "token_expert_pairs": "every copy of a token, one for each of its experts",
    "token_rank_pairs": "a copy of a token for each rank that has an expert of it",
    "token_node_pairs_incl_own": "a copy of a token for each scale-up domain that has an expert of it",
}


@dataclass(frozen=True)
class Asked:
    """What is dispatched or combined, among how many ranks (None: all), and by which kernels."""

    ep: Annotated[int | None, _moe("Ranks that share the experts (all).", "E")] = None
    tokens: Annotated[int | None, _moe("Tokens of each rank.", "T")] = None
    hidden: Annotated[int | None, _moe("Values of a token.", "H")] = None
    top_k: Annotated[int | None, _moe("Experts of a token.", "K")] = None
    experts: Annotated[int | None, _moe("Experts in all.", "X")] = None
    groups: Annotated[int | None, _moe("Scale-up domains of a token at most (any).", "G")] = None
    skew: Annotated[float | None, _moe("Of lognormal popularity: 0 even, 1.07 as measured (0).", "S")] = None
    precision: Annotated[str | None, _moe("bf16, fp8 (with scales), nvfp4 ... (bf16)", "P")] = None
    mode: Annotated[str | None, _moe("normal, hybrid, low_latency, nccl (normal).", "M")] = None
    multiprocessors: Annotated[int | None, _moe("Of each GPU, for the kernels (24).", "N")] = None

    def __bool__(self) -> bool:
        """Whether anything was said at all."""
        return any(value is not None for value in vars(self).values())

    @property
    def routing(self) -> Routing:
        """Where tokens go. InputError when it is not said, or is nowhere."""
        return Routing(self.needed("experts"), self.needed("top_k"), self.groups, self.skew or 0.0)

    def needed(self, name: str) -> int:
        """Return what was said of that name. InputError when nothing was."""
        value: int | None = getattr(self, name)
        if value is None:
            raise InputError(
                name.replace("_", "-"), None, f"--{name.replace('_', '-')} N belongs to dispatch and combine"
            )
        return value


def show(op: str, machine: System, library: Library, given: Asked, *, every: bool, as_json: bool) -> None:
    """Print how long a dispatch or combine takes in one mode, or in every one. InputError for what cannot be."""
    modes = list(_modes(given, library, every=every))
    cases = (NOMINAL, *((Case("high"), Case("low")) if _uncertain(machine) else ()))
    found = [[_timed(op, mode, machine, library, given, case) for case in cases] for mode in modes]
    found.sort(key=lambda ends: ends[0].seconds)
    rows = [_row(*ends) for ends in found]
    if as_json:
        return document(rows)
    first = found[0][0]
    return display(*_heading(first, machine, given), _table(rows), *_notes(found, machine, given))


def refuse(given: Mapping[str, object], expected: str) -> None:
    """Raise InputError at the first option that was given although it says nothing here."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(name.replace("_", "-"), value, expected)


def _modes(given: Asked, library: Library, *, every: bool) -> Iterator[str]:
    """The modes asked for. InputError where an option has no meaning in them."""
    if every and given.mode:
        raise InputError("mode", given.mode, "either --mode or --all (every mode) belongs here")
    modes = [NCCL_MODE, *kernels().kernels] if every else [given.mode or "normal"]
    if NCCL_MODE not in modes and not isinstance(library, Nccl):
        raise InputError("library", library.name, f"kernels do {modes[0]} themselves: take --mode {NCCL_MODE}")
    yield from modes


def _timed(op: str, mode: str, machine: System, library: Library, given: Asked, case: Case) -> Exchange:
    return BY_NAME[op](
        machine,
        given.routing,
        tokens=given.needed("tokens"),
        hidden=given.needed("hidden"),
        ep=given.ep,
        precision=given.precision or "bf16",
        mode=mode,
        multiprocessors=None if mode == NCCL_MODE and given.mode is None else given.multiprocessors,
        library=library,
        case=case,
    )


def _uncertain(machine: System) -> bool:
    return any(is_range(value) for link in machine.topology.kinds for value in (link.bandwidth, link.latency))


def _row(nominal: Exchange, *ends: Exchange) -> Record:
    (row,) = records(nominal)
    return row | {"range": between(*(records(end)[0] for end in ends)) or None}


def _heading(one: Exchange, machine: System, given: Asked) -> list[str]:
    place = escape(f"{counted(one.ranks, 'GPU')} of {machine.name}")
    precision, experts = given.precision or "bf16", f"each to {given.top_k} of {given.experts} experts"
    return [
        f"[bold]{one.op} among {place}[/], {counted(machine.nodes, 'node')}",
        f"{given.tokens:,} tokens a rank of {given.hidden:,} values in {precision}, {experts}",
        "",
    ]


def _table(rows: list[Record]) -> Table:
    ranged = any(row["range"] for row in rows)
    listed = table(
        "\nmode", ">time\nus", *([">time\nrange"] if ranged else ()), ">algbw\nGB/s", ">busbw\nGB/s", "\nlimited by"
    )
    for row in rows:
        low, high = row["range"]["time_s"] if row["range"] else (row["time_s"],) * 2
        ends = [span(low, high, "s")] * ranged
        rates = (f"{row[key] / 1e9:,.1f}" for key in ("algbw_bytes_per_s", "busbw_bytes_per_s"))
        limit = escape(row["bottleneck"].partition(" (")[0])
        listed.add_row(row["algorithm"], f"[bold]{number(row['time_s'] * 1e6, 4)}[/]", *ends, *rates, limit)
    return listed


def _notes(found: list[list[Exchange]], machine: System, given: Asked) -> list[RenderableType]:
    """What is counted, how uneven it is, and what the machine's figures rest on."""
    counts: dict[str, list[str]] = {}
    for first, *_ in found:
        counts.setdefault(first.counts, []).append(first.mode)
    said = [f"algbw of {', '.join(modes)} counts {_COUNTED[what]}, its own too" for what, modes in counts.items()]
    first = found[0][0]
    said += ["busbw is the part of it that leaves the scale-up domain or, in a single one, the rank"]
    if given.skew and first.ranks > 1:
        uneven = given.routing.spread([0] * first.ranks).imbalance
        said += [f"the fullest rank gets {uneven:.2f} times the mean, and all wait for it"]
    return points("notes", [*said, *machine.assumptions])
