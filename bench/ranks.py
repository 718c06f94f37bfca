"""Who am I among the ranks? What torchrun, Slurm and MPI say in the environment, each in its own words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS")
_LOCAL = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID",
)
_FIRST_PORT, _PORTS = 20_000, 20_000


@dataclass(frozen=True)
class Place:
    """One rank of a run: its number, how many there are, its number on its host, and where rank 0 is met."""

    rank: int
    world: int
    local: int
    address: str
    port: int


def place(environment: Mapping[str, str]) -> Place:
    """Return the place that the environment gives; InputError where nothing started this as a rank, or half did."""
    rank, world = _first(environment, _RANK), _first(environment, _WORLD)
    if rank is None or world is None:
        started = "start it with `commsim bench`, torchrun, srun or mpirun, or set RANK and WORLD_SIZE"
        raise InputError("environment", None, f"no rank is given: {started}")
    if not rank < world:
        raise InputError("RANK", rank, f"a number below WORLD_SIZE, {world}, belongs here")
    local = _first(environment, _LOCAL)
    return Place(rank, world, rank if local is None else local, _address(environment, world), _port(environment))


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        if name in environment:
            if not environment[name].isdecimal():
                raise InputError(name, environment[name], "a whole number belongs here")
            return int(environment[name])
    return None


def _address(environment: Mapping[str, str], world: int) -> str:
    """Where rank 0 is: as torchrun says, else Slurm's first host; alone, this machine."""
    if "MASTER_ADDR" in environment:
        return environment["MASTER_ADDR"]
    if "SLURM_LAUNCH_NODE_IPADDR" in environment:
        return environment["SLURM_LAUNCH_NODE_IPADDR"]
    nodes = environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST") or ""
    if nodes:
        return first_host(nodes)
    if world == 1 or _is_one_host(environment):
        return "localhost"
    raise InputError("MASTER_ADDR", None, "the host of rank 0 belongs here (mpirun -x MASTER_ADDR=...)")


def _is_one_host(environment: Mapping[str, str]) -> bool:
    local = environment.get("OMPI_COMM_WORLD_LOCAL_SIZE", environment.get("MPI_LOCALNRANKS"))
    return local is not None and local == environment.get("OMPI_COMM_WORLD_SIZE", environment.get("PMI_SIZE"))


def first_host(nodes: str) -> str:
    """Return the first host of a list as Slurm writes it: `n[003-006,9],m1` begins with n003."""
    found = re.match(r"([^,\[]+)(?:\[(\d+)[^\]]*\]([^,\[]*))?", nodes)
    if found is None:
        raise InputError("SLURM_JOB_NODELIST", nodes, "a list of hosts belongs here")
    return f"{found[1]}{found[2] or ''}{found[3] or ''}"


def _port(environment: Mapping[str, str]) -> int:
    """The port of rank 0; where only Slurm is there, one that follows from the job, the same for every rank."""
    given = environment.get("MASTER_PORT")
    if given is None:
        return _FIRST_PORT + int(environment.get("SLURM_JOB_ID", "0")) % _PORTS
    most = 65_535
    if not given.isdecimal() or not 0 < int(given) <= most:
        raise InputError("MASTER_PORT", given, f"a port from 1 to {most} belongs here")
    return int(given)
