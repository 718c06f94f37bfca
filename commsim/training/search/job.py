"""Of which job is the best plan wanted?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commsim.hardware.system import System
    from commsim.libraries.library import Library
    from commsim.training.model import Model
    from commsim.training.recipe import Recipe
    from commsim.training.search.choices import Choices


@dataclass(frozen=True, eq=False)
class Job:
    """A model on a system with a library; the recipe says what the `choices` leave open."""

    model: Model
    system: System
    library: Library
    recipe: Recipe
    choices: Choices
