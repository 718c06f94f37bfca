"""Which laws do the tests run over?"""

from __future__ import annotations

from commsim.stragglers.laws import (
    Bounded,
    Constant,
    Discrete,
    Empirical,
    Gamma,
    Law,
    Lognormal,
    Normal,
    Pareto,
    Rare,
    Uniform,
    Weibull,
)
from commsim.stragglers.maxima import Maximum

SEQUENCE = Empirical.quantiles((0.36, 0.83, 0.90, 0.99, 1.35, 1.79, 1.92), (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 1.0))

EXAMPLES: dict[str, Law] = {
    "constant": Constant(1.1),
    "discrete": Discrete((1.0, 2.0, 5.0), (0.7, 0.2, 0.1)),
    "uniform": Uniform(0.5, 1.5),
    "normal": Normal(1.0, 0.1),
    "lognormal": Lognormal(0.3),
    "gamma": Gamma(4.0),
    "gamma of a small shape": Gamma(0.4),
    "weibull": Weibull(0.7),
    "exponential": Weibull(1.0),
    "pareto": Pareto(3.0),
    "empirical": SEQUENCE,
    "rare": Rare(0.05, Lognormal(0.3, mean=1.2)),
    "bounded": Bounded(Lognormal(0.3), high=1.2),
    "maximum": Maximum(Lognormal(0.1), 64),
    "all but two": Maximum(Lognormal(0.1), 100, 2),
}
"""At least one of each law, by a name for reports."""

SMOOTH = {name: law for name, law in EXAMPLES.items() if name not in {"constant", "discrete", "rare"}}
"""Those without a jump: chance and value are each other's inverse."""
