"""What does the preamble of a run say: who took part, with what, and which sizes were to be measured?"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from commsim.measurement.records import Host
from commsim.measurement.settings import is_knob
from commsim.measurement.versions import version_of

_TAIL = {
    "warmup": re.compile(r"warmup iters: (\d+)"),
    "iterations": re.compile(r"(?<!warmup )(?<!agg )iters: (\d+)"),
    "aggregated": re.compile(r"agg iters: (\d+)"),
    "validation": re.compile(r"validation: (\d+)"),
    "graph": re.compile(r"graph: (\d+)"),
    "unalign": re.compile(r"unalign: (\d+)"),
}
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|[\da-f]*:[\da-f]*:[\da-f:]+")
_MOST_RANKS = 1_000_000
_HEAD = ("threads", "gpus_per_thread", "min_bytes", "max_bytes", "step")


@dataclass
class Run:
    """What has been read of one process' preamble so far."""

    settings: dict[str, str] = field(default_factory=dict)
    devices: dict[int, tuple[int, str, str]] = field(default_factory=dict)
    """Group, host and accelerator by rank."""
    name: str = ""
    ops: set[str] = field(default_factory=set)
    tool_version: str = ""
    library: str = ""
    version: str = ""
    failures: list[str] = field(default_factory=list)

    def take(self, kind: str, found: re.Match[str]) -> None:
        """Keep what a line of a kind says; kinds that say nothing of the run are passed over."""
        keep = getattr(self, f"_{kind}", None)
        if keep:
            keep(found)

    @property
    def ranks(self) -> int | None:
        """Return the ranks of one group; of a shortened list, one more than the highest of it."""
        if not self.devices:
            return None
        groups = [group for group, _, _ in self.devices.values()]
        return groups.count(0) if len(set(groups)) > 1 else max(self.devices) + 1

    @property
    def groups(self) -> int:
        """Return how many groups act at once (NCCL_TESTS_SPLIT); 1 without a list."""
        return max(1, len({group for group, _, _ in self.devices.values()}))

    @property
    def accelerators(self) -> tuple[str, ...]:
        """Return the names that the GPUs give themselves, each once."""
        return tuple(dict.fromkeys(name for _, _, name in self.devices.values() if name))

    @property
    def maker(self) -> str:
        """Return the library: NCCL unless something says RCCL."""
        amd = any("AMD" in name or "Instinct" in name for name in self.accelerators)
        return self.library or ("rccl" if amd else "nccl")

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Return the hosts by number, with all their ranks; none when a shortened list does not tell them."""
        last = max(self.devices, default=-1)
        if last > _MOST_RANKS:
            return ()
        ranks: dict[str, list[int]] = {}
        for rank in sorted(self.devices):
            ranks.setdefault(self.devices[rank][1], []).append(rank)
        listed = list(ranks.values())
        if len(self.devices) <= last:
            listed = [list(range(own[0], own[-1] + 1)) for own in listed]  # first and last of each host are printed
        if sorted(rank for own in listed for rank in own) != list(range(last + 1)):
            return ()
        return tuple(Host(tuple(own), self.devices[own[0]][2]) for own in listed)

    def _tool(self, found: re.Match[str]) -> None:
        self.tool_version, self.version = found[1], version_of(int(found[2][:9]))
        self.library = self.library or "nccl"

    def _rccl(self, found: re.Match[str]) -> None:
        self.library, self.tool_version = "rccl", found[1]

    def _name(self, found: re.Match[str]) -> None:
        self.name = found[1]

    def _header(self, found: re.Match[str]) -> None:
        self.settings |= dict(zip(_HEAD, found.groups()))
        tail = {name: expression.search(found[6]) for name, expression in _TAIL.items()}
        self.settings |= {name: one[1] for name, one in tail.items() if one}

    def _device(self, found: re.Match[str]) -> None:
        self.devices[int(found[1][:9])] = (int((found[2] or "0")[:9]), found[3], found[4])

    def _reduced(self, found: re.Match[str]) -> None:
        self.settings["max_bytes"] = found[1]

    def _library(self, found: re.Match[str]) -> None:
        hip = found[1] == "RCCL" or "hip" in found[3]
        self.library = "rccl" if hip or self.library == "rccl" else "nccl"
        self.version = found[2]

    def _failure(self, found: re.Match[str]) -> None:
        said = _ADDRESS.sub("ADDRESS", " ".join(found[1].split()))
        self.failures.append(f"the run failed: {said[:160]}")

    def _setting(self, found: re.Match[str]) -> None:
        if is_knob(found[1], found[2]):
            self.settings[found[1]] = found[2]

    def _network(self, found: re.Match[str]) -> None:
        self.settings["network"] = found[1]

    def _ports(self, found: re.Match[str]) -> None:
        """How many ports of InfiniBand or RoCE are used; their names are not kept."""
        self.settings["ports"] = str(found[1].count("["))

    def _transport(self, found: re.Match[str]) -> None:
        """How GPUs of a node reach each other, and whether NICs read their memory: `no` once one channel does not."""
        if found[1].startswith("NET"):
            known = self.settings.get("gpudirect", "yes")
            self.settings["gpudirect"] = known if found[2] else "no"
        else:
            self.settings["between_gpus"] = found[1] if self.settings.get("between_gpus") != "SHM" else "SHM"

    def _multicast(self, _: re.Match[str]) -> None:
        self.settings["nvls_multicast"] = "unavailable"

    def _op(self, found: re.Match[str]) -> None:
        self.ops.add(found[1])

    def _command(self, found: re.Match[str]) -> None:
        """What was typed, as some logs show it: how buffers were to be registered."""
        self.settings["local_register"] = found[1]

    def _symmetric(self, found: re.Match[str]) -> None:
        """NCCL took a kernel for symmetric windows: buffers are registered so (-R 2)."""
        self.ops.add(found[1])
        self.settings["local_register"] = "2"
