"""Finite volumes: the continuity equation for masses of cells, through concentration into clusters and beyond.

d m_i/dt = F_{i-1/2} - F_{i+1/2}, F the mass that passes an edge per unit time. Tokens move along grad Phi, and the
discrete equation climbs the discrete energy as the true one does (Carrillo, Chertock and Huang, arXiv:1402.4252):
v_{i+1/2} = (Phi_{i+1} - Phi_i)/width with Phi made of a symmetric matrix, and F carries v times the density of the cell
that the flow leaves, reconstructed linearly with a limiter. So F v >= 0 at every edge.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from attnflow.fields import AbstractField
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.continuing import go_on, recipe_of
from attnflow.flows.driver import AbstractStepper, Control, Driven, Rows, Slice, drive
from attnflow.flows.observables import Observe, Views
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.schedules import Save, as_schedule, continued
from attnflow.flows.sink import AbstractSink, Layout, Variable
from attnflow.flows.stops import AbstractStop, Frame, conditions
from attnflow.meanfield.cell_flow import CellFlow
from attnflow.meanfield.cells import Cells, Scheme, make_scheme
from attnflow.meanfield.given import number, of_kind
from attnflow.precision import full_precision

Masses = Float[Array, " cell"]
LIMIT = 256
"""Steps between two looks at the clock."""
TINY = 1e-14
"""The shortest step, as a share of the time to be reached."""
NARROW = 0.9
"""The share of six neighbouring cells that two of them hold where a cluster counts as narrower than a cell."""


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
    softmax attention alone: steps are kept short enough (see `_flux`). With noise the free energy, which has
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
        given = {"field": field, "cells": cells, "stop": stop, "observe": observe}
        last = float(recipe.times[-1])
        end = last if until is None else until
        control = go_on(from_, end, last, given, control)
        recipe = dataclasses.replace(recipe, times=continued(recipe.times, save, float(end), None))
    else:
        number("until", until, 0.0, open_=True)
        number("tolerance", tolerance, 0.0, 1.0, open_=True)
        found: Any = of_kind("cells", cells, Cells, "circle_cells(count) or zonal_cells(dim, count)")
        along: Any = field
        times = as_schedule(save).times(float(until), None)  # type: ignore[arg-type]
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


class State(NamedTuple):
    """Where the integration is."""

    t: Any
    masses: Any
    memory: Any
    """The next step."""
    steps: Any
    since: Any
    """The time since which half of the mass has been in clusters narrower than a cell; inf before."""
    row: Any
    """Frames so far."""


class _Volumes(AbstractStepper):
    """Masses of cells."""

    def __init__(self, recipe: Recipe):
        self.recipe, self.times = recipe, recipe.times
        self.scheme = make_scheme(recipe.field, recipe.cells, recipe.kappa)

    @property
    def batch(self) -> tuple[str, ...]:
        return ()

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

    def begin(self) -> State:
        first = np.asarray(self.times[1])
        return State(
            np.zeros(()), self.recipe.masses, first, np.zeros(2, np.int64), np.asarray(np.inf), np.zeros((), np.int64)
        )

    def work(self, state: State) -> Slice:
        row = int(state.row)
        if row >= len(self.times):
            return Slice(state, None, self._finished(state))
        goal = float(self.times[row])
        if state.t < goal:
            state = wait(_stretch(self.scheme, state, np.asarray(goal), np.asarray(self.recipe.tolerance)))
            if state.t < goal:
                if state.memory > TINY * goal:
                    return Slice(state, None)
                message = (
                    f"integration failed near t = {float(state.t):g}: it needs steps below rounding. Check beta and "
                    "the potentials, or use more cells."
                )
                return Slice(state, None, Outcome(Ending.FAILED, message + _concentrated(state)))
        masses = np.asarray(state.masses)
        energy, free, narrow = (np.asarray(a) for a in wait(_measured(self.scheme, masses[None])))
        if row == 0 and narrow[0] >= 0.5:
            state = state._replace(since=np.zeros(()))
        frames = {"time": np.array([goal]), "masses": masses[None], "energy": energy, "narrow": narrow}
        frames |= {} if self.scheme.softmax else {"free_energy": free}
        state = state._replace(row=np.asarray(row + 1))
        done = self._finished(state) if row + 1 == len(self.times) else None
        return Slice(state, Rows({"time": frames}, self._views(masses, goal)), done)

    def unfinished(self, state: State) -> None:
        return None

    def hold(self, state: State, members: np.ndarray, time: float, frame: Any) -> State:
        return state

    def is_still(self, frame: Frame) -> None:
        return None

    def reached(self, state: State, rows: dict[str, int]) -> Reached:
        return Reached(float(state.t), rows["time"], int(np.sum(state.steps)))

    def steps(self, state: State) -> dict[str, int]:
        return {"accepted": int(state.steps[0]), "rejected": int(state.steps[1])}

    def finish(self, state: State) -> dict[str, Any]:
        return {"concentrated": ((), np.asarray(state.since))}

    def _views(self, masses: np.ndarray, t: float) -> Views:
        return Views(np.array([[t]]), masses[None, None], (), _themselves)

    def _finished(self, state: State) -> Outcome:
        return Outcome(Ending.FINISHED, f"reached t = {self.times[-1]:g}." + _concentrated(state))


def _themselves(masses: Any, fixed: Any) -> Any:
    return masses


def _concentrated(state: State) -> str:
    """What there is to say where half of the mass is in clusters narrower than a cell."""
    if not np.isfinite(state.since):
        return ""
    return (
        f" concentrated: clusters are narrower than a cell since t = {float(state.since):.4g}; they are right as "
        "clusters, up to a cell width and a slow drift: continue with `hand_over()`, or use more cells."
    )


def summed(table: Any, charges: Masses) -> Array:
    """A table of the kernel (a matrix, or the transform of a row) times charges."""
    table = jnp.asarray(table)
    if table.ndim == 2:
        return table @ charges
    spectrum = jnp.fft.rfft(charges)
    return jnp.fft.irfft(jax.lax.complex(table * spectrum.real, table * spectrum.imag), charges.shape[0])


def climb(scheme: Scheme, masses: Masses) -> tuple[Array, Array]:
    """Phi in every cell, and log(K * mu) where softmax divides by it (else 0)."""
    beta, direct = scheme.beta, scheme.kernel.direct
    sums, safe = summed(scheme.kernel.table, masses), jnp.maximum(scheme.beta, 1e-12)
    level = jnp.where(
        direct, jnp.log(jnp.maximum(sums, scheme.kernel.floor)), jnp.log1p(jnp.where(direct, 0.0, beta * sums))
    )
    linear = scheme.factor * jnp.where(direct, sums / safe, sums)
    phi = jnp.where(scheme.softmax, jnp.where(beta < safe, sums, level / safe), linear)
    return phi + scheme.outer, jnp.where(scheme.softmax, level, 0.0)


def energy(scheme: Scheme, masses: Masses) -> Array:
    """What the scheme climbs: the free energy, in units of the clock's factor."""
    return _energies(scheme, masses)[1] / scheme.factor


