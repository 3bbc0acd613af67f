"""Cells of the circle, and of the polar angle for zonal measures on S^{d-1}, with the attention kernel between them.

A measure is given by the masses of the cells, which sum to 1. Nothing here divides by the uniform measure of a cell:
near the poles of S^{d-1} it is below float range for large d, while its ratios between neighbours are not.
"""

import math
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special as sp

from attnflow.checks import instance, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import length
from attnflow.fields import AbstractField
from attnflow.meanfield.cells.nodes import PHASE, log_sine, nodes_in, parts
from attnflow.meanfield.harmonics.basis import CircleBasis, ZonalBasis
from attnflow.meanfield.harmonics.density import Density
from attnflow.meanfield.harmonics.model import as_model
from attnflow.meanfield.samples import belts
from attnflow.spaces import Sphere
from attnflow.special import log_scaled_bessel
from attnflow.special.degrees import DIMENSION
from attnflow.special.formula import Integers, Other, formula
from attnflow.tokens import Tokens

CELL = 16
"""Numbers that are stored for a cell, at least."""
COUNT = Integers(8, scalar=True)
TOLERANCE = 1e-8
"""How far from 1 the masses may sum."""
FLOOR = 1e-12
"""K * mu below this is lost in the rounding of a Fourier transform, and counts as this."""


