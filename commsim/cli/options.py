"""Which options do several commands take? Each is written down once, here."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from commsim.cli.output import note
from commsim.errors import InputError
from commsim.hardware.catalogue import load
from commsim.hardware.system import System
from commsim.libraries.calibration import calibration
from commsim.libraries.gloo import Gloo, gloo_figures
from commsim.libraries.ideal import Ideal
from commsim.libraries.library import Library
from commsim.libraries.nccl import Nccl
from commsim.libraries.nccl.constants import note as version_note


def option(
    title: str,
    said: str,
    metavar: str | None = None,
    *,
    name: str | None = None,
    **more: Any,  # noqa: ANN401 - whatever typer takes
) -> Any:  # noqa: ANN401 - typer says of its options that they are anything
    """Return an option that help shows under a title; it has the name of its parameter where it is given none."""
    names = () if name is None else (name,)
    return typer.Option(*names, metavar=metavar, rich_help_panel=title, help=said, **more)


_machine, _library = functools.partial(option, "Machine"), functools.partial(option, "Library")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, in SI units.")]


def _drawable(file: Path | None) -> Path | None:
    """The file, known to be one that can be drawn before anything is computed; InputError."""
    if file is not None:
        from commsim.plots.canvas import need_drawable

        need_drawable(file)
    return file


Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", callback=_drawable, help="Draw it, too: .png, .svg or .pdf."),
]
Sources = Annotated[bool, typer.Option("--sources", help="Show who says so, too.")]
Calibrated = Annotated[
    str | None,
    _library("What software reaches on each link.", "FILE", name="--calibration"),
]
NicsPerNode = Annotated[int | None, _machine("NICs of each host.", "N")]
Nic = Annotated[str | None, _machine("One direction of a NIC: '400 Gb/s'.", "RATE")]
Network = Annotated[str | None, _machine("infiniband, roce, efa, slingshot ...", "NAME")]
Oversubscription = Annotated[float | None, _machine("Of the fabric: 2 means 2:1.", "R")]


def takes(**makers: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command, for each parameter named here, the arguments and options of its maker.

    `@takes(machine=machine)` turns the parameter `machine` of a command into SYSTEM, --nodes and the others, and calls
    the command with the System that they describe.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        made = {name: inspect.signature(maker, eval_str=True).parameters for name, maker in makers.items()}
        own = inspect.signature(command, eval_str=True).parameters.values()
        spread = [inner for one in own for inner in made.get(one.name, {one.name: one}).values()]
        shown = {one.name: one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in spread}

        @functools.wraps(command)
        def run(**given: Any) -> None:  # noqa: ANN401 - whatever the parameters are
            values = {name: maker(**{key: given[key] for key in made[name]}) for name, maker in makers.items()}
            command(**{one.name: values.get(one.name, given.get(one.name)) for one in own})

        run.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in shown.values()}
        return run

    return decorate


def machine(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="A name (see `commsim systems`) or a file.")],
    nodes: Annotated[int | None, _machine("Hosts (one scale-up domain).", "N")] = None,
    gpus: Annotated[int | None, _machine("GPUs in all.", "N")] = None,
    gpus_per_node: Annotated[int | None, _machine("GPUs used of each host (all).", "N")] = None,
    gpus_per_domain: Annotated[int | None, _machine("GPUs used of each scale-up domain, 64 of an NVL72.", "N")] = None,
    nics_per_node: NicsPerNode = None,
    nic: Nic = None,
    fabric: Network = None,
    oversubscription: Oversubscription = None,
    accelerator: Annotated[str | None, _machine("In place of the system's own.", "NAME")] = None,
) -> System:
    """Return the system that the arguments of every command on a SYSTEM describe."""
    changes = {
        "nodes": nodes,
        "gpus": gpus,
        "gpus_per_node": gpus_per_node,
        "gpus_per_domain": gpus_per_domain,
        "nics_per_node": nics_per_node,
        "nic": nic,
        "fabric": fabric,
        "oversubscription": oversubscription,
        "accelerator": accelerator,
    }
    given = {key: value for key, value in changes.items() if value is not None}
    for key, value in given.items():
        if value == "":
            raise InputError(key, value, "a name or a quantity belongs here; or leave the option out")
    return load(system, **given)


def library(
    library: Annotated[
        Literal["nccl", "rccl", "gloo", "ideal"] | None,
        _library("Who does it (the GPUs' vendor's); ideal is the wire alone."),
    ] = None,
    library_version: Annotated[str | None, _library("Such as 2.27.", "VERSION")] = None,
    calibrated: Calibrated = None,
    nvls: Annotated[bool | None, _library("NVSwitches reduce (they do).", name="--nvls/--no-nvls")] = None,
    sharp: Annotated[bool | None, _library("Network switches reduce (no).", name="--sharp/--no-sharp")] = None,
    symmetric: Annotated[
        bool | None, _library("Buffers are symmetric windows (NCCL 2.27 on).", name="--symmetric")
    ] = None,
) -> Library | None:
    """Return the library that does the collectives, None for the machine's own. InputError for options it has not."""
    given = {
        "library-version": library_version,
        "calibration": calibrated,
        "nvls": nvls,
        "sharp": sharp,
        "symmetric": symmetric,
    }
    if library is None and all(value is None for value in given.values()):
        return None
    if library == "ideal":
        refuse_for_ideal(given)
        return Ideal()
    if library == "gloo":
        refuse_for_ideal(given | {"calibration": None}, "gloo")
        return Gloo(figures=gloo_figures(calibrated or "gloo"))
    name = library or "nccl"
    if symmetric and name != "nccl":
        raise InputError("symmetric", f"--library {name}", "only nccl has symmetric windows")
    fitted = calibration(calibrated or name)
    if library_version is not None:
        if not re.fullmatch(r"\d+\.\d+(\.\d+)?", library_version):
            raise InputError("library-version", library_version, "a version such as 2.27 or 2.27.3 belongs here")
        if said := version_note(library_version):
            note(said)
    return Nccl(name, fitted, nvls is not False, bool(sharp), version=library_version or "", symmetric=bool(symmetric))


_ONE_WAY = {
    "ideal": "the library 'ideal' takes the cheapest of all schedules: leave this out",
    "gloo": "the library 'gloo' has one way of doing each operation: leave this out",
}


def refuse_for_ideal(given: Mapping[str, object], library: str = "ideal") -> None:
    """Raise InputError at the first option that is given: the libraries `ideal` and `gloo` have none."""
    for name, value in given.items():
        if value is not None:
            raise InputError(name, value, _ONE_WAY[library])
