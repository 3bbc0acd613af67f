"""Schedules of random measures, and where they lead by a solver of its own."""

from collections.abc import Callable
from typing import Any

from attnflow.control import Schedule
from attnflow.errors import AttnflowError
from attnflow.flows import Adaptive, solve
from attnflow.tokens import Tokens


def planned(match: Callable[..., Any], inputs: list[Tokens], targets: list[Tokens], seed: int) -> Schedule | None:
    """The schedule that `match` finds, `control.match_measures` in an experiment; None where it refuses."""
    try:
        found: Schedule = match(inputs, targets, seed=seed).schedule
    except AttnflowError:
        return None
    return found


def followed(schedule: Schedule, tokens: Tokens) -> Tokens:
    """One measure alone, by a solver that knows no closed forms; the builder has replayed it exactly."""
    method = Adaptive(1e-9, 1e-11, max_steps=10**6)
    return solve(schedule.field, tokens, schedule.duration, method=method, save=2, keep=["positions"]).tokens(-1)
