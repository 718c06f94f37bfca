"""Into which buckets are gradients dealt that go on their way together?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MIB = 2.0**20
FIRST, CAP = MIB, 25 * MIB
"""What closes the first bucket, and each later one, of PyTorch's DistributedDataParallel, B (`bucket_cap_mb`)."""


def buckets(sizes: Iterable[float], cap: float = CAP, first: float = FIRST) -> list[float]:
    """Return the sizes of the buckets, B, from those of gradients in the order in which they are there.

    That is the reverse of the order of parameters. No gradient is cut: the one that reaches the limit closes its
    bucket (Li et al. 2020, PyTorch Distributed, section 3.2.3), which is why buckets are larger than what they are
    limited to.
    """
    found = [0.0]
    for size in sizes:
        found[-1] += size
        if found[-1] >= (first if len(found) == 1 else cap):
            found.append(0.0)
    return [size for size in found if size]
