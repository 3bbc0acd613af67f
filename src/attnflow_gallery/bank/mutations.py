"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow.fields import Attention
from attnflow.masks import Table
from attnflow_gallery.bank import simulate

APART = Table(np.array([[True, False, False], [False, True, False], [True, True, True]]))
"""The word sees both topics; topics see themselves alone and stand still."""

MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "attention", scaled("beta", 1.001)),
    Mutation("the word has a mass", simulate, "Tokens", altered("masses", lambda masses: [*masses[:2], 0.1])),
    Mutation(
        "topics do not see each other", simulate, "attention", lambda original: lambda b: Attention(b, mask=APART)
    ),
    Mutation("no softmax", simulate, "attention", lambda original: lambda b: Attention(b, normaliser="USA0")),
    Mutation("the word 0.1 % nearer to topic 1", simulate, "prompt", scaled("angle", 0.999)),
)
