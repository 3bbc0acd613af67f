"""`evolve_cells`: masses of cells, followed by the driver."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnflow.checks import end_time, instance, number
from attnflow.fields import AbstractField
from attnflow.flows.compiled import wait
from attnflow.flows.continuing import changed, go_on, recipe_of
from attnflow.flows.driver import Control, Driven, drive
from attnflow.flows.observables import Observe, Views
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.save import Save, continued, saved_times
from attnflow.flows.sink import AbstractSink, Layout, Variable
from attnflow.flows.stepper import AbstractSingle, Rows, Slice
from attnflow.flows.stop import AbstractStop, conditions
from attnflow.meanfield.cell_flow import CellFlow
from attnflow.meanfield.cells import Cells, make_scheme
from attnflow.meanfield.volumes import TINY, CellState, measured, stretch
from attnflow.precision import full_precision


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a flow of masses is made."""

    field: AbstractField
    cells: Cells
    masses: np.ndarray
    times: np.ndarray
    kappa: float
    tolerance: float
    stops: tuple[AbstractStop, ...]
    observe: Observe


def evolve_cells(
    field: AbstractField | None = None,
    cells: Cells | None = None,
    masses: ArrayLike | None = None,
    until: float | None = None,
    *,
    kappa: float = 0.0,
    tolerance: float = 1e-3,
    save: Save | None = None,
    stop: AbstractStop | Sequence[AbstractStop] = (),
    observe: Observe | None = None,
    sink: AbstractSink | None = None,
    from_: CellFlow | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> CellFlow:
    """Follow the masses of `cells` under `field` with noise `kappa`, from time 0 to `until`.

    Mass is kept to rounding, no mass is ever negative, and the energy E = (1/2 beta) sum_ij m_i m_j (K_ij - 1) (at most
    0 but for O(width^2)) never decreases, beyond rounding, for unnormalised attention, with potentials too, and for
    softmax attention alone: steps are kept short enough (see `volumes._flux`). With noise the free energy, which has
    -kappa sum_i m_i log(m_i / measure_i) added, climbs up to the time-stepping error for unnormalised attention.

    Second order in the width while the density is smooth. Once clusters are narrower than a cell (`narrow` is the share
    of mass in those) their places are good to a cell, as long as they move by more than 5/3 widths times their mass per
    unit time (5/3 widths for softmax); a slower drift V is too slow by about the factor log(5 width mass / (3 V)). The
    outcome says since when, and `hand_over()` hands over to particles.

    Arguments: `field`, `kappa` as for `as_model`; `masses` one per cell, of sum 1 (`cells_from_density`); `tolerance`
    the local error of a step relative to the mass it moves (three-stage SSP Runge-Kutta with the second
    order inside; with noise, Strang splitting, judged by two half steps); `save`, `stop`, `observe`, `sink`, `from_`,
    `on_progress`, `cancel`, `check` as for `solve`; observables are functions of (t, masses).

    Raises: `InvalidInput` for masses that are negative or do not sum to 1, kappa < 0, or cells wider than the kernel.
    """
    control = Control(sink, on_progress, cancel, check)
    if from_ is not None:
        recipe: Recipe = recipe_of(from_, CellFlow, "evolve_cells")
        given = {"field": field, "cells": cells, "masses": masses, "stop": stop, "observe": observe}
        given |= changed({"kappa": (kappa, 0.0), "tolerance": (tolerance, 1e-3)})
        last = float(recipe.times[-1])
        end = last if until is None else until
        control = go_on(from_, end, last, given, control)
        recipe = dataclasses.replace(recipe, times=continued(recipe.times, save, float(end), None))
    else:
        end_time(until)
        number("tolerance", tolerance, low=1e-13, high=1.0)
        found: Any = instance("cells", cells, Cells, "circle_cells(count) or zonal_cells(dim, count)")
        along: Any = field
        times = saved_times(save, float(until), None)  # type: ignore[arg-type]
        start = found.check(masses)
        recipe = Recipe(along, found, start, times, kappa, float(tolerance), conditions(stop), dict(observe or {}))
    with full_precision():
        return drive(
            _Volumes(recipe), control, lambda driven: finished(driven, recipe), observe=recipe.observe,
            stops=recipe.stops,
        )  # fmt: skip


def finished(driven: Driven, recipe: Recipe) -> CellFlow:
    """What `evolve_cells` or a run folder left."""
    since = float(driven.dataset["concentrated"]) if "concentrated" in driven.dataset else np.inf
    return CellFlow(
        driven.dataset, recipe.field, recipe.cells, driven.outcome, driven.steps, since if np.isfinite(since) else None,
        driven.checkpoint, recipe,
    )  # fmt: skip


class _Volumes(AbstractSingle):
    """Masses of cells."""

    def __init__(self, recipe: Recipe):
        self.recipe, self.times = recipe, recipe.times
        self.scheme = make_scheme(recipe.field, recipe.cells, recipe.kappa)

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.times[-1]), len(self.times)

    def layout(self) -> Layout:
        cells, floating = self.recipe.cells, np.dtype(np.float64)
        names = ["time", "energy", "narrow"] + ([] if self.scheme.softmax else ["free_energy"])
        frames = {name: Variable(("time",), floating) for name in names}
        frames["masses"] = Variable(("time", "cell"), floating)
        return Layout(
            {"time": frames}, {"cell": len(cells.centres)}, {"time": len(self.times)}, {"cell": cells.centres},
            {"measure": (("cell",), np.asarray(cells.measure))}, {"time": 16}, {},
            float(self.times[-1]), {},
        )  # fmt: skip

    def start(self) -> Views:
        return self._views(self.recipe.masses, 0.0)

    def begin(self) -> CellState:
        first = np.asarray(self.times[1])
        return CellState(
            np.zeros(()), self.recipe.masses, first, np.zeros(2, np.int64), np.asarray(np.inf), np.zeros((), np.int64)
        )

    def work(self, state: CellState) -> Slice:
        row = int(state.row)
        if row >= len(self.times):
            return Slice(state, None, self._finished(state))
        goal = float(self.times[row])
        if float(state.t) < goal:
            state = wait(stretch(self.scheme, state, np.asarray(goal), np.asarray(self.recipe.tolerance)))
            if float(state.t) < goal:
                if float(state.memory) > TINY * goal:
                    return Slice(state, None)
                message = (
                    f"integration failed near t = {float(state.t):g}: it needs steps below rounding. Check beta and "
                    "the potentials, or use more cells."
                )
                return Slice(state, None, Outcome(Ending.FAILED, message + _concentrated(state)))
        masses = np.asarray(state.masses)
        energy, free, narrow = (np.asarray(a) for a in wait(measured(self.scheme, masses[None])))
        if row == 0 and narrow[0] >= 0.5:
            state = state._replace(since=np.zeros(()))
        frames = {"time": np.array([goal]), "masses": masses[None], "energy": energy, "narrow": narrow}
        frames |= {} if self.scheme.softmax else {"free_energy": free}
        state = state._replace(row=np.asarray(row + 1))
        done = self._finished(state) if row + 1 == len(self.times) else None
        return Slice(state, Rows({"time": frames}, self._views(masses, goal)), done)

    def reached(self, state: CellState, rows: dict[str, int]) -> Reached:
        return Reached(float(state.t), rows["time"], int(np.asarray(state.steps).sum()))

    def steps(self, state: CellState) -> dict[str, int]:
        accepted, rejected = np.asarray(state.steps).tolist()
        return {"accepted": accepted, "rejected": rejected}

    def finish(self, state: CellState) -> dict[str, Any]:
        return {"concentrated": ((), np.asarray(state.since))}

    def _views(self, masses: np.ndarray, t: float) -> Views:
        return Views(np.array([[t]]), masses[None, None], (), _themselves)

    def _finished(self, state: CellState) -> Outcome:
        return Outcome(Ending.FINISHED, f"reached t = {self.times[-1]:g}." + _concentrated(state))


def _themselves(masses: Any, fixed: Any) -> Any:
    return masses


def _concentrated(state: CellState) -> str:
    """What there is to say where half of the mass is in clusters narrower than a cell."""
    if not np.isfinite(np.asarray(state.since)):
        return ""
    return (
        f" concentrated: clusters are narrower than a cell since t = {float(state.since):.4g}; they are right as "
        "clusters, up to a cell width and a slow drift: continue with `hand_over()`, or use more cells."
    )
