"""Ways to break the simulation."""

import numpy as np

from attnflow.experiments import Mutation, altered, with_arguments
from attnflow_gallery.map_and_density import simulate

MUTATIONS = (
    Mutation("no stretching", simulate, "polar",
             altered("jacobian", lambda _: lambda x: np.ones(len(x)))),
    Mutation("another map", simulate, "polar",
             altered("phi", lambda phi: lambda x: phi(x) + 0.05 * np.sin(3 * x[:, ::-1]))),
    Mutation("wide rims", simulate, "polar", with_arguments(ramp=3e-3)),
)  # fmt: skip
