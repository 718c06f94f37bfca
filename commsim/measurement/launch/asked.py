"""What does a person ask to be measured, in the words of the command line?"""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import TYPE_CHECKING, Any

from commsim.errors import InputError
from commsim.measurement.launch.cases import BARRIER, Case, Groups, element, operation
from commsim.units import parse, parse_sizes

if TYPE_CHECKING:
    from commsim.units import Seconds


def sweep(ops: str, sizes: str, factor: float, dtypes: str, **others: Any) -> list[Case]:  # noqa: ANN401 - see Case
    """Return the cases of every operation, type and size, in that order; a barrier has one. InputError.

    With `matmul`, each is measured alone and then beside the products, so that what they cost each other shows.
    """
    listed = parse_sizes(sizes, factor)
    types = [element(one.strip(), "dtype") for one in dtypes.split(",")]
    found: list[Case] = []
    for op in map(operation, map(str.strip, ops.split(","))):
        if op == BARRIER:
            found.append(Case(op, **others))
        else:
            found += [Case(op, size, kind, **others) for kind, size in itertools.product(types, listed)]
    both = [one for case in found for one in (dataclasses.replace(case, matmul=0), case)]
    return list({case.digest: case for case in both}.values())


def groups(text: str | None) -> Groups:
    """Return `0-3` as one group of ranks, `0,1/2,3` as two that act at once; InputError."""
    if not text:
        return ()
    found = tuple(tuple(rank for part in group.split(",") for rank in _span(part)) for group in text.split("/"))
    ranks = [rank for group in found for rank in group]
    if len(set(ranks)) != len(ranks) or len({len(group) for group in found}) > 1:
        raise InputError("group", text, "groups that act at once are equally large and share no rank")
    return found


def late(given: list[str] | None) -> dict[int, Seconds]:
    """Return `3=50ms` as seconds by rank; InputError."""
    found = {}
    for one in given or []:
        rank, _, delay = one.partition("=")
        if not rank.strip().isdecimal() or not delay:
            raise InputError("late", one, "RANK=TIME, such as 3=50ms, belongs here")
        found[int(rank)] = parse(delay, "s", f"late: rank {rank}", "50 ms")
    return found


def jitter(text: str | None, seed: int) -> dict[str, Any]:
    """Return `lognormal: sigma=1 mean=0.01` as the law and its parameters, in seconds; InputError."""
    if not text:
        return {}
    name, _, rest = text.partition(":")
    pairs = [part.partition("=") for part in rest.split()]
    try:
        parameters = {key: float(value) for key, _, value in pairs}
    except ValueError:
        raise InputError(
            "jitter", text, "LAW: NAME=NUMBER ..., such as 'lognormal: sigma=1 mean=0.01', belongs here"
        ) from None
    return {"law": name.strip(), "parameters": parameters, "seed": seed}


def _span(text: str) -> range:
    found = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", text)
    if found is None:
        raise InputError("group", text, "ranks such as 0,1,2 or 0-3 belong here, and / between groups")
    first = int(found[1])
    return range(first, int(found[2] or first) + 1)
