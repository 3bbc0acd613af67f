"""Initial conditions. Randomness is drawn on the host from an integer seed; a list of seeds makes a batch."""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnflow.axes import finite_array
from attnflow.checks import generator, instance, number, shown, whole
from attnflow.errors import InvalidInput, InvalidTokens
from attnflow.feasible import length, require_memory
from attnflow.spaces import AbstractSpace, Sphere
from attnflow.tokens.ensemble import Tokens
from attnflow.tokens.stacking import stack

Seed = int | Iterable[int]
COPIES = 2
"""Arrays of all positions that exist at a time while tokens are made, at least."""


def uniform(space: AbstractSpace, *, n: int, seed: Seed = 0) -> Tokens:
    """`n` iid tokens of the reference distribution: uniform on compact spaces, standard Gaussian on R^d."""
    instance("space", space, AbstractSpace, "a space such as Sphere(3)")
    n = length("n", n, 1, COPIES * space.dim)
    return _draw(seed, lambda rng: Tokens(space.sample(rng, n), space=space))


def von_mises_fisher(
    space: Sphere, *, n: int, concentration: float, mean: ArrayLike | None = None, seed: Seed = 0
) -> Tokens:
    """`n` iid tokens with density proportional to exp(concentration <mean, x>), any d >= 2, any concentration >= 0.

    Wood's rejection method, rearranged to draw 1 - <mean, x> directly, so that a concentration of 1e12 keeps
    all its digits (SciPy's sampler works with <mean, x> and does not). `mean` defaults to the last basis vector.
    """
    _sphere("von_mises_fisher", space)
    n = length("n", n, 1, COPIES * space.dim)
    concentration = number("concentration", concentration, low=0.0)
    axis = np.eye(space.dim)[-1] if mean is None else _rows(space, np.atleast_2d(mean), "mean")[0]

    def draw(rng: np.random.Generator) -> Tokens:
        drop = _von_mises_fisher_drop(rng, n, space.dim, concentration)
        tangent = _tangent_directions(rng, np.broadcast_to(axis, (n, space.dim)))
        return Tokens((1 - drop)[:, None] * axis + np.sqrt(drop * (2 - drop))[:, None] * tangent, space=space)

    return _draw(seed, draw)


def ring(space: Sphere, *, n: int, jitter: float = 0.0, seed: Seed = 0) -> Tokens:
    """`n` equispaced tokens on the great circle of the first two coordinates.

    `jitter` is the standard deviation of a Gaussian added to each angle. Without jitter the ring is an
    (unstable) equilibrium.
    """
    _sphere("ring", space)
    n = length("n", n, 1, COPIES * space.dim)
    jitter = number("jitter", jitter, low=0.0)

    def draw(rng: np.random.Generator) -> Tokens:
        angles = 2 * np.pi * np.arange(n) / n + jitter * rng.standard_normal(n)
        positions = np.zeros((n, space.dim))
        positions[:, 0], positions[:, 1] = np.cos(angles), np.sin(angles)
        return Tokens(positions, space=space)

    return _draw(seed, draw)


def equiangular(space: Sphere, *, n: int, overlap: float, seed: Seed | None = None) -> Tokens:
    """`n` tokens with <x_i, x_j> = overlap for all i != j; needs -1/(n-1) <= overlap <= 1 and d >= n.

    (At the lower end, the regular simplex, d = n - 1 is enough.) A seed turns them by a random rotation.
    """
    _sphere("equiangular", space)
    n, overlap = length("n", n, 1, COPIES * space.dim), number("overlap", overlap)
    lowest = -1.0 / (n - 1) if n > 1 else -1.0
    if not lowest - 1e-12 <= overlap <= 1:
        raise InvalidInput(f"`overlap` is {overlap}; {n} tokens can have overlaps in [{lowest:.6g}, 1].")
    flat = overlap <= lowest + 1e-12
    need = max(n - 1, 2) if flat else n
    if space.dim < need:
        raise InvalidInput(f"{n} tokens of overlap {overlap:g} need dimension {need}, but the space has {space.dim}.")
    if flat:
        frame = _helmert(n) * np.sqrt(n / (n - 1)) if n > 1 else np.ones((1, 1))
    else:
        side, bulk = np.sqrt(1 - overlap), np.sqrt(1 + (n - 1) * overlap)
        frame = side * np.eye(n) + (bulk - side) / n
    positions = np.zeros((n, space.dim))
    positions[:, : frame.shape[1]] = frame
    if seed is None:
        return Tokens(positions, space=space)
    return _draw(seed, lambda rng: Tokens(positions @ _rotation(rng, space.dim), space=space))


