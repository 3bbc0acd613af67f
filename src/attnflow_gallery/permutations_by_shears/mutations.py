"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.control import Schedule, units
from attnflow.experiments import Mutation, result
from attnflow_gallery.permutations_by_shears import simulate


def _weights(schedule: Schedule) -> tuple[Any, Any, Any]:
    kind: Any = schedule.field.kinds[0]
    rows = np.asarray(schedule.field.row)
    return np.asarray(kind.outer.value)[rows], np.asarray(kind.inner.value)[rows], np.asarray(kind.bias.value)[rows]


def cut_short(schedule: Schedule) -> Schedule:
    """The first shear is left out."""
    outer, inner, bias = _weights(schedule)
    return units(outer[4:], inner[4:], bias[4:])


def first_half(goal: np.ndarray) -> np.ndarray:
    """The nearest permutation of the lower half alone; the upper half stays."""
    kept, half = np.arange(len(goal)), len(goal) // 2
    kept[:half] = np.argsort(np.argsort(goal[:half]))
    return kept


def shrinking(original: Any) -> Any:
    """Wide rims are a share n^(-3) of a cell, so that they matter less and less."""

    def permute(goal: np.ndarray, *, ramp: float) -> Schedule:
        made: Schedule = original(goal, ramp=ramp if ramp < 1e-3 else 2.0 * ramp * (4 / len(goal) ** 0.5) ** 3)
        return made

    return permute


MUTATIONS = (
    Mutation("3-cycles: the first shear left out", simulate, "three_cycle", result(cut_short)),
    Mutation("permutations: the first shear left out", simulate, "permute_cells", result(cut_short)),
    Mutation("another permutation for the swirl", simulate, "assigned", result(first_half)),
    Mutation("rims that shrink with the cells", simulate, "permute_cells", shrinking),
)
