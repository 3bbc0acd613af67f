"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments.mutation import Mutation, altered, given
from attnflow_gallery.map_and_density import simulate

MUTATIONS = (
    Mutation("no stretching", simulate, "polar",
             altered("jacobian", lambda _: lambda x: np.ones(len(x)))),
    Mutation("another map", simulate, "polar",
             altered("phi", lambda phi: lambda x: phi(x) + 0.05 * np.sin(3 * x[:, ::-1]))),
    Mutation("wide rims", simulate, "polar", given(ramp=3e-3)),
)  # fmt: skip
