"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.control import Schedule
from attnflow.experiments import Mutation, altered, result
from attnflow.tokens import Tokens
from attnflow_gallery.measure_to_measure import simulate


def shorter_attention(schedule: Schedule) -> Schedule:
    """Attention acts 20 % shorter."""
    durations = np.where(schedule.free, 1.0, 0.8) * schedule.durations
    return Schedule(schedule.space, [(schedule[k][0], duration) for k, duration in enumerate(durations)])


class Weak:
    """A match whose attention is 20 % shorter when it is followed."""

    def __init__(self, match: Any):
        self.schedule = shorter_attention(match.schedule)


def uneven(tokens: Tokens) -> Tokens:
    """Atoms whose masses are no sums of masses of tokens."""
    return Tokens(tokens.positions, masses=np.sqrt(1.0 + np.arange(tokens.n)))


MUTATIONS = (
    Mutation("replay: attention 20 % shorter", simulate, "match_measures", result(Weak)),
    Mutation("atoms of unequal mass", simulate, "atoms", result(uneven)),
    Mutation("attention stays in the schedule that should lack it", simulate, "blind", lambda _: lambda plan: plan),
    Mutation("backwards: V = I/2", simulate, "MeanAttention", altered("value", lambda value: 0.5 * np.asarray(value))),
)
