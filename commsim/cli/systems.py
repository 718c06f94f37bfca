"""Which machines are in the catalogue?"""

from __future__ import annotations

from commsim.cli.options import Json
from commsim.cli.output import display, document, table
from commsim.hardware.catalogue import load
from commsim.hardware.shelf import names
from commsim.tables.records import records


def systems(as_json: Json = False) -> None:
    """List the machines of the catalogue."""
    rows = records(load(name) for name in names())
    if as_json:
        return document(rows)
    listed = table("system", ">GPUs", "status", "what it is")
    for row in rows:
        listed.add_row(f"[bold]{row['name']}[/]", str(row["gpus"]), row["status"], row["summary"])
    return display(
        listed, "\nGPUs: those of one scale-up domain, which is what a command takes without --nodes or --gpus."
    )
