"""Boosts of the sphere, which are the flows of x' = P_x b, and the densities that they move among themselves.

At infinite temperature (beta = 0) all tokens feel one vector b(t), so the flow is a path of Moebius maps of the ball.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from attnflow.axes import as_seed, finite_array, over_members, random_key
from attnflow.checks import end_time, number, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory
from attnflow.fields.exact.drift import LONGEST, boosted, direction
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.methods.layers import check_layers, layer_number
from attnflow.flows.saving import Save, saved_times
from attnflow.precision import full_precision, in_float64, is_concrete
from attnflow.special.formula import Other, formula
from attnflow.special.integrals import NODES, WEIGHTS

ON_THE_SPHERE = 1e-14
"""Points whose 1 - |x|^2 is below this are on the sphere."""
LONGEST_VECTOR = 1e150
"""The square of a longer vector may leave the range of floats."""
BOOST = Other("vectors (d,) or (..., d), of length up to 1e150")
REACH = "np.linalg.norm(b, axis=-1, keepdims=True)"
NEAREST = f"np.maximum(np.linalg.norm(points + b / (1e-145 + {REACH}), axis=-1, keepdims=True), np.exp(-{REACH}))"
"""How near points come to -b/|b|, from where boosts stretch by the inverse of this, at most."""


@formula(
    points=Other("points (..., d) of the closed unit ball"),
    b=BOOST,
    absolute=f"2e-15 / {NEAREST}",
)
@in_float64
def boost(points: ArrayLike, b: ArrayLike) -> Any:
    """Where the flow of x' = P_x b carries points (..., d) of the closed unit ball in time 1; `b` is (d,) or (..., d).

    On the sphere, with e = b/|b|, q = e^(-|b|) and s = <x, e>,

        x -> ([|e+x|^2 - q^2 |e-x|^2] e + 4 q (x - s e)) / (|e+x|^2 + 2 q (1-|x|^2) + q^2 |e-x|^2),

    which on the circle is z -> (z + t e)/(1 + t conj(e) z), t = tanh(|b|/2). Inside the ball the same formula is the
    isometry of hyperbolic space, w' = (1+|w|^2) b/2 - <w, b> w, which moves the parameter of a `PoissonKernel`. Boosts
    along one axis add; others make a boost and a rotation. All terms of the denominator are positive, so that
    boosts of every length are exact to the rounding of x and e.
    """
    x, b = _together(_ball("points", points), _boosts(b))
    return _rows(x, _gap(x), b)[0]


@formula(
    points=Other("unit vectors (..., d)"),
    b=BOOST,
    relative=2e-15,
    absolute=f"4e-15 * np.shape(points)[-1] / {NEAREST}",
)
@in_float64
def boost_log_det(points: ArrayLike, b: ArrayLike) -> Any:
    """log|det D boost| at points of the sphere: (d-1) log(4 q / (|e+x|^2 + q^2 |e-x|^2)).

    A density rho becomes rho(x) e^(-boost_log_det(x, b)) at boost(x, b).
    """
    x, b = _together(_ball("points", points), _boosts(b))
    if is_concrete(x) and np.max(np.abs(_gap(np.asarray(x))), initial=0.0) > 1e-6:
        raise InvalidInput("`points` has a row inside the ball; give unit vectors, whose sphere the boost stretches.")
    return (x.shape[-1] - 1) * _log_factors(x, b)


class PoissonKernel(eqx.Module):
    """The density ((1-|w|^2)/|x-w|^2)^(d-1) on S^(d-1), relative to the uniform probability, |w| < 1.

    It is the uniform density carried by a boost, and boosts carry it to others of its kind (on the circle it is the
    Poisson kernel, or wrapped Cauchy density, with mean w and Fourier coefficients w^k). So at beta = 0 tokens that
    start with this density keep it, given the noise, in every dimension (ours, from arXiv:2604.01978).
    """

    w: Float[Array | np.ndarray, " dim"]
    gap: Float[Array | np.ndarray, ""]
    """1 - |w|^2, which is carried along so that it keeps its digits."""

    def __init__(self, w: ArrayLike, gap: ArrayLike | None = None):
        self.w = _ball("w", w)
        if self.w.ndim != 1:
            raise InvalidInput(f"`w` has shape {self.w.shape}; give one point of the unit ball, of at least 2 numbers.")
        self.gap = _gap(self.w) if gap is None else jnp.asarray(gap) if not is_concrete(gap) else np.asarray(gap, float)
        if is_concrete(self.gap) and not 0 < self.gap <= 1:
            raise InvalidInput(f"`w` has |w| = {np.linalg.norm(self.w):.17g}; give a point inside the unit ball.")

    @property
    def dim(self) -> int:
        """d."""
        return int(self.w.shape[0])

    @property
    @in_float64
    def mean(self) -> Any:
        """The mean of x: w 2 (d-1) times the integral over q in [0, 1] of q^(d-1) (1-|w|^2+|w|^2 q^2)^((d-2)/2)."""
        return jnp.asarray(self.w) * _pull(jnp.asarray(self.gap), self.dim)

    @in_float64
    def log_density(self, x: ArrayLike) -> Any:
        """log rho at unit vectors x (..., d)."""
        points = _vectors("x", x)
        _together(points, jnp.asarray(self.w))
        away = jnp.sum((jnp.asarray(points) - jnp.broadcast_to(jnp.asarray(self.w), points.shape)) ** 2, axis=-1)
        return (self.dim - 1) * (jnp.log(jnp.asarray(self.gap)) - jnp.log(away))

    @in_float64
    def density(self, x: ArrayLike) -> Any:
        """Rho at unit vectors x (..., d)."""
        return jnp.exp(jnp.asarray(self.log_density(x)))

    @in_float64
    def moved(self, b: ArrayLike) -> "PoissonKernel":
        """The density after the boost by `b` (d,)."""
        by = jnp.asarray(_vectors("b", b))
        if by.shape != self.w.shape:
            raise InvalidInput(f"`b` has shape {by.shape}; give a vector of R^{self.dim}, as `w` is.")
        w, factor = _rows(jnp.asarray(self.w), jnp.asarray(self.gap), by)
        return eqx.tree_at(lambda kernel: (kernel.w, kernel.gap), self, (w, jnp.asarray(self.gap) * factor))


@dataclasses.dataclass(frozen=True)
class PoissonPath:
    """Poisson kernels that move under common noise, for independent replicas of the noise."""

    tau: np.ndarray
    """(frame,) the canonical times."""
    w: np.ndarray
    """(replica, frame, d)."""
    gap: np.ndarray
    """(replica, frame) 1 - |w|^2, to relative accuracy."""
    points: np.ndarray | None
    """(replica, frame, point, d) the points that were carried along; None if none were given."""
    seed: Any

    def kernel(self, replica: int = 0, frame: int = -1) -> PoissonKernel:
        """The density of one replica at one frame."""
        return PoissonKernel(self.w[replica, frame], self.gap[replica, frame])


def poisson_path(
    w0: ArrayLike,
    tau: float,
    step: float,
    *,
    seed: Any = 0,
    replicas: int = 1,
    save: Save | None = None,
    points: ArrayLike | None = None,
) -> PoissonPath:
    """Random layers of attention at beta = 0 from the density `PoissonKernel(w0)`, given the noise: w along its path.

    One step of length h = `step` is the boost by b = sqrt(h/d) |mean| xi, with xi a Gaussian vector that all points
    share. The amplitude |mean| is that of the start of the step: the noise is Ito in the measure, and Stratonovich in x
    alone. (Amplitudes from inside the step, as in a method of Heun, follow another equation.) Steps have weak order 1.
    On the circle u = |w|^2 obeys du = u (1-u)^2/4 dtau + u (1-u) dB/sqrt 2: log u is a martingale while u -> 1. The
    steps keep E log u exactly, except for events |xi| > sqrt(8/h) (ours, from arXiv:2604.01978).

    `points` (point, d) of the sphere are carried by the same noise; replica r draws from fold_in(seed, r). `save` as
    for `solve`.
    """
    kernel = PoissonKernel(w0)
    until, step = end_time(tau), number("step", step, low=1e-300)
    check_layers(until, step)
    times = saved_times(save, until, step, default=1)
    marks = layer_number(times, step)
    replicas, d, seed = whole("replicas", replicas, 1), kernel.dim, as_seed(seed)
    carried = None if points is None else np.asarray(_ball("points", points))
    if carried is not None and (carried.ndim != 2 or carried.shape[1] != d or np.max(_gap(carried), initial=0) > 1e-6):
        raise InvalidInput(f"`points` has shape {carried.shape}; give unit vectors of R^{d}, one a row.")
    numbers = replicas * len(marks) * d * (1 + (0 if carried is None else len(carried)))
    require_memory(8 * numbers, f"{replicas} `replicas` with {len(marks)} frames", "use fewer of them")
    with full_precision():
        amplitude = np.asarray(np.sqrt(step / d))
        w, gap, moved = wait(
            _paths(
                np.asarray(kernel.w),
                np.asarray(kernel.gap),
                carried,
                amplitude,
                random_key(seed),
                np.arange(replicas),
                marks,
            )
        )
    return PoissonPath(times, np.asarray(w), np.asarray(gap), None if moved is None else np.asarray(moved), seed)


@compiled
def _paths(w: Any, gap: Any, points: Any, amplitude: Any, key: Any, replicas: Any, marks: Any) -> Any:
    begin = (jnp.asarray(w), jnp.asarray(gap), None if points is None else jnp.asarray(points))

    def one(replica: Any) -> Any:
        own = jax.random.fold_in(key, replica)

        def step(k: Any, state: Any) -> Any:
            w, gap, points = state
            xi = jax.random.normal(jax.random.fold_in(own, k), w.shape, w.dtype)
            b = amplitude * jnp.linalg.norm(w) * _pull(gap, w.shape[0]) * xi
            if points is not None:
                points = jax.vmap(lambda x: boosted(x, jnp.zeros(()), b)[0])(points)
                points = points / jnp.linalg.norm(points, axis=1, keepdims=True)
            w, factor = boosted(w, gap, b)
            return w, gap * factor, points

        def frame(state: Any, ends: Any) -> Any:
            state = jax.lax.fori_loop(ends[0], ends[1], step, state)
            return state, state

        _, found = jax.lax.scan(frame, begin, jnp.stack([marks[:-1], marks[1:]], axis=1))
        return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), begin, found)

    return over_members(one, (0,), (replicas,), 16 if points is None else 4 * points.size + 16)


def _pull(gap: Any, d: int) -> Any:
    """|mean| / |w| of a Poisson kernel: 2 (d-1) times the integral of q^(d-1) (gap + (1-gap) q^2)^((d-2)/2)."""
    if d == 2:
        return jnp.ones_like(gap)
    p, weights = _depths(d)
    near = p < 0.5  # q = 1 - p: rounded near 1, q would lose the digits of p in its high powers
    level = jnp.where(
        near, jnp.log1p((gap - 1) * np.where(near, p * (2 - p), 0.0)), jnp.log(gap + (1 - gap) * (1 - p) ** 2)
    )
    return 2 * (d - 1) * jnp.sum(weights * jnp.exp((d - 1) * np.log1p(-p) + (d - 2) / 2 * level))


def _depths(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes p = 1 - q and weights for `_pull`: Gauss's rule in panels, accurate to 1e-15 for every d and gap.

    The integrand has a peak of width 1/d at p = 0, outside of [0, 45/d] it is below rounding; for small d it has a
    branch point near p = 1, where it vanishes like q^d.
    """
    ends = np.array([0.0, 2.0, 5.0, 10.0, 20.0, 45.0]) / d
    ends = np.append(ends[ends < 0.7], [end for end in (0.7, 0.94, 0.994, 1.0) if end < 45 / d])
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + NODES)).ravel(), (half * WEIGHTS).ravel()