def _energies(scheme: Scheme, masses: Masses) -> tuple[Array, Array]:
    """E plus the potentials, and the free energy: E times the clock's factor, plus potentials, minus kappa entropy."""
    sums = jnp.sum(masses * summed(scheme.kernel.table, masses))
    pairs = jnp.where(scheme.kernel.direct, (sums - jnp.sum(masses) ** 2) / jnp.maximum(scheme.beta, 1e-12), sums) / 2
    entropy = jnp.sum(xlogy(masses, masses) - masses * scheme.log_measure)
    outer = jnp.sum(masses * scheme.outer)
    return pairs + outer, scheme.factor * pairs + outer - scheme.kappa * entropy


def narrow_share(masses: Masses) -> Array:
    """The share of mass in clusters narrower than a cell: in two neighbours with most of the mass of six."""
    pair = masses + jnp.roll(masses, -1)
    lumps = pair >= NARROW * (jnp.roll(pair, 2) + pair + jnp.roll(pair, -2))
    return jnp.sum(jnp.where(lumps | jnp.roll(lumps, 1), masses, 0.0))


def _flux(scheme: Scheme, masses: Masses) -> tuple[Array, Array]:
    """The mass that passes every edge, and the inverse of the longest step that keeps positivity and the energy.

    Positivity: a reconstructed mass is at most 2 m_i, so a cell loses at most 2 (v area / measure) m_i. Energy: a step
    f changes E by D step + step^2 f.G f/2, G = (K-1)/beta, D = sum F (difference of G m). Summing by parts,
    f.G f <= C width^2 (sum |F|)^2 <= C Q D by Cauchy-Schwarz, with C the largest mixed second difference of G over
    width^2 and Q = width^2 sum F/(difference of G m): an Euler step climbs if it is below 2/(C Q), and the convex
    combinations of the third-order scheme, E being quadratic, if each stage is below 2/(3 C Q). Where that is short
    (softmax, K * mu small), Schur's test with the carried masses as weights gives f.G f <= R D with R of order 1; the
    weights may change within a step, so 1/(3 R) is kept to.
    """
    phi, level = climb(scheme, masses)
    v = (jnp.roll(phi, -1) - phi) / scheme.width
    rise = (jnp.roll(masses, -1) * scheme.up - masses) / scheme.gap  # slopes at the edge, times the measure of cell i
    past = (masses - jnp.roll(masses * scheme.down, 1)) / jnp.roll(scheme.gap, 1)
    inner = scheme.right > 0  # at the poles the density goes on as its mirror image, without a slope
    slope = _limited(jnp.where(jnp.roll(inner, 1), past, 0.0), jnp.where(inner, rise, 0.0))
    most = masses / jnp.maximum(scheme.ahead, scheme.behind)
    slope = jnp.clip(slope, -most, most)
    outgoing = scheme.right * (masses + slope * scheme.ahead)
    incoming = scheme.left * jnp.roll(masses - slope * scheme.behind, -1)
    carried = jnp.where(v > 0, outgoing, incoming)
    loss = scheme.right * jnp.maximum(v, 0.0) + jnp.roll(scheme.left * jnp.maximum(-v, 0.0), 1)
    inverse = jnp.exp(-(level + jnp.roll(level, -1)) / 2)  # at least the inverse of the logarithmic mean of K * mu
    weight = scheme.width * scheme.factor * inverse
    crude, most_lost = 1.5 * scheme.kernel.curvature * jnp.sum(carried * weight), 2 * jnp.max(loss)

    def finer() -> Array:
        return jnp.minimum(crude, 3 * jnp.max(summed(scheme.kernel.bends, carried) * weight))

    return carried * v, jnp.maximum(most_lost, jax.lax.cond(crude > most_lost, finer, lambda: crude))


