"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, result, scaled, with_arguments
from attnflow_gallery.collapse_at_initialisation import simulate

MUTATIONS = (
    Mutation("steps 5 % longer", simulate, "gram_layers", scaled("step", 1.05)),
    Mutation("b twice as large", simulate, "gram_layers", scaled("logit_scale", 2.0)),
    Mutation("mean values of 0.02", simulate, "gram_layers", with_arguments(mean_value=0.02)),
    Mutation("d four times as large", simulate, "gram_layers", scaled("d", 4)),
    Mutation("a single key", simulate, "gram_layers", with_arguments(d_k=1)),
    Mutation("tokens start with the overlap 0.05", simulate, "start", result(lambda gram: 0.95 * gram + 0.05)),
    Mutation("one token more", simulate, "start", altered("n", lambda n: n + 1)),
)