def _gap(x: Any) -> Any:
    """1 - |x|^2, and 0 for points of the sphere."""
    xp: Any = np if isinstance(x, np.ndarray) else jnp
    size = xp.sqrt(xp.sum(x**2, axis=-1))
    gap = (1 - size) * (1 + size)
    return xp.where(gap < ON_THE_SPHERE, xp.zeros_like(gap), gap)


def _vectors(name: str, value: Any) -> Any:
    found = finite_array(f"`{name}`", value)
    if found.ndim < 1 or found.shape[-1] < 2:
        raise InvalidInput(f"`{name}` is {shown(value)}; give vectors of R^d with d of at least 2 as last axis.")
    return found


def _ball(name: str, value: Any) -> Any:
    found = _vectors(name, value)
    if is_concrete(found) and found.size and np.max(np.linalg.norm(found, axis=-1)) > 1 + 1e-6:
        raise InvalidInput(f"`{name}` has a row outside the unit ball; divide it by its norm.")
    return found


def _together(x: Any, b: Any) -> tuple[Any, Any]:
    """Vectors of one dimension, repeated to one shape."""
    try:
        shape = jnp.broadcast_shapes(x.shape, b.shape)
        fits = x.shape[-1] == b.shape[-1]
    except ValueError:
        fits = False
    if not fits:
        raise InvalidInput(f"vectors of shapes {x.shape} and {b.shape} do not fit; give one last axis, the dimension.")
    return jnp.broadcast_to(jnp.asarray(x), shape), jnp.broadcast_to(jnp.asarray(b), shape)


