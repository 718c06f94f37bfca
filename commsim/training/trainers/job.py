"""What is a job, as its trainer was told to run it?"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - dataclasses look at annotations
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from commsim.errors import InputError
from commsim.training.axes import Context, Data, Expert, Pipeline, Tensor
from commsim.training.plan import Plan
from commsim.training.trainers.trained import Trained

if TYPE_CHECKING:
    from commsim.training.model import Model


@dataclass(frozen=True)
class Job:
    """A plan whose data axis takes what is left of the machine, and the recipe as far as the file says it.

    `recipe` are keywords of `Recipe`; `notes` say what was taken for granted, or could not be kept. `data` is what the
    file says of the data ranks (None: the rest of the GPUs), `batch_per_rank` the sequences of a data rank and step,
    where a trainer counts so; `trains` the model that the file is written for.
    """

    trainer: str
    tensor: int = 1
    context: int = 1
    pipeline: int = 1
    expert: int = 1
    expert_tensor: int = 1
    virtual: int = 1
    layers: tuple[int, ...] = ()
    sequence_parallel: bool = False
    context_by: Literal["ring", "all_gather"] = "ring"
    zero: int = 0
    shard: int | None = None
    data: int | None = None
    batch_per_rank: int | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    trains: Trained = Trained()  # noqa: RUF009 - a frozen value

    def plan(self, gpus: int) -> Plan:
        """Return the plan on so many GPUs. InputError when they are no multiple of what the file needs."""
        each = self.tensor * self.context * self.pipeline
        data = self.data if self.data is not None else gpus // each
        if data * each != gpus:
            said = f"tensor {self.tensor} x context {self.context} x pipeline {self.pipeline}"
            said += f" x data {self.data}" if self.data is not None else ""
            raise InputError(f"plan of {self.trainer}", f"{gpus} GPUs", f"a multiple of {said} belongs here")
        axes = (
            Tensor(self.tensor, sequence=self.sequence_parallel and self.tensor > 1),
            Context(self.context, by=self.context_by),
            Expert(self.expert, self.expert_tensor),
            Data(data, self.zero, self.shard),
            Pipeline(self.pipeline, self.virtual, self.layers),
        )
        return Plan.ordered(*(axis for axis in axes if axis.size > 1 or axis.name == "data"))

    def options(self, plan: Plan) -> dict[str, Any]:
        """Return the keywords of the recipe under a plan; a batch that is counted by data rank becomes that of all."""
        each = {} if self.batch_per_rank is None else {"global_batch": self.batch_per_rank * plan.data}
        return each | dict(self.recipe)

    def remarks(self, model: Model) -> tuple[str, ...]:
        """Return what a person who runs this job with a model has to know, one sentence each."""
        unlike = self.trains.unlike(model)
        other = f"the file of {self.trainer} is written for another model than {model.name}: {unlike}"
        return (*self.notes, other) if unlike else self.notes
