"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result
from attnflow.tokens import Tokens
from attnflow_gallery.interpolation_is_not_learning import simulate


def elsewhere(original: Any) -> Any:
    """Fresh samples come from the opposite distributions."""

    def drawn(parameters: Any, repeat: int, n: int, fresh: bool) -> Any:
        found = original(parameters, repeat, n, fresh)
        return [Tokens(-one.positions) for one in found] if fresh else found

    return drawn


def shorter(original: Any) -> Any:
    """The last two elements of a schedule are left out when tokens are given."""

    class Short:
        def __init__(self, match: Any):
            made = match.schedule
            self.schedule = simulate.Schedule(made.space, [made[k] for k in range(len(made) - 2)])

    return lambda *a, **k: Short(original(*a, **k))


def uneven(tokens: Tokens) -> Tokens:
    """Atoms whose masses are no sums of masses of tokens."""
    return Tokens(tokens.positions, masses=np.sqrt(1.0 + np.arange(tokens.n)))


MUTATIONS = (
    Mutation("fresh samples are the given ones", simulate, "drawn", altered("fresh", lambda _: False)),
    Mutation("fresh samples from opposite distributions", simulate, "drawn", elsewhere),
    Mutation("60 tokens whatever n", simulate, "cloud", altered("n", lambda n: 60)),
    Mutation("atoms of unequal mass", simulate, "atoms", result(uneven)),
    Mutation("schedules without their last two elements", simulate, "match_measures", shorter),
)
