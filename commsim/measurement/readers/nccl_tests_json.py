"""What does the JSON of nccl-tests (-J) say?

Schemas 1 to 3, with their quirks: booleans and NaN are texts, the root is padded, two keys are misspelt before 2.17.9,
and `env` holds the whole environment, of which only known settings are kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.measurement import fields
from commsim.measurement.readers.nccl_tests.lines import REGISTRATION
from commsim.measurement.readers.nccl_tests.rows import Layout
from commsim.measurement.readers.nccl_tests.run import Run
from commsim.measurement.readers.nccl_tests.table import Table
from commsim.measurement.records import Measurement, Row, Spread, Timing
from commsim.measurement.settings import knobs
from commsim.measurement.versions import version_of

if TYPE_CHECKING:
    from commsim.measurement.fields import Entry

_GB, _US = 1e9, 1e-6
_MOST_DEVICES, _MOST_RANKS = 1_024, 1_000_000
_SIDES = ("out_of_place", "in_place")
_CONFIG = {
    "nthreads": "threads",
    "ngpus": "gpus_per_thread",
    "minimum_bytes": "min_bytes",
    "maximum_bytes": "max_bytes",
    "warmup_iters": "warmup",
    "iterations": "iterations",
    "aggregated_iterations": "aggregated",
    "validation": "validation",
    "graph": "graph",
}


def recognises(document: Entry) -> bool:
    """Whether an object is a run of nccl-tests."""
    return "config" in document and bool({"results", "nccl_version", "args"} & document.keys())


def read(documents: list[Entry], source: str, *, is_cut: bool) -> list[Measurement]:
    """Return the measurements of each run; `is_cut` says that the text ended early."""
    return [one for document in documents for one in _run(document, source, is_cut=is_cut)]


def _run(document: Entry, source: str, *, is_cut: bool) -> list[Measurement]:
    run = _preamble(document, source)
    results = fields.entries(document.get("results"), f"{source}: results")
    host_time = any("cpu_time" in fields.part(result, side) for result in results for side in _SIDES)
    table = Table(run, Layout(is_host_time=host_time), is_closed=not is_cut and "end_time" in document)
    for number, result in enumerate(results, 1):
        _take(table, result, f"{source}: result {number}")
    table.wrong = "FAILED" if str(fields.part(document, "out_of_bounds").get("okay")) == "false" else ""
    table.average = _average(document)
    if is_cut:
        run.failures.append("the JSON ends early: the run died, or is still running")
    return table.measurements(source)


def _preamble(document: Entry, source: str) -> Run:
    """What ran, where and how."""
    config = fields.entry(document.get("config"), f"{source}: config")
    run = Run(name=_program(document))
    run.settings = {name: str(config[key]) for key, name in _CONFIG.items() if key in config}
    for kind in ("factor", "bytes"):
        if f"step_{kind}" in config:
            run.settings["step"] = f"{config[f'step_{kind}']}({kind})"
    run.settings |= knobs(fields.texts(document, "env")) | _registered(document)
    devices = fields.entries(config.get("devices", document.get("devices")), f"{source}: devices")
    run.devices = _devices(devices, config, f"{source}: devices")
    if document.get("nccl_version") is not None:
        run.version = version_of(fields.whole(document, "nccl_version", source))
    run.failures = [f"the run failed: {said[:160]}" for said in fields.texts(document, "errors")]
    return run


def _registered(document: Entry) -> dict[str, str]:
    """How buffers are registered, which only the arguments say."""
    arguments = document.get("args")
    found = re.findall(REGISTRATION, " ".join(map(str, arguments)) if isinstance(arguments, list) else "")
    return {"local_register": found[-1]} if found else {}


def _devices(devices: list[Entry], config: Entry, where: str) -> dict[int, tuple[int, str, str]]:
    """Group, host and accelerator by rank; where one device of each process is listed, it stands for all of them."""
    listed = sorted(devices, key=lambda one: fields.whole(one, "rank", where))
    own = [fields.whole(config, key, where) if key in config else 1 for key in ("nthreads", "ngpus")]
    processes = len({(str(one.get("hostname")), str(one.get("pid"))) for one in listed})
    each = own[0] * own[1] if processes == len(listed) else 1
    if not 0 < each <= _MOST_DEVICES or each * len(listed) > _MOST_RANKS:
        raise InputError(where, each, "the GPUs of one process belong here")
    places = [(_group(one, where), str(one.get("hostname")), str(one.get("device_info") or "")) for one in listed]
    if each == 1:
        return {fields.whole(one, "rank", where): place for one, place in zip(listed, places)}
    return {n * each + k: place for n, place in enumerate(places) for k in range(each)}


def _group(device: Entry, where: str) -> int:
    return fields.whole(device, "group", where) if "group" in device else 0


def _program(document: Entry) -> str:
    """The name of the test, which only the first argument (without its folder) and the results know."""
    arguments = document.get("args")
    if isinstance(arguments, list) and arguments:
        return str(arguments[0]).rpartition("/")[2]
    results = document.get("results")
    first = results[0] if isinstance(results, list) and results else {}
    return str(first.get("experiment_name") or "") if isinstance(first, dict) else ""


def _take(table: Table, result: Entry, where: str) -> None:
    """Add one result to the table, or say why it is none."""
    size, count = fields.whole(result, "size", where), fields.whole(result, "count", where)
    sides = [_timing(result, side, where) for side in _SIDES]
    faults = [side for side in sides if isinstance(side, str) and side]
    if faults or not any(sides):
        table.broken.append(f"{where} of {size} B: {faults[0] if faults else 'no time'}")
        return
    found = [side if isinstance(side, Timing) else None for side in sides]
    redop, root = fields.text(result, "redop", where, "none").strip() or "none", str(result.get("root", -1)).strip()
    if not root.removeprefix("-").isdecimal():
        raise InputError(f"{where}: root", root, "a rank or -1 belongs here")
    key = (fields.text(result, "type", where), redop, int(root))
    table.rows.setdefault(key, []).append(Row(size, count, *found))


def _timing(result: Entry, side: str, where: str) -> Timing | str:
    """The timing of one side; a text when there is none, saying why unless the side is blank."""
    given = result.get(side)
    if given is None:
        return ""
    of = fields.entry(given, where)
    time = of.get("time", of.get("cpu_time"))
    figures = [time, of.get("alg_bw"), of.get("bus_bw")]
    if not all(fields.is_figure(one) for one in figures) or not time:
        return f"{side} {figures} are no time and bandwidths"
    wrong, spread = of.get("nwrong"), result.get(f"{side}_per_iter")
    return Timing(
        time * _US,
        algbw=of["alg_bw"] * _GB,
        busbw=of["bus_bw"] * _GB,
        wrong=int(wrong) if fields.is_figure(wrong) else None,
        **(_iterations(fields.entry(spread, where), where) if spread else {}),
    )


def _iterations(of: Entry, where: str) -> dict[str, Any]:
    """Spread and samples of a result that was taken with -I."""
    fastest, slowest, p99 = (fields.number(of, f"{key}_us", where) * _US for key in ("min", "max", "p99"))
    times = of.get("per_process_max_times_us") or [of.get("times_us")]
    seconds = fields.samples(times, where) if times != [None] else ()
    return {
        "spread": Spread(fastest, slowest, p99, fields.number(of, "cv_pct", where) / 100),
        "samples": tuple(tuple(one * _US for one in rank) for rank in seconds),
    }


def _average(document: Entry) -> float | None:
    for key, inner in (("average_bus_bandwidth", "bandwidth"), ("average_bus_bandwidith", "bandwidith")):
        found = fields.part(document, key).get(inner)
        if fields.is_figure(found):
            return float(found)
    return None
