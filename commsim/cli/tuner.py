"""What does NCCL choose on a machine, and how long does it believe that takes?"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import RenderableType
from rich.table import Table

from commsim.cli.options import Json, machine, option, takes
from commsim.cli.output import display, document, note, number, points, table
from commsim.cli.tuner_table import entries_document, entries_shown, logged
from commsim.errors import InputError
from commsim.libraries.nccl import constants
from commsim.libraries.nccl.communicator import Communicator, Cpu
from commsim.libraries.nccl.form import of_dump, of_system
from commsim.libraries.nccl.graph_xml import read_graphs
from commsim.libraries.nccl.graphs import Graph
from commsim.libraries.nccl.knobs import Knobs
from commsim.libraries.nccl.plugin import plugin_csv
from commsim.libraries.nccl.tuner import Picks, tune
from commsim.libraries.nccl.tuner import Table as Tuned
from commsim.tables.records import Record
from commsim.units import counted, parse_sizes, show_size

Given = dict[str, Any]
CPUS: tuple[Cpu, ...] = get_args(Cpu)
_searched = partial(option, "A searched graph")
_SIZES = "1KiB..8GiB"


def asked(**given: Any) -> Given:  # noqa: ANN401 - whatever the options are
    """Return the options of every command on a SYSTEM as they were given; SYSTEM itself may be left out here."""
    return {key: value for key, value in given.items() if value is not None}


_parameters = inspect.signature(machine, eval_str=True).parameters
_system = Annotated[str | None, typer.Argument(metavar="[SYSTEM]", help="A name (see `commsim systems`) or a file.")]
asked.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        one.replace(default=None, annotation=_system) if one.name == "system" else one
        for one in (one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in _parameters.values())
    ]
)


def knobs(
    collnet: Annotated[bool, typer.Option("--collnet", help="NCCL_COLLNET_ENABLE=1: network switches reduce.")] = False,
    nvls: Annotated[bool, typer.Option("--nvls/--no-nvls", help="NVSwitches reduce (they do).")] = True,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NCCL_X=Y", help="Any setting: NCCL_ALGO=ring; may be repeated."),
    ] = None,
) -> Knobs:
    """Return NCCL's settings. InputError for what is no setting, or one that this model does not know."""
    environment = {} if nvls else {"NCCL_NVLS_ENABLE": "0"}
    environment |= {"NCCL_COLLNET_ENABLE": "1"} if collnet else {}
    for one in setting or ():
        name, equals, value = one.partition("=")
        if not equals:
            raise InputError("set", one, "a setting such as NCCL_ALGO=ring belongs here")
        environment[name] = value
    for name in Knobs.unread(environment):
        raise InputError("set", name, "this setting is not mirrored: leave it out")
    return Knobs.of(environment)


@takes(given=asked, settings=knobs)
def tuner(
    given: Given,
    graph: Annotated[Path | None, _searched("In place of SYSTEM: what NCCL_GRAPH_DUMP_FILE wrote.", "FILE")] = None,
    compute_capability: Annotated[int | None, _searched("Of its GPUs: 90 for 9.0.", "CC")] = None,
    cpu: Annotated[str | None, _searched("Its CPUs: intel, amd, arm ...")] = None,
    library_version: Annotated[str, typer.Option(metavar="VERSION", help="Of NCCL, such as 2.27 (the newest).")] = "",
    sizes: Annotated[str, typer.Option(metavar="SIZES", help="1KiB..8GiB, each twice the last; or 1K,1M.")] = _SIZES,
    log: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="In place of all: show what NCCL printed (NCCL_DEBUG_SUBSYS=TUNING); or -."),
    ] = None,
    plugin: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the choices as NCCL's sample tuner plugin reads them.")
    ] = None,
    *,
    settings: Knobs,
    as_json: Json = False,
) -> None:
    """Show what NCCL's own tuner picks: graphs, latency and bandwidth of every way, and the choice for each size."""
    if log is not None:
        named = {
            "graph": graph,
            "set": None if settings == Knobs.of({}) else "NCCL's settings",
            "compute-capability": compute_capability,
            "cpu": cpu,
            "plugin": plugin,
        }
        _refuse({**given, **named, "library-version": library_version or None}, "a log takes its place: leave it out")
        return logged(log, as_json=as_json)
    if constants.note(library_version):
        note(constants.note(library_version))
    if graph is None:
        formed = _of_machine(given, settings, library_version)
        _refuse({"compute-capability": compute_capability, "cpu": cpu}, "it belongs beside --graph")
    else:
        formed = _of_graph(graph, given, compute_capability, cpu)
        formed = replace(formed, knobs=settings, constants=constants.constants(library_version))
    tuned = tune(formed)
    picks = [tuned.picks(op, parse_sizes(sizes)) for op in tuned.entries]
    if plugin:
        plugin.write_text(plugin_csv(formed, picks), encoding="utf-8")
    if as_json:
        return document(_document(tuned, picks))
    return display(
        *_heading(formed), _graphs(formed), "", entries_shown(tuned.entries), "", _choices(picks), *_remarks(formed)
    )


