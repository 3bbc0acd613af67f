"""Ways to break the simulation."""

from attnflow.experiments import Mutation, scaled, with_arguments
from attnflow_gallery.noisy_transition import simulate

MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", scaled("beta", 1.001)),
    Mutation("beta 20 % larger", simulate, "Attention", scaled("beta", 1.2)),
    Mutation("no normalisation", simulate, "Attention", with_arguments(normaliser="USA0")),
    Mutation("noise of tokens 20 % stronger", simulate, "Brownian", scaled("kappa", 1.2)),
    Mutation("noise of tokens 25 % weaker", simulate, "Brownian", scaled("kappa", 0.75)),
    Mutation("all tokens feel the same noise", simulate, "Brownian", with_arguments(common=True)),
    Mutation("diffusion of the equation 0.1 % stronger", simulate, "evolve", scaled("kappa", 1.001)),
)
