"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, other_beta, scaled
from attnflow.fields import Attention
from attnflow.meanfield import Density, mixture, uniform
from attnflow_gallery.continuity_equation import simulate


def _flatter(density: Density) -> Density:
    """One token in five is uniform."""
    return mixture((0.8, 0.2), [density, uniform(density.basis)])


def _unnormalised(field: Attention) -> Attention:
    return Attention(field.beta, normaliser="USA0")


MUTATIONS = (
    Mutation("beta of tokens 0.1 % larger", simulate, "follow", other_beta(1.001)),
    Mutation("tokens: no normalisation", simulate, "follow", altered("field", _unnormalised)),
    Mutation("times of tokens 1 % larger", simulate, "follow", scaled("gap", 1.01)),
    Mutation("iid tokens: one in five is uniform", simulate, "sample", altered("density", _flatter)),
    Mutation("quiet tokens: one in five is uniform", simulate, "quiet", altered("density", _flatter)),
    Mutation("beta of cells 2 % larger", simulate, "evolve_cells", other_beta(1.02)),
    Mutation("beta of cells 20 % larger", simulate, "evolve_cells", other_beta(1.2)),
    Mutation("tokens that form clusters: no normalisation", simulate, "advance", altered("field", _unnormalised)),
)
