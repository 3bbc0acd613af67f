"""The density of infinitely many tokens given the heads, on the circle: carried by labels, nothing diffuses."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import members, over_members
from attnflow.checks import end_time, instance, number, reals, shown, whole
from attnflow.depth.boosts import PoissonKernel
from attnflow.errors import InvalidInput
from attnflow.feasible import length, require_memory
from attnflow.fields import AbstractField
from attnflow.fields.queries import AtPoints
from attnflow.fields.timed import layer_time
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.methods import Renormalise
from attnflow.flows.methods.layers import check_layers, layer_number
from attnflow.flows.save import Save, saved_times
from attnflow.flows.system import one_layer
from attnflow.meanfield import CircleBasis, Density
from attnflow.precision import full_precision
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

DensityLike = Density | PoissonKernel | Callable[[np.ndarray], Any]


@dataclasses.dataclass(frozen=True)
class ConditionalDensity:
    """A density on the circle along random layers, given the heads, by its values where the labels are.

    Arrays have the batch dimensions `dims` of the field first (one head stream for each member of "seed"). Averages
    over head streams estimate the mean density, which is no solution of the layers.
    """

    dims: dict[str, np.ndarray]
    """The batch dimensions of the field, with the labels of their members."""
    times: np.ndarray
    """(frame,) t = step * layer."""
    labels: np.ndarray
    """(label,) the angles at which tokens start."""
    masses: np.ndarray
    """(label,) the masses that they carry, of sum 1: integrals are sums with these weights."""
    angles: np.ndarray
    """(..., frame, label) where they are, in (-pi, pi]."""
    log_density: np.ndarray
    """(..., frame, label) log rho there, relative to the uniform probability; NaN once a layer has folded."""
    folded: np.ndarray
    """(..., frame) whether a layer has folded the circle over itself, so that several labels share a position."""

    def fourier(self, degree: int = 8) -> np.ndarray:
        """(..., frame, degree + 1) the coefficients c_k, the integrals of e^(i k theta)."""
        k = np.arange(whole("degree", degree, 0) + 1)
        require_memory(16 * self.angles.size, "the waves of these labels", "use fewer of them")
        return np.stack([np.exp(1j * one * self.angles) @ self.masses for one in k], axis=-1)


def conditional_density(
    density: DensityLike,
    field: AbstractField,
    until: float,
    *,
    step: float,
    labels: int = 256,
    save: Save | None = None,
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

    A layer with a long step or a large logit scale may fold the circle: some label has T' < 0. Positions, masses and
    Fourier coefficients stay right, but the density at a position is then a sum over labels: `log_density` is NaN from
    there on and `folded` says so. Use a smaller step.
    """
    instance("field", field, AbstractField, "a field such as random_attention(2, 2.0)")
    until, step = end_time(until), number("step", step, low=1e-300)
    check_layers(until, step)
    times = saved_times(save, until, step, default=1)
    count = length("labels", labels, 4, 8)
    alpha = 2 * np.pi * np.arange(count) / count
    rho = _values(density, alpha)
    rho = rho / rho.mean()
    tokens = Tokens(np.stack([np.cos(alpha), np.sin(alpha)], axis=1), rho, space=Sphere(2))
    field.check(tokens)
    with full_precision():
        systems = members(field, tokens)
        size = int(np.prod(systems.shape, dtype=int))
        require_memory(24 * size * len(times) * count, f"{size} members with {len(times)} frames", "use fewer of them")
        found = wait(
            _carried(systems.field, systems.field_axes, systems.measure, systems.measure_axes, np.asarray(step),
                     layer_number(times, step))
        )  # fmt: skip
        angles, stretch = (np.asarray(systems.unflatten(a)) for a in found)
    folded = np.isnan(stretch).any(axis=-1)
    with np.errstate(divide="ignore"):
        log_density = np.where(folded[..., None], np.nan, np.log(rho) - stretch)
    return ConditionalDensity(systems.dims, times, alpha, rho / count, angles, log_density, folded)


def _values(density: Any, alpha: np.ndarray) -> np.ndarray:
    """The density at these angles, times a constant."""
    if isinstance(density, Density):
        if not isinstance(density.basis, CircleBasis):
            raise InvalidInput(f"`density` is on a {type(density.basis).__name__}; give one on a CircleBasis.")
        found: Any = density(alpha)
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
def _carried(field: Any, axes: Any, mu: Any, mu_axes: Any, step: Any, marks: Any) -> Any:
    update = Renormalise()

    def one(field: Any, mu: Any) -> Any:
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
            return state, _seen(state)

        begin = (jnp.asarray(mu.positions), jnp.zeros(mu.n))
        _, found = jax.lax.scan(frame, begin, jnp.stack([marks[:-1], marks[1:]], axis=1))
        return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), _seen(begin), found)

    if mu_axes is None:
        return one(field, mu)
    return over_members(one, (axes, mu_axes), (field, mu), mu.n**2)


def _turned(x: Any) -> Any:
    """The unit tangents at points of the circle, counter-clockwise."""
    return jnp.stack([-x[:, 1], x[:, 0]], axis=1)


def _seen(state: Any) -> Any:
    x, stretch = state
    return jnp.arctan2(x[:, 1], x[:, 0]), stretch
