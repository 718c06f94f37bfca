"""How is a delay or a factor distributed?

A law answers for both of its tails: `at(below, above)` is the value with these chances of a smaller and of a larger
one, both given so that neither tail is lost to rounding. Everything else follows from it.
"""

from commsim.stragglers.laws.empirical import Empirical
from commsim.stragglers.laws.gamma import Gamma
from commsim.stragglers.laws.law import Law
from commsim.stragglers.laws.made import Bounded, Rare
from commsim.stragglers.laws.normal import Lognormal, Normal
from commsim.stragglers.laws.plain import Constant, Discrete, Uniform
from commsim.stragglers.laws.powers import Pareto, Weibull

LAWS: dict[str, type[Law]] = {
    law.__name__.lower(): law
    for law in (Constant, Discrete, Uniform, Normal, Lognormal, Gamma, Weibull, Pareto, Empirical, Rare, Bounded)
}
"""Every law by its name."""

__all__ = [
    "LAWS",
    "Bounded",
    "Constant",
    "Discrete",
    "Empirical",
    "Gamma",
    "Law",
    "Lognormal",
    "Normal",
    "Pareto",
    "Rare",
    "Uniform",
    "Weibull",
]
