"""Attention with a perceptron block: the energy, its first variation, and the critical measures that are known.

U(x) = sum_j omega_j s(a_j . x + b_j) with s' the activation, and E[mu] = (1/2 beta) double integral of k dmu dmu
+ integral of U dmu, where k(x, y) = e^{beta <x, y>} for the model USA and e^{beta (<x, y> - 1)} for USA0 (the
default; the two weigh U differently, so they are two problems, not one). The flow climbs E. arXiv:2601.21366.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special as sp

from attnflow.errors import InvalidInput
from attnflow.special.formula import Other, Reals, Word, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.wording import shown

Activation = Literal["relu", "gelu", "tanh"]
Model = Literal["USA0", "USA"]
Map = Callable[[np.ndarray], np.ndarray]
LARGEST_USA_BETA = 700.0
"""Above, e^beta comes close to the end of the range of floats."""
LARGEST_ENTRY = 1e70
"""Entries of a landscape above could make third powers of them leave the range of floats."""
EPS = float(np.finfo(float).eps)
BETA = Reals(0.0, ends="none")
BETA_SCALAR = Reals(0.0, ends="none", scalar=True)
SHARPNESS = Reals(0.0, 1e8, ends="right", scalar=True)
"""Beyond, the rounding of unit vectors would show in e^{beta (<x, y> - 1)}."""
POSITIONS = Other("unit vectors of the space of the landscape")
MASSES = Other("one mass for each position, of sum 1")
NETWORK = Other("a `Landscape`")
KERNEL_SIZE = "np.exp(beta * (model == 'USA'))"
"""The largest value of k, as an expression."""
KERNEL = Word(("USA0", "USA"))
"""The clocks whose flow climbs this energy."""


class Landscape:
    """U(x) = sum_j weights_j s(directions_j . x + biases_j), directions of shape (m, d).

    s is the antiderivative of the activation: z_+^2/2 (relu), log cosh z (tanh), ((z^2-1) Phi(z) + z phi(z))/2 (gelu;
    Phi and phi the normal distribution and density), which vanishes at minus infinity as relu's does. arXiv:2601.21366.
    """

    def __init__(self, directions: ArrayLike, biases: ArrayLike, weights: ArrayLike, activation: Activation = "relu"):
        self.directions = _entries("directions", directions)
        self.biases, self.weights = _entries("biases", biases), _entries("weights", weights)
        self.activation = activation
        shapes = a, b, omega = (self.directions.shape, self.biases.shape, self.weights.shape)
        if len(a) != 2 or b != a[:1] or omega != a[:1]:
            raise InvalidInput(
                f"`directions`, `biases`, `weights` have shapes {shapes!r}; they must be (m, d), (m,) and (m,)."
            )
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            raise InvalidInput(f"`activation` is {shown(activation)}; use 'relu', 'gelu' or 'tanh'.")

    def scale(self, order: int) -> float:
        """Size of the terms of a derivative of U of order 0, 1 or 2, to which its rounding is proportional.

        sum_j |weights_j| (1 + |directions_j| + |biases_j|)^p with p = 2, 2, 3, and p = 1 for U itself with tanh.
        """
        power = 1 if self.activation == "tanh" and order == 0 else (2, 2, 3)[order]
        sizes = 1 + np.linalg.norm(self.directions, axis=1) + np.abs(self.biases)
        return float(np.abs(self.weights) @ sizes**power)

    def potential(self, x: ArrayLike) -> np.ndarray:
        """U at points of shape (..., d)."""
        return np.asarray(_ACTIVATIONS[self.activation][0](self.arguments(x)) @ self.weights)

    def gradient(self, x: ArrayLike) -> np.ndarray:
        """The gradient of U in R^d (not projected): sum_j weights_j sigma(directions_j . x + biases_j) directions_j."""
        return np.asarray((_ACTIVATIONS[self.activation][1](self.arguments(x)) * self.weights) @ self.directions)

    def arguments(self, x: ArrayLike) -> np.ndarray:
        """directions_j . x + biases_j, shape (..., m)."""
        points, a = _numbers(x), self.directions
        if points.ndim < 1 or points.shape[-1] != a.shape[1]:
            raise InvalidInput(f"`x` has shape {points.shape}; give vectors of {a.shape[1]} numbers.")
        if not np.isfinite(points).all():
            raise InvalidInput(f"`x` is {shown(x)}; give finite numbers.")
        return np.asarray(points @ a.T + self.biases)


@formula(
    positions=POSITIONS,
    masses=MASSES,
    beta=SHARPNESS,
    landscape=NETWORK,
    model=KERNEL,
    absolute=f"2e-16 * (2 + np.sum(np.shape(positions))) * ({KERNEL_SIZE} / beta + landscape.scale(0))",
)
def perceptron_energy(
    positions: ArrayLike,
    masses: ArrayLike,
    beta: float,
    *,
    landscape: Landscape,
    model: Model = "USA0",
) -> float:
    """E = (1/2 beta) sum_ij m_i m_j k(x_i, x_j) + sum_i m_i U(x_i), which attention with a perceptron climbs.

    k(x, y) is e^{beta (<x, y> - 1)} for the model USA0 and e^{beta <x, y>} for USA. arXiv:2601.21366.

    Arguments:
        positions: unit vectors x_i, (n, d).
        masses: masses m_i of sum 1.
        beta: inverse temperature; at most 700 for USA.
        landscape: U.
        model: "USA0" or "USA".
    """
    points, mass = _measure(positions, masses, landscape)
    pairs = mass @ _kernel0(points, points, beta) @ mass
    with np.errstate(over="ignore"):
        pair_energy = kernel_factor(beta, model) / beta / 2 * pairs
    return float(pair_energy + mass @ landscape.potential(_normalised(points)))


@formula(
    x=POSITIONS,
    positions=POSITIONS,
    masses=MASSES,
    beta=SHARPNESS,
    landscape=NETWORK,
    model=KERNEL,
    absolute=f"2e-16 * (2 + np.sum(np.shape(positions))) * ({KERNEL_SIZE} / beta + landscape.scale(0))",
)
def first_variation(
    x: ArrayLike,
    positions: ArrayLike,
    masses: ArrayLike,
    *,
    beta: float,
    landscape: Landscape,
    model: Model = "USA0",
) -> np.ndarray:
    """Phi(x) = (1/beta) sum_j m_j k(x, x_j) + U(x), the price of mass at x: the first variation of `perceptron_energy`.

    k(x, y) is e^{beta (<x, y> - 1)} for the model USA0 and e^{beta <x, y>} for USA. arXiv:2601.21366.

    Arguments:
        x: unit vectors, (..., d).
        positions: unit vectors x_j, (n, d).
        masses: masses m_j of sum 1.
        beta: inverse temperature; at most 700 for USA.
        landscape: U.
        model: "USA0" or "USA".
    """
    points, mass = _measure(positions, masses, landscape)
    where = _unit(x, "x", landscape)
    with np.errstate(over="ignore"):
        convolved = kernel_factor(beta, model) / beta * (_kernel0(where, points, beta) @ mass)
    return np.asarray(convolved + landscape.potential(_normalised(where)))


@formula(
    positions=POSITIONS,
    masses=MASSES,
    beta=SHARPNESS,
    landscape=NETWORK,
    model=KERNEL,
    absolute=f"2e-16 * (2 + np.sum(np.shape(positions))) * ({KERNEL_SIZE} + landscape.scale(1))",
)
def critical_residuals(
    positions: ArrayLike,
    masses: ArrayLike,
    beta: float,
    *,
    landscape: Landscape,
    model: Model = "USA0",
) -> np.ndarray:
    """|P_x grad Phi| at each atom, the speed of the ascent flow there: all zero exactly at a critical measure.

    Phi is the `first_variation` and P_x the projection on the tangent space at x. arXiv:2601.21366.

    Arguments:
        positions: unit vectors, the atoms, (n, d).
        masses: masses of the atoms, of sum 1.
        beta: inverse temperature; at most 700 for USA.
        landscape: U.
        model: "USA0" or "USA".
    """
    points, mass = _measure(positions, masses, landscape)
    units = _normalised(points)
    field = kernel_factor(beta, model) * ((_kernel0(points, points, beta) * mass) @ units) + landscape.gradient(units)
    return _lengths(field - np.sum(units * field, axis=-1, keepdims=True) * units)


@formula(
    beta=BETA,
    max_potential=Reals(),
    model=KERNEL,
    relative=2e-16,
    absolute="4e-16 * np.exp(beta * (model == 'USA')) / beta",
)
def dirac_bound(beta: ArrayLike, max_potential: ArrayLike, *, model: Model = "USA0") -> Numbers:
    """The largest energy of attention with a perceptron: 1/(2 beta) + max U, reached exactly by Diracs at argmax U.

    For the model USA it is e^beta/(2 beta) + max U. arXiv:2601.21366.

    Arguments:
        beta: inverse temperature; at most 700 for USA.
        max_potential: the largest value of U, as of `largest_potential`.
        model: "USA0" or "USA".
    """
    with np.errstate(over="ignore"):
        return 2 * (kernel_factor(beta, model) / 4 / beta + max_potential / 2)


@dataclass(frozen=True)
class DiracStability:
    """Whether a Dirac is critical, stable against splitting and against translation, and the numbers that decide it."""

    critical: bool
    against_splitting: bool
    against_translation: bool
    residual: float
    hessian_eigenvalues: np.ndarray


@formula(
    x0=Other("a unit vector (d,)"),
    beta=BETA_SCALAR,
    landscape=NETWORK,
    model=KERNEL,
    tol=Reals(0.0, scalar=True),
    absolute="1e-16 * (4 + np.size(x0)) * landscape.scale(2)",
)
def dirac_stability(
    x0: ArrayLike,
    beta: float,
    landscape: Landscape,
    *,
    model: Model = "USA0",
    tol: float = 1e-9,
) -> DiracStability:
    """The second variation of the energy of attention with a perceptron at delta_{x0} on S^{d-1}.

    Critical when P grad U(x0) = 0; stable against splitting when Hess_S U < 1 (USA: e^beta), because pulling apart
    by v costs |v|^2/2 of attraction; stable against translation when Hess_S U <= 0. The Hessian on the sphere is
    Hess_S U = P (hess U) P - <x0, grad U> P. The residual and the eigenvalues have the accuracy that is stated, and
    are compared as they are. arXiv:2601.21366.

    Arguments:
        x0: the place of the Dirac.
        beta: inverse temperature.
        landscape: U.
        model: "USA0" or "USA".
        tol: a gradient or an eigenvalue of at most so much counts as zero.

    Raises:
        InvalidInput: if relu has a kink at x0, some a_j . x0 + b_j = 0 to rounding: U has no Hessian there.
    """
    point = _normalised(_unit(x0, "x0", landscape))
    if point.ndim != 1:
        raise InvalidInput(f"`x0` has shape {np.shape(x0)!r}; give one point (d,).")
    z = landscape.arguments(point)
    sizes = np.abs(landscape.directions) @ np.abs(point) + np.abs(landscape.biases)
    bends = (np.abs(landscape.directions).max(axis=1, initial=0.0) > 0) & (landscape.weights != 0)
    if landscape.activation == "relu" and (bends & (np.abs(z) <= (len(point) + 8) * EPS * sizes)).any():
        raise InvalidInput(f"`x0` is {shown(x0)}, at a kink of relu (some a_j . x0 + b_j = 0); move it off the kink.")
    gradient = landscape.gradient(point)
    frame = np.linalg.svd(point[None])[2][1:]  # an orthonormal basis of the tangent space
    along, slope = frame @ landscape.directions.T, _ACTIVATIONS[landscape.activation][2](z)
    hessian = (along * (landscape.weights * slope)) @ along.T - (point @ gradient) * np.eye(len(frame))
    eigenvalues = np.linalg.eigvalsh(hessian)
    residual = float(_lengths(frame @ gradient))
    top = eigenvalues[-1]
    log_threshold = beta if model == "USA" else 0.0  # beta may be large
    return DiracStability(
        critical=residual <= tol,
        against_splitting=bool(top <= 0 or np.log(top) < log_threshold),
        against_translation=bool(top <= tol),
        residual=residual,
        hessian_eigenvalues=eigenvalues,
    )


def kernel_factor(beta: ArrayLike, model: Model) -> np.ndarray:
    """The factor of e^{beta (<x, y> - 1)} in k: 1 (USA0) or e^beta (USA, refused where it leaves float range)."""
    values = np.asarray(beta, dtype=np.float64)
    if model == "USA0":
        return np.ones_like(values)
    if (values > LARGEST_USA_BETA).any():
        raise InvalidInput(f"`beta` is {shown(beta)}; with model='USA' give at most 700, or use 'USA0'.")
    return np.asarray(np.exp(values))


def _kernel0(x: np.ndarray, y: np.ndarray, beta: float) -> np.ndarray:
    """e^{-beta (1 - cos)} of the angles between points (..., d) and (n, d), of unit length up to 1e-6.

    1 - cos is (|x - y|^2 - (|x| - |y|)^2)/(2 |x| |y|), where neighbours do not cancel.
    """
    squares = radial = 0.0
    for k in range(y.shape[-1]):
        gap = x[..., k, None] - y[:, k]
        squares, radial = squares + gap**2, radial + gap * (x[..., k, None] + y[:, k])
    length, other_length = np.linalg.norm(x, axis=-1)[..., None], np.linalg.norm(y, axis=-1)
    rise = (squares - (radial / (length + other_length)) ** 2) / (2 * length * other_length)
    return np.asarray(np.exp(-beta * np.maximum(rise, 0.0)))


def _normalised(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def _lengths(vectors: np.ndarray) -> np.ndarray:
    """Lengths of vectors (..., d) whose squares may leave the range of floats."""
    sizes = np.abs(vectors).max(axis=-1)
    scales = np.where(sizes > 0, sizes, 1.0)
    return np.asarray(scales * np.linalg.norm(vectors / scales[..., None], axis=-1))


def _log_cosh(z: np.ndarray) -> np.ndarray:
    size = np.abs(z)
    near = np.log1p(2 * np.sinh(np.minimum(size, 1.0) / 2) ** 2)  # does not cancel near 0
    return np.where(size < 1, near, size + np.log1p(np.exp(-2 * size)) - np.log(2))


def _normal(z: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))


# antiderivative, activation, slope
_ACTIVATIONS: dict[str, tuple[Map, Map, Map]] = {
    "relu": (lambda z: np.maximum(z, 0) ** 2 / 2, lambda z: np.maximum(z, 0), lambda z: np.where(z > 0, 1.0, 0.0)),
    "tanh": (_log_cosh, np.tanh, lambda z: (2 * np.exp(-np.abs(z)) / (1 + np.exp(-2 * np.abs(z)))) ** 2),
    "gelu": (
        lambda z: ((z**2 - 1) * sp.ndtr(z) + z * _normal(z)) / 2,
        lambda z: z * sp.ndtr(z),
        lambda z: sp.ndtr(z) + z * _normal(z),
    ),
}


def check_landscape(landscape: Landscape) -> None:
    """Refuse what is no `Landscape`."""
    if not isinstance(landscape, Landscape):
        raise InvalidInput(f"`landscape` is {shown(landscape)}; give a `theory.landscape.Landscape`.")


def _numbers(value: ArrayLike) -> np.ndarray:
    """An array of floats; NaN where `value` is none."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full((), np.nan)