def _limited(a: Array, b: Array) -> Array:
    """The mean slope, at most twice the smaller one, 0 where they differ in sign (monotonised central)."""
    size = jnp.minimum(jnp.abs(a + b) / 2, 2 * jnp.minimum(jnp.abs(a), jnp.abs(b)))
    return jnp.where(a * b > 0, jnp.sign(a) * size, 0.0)


class Moved(NamedTuple):
    """One step: the masses after it, the estimate of its error in L^1, and the inverse of the longest step allowed."""

    masses: Any
    error: Any
    limit: Any


def advect(scheme: Scheme, masses: Masses, tau: Any) -> Moved:
    """One step without noise: third-order SSP Runge-Kutta, with Heun's step inside.

    The stages are convex combinations of Euler steps, so no mass is negative; they are summed as fluxes, to keep the
    total, and rounding below 0 is cut off.
    """

    def stage(m: Array, kept: Array) -> tuple[Array, tuple[Array, Array]]:
        flux, limit = _flux(scheme, m)
        return kept * masses + (1 - kept) * (m - tau * _divergence(flux)), (flux, limit)

    _, (fluxes, limits) = jax.lax.scan(stage, masses, jnp.array([0.0, 0.75, 0.0]))
    found = masses - tau * _divergence((fluxes[0] + fluxes[1]) / 6 + fluxes[2] * (2 / 3))
    error = tau * jnp.sum(jnp.abs(_divergence(fluxes[0] + fluxes[1] - 2 * fluxes[2]))) / 3
    return Moved(jnp.maximum(found, 0.0), error, jnp.max(limits))


def diffuse(scheme: Scheme, masses: Masses, tau: Any) -> Array:
    """The heat flow over the time `tau`, second order, never negative for any `tau`.

    Two implicit Euler steps of tau/2, which keep the sign since their matrix is an M-matrix; then the flux by which
    they exceed one of tau is taken off (Richardson), reduced where it would make a cell negative.
    """
    right, left = scheme.kappa * scheme.right / scheme.gap, scheme.kappa * scheme.left / scheme.gap
    steps = jnp.stack([tau / 2, tau])
    implicit = jax.vmap(lambda m, step: _implicit(right, left, m, step))

    def both(start: Array, _: None) -> tuple[Array, Array]:
        after = implicit(start, steps)
        return jnp.stack([after[0], masses]), after

    _, after = jax.lax.scan(both, jnp.stack([masses, masses]), None, length=2)
    half, twice, whole = after[0, 0], after[1, 0], after[0, 1]
    mean = half + twice - 2 * whole
    extra = tau / 2 * (right * mean - left * jnp.roll(mean, -1))
    out = jnp.maximum(extra, 0.0) + jnp.maximum(-jnp.roll(extra, 1), 0.0)
    share = jnp.minimum(1.0, twice / jnp.where(out > 0, out, 1.0))
    return jnp.maximum(twice - _divergence(extra * jnp.where(extra > 0, share, jnp.roll(share, -1))), 0.0)


