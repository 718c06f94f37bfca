"""Which mitigations change who takes part, or where?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from commsim.errors import InputError
from commsim.stragglers.effects import Target
from commsim.stragglers.kinds import Effected, Straggler
from commsim.stragglers.laws import Bounded
from commsim.stragglers.mitigations.mitigation import Case, Mitigation

if TYPE_CHECKING:
    from collections.abc import Callable

    from commsim.stragglers.effects import Effect


@dataclass(frozen=True)
class Spares(Mitigation):
    """So many GPUs stand by, and the slowest of all are exchanged for them."""

    count: int = 8
    source: ClassVar[str] = "ByteDance, OSDI 2025: the worst 3 % of the workers; Greyhound, ATC 2025, S4"
    loses: ClassVar[str] = "the spares, and a restart when they are taken in"

    def __post_init__(self) -> None:
        """Refuse what is no number of GPUs; InputError."""
        if self.count < 1:
            raise InputError("spares: count", self.count, "1 or more belong here")

    def mended(self, case: Case) -> Case:
        """Return the case without its slowest ranks, as many as there are spares."""
        share = self.count / (case.stage.cast.ranks + self.count)
        return _of_ranks(case, "spares", lambda effect: _without(effect, share, self.count))

    def lost(self, case: Case) -> float:
        """Return the spares in parts of all."""
        return self.count / (case.stage.cast.ranks + self.count)


@dataclass(frozen=True)
class Screening(Mitigation):
    """Nodes are measured before the job, and the slowest `share` of them does not take part."""

    share: float = 0.01
    source: ClassVar[str] = "MegaScale, NSDI 2024: 0.7 % of MFU by leaving out 0.5 % of the machines"
    loses: ClassVar[str] = "the machines that are left out"

    def __post_init__(self) -> None:
        """Refuse what is no share; InputError."""
        if not 0 < self.share < 1:
            raise InputError("screening: share", self.share, "between 0 and 1 belongs here")

    def mended(self, case: Case) -> Case:
        """Return the case in which ranks are what is left of their law."""
        left_out = int(self.share * case.stage.cast.ranks)
        return _of_ranks(case, "screening", lambda effect: _without(effect, self.share, left_out))

    def lost(self, case: Case) -> float:  # noqa: ARG002 - the same share of any machine
        """Return the share that is left out."""
        return self.share


@dataclass(frozen=True)
class MoveStage(Mitigation):
    """Slow ranks change places with others of their replica, on one `stage`: early ones hide in their warm-up."""

    stage: int = 0
    source: ClassVar[str] = "Greyhound, ATC 2025, S3: up to 1.23 times as quick with 4 stages"
    loses: ClassVar[str] = "about a minute to change places"

    def mended(self, case: Case) -> Case:
        """Return the case with the ranks that are named, or counted, on that stage."""
        cast = case.stage.cast
        if not 0 <= self.stage < cast.stages or cast.stages == 1:
            raise InputError("move-stage: stage", self.stage, f"one of several stages, there are {cast.stages}")
        places = [rank for replica in range(cast.replicas) for rank in cast.ranks_of(self.stage, replica).tolist()]

        def moved(effect: Effect) -> Effect | None:
            target = effect.target
            if not target.chosen:
                return effect
            _, replicas = divmod(
                cast.numbered(target) if target.which else cast.numbered(Target(count=1)), cast.replicas
            )
            which = (
                places[: target.count] if target.count else [places[one * cast.members] for one in replicas.tolist()]
            )
            return replace(effect, target=Target("rank", tuple(dict.fromkeys(which))))

        return _of_ranks(case, "move-stage", moved, chosen=True)


def _of_ranks(case: Case, name: str, change: Callable[[Effect], Effect | None], *, chosen: bool = False) -> Case:
    """The case with what lasts for the job on single ranks changed; InputError when nothing does."""
    found, many = list[Straggler](), 0
    for cause in case.causes:
        ours = [_is_of_ranks(effect) and (effect.target.chosen or not chosen) for effect in cause.effects]
        many += sum(ours)
        effects = [change(effect) if mine else effect for effect, mine in zip(cause.effects, ours)]
        left = Effected(tuple(effect for effect in effects if effect is not None))
        found.append(left if any(ours) else cause)
    if not many:
        given = ", ".join(type(one).__name__ for one in case.causes) or "no cause"
        whom = "ranks that are named or counted" if chosen else "ranks that are slow for the job"
        raise InputError(name, given, f"it mends {whom}, and there are none")
    return case._replace(causes=tuple(found))


def _is_of_ranks(effect: Effect) -> bool:
    return effect.persistence == "job" and effect.target.each == "rank"


def _without(effect: Effect, share: float, number: int) -> Effect | None:
    """An effect without the slowest ranks: so many of those chosen, that share of a law."""
    target, law = effect.target, effect.law
    if not target.chosen:
        return replace(effect, law=Bounded(law, high=float(law.exceeded(share))))
    if target.count:
        return replace(effect, target=replace(target, count=target.count - number)) if target.count > number else None
    which = target.which[number:]
    return replace(effect, target=replace(target, which=which)) if which else None
