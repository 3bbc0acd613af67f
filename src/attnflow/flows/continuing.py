"""Going on behind the end of a flow."""

import dataclasses
from typing import Any

from attnflow.checks import end_time, instance
from attnflow.errors import InvalidInput
from attnflow.flows.driver import Control
from attnflow.flows.outcome import Ending
from attnflow.flows.sink import InMemory


def go_on(flow: Any, until: Any, last: float, given: dict[str, Any], control: Control) -> Control:
    """Check that `flow`, which went to `last`, can be continued to `until`; the control with which it is.

    `given` are arguments that only a new flow takes. An interrupted flow may be carried to where it was going.
    """
    for name, value in given.items():
        if value is not None and not (isinstance(value, tuple) and not value):
            raise InvalidInput(f"`{name}` is given with `from_`; the flow goes on as it began, leave it out.")
    if control.sink is not None:
        raise InvalidInput("`sink` is given with `from_`; continue a run folder with `attnflow extend RUN`.")
    if flow.outcome.ending in (Ending.STOPPED, Ending.FAILED, Ending.FROZEN):
        raise InvalidInput(
            f"`from_` has ended: {flow.outcome.message.removesuffix('.')}; it does not go on from there."
        )
    end_time(until, endless=True)
    if until < last or (until == last and flow.outcome.ending is not Ending.INTERRUPTED):
        raise InvalidInput(f"`until` is {until:g}, but the flow goes to {last:g} already; give a later time.")
    if flow.checkpoint.state is None:  # interrupted before it began
        return dataclasses.replace(control, sink=InMemory())
    saved = dataclasses.replace(flow.checkpoint, committed=flow.checkpoint.rows, outcome=None)
    return dataclasses.replace(control, sink=InMemory(flow.dataset, saved))


def changed(numbers: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
    """From (value, default): the values that are not the default, None for the others."""
    return {name: None if value == default else value for name, (value, default) in numbers.items()}


def recipe_of(flow: Any, kind: Any, made_by: str) -> Any:
    """How `flow` was made, if it can be continued."""
    instance("from_", flow, kind, f"a flow that `{made_by}` returned")
    if flow.recipe is None or flow.checkpoint is None:
        raise InvalidInput("`from_` does not know how it was made; continue a run folder with `attnflow extend RUN`.")
    return flow.recipe