def _entries(name: str, value: ArrayLike) -> np.ndarray:
    entries = _numbers(value)
    if not (np.abs(entries) <= LARGEST_ENTRY).all():
        raise InvalidInput(f"`{name}` is {shown(value)}; give numbers of at most {LARGEST_ENTRY:.0e} in size.")
    return entries


def _unit(x: ArrayLike, name: str, landscape: Landscape) -> np.ndarray:
    """Points in the space of the landscape whose lengths are 1 to 1e-6, as they were given."""
    check_landscape(landscape)
    points = _numbers(x)
    if points.ndim < 1 or points.shape[-1] != landscape.directions.shape[1]:
        raise InvalidInput(f"`{name}` is {shown(x)}; give vectors of {landscape.directions.shape[1]} numbers.")
    with np.errstate(over="ignore"):
        deviations = np.abs(np.linalg.norm(points, axis=-1) - 1)
    if not (deviations <= 1e-6).all():
        raise InvalidInput(f"`{name}` is {shown(x)}; give unit vectors.")
    return points


def _measure(positions: ArrayLike, masses: ArrayLike, landscape: Landscape) -> tuple[np.ndarray, np.ndarray]:
    points, mass = _unit(positions, "positions", landscape), _numbers(masses)
    if points.ndim != 2 or mass.shape != points.shape[:1]:
        raise InvalidInput(f"`positions` and `masses` have shapes {points.shape}, {mass.shape}; give (n, d) and (n,).")
    if not ((mass >= 0).all() and abs(mass.sum() - 1) <= 1e-9):
        raise InvalidInput(f"`masses` is {shown(masses)}; give non-negative numbers of sum 1.")
    return points, mass
