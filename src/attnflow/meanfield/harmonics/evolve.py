"""The continuity equation by harmonics: exponentially accurate as long as the density is resolved."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy

from attnflow import sketches
from attnflow.checks import end_time, instance, number
from attnflow.errors import InvalidInput
from attnflow.feasible import require_clock
from attnflow.fields import AbstractField
from attnflow.flows.compiled import compiled
from attnflow.flows.driver import Control, Drive
from attnflow.flows.observables import Observe
from attnflow.flows.outcome import Outcome, Progress
from attnflow.flows.saving import Evenly, Save, as_times
from attnflow.flows.sink import AbstractSink
from attnflow.flows.stopping import AbstractStop, conditions
from attnflow.flows.work import AbstractWork, Driven
from attnflow.meanfield.harmonics.basis import AbstractBasis
from attnflow.meanfield.harmonics.density import Density, tail_of
from attnflow.meanfield.harmonics.density_flow import AbstractDensityFlow
from attnflow.meanfield.harmonics.exponential import STALLED, HarmonicState, advance
from attnflow.meanfield.harmonics.model import Model, model_on
from attnflow.meanfield.harmonics.multipliers import multipliers
from attnflow.meanfield.harmonics.stepper import Equation, HarmonicStepper, frames_of
from attnflow.meanfield.samples import quadrature, quiet
from attnflow.precision import full_precision, in_float64
from attnflow.tokens import Tokens

CUT, NEGATIVE = 1, 2
ROUNDING = 64 * float(np.finfo(np.float64).eps)


@dataclasses.dataclass(frozen=True, repr=False)
class DensityFlow(AbstractDensityFlow):
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
    checkpoint: Any = dataclasses.field(default=None, repr=False)
    """From where `continued` goes on."""
    work: Any = dataclasses.field(default=None, repr=False)
    """The work that made the flow."""

    def _grid(self) -> str:
        noise = f", noise kappa = {self.kappa:g}" if self.kappa else ""
        return f"{type(self.basis).__name__} of degree {self.basis.degree} in R^{self.basis.dim}{noise}"

    def _sketches(self) -> list[str]:
        last = [sketches.on_grid(self.density(-1).values)] if self.dataset.sizes["time"] else []
        return [*last, *super()._sketches()]

    @property
    def basis(self) -> AbstractBasis:
        """The basis of every frame."""
        return self.start.basis

    @property
    def values(self) -> np.ndarray:
        """rho on the grid of the basis at every frame, (time, *grid)."""
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


@dataclasses.dataclass(frozen=True)
class Evolve(AbstractWork):
    """A density by harmonics: the work of `evolve`, whose arguments its fields are."""

    field: AbstractField
    density: Density
    until: float
    kappa: float = 0.0
    save: Save | None = Evenly(50)
    rtol: float = 1e-10
    atol: float = 1e-12
    resolution: float = 1e-6
    stop: AbstractStop | Sequence[AbstractStop] = ()
    observe: Observe | None = dataclasses.field(default_factory=dict)

    def checked(self) -> Self:
        density, basis = self.density, instance("density", self.density, Density, "a Density, as uniform(basis)").basis
        with full_precision():
            made = filled(self)
            check_potentials(model_on(made.field, basis, made.kappa, made.resolution), basis, made.resolution)
            tail = float(density.tail)
        if tail > made.resolution:
            raise InvalidInput(
                f"`density` has a tail of {tail:.2g} in degree {basis.degree}, above the `resolution` of "
                f"{made.resolution:g}; build it on `basis.refined({2 * basis.degree})`."
            )
        return dataclasses.replace(made, kappa=float(made.kappa))

    def stepper(self) -> HarmonicStepper:
        return HarmonicStepper(_equation(self), self.times)

    def result(self, driven: Driven) -> DensityFlow:
        dataset = driven.dataset
        if self.density is not None:
            dataset = dataset.assign_coords(harmonic_labels(self.density.basis))
        return DensityFlow(
            dataset, self.field, self.kappa, self.density, driven.outcome, driven.steps, driven.checkpoint, self
        )


W = TypeVar("W", bound=AbstractWork)


def filled(work: W) -> W:
    """The work of `evolve` or `evolve_placed` with its numbers checked and its defaults filled in."""
    of: Any = work
    for name, low in (("rtol", 1e-13), ("atol", 0.0), ("resolution", 1e-14)):
        number(name, getattr(work, name), low=low, high=1.0)
    made: Any = dataclasses.replace(
        of,
        until=require_clock(end_time(of.until)),
        save=as_times(of.save, 50),
        rtol=float(of.rtol),
        atol=float(of.atol),
        resolution=float(of.resolution),
        stop=conditions(of.stop),
        observe=dict(of.observe or {}),
    )
    made.times  # noqa: B018 (refuses what is no rule for times)
    found: W = made
    return found


def evolve(
    field: AbstractField,
    density: Density,
    until: float,
    *,
    kappa: float = 0.0,
    save: Save | None = None,
    rtol: float = Evolve.rtol,
    atol: float = Evolve.atol,
    resolution: float = Evolve.resolution,
    stop: AbstractStop | Sequence[AbstractStop] = (),
    observe: Observe | None = None,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> DensityFlow:
    """Follow `density` along d rho/dt + div(rho X[rho]) = kappa Laplacian rho from time 0 to `until`.

    A Galerkin method in the harmonics of the density's basis: its error is about the part of the solution beyond the
    degree, which falls exponentially with the degree, plus that of the steps in time (`exponential.py`). The mass is
    constant. While rho >= 0 the energy never decreases for kappa = 0 and attention without potentials, nor does the
    free energy for unnormalised attention, except for the tolerance of the steps.

    Arguments:
        field: Attention(beta) with Q = K = V = I, softmax or unnormalised, perhaps plus Potential(...).
        kappa: the diffusion constant of tokens with the noise dX = sqrt(2 kappa) dB.
        save: when frames are saved: a rule (`Evenly`), a number of equal intervals (50 unless given), or times up
            to `until`. Steps end on saved times.
        rtol, atol: the error of a step, in the 2-norm of rho, is at most atol + rtol |rho|.
        resolution: the density counts as resolved while the coefficients of the last tenth of the degrees are below
            this share of the largest one, and the mass of the negative part of rho is below it.
        stop, observe, sink, on_progress, cancel: as for `solve`; observables are functions of (t, density), and
            stop conditions look at the saved numbers, as in `When(lambda frame: frame.energy > -0.1)`.
        check: raise `FlowFailed`, with the flow so far in `trajectory`, where the density ceases to be resolved; False
            returns that flow. Its `hand_over()` gives tokens that continue.

    Ctrl-C ends the flow at the last saved frame, with the outcome `interrupted`; `flow.continued(until)` goes on.
    Theory: arXiv:2312.10794; with noise McKean-Vlasov.
    """
    work = Evolve(field, density, until, kappa, save, rtol, atol, resolution, stop, observe)
    found: DensityFlow = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


def _equation(work: Evolve) -> Equation:
    """The coefficients of a density, and how they change."""
    density, basis = work.density, work.density.basis
    rtol, resolution = work.rtol, work.resolution
    model = model_on(work.field, basis, work.kappa, resolution)
    kernel, tolerances = _kernel(model, basis), tuple(map(np.asarray, (rtol, work.atol, resolution)))
    numbers = ("energy", "entropy", "mass", "tail", "lowest", "negative", "speed")

    def further(state: HarmonicState, target: Any, limit: Any) -> tuple[HarmonicState, dict[str, Any]]:
        return _slice(model, basis, kernel, state, target, limit, *tolerances)

    def lost(t: float, trouble: int) -> str:
        return (
            f"the density is resolved until t = {t:.6g} of {work.times[-1]:g} and no longer: "
            f"{why_lost(trouble, basis.degree, resolution, rtol)}; use `basis.refined({2 * basis.degree})` or "
            "`evolve_cells`, or continue with tokens, evolve(..., check=False).hand_over() (`trajectory.hand_over()` "
            "of this error)."
        )

    return Equation(
        np.asarray(density.coefficients),
        harmonic_dims(basis),
        numbers if model.softmax else (*numbers, "free_energy"),
        further,
        frames_of(density),
        lost,
    )


def harmonic_dims(basis: AbstractBasis) -> tuple[str, ...]:
    """Names of the axes of coefficients."""
    return ("harmonic",) if len(basis.mask.shape) == 1 else ("part", "order", "degree")


def harmonic_labels(basis: AbstractBasis) -> dict[str, Any]:
    """Coordinates of the axes of coefficients."""
    if len(basis.mask.shape) == 1:
        return {"degree": ("harmonic", basis.degrees)}
    degrees = np.arange(basis.degree + 1)
    return {"part": ["cosine", "sine"], "order": degrees, "degree": degrees}


def why_lost(trouble: int, degree: int, resolution: float, rtol: float) -> str:
    """Why a density cannot be followed any further."""
    return {
        CUT: f"its coefficients next to degree {degree} exceed {resolution:g} of the largest one",
        NEGATIVE: f"the mass of its negative part exceeds {resolution:g} at rtol = {rtol:g}",
        STALLED: "its field is not finite or needs steps below rounding",
    }[trouble]


@compiled
def _slice(
    model: Model,
    basis: AbstractBasis,
    kernel: tuple[Any, Any],
    state: HarmonicState,
    target: Any,
    limit: Any,
    rtol: Any,
    atol: Any,
    resolution: Any,
) -> tuple[HarmonicState, dict[str, Any]]:
    """Some steps towards `target`, and what there is to say about the state reached."""

    def rate(c: Any) -> Any:
        return model.rate(basis, c)

    linear = model.diffusion(basis)
    state = advance(
        rate, linear, state, target, limit, rtol=rtol, atol=atol, watch=lambda c: trouble_of(basis, c, resolution)
    )
    return state, _read(model, basis, kernel, state.c, linear * state.c + state.slope)


def _read(model: Model, basis: AbstractBasis, kernel: tuple[Any, Any], c: Any, change: Any) -> dict[str, Any]:
    values = basis.synthesis(c)
    interaction, level = kernel
    energy = 0.5 * (jnp.sum(interaction * c**2) + level)
    external = jnp.sum(basis.weights * values * model.external_potential(basis)) if model.potentials else jnp.zeros(())
    positive = jnp.maximum(values, 0.0)
    entropy = jnp.sum(basis.weights * xlogy(positive, positive))
    found = {
        "energy": energy + external,
        "entropy": entropy,
        "mass": c.reshape(-1)[0],
        "tail": tail_of(basis, c),
        "lowest": jnp.min(values),
        "negative": below(basis, values),
        "speed": jnp.sqrt(jnp.sum(change**2)),
    }
    free_energy = model.clock_factor * energy + external - model.kappa * entropy
    return found if model.softmax else found | {"free_energy": free_energy}


def trouble_of(basis: AbstractBasis, c: Any, resolution: Any) -> Any:
    """0 while a density is resolved, else `CUT` or `NEGATIVE`."""
    size = jnp.sqrt(jnp.sum(c**2))
    cut = tail_of(basis, c) > resolution
    negative = below(basis, basis.synthesis(c)) > jnp.maximum(resolution, ROUNDING * size)
    return jnp.where(cut, CUT, jnp.where(negative, NEGATIVE, 0))


def below(basis: AbstractBasis, values: Any) -> Any:
    """The mass of the negative part."""
    return jnp.sum(basis.weights * jnp.maximum(-values, 0.0))


@eqx.filter_jit
def _kernel(model: Model, basis: AbstractBasis) -> tuple[Any, Any]:
    """What the energy needs to know of the kernel."""
    return model.interaction_multipliers(basis), _level(model.beta, basis.dim)


def _level(beta: Any, d: int) -> Any:
    """(a_0 - 1)/beta, by the moments of t - 1 for small beta."""
    series = -1 + beta / 2 * (1 + 1 / d) - beta**2 / 6 * (1 + 3 / d) + beta**3 / 24 * (1 + 6 / d + 3 / (d * (d + 2)))
    small = beta < 1e-3
    return jnp.where(small, series, (multipliers(beta, d, 0)[0] - 1) / jnp.where(small, 1.0, beta))


def check_potentials(model: Model, basis: AbstractBasis, resolution: float) -> None:
    """Refuse potentials that `basis` does not resolve."""
    if model.potentials:
        external = np.asarray(basis.analysis(in_float64(model.external_potential)(basis)))
        if (rough := float(tail_of(basis, external))) > resolution:
            raise InvalidInput(
                f"`field` has a Potential whose last degrees hold {rough:.2g} of the largest, above `resolution` "
                f"{resolution:g}; use a smooth activation ('tanh', 'gelu'), more degrees, or `evolve_cells`."
            )
