"""`evolve_cells`: masses of cells, followed by the driver."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from attnflow.checks import end_time, instance, number
from attnflow.feasible import require_clock
from attnflow.fields import AbstractField
from attnflow.flows.compiled import wait
from attnflow.flows.driver import Control, Drive
from attnflow.flows.observables import Observe, Views
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.saving import Evenly, Save, as_times
from attnflow.flows.sink import AbstractSink, Layout, Variable
from attnflow.flows.stepper import AbstractSingle, Rows, Slice
from attnflow.flows.stopping import AbstractStop, conditions
from attnflow.flows.work import AbstractWork, Driven
from attnflow.meanfield.cells.flow import CellFlow
from attnflow.meanfield.cells.grid import Cells, cells_from_density, make_scheme
from attnflow.meanfield.cells.volumes import TINY, CellState, measured, stretch
from attnflow.meanfield.harmonics.density import Density


@dataclasses.dataclass(frozen=True)
class EvolveCells(AbstractWork):
    """Masses of cells: the work of `evolve_cells`, whose arguments its fields are."""

    field: AbstractField
    cells: Cells
    density: Density | ArrayLike
    """A density, or the masses of the cells."""
    until: float
    kappa: float = 0.0
    tol: float = 1e-3
    save: Save | None = Evenly(200)
    stop: AbstractStop | Sequence[AbstractStop] = ()
    observe: Observe | None = dataclasses.field(default_factory=dict)

    def checked(self) -> Self:
        number("tol", self.tol, low=1e-13, high=1.0)
        cells: Cells = instance("cells", self.cells, Cells, "circle_cells(count) or zonal_cells(dim, count)")
        found = cells_from_density(cells, self.density) if isinstance(self.density, Density) else self.density
        made = dataclasses.replace(
            self, until=require_clock(end_time(self.until)), density=cells.check(found), tol=float(self.tol),
            save=as_times(self.save), stop=conditions(self.stop), observe=dict(self.observe or {}),
        )  # fmt: skip
        made.times  # noqa: B018 (refuses what is no rule for times)
        return made

    def stepper(self) -> "_Volumes":
        return _Volumes(self)

    def result(self, driven: Driven) -> CellFlow:
        since = float(driven.dataset["concentrated"]) if "concentrated" in driven.dataset else np.inf
        return CellFlow(
            driven.dataset, self.field, self.cells, driven.outcome, driven.steps, since if np.isfinite(since) else None,
            driven.checkpoint, self,
        )  # fmt: skip


def evolve_cells(
    field: AbstractField,
    cells: Cells,
    masses: ArrayLike | Density,
    until: float,
    *,
    kappa: float = 0.0,
    tol: float = 1e-3,
    save: Save | None = None,
    stop: AbstractStop | Sequence[AbstractStop] = (),
    observe: Observe | None = None,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> CellFlow:
    """Follow the masses of `cells` under `field` with noise `kappa`, from time 0 to `until`.

    Mass is kept to rounding, no mass is ever negative, and the energy E = (1/2 beta) sum_ij m_i m_j (K_ij - 1) (at most
    0 except for O(width^2)) never decreases, beyond rounding, for unnormalised attention, with potentials too, and for
    softmax attention alone: steps are kept short enough (see `volumes._flux`). With noise the free energy, which has
    -kappa sum_i m_i log(m_i / measure_i) added, climbs up to the time-stepping error for unnormalised attention.

    Second order in the width while the density is smooth. Once clusters are narrower than a cell (`narrow` is the share
    of mass in those) their places are good to a cell, as long as they move by more than 5/3 widths times their mass per
    unit time (5/3 widths for softmax); a slower drift V is too slow by about the factor log(5 width mass / (3 V)). The
    outcome says since when, and `hand_over()` hands over to particles.

    Arguments: `field`, `kappa` as for `as_model`; `masses` one per cell, of sum 1, or a `Density`
    (`cells_from_density`); `tol` the local error of a step relative to the mass it moves (three-stage SSP
    Runge-Kutta with the second order inside; with noise, Strang splitting, judged by two half steps); `save`, `stop`,
    `observe`, `sink`, `on_progress`, `cancel`, `check` as for `solve`; observables are functions of (t, masses).

    Raises: `InvalidInput` for masses that are negative or do not sum to 1, kappa < 0, or cells wider than the kernel.
    """
    work = EvolveCells(field, cells, masses, until, kappa, tol, save, stop, observe)
    found: CellFlow = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


class _Volumes(AbstractSingle):
    """Masses of cells."""

    def __init__(self, flow: EvolveCells):
        self.times, self.cells, self.masses = flow.times, flow.cells, np.asarray(flow.density)
        self.tol = np.asarray(flow.tol)
        self.scheme = make_scheme(flow.field, flow.cells, flow.kappa)

    @property
    def goal(self) -> tuple[float, int]:
        return float(self.times[-1]), len(self.times)

    def layout(self) -> Layout:
        cells, floating = self.cells, np.dtype(np.float64)
        names = ["time", "energy", "narrow"] + ([] if self.scheme.softmax else ["free_energy"])
        frames = {name: Variable(("time",), floating) for name in names}
        frames["masses"] = Variable(("time", "cell"), floating)
        return Layout(
            {"time": frames}, {"cell": len(cells.centres)}, {"time": len(self.times)}, {"cell": cells.centres},
            {"measure": (("cell",), np.asarray(cells.measure))}, {"time": 16}, {},
            float(self.times[-1]), {},
        )  # fmt: skip

    def start(self) -> Views:
        return self._views(self.masses, 0.0)

    def begin(self) -> CellState:
        first = np.asarray(self.times[1])
        return CellState(
            np.zeros(()), self.masses, first, np.zeros(2, np.int64), np.asarray(np.inf), np.zeros((), np.int64)
        )

    def work(self, state: CellState) -> Slice:
        row = int(state.row)
        if row >= len(self.times):
            return Slice(state, None, self._finished(state))
        goal = float(self.times[row])
        if float(state.t) < goal:
            state = wait(stretch(self.scheme, state, np.asarray(goal), self.tol))
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
