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
    """One measure alone, element by element, by a solver that knows no closed forms, unlike the builder of a schedule.

    Every element is solved by itself, so that elements of one kind share a program and no step crosses a switch.
    """
    method = Adaptive(1e-9, 1e-11, max_steps=10**6)
    for field, time in (schedule[k] for k in range(len(schedule))):
        tokens = solve(field, tokens, time, method=method, save=2, keep=["positions"]).tokens(-1)
    return tokens
