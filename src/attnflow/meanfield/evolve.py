"""The continuity equation by harmonics: exponentially accurate as long as the density is resolved."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy

from attnflow.errors import FlowFailed, InvalidInput
from attnflow.fields import AbstractField
from attnflow.flows.outcome import Ending, Outcome, Progress
from attnflow.flows.schedules import Save, as_schedule
from attnflow.interrupts import heed, interruptible
from attnflow.meanfield.basis import AbstractBasis
from attnflow.meanfield.density import Density, tail_of
from attnflow.meanfield.exponential import STALLED, State, advance, begin
from attnflow.meanfield.frames import Frames
from attnflow.meanfield.given import number, of_kind
from attnflow.meanfield.model import Model, model_on
from attnflow.meanfield.multipliers import multipliers
from attnflow.meanfield.samples import quadrature, quiet
from attnflow.precision import double, full_precision
from attnflow.tokens import Tokens

if TYPE_CHECKING:
    pass

SLICE = 0.5
"""Seconds between two reports of progress."""
CUT, NEGATIVE = 1, 2
ROUNDING = 64 * float(np.finfo(np.float64).eps)


@dataclasses.dataclass(frozen=True)
class DensityFlow(Frames):
    """Frames of a density as an xarray Dataset along `time`.

    `coefficients` (time, harmonic), or (time, part, order, degree) on S^2; `energy` (E <= 0, plus the integral of the
    potentials), `entropy` (the integral of rho log rho), for unnormalised attention the `free_energy` = its energy in
    the field's clock - kappa entropy; `mass`; `tail`, `lowest` (the minimum of rho) and `negative` (the mass of its
    negative part), which tell how well rho is resolved; `speed`, the 2-norm of d rho/dt.
    """

    kappa: float
    start: Density
    outcome: Outcome
    steps: dict[str, int]
    """Accepted and rejected steps."""

    @classmethod
    def of(
        cls,
        field: AbstractField,
        kappa: float,
        start: Density,
        frames: Sequence[tuple[float, np.ndarray, dict[str, float]]],
        outcome: Outcome,
        steps: dict[str, int],
    ) -> "DensityFlow":
        """Label frames (time, coefficients, numbers by name)."""
        import xarray as xr

        shape, degrees = start.basis.mask.shape, np.arange(start.basis.degree + 1)
        dims: tuple[str, ...] = ("harmonic",)
        labels: dict[str, Any] = {"degree": ("harmonic", start.basis.degrees)}
        if len(shape) == 3:
            dims = ("part", "order", "degree")
            labels = {"part": ["cosine", "sine"], "order": degrees, "degree": degrees}
        times = np.array([t for t, _, _ in frames])
        rows = np.array([c for _, c, _ in frames]).reshape(-1, *shape)
        names = list(frames[0][2]) if frames else []
        variables = {name: ("time", np.array([values[name] for _, _, values in frames])) for name in names}
        dataset = xr.Dataset({"coefficients": (("time", *dims), rows), **variables}, {"time": times, **labels})
        return cls(dataset, field, kappa, start, outcome, steps)

    @property
    def basis(self) -> AbstractBasis:
        """The basis of every frame."""
        return self.start.basis

    @property
    def values(self) -> np.ndarray:
        """Rho on the grid of the basis at every frame, (time, *grid)."""
        rows = self.dataset["coefficients"].values
        return np.stack([np.asarray(self.basis.synthesis(c)) for c in rows])

    def density(self, at: int = -1) -> Density:
        """The density of frame number `at`."""
        return self.start.moved(self.dataset["coefficients"].values[at])

    def hand_over(self, n: int | None = None, *, copies: int = 1, seed: int = 0) -> Tokens:
        """Tokens that stand for the last density, to be continued with `solve`, whose time 0 is `time[-1]`.

        The grid of the basis with masses (`quadrature`), which has the density's moments up to its degree; with `n`,
        that many tokens of equal mass (`quiet`). For a `ZonalBasis` with d > 3 that holds for functions of <x, e>
        only: about the axis there are `copies` cross-polytopes, exact up to degree 3, and a token sees itself
        e^(beta (1 - <x, y>)) times as much as another. The field is off by about that over the number of tokens: 3 % at
        d = 8, beta = 4, concentration 6 with one copy, 0.2 % with 16; in high dimension take as many as memory allows.
        """
        last = self.density()
        return quadrature(last, copies=copies, seed=seed) if n is None else quiet(last, n)


def evolve(
    field: AbstractField,
    density: Density,
    until: float,
    *,
    kappa: float = 0.0,
    save: Save | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    resolution: float = 1e-6,
    on_progress: Callable[[Progress], None] | None = None,
    check: bool = True,
) -> DensityFlow:
    """Follow `density` along d rho/dt + div(rho X[rho]) = kappa Laplacian rho from time 0 to `until`.

    A Galerkin method in the harmonics of the density's basis: its error is about the part of the solution beyond the
    degree, which falls exponentially with the degree, plus that of the steps in time (`exponential.py`). The mass is
    constant. While rho >= 0 the energy never decreases for kappa = 0 and attention without potentials, nor does the
    free energy for unnormalised attention, but for the tolerance of the steps.

    Arguments:
        field: Attention(beta) with Q = K = V = I, softmax or unnormalised, perhaps plus Potential(...).
        kappa: the diffusion; that of tokens with the noise dX = sqrt(2 kappa) dB.
        save: when frames are saved: a schedule, a number of equal intervals (50 unless given), or increasing times up
            to `until`. Steps end on saved times.
        rtol, atol: the error of a step, in the 2-norm of rho, is at most atol + rtol |rho|.
        resolution: the density counts as resolved while the coefficients of the last tenth of the degrees are below
            this share of the largest one, and the mass of the negative part of rho is below it.
        on_progress: called with a `Progress` about twice a second.
        check: raise `FlowFailed`, with the flow so far in `trajectory`, where the density ceases to be resolved; False
            returns that flow. Its `hand_over()` gives tokens that continue.

    Ctrl-C ends the flow at the last saved frame, with the outcome `interrupted`.
    Theory: arXiv:2312.10794; with noise McKean-Vlasov.
    """
    with full_precision():
        model = _checked(field, density, until, kappa, rtol, atol, resolution)
        times = as_schedule(save, 50).times(float(until), None)
        return _Run(field, model, density, times, (rtol, atol, resolution), on_progress).run(check)


class _Run:
    """One call of `evolve`."""

    def __init__(
        self,
        field: AbstractField,
        model: Model,
        density: Density,
        times: np.ndarray,
        tolerances: tuple[float, float, float],
        on_progress: Callable[[Progress], None] | None,
    ):
        self.field, self.model, self.density, self.times = field, model, density, times
        self.rtol, _, self.resolution = tolerances
        self.on_progress = on_progress
        self.tolerances = tuple(jnp.asarray(float(value)) for value in tolerances)
        self.kernel = _kernel(model, density.basis)
        self.state = begin(jnp.asarray(density.coefficients))
        self.frames: list[tuple[float, np.ndarray, dict[str, float]]] = []
        self.began, self.pace, self.limit = time.perf_counter(), np.nan, 1

    def run(self, check: bool) -> DensityFlow:
        outcome = None
        try:
            with interruptible():
                for target in self.times:
                    outcome = self._to(float(target))
                    if outcome is not None:
                        break
        except KeyboardInterrupt:
            outcome = Outcome(Ending.INTERRUPTED, "interrupted; the frames saved so far are kept.")
        if outcome is None:
            outcome = Outcome(Ending.FINISHED, f"reached t = {self.times[-1]:g}.")
        steps = {"accepted": int(self.state.accepted), "rejected": int(self.state.rejected)}
        flow = DensityFlow.of(self.field, float(self.model.kappa), self.density, self.frames, outcome, steps)
        if check and not outcome.ok:
            raise FlowFailed(outcome.message, flow)
        return flow

    def _to(self, target: float) -> Outcome | None:
        """On to one saved time; an outcome if that cannot be reached."""
        basis, (rtol, atol, resolution) = self.density.basis, self.tolerances
        while True:
            heed()
            started, before = time.perf_counter(), int(self.state.accepted + self.state.rejected)
            goal, limit = jnp.asarray(target), jnp.asarray(self.limit)
            state, found = _slice(self.model, basis, self.kernel, self.state, goal, limit, rtol, atol, resolution)
            self.state = jax.block_until_ready(state)
            taken = int(state.accepted + state.rejected) - before
            if taken and self.frames:  # the first slice also compiles
                self.pace = (time.perf_counter() - started) / taken
                self.limit = int(np.clip(SLICE / self.pace, 1, 100_000))
            reached, trouble = float(state.t), int(state.trouble)
            if reached >= target or trouble:
                values = {name: float(value) for name, value in found.items()}
                if not self.frames or reached > self.frames[-1][0]:
                    self.frames.append((reached, np.asarray(state.c), values))
                self._report()
                return self._lost(reached, trouble) if trouble else None
            self._report()

    def _report(self) -> None:
        if self.on_progress is None:
            return
        t, steps, until = float(self.state.t), int(self.state.accepted + self.state.rejected), float(self.times[-1])
        elapsed = time.perf_counter() - self.began
        left = elapsed * (until / t - 1) if t > 0 else np.nan
        self.on_progress(Progress(t, until, len(self.frames), len(self.times), steps, elapsed, 1 / self.pace, left))

    def _lost(self, t: float, trouble: int) -> Outcome:
        degree, until = self.density.basis.degree, self.times[-1]
        why = {
            CUT: f"its coefficients next to degree {degree} exceed {self.resolution:g} of the largest one",
            NEGATIVE: f"the mass of its negative part exceeds {self.resolution:g} at rtol = {self.rtol:g}",
            STALLED: "its field is not finite or needs steps below rounding",
        }[trouble]
        return Outcome(
            Ending.FAILED,
            f"the density is resolved until t = {t:.6g} of {until:g} and no longer: {why}; use "
            f"`basis.refined({2 * degree})` or `evolve_cells`, or continue with tokens, evolve(..., "
            "check=False).hand_over() (`trajectory.hand_over()` of this error).",
        )


@eqx.filter_jit
def _slice(
    model: Model,
    basis: AbstractBasis,
    kernel: tuple[Any, Any],
    state: State,
    target: Any,
    limit: Any,
    rtol: Any,
    atol: Any,
    resolution: Any,
) -> tuple[State, dict[str, Any]]:
    """Some steps towards `target`, and what there is to say about the state reached."""

    def watch(c: Any) -> Any:
        size = jnp.sqrt(jnp.sum(c**2))
        cut = tail_of(basis, c) > resolution
        negative = _below(basis, basis.synthesis(c)) > jnp.maximum(resolution, ROUNDING * size)
        return jnp.where(cut, CUT, jnp.where(negative, NEGATIVE, 0))

    def rate(c: Any) -> Any:
        return model.rate(basis, c)

    linear = model.diffusion(basis)
    state = advance(rate, linear, state, target, limit, rtol=rtol, atol=atol, watch=watch)
    return state, _read(model, basis, kernel, state.c, linear * state.c + state.slope)


def _read(model: Model, basis: AbstractBasis, kernel: tuple[Any, Any], c: Any, change: Any) -> dict[str, Any]:
    values = basis.synthesis(c)
    law = basis.weights * values
    pull, level = kernel
    energy = 0.5 * (jnp.sum(pull * c**2) + level)
    outer = jnp.sum(law * model.outer(basis)) if model.potentials else jnp.zeros(())
    positive = jnp.maximum(values, 0.0)
    entropy = jnp.sum(basis.weights * xlogy(positive, positive))
    found = {
        "energy": energy + outer,
        "entropy": entropy,
        "mass": c.reshape(-1)[0],
        "tail": tail_of(basis, c),
        "lowest": jnp.min(values),
        "negative": _below(basis, values),
        "speed": jnp.sqrt(jnp.sum(change**2)),
    }
    return found if model.softmax else found | {"free_energy": model.factor * energy + outer - model.kappa * entropy}


def _below(basis: AbstractBasis, values: Any) -> Any:
    return jnp.sum(basis.weights * jnp.maximum(-values, 0.0))


@eqx.filter_jit
def _kernel(model: Model, basis: AbstractBasis) -> tuple[Any, Any]:
    """What the energy needs to know of the kernel."""
    return model.pull(basis), _level(model.beta, basis.dim)


def _level(beta: Any, d: int) -> Any:
    """(a_0 - 1)/beta, by the moments of t - 1 for small beta."""
    series = -1 + beta / 2 * (1 + 1 / d) - beta**2 / 6 * (1 + 3 / d) + beta**3 / 24 * (1 + 6 / d + 3 / (d * (d + 2)))
    small = beta < 1e-3
    return jnp.where(small, series, (multipliers(beta, d, 0)[0] - 1) / jnp.where(small, 1.0, beta))


def _checked(field: Any, density: Any, until: Any, kappa: Any, rtol: Any, atol: Any, resolution: Any) -> Model:
    """The model of the field; everything that cannot work is refused here."""
    basis = of_kind("density", density, Density, "a Density, as uniform(basis) is one").basis
    number("until", until, 0.0, open_=True)
    for name, value, low in (("rtol", rtol, 1e-13), ("atol", atol, 0.0), ("resolution", resolution, 1e-14)):
        number(name, value, low, 1.0)
    model = model_on(field, basis, kappa, resolution)
    if model.potentials:
        outer = np.asarray(basis.analysis(double(model.outer)(basis)))
        if (rough := float(tail_of(basis, outer))) > resolution:
            raise InvalidInput(
                f"`field` has a Potential whose last degrees hold {rough:.2g} of the largest, above `resolution` "
                f"{resolution:g}; use a smooth activation ('tanh', 'gelu'), more degrees, or `evolve_cells`."
            )
    if (tail := float(density.tail)) > resolution:
        raise InvalidInput(
            f"`density` has a tail of {tail:.2g} in degree {basis.degree}, above the `resolution` of "
            f"{resolution:g}; build it on `basis.refined({2 * basis.degree})`."
        )
    return model
