"""What is a setting in which arrays stand in the place of numbers?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from commsim.training.setting import Setting

if TYPE_CHECKING:
    from commsim.training.operations import Array, Shard


@dataclass(frozen=True, eq=False)
class Cuts(Setting):
    """Many settings that differ in what a rank is given of a micro-batch, which is `given`: one entry a setting.

    Nothing is checked. The plan is that of all of them, as far as one is needed.
    """

    given: Shard

    def __post_init__(self) -> None:
        """Take what is given: the search asks for nothing that does not fit."""

    @property
    def shard(self) -> Shard:
        """What the ranks are given."""
        return self.given

    @property
    def imbalance(self) -> Array:  # type: ignore[override] # of one setting it is a number
        """Tokens of the most loaded expert rank over the mean: 1 where one rank has all experts."""
        return np.where(np.asarray(self.given.expert) > 1, self.recipe.imbalance, 1.0)