def simplex(space: Sphere, *, n: int, seed: Seed | None = None) -> Tokens:
    """The regular simplex: `n` tokens of overlap -1/(n-1), in dimension n - 1 or more."""
    whole("n", n, 1)
    return equiangular(space, n=n, overlap=-1.0 / (n - 1) if n > 1 else 1.0, seed=seed)


def orthonormal(space: Sphere, *, n: int, seed: Seed | None = None) -> Tokens:
    """`n` orthonormal tokens, n <= d."""
    return equiangular(space, n=n, overlap=0.0, seed=seed)


def clustered(
    space: AbstractSpace,
    *,
    centres: ArrayLike,
    n: int | Sequence[int],
    masses: ArrayLike | None = None,
    spread: float = 0.0,
    seed: Seed = 0,
) -> Tokens:
    """Gaussian clusters: y = retract(c + xi), xi tangent at the centre c, `spread` its deviation per direction.

    Centres are moved onto the space (on the sphere: normalised).

    Arguments:
        centres: one row for each cluster.
        n: the number of all tokens, divided evenly among the centres (the first ones get those that are left over), or
            a list with the number of each.
        masses: total masses of the clusters, equal by default; the tokens of a cluster share its mass equally.
        spread: deviation of a token from its centre, in every direction.
        seed: of the random numbers; a list makes a batch.
    """
    spread = number("spread", spread, low=0.0)
    instance("space", space, AbstractSpace, "a space such as Sphere(3)")

    def scatter(rng: np.random.Generator, around: np.ndarray) -> np.ndarray:
        noise = spread * rng.standard_normal(around.shape)
        return np.asarray(space.retract(around + np.asarray(space.tangent(around, noise))))

    return _around(space, centres, n, masses, seed, scatter)


def caps(
    space: Sphere,
    *,
    centres: ArrayLike,
    n: int | Sequence[int],
    radius: float,
    masses: ArrayLike | None = None,
    seed: Seed = 0,
) -> Tokens:
    """Tokens uniform on the spherical caps {x: angle(x, c) <= radius} around the centres.

    Arguments:
        centres: one row for each cap.
        n: the number of all tokens, divided evenly among the caps (the first ones get those that are left over), or a
            list with the number of each.
        radius: angle from the centre to the rim.
        masses: total masses of the caps, equal by default; the tokens of a cap share its mass equally.
        seed: of the random numbers; a list makes a batch.
    """
    _sphere("caps", space)
    radius = number("radius", radius)
    if not 0 <= radius <= np.pi:
        raise InvalidInput(f"`radius` is {radius}; give an angle in [0, pi].")

    def scatter(rng: np.random.Generator, around: np.ndarray) -> np.ndarray:
        angle = _cap_angles(rng, len(around), space.dim, radius)[:, None]
        return np.cos(angle) * around + np.sin(angle) * _tangent_directions(rng, around)

    return _around(space, centres, n, masses, seed, scatter)


def _around(
    space: AbstractSpace,
    centres: ArrayLike,
    n: int | Sequence[int],
    masses: ArrayLike | None,
    seed: Seed,
    scatter: Callable[[np.random.Generator, np.ndarray], np.ndarray],
) -> Tokens:
    middle = _rows(space, centres, "centres")
    if isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= len(middle):
        length("n", int(n), 1, COPIES * space.dim)
        counts = (int(n) + np.arange(len(middle))[::-1]) // len(middle)  # the first get those that are left over
    else:
        counts = np.asarray(n)
    if counts.shape != (len(middle),) or counts.dtype.kind not in "iu" or (counts < 1).any():
        raise InvalidInput(
            f"`n` is {shown(n)}; give the number of all tokens, one or more for each of the {len(middle)} centres, or "
            "a list with the number of each."
        )
    weights = np.ones(len(middle)) if masses is None else finite_array("`masses`", masses)
    if weights.shape != (len(middle),):
        raise InvalidTokens(f"`masses` has shape {weights.shape}; give one mass per centre, shape {(len(middle),)}.")
    length("n", int(counts.sum(dtype=object)), 1, COPIES * space.dim)
    around = np.repeat(middle, counts, axis=0)
    each = np.repeat(weights / counts, counts)
    return _draw(seed, lambda rng: Tokens(scatter(rng, around), each, space=space))


