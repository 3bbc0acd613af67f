"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, other_beta, scaled
from attnflow.fields import Attention
from attnflow.meanfield import Density, von_mises_fisher
from attnflow_gallery.zonal import simulate


def _unnormalised(field: Attention) -> Attention:
    return Attention(field.beta, normaliser="USA0")


def _narrower(density: Density) -> Density:
    return von_mises_fisher(density.basis, 3.6)


MUTATIONS = (
    Mutation("beta of the equation 1 % larger", simulate, "evolve", other_beta(1.01)),
    Mutation("dimension one larger", simulate, "ZonalBasis", altered("dim", lambda d: d + 1)),
    Mutation("the equation: no normalisation", simulate, "evolve", altered("field", _unnormalised)),
    Mutation("beta of tokens twice as large", simulate, "follow", other_beta(2.0)),
    Mutation("times of tokens 20 % larger", simulate, "follow", scaled("gap", 1.2)),
    Mutation("tokens of another concentration", simulate, "sample", altered("density", _narrower)),
)
