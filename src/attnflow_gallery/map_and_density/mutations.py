"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, with_arguments
from attnflow_gallery.map_and_density import simulate


def _bent(phi: Any) -> Any:
    return lambda x: phi(x) + 0.05 * np.sin(3 * x[:, ::-1])


MUTATIONS = (
    Mutation("no stretching", simulate, "polar", altered("jacobian", lambda _: lambda x: np.ones(len(x)))),
    Mutation("another map", simulate, "polar", altered("phi", _bent)),
    Mutation("wide rims", simulate, "polar", with_arguments(ramp=3e-2)),
)
