"""Distances between tokens and a density: W_1 and W_2 on the circle, and by smooth observables on any sphere."""

from typing import Any

import numpy as np

from attnflow.checks import instance, whole
from attnflow.errors import InvalidInput
from attnflow.meanfield.harmonics.basis import AbstractBasis, CircleBasis, circle_spectrum
from attnflow.meanfield.harmonics.densities import empirical
from attnflow.meanfield.harmonics.density import Density
from attnflow.special.formula import Integers, Other, formula
from attnflow.special.roots import root
from attnflow.tokens import Tokens
from attnflow.transport.circle import squared_distance_to_quantiles

GRID = 2**14
"""Angles at which a distribution function is tabulated."""


def circle_distance(tokens: Tokens, density: Density, order: int, *, grid: int = GRID) -> float:
    """W_1 or W_2 between the tokens' measure and the density on the circle, for the distance of angles.

    W_1 = min_c of the integral of |D - c| over the angle, D = F_tokens - F_density, c a median of D. D is read at all
    tokens and at `grid` equispaced angles and taken as linear between; the result is off by at most
    `quadrature_error(density, grid)`, and by rounding. W_2 takes the quantile function of a density that is nowhere
    negative, by its distribution function at the same angles, linear between: no mass is off by more than 2 pi/grid,
    so that W_2 is off by at most that.
    """
    basis = circle_of(density)
    on_circle(tokens, basis, grid)
    angles, masses = basis.variable(tokens.positions), np.asarray(tokens.masses)
    if order == 1:
        return distance_to_series(angles, masses, density.coefficients, grid)
    levels = _primitive(circle_spectrum(np.asarray(density.coefficients)) / (2 * np.pi), grid)[1]
    if np.any(np.diff(levels) < 0):
        raise InvalidInput("the density is negative somewhere; W_2 needs a positive one, W_1 does not (`order=1`).")
    levels = (levels - levels[0]) / (levels[-1] - levels[0])
    nodes = 2 * np.pi / grid * np.arange(grid + 1)
    return float(np.sqrt(squared_distance_to_quantiles(angles, masses, levels, nodes)))


@formula(density=Other("a density on a CircleBasis"), grid=Integers(2, scalar=True), relative=1e-14)
def quadrature_error(density: Density, grid: int = GRID) -> float:
    """How far W_1 of tokens from a density may be off: h^2 sup|rho'|/12 + h^4 sup|rho'''|/384 with h = 2 pi/grid.

    The first is the integral of |D - its linear interpolant|, D the difference of the distribution functions, pieces
    being no longer than h; the second comes with the values at tokens, by Hermite's cubic from the grid. The suprema
    are bounded by sum_k k s_k and sum_k k^3 s_k, s_k = (2 (c_k^2 + c'_k^2))^{1/2} of the coefficients c_k, c'_k of
    cosine and sine. The minimum over c moves by no more than the integrals do. Derived here.

    Arguments:
        density: the density, on the circle.
        grid: number of angles at which its distribution function is tabulated.
    """
    basis, h = circle_of(density), 2 * np.pi / grid
    k, sizes = np.arange(1.0, basis.degree + 1), np.abs(circle_spectrum(np.asarray(density.coefficients)))
    return float(h**2 / 12 * np.sum(k * sizes) + h**4 / 384 * np.sum(k**3 * sizes))


@formula(
    tokens=Other("one system of unit vectors"),
    density=Other(
        "a density on a CircleBasis, SphereBasis or ZonalBasis, of harmonics up to 1000 in size; the error grows with "
        "`basis.sensitivity`"
    ),
    degree=Integers(1, 1000, scalar=True),
    absolute=1e-11,
)
def observable_distance(tokens: Tokens, density: Density, degree: int) -> float:
    """The root of sum |c - c'|^2/(k (k+d-2)) over the harmonics of degree 1 to `degree`: tokens against density.

    A negative Sobolev norm cut after `degree`: a distance by smooth observables, which is of order n^(-1/2) for iid
    tokens on every sphere, where W_1 is not (sqrt(log n / n) on S^2). On a `ZonalBasis` zonal observables alone.

    Arguments:
        tokens: unit vectors with masses.
        density: the density, whose harmonics beyond its basis are 0.
        degree: last degree of the observables.
    """
    instance("density", density, Density, "a Density, as uniform(basis) is one")
    basis = density.basis.refined(degree)
    difference = empirical(basis, tokens) - np.asarray(density.basis.resized(density.coefficients, degree))
    return float(np.sqrt(np.sum(sobolev_shares(basis) * difference**2)))