def _boosts(b: Any) -> Any:
    vectors = _vectors("b", b)
    if is_concrete(vectors) and np.max(np.abs(vectors), initial=0.0) > LONGEST_VECTOR:
        raise InvalidInput(f"`b` is {shown(b)}; give vectors of length up to {LONGEST_VECTOR:g}.")
    return vectors


@jax.jit
def _log_factors(x: Any, b: Any) -> Any:
    """log(4 q/(|e+x|^2 + q^2 |e-x|^2)) of every row, whose q = e^(-|b|) may leave the range of floats."""

    def of_row(x: Any, b: Any) -> Any:
        e, length = direction(b)
        to, fro = jnp.sum((x + e) ** 2), jnp.sum((x - e) ** 2)
        nearer = to <= jnp.exp(-2 * length) * fro  # to -e, where both terms may underflow
        opposite = jnp.where(nearer, to * jnp.exp(2 * jnp.minimum(length, LONGEST)), 1.0) + jnp.where(nearer, fro, 1.0)
        spread = to + jnp.where(nearer, 1.0, jnp.exp(-2 * length) * fro)
        log_below = jnp.where(nearer, jnp.log(opposite) - 2 * length, jnp.log(spread))
        return jnp.where(length > 0, jnp.log(4.0) - length - log_below, 0.0)

    d = x.shape[-1]
    return jax.vmap(of_row)(x.reshape(-1, d), b.reshape(-1, d)).reshape(x.shape[:-1])


@jax.jit
def _rows(x: Any, gap: Any, b: Any) -> Any:
    """`boosted` of every row."""
    d, shape = x.shape[-1], x.shape[:-1]
    moved, factor = jax.vmap(boosted)(x.reshape(-1, d), gap.reshape(-1), b.reshape(-1, d))
    return moved.reshape(x.shape), factor.reshape(shape)
