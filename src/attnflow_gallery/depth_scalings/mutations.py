"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled, with_arguments
from attnflow_gallery.depth_scalings import simulate

MUTATIONS = (
    Mutation("steps 15 % longer", simulate, "gram_layers", scaled("step", 1.15)),
    Mutation("all heads alike", simulate, "gram_layers", altered("heads", lambda heads: 1)),
    Mutation("mean values 10 % larger", simulate, "gram_layers", scaled("mean_value", 1.1)),
    Mutation("Gram matrices: b three times as large", simulate, "gram_layers", scaled("logit_scale", 3.0)),
    Mutation("Gram matrices: d doubled", simulate, "gram_layers", scaled("d", 2)),
    Mutation("vectors: a single key", simulate, "random_attention", with_arguments(d_k=1)),
    Mutation("vectors: E V = 0.3 I", simulate, "random_attention", with_arguments(mean_value=0.3)),
)
