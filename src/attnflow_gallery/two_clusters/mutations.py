"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled
from attnflow_gallery.two_clusters import simulate

MUTATIONS = (
    Mutation("beta 0.0001 % larger", simulate, "Attention", scaled("beta", 1 + 1e-6)),
    Mutation("beta 0.001 % larger", simulate, "Attention", scaled("beta", 1 + 1e-5)),
    Mutation("angle 0.001 % larger", simulate, "place", scaled("angle", 1 + 1e-5)),
    Mutation("equal masses", simulate, "place", altered("mass", lambda mass: 0.5)),
    Mutation("first cluster 0.01 % heavier", simulate, "place", scaled("mass", 1.0001)),
    Mutation("SA and USA0 swapped", simulate, "Attention", altered("normaliser", {"SA": "USA0", "USA0": "SA"}.get)),
    Mutation("relative tolerance of steps 1e-6", simulate, "Adaptive", altered("rtol", lambda rtol: 1e-6)),
)
