"""What does a version of NCCL believe of protocols and links?"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the reader of YAML needs it when it runs
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from commsim.errors import InputError
from commsim.reading import load_yaml, merged, read
from commsim.shipped import folder
from commsim.units import Bytes, BytesPerSecond, Seconds, Share

if TYPE_CHECKING:
    from typing import Any, TypeVar

    Row = TypeVar("Row")

ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
PROTOCOLS = ("LL", "LL128", "Simple")
"""In NCCL's order: of equal times the earlier is taken."""
OPS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")
ARCHITECTURES = {"volta": 0, "ampere": 80, "hopper": 90, "blackwell": 100}
"""From which compute capability on a GPU counts to an architecture; what is newer is Blackwell, what is older Volta."""

ByProtocol = tuple[Seconds, Seconds, Seconds]
ByNodes = tuple[BytesPerSecond, BytesPerSecond, BytesPerSecond]
Shares = tuple[Share, Share]


@dataclass(frozen=True)
class Latencies:
    """Cost of a call and of a hop over NVLink, PCIe and the network, by algorithm and protocol; of a head's arity."""

    base: Mapping[str, ByProtocol]
    nvlink: Mapping[str, ByProtocol]
    pci: Mapping[str, ByProtocol]
    net: Mapping[str, ByProtocol]
    arity: Seconds


@dataclass(frozen=True)
class Caps:
    """The most that is counted on, by architecture, for one node, two and more: `ll` of all channels, else of one."""

    ll: Mapping[str, ByNodes]
    ring_ll128: Mapping[str, ByNodes]
    tree_ll128: Mapping[str, ByNodes]
    tree: Mapping[str, ByNodes]
    nvls_tree: Mapping[str, ByNodes]


@dataclass(frozen=True)
class Factors:
    """Which share of a channel's bandwidth is counted on (see topologies/nccl/2.18.yaml for the pairs)."""

    ring_ll: Shares
    ring_ll128: Shares
    tree: Share
    tree_ll: Share
    tree_ll128: Shares
    simple_tree: Share
    pat: Share
    collnet: Share
    nvls: Mapping[str, Share]


@dataclass(frozen=True)
class Rules:
    """What versions count in different ways."""

    nvls: Literal["plain", "narrower", "narrower, gathers whole", "narrower, gathers apart", "efficiency"]
    collnet_gathers: Literal["interpolated", "narrower"]
    ring_network_steps: Literal["nodes", "nodes - 1"]
    nvls_tree_hops: Literal["nodes", "log2"]
    lone_rank_on_tree_hop: bool
    ll128_capabilities: tuple[int, ...]
    ll128_mixed: bool
    mixed_vendors_as_amd: bool
    corrected: tuple[str, ...]
    ring_stays: Literal["outside all_reduce", "when nothing is left", "nowhere"]
    settings_by_collective: bool
    rack_is_node: bool


@dataclass(frozen=True)
class Channels:
    """How many channels there can be, how many run for NVLS (on one node, on more), and whether rings run as many."""

    most: int
    nvls: Mapping[str, tuple[int, int]]
    as_nvls: bool


@dataclass(frozen=True)
class Links:
    """How fast NCCL counts what a topology file only names: NVLinks by compute capability, sockets by processor."""

    nvlink: Mapping[str, BytesPerSecond]
    intel: Mapping[str, BytesPerSecond]
    amd: BytesPerSecond
    arm: BytesPerSecond
    power: BytesPerSecond
    zhaoxin: BytesPerSecond


@dataclass(frozen=True)
class Speeds:
    """The speeds of a channel that the search tries in turn, by architecture, on one node and between nodes."""

    intra: Mapping[str, tuple[BytesPerSecond, ...]]
    inter: Mapping[str, tuple[BytesPerSecond, ...]]


@dataclass(frozen=True)
class Symmetric:
    """What NCCL believes of its kernels on symmetric windows, by architecture (and collective).

    A call costs `base`, with LL `ll`; a block carries `block`, all of them `peak`, of an all-reduce in the switches
    `reducing`. A kernel has `blocks` at most; one that multicasts `multicast` over all ranks, of which there are
    `multicast_ranks` or more. Buffers are cut into cells of `cell`; above `copied` elements copy engines gather.
    """

    ll: Mapping[str, Mapping[str, Seconds]]
    base: Mapping[str, Mapping[str, Seconds]]
    block: Mapping[str, Mapping[str, BytesPerSecond]]
    peak: Mapping[str, BytesPerSecond]
    reducing: Mapping[str, BytesPerSecond]
    multicast: Mapping[str, int]
    multicast_ranks: int
    blocks: int
    cell: Bytes
    copied: Mapping[str, int]


@dataclass(frozen=True)
class Constants:
    """The constants of a version; `does` says which collectives the tuner may give to an algorithm."""

    version: str
    source: str
    does: Mapping[str, tuple[str, ...]]
    latency: Latencies
    caps: Caps
    shares: Factors
    rules: Rules
    correction: Mapping[str, tuple[float, ...]]
    plateau: Mapping[str, float]
    channels: Channels
    links: Links
    speeds: Speeds
    symmetric: Symmetric | None = None


def row(table: Mapping[str, Row], capability: int) -> Row:
    """Return the row of an architecture; of the newest that the table knows when the GPU is newer."""
    known = [name for name, first in ARCHITECTURES.items() if name in table and first <= capability]
    return table[known[-1]]


def step(table: Mapping[str, Row], at: int) -> Row:
    """Return the entry of a table from `at` on: that of the largest number which is not above."""
    return table[max((key for key in table if int(key) <= at), key=int)]


def versions() -> tuple[str, ...]:
    """Return the versions whose constants differ from those of the one before, oldest first."""
    return tuple(sorted((path.stem for path in (folder("topologies") / "nccl").glob("*.yaml")), key=numbers))


@lru_cache(maxsize=64)
def constants(version: str = "") -> Constants:
    """Return the constants of a version such as 2.27 or 2.27.5; of the newest known when none is given.

    A version older than the oldest has its constants; one newer than the newest, those of the newest (see `note`).
    InputError when it is no version.
    """
    known = versions()
    wanted = numbers(version or known[-1])
    name = max((name for name in known if numbers(name) <= wanted), key=numbers, default=known[0])
    return read(Constants, _whole(name), f"nccl {name}")


def note(version: str) -> str:
    """Return what must be said of a version's constants: that they are another's; "" when they are its own."""
    known = versions()
    if version and numbers(version) < numbers(known[0]):
        return f"NCCL {version} is older than {known[0]}: counted with the constants of {known[0]}"
    if version and numbers(version) > numbers(known[-1]):
        return f"NCCL {version} is newer than {known[-1]}: counted with the constants of {known[-1]}"
    return ""


def _whole(name: str) -> dict[str, Any]:
    """The table of a file, laid over that of the file which it is `like`."""
    table = dict(load_yaml(folder("topologies") / "nccl" / f"{name}.yaml"))
    below = table.pop("like", None)
    return merged(_whole(below), table) if below else table


def numbers(version: str) -> tuple[int, int]:
    """Return major and minor number; patches of one minor version share their constants. InputError for no version."""
    parts = version.split("-", maxsplit=1)[0].split(".")
    if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError("NCCL version", version, "a version such as 2.27 or 2.27.5 belongs here")
    return int(parts[0]), int(parts[1])
