"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, faster, scaled
from attnflow_gallery.energy_dissipation import simulate

MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", scaled("beta", 1.001)),
    Mutation("SA and USA0 exchanged", simulate, "Attention", altered("normaliser", {"SA": "USA0", "USA0": "SA"}.get)),
    Mutation("tokens 0.1 % faster", simulate, "Attention", faster(1.001)),
    Mutation("slopes at a beta 0.1 % larger", simulate, "own_side", scaled("beta", 1.001)),
)
