"""What does gloo do, the library of torch.distributed on CPUs, and how long does that take?"""

from commsim.libraries.gloo.figures import GlooFigures, gloo_figures
from commsim.libraries.gloo.library import Gloo

__all__ = ["Gloo", "GlooFigures", "gloo_figures"]
