"""How is a measurement started on a cluster?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from commsim.cli.cases import cases
from commsim.cli.options import Json, takes
from commsim.cli.output import document
from commsim.measurement.launch.cases import Case
from commsim.measurement.launch.scripts import SCRIPTS, Job
from commsim.units import parse


@takes(wanted=cases)
def launch(
    action: Annotated[Literal["print"], typer.Argument(help="Print the script; you start it.")],
    scheduler: Annotated[Literal["slurm", "mpi", "k8s"], typer.Argument(help="What runs there.")],
    wanted: list[Case],
    nodes: Annotated[int, typer.Option(metavar="N", help="Hosts.")],
    ranks_per_node: Annotated[int, typer.Option(metavar="N", help="One for each GPU.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON lines, where every node sees them.")],
    backend: Annotated[Literal["nccl", "gloo"], typer.Option(help="gloo on CPUs.")] = "nccl",
    timeout: Annotated[str, typer.Option(metavar="TIME", help="How long ranks wait for each other.")] = "5 min",
    image: Annotated[str, typer.Option(metavar="NAME", help="Of the container, for k8s.")] = "IMAGE",
    as_json: Json = False,
) -> None:
    """Print the script that starts a measurement on a cluster."""
    del action  # there is one
    job = Job(tuple(wanted), nodes, ranks_per_node, backend, out, parse(timeout, "s", "timeout", "60 s"), image)
    script = SCRIPTS[scheduler](job)
    if as_json:
        return document({"scheduler": scheduler, "script": script})
    sys.stdout.write(script)
    return None
