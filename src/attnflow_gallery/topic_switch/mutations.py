"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled
from attnflow.masks import Everyone
from attnflow_gallery.topic_switch import simulate

MUTATIONS = (
    Mutation("no mask", simulate, "Causal", lambda original: lambda **k: Everyone()),
    Mutation("beta 0.1 % larger", simulate, "attention", scaled("beta", 1.001)),
    Mutation("switch at a place 10 % later", simulate, "switch", scaled("share", 1.1)),
    Mutation("slope larger by 1", simulate, "attention", altered("slope", lambda slope: slope + 1)),
)
