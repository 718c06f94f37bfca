"""What may a file of the catalogue, or a user's own, say?

These dataclasses are the schema of `topologies/*.yaml` and `topologies/systems/*.yaml`; what stands in
`topologies/accelerators/` is an `Accelerator`.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the reader of YAML resolves annotations
from dataclasses import dataclass, field

from commsim.hardware.fabrics import Level  # noqa: TC001 - the reader of YAML resolves annotations
from commsim.hardware.system import Lifecycle, Node, ScaleOut  # noqa: TC001 - the reader of YAML resolves annotations
from commsim.units import BytesPerSecond, Seconds


@dataclass(frozen=True)
class LinkFigures:
    """What a file says of a kind of link; `bandwidth` is one direction of one link."""

    bandwidth: BytesPerSecond
    latency: Seconds
    note: str = ""


@dataclass(frozen=True)
class Switch:
    """A switch generation of a fabric: the speed of a port (one direction), how many, and its adapters' latency.

    Without a `cable` of its own it has the fabric's.
    """

    port: BytesPerSecond
    ports: int
    cable: Seconds | None = None


@dataclass(frozen=True)
class FabricFigures:
    """What a file says of a scale-out network: latency from adapter to switch and of one more hop, its switches.

    `wiring` is the usual one (`clos.SCALE_OUTS`).
    """

    title: str
    cable: Seconds
    hop: Seconds
    switches: Mapping[str, Switch]
    wiring: str = "rails"
    reduces: bool = False
    note: str = ""


@dataclass(frozen=True)
class Source:
    """A document that figures are taken from, and how far to trust it (A vendor or measured ... G memory)."""

    title: str
    kind: str
    trust: str


@dataclass(frozen=True)
class SystemFigures:
    """What a file says of a system.

    `shared` are names that another system bears as well, so that alone they name neither; `source` the documents that
    its structure is taken from; `template` the system whose figures stand in for unpublished ones.
    """

    name: str
    title: str
    accelerator: str
    node: Node
    aliases: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    status: Lifecycle = "given"
    summary: str = ""
    source: tuple[str, ...] = ()
    scale_up: tuple[Level, ...] = ()
    scale_out: ScaleOut | None = None
    links: Mapping[str, LinkFigures] = field(default_factory=dict)
    template: str = ""
    assumptions: tuple[str, ...] = ()
