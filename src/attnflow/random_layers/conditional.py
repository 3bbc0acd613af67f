"""The density of infinitely many tokens given the heads, on the circle: carried by labels, nothing diffuses."""

import dataclasses
from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import members, over_members
from attnflow.checks import end_time, instance, number, reals, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import length, require_memory
from attnflow.fields import AbstractField
from attnflow.fields.queries import AtPoints
from attnflow.fields.timed import layer_time
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.driver import Control, Drive
from attnflow.flows.methods import Renormalise
from attnflow.flows.methods.layers import check_layers, layer_number
from attnflow.flows.outcome import Outcome, Progress
from attnflow.flows.result import AbstractResult
from attnflow.flows.saving import Evenly, Save, as_times
from attnflow.flows.sink import AbstractSink, Layout, Variable
from attnflow.flows.system import one_layer
from attnflow.flows.work import AbstractWork, Driven
from attnflow.meanfield import CircleBasis, Density
from attnflow.precision import full_precision
from attnflow.random_layers.boosts import PoissonKernel
from attnflow.random_layers.layer_stepper import CHUNK, AbstractLayers
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

DensityLike = Density | PoissonKernel | Callable[[np.ndarray], Any]


@dataclasses.dataclass(frozen=True, repr=False)
class ConditionalDensity(AbstractResult):
    """A density on the circle along random layers, given the heads, by its values where the labels are.

    Arrays have the batch dimensions `dims` of the field first (one head stream for each member of "seed"). Averages
    over head streams estimate the mean density, which is no solution of the layers. `dataset` has the same arrays along
    `time` and `label`.
    """

    dataset: Any
    outcome: Outcome
    steps: dict[str, int]
    """The number of layers."""
    checkpoint: Any = None
    """From where `continued` goes on."""
    work: Any = None
    """The work that made it."""

    def __repr__(self) -> str:
        sizes = ", ".join(f"{size} {name}s" for name, size in self.dataset.sizes.items())
        return f"ConditionalDensity({sizes}; {self.outcome.message})"

    @property
    def dims(self) -> dict[str, np.ndarray]:
        """The batch dimensions of the field, with the labels of their members."""
        return {str(d): self.dataset[d].values for d in self.dataset["folded"].dims if d != "time"}

    @property
    def times(self) -> np.ndarray:
        """(frame,) t = step * layer."""
        return self.dataset["time"].values

    @property
    def labels(self) -> np.ndarray:
        """(label,) the angles at which tokens start."""
        return self.dataset["label"].values

    @property
    def masses(self) -> np.ndarray:
        """(label,) the masses that they carry, of sum 1: integrals are sums with these weights."""
        return self.dataset["masses"].values

    @property
    def angles(self) -> np.ndarray:
        """(..., frame, label) where they are, in (-pi, pi]."""
        return self.dataset["angles"].values

    @property
    def log_density(self) -> np.ndarray:
        """(..., frame, label) log rho there, relative to the uniform probability; NaN once a layer has folded."""
        return self.dataset["log_density"].values

    @property
    def folded(self) -> np.ndarray:
        """(..., frame) whether a layer has folded the circle over itself, so that several labels share a position."""
        return self.dataset["folded"].values

    def fourier(self, degree: int = 8) -> np.ndarray:
        """(..., frame, degree + 1) the coefficients c_k, the integrals of e^(i k theta)."""
        k = np.arange(whole("degree", degree, 0) + 1)
        require_memory(16 * self.angles.size, "the waves of these labels", "use fewer of them")
        return np.stack([np.exp(1j * one * self.angles) @ self.masses for one in k], axis=-1)