def distance_to_series(angles: np.ndarray, masses: np.ndarray, coefficients: Any, grid: int) -> float:
    """min_c of the integral of |F_tokens - F - c|, F the primitive of the series, which need not be positive."""
    spectrum = circle_spectrum(np.asarray(coefficients)) / (2 * np.pi)
    h, (nodes, level, slope) = 2 * np.pi / grid, _primitive(spectrum, grid)
    order = np.argsort(angles := np.mod(angles, 2 * np.pi))
    theta = angles[order]
    cell = np.minimum((theta / h).astype(int), grid - 1)
    u = theta / h - cell
    at = level[cell] + u**2 * (3 - 2 * u) * (level[cell + 1] - level[cell])
    at += h * u * (1 - u) * ((1 - u) * slope[cell] - u * slope[cell + 1])
    # pieces from each node or token to the next
    place = np.searchsorted(theta, nodes[:-1])
    ends = np.insert(theta, place, nodes[:-1])
    below = np.insert(np.cumsum(masses[order]), place, np.concatenate([[0.0], np.cumsum(masses[order])])[place])
    values = np.insert(at, place, level[:-1])
    left, right = below - values, below - np.append(values[1:], level[-1])
    lengths = np.diff(ends, append=2 * np.pi)
    low, high = np.minimum(left, right), np.maximum(left, right)
    width = np.maximum(high - low, np.finfo(np.float64).tiny)

    def excess(c: float) -> float:
        return float(np.sum(lengths * np.clip((c - low) / width, 0.0, 1.0))) - np.pi

    c = float(root(excess, np.min(low), np.max(high)))  # from -pi to pi
    left, right = np.abs(left - c), np.abs(right - c)
    same = (low - c) * (high - c) >= 0
    crossed = (left**2 + right**2) / np.maximum(left + right, np.finfo(np.float64).tiny)
    return float(np.sum(lengths * np.where(same, left + right, crossed)) / 2)


def _primitive(spectrum: np.ndarray, grid: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`grid` + 1 equispaced angles, and the primitive of a series with the mean 1/(2 pi) there, and the series."""
    nodes, k = 2 * np.pi / grid * np.arange(grid + 1), np.arange(1, len(spectrum) + 1)

    def on_grid(g: np.ndarray) -> np.ndarray:
        padded = np.zeros(grid // 2 + 1, dtype=np.complex128)
        padded[k] = g * (grid / 2)
        values = np.fft.irfft(padded, grid)
        return np.append(values, values[0])

    return nodes, nodes / (2 * np.pi) + on_grid(spectrum / (1j * k)), 1 / (2 * np.pi) + on_grid(spectrum)


def sobolev_shares(basis: AbstractBasis) -> np.ndarray:
    """1/(k (k+d-2)), 0 at degree 0 and where there is no coefficient."""
    return np.where(basis.mask & (basis.degrees > 0), 1 / np.maximum(-basis.laplacian, 1.0), 0.0)


def on_circle(tokens: Tokens, basis: CircleBasis, grid: int) -> None:
    """Refuse what is no single system on the circle, and too coarse a grid."""
    instance("tokens", tokens, Tokens, "Tokens on the circle")
    if tokens.dims or tokens.dim != 2:
        raise InvalidInput(f"`tokens` has positions of shape {tokens.positions.shape}; give one system on the circle.")
    if whole("grid", grid, 2) <= 2 * basis.degree:
        raise InvalidInput(f"`grid` is {grid}; give more than {2 * basis.degree}, twice the degree of the density.")


def circle_of(density: Density) -> CircleBasis:
    """The basis of a density on the circle, or a refusal."""
    instance("density", density, Density, "a Density, as uniform(basis) is one")
    if not isinstance(density.basis, CircleBasis):
        raise InvalidInput(
            f"`density` has a {type(density.basis).__name__}; distances are computed on the circle, so give a "
            "CircleBasis, or use `observable_distance`."
        )
    return density.basis