def _of_machine(given: Given, settings: Knobs, version: str) -> Communicator:
    """The communicator of a SYSTEM; a dump of NCCL's own counts as it stands, unless something in it is to change."""
    if "system" not in given:
        raise InputError("SYSTEM", None, "a name or a file belongs here, or --graph FILE")
    if set(given) <= {"system", "nodes"}:
        formed = of_dump(Path(given["system"]), given.get("nodes"), knobs=settings, version=version)
        if formed:
            return formed
    return of_system(machine(**given), knobs=settings, version=version)


def _of_graph(graph: Path, given: Given, capability: int | None, cpu: str | None) -> Communicator:
    """The communicator of nodes on which NCCL found these graphs."""
    per_node, nodes = given.pop("gpus_per_node", None), given.pop("nodes", 1)
    for name, value in (("gpus-per-node", per_node), ("compute-capability", capability)):
        if value is None:
            raise InputError(name, None, "a file of graphs does not say it: it belongs beside --graph")
    _refuse(given, "a file of graphs takes the place of a SYSTEM: leave it out")
    return Communicator(per_node * nodes, nodes, capability or 0, read_graphs(graph), _cpu(cpu or "intel"))


def _cpu(name: str) -> Cpu:
    if name not in CPUS:
        raise InputError("cpu", name, "NCCL tells no such processors apart", among=CPUS)
    return next(cpu for cpu in CPUS if cpu == name)


def _refuse(options: Given, expected: str) -> None:
    """Refuse the first option that was given where it has no meaning."""
    for name, value in options.items():
        if value is not None:
            raise InputError(name.replace("_", "-"), value, expected)


def _document(tuned: Tuned, picks: list[Picks]) -> Record:
    graphs = {name: _graph(one) for name, one in tuned.communicator.graphs.named().items()}
    return {
        "graphs": graphs,
        "table": entries_document(tuned.entries),
        "picks": [row for pick in picks for row in _rows(pick)],
    }


def _graph(found: Graph) -> Record:
    return {
        "pattern": int(found.pattern),
        "channels": found.channels,
        "speed_intra_bytes_per_s": found.speed_intra,
        "speed_inter_bytes_per_s": found.speed_inter,
        "type_intra": found.type_intra.name,
        "type_inter": found.type_inter.name,
        "same_channels": found.same_channels,
        "cross_nic": found.cross_nic,
        "latency_inter_s": found.latency_inter,
    }


def _rows(picks: Picks) -> list[Record]:
    columns = zip(picks.sizes.tolist(), picks.algorithms, picks.protocols, picks.seconds.tolist())
    keys = ("size_bytes", "algorithm", "protocol", "time_s")
    return [{"op": picks.op, **dict(zip(keys, (int(size), *rest)))} for size, *rest in columns]


def _heading(comm: Communicator) -> list[str]:
    title = f"{counted(comm.ranks, 'rank')} in {counted(comm.nodes, 'node')} of NCCL's"
    version = f"NCCL {comm.constants.version}, {counted(comm.channels, 'channel')} for rings and trees"
    return [f"[bold]{title}[/], compute capability {comm.capability / 10:.1f}, {comm.cpu} CPUs", version, ""]


def _graphs(comm: Communicator) -> Table:
    """What the search found; `path` is the farthest between GPUs and to NICs."""
    listed = table("graph", ">channels", ">GB/s between\nGPUs", ">GB/s to the\nnetwork", "\npath", "\nshape")
    for name, found in comm.graphs.named().items():
        if found.channels:
            speeds = [number(speed / 1e9) for speed in (found.speed_intra, found.speed_inter)]
            path = f"{found.type_intra.name}/{found.type_inter.name}"
            shape = found.pattern.name.lower().replace("_", " ")
            listed.add_row(name.replace("_", " "), str(found.channels), *speeds, path, shape)
    return listed


def _choices(picks: list[Picks]) -> Table:
    """The choice and the time in us for each size; collectives with the same choices share a column."""
    groups: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for pick in picks:
        taken = tuple(zip((pick.names[index] for index in pick.chosen), pick.seconds.tolist()))
        groups.setdefault(taken, []).append(pick.op)
    listed = table("size", *("\n".join(ops) for ops in groups.values()))
    sizes = max((pick.sizes.tolist() for pick in picks), key=len)
    for row, size in enumerate(sizes):
        cells = (taken[row] if row < len(taken) else ("", 0.0) for taken in groups)
        listed.add_row(show_size(size), *(name and f"{name} {number(time * 1e6)}" for name, time in cells))
    return listed


def _remarks(comm: Communicator) -> list[RenderableType]:
    asked_in_vain = comm.knobs.collnet_enable and not comm.collnet
    return points(
        "notes", ["CollNet was asked for, and NCCL finds no network here that reduces"][: bool(asked_in_vain)]
    )
