"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled
from attnflow_gallery.geodesics import simulate

CLOCKS = {"SA": "USA0", "USA0": "USA"}

MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", scaled("beta", 1.001)),
    Mutation("other clocks: USA0 for SA, USA for USA0", simulate, "Attention", altered("normaliser", CLOCKS.get)),
)
