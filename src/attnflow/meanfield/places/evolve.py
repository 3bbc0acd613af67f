"""The causal mean field: densities f(t, sigma, x) whose place sigma decides what they see, and is never transported."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import batches
from attnflow.checks import instance, whole
from attnflow.errors import InvalidInput, NoSuchItem
from attnflow.fields import AbstractField, Attention, Total
from attnflow.flows.compiled import compiled
from attnflow.flows.driver import Control, Drive
from attnflow.flows.observables import Observe
from attnflow.flows.outcome import Outcome, Progress
from attnflow.flows.result import AbstractResult
from attnflow.flows.saving import Evenly, Save
from attnflow.flows.sink import AbstractSink
from attnflow.flows.stopping import AbstractStop
from attnflow.flows.work import AbstractWork, Driven
from attnflow.masks import AbstractMask, Causal, Everyone
from attnflow.meanfield.harmonics.basis import AbstractBasis
from attnflow.meanfield.harmonics.density import tail_of
from attnflow.meanfield.harmonics.evolve import (
    Evolve,
    below,
    check_potentials,
    filled,
    harmonic_dims,
    harmonic_labels,
    trouble_of,
    why_lost,
)
from attnflow.meanfield.harmonics.exponential import HarmonicState, advance
from attnflow.meanfield.harmonics.model import Model, model_on
from attnflow.meanfield.harmonics.stepper import Equation, HarmonicStepper, frames_of
from attnflow.meanfield.places.nodes import Places
from attnflow.meanfield.places.placed import PlacedDensity
from attnflow.precision import full_precision

if TYPE_CHECKING:
    import xarray as xr

NUMBERS = ("tail", "place_tail", "lowest", "negative", "speed")


@dataclasses.dataclass(frozen=True, repr=False)
class PlacedFlow(AbstractResult):
    """Frames of a placed density, `flow[k]` or `flow.densities`, and as an xarray Dataset along `time` and `place`.

    `coefficients` (time, place, harmonic), or (time, place, part, order, degree) on S^2. How well f is resolved in x:
    `tail`, `lowest` (the minimum of f) and `negative` (the mass of its negative part), each at the worst place. How
    well in the place: `place_tail`, the last Legendre coefficients of a piece over the largest; f errs by about as
    much, and more `nodes` or breaks reduce it. `speed` is the 2-norm of df/dt over places and points.
    """

    dataset: "xr.Dataset"
    field: AbstractField
    kappa: float
    start: PlacedDensity
    outcome: Outcome
    steps: dict[str, int]
    """Accepted and rejected steps."""
    checkpoint: Any = None
    """From where `continued` goes on."""
    work: Any = None
    """The work that made the flow."""

    def __repr__(self) -> str:
        what = repr(self.start).removeprefix("PlacedDensity(").removesuffix(")")
        until = f" to t = {self.times[-1]:g}" if len(self) else ""
        return f"PlacedFlow({len(self)} frames{until}, {what}; {self.outcome.message})"

    @property
    def time(self) -> "xr.DataArray":
        """Saved times; the last one is the last resolved time if the density ceased to be resolved."""
        return self.dataset["time"]

    @property
    def times(self) -> np.ndarray:
        """Saved times, as an array."""
        return self.dataset["time"].values

    @property
    def densities(self) -> list[PlacedDensity]:
        """The frames."""
        return [self.density(k) for k in range(len(self))]

    def density(self, at: int = -1) -> PlacedDensity:
        """The frame number `at`."""
        if not -len(self) <= whole("at", at, -(2**53)) < len(self):
            raise NoSuchItem(f"frame {at} was asked for; there are {len(self)}, counted from 0.")
        return self.start.moved(self.dataset["coefficients"].values[at])

    @property
    def last(self) -> PlacedDensity:
        """The last frame."""
        return self.density()

    def __len__(self) -> int:
        return int(self.dataset.sizes["time"])

    def __getitem__(self, at: int) -> PlacedDensity:
        return self.density(at)

    def __iter__(self) -> Iterator[PlacedDensity]:
        return iter(self.densities)


@dataclasses.dataclass(frozen=True)
class EvolvePlaced(AbstractWork):
    """A density with places: the work of `evolve_placed`, whose arguments its fields are."""

    field: AbstractField
    placed: PlacedDensity
    until: float
    kappa: float = 0.0
    save: Save | None = Evenly(50)
    rtol: float = Evolve.rtol
    atol: float = Evolve.atol
    resolution: float = Evolve.resolution
    stop: AbstractStop | Sequence[AbstractStop] = ()
    observe: Observe | None = dataclasses.field(default_factory=dict)

    def checked(self) -> Self:
        density = self.placed
        instance("density", density, PlacedDensity, "a PlacedDensity, as placed(Places(), uniform(basis)) is one")
        with full_precision():
            made = filled(self)
            bare, _ = bare_and_mask(made.field)
            model = model_on(bare, density.basis, made.kappa, made.resolution)
            check_potentials(model, density.basis, made.resolution)
            tails = [float(tail_of(density.basis, row)) for row in np.asarray(density.coefficients)]
        if max(tails) > made.resolution:
            degree = density.basis.degree
            raise InvalidInput(
                f"`density` has a tail of {max(tails):.2g} in degree {degree} at the place "
                f"{density.places.points[int(np.argmax(tails))]:.3g}, above the `resolution` of {made.resolution:g}; "
                f"build it on `basis.refined({2 * degree})`."
            )
        return dataclasses.replace(made, kappa=float(made.kappa))

    def stepper(self) -> HarmonicStepper:
        return HarmonicStepper(_equation(self), self.times)

    def result(self, driven: Driven) -> PlacedFlow:
        dataset = driven.dataset
        if self.placed is not None:
            labels = harmonic_labels(self.placed.basis) | {"place": self.placed.places.points}
            dataset = dataset.assign_coords(labels)
        return PlacedFlow(
            dataset, self.field, self.kappa, self.placed, driven.outcome, driven.steps, driven.checkpoint, self
        )


def evolve_placed(
    field: AbstractField,
    density: PlacedDensity,
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
) -> PlacedFlow:
    """Follow f along df/dt + div_x(f X[F(sigma, .)]) = kappa Laplacian_x f, F the density that the place sigma sees.

    F(sigma, .) = int_0^sigma k(sigma, sigma') f(sigma', .) d sigma' with the graphon k of `Places.prefix`, and X[F] is
    the velocity of exchangeable attention in F (arXiv:2605.09213 for unnormalised attention on the circle; the prefix
    for softmax and other spheres is ours). Places are labels: nothing moves along sigma, so jumps stay where they are.
    A method of harmonics in x as `evolve`, and of polynomials in sigma on every piece. The limit of tokens with real
    places in [0, 1]: `solve(field, quiet(density, n), until)` has the same field.

    What is exact: a start that does not depend on the place stays so and is the solution of `evolve`; f on [0, sigma]
    depends on the start on [0, sigma] alone; f(t, 0+, .) solves the exchangeable equation.

    Arguments:
        field: Attention(beta, mask=Causal(slope=lambda)) with Q = K = V = I, softmax or unnormalised, perhaps plus
            Potential(...). The slope of the mask is lambda, per unit of place. Without a mask
            every place sees the mean over all places. Strict masks are refused: their limit is that of Causal().
        density: as `placed` makes it. Its error in the place is watched by `place_tail` of the flow, and ends nothing.
        rtol, atol: the error of a step, in the 2-norm over all nodes and harmonics, is at most atol + rtol |f|.
        kappa, save, resolution, stop, observe, sink, on_progress, cancel, check: as for `evolve`; observables
            are functions of (t, placed density), and resolution holds at every node.

    Close to the uniform measure, f = 1 + e g(sigma) h with a harmonic h of degree k, g obeys dg/dc = F[g] with c = t
    times the growth rate of k: g = u^p grows as e^{c/(p+1)}, u = e^{lambda sigma} - 1, and a topic of the places before
    s has the amplitude e^c P(N_c > N_y) after s, y = log(u(sigma)/u(s)), with independent Poisson numbers N (ours).
    """
    work = EvolvePlaced(field, density, until, kappa, save, rtol, atol, resolution, stop, observe)
    found: PlacedFlow = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


def bare_and_mask(field: AbstractField) -> tuple[AbstractField, AbstractMask]:
    """The field with its mask taken off, and the mask: `Everyone` or a `Causal` that is not strict."""
    instance("field", field, AbstractField, "a field such as Attention(beta, mask=Causal())")
    if batches(field):
        raise InvalidInput("`field` holds an Along; a density is alone, so go through the values one by one.")
    parts = field.parts if isinstance(field, Total) else (field,)
    heads = [k for k, part in enumerate(parts) if isinstance(part, Attention)]
    if len(heads) != 1:
        raise InvalidInput(
            f"`field` has {len(heads)} attentions; densities with places follow one Attention(beta, mask=Causal()), "
            "perhaps plus Potential(...)."
        )
    attention = parts[heads[0]]
    assert isinstance(attention, Attention)
    mask = attention.mask
    if mask.sees_everyone:
        return field, Everyone()
    if not isinstance(mask, Causal) or mask.strict:
        name = "a strict Causal mask" if isinstance(mask, Causal) else f"the mask {type(mask).__name__}"
        raise InvalidInput(
            f"`field` has {name}; densities with places follow Attention(beta, mask=Causal(slope=...)), not strict, "
            "or Attention(beta) without a mask."
        )
    bare = eqx.tree_at(lambda a: a.mask, attention, Everyone(), is_leaf=lambda node: isinstance(node, AbstractMask))
    changed_parts = tuple(bare if k == heads[0] else part for k, part in enumerate(parts))
    return (Total(changed_parts) if isinstance(field, Total) else bare), mask


def seen_from(places: Places, mask: AbstractMask) -> np.ndarray:
    """The matrix that takes values at the nodes to what every node sees."""
    if isinstance(mask, Causal):
        return places.prefix(float(np.asarray(mask.slope)))
    return np.tile(places.weights, (places.size, 1))


def _equation(work: EvolvePlaced) -> Equation:
    """The coefficients at all nodes, and how they change."""
    density, basis = work.placed, work.placed.basis
    rtol, resolution = work.rtol, work.resolution
    bare, mask = bare_and_mask(work.field)
    model = model_on(bare, basis, work.kappa, resolution)
    seen, weights = seen_from(density.places, mask), density.places.weights
    modes, degrees = density.places.legendre()
    ending = degrees >= max(density.places.nodes - 2, 1)
    tolerances = tuple(map(jnp.asarray, (rtol, work.atol, resolution)))

    def further(state: HarmonicState, target: Any, limit: Any) -> tuple[HarmonicState, dict[str, Any]]:
        return _slice(model, basis, seen, weights, (modes, ending), state, target, limit, *tolerances)

    def lost(t: float, trouble: int) -> str:
        return (
            f"the density is resolved until t = {t:.6g} of {work.times[-1]:g} and no longer: at some place "
            f"{why_lost(trouble, basis.degree, resolution, rtol)}; use `basis.refined({2 * basis.degree})`, or tokens, "
            "solve(field, quiet(density, n), until)."
        )

    dims = ("place", *harmonic_dims(basis))
    return Equation(np.asarray(density.coefficients), dims, NUMBERS, further, frames_of(density), lost)


@compiled
def _slice(
    model: Model,
    basis: AbstractBasis,
    seen: Any,
    weights: Any,
    modes: Any,
    state: HarmonicState,
    target: Any,
    limit: Any,
    rtol: Any,
    atol: Any,
    resolution: Any,
) -> tuple[HarmonicState, dict[str, Any]]:
    """Some steps towards `target`, and what there is to say about the state reached."""

    def rate(c: Any) -> Any:
        return jax.vmap(lambda own, other: model.rate(basis, own, other))(c, jnp.tensordot(seen, c, 1))

    def watch(c: Any) -> Any:
        return jnp.max(jax.vmap(lambda row: trouble_of(basis, row, resolution))(c))

    linear = jnp.broadcast_to(model.diffusion(basis), state.c.shape)
    state = advance(rate, linear, state, target, limit, rtol=rtol, atol=atol, watch=watch)
    return state, _read(basis, weights, modes, state.c, linear * state.c + state.slope)


def _read(basis: AbstractBasis, weights: Any, modes: Any, c: Any, change: Any) -> dict[str, Any]:
    values = jax.vmap(basis.synthesis)(c)
    transform, ending = modes
    waves = jnp.max(jnp.abs(transform @ c.reshape(len(c), -1)), axis=1)
    return {
        "tail": jnp.max(jax.vmap(lambda row: tail_of(basis, row))(c)),
        "place_tail": jnp.max(jnp.where(ending, waves, 0.0)) / jnp.max(waves),
        "lowest": jnp.min(values),
        "negative": jnp.max(jax.vmap(lambda row: below(basis, row))(values)),
        "speed": jnp.sqrt(jnp.sum(weights * jnp.sum(change.reshape(len(c), -1) ** 2, axis=1))),
    }
