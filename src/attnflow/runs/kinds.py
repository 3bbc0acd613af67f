"""The kinds of runs: what a specification can ask for, how it is carried out and how it is opened again."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from attnflow import flows, learn, meanfield
from attnflow.flows.driver import Driven
from attnflow.flows.longtime.ensemble import by_left
from attnflow.flows.outcome import Ending, Outcome
from attnflow.flows.particles import BUILT_IN
from attnflow.learn.fit import Recipe as FitRecipe
from attnflow.learn.fit import fitted
from attnflow.meanfield.evolve_cells import Recipe as CellRecipe
from attnflow.meanfield.evolve_cells import finished as cells_finished
from attnflow.meanfield.recipe import Recipe as DensityRecipe

NEEDED = object()
"""Stands for the default of a key that must be given."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of run; its table in a specification is called like the function that does the work."""

    name: str
    parts: tuple[str, ...]
    """The other tables that it needs."""
    keys: dict[str, Any]
    """Key of its table -> default; None: left out."""
    arguments: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
    """(built parts, built keys) -> arguments of the function."""
    function: Callable[..., Any]
    opened: Callable[[Driven, dict[str, Any], dict[str, Any]], Any]
    """(what is on disk, built parts, built keys) -> the result; a part that could not be built is None."""
    rows: str
    """The dimension that counts as frames in lists."""
    end: str = "until"
    """The key that says how far to go."""

    def outcome(self, result: Any) -> Outcome:
        """How a result ended."""
        facts = self.dataset(result).attrs
        return Outcome(Ending(facts["outcome"]), facts["message"])

    def dataset(self, result: Any) -> Any:
        """The arrays of a result, which is a Dataset itself or holds one."""
        import xarray as xr

        return result if isinstance(result, xr.Dataset) else result.dataset


def _tokens(made: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    return made | keys


def _cells(made: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    masses = meanfield.cells_from_density(made["cells"], made["density"])
    return {"field": made["field"], "cells": made["cells"], "masses": masses} | keys


def _fit(made: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    points, labels = made["data"]
    return {"classifier": made["classifier"], "points": points, "labels": labels} | keys


def _space(driven: Driven, made: dict[str, Any]) -> Any:
    """The space of the tokens; without the tokens, what the arrays say of it."""
    if made["tokens"] is not None:
        return made["tokens"].space
    from attnflow import spaces

    name = str(driven.dataset.attrs["space"]).partition("(")[0]
    sized: dict[str, Callable[[int], Any]] = {
        "Sphere": spaces.Sphere,
        "Euclidean": spaces.Euclidean,
        "CentredSphere": spaces.CentredSphere,
        "Torus": lambda dim: spaces.Torus(dim // 2),
    }
    return sized[name](driven.dataset.sizes["dim"]) if name in sized else None


def _trajectory(driven: Driven, made: dict[str, Any], keys: dict[str, Any]) -> flows.Trajectory:
    return flows.Trajectory(driven.dataset, made["field"], _space(driven, made), driven.outcome, driven.steps)


def _long_flow(driven: Driven, made: dict[str, Any], keys: dict[str, Any]) -> flows.LongFlow:
    return flows.LongFlow(driven.dataset, made["field"], _space(driven, made), driven.outcome, driven.steps)


def _merges(driven: Driven, made: dict[str, Any], keys: dict[str, Any]) -> Any:
    status = {"outcome": driven.outcome.ending.value, "message": driven.outcome.message}
    return by_left(driven.dataset.load()).assign_attrs(status)


def _density_flow(driven: Driven, made: dict[str, Any], keys: dict[str, Any]) -> meanfield.DensityFlow:
    tolerances = (keys["rtol"], keys["atol"], keys["resolution"])
    recipe = DensityRecipe(made["field"], made["density"], np.zeros(0), keys["kappa"], tolerances, (), {})
    return dataclasses.replace(meanfield.DensityFlow.of(driven, recipe), checkpoint=None, recipe=None)


def _cell_flow(driven: Driven, made: dict[str, Any], keys: dict[str, Any]) -> meanfield.CellFlow:
    recipe = CellRecipe(made["field"], made["cells"], np.zeros(0), np.zeros(0), keys["kappa"], 0.0, (), {})
    return dataclasses.replace(cells_finished(driven, recipe), checkpoint=None, recipe=None)


def _fitted(driven: Driven, made: dict[str, Any], keys: dict[str, Any]) -> learn.Fitted:
    points, labels = made["data"]
    steps, rate, seed = keys["steps"], keys["rate"], keys["seed"]
    recipe = FitRecipe(made["classifier"], points, labels, steps, rate, seed, keys.get("batch") or 1)
    return dataclasses.replace(fitted(driven, recipe), checkpoint=None, recipe=None)


_FLOW: dict[str, Any] = {"stop": [], "observe": {}}
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "solve",
            ("tokens", "field"),
            {"until": NEEDED, "method": {"name": "adaptive"}, "noise": None, "save": {"name": "evenly"}, **_FLOW,
             "keep": list(BUILT_IN), "chunk": None, "tol": None},
            _tokens, flows.solve, _trajectory, "time",
        ),
        Kind(
            "solve_long",
            ("tokens", "field"),
            {"until": None, "method": {"name": "long-time"}, "observe": {}},
            _tokens, flows.solve_long, _long_flow, "time",
        ),
        Kind(
            "merge_times",
            ("tokens", "field"),
            {"until": None, "method": {"name": "long-time", "sensitive": False}},
            _tokens, flows.merge_times, _merges, "merge",
        ),
        Kind(
            "evolve",
            ("density", "field"),
            {"until": NEEDED, "kappa": 0.0, "save": {"name": "evenly", "count": 50}, "rtol": 1e-10, "atol": 1e-12,
             "resolution": 1e-6, **_FLOW},
            _tokens, meanfield.evolve, _density_flow, "time",
        ),
        Kind(
            "evolve_cells",
            ("density", "cells", "field"),
            {"until": NEEDED, "kappa": 0.0, "tolerance": 1e-3, "save": {"name": "evenly"}, **_FLOW},
            _cells, meanfield.evolve_cells, _cell_flow, "time",
        ),
        Kind(
            "fit",
            ("classifier", "data"),
            {"steps": 300, "rate": 0.02, "seed": 0, "batch": None},
            _fit, learn.fit, _fitted, "step", end="steps",
        ),
    )
}  # fmt: skip