def _implicit(right: Array, left: Array, masses: Masses, tau: Any) -> Array:
    """One implicit Euler step: a cyclic tridiagonal system, by Sherman and Morrison. Only positive terms are added."""
    diagonal = 1 + tau * (right + jnp.roll(left, 1))
    below, above = -tau * jnp.roll(right, 1), -tau * left
    corner, other = below[0], above[-1]  # first row, last column; last row, first column
    first = diagonal[0]
    bent = diagonal.at[0].add(first).at[-1].add(corner * other / first)
    sides = jnp.stack([masses, jnp.zeros_like(masses).at[0].set(-first).at[-1].set(other)], axis=1)
    solved = jax.lax.linalg.tridiagonal_solve(below.at[0].set(0.0), bent, above.at[-1].set(0.0), sides)
    y, z = solved[:, 0], solved[:, 1]
    top, bottom = y[0] - corner / first * y[-1], 1 + z[0] - corner / first * z[-1]
    return y - top / bottom * z


def _divergence(flux: Array) -> Array:
    return flux - jnp.roll(flux, 1)


def move(scheme: Scheme, masses: Masses, tau: Any) -> Moved:
    """One step. With noise, two half steps of Strang splitting (heat, attention, heat) judged by a whole one."""
    noisy = scheme.kappa > 0

    def heat(m: Array, step: Any) -> Array:
        return jax.lax.cond(noisy, diffuse, lambda scheme, m, step: m, scheme, m, step)

    def strang(m: Array, step: Any) -> Moved:
        def part(now: Moved, first: Array) -> tuple[Moved, None]:
            warm = now._replace(masses=heat(now.masses, step / 2))
            return jax.lax.cond(first, lambda: advect(scheme, warm.masses, step), lambda: warm), None

        still = Moved(m, jnp.zeros(()), jnp.zeros(()))
        return jax.lax.scan(part, still, jnp.array([True, False]))[0]

    def once(j: Array, carry: tuple[Moved, Array]) -> tuple[Moved, Array]:
        now, whole = carry
        share = jnp.where(j == 0, 1.0, 0.5)
        moved = strang(jnp.where(j == 2, now.masses, masses), share * tau)
        limit = jnp.maximum(now.limit, share * moved.limit)
        return Moved(moved.masses, moved.error, limit), jnp.where(j == 0, moved.masses, whole)

    begin = Moved(masses, jnp.zeros(()), jnp.zeros(())), masses
    found, whole = jax.lax.fori_loop(0, jnp.where(noisy, 3, 1), once, begin)
    return found._replace(error=jnp.where(noisy, jnp.sum(jnp.abs(found.masses - whole)) / 3, found.error))


@compiled
def _stretch(scheme: Scheme, state: State, goal: Any, tolerance: Any) -> State:
    """Up to `LIMIT` steps towards `goal`."""
    spare = jnp.where(scheme.kappa > 0, 1e-2, 1e-8)  # mass per time that counts as moved, at rest too

    def attempt(carry: tuple[Any, State]) -> tuple[Any, State]:
        count, s = carry
        tau = jnp.minimum(s.memory, goal - s.t)
        moved = move(scheme, s.masses, tau)
        scale = tolerance * (jnp.sum(jnp.abs(moved.masses - s.masses)) + spare * tau) + 1e-12 * tau + 1e-15
        good = (moved.error <= scale) & (tau * moved.limit <= 0.99)
        power = jnp.clip(0.9 * jnp.cbrt(scale / jnp.maximum(moved.error, 1e-300)), 0.2, 3.0)
        proposed = jnp.minimum(jnp.where(jnp.isfinite(power), power, 0.2) * tau, 0.9 / moved.limit)
        proposed = jnp.where(jnp.isfinite(moved.limit), proposed, 0.2 * tau)
        after = jnp.where(
            good & (tau < s.memory), jnp.maximum(proposed, jnp.minimum(s.memory, 0.9 / moved.limit)), proposed
        )
        t = jnp.where(good, jnp.where(tau < goal - s.t, s.t + tau, goal), s.t)
        masses = jnp.where(good, moved.masses, s.masses)
        since = jnp.minimum(s.since, jnp.where(narrow_share(masses) >= 0.5, t, jnp.inf))
        steps = s.steps + jnp.stack([good, ~good]).astype(s.steps.dtype)
        return count + 1, State(t, masses, after, steps, since, s.row)

    def unfinished(carry: tuple[Any, State]) -> Any:
        count, s = carry
        return (count < LIMIT) & (s.t < goal) & (s.memory > TINY * goal)

    begin = jnp.zeros((), jnp.int64), jax.tree.map(jnp.asarray, state)
    return jax.lax.while_loop(unfinished, attempt, begin)[1]


@compiled
def _measured(scheme: Scheme, frames: Any) -> tuple[Any, Any, Any]:
    return jax.lax.map(lambda m: (*_energies(scheme, m), narrow_share(m)), frames)
