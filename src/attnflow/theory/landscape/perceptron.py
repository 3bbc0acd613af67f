"""Attention with a perceptron block: the energy, its first variation, and the critical measures that are known.

U(x) = sum_j omega_j s(a_j . x + b_j) with s' the activation, and E[mu] = (1/2 beta) double integral of k dmu dmu
+ integral of U dmu, where k(x, y) = e^{beta <x, y>} for the model USA and e^{beta (<x, y> - 1)} for USA0 (the
default; the two weigh U differently, so they are two problems, not one). The flow climbs E. arXiv:2601.21366.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special as sp

from attnflow.errors import InvalidInput

Activation = Literal["relu", "gelu", "tanh"]
Model = Literal["USA0", "USA"]
Map = Callable[[np.ndarray], np.ndarray]
_LARGEST_USA_BETA = 700.0


class Landscape:
    """U(x) = sum_j weights_j s(directions_j . x + biases_j), directions of shape (m, d).

    s is the antiderivative of the activation: z_+^2/2 (relu), log cosh z (tanh), ((z^2-1) Phi(z) + z phi(z))/2 (gelu;
    Phi and phi the normal distribution and density), which vanishes at minus infinity as relu's does. arXiv:2601.21366.
    """

    def __init__(self, directions: ArrayLike, biases: ArrayLike, weights: ArrayLike, activation: Activation = "relu"):
        parts = (np.asarray(part, dtype=np.float64) for part in (directions, biases, weights))
        self.directions, self.biases, self.weights = parts
        self.activation = activation
        for name in ("directions", "biases", "weights"):
            if not np.isfinite(value := getattr(self, name)).all():
                raise InvalidInput(f"{name} is {value!r}; every entry must be finite.")
        shapes = a, b, omega = (self.directions.shape, self.biases.shape, self.weights.shape)
        if len(a) != 2 or b != a[:1] or omega != a[:1]:
            raise InvalidInput(
                f"directions, biases, weights have shapes {shapes!r}; they must be (m, d), (m,) and (m,)."
            )
        if activation not in _ACTIVATIONS:
            raise InvalidInput(f"activation is {activation!r}; it must be 'relu', 'gelu' or 'tanh'.")

    def potential(self, x: ArrayLike) -> np.ndarray:
        """U at points of shape (..., d)."""
        return np.asarray(_ACTIVATIONS[self.activation][0](self.arguments(x)) @ self.weights)

    def gradient(self, x: ArrayLike) -> np.ndarray:
        """The gradient of U in R^d (not projected): sum_j weights_j sigma(directions_j . x + biases_j) directions_j."""
        return np.asarray((_ACTIVATIONS[self.activation][1](self.arguments(x)) * self.weights) @ self.directions)

    def arguments(self, x: ArrayLike) -> np.ndarray:
        """directions_j . x + biases_j, shape (..., m)."""
        points, a = np.asarray(x, dtype=np.float64), self.directions
        if points.ndim < 1 or points.shape[-1] != a.shape[1]:
            raise InvalidInput(f"x has shape {points.shape}; its last axis must be that of directions, {a.shape[1]}.")
        if not np.isfinite(points).all():
            raise InvalidInput(f"x is {x!r}; every entry must be finite.")
        return np.asarray(points @ a.T + self.biases)


def perceptron_energy(
    positions: ArrayLike,
    masses: ArrayLike,
    beta: float,
    *,
    landscape: Landscape,
    model: Model = "USA0",
) -> float:
    """E = (1/2 beta) sum_ij m_i m_j k(x_i, x_j) + sum_i m_i U(x_i): unit vectors (n, d), masses of sum 1, beta > 0."""
    points, mass = _measure(positions, masses)
    pair = kernel_factor(beta, model) * (mass @ _kernel0(points, points, beta) @ mass)
    return float(pair / (2 * beta) + mass @ landscape.potential(points))


def first_variation(
    x: ArrayLike,
    positions: ArrayLike,
    masses: ArrayLike,
    *,
    beta: float,
    landscape: Landscape,
    model: Model = "USA0",
) -> np.ndarray:
    """Phi(x) = (1/beta) sum_j m_j k(x, x_j) + U(x) at unit vectors x (..., d): the price of mass at x."""
    points, mass = _measure(positions, masses)
    where = _unit(x, "x")
    convolved = kernel_factor(beta, model) * (_kernel0(where, points, beta) @ mass)
    return np.asarray(convolved / beta + landscape.potential(where))


def critical_residuals(
    positions: ArrayLike,
    masses: ArrayLike,
    beta: float,
    *,
    landscape: Landscape,
    model: Model = "USA0",
) -> np.ndarray:
    """|P_x grad Phi| at each atom, the speed of the ascent flow there: all zero exactly at a critical measure."""
    points, mass = _measure(positions, masses)
    factor = kernel_factor(beta, model)
    field = factor * (_kernel0(points, points, beta) * mass) @ points
    field = field + landscape.gradient(points)
    return np.asarray(np.linalg.norm(_tangent(points, field), axis=-1))


def dirac_bound(beta: ArrayLike, max_potential: ArrayLike, *, model: Model = "USA0") -> np.ndarray:
    """The largest energy: 1/(2 beta) + max U (USA: e^beta/(2 beta) + max U), reached exactly by Diracs at argmax U."""
    factor = kernel_factor(beta, model)
    return np.asarray(factor / (2 * np.asarray(beta, dtype=np.float64)) + np.asarray(max_potential, dtype=np.float64))


@dataclass(frozen=True)
class DiracStability:
    """Whether a Dirac is critical, stable against splitting and against translation, and the numbers that decide it."""

    critical: bool
    against_splitting: bool
    against_translation: bool
    residual: float
    hessian_eigenvalues: np.ndarray


def dirac_stability(
    x0: ArrayLike,
    beta: float,
    landscape: Landscape,
    *,
    model: Model = "USA0",
    tol: float = 1e-9,
) -> DiracStability:
    """The second variation of E at delta_{x0} on S^{d-1}.

    Critical when P grad U(x0) = 0; stable against splitting when Hess_S U < 1 (USA: e^beta), because pulling apart
    by v costs |v|^2/2 of attraction; stable against translation when Hess_S U <= 0. The Hessian on the sphere is
    Hess_S U = P (hess U) P - <x0, grad U> P.
    `tol` separates zero from non-zero. Relu has no Hessian where some a_j . x0 + b_j = 0: that is refused.
    """
    kernel_factor(beta, "USA0")
    _check_model(model)
    limit = float(beta) if model == "USA" else 0.0  # logarithm of the threshold, so that beta may be large
    point = _unit(x0, "x0")
    if point.ndim != 1:
        raise InvalidInput(f"x0 has shape {point.shape!r}; it must be one point.")
    z = landscape.arguments(point)
    if landscape.activation == "relu" and (np.abs(z) < 1e-12).any():
        raise InvalidInput(f"x0 is {x0!r}; relu has a kink there (some a_j . x0 + b_j = 0), so U has no Hessian.")
    gradient = landscape.gradient(point)
    frame = np.linalg.svd(point[None])[2][1:]  # an orthonormal basis of the tangent space
    along, slope = frame @ landscape.directions.T, _ACTIVATIONS[landscape.activation][2](z)
    hessian = (along * (landscape.weights * slope)) @ along.T - (point @ gradient) * np.eye(len(frame))
    eigenvalues = np.linalg.eigvalsh(hessian)
    residual = float(np.linalg.norm(frame @ gradient))
    top = eigenvalues[-1]
    return DiracStability(
        critical=residual <= tol,
        against_splitting=bool(top <= 0 or np.log(top) < limit),
        against_translation=bool(top <= tol),
        residual=residual,
        hessian_eigenvalues=eigenvalues,
    )


def kernel_factor(beta: ArrayLike, model: Model) -> np.ndarray:
    """The factor of e^{beta (<x, y> - 1)} in k: 1 (USA0) or e^beta (USA, refused where it leaves float range)."""
    values = np.asarray(beta, dtype=np.float64)
    _check_model(model)
    if not np.isfinite(values).all() or (values <= 0).any():
        raise InvalidInput(f"beta is {beta!r}; it must be finite and positive.")
    if model == "USA0":
        return np.ones_like(values)
    if (values > _LARGEST_USA_BETA).any():
        raise InvalidInput(f"beta is {beta!r}; the model 'USA' needs beta <= {_LARGEST_USA_BETA:.0f}, use 'USA0'.")
    return np.asarray(np.exp(values))


def _check_model(model: str) -> None:
    if model not in ("USA0", "USA"):
        raise InvalidInput(f"model is {model!r}; use 'USA0' or 'USA', the models that follow this energy.")


def _kernel0(x: np.ndarray, y: np.ndarray, beta: float) -> np.ndarray:
    return np.asarray(np.exp(beta * (np.minimum(x @ y.T, 1.0) - 1)))


def _tangent(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(v - np.sum(x * v, axis=-1, keepdims=True) * x)


def _log_cosh(z: np.ndarray) -> np.ndarray:
    size = np.abs(z)
    near = np.log1p(2 * np.sinh(np.minimum(size, 1.0) / 2) ** 2)  # does not cancel near 0
    return np.where(size < 1, near, size + np.log1p(np.exp(-2 * size)) - np.log(2))


def _normal(z: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))


# antiderivative, activation, slope
_ACTIVATIONS: dict[str, tuple[Map, Map, Map]] = {
    "relu": (lambda z: np.maximum(z, 0) ** 2 / 2, lambda z: np.maximum(z, 0), lambda z: np.where(z > 0, 1.0, 0.0)),
    "tanh": (_log_cosh, np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "gelu": (
        lambda z: ((z**2 - 1) * sp.ndtr(z) + z * _normal(z)) / 2,
        lambda z: z * sp.ndtr(z),
        lambda z: sp.ndtr(z) + z * _normal(z),
    ),
}


def _unit(x: ArrayLike, name: str) -> np.ndarray:
    points = np.asarray(x, dtype=np.float64)
    length = np.linalg.norm(points, axis=-1, keepdims=True) if points.ndim else np.zeros(1)
    if not (np.abs(length - 1) <= 1e-6).all():
        raise InvalidInput(f"{name} is {x!r}; every point must be a unit vector.")
    return np.asarray(points / length)


def _measure(positions: ArrayLike, masses: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    points, mass = _unit(positions, "positions"), np.asarray(masses, dtype=np.float64)
    if points.ndim != 2 or mass.shape != points.shape[:1]:
        raise InvalidInput(f"positions and masses have shapes {points.shape}, {mass.shape}; they must be (n, d), (n,).")
    if not ((mass >= 0).all() and abs(mass.sum() - 1) <= 1e-9):
        raise InvalidInput(f"masses is {masses!r}; it must be non-negative with sum 1.")
    return points, mass
