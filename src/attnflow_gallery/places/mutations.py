"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow_gallery.places import simulate

MUTATIONS = (
    Mutation("beta 0.01 % larger", simulate, "attention", scaled("beta", 1 + 1e-4)),
    Mutation("no rotary encoding", simulate, "attention", altered("rotary", lambda rotary: False)),
    Mutation("places in another order", simulate, "on_circle", altered("places", lambda p: np.ravel(p)[::-1] * 2)),
    Mutation("additive places 0.1 % larger", simulate, "word_tokens", scaled("size", 1.001)),
)
