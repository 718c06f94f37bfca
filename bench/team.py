"""How do ranks find each other, agree, and hand their samples over?"""

from __future__ import annotations

import json
import os
import socket
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from commsim.errors import CommsimError, InputError, LackError
from commsim.measurement.launch.whereabouts import JOINING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bench.ranks import Place
    from commsim.units import Seconds

_STORE_POLL = timedelta(seconds=2)


class Team:
    """All ranks of a run as one of them sees them.

    What is measured runs on groups of the backend; what the ranks tell each other goes over gloo and the store.
    """

    def __init__(self, at: Place, backend: str, timeout: Seconds) -> None:
        """Join the others; InputError for a port that is taken or an interface that is missing, LackError for GPUs."""
        self.rank, self.size, self.backend = at.rank, at.world, backend
        self.device = _device(at, backend)
        self._store = _store(at, timeout)
        waiting = timedelta(seconds=timeout)
        dist.init_process_group(backend, store=self._store, rank=at.rank, world_size=at.world, timeout=waiting)
        self._timeout = waiting
        self._control: Any = None if backend == "gloo" else dist.new_group(backend="gloo", timeout=waiting)
        self._groups: dict[tuple[int, ...], Any] = {tuple(range(at.world)): dist.group.WORLD}

    def group(self, ranks: tuple[int, ...]) -> Any:  # noqa: ANN401 - torch's groups have no public type
        """Return the group of these ranks; every rank of the run asks for the same groups in the same order."""
        if ranks not in self._groups:
            self._groups[ranks] = dist.new_group(list(ranks), timeout=self._timeout, backend=self.backend)
        return self._groups[ranks]

    def barrier(self) -> None:
        """Return when every rank is here."""
        dist.barrier(self._control)

    def send(self, values: list[int], to: int) -> None:
        """Send a few whole numbers."""
        dist.send(torch.tensor(values), to, self._control)

    def receive(self, count: int, of: int) -> list[int]:
        """Return so many whole numbers that a rank sent."""
        found = torch.zeros(count, dtype=torch.int64)
        dist.recv(found, of, self._control)
        return [int(one) for one in found]

    def gathered(self, values: list[int]) -> list[list[int]]:
        """Return the whole numbers of every rank, by rank; as many from each."""
        found = [torch.zeros(len(values), dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(found, torch.tensor(values, dtype=torch.int64), self._control)
        return [[int(one) for one in rank] for rank in found]

    def told(self, name: str, value: object = None) -> Any:  # noqa: ANN401 - any JSON
        """Return what rank 0 says under a name, however long the others must wait for it."""
        if self.rank == 0:
            self._store.set(name, json.dumps(value))
        return self.said(name)

    def say(self, name: str, value: object) -> None:
        """Let every rank know something under a name."""
        self._store.set(name, json.dumps(value))

    def said(self, name: str) -> Any:  # noqa: ANN401 - any JSON
        """Return what was said under a name, however long it takes; an error when rank 0 is gone."""
        while True:
            try:
                self._store.wait([name], _STORE_POLL)
                return json.loads(self._store.get(name))
            except dist.DistStoreError:
                continue


@contextmanager
def joined(at: Place, backend: str, timeout: Seconds) -> Iterator[Team]:
    """Yield the team, and leave it in order when all went well."""
    team = Team(at, backend, timeout)
    yield team
    team.barrier()
    dist.destroy_process_group()


def need_interfaces(environment: Mapping[str, str]) -> None:
    """Refuse an interface that this machine does not have; InputError."""
    there = [name for _, name in socket.if_nameindex()]
    for name in filter(None, environment.get("GLOO_SOCKET_IFNAME", "").split(",")):
        if name not in there:
            raise InputError("GLOO_SOCKET_IFNAME", name, "this machine has no such interface", among=there)


def need_backend(backend: str) -> None:
    """Refuse a backend that is not there: InputError for an unknown one, LackError for NCCL without GPUs."""
    if backend not in {"gloo", "nccl"}:
        raise InputError("backend", backend, "no such backend", among=("gloo", "nccl"))
    if backend == "nccl" and not (torch.cuda.is_available() and dist.is_nccl_available()):
        raise LackError("nccl needs NVIDIA GPUs and a torch built for CUDA; this machine can measure gloo")


def _device(at: Place, backend: str) -> torch.device:
    need_backend(backend)
    if backend == "gloo":
        return torch.device("cpu")
    if at.local >= torch.cuda.device_count():
        raise LackError(f"rank {at.rank} would need GPU {at.local}; this host has {torch.cuda.device_count()}")
    torch.cuda.set_device(at.local)
    return torch.device("cuda", at.local)


def _store(at: Place, timeout: Seconds) -> PrefixStore:
    """The store of rank 0; under torchrun its agent keeps one at that port already."""
    patience = timedelta(seconds=max(timeout, JOINING))
    is_master = at.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        store = TCPStore(at.address, at.port, at.world, is_master, patience)
    except (dist.DistNetworkError, dist.DistStoreError) as error:
        if "EADDRINUSE" in str(error):
            raise InputError("MASTER_PORT", at.port, "this port is taken; choose another") from None
        raise CommsimError(
            f"rank {at.rank} cannot reach rank 0 at port {at.port} within {patience.total_seconds():g} s"
        ) from None
    return PrefixStore("commsim", store)
