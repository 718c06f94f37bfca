"""What waits for what in a pipeline?

A program is a graph of nodes, each of which starts when the (at most two) nodes that it follows are over. A node is an
operation, or the message that carries the output of an operation to another stage. How stages communicate is a matter
of the graph alone, so that one solver serves every way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commsim.training.pipeline.schedules import Integers, Shape


@dataclass(frozen=True, eq=False)
class Program:
    """A schedule as a graph, ready to be solved.

    Node i is the operation [kind, chunk, micro-batch] = unravel_index(i, dims); node `operations + i` is its message.
    `order[stage, turn]` is the schedule, `before` and `needs` [node] are the nodes that a node follows (NOTHING where
    it need not wait): the one that leaves its stage free, the one that brings its input. `run` are the nodes round
    after round, `sizes`[round] how many can run together.
    """

    schedule: str
    communication: str
    shape: Shape
    dims: tuple[int, int, int]
    order: Integers
    before: Integers
    needs: Integers
    run: Integers
    sizes: Integers

    @property
    def operations(self) -> int:
        """Return the number of operations."""
        return self.order.size