class Cells(eqx.Module):
    """`count` cells of equal width: made by `circle_cells(count)` or `zonal_cells(dim, count)`.

    `edges` are count + 1 angles, to the first axis from 0 to 2 pi on the circle, to the last axis e from 0 to pi for
    zonal measures. Zonal cells are the belts between two latitudes.
    """

    dim: int = eqx.field(static=True)
    count: int = eqx.field(static=True)
    zonal: bool = eqx.field(static=True)
    edges: Float[np.ndarray, " edge"]
    log_measure: Float[np.ndarray, " cell"]
    """Logarithm of the uniform probability of every cell."""
    log_area: Float[np.ndarray, " edge"]
    """Logarithm of the uniform probability per angle at every edge; -inf where no mass can pass."""
    centroids: Float[np.ndarray, " cell"]
    """The mean angle of the uniform measure in every cell."""

    @property
    def width(self) -> float:
        """The angle that a cell spans."""
        return (math.pi if self.zonal else 2 * math.pi) / self.count

    @property
    def centres(self) -> np.ndarray:
        """The angle in the middle of every cell."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def measure(self) -> np.ndarray:
        """The uniform probability of every cell: the masses of the uniform measure."""
        return np.exp(self.log_measure)

    def check(self, masses: ArrayLike) -> np.ndarray:
        """`masses` as float64, or a refusal."""
        try:
            found = np.array(masses, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"`masses` is {type(masses).__name__}; give numbers, as cells_from_density(cells, density) does."
            ) from None
        if found.shape != (self.count,):
            raise InvalidInput(f"`masses` has shape {found.shape}; give one mass per cell, shape ({self.count},).")
        if not np.isfinite(found).all():
            raise InvalidInput("`masses` holds a number that is not finite; check how they were made.")
        if (found < 0).any():
            i = int(np.argmin(found))
            raise InvalidInput(f"masses[{i}] is {found[i]:.3g}; the mass of a cell is not negative.")
        if abs(np.sum(found) - 1) > TOLERANCE:
            raise InvalidInput(f"`masses` sum to {np.sum(found):.10g}; divide them by that, so that they sum to 1.")
        return found

    def check_beta(self, beta: float) -> None:
        """Refuse cells wider than the kernel, beta^{-1/2}, or than the uniform measure of the angle, (d-2)^{-1/2}."""
        whole_angle, scale = self.width * self.count, math.sqrt(beta + self.dim - 2)
        needed = math.ceil(whole_angle * scale)
        if self.count < needed:
            raise InvalidInput(
                f"`cells` has {self.count} cells of width {self.width:.3g}, wider than the kernel of beta = {beta:g} "
                f"on S^{self.dim - 1}, {1 / scale:.3g}; use at least {needed}, and several times more for accuracy."
            )


@formula(count=COUNT, relative=1e-15)
def circle_cells(count: int) -> Cells:
    """`count` equal arcs of the circle, the first one from the angle 0.

    Arguments:
        count: number of cells.
    """
    length("count", count, COUNT.low, CELL)
    edges = 2 * np.pi * np.arange(count + 1) / count
    even = np.full(count, -math.log(count))
    return Cells(2, count, False, edges, even, np.full(count + 1, -math.log(2 * np.pi)), (edges[1:] + edges[:-1]) / 2)


@formula(dim=DIMENSION, count=COUNT, relative=1e-14, absolute="1e-15 * (10 + np.sqrt(dim))")
def zonal_cells(dim: int, count: int) -> Cells:
    """`count` belts of S^{dim-1} about the last axis, of equal width in the polar angle.

    The uniform measure of that angle has density proportional to sin^{dim-2}. Its share of a cell is a sum of positive
    terms within the cell, in logarithms: differences of incomplete Beta functions would cancel for large `dim`.

    Arguments:
        dim: dimension of the space around the sphere.
        count: number of cells, from the last axis to its opposite.
    """
    length("count", count, COUNT.low, CELL)
    log_sums, centroids = np.empty(count), np.empty(count)
    for part in parts(count):
        polar, is_beyond, shares, log_sums[part] = nodes_in(dim, count, part)
        centroids[part] = np.sum(shares * np.where(is_beyond, np.pi - polar, polar), axis=1)
    total = sp.logsumexp(log_sums)
    inner = np.arange(1, count)
    log_area = np.full(count + 1, -np.inf)
    log_area[1:-1] = (dim - 2) * log_sine(np.pi * np.minimum(inner, count - inner) / count) - total
    edges = np.pi * np.arange(count + 1) / count
    return Cells(dim, count, True, edges, log_sums - total, log_area, centroids)


@formula(
    cells=Other("cells of `circle_cells` or `zonal_cells`"),
    density=Other("a density on a CircleBasis, or on a ZonalBasis of the dimension of the cells"),
    relative=1e-13,
    absolute=1e-14,
)
def cells_from_density(cells: Cells, density: Density) -> np.ndarray:
    """The mass that `density` gives to every cell, its integral over the cell; rounding below 0 becomes 0, the sum 1.

    On the circle from the primitive of the Fourier series, otherwise by sums over nodes in every cell, as many as the
    degree of the density needs.

    Arguments:
        cells: the cells.
        density: a density on a `CircleBasis`, or on a `ZonalBasis` of the dimension of the cells.
    """
    instance("cells", cells, Cells, "circle_cells(count) or zonal_cells(dim, count)")
    basis = instance("density", density, Density, "a Density").basis
    if not isinstance(basis, ZonalBasis if cells.zonal else CircleBasis) or basis.dim != cells.dim:
        wanted = f"ZonalBasis({cells.dim}, ...)" if cells.zonal else "CircleBasis"
        raise InvalidInput(
            f"`density` has the basis {type(basis).__name__}, dim {basis.dim}; these cells need {wanted}."
        )
    if cells.zonal:
        mean = np.empty(cells.count)
        pieces = math.ceil(basis.degree * cells.width / (2 * PHASE))
        for part in parts(cells.count, pieces):
            polar, is_beyond, shares, _ = nodes_in(cells.dim, cells.count, part, pieces)
            heights = np.where(is_beyond, -np.cos(polar), np.cos(polar))
            # a share of 0 is one of a node beyond the cell, or of one where the density may leave the range of floats
            values = np.where(shares > 0, np.asarray(density(heights=heights)), 0.0)
            mean[part] = np.sum(shares * values, axis=1)
    else:  # the mean of e^{ik theta} over a cell is sinc times its value in the middle
        smooth = np.sinc(basis.degrees * cells.width / (2 * np.pi))
        mean = basis.evaluate(smooth * np.asarray(density.coefficients), angles=cells.centres)
    masses = cells.measure * np.maximum(mean, 0.0)
    return np.asarray(masses / np.sum(masses))


def hand_over(cells: Cells, masses: ArrayLike, *, copies: int = 1, seed: int = 0) -> Tokens:
    """The cells as tokens, which continue where the cells are too wide: one in the middle of each cell that has mass.

    A zonal cell becomes a set of directions about the axis, as in `quadrature`: both mirror points (d = 2), a ring of
    4 `copies` points (d = 3), or `copies` randomly turned cross-polytopes (how many: see `DensityFlow.hand_over`).
    """
    found = cells.check(masses)
    whole("copies", copies, 1)
    keep = found > 0
    theta, m = cells.centres[keep], found[keep]
    if not cells.zonal:
        return Tokens(np.stack([np.cos(theta), np.sin(theta)], axis=1), m, space=Sphere(2))
    return belts(theta, m, cells.dim, copies, seed)


class Kernel(eqx.Module):
    """K = e^{beta (<x,y> - 1)} between cells, or (K - 1)/beta where `direct` is false: a symmetric matrix.

    The circle has the transform of one row. A cell meets itself and its neighbours at one and the same value, the mean
    of K over the three: then the energy of a cluster that straddles two cells does not depend on its shares in them,
    and no barrier of the grid holds it, while K * mu changes by O(width^5) only where mu is smooth.
    """

    table: Float[np.ndarray, "..."]
    direct: np.ndarray
    bends: Float[np.ndarray, "..."]
    """The sizes of the mixed second differences of (K - 1)/beta between edges, over width^2, as a table."""
    curvature: np.ndarray
    """The largest of these sizes."""
    floor: np.ndarray


def kernel(cells: Cells, beta: float) -> Kernel:
    """The kernel of this beta, on the host.

    Averaged over rotations about the axis it is e^{beta (cos(s - t) - 1)} a_0(z) with z = beta sin s sin t and a_0 that
    of S^{d-2}: Gamma(n/2) (2/z)^{n/2-1} e^{-z} I_{n/2-1}(z), n = d-1. Zonal matrices are scaled on both sides by
    1 + O(width^2) so that the uniform measure stands still exactly, as it does on the circle by symmetry.
    """
    direct = beta > 1
    unit = cells.width**2 * (beta if direct else 1.0)
    if not cells.zonal:
        logs = -2 * np.sin(np.arange(cells.count) * cells.width / 2) ** 2
        row = np.exp(beta * logs) if direct else _expm1_over(logs, beta)
        row[[-1, 0, 1]] = np.mean(row[[-1, 0, 1]])
        sizes = np.abs(np.roll(row, 1) - 2 * row + np.roll(row, -1)) / unit
        table, bends, floor = np.fft.rfft(row).real, np.fft.rfft(sizes).real, FLOOR
    else:
        logs = _balanced(cells, _averaged(cells, beta), beta)
        table = np.exp(beta * logs) if direct else _expm1_over(logs, beta)
        sizes = np.pad(np.abs(np.diff(np.diff(table, axis=0), axis=1)), (0, 1)) / unit
        bends, floor = sizes, float(np.finfo(np.float64).tiny)
    return Kernel(table, np.asarray(direct), bends, np.asarray(np.max(sizes)), np.asarray(floor))


class Scheme(eqx.Module):
    """Numbers of the discrete equation on cells; edge i is between cells i and i + 1, the last one closes a circle.

    Reconstructed masses stand for densities times the measure of their own cell.
    """

    kernel: Kernel
    beta: np.ndarray
    kappa: np.ndarray
    clock_factor: np.ndarray
    softmax: np.ndarray
    external_potential: np.ndarray
    """The potential U in the middle of every cell."""
    width: np.ndarray
    gap: np.ndarray
    """Angle between the centroids on both sides of an edge."""
    right: np.ndarray
    """Area of edge i over the measure of cell i: what leaves it to the right at speed 1, per mass. 0 at the poles."""
    left: np.ndarray
    """Area of edge i over the measure of cell i + 1."""
    up: np.ndarray
    """Measure of cell i over that of cell i + 1."""
    down: np.ndarray
    """Measure of cell i + 1 over that of cell i."""
    ahead: np.ndarray
    """Angle from the centroid of a cell to its right edge."""
    behind: np.ndarray
    """Angle from the left edge of a cell to its centroid."""
    log_measure: np.ndarray


def make_scheme(field: AbstractField, cells: Cells, kappa: Any = 0.0) -> Scheme:
    """The discrete equation of a field on cells, on the host."""
    model = as_model(field, kappa)
    if np.ndim(model.beta) or not isinstance(model.beta, np.ndarray | np.generic | float) or np.ndim(model.kappa):
        raise InvalidInput("`field` or `kappa` is a batch or traced; cells take one number for beta and one for kappa.")
    field.check(Tokens(np.eye(cells.dim)[:1], space=Sphere(cells.dim)))
    beta = float(model.beta)
    cells.check_beta(beta)
    if cells.zonal and model.potentials:
        raise InvalidInput("`field` has a Potential, which is not zonal; use circle_cells.")
    x = np.stack([np.cos(cells.centres), np.sin(cells.centres)], axis=1)
    outer = sum((np.asarray(part.potential(x)) for part in model.potentials), np.zeros(cells.count))
    log_measure, area = cells.log_measure, cells.log_area[1:]
    following = np.roll(log_measure, -1)
    gap = np.roll(cells.centroids, -1) - cells.centroids
    gap[-1] = cells.width
    ratio = np.clip(log_measure - following, -690, 690)
    return Scheme(
        kernel(cells, beta),
        np.asarray(beta),
        np.asarray(float(model.kappa)),
        np.asarray(model.clock_factor, np.float64),
        np.asarray(model.softmax),
        outer,
        np.asarray(cells.width),
        gap,
        np.exp(area - log_measure),
        np.exp(area - following),
        np.exp(ratio),
        np.exp(-ratio),
        cells.edges[1:] - cells.centroids,
        cells.centroids - cells.edges[:-1],
        log_measure,
    )


def _averaged(cells: Cells, beta: float) -> np.ndarray:
    """log K / beta between the centres, averaged over rotations.

    On the diagonal two thirds of K between two points one width apart, next to it one third of K at distance 0, both
    about the same angle; across a pole too.
    """

    def logs(s: np.ndarray, t: np.ndarray) -> np.ndarray:
        across = np.maximum(np.sin(s) * np.sin(t), 0.0)
        return _log_mean(beta, across, cells.dim - 1) - 2 * np.sin((s - t) / 2) ** 2

    x, e, i = cells.centres, cells.edges, np.arange(cells.count)
    found = logs(*np.meshgrid(x, x, indexing="ij"))
    beside = 2 / 3 * _expm1_over(logs(e[:-1], e[1:]) - found[i, i], beta)
    beside[[0, -1]] += 1 / 3 * _expm1_over(logs(e[[0, -1]], e[[0, -1]]) - found[[0, -1], [0, -1]], beta)
    near = found[i[1:], i[:-1]]
    near = near + _log1p_over(1 / 3 * _expm1_over(logs(e[1:-1], e[1:-1]) - near, beta), beta)
    found[i, i] += _log1p_over(beside, beta)
    found[i[1:], i[:-1]] = found[i[:-1], i[1:]] = near
    return found


def _log_mean(beta: float, across: np.ndarray, n: int) -> np.ndarray:
    """log a_0(z) / beta on S^{n-1}, z = beta across: by the series e^z a_0 = 0F1(n/2; z^2/4) or by Bessel functions."""
    z = beta * across
    few = z * z <= 16 * n
    square = np.where(few, z, 0.0) ** 2 / 4
    extra, term, m = np.zeros_like(z), np.ones_like(z), 0
    while m < 2 or np.max(term) > 1e-17:
        m += 1
        term = term * square / (m * (m + n / 2 - 1))
        extra += term
    found = np.log1p(extra) - z
    if not few.all():
        large, nu = z[~few], n / 2 - 1
        with np.errstate(divide="ignore", under="ignore"):
            bessel = np.log(sp.ive(nu, large))
        lost = ~(bessel > -600)
        if lost.any():
            bessel[lost] = log_scaled_bessel(nu, large[lost])
        found[~few] = sp.gammaln(n / 2) + nu * np.log(2 / large) + bessel
    return found / beta if beta > 0 else -across


def _balanced(cells: Cells, logs: np.ndarray, beta: float) -> np.ndarray:
    """logs_ij + c_i + c_j such that K * mu is constant for the uniform measure: Newton's method for a scaling."""
    measure, shift = cells.measure, np.zeros(cells.count)
    for _ in range(4):
        scaled = logs + (shift[:, None] + shift[None, :])
        if beta > 1:
            level = np.log(np.exp(beta * scaled) @ measure) / beta
        else:
            level = _log1p_over(_expm1_over(scaled, beta) @ measure, beta)
        weights = np.exp(beta * (scaled - level[:, None])) * measure[None, :]
        shift -= np.linalg.solve(np.eye(cells.count) + weights, level - np.sum(measure * level))
    return logs + (shift[:, None] + shift[None, :])


def _expm1_over(logs: np.ndarray, beta: float) -> np.ndarray:
    return np.asarray(np.expm1(beta * logs) / beta if beta > 0 else logs)


def _log1p_over(values: np.ndarray, beta: float) -> np.ndarray:
    return np.asarray(np.log1p(beta * values) / beta if beta > 0 else values)
