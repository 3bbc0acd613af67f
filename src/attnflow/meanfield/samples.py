"""Tokens from a density: independent, quiet, or on the grid."""

import numpy as np

from attnflow.checks import generator, instance, number, whole
from attnflow.errors import InvalidInput
from attnflow.meanfield.harmonics.basis import CircleBasis, ZonalBasis, chunks, circle_spectrum
from attnflow.meanfield.harmonics.density import Density
from attnflow.meanfield.harmonics.quantiles import circle_quantiles, polar_quantiles
from attnflow.meanfield.harmonics.sphere_basis import SphereBasis
from attnflow.meanfield.places.placed import PlacedDensity
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

GOLDEN = (np.sqrt(5) - 1) / 2


def sample(density: Density | PlacedDensity, n: int, seed: int = 0) -> Tokens:
    """`n` iid tokens of this density, exactly, by inverse distribution functions (longitude given latitude on S^2).

    Of a `PlacedDensity` on the circle: independent tokens at the places (i - 1/2)/n, in this order.
    """
    if isinstance(density, PlacedDensity):
        return _prompt(density, generator(seed).random(whole("n", n, 1)))
    _checked(density)
    rng = generator(seed)
    levels = rng.random((whole("n", n, 1), 2))
    around = rng.standard_normal((n, density.basis.dim - 1))
    return Tokens(_placed(density, levels, around), space=Sphere(density.basis.dim))


def quiet(density: Density | PlacedDensity, n: int, seed: int | None = None, *, shift: float | None = None) -> Tokens:
    """`n` tokens of equal mass, spread evenly over this density: errors near 1/n instead of 1/sqrt(n).

    The circle: the quantiles of (i + 1/2)/n. S^2: the golden lattice ((i + 1/2)/n, i golden) through the conditional
    distribution functions. Zonal densities: those quantiles of <x, e>, with the two sides of the circle, golden turns
    (d = 3) or Sobol' directions about the axis. A `seed` shifts the lattice at random.

    A `PlacedDensity` on the circle: the token at the place (i - 1/2)/n, i = 1, ..., n, is the quantile {i golden +
    shift} of its density, so that every prefix is spread evenly (ours). A `seed` gives a random `shift`, which is 0
    otherwise. A single start has no error bar; the spread over several shifts is one.
    """
    if isinstance(density, PlacedDensity):
        start = (0.0 if seed is None else generator(seed).random()) if shift is None else number("shift", shift)
        return _prompt(density, np.mod(np.arange(1, whole("n", n, 1) + 1) * GOLDEN + start, 1.0))
    if shift is not None:
        raise InvalidInput("`shift` is given for a density without places; a `seed` shifts its lattice.")
    d = _checked(density).basis.dim
    i = np.arange(whole("n", n, 1))
    moved = np.zeros(2) if seed is None else generator(seed).random(2) - [0.5, 0.0]
    levels = np.stack([np.mod((i + 0.5 + moved[0]) / n, 1.0), np.mod(i * GOLDEN + moved[1], 1.0)], axis=1)
    if d > 3:
        return Tokens(_placed(density, levels, _sobol(n, d - 1, seed)), space=Sphere(d))
    if d == 3:
        around = np.stack([np.cos(2 * np.pi * levels[:, 1]), np.sin(2 * np.pi * levels[:, 1])], axis=1)
        return Tokens(_placed(density, levels, around), space=Sphere(d))
    if isinstance(density.basis, ZonalBasis):  # once around the circle, both halves alike
        side = 2 * levels[:, :1] - 1
        return Tokens(_placed(density, np.abs(side), np.where(side < 0, -1.0, 1.0)), space=Sphere(d))
    return Tokens(_placed(density, levels, np.ones((n, 1))), space=Sphere(d))


def quadrature(density: Density, *, copies: int = 1, seed: int = 0) -> Tokens:
    """The grid of the basis as tokens, with masses weight times rho: the density itself, up to its last degrees.

    A zonal grid point s becomes a set of directions about the axis: both mirror points (d = 2), 4 `copies` points of a
    ring (d = 3), or `copies` randomly turned cross-polytopes of 2 (d - 1) points, each exact for polynomials of degree
    3 on its sphere of latitude. Values below 0 within the tolerance of the density give mass 0.
    """
    basis = _checked(density).basis
    masses = np.maximum(basis.weights * np.asarray(density.values), 0.0)
    if isinstance(basis, CircleBasis):
        theta = basis.points()
        return Tokens(np.stack([np.cos(theta), np.sin(theta)], axis=1), masses, space=Sphere(2))
    if isinstance(basis, SphereBasis):
        return Tokens(basis.points().reshape(-1, 3), masses.reshape(-1), space=Sphere(3))
    if not isinstance(basis, ZonalBasis):
        raise InvalidInput(f"`density` has the basis {type(basis).__name__}, whose grid is not known here.")
    return belts(np.arccos(basis.points()), masses, basis.dim, whole("copies", copies, 1), seed)


