"""How a flow of a density is made: what `evolve` and `evolve_placed` keep, and how they go on from it."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.fields import AbstractField
from attnflow.flows.continuing import changed, go_on, recipe_of
from attnflow.flows.driver import Control
from attnflow.flows.observables import Observe
from attnflow.flows.save import Save, continued
from attnflow.flows.stop import AbstractStop

TOLERANCES = {"rtol": 1e-10, "atol": 1e-12, "resolution": 1e-6}
"""What is used unless given."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a flow of a density is made."""

    field: AbstractField
    density: Any
    """A `Density` or a `PlacedDensity`."""
    times: np.ndarray
    kappa: float
    tolerances: tuple[float, float, float]
    """rtol, atol, resolution."""
    stops: tuple[AbstractStop, ...]
    observe: Observe


def prolonged(
    flow: Any,
    kind: type,
    function: str,
    until: float | None,
    save: Save | None,
    control: Control,
    kappa: float,
    tolerances: tuple[float, float, float],
    **given: Any,
) -> tuple[Recipe, Control]:
    """The recipe of `function(from_=flow)` up to `until`; arguments that would change the flow are refused."""
    recipe: Recipe = recipe_of(flow, kind, function)
    pairs = zip(tolerances, TOLERANCES.values(), strict=True)
    numbers = {"kappa": (kappa, 0.0)} | dict(zip(TOLERANCES, pairs, strict=True))
    last = float(recipe.times[-1])
    end = last if until is None else until
    control = go_on(flow, end, last, given | changed(numbers), control)
    return dataclasses.replace(recipe, times=continued(recipe.times, save, float(end), None)), control
