"""Ways to break the simulation."""

from typing import Any

import equinox as eqx

from attnflow.experiments import Mutation, altered, result
from attnflow_gallery.class_separation import simulate


def _times(factor: float) -> Any:
    return lambda field: eqx.tree_at(lambda f: f.outer.value, field, factor * field.outer.value)


MUTATIONS = (
    Mutation("fitted flow runs backwards", simulate, "flow", result(_times(-1.0))),
    Mutation("fitted flow stands still", simulate, "flow", result(_times(0.0))),
    Mutation("fitted flow ends at half its time", simulate, "flow", result(_times(0.5))),
    Mutation("networks: W 1 % larger", simulate, "through", altered("field", _times(1.01))),
    Mutation("networks of dimension 3 for all tasks", simulate, "residual_network", altered("dim", lambda dim: 3)),
    Mutation("networks of dimension 2 for all tasks", simulate, "residual_network", altered("dim", lambda dim: 2)),
    Mutation("a tenth of the steps of Adam", simulate, "fit", altered("steps", lambda steps: steps // 10)),
)
