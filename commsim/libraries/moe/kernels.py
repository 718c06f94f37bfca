"""What do the kernels that exchange tokens cost, and what do they reach on each kind of link?"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping  # noqa: TC003 - the reader of YAML needs it when it runs
from dataclasses import dataclass
from functools import lru_cache

from commsim.collectives.moe.demand import Way  # noqa: TC001 - the reader of YAML needs it when it runs
from commsim.errors import InputError
from commsim.reading import load_yaml, read
from commsim.shipped import folder
from commsim.units import BytesPerSecond, Seconds, Share


@dataclass(frozen=True)
class Kernel:
    """How one kind of kernel moves tokens: its way, what a call costs, and what a multiprocessor copies.

    See `topologies/moe.yaml` for what each figure means. Without a `rate` the links alone limit it.
    """

    way: Way
    launch: Seconds
    network: Seconds
    expert: Seconds = 0.0
    multiprocessors: int = 0
    rate: BytesPerSecond | None = None
    copy: Seconds = 0.0
    token: Seconds = 0.0
    sum: Seconds = 0.0


@dataclass(frozen=True)
class Reach:
    """The share of a kind of link that tokens reach along rails and scattered, and what sending costs there besides."""

    railed: Share
    scattered: Share
    peer: BytesPerSecond | None = None
    message: Seconds = 0.0

    def share(self, way: Way) -> float:
        """Return the share that one way reaches."""
        return self.railed if way == "railed" else self.scattered


@dataclass(frozen=True, eq=False)
class Kernels:
    """All kinds of kernel, and what they reach by patterns of the kind of link, of which the first that fits counts."""

    kernels: Mapping[str, Kernel]
    links: Mapping[str, Reach]

    def kernel(self, mode: str) -> Kernel:
        """Return the kernel of a mode; InputError when there is none."""
        if mode not in self.kernels:
            raise InputError("mode", mode, "no such way of dispatching and combining", among=["nccl", *self.kernels])
        return self.kernels[mode]

    def reach(self, kind: str) -> Reach:
        """Return what is reached on a kind of link; InputError when no pattern fits it."""
        for pattern, reached in self.links.items():
            if fnmatch.fnmatchcase(kind, pattern):
                return reached
        raise InputError("moe.yaml: links", kind, "no pattern fits this kind of link", among=self.links)


@lru_cache(maxsize=1)
def kernels() -> Kernels:
    """Return the figures of `topologies/moe.yaml`."""
    return read(Kernels, load_yaml(folder("topologies") / "moe.yaml"), "moe.yaml")
