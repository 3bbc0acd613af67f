"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.control import Schedule
from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.fields import MeanAttention
from attnflow_gallery.circle_reordering import simulate


class Other:
    """A plan whose skew attention is replaced when it is followed."""

    def __init__(self, match: Any):
        elements = [match.schedule[k] for k in range(len(match.schedule))]
        kept = [element for element in elements if not _is_skew(element[0])]
        self.schedule = Schedule(match.schedule.space, kept)


def _is_skew(field: Any) -> bool:
    attends = isinstance(field, MeanAttention) and field.value is not None
    return attends and bool(abs(np.asarray(field.value.value)[0, 1]) > 0.5)


def _turned(value: np.ndarray) -> np.ndarray:
    return np.cos(np.pi / 18) * value + np.sin(np.pi / 18) * np.eye(2)


MUTATIONS = (
    Mutation("V a rotation by 80 degrees", simulate, "MeanAttention", altered("value", _turned)),
    Mutation("V 1 % larger", simulate, "MeanAttention", scaled("value", 1.01)),
    Mutation("plans without skew attention", simulate, "match_measures", result(Other)),
)
