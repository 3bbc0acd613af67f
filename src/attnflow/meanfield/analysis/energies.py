"""The free energy of a density, its parts each to rounding: pairs by degrees, entropy and potentials adaptively."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.special import xlogy

from attnflow.checks import instance
from attnflow.errors import NotAccurate
from attnflow.fields import AbstractField
from attnflow.fields.perceptron import Potential
from attnflow.meanfield.harmonics.basis import AbstractBasis, CircleBasis, ZonalBasis
from attnflow.meanfield.harmonics.density import Density
from attnflow.meanfield.harmonics.model import Model, as_model, grid_positions, raise_unless_pointwise
from attnflow.meanfield.harmonics.orthogonal import gauss
from attnflow.precision import in_float64
from attnflow.special.degrees import degree_weights, multiplicity_ratios
from attnflow.special.formula import Other, Reals, formula
from attnflow.special.integrals import integral

INTEGRAL = 1e-12
"""Relative accuracy of integrals of the entropy and of potentials."""
BLOCK = 4096
"""Points at which potentials are evaluated at a time: code is compiled for one shape."""
FINEST = {False: 512, True: 2**16}
"""Half the angles of the finest grid for integrals over S^2, and over the circle (True)."""


@formula(
    field=Other("`Attention(beta)` with Q = K = V = I, softmax or unnormalised, perhaps plus potentials"),
    density=Other("a density on a CircleBasis, SphereBasis or ZonalBasis"),
    kappa=Reals(0.0, scalar=True),
    relative=1e-11,
    absolute=1e-11,
)
def free_energy(field: AbstractField, density: Density, kappa: float) -> float:
    """F = E - kappa S: E = (1/2 beta) int int (K - 1) dmu dmu + int U dmu, K = e^(beta (<x, y> - 1)), U potentials.

    S = int rho log rho, where rho is not negative. Noisy unnormalised attention ascends F, on the clocks USA and grad
    with the pairs of E times the clock's factor. The pairs are summed by degrees; S and the potentials are integrated
    adaptively, on S^2 on grids that are doubled until two agree.

    Arguments:
        field: the field, whose potentials U count as well.
        density: the density.
        kappa: strength of the noise.

    Raises:
        NotAccurate: if the integrals do not settle, which takes potentials with kinks or, on S^2, a density that
            touches 0; or if the parts of F cancel.
    """
    instance("density", density, Density, "a Density, as uniform(basis) is one")
    model = as_model(field, kappa)
    raise_unless_pointwise(density.basis, model.potentials)
    pairs = float(model.clock_factor) * pair_energy(float(model.beta), density)
    external, largest = _external_energy(model, density) if model.potentials else (0.0, 0.0)
    disorder = kappa * _entropy(density)
    energy = pairs + external - disorder
    if not INTEGRAL * (abs(pairs) + largest + abs(disorder)) <= 1e-11 * (1 + abs(energy)):
        raise NotAccurate(
            f"parts of the free energy of sizes up to {max(abs(pairs), largest, abs(disorder)):.2g} cancel."
        )
    return energy


def pair_energy(beta: float, density: Density) -> float:
    """(1/2 beta) int int (e^(beta (<x, y> - 1)) - 1) dmu dmu, by terms of one sign.

    sum_k (p_k/2 beta) (q_k - 1) over degrees k >= 1, p_k the weights of the kernel, which sum to 1, and q_k the mean of
    P_k(<x, y>): the sum of squares of the coefficients of degree k over their number N(k, d).
    """
    basis, c = density.basis, np.asarray(density.coefficients, np.float64)
    strengths = degree_weights(beta, basis.dim)[1:] / beta if beta > 0 else np.ones(1)
    squares = np.bincount(basis.degrees.reshape(-1), c.reshape(-1) ** 2)
    counts = np.cumsum(np.log(multiplicity_ratios(basis.dim, basis.degree)))
    means = np.zeros(max(len(strengths), basis.degree))
    means[: basis.degree] = squares[1:] * np.exp(-counts)
    return float(np.sum(strengths * (means[: len(strengths)] - squares[0]))) / 2


def _entropy(density: Density) -> float:
    """int rho log rho, as the integral of rho log rho - rho + 1 >= 0."""
    basis, c = density.basis, np.array(density.coefficients, np.float64)
    mass = float(c.reshape(-1)[0])
    c.reshape(-1)[0] -= 1.0  # what is left is rho - 1, with all its digits

    def excess(change: np.ndarray) -> np.ndarray:
        """rho log rho - rho + 1, by its series for small changes."""
        clipped = np.clip(change, -0.1, 0.1)
        series = sum((-clipped) ** k / (k * (k - 1)) for k in range(2, 18))
        rho = np.maximum(1 + change, 0.0)
        return np.where(np.abs(change) < 0.1, series, xlogy(rho, rho) - change)

    if isinstance(basis, CircleBasis | ZonalBasis):
        return _adaptive_mean(basis, lambda **point: excess(basis.evaluate(c, **point))) + mass - 1
    return _mean_on_grids(basis, lambda x: excess(basis.evaluate(c, x))) + mass - 1


def _external_energy(model: Model, density: Density) -> tuple[float, float]:
    """int U dmu, and the largest |U| on the grid of the density."""
    basis, c = density.basis, np.asarray(density.coefficients, np.float64)

    def potential(x: np.ndarray) -> np.ndarray:
        rows = x.reshape(-1, basis.dim)
        padded = np.concatenate([rows, np.repeat(rows[:1], -len(rows) % BLOCK, axis=0)])
        heights = [np.asarray(_potential(model.potentials, block)) for block in np.split(padded, len(padded) // BLOCK)]
        return np.concatenate(heights)[: len(rows)].reshape(x.shape[:-1])

    largest = float(np.max(np.abs(potential(np.asarray(in_float64(grid_positions)(basis))))))
    if largest == 0:
        return 0.0, 0.0

    def masses(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum(basis.evaluate(c, x), 0.0))

    shifted = _mean_on_grids(basis, lambda x: (2 * largest + potential(x)) * masses(x))  # a mean that is not near 0
    return shifted - 2 * largest * _mean_on_grids(basis, masses), largest


@in_float64
@eqx.filter_jit
def _potential(potentials: tuple[Potential, ...], x: Any) -> Any:
    """The sum of the potentials at unit vectors."""
    return sum((part.potential(x) for part in potentials), jnp.zeros(()))


def _adaptive_mean(basis: CircleBasis | ZonalBasis, function: Callable[..., np.ndarray]) -> float:
    """The mean over the uniform measure of a function of the variable of the basis that is not negative."""
    if isinstance(basis, CircleBasis):
        total = integral(lambda theta: function(angles=theta), 0.0, 2 * np.pi, points=basis.points(), rtol=INTEGRAL / 2)
        return float(total) / (2 * np.pi)
    power, nodes = basis.dim - 2, np.arccos(basis.nodes)

    def weight(theta: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.exp(power / 2 * np.log1p(-(np.cos(theta) ** 2))) if power else np.ones_like(theta)

    def weighted(theta: np.ndarray) -> np.ndarray:
        return weight(theta) * function(heights=np.cos(theta))

    total = integral(weighted, 0.0, np.pi, points=nodes, rtol=INTEGRAL / 2)
    return float(total / integral(weight, 0.0, np.pi, points=nodes))


def _mean_on_grids(basis: AbstractBasis, function: Callable[[np.ndarray], np.ndarray]) -> float:
    """The mean of a function of unit vectors, not negative, on grids that are doubled until two agree to `INTEGRAL`."""
    on_circle, count, mean = isinstance(basis, CircleBasis), basis.grid, np.inf
    while count <= max(FINEST[on_circle], 2 * basis.grid):
        turns = np.pi / count * np.arange(2 * count)
        x, weights = np.stack([np.cos(turns), np.sin(turns)], axis=-1)[None], np.ones(1)
        if not on_circle:
            heights, weights = gauss(3, count)
            radii = np.sqrt((1 - heights) * (1 + heights))[:, None, None]
            x = np.concatenate([radii * x, np.broadcast_to(heights[:, None, None], (count, 2 * count, 1))], axis=-1)
        before, mean = mean, float(weights @ np.mean(function(x), axis=1))
        if abs(mean - before) <= INTEGRAL * abs(mean):
            return mean
        count *= 2
    raise NotAccurate(f"an integral is not accurate to {INTEGRAL:.1g} on a grid of {count} angles.")