def _draw(seed: Seed, make: Callable[[np.random.Generator], Tokens]) -> Tokens:
    def one(label: int) -> Tokens:
        return make(generator(label))

    given: Any = seed
    if not isinstance(given, Iterable) or isinstance(given, str) or getattr(given, "ndim", 1) == 0:
        return one(given)
    if isinstance(given, Sized):
        require_memory(len(given) << 10, f"`seed` has {len(given)} members, which", "give fewer seeds")
    seeds = list(given)
    if not seeds:
        raise InvalidInput("`seed` is an empty list; give at least one seed.")
    systems = [one(s) for s in seeds]
    if len(set(seeds)) < len(seeds):
        raise InvalidInput(f"`seed` is {shown(seeds)}, with one seed more than once; a seed labels one member.")
    return stack("seed", seeds, systems)


def _von_mises_fisher_drop(rng: np.random.Generator, n: int, d: int, kappa: float) -> np.ndarray:
    """n draws of u = 1 - <mean, x> by rejection from a Beta envelope, without cancellation at large kappa."""
    m = d - 1.0
    b = m / (2 * kappa + np.hypot(2 * kappa, m))
    gap = 2 * b / (1 + b)
    found = np.empty(0)
    while len(found) < n:
        z = rng.beta(m / 2, m / 2, size=n + 16)
        u = 2 * b * z / (1 - (1 - b) * z)
        log_accept = kappa * (gap - u) + m * np.log((gap + (1 - gap) * u) * (1 + b) ** 2 / (4 * b))
        found = np.concatenate([found, u[np.log(rng.random(len(u))) <= log_accept]])
    return found[:n]


def _cap_angles(rng: np.random.Generator, n: int, d: int, radius: float) -> np.ndarray:
    """Angles to the centre of uniform points of a cap: density sin^(d-2), by inverting the incomplete Beta function."""
    from scipy.special import betainc, betaincinv

    shape = (d - 1) / 2
    half_angle = np.sin(radius / 2) ** 2  # (1 - cos)/2 is Beta((d-1)/2, (d-1)/2) on the whole sphere
    share = betainc(shape, shape, half_angle)
    return 2 * np.arcsin(np.sqrt(betaincinv(shape, shape, share * rng.random(n))))


def _tangent_directions(rng: np.random.Generator, around: np.ndarray) -> np.ndarray:
    """One uniform unit vector orthogonal to each row."""
    raw = rng.standard_normal(around.shape)
    for _ in range(2):  # the second pass removes what rounding left of the first
        raw = raw - np.sum(raw * around, axis=1, keepdims=True) * around
        raw = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    return raw


def _rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    """A Haar orthogonal matrix."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))


def _helmert(n: int) -> np.ndarray:
    """(n, n-1): orthonormal columns orthogonal to (1, ..., 1)."""
    rows = np.zeros((n - 1, n))
    for k in range(1, n):
        rows[k - 1, :k], rows[k - 1, k] = 1.0, -k
        rows[k - 1] /= np.sqrt(k * (k + 1))
    return rows.T


def _sphere(name: str, space: AbstractSpace) -> None:
    instance("space", space, AbstractSpace, "a sphere, Sphere(d)")
    if not isinstance(space, Sphere):
        raise InvalidInput(f"`space` of {name} is {space}; it is defined on `Sphere(d)` only.")


def _rows(space: AbstractSpace, rows: ArrayLike, name: str) -> np.ndarray:
    """Points, moved onto the space."""
    values = finite_array(f"`{name}`", rows)
    if values.ndim != 2 or values.shape[1] != space.dim or len(values) == 0:
        raise InvalidInput(f"`{name}` has shape {values.shape}; give rows of length {space.dim}.")
    points = np.asarray(space.retract(values))
    if not np.isfinite(points).all():
        row = int(np.argmin(np.isfinite(points).all(axis=1)))
        raise InvalidInput(f"`{name}[{row}]` has no nearest point on {space}; remove it.")
    return points
