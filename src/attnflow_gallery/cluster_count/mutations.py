"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled, with_arguments
from attnflow_gallery.cluster_count import simulate

MUTATIONS = (
    Mutation("beta 20 % larger", simulate, "Attention", scaled("beta", 1.2)),
    Mutation("beta 60 % larger", simulate, "Attention", scaled("beta", 1.6)),
    Mutation("USA0 in place of SA", simulate, "Attention", with_arguments(normaliser="USA0")),
    Mutation("densities have the fluctuations of 100 tokens", simulate, "many", altered("size", lambda size: 100.0)),
    Mutation("seeded rings have one crest more", simulate, "one_mode", altered("k", lambda k: k + 1)),
)
