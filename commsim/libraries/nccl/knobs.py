"""Which settings of the environment change what NCCL chooses?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from commsim.errors import InputError
from commsim.libraries.nccl.constants import ALGORITHMS, OPS, PROTOCOLS
from commsim.libraries.nccl.graphs import Path

Allowed = Mapping[str, frozenset[str]]
"""What a setting leaves, by collective; a collective that it does not speak of is absent."""


@dataclass(frozen=True)
class Knobs:
    """NCCL's settings, each by the variable whose name it has (`algo` is NCCL_ALGO); None is NCCL's own choice.

    Channels are limited by `min_nchannels` and `max_nchannels` (and, alike, `min_ctas` and `max_ctas`); `net_overhead`
    counts nanoseconds, as the variable does.
    """

    algo: str = ""
    proto: str = ""
    nvls_enable: int = 2
    collnet_enable: int = 0
    collnet_node_threshold: int = 2
    pat_enable: int = 2
    ll128_c2c: int = 1
    net_overhead: int | None = None
    min_nchannels: int | None = None
    max_nchannels: int | None = None
    min_ctas: int | None = None
    max_ctas: int | None = None
    nvls_nchannels: int | None = None
    cross_nic: int = 2
    pxn_disable: int = 0
    pxn_c2c: int = 1
    nvb_disable: int = 0
    net_gdr_c2c: int = 1
    net_gdr_level: Path | None = None
    p2p_level: Path | None = None
    p2p_disable: int = 0
    mnnvl_enable: int = 2
    mnnvl_scatter_nets_enable: int = 1

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Knobs:
        """Return the settings that an environment makes (NCCL_ALGO, ...); InputError for what NCCL could not read."""
        names = [one.name for one in fields(cls) if f"NCCL_{one.name.upper()}" in environment]
        return cls(**{name: _value(name, environment[f"NCCL_{name.upper()}"]) for name in names})  # type: ignore[arg-type]

    @classmethod
    def unread(cls, environment: Mapping[str, str]) -> list[str]:
        """Return the variables of NCCL that are set and that this model does not know, whatever they do."""
        known = {f"NCCL_{one.name.upper()}" for one in fields(cls)}
        return sorted(name for name in environment if name.startswith("NCCL_") and name not in known)

    def algorithms(self, *, by_collective: bool = True) -> Allowed:
        """Return the algorithms that NCCL_ALGO leaves; `by_collective` says that the version knows prefixes."""
        return _left("NCCL_ALGO", self.algo, ALGORITHMS, by_collective=by_collective)

    def protocols(self, *, by_collective: bool = True) -> Allowed:
        """Return the protocols that NCCL_PROTO leaves; LL128 among them is on even where it is not by itself."""
        return _left("NCCL_PROTO", self.proto, PROTOCOLS, by_collective=by_collective)


def _value(name: str, text: str) -> object:
    """The value of a setting as its variable spells it."""
    if name in ("algo", "proto"):
        return text
    if name in ("net_gdr_level", "p2p_level"):
        return _level(name, text)
    try:
        return int(text, 0)
    except ValueError:
        raise InputError(f"NCCL_{name.upper()}", text, "a whole number belongs here") from None


_OLD_LEVELS = (Path.LOC, Path.PIX, Path.PXB, Path.PHB, Path.SYS)


def _level(name: str, text: str) -> Path:
    """The farthest path that is used: by its name, or by the number that older versions gave it."""
    if text.isascii() and text.isdigit():
        return _OLD_LEVELS[min(int(text), len(_OLD_LEVELS) - 1)]
    if text not in Path.__members__:
        raise InputError(f"NCCL_{name.upper()}", text, "a kind of path belongs here", among=Path.__members__)
    return Path[text]


def _left(where: str, text: str, names: tuple[str, ...], *, by_collective: bool) -> Allowed:
    """What `list;collective:list;...` leaves of the names; a list that begins with ^ leaves the others."""
    if not by_collective and (":" in text or ";" in text):
        raise InputError(where, text, "settings for each collective are known from NCCL 2.24 on; one list belongs here")
    left: dict[str, frozenset[str]] = {}
    for number, group in enumerate(group for group in text.split(";") if group):
        collective, colon, listed = group.rpartition(":")
        if number and not colon:
            raise InputError(where, text, "only the first list may stand without a collective (allreduce:ring)")
        ops = [op for op in OPS if not colon or op.replace("_", "") == collective.lower().replace("_", "")]
        if not ops:
            raise InputError(
                where, collective, "no collective of NCCL's tuner", among=[op.replace("_", "") for op in OPS]
            )
        left |= dict.fromkeys(ops, _list(where, listed, names))
    return left


def _list(where: str, text: str, names: tuple[str, ...]) -> frozenset[str]:
    spelt = {name.lower(): name for name in names}
    given = [item for item in text.removeprefix("^").split(",") if item]
    unknown = next((item for item in given if item.lower() not in spelt), None)
    if unknown is not None or not given:
        raise InputError(where, unknown or text, "NCCL has no such", among=names)
    named = frozenset(spelt[item.lower()] for item in given)
    return frozenset(names) - named if text.startswith("^") else named
