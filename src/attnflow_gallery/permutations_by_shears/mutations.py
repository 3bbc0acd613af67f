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


def compressed(schedule: Schedule) -> Schedule:
    """Shears are tilted by 1 %, so that they do not preserve the volume."""
    outer, inner, bias = _weights(schedule)
    return units(outer + 1e-2 * inner, inner, bias)


def padded(schedule: Schedule) -> Schedule:
    """Everything is done, undone and done again."""
    return schedule.then(schedule.inverse()).then(schedule)


def first_half(goal: np.ndarray) -> np.ndarray:
    """The nearest permutation of the lower half alone; the upper half stays."""
    kept, half = np.arange(len(goal)), len(goal) // 2
    kept[:half] = np.argsort(np.argsort(goal[:half]))
    return kept


MUTATIONS = (
    Mutation("3-cycles: the first shear left out", simulate, "three_cycle", result(cut_short)),
    Mutation("3-cycles: shears tilted", simulate, "three_cycle", result(compressed)),
    Mutation("permutations: the first shear left out", simulate, "permute_cells", result(cut_short)),
    Mutation("permutations: three times as many shears", simulate, "permute_cells", result(padded)),
    Mutation("another permutation for the swirl", simulate, "assigned", result(first_half)),
)