@dataclasses.dataclass(frozen=True)
class CarryDensity(AbstractWork):
    """A density along random layers, given the heads: the work of `conditional_density`, with its arguments as fields.

    A function of angles as `density` is for Python alone; a specification has the words of `[density]`.
    """

    field: AbstractField
    density: DensityLike
    until: float
    step: float
    labels: int = 256
    save: Save | None = Evenly(1)

    def checked(self) -> Self:
        instance("field", self.field, AbstractField, "a field such as random_attention(2, 2.0)")
        until, step = end_time(self.until), number("step", self.step, low=1e-300)
        check_layers(until, step)
        count = length("labels", self.labels, 4, 8)
        made = dataclasses.replace(self, until=until, step=step, labels=count, save=as_times(self.save, 1))
        tokens = made.start()[0]
        self.field.check(tokens)
        with full_precision():
            size = int(np.prod(members(self.field, tokens).shape, dtype=int))
        frames = len(made.times)
        require_memory(24 * size * frames * count, f"{size} members with {frames} frames", "use fewer of them")
        return made

    def start(self) -> tuple[Tokens, np.ndarray]:
        """Tokens at the labels, and the density there, of mean 1."""
        alpha = self.angles
        rho = _values(self.density, alpha)
        rho = rho / rho.mean()
        return Tokens(np.stack([np.cos(alpha), np.sin(alpha)], axis=1), rho, space=Sphere(2)), rho

    @property
    def angles(self) -> np.ndarray:
        """The angles of the labels."""
        return 2 * np.pi * np.arange(self.labels) / self.labels

    @property
    def layer_step(self) -> float:
        return float(self.step)

    def stepper(self) -> "_Carry":
        return _Carry(self)

    def result(self, driven: Driven) -> ConditionalDensity:
        return ConditionalDensity(driven.dataset, driven.outcome, driven.steps, driven.checkpoint, self)

    def longer(self, until: Any, save: Save | None = None, *, same: bool = False) -> Self:
        made = super().longer(until, save, same=same)
        check_layers(made.until, made.step)
        return made


