"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled
from attnflow.masks import Causal
from attnflow_gallery.causal_rate import simulate

MUTATIONS = (
    Mutation("no mask", simulate, "mask", altered("causal", lambda causal: False)),
    Mutation("softmax", simulate, "Attention", altered("normaliser", lambda normaliser: "SA")),
    Mutation("beta 30 % larger", simulate, "Attention", scaled("beta", 1.3)),
    Mutation(
        "a mask with a slope, everywhere", simulate, "mask", lambda _: lambda causal: Causal(slope=0.1, strict=True)
    ),
)
