"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled, with_arguments
from attnflow.flows import Euler, Project
from attnflow_gallery.euler_limit import simulate

MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", scaled("beta", 1.001)),
    Mutation("beta 10 % larger", simulate, "Attention", scaled("beta", 1.1)),
    Mutation("layers x + hPA: no normalisation", simulate, "RULES", lambda rules: rules | {"N(x + hPA)": Project}),
    Mutation("weights vary with depth 1 % faster", simulate, "depth", altered("t", lambda t: 1.01 * t)),
    Mutation("Euler steps instead of RK4", simulate, "Fixed", with_arguments(rule=Euler())),
    Mutation("independent layers: scale 20 % larger", simulate, "Random", scaled("scale", 1.2)),
    Mutation("independent layers: drawn once per network", simulate, "Random", with_arguments(step=1e9)),
)