def conditional_density(
    field: AbstractField,
    density: DensityLike,
    until: float,
    *,
    step: float,
    labels: int = 256,
    save: Save | None = None,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> ConditionalDensity:
    """The density that tokens of `density` on S^1 have after layers of `field`, given the heads.

    A layer carries the whole measure by one map T(x) = N(x + step X[mu](x)). So a label alpha_j, one of `labels` equal
    angles with the mass rho_0(alpha_j)/labels, keeps its mass, and log rho at its position falls by log |T'|, which is
    accumulated exactly (forward differentiation of each layer). Integrals are sums over labels, the trapezoidal rule in
    alpha: errors fall faster than every power of 1/labels while the density is smooth (ours; arXiv:2604.01978).

    Arguments:
        density: a `Density` on a `CircleBasis`, a `PoissonKernel` with d = 2, or a function of angles (positive, of any
            mass; it is normalised).
        field: such as `random_attention(2, 2.0, step=step, seed=7)`. The seed is the head stream: tokens that run along
            the same field with `Layers(step)` see the same heads. `seed=Along("seed", range(64))` makes a batch.
        until, step, save: as for `solve` with `Layers(step)`; `save` is 1 interval unless given.
        sink, on_progress, cancel, check: as for `solve`.

    A layer with a long step or a large logit scale may fold the circle: some label has T' < 0. Positions, masses and
    Fourier coefficients stay right, but the density at a position is then a sum over labels: `log_density` is NaN from
    there on and `folded` says so. Use a smaller step.

    Ctrl-C returns the frames so far, with the outcome `interrupted`; `found.continued(until)` goes on.
    """
    work = CarryDensity(field, density, until, step, labels, save)
    found: ConditionalDensity = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found


class _Carry(AbstractLayers):
    """Layers of all members; they change the positions of labels and log |T'|, summed over layers."""

    def __init__(self, work: CarryDensity):
        self.of, (tokens, self.rho) = work, work.start()
        self.batched = members(work.field, tokens)
        self.size = np.asarray(work.step)
        count = int(np.prod(self.batched.shape, dtype=int))
        super().__init__(layer_number(work.times, work.step), "time", count, work.step)

    def layout(self) -> Layout:
        of, dims, real = self.of, self.batched.dims, np.dtype(np.float64)
        frames = {"time": Variable(("time",), real), "folded": Variable((*dims, "time"), np.dtype(bool))}
        frames |= {name: Variable((*dims, "time", "label"), real) for name in ("angles", "log_density")}
        sizes = {name: len(labels) for name, labels in dims.items()} | {"label": of.labels}
        masses: dict[str, Any] = {"masses": (("label",), self.rho / of.labels)}
        return Layout(
            {"time": frames},
            sizes,
            {"time": len(of.times)},
            {**dims, "label": of.angles},
            masses,
            {"time": CHUNK},
            {},
            float(of.times[-1]),
            {},
        )

    def inner(self) -> Any:
        x = np.asarray(self.batched.measure.positions)
        return x, np.zeros(x.shape[:-1])

    def first(self) -> dict[str, np.ndarray]:
        return self.row(0, self.inner(), _angles(self.inner()[0]))

    def further(self, inner: Any, ends: np.ndarray) -> tuple[Any, Any]:
        systems = self.batched
        x, stretch, angles = wait(
            _carried(systems.field, systems.field_axes, systems.measure, systems.measure_axes, *inner, self.size, ends)
        )
        return (x, stretch), angles

    def row(self, frame: int, inner: Any, found: Any) -> dict[str, np.ndarray]:
        angles, stretch = (self.batched.unflatten(np.asarray(a)) for a in (found, inner[1]))
        folded = np.isnan(stretch).any(axis=-1)
        with np.errstate(divide="ignore"):
            log_density = np.where(folded[..., None], np.nan, np.log(self.rho) - stretch)
        found = {"folded": folded[..., None], "angles": angles[..., None, :], "log_density": log_density[..., None, :]}
        return {"time": self.of.times[frame : frame + 1]} | found


def _values(density: Any, alpha: np.ndarray) -> np.ndarray:
    """The density at these angles, times a constant."""
    if isinstance(density, Density):
        if not isinstance(density.basis, CircleBasis):
            raise InvalidInput(f"`density` is on a {type(density.basis).__name__}; give one on a CircleBasis.")
        found: Any = density(angles=alpha)
    elif isinstance(density, PoissonKernel):
        if density.dim != 2:
            raise InvalidInput(f"`density` is a PoissonKernel in R^{density.dim}; give one on the circle, in R^2.")
        found = density.density(np.stack([np.cos(alpha), np.sin(alpha)], axis=1))
    elif callable(density) and not isinstance(density, type):
        found = density(alpha)
    else:
        raise InvalidInput(f"`density` is {shown(density)}; give a Density, a PoissonKernel or a function of angles.")
    values = reals(found)
    if values is None or values.shape not in ((), alpha.shape) or not np.isfinite(values).all():
        raise InvalidInput(
            f"`density` gives {shown(found)}; give one finite value for each of the {alpha.size} labels."
        )
    if values.min() < -1e-8 or values.max() <= 0:
        raise InvalidInput(f"`density` has values from {values.min():.3g} to {values.max():.3g}; give positive ones.")
    return np.maximum(np.broadcast_to(values, alpha.shape), 0.0)


@compiled
def _carried(field: Any, axes: Any, mu: Any, mu_axes: Any, x: Any, stretch: Any, step: Any, ends: Any) -> Any:
    """Positions, log |T'| summed over layers, and angles after the layers from ends[0] to ends[1]."""
    update = Renormalise()

    def one(field: Any, mu: Any, x: Any, stretch: Any) -> Any:
        def layer(k: Any, state: Any) -> Any:
            x, stretch = state
            t, here = layer_time(k, step), mu.moved(x)

            def move(points: Any) -> Any:
                return one_layer(field, t, step, AtPoints(points, here.place), here, update)

            moved, tangent = jax.jvp(move, (x,), (_turned(x),))
            slope = jnp.sum(tangent * _turned(moved), axis=-1)
            return moved, stretch + jnp.log(jnp.where(slope > 0, slope, jnp.nan))

        def frame(state: Any, ends: Any) -> Any:
            state = jax.lax.fori_loop(ends[0], ends[1], layer, state)
            return state, (*state, _angles_of(state[0]))

        return jax.tree.map(lambda a: a[0], jax.lax.scan(frame, (x, stretch), ends[None])[1])

    if mu_axes is None:
        return one(field, mu, x, stretch)
    return over_members(one, (axes, mu_axes, 0, 0), (field, mu, x, stretch), mu.n**2)


def _turned(x: Any) -> Any:
    """The unit tangents at points of the circle, counter-clockwise."""
    return jnp.stack([-x[:, 1], x[:, 0]], axis=1)


def _angles_of(x: Any) -> Any:
    return jnp.arctan2(x[..., 1], x[..., 0])


_angles = jax.jit(_angles_of)