def belts(polar: np.ndarray, masses: np.ndarray, dim: int, copies: int, seed: int) -> Tokens:
    """Tokens at the angles `polar` to the axis, each mass shared by directions about it (see `quadrature`)."""
    around = _directions(len(polar), dim, copies, seed)
    each = around.shape[1]
    x = _about_axis(np.repeat(polar, each), around.reshape(-1, dim - 1))
    return Tokens(x, np.repeat(masses / each, each), space=Sphere(dim))


def _checked(density: Density) -> Density:
    return instance("density", density, Density, "a Density, as uniform(basis) is one, or a PlacedDensity")


def _prompt(density: PlacedDensity, levels: np.ndarray) -> Tokens:
    """Tokens at the places (i - 1/2)/n of the circle, each at its level of the distribution function there."""
    if not isinstance(density.basis, CircleBasis):
        raise InvalidInput(
            f"`density` has places and the basis {type(density.basis).__name__}; tokens with places are made on the "
            "circle alone, with CircleBasis."
        )
    n, coefficients = len(levels), np.asarray(density.coefficients)
    place, theta = (np.arange(n) + 0.5) / n, np.empty(n)
    for part in chunks(n, 8 * coefficients.shape[1]):
        rows = density.places.at(coefficients, place[part]).T
        theta[part] = circle_quantiles(rows[0], circle_spectrum(rows), levels[part])
    return Tokens(np.stack([np.cos(theta), np.sin(theta)], axis=1), space=Sphere(2), place=place)


def _placed(density: Density, levels: np.ndarray, around: np.ndarray) -> np.ndarray:
    """Points of the density at given levels in (0, 1)^2, with the directions `around` the axis for zonal densities."""
    basis, c = density.basis, np.asarray(density.coefficients)
    if isinstance(basis, CircleBasis):
        theta = circle_quantiles(c[:1], circle_spectrum(c)[:, None], levels[:, 0])
        return np.stack([np.cos(theta), np.sin(theta)], axis=1)
    if isinstance(basis, ZonalBasis):
        return _about_axis(polar_quantiles(basis.dim, c, levels[:, 0]), around)
    if not isinstance(basis, SphereBasis):
        raise InvalidInput(f"`density` has the basis {type(basis).__name__}, which cannot be sampled.")
    polar = polar_quantiles(3, c[0, 0], levels[:, 0])
    x = np.empty((len(polar), 3))
    for part in chunks(len(polar), 8 * basis.degree):
        waves = basis.along(c, np.cos(polar[part]))
        phi = circle_quantiles(waves[0, 0], waves[0, 1:] - 1j * waves[1, 1:], levels[part, 1])
        x[part] = _about_axis(polar[part], np.stack([np.cos(phi), np.sin(phi)], axis=1))
    return x


def _about_axis(polar: np.ndarray, around: np.ndarray) -> np.ndarray:
    """Points at angles `polar` to the last basis vector, in the directions `around` it."""
    around = around / np.linalg.norm(around, axis=1, keepdims=True)
    return np.concatenate([np.sin(polar)[:, None] * around, np.cos(polar)[:, None]], axis=1)


def _sobol(n: int, dim: int, seed: int | None) -> np.ndarray:
    """`n` vectors with directions spread evenly over the sphere of R^dim."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    power = (n - 1).bit_length()
    shift = np.full(dim, 0.5 / 2**power) if seed is None else generator(seed).random(dim)
    points = np.mod(qmc.Sobol(dim, scramble=False).random_base2(power)[:n] + shift, 1.0)
    return ndtri(np.clip(points, 1e-12, 1 - 1e-12))


def _directions(count: int, dim: int, copies: int, seed: int) -> np.ndarray:
    """(count, points, dim - 1): directions about the axis for every one of `count` latitudes."""
    if dim == 2:
        return np.broadcast_to(np.array([[-1.0], [1.0]]), (count, 2, 1))
    if dim == 3:
        turns = np.mod(np.arange(count) * GOLDEN, 1.0)[:, None] + np.arange(4 * copies)
        phi = 2 * np.pi * turns / (4 * copies)
        return np.stack([np.cos(phi), np.sin(phi)], axis=-1)
    frames = np.linalg.qr(generator(seed).standard_normal((count, copies, dim - 1, dim - 1)))[0]
    return np.concatenate([frames, -frames], axis=2).reshape(count, 2 * copies * (dim - 1), dim - 1)
