"""Random layers: attention at initialisation, with weights drawn afresh in every layer, and what is left in the limit.

`random_attention` is the network as a field for `solve` with `Layers`, `gram_layers` its overlaps alone in any
dimension. Given the heads nothing diffuses: `conditional_density` carries a density on the circle, `poisson_path` is
the closed form at infinite temperature, and `conditional_mean` averages over the heads (arXiv:2604.01978).
"""

from attnflow.lazy import listing
from attnflow.random_layers.attention import random_attention
from attnflow.random_layers.boosts import PoissonKernel, PoissonPath, boost, boost_log_det, poisson_path
from attnflow.random_layers.conditional import CarryDensity, ConditionalDensity, conditional_density
from attnflow.random_layers.gram import GramLayers, GramPath, gram_layers
from attnflow.random_layers.two_level import TwoLevel, conditional_mean

__all__ = [
    "CarryDensity",
    "ConditionalDensity",
    "GramLayers",
    "GramPath",
    "PoissonKernel",
    "PoissonPath",
    "TwoLevel",
    "boost",
    "boost_log_det",
    "conditional_density",
    "conditional_mean",
    "gram_layers",
    "poisson_path",
    "random_attention",
]
__dir__ = listing(__all__)
