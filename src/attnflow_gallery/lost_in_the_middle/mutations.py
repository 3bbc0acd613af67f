"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled, with_arguments
from attnflow.masks import Everyone
from attnflow_gallery.lost_in_the_middle import simulate

MUTATIONS = (
    Mutation("no mask", simulate, "Causal", lambda original: lambda **k: Everyone()),
    Mutation("no slope", simulate, "attention", scaled("slope", 0.0)),
    Mutation("a slope larger by 1", simulate, "attention", altered("slope", lambda slope: slope + 1)),
    Mutation("every token sees itself, unless softmax", simulate, "Causal", with_arguments(strict=False)),
    Mutation("no token sees itself", simulate, "Causal", with_arguments(strict=True)),
    Mutation("flows end 20 % late", simulate, "derivatives", scaled("until", 1.2)),
    Mutation("beta 50 % larger", simulate, "attention", scaled("beta", 1.5)),
    Mutation("plain averages end at half the time", simulate, "retrieval_profile", scaled("until", 0.5)),
)
