"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, faster, scaled
from attnflow_gallery.stability_of_measures import simulate

MUTATIONS = (
    Mutation("softmax without its normaliser", simulate, "field", altered("model", lambda model: "USA0")),
    Mutation("USA0 with a normaliser", simulate, "field", altered("model", lambda model: "SA")),
    Mutation("tokens twice as fast", simulate, "field", faster(2.0)),
    Mutation("tokens 1 % slower", simulate, "field", faster(0.99)),
    Mutation("V = -I", simulate, "field", faster(-1.0)),
    Mutation("beta 5 % larger", simulate, "field", scaled("beta", 1.05)),
)
