"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.control import Schedule
from attnflow.errors import FlowFailed
from attnflow.experiments import Mutation, altered, result, scaled
from attnflow_gallery.circle_reordering import simulate


class Other:
    """A plan whose skew attention is replaced when it is followed."""

    def __init__(self, match: Any):
        elements = [match.schedule[k] for k in range(len(match.schedule))]
        kept = [element for element in elements if not simulate._is_skew(element[0])]
        self.schedule = Schedule(match.schedule.space, kept)


def one_boost(original: Any) -> Any:
    """The builder has one try: without a boost most orders are not passed in the times tried."""

    def plan(*arguments: Any, **keywords: Any) -> Any:
        match = original(*arguments, **keywords)
        if match.tries > 1:
            raise FlowFailed("no schedule was found in the first try", match)
        return match

    return plan


def _turned(value: np.ndarray) -> np.ndarray:
    return np.cos(np.pi / 18) * value + np.sin(np.pi / 18) * np.eye(2)


MUTATIONS = (
    Mutation("V a rotation by 80 degrees", simulate, "MeanAttention", altered("value", _turned)),
    Mutation("V 1 % larger", simulate, "MeanAttention", scaled("value", 1.01)),
    Mutation("plans without skew attention", simulate, "match_measures", result(Other)),
    Mutation("a builder without boosts", simulate, "match_measures", one_boost),
)
