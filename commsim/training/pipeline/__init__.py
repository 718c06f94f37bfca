"""How long does a pipeline take, and what makes it so long?

`compiled` turns a schedule into a graph of operations and messages; `solve` and `makespan` run it for any number of
durations at once; `critical_path`, `bubble` and `in_flight` explain it.
"""

from commsim.training.pipeline.compiling import compiled
from commsim.training.pipeline.costs import per_chunk, per_link
from commsim.training.pipeline.course import Course
from commsim.training.pipeline.explain import Operation, bubble, critical_path, in_flight
from commsim.training.pipeline.messages import COMMUNICATION
from commsim.training.pipeline.program import Program
from commsim.training.pipeline.schedules import KINDS, SCHEDULES, Shape
from commsim.training.pipeline.solve import makespan, solve, stage_ends

__all__ = [
    "COMMUNICATION",
    "KINDS",
    "SCHEDULES",
    "Course",
    "Operation",
    "Program",
    "Shape",
    "bubble",
    "compiled",
    "critical_path",
    "in_flight",
    "makespan",
    "per_chunk",
    "per_link",
    "solve",
    "stage_ends",
]
