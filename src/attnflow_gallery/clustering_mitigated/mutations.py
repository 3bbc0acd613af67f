"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled
from attnflow_gallery.clustering_mitigated import simulate


def _at_most_1(b: float) -> float:
    return min(b, 1.0)


MUTATIONS = (
    Mutation("pairs: as many keys as dimensions", simulate, "keys", altered("d_k", lambda d_k: 8)),
    Mutation("pairs: logit scale 8 times smaller", simulate, "keys", scaled("b", 1 / 8)),
    Mutation("pairs: each token hears itself alone", simulate, "uniform_mean", lambda original: lambda x, logits: x),
    Mutation("nearby tokens are 0.5 apart", simulate, "near", altered("angle", lambda angle: 0.5)),
    Mutation("antipodal: beta 60 % larger", simulate, "Attention", scaled("beta", 1.6)),
    Mutation("antipodal: values kept for two layers", simulate, "Random", scaled("step", 2.0)),
    Mutation("antipodal: beta 10 times smaller", simulate, "Attention", scaled("beta", 0.1)),
    Mutation("orthonormal tokens: half the logit scale", simulate, "gram_layers", scaled("logit_scale", 0.5)),
    Mutation("tokens: logit scale at most 1", simulate, "random_attention", altered("logit_scale", _at_most_1)),
    Mutation("tokens: values of mean 0.2", simulate, "random_attention", altered("mean_value", lambda _: 0.2)),
)
