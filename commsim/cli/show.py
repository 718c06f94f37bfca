"""What is a machine made of, how fast is each link, and who says so?"""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from commsim.cli.options import Calibrated, Json, Sources, machine, takes
from commsim.cli.output import between, display, document, number, points, table, titled
from commsim.figures import at, is_range
from commsim.hardware.catalogue import figures
from commsim.hardware.shelf import sources as documents
from commsim.hardware.system import System
from commsim.libraries.calibration import Calibration, calibration
from commsim.libraries.own import own
from commsim.tables.records import Record, records
from commsim.units import counted
from commsim.units import show as quantity


@takes(machine=machine)
def show(machine: System, calibrated: Calibrated = None, sources: Sources = False, as_json: Json = False) -> None:
    """Show a machine: its accelerator, its links by kind, and where each figure is from."""
    fitted = calibration(calibrated or own(machine).name)
    if as_json:
        return document(_document(machine, fitted))
    cited = titled(_titles(machine)) if sources else []
    remarks = points("taken for granted", machine.assumptions)
    return display(*_heading(machine), "", _parts(machine), "", _links(machine, fitted), *remarks, *cited)


def _document(system: System, fitted: Calibration) -> Record:
    """The machine as one record; `efficiency` is the share of a link that software reaches."""
    kinds = {row["kind"]: row for row in records(system.topology)}
    links = {kind: {**row, "efficiency": _reached(kind, fitted)} for kind, row in kinds.items()}
    parts = {"nodes": system.nodes, "nics_per_node": system.nics_per_node, "switches": system.switches}
    gpu = records(system.accelerator)[0]
    return records(system)[0] | parts | {"figures": gpu, "links": links, "assumptions": list(system.assumptions)}


def _heading(system: System) -> list[str]:
    also = f"; also {', '.join(system.aliases)}" if system.aliases else ""
    said = (system.title, f"{system.name} ({system.status}){also}", system.summary)
    title, *lines = (escape(line) for line in said if line)
    return [f"[bold]{title}[/]", *lines]


def _parts(system: System) -> Table:
    gpu, domain = system.accelerator, system.nodes_per_domain * system.gpus // system.nodes
    switches = ", ".join(f"{count:,} {name}" for name, count in system.switches.items())
    peaks = ", ".join(f"{name} {_span(peak, 'FLOP/s')}" for name, peak in gpu.peak.items())
    lines = {
        "machine": f"{counted(system.gpus, 'GPU')} in {counted(system.nodes, 'node')}, {domain:,} to a scale-up domain",
        "switches": switches,
        "network": _network(system),
        "GPU": f"{gpu.title}, {gpu.architecture}",
        "memory": f"{_span(gpu.memory, 'B')} at {_span(gpu.memory_bandwidth, 'B/s')}",
        "dense": peaks,
    }
    listed = table("", "")
    listed.show_header = False
    for name, line in lines.items():
        if line:
            listed.add_row(name, escape(line))
    return listed


def _network(system: System) -> str:
    """The scale-out network in a line, its NICs in Gb/s as vendors name them; empty when there is none."""
    out = system.scale_out
    if out is None:
        return ""
    speed = _span(out.nic, "B/s", bits=True)
    thin = f", oversubscribed {out.oversubscription:g}:1" if out.oversubscription != 1 else ""
    return f"{out.fabric}, {counted(system.nics_per_node, 'NIC')} of {speed} a node{thin}"


def _links(system: System, fitted: Calibration) -> Table:
    kinds = {link.kind: link for link in system.topology.kinds}
    listed = table("link", ">cables", ">bandwidth", ">latency", ">reached", "bandwidth is")
    for row in records(system.topology):
        link = kinds[row["kind"]]
        speed = (_span(link.bandwidth, "B/s"), _span(link.latency, "s"))
        reached = f"{_reached(link.kind, fitted):.0%}"
        listed.add_row(link.kind, f"{row['count']:,}", *speed, reached, escape(row["source"]))
    return listed


def _titles(system: System) -> dict[str, str]:
    """The documents that the figures of a machine are from."""
    known = documents()
    names = dict.fromkeys(name for figure in figures(system).values() for name in figure.source)
    return {name: known[name].title for name in names if name in known}


def _reached(kind: str, fitted: Calibration) -> float:
    return float(fitted.use(kind).efficiency)


def _span(value: float, dimension: str, *, bits: bool = False) -> str:
    """A figure, or the range in which it lies; a rate in bits when people count it so."""
    low, high = at(value, "low"), at(value, "high")
    if bits:
        ends = [number(end * 8 / 1e9) for end in dict.fromkeys((low, high))]
        return f"{'-'.join(ends)} Gb/s"
    return between(low, high, dimension) if is_range(value) else quantity(value, dimension, 4)
