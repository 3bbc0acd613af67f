"""The perceptron energy on the circle: the peak of U, the non-atomic critical family, the convex repulsive problem."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special as sp

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import Integers, Optional, Other, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.special.roots import root
from attnflow.theory.landscape.perceptron import (
    BETA,
    EPS,
    KERNEL,
    Landscape,
    Model,
    check_landscape,
    kernel_factor,
)
from attnflow.wording import shown

_FINER = 16  # the factor by which the circle is looked at more finely than the grid of the atoms
MOST_POINTS = 10_000
"""Points of a grid, whose matrix takes 800 MB."""
LARGEST_POTENTIAL = 1e300
"""Values of U, so that their range is a float."""
DEGREE = 16
NODES = -np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)
TO_COEFFICIENTS = np.linalg.inv(np.polynomial.chebyshev.chebvander(NODES, DEGREE)).T
"""Turns values at the nodes into coefficients of the interpolating polynomial."""
LEVELS = {"relu": np.zeros(1), "gelu": np.array([-9.0, 0.0, 9.0]), "tanh": np.array([-20.0, 0.0, 20.0])}
"""Arguments of activations between which they bend; beyond, they are straight lines to rounding."""


@formula(angles=Reals(), relative=1e-15)
def circle_points(angles: ArrayLike) -> np.ndarray:
    """Points (cos, sin) of the unit circle at these angles, on a new last axis.

    Arguments:
        angles: angles in radians.
    """
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


@formula(landscape=Other("a `Landscape` of the circle, d = 2"), absolute="1e-15 * landscape.scale(0)")
def largest_potential(landscape: Landscape) -> tuple[float, float]:
    """(max U, an angle in [0, 2 pi) where it is reached) on the circle (d = 2).

    The circle is divided where arguments a_j . x + b_j pass 0 and, for smooth activations, the levels up to where the
    activation is a straight line; pieces are halved until a polynomial of degree 16 interpolates U to rounding. Every
    piece whose polynomial can exceed the highest value seen contributes the zeros of its derivative. U at the angle is
    max U; the angle of a flat peak is as uncertain as that leaves it.

    Arguments:
        landscape: U.

    Raises:
        NotAccurate: if more than 200,000 pieces are needed.
    """
    check_landscape(landscape)
    a = landscape.directions
    if a.shape[-1] != 2:
        raise InvalidInput(f"`directions` have shape {a.shape!r}; give a landscape of the circle, d = 2.")
    tolerance = EPS * landscape.scale(0)
    lows, widths, coefficients = _pieces(landscape, tolerance)
    ceilings = coefficients[:, 0] + np.abs(coefficients[:, 1:]).sum(axis=1)
    floors = np.polynomial.chebyshev.chebval(NODES, coefficients.T).max(axis=1)
    tops, margins = [], []
    for k in np.flatnonzero(ceilings >= floors.max() - 8 * tolerance):
        slopes = np.polynomial.chebyshev.chebder(coefficients[k])
        significant = np.flatnonzero(np.abs(slopes) > 1e-17 * np.abs(slopes).max())
        zeros = np.polynomial.chebyshev.chebroots(slopes[: significant[-1] + 1]) if len(significant) else np.empty(0)
        places = np.concatenate([NODES, np.clip(zeros.real[np.abs(zeros.imag) < 1e-3], -1, 1)])
        tops.append(lows[k] + widths[k] * (1 + places) / 2)
        margins.append(np.full(len(places), 1e-4 * widths[k]))
    angles, margin = np.concatenate(tops), np.concatenate(margins)
    heights = landscape.potential(circle_points(angles))
    best = int(heights.argmax())
    angle, height = float(angles[best]), float(heights[best])

    def slope(angle: float) -> float:
        x, y = np.cos(angle), np.sin(angle)
        return float(landscape.gradient([x, y]) @ np.array([-y, x]))

    low, high = angle - margin[best], angle + margin[best]
    if slope(low) > 0 > slope(high):
        angle = float(root(slope, low, high))
        height = float(landscape.potential(circle_points(angle)))
    return height, angle % (2 * np.pi)


def _pieces(landscape: Landscape, tolerance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(low ends, widths, Chebyshev coefficients of U) of pieces of the circle on which degree 16 is enough."""
    lengths = np.linalg.norm(landscape.directions, axis=1)
    bent = lengths > 0
    middles = np.arctan2(landscape.directions[bent, 1], landscape.directions[bent, 0])[:, None]
    levels = LEVELS[landscape.activation]
    with np.errstate(invalid="ignore"):
        openings = np.arccos((levels - landscape.biases[bent, None]) / lengths[bent, None])
    edges = np.concatenate([(middles - openings).ravel(), (middles + openings).ravel()])
    panels = np.linspace(0, 2 * np.pi, 17)
    edges = np.unique(np.concatenate([panels, np.mod(edges[np.isfinite(edges)], 2 * np.pi)]))
    lows, widths, parts = edges[:-1], np.diff(edges), []
    chunk = max(1, 50_000 // (1 + len(lengths)))
    for _ in range(60):
        angles = lows[:, None] + widths[:, None] * (1 + NODES) / 2
        values = [
            landscape.potential(circle_points(rows)) for rows in np.split(angles, range(chunk, len(angles), chunk))
        ]
        coefficients = np.concatenate(values) @ TO_COEFFICIENTS
        done = np.abs(coefficients[:, -3:]).max(axis=1) <= tolerance
        parts.append((lows[done], widths[done], coefficients[done]))
        lows, halves = lows[~done], widths[~done] / 2
        lows, widths = np.concatenate([lows, lows + halves]), np.concatenate([halves, halves])
        if not len(lows):
            return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]
        if len(lows) > 200_000:
            break
    raise NotAccurate("U needs more than 200,000 pieces of the circle.")


@formula(beta=BETA, model=KERNEL, relative=1e-15)
def non_atomic_threshold(beta: ArrayLike, *, model: Model = "USA0") -> Numbers:
    """The largest |u| at which U = u cos(theta) has a critical density: e^{-beta} I_1(beta)/beta.

    For the model USA it is I_1(beta)/beta. arXiv:2601.21366.

    Arguments:
        beta: inverse temperature; at most 700 for USA.
        model: "USA0" or "USA".
    """
    return kernel_factor(beta, model) * np.where(beta < 1e-8, np.exp(-beta) / 2, sp.i1e(beta) / np.maximum(beta, 1e-8))


@formula(theta=Reals(), u=Reals(), beta=BETA, model=KERNEL, absolute=4e-16)
def non_atomic_density(theta: ArrayLike, u: ArrayLike, beta: ArrayLike, *, model: Model = "USA0") -> Numbers:
    """The critical density (1 - (beta u/I_1(beta)) cos theta)/(2 pi) for U = u cos(theta) (USA0: e^beta u for u).

    Its first variation is constant: it does not move, against the rule that critical measures are atomic, and
    it is the minimiser of the repulsive problem. A probability only for |u| <= `non_atomic_threshold`; beyond, there is
    no such measure. A threshold that is rounded is accepted. arXiv:2601.21366.

    Arguments:
        theta: angles on the circle.
        u: height of the potential.
        beta: inverse temperature; at most 700 for USA.
        model: "USA0" or "USA".
    """
    limit = non_atomic_threshold(beta, model=model)
    ratio = u / limit
    if not (np.abs(ratio) <= 1 + 2e-15).all():
        raise InvalidInput(f"`u` is {shown(u)}; |u| is at most {shown(limit)}, `non_atomic_threshold`, for a density.")
    return (1 - np.clip(ratio, -1, 1) * np.cos(theta)) / (2 * np.pi)


@dataclass(frozen=True)
class RepulsiveMinimiser:
    """The atoms of the minimiser on a grid, and the certificate that it is one.

    Phi = (1/beta) k * mu + U is the first variation and `constant` its mean under mu. At the minimiser Phi is constant
    on the atoms and not smaller elsewhere; `violation` is the largest breach of either on the grid. `gap` is
    constant - min Phi over the grid (Frank-Wolfe): by convexity the energy is at most that far above the minimum over
    all measures on the grid. `circle_gap` is the same for the whole circle, with Phi looked at 16 times more finely.
    """

    angles: np.ndarray
    weights: np.ndarray
    constant: float
    energy: float
    violation: float
    gap: float
    circle_gap: float


@formula(
    field=Other("a function that maps angles to U"),
    beta=Reals(1e-300, 1e8, scalar=True),
    model=KERNEL,
    points=Optional(Integers(3, MOST_POINTS, scalar=True)),
    tol=Reals(0.0, scalar=True, ends="none"),
    absolute="(tol + 1e-15) * (np.exp(beta * (model == 'USA')) * -np.expm1(-2 * beta) / beta"
    " + np.ptp(field(np.linspace(0, 2 * np.pi, 999)))) + 2e-16 * np.exp(beta * (model == 'USA')) / beta",
)
def repulsive_minimiser(
    field: Callable[[np.ndarray], ArrayLike],
    beta: float,
    *,
    model: Model = "USA0",
    points: int | None = None,
    tol: float = 1e-10,
) -> RepulsiveMinimiser:
    """Minimise (1/2 beta) sum_ij w_i w_j k(theta_i - theta_j) + sum_i w_i U(theta_i), w a probability on a grid.

    k is e^{beta (cos - 1)} for the model USA0, e^{beta cos} for USA. Every Fourier coefficient of k is positive (Bessel
    I_k), hence the problem is convex and the measure unique on the circle. A primal-dual interior point method (dense:
    O(points^3) a step), then the equations of the atoms are solved exactly. An atom of the circle between two grid
    points becomes a pair. The accuracy that is stated is that of the energy. arXiv:2601.21366.

    Arguments:
        field: maps an array of angles to U.
        beta: inverse temperature; at most 700 for USA.
        model: "USA0" or "USA".
        points: points of the grid; the larger of 720 and 16 sqrt(beta), several to a kernel width, if left out.
        tol: largest gap, as a share of the larger of the ranges of k/beta and of U.

    Raises:
        NotAccurate: if the gap stays above `tol`.
    """
    factor = float(kernel_factor(beta, model))
    count = max(720, math.ceil(16 * math.sqrt(beta))) if points is None else points
    if count > MOST_POINTS:
        raise InvalidInput(f"`beta` is {beta!r}, which needs {count} points; give `points`, at most {MOST_POINTS}.")
    fine_angles = np.linspace(0, 2 * np.pi, _FINER * count, endpoint=False)
    try:
        values = np.asarray(field(fine_angles), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"`field` is {shown(field)}; give a function of an array of angles ({error}).") from error
    if values.shape != fine_angles.shape or not (np.abs(values) <= LARGEST_POTENTIAL).all():
        raise InvalidInput(
            f"`field` returned {shown(values)} of shape {values.shape}; return one finite number for each angle."
        )
    # k less its smallest value, which no measure feels: a small beta leaves only differences of k. One scale for both
    # terms, and U from 0, so that the tolerances of the solver are relative ones
    kernel = (
        factor
        * np.exp(-2 * beta * np.sin(fine_angles / 2) ** 2)
        * (-np.expm1(-2 * beta * np.cos(fine_angles / 2) ** 2) / beta)
    )
    lift = factor * math.exp(-2 * beta) / beta
    scale = max(float(kernel[0]), float(np.ptp(values)))
    steps = np.arange(count)
    matrix = kernel[::_FINER][(steps[:, None] - steps) % count] / scale
    slopes = (values[::_FINER] - values.min()) / scale
    weights = _polish(matrix, slopes, _interior_point(matrix, slopes), tol / 10)

    spread = np.zeros_like(fine_angles)
    spread[::_FINER] = weights
    pull = np.fft.irfft(np.fft.rfft(spread) * np.fft.rfft(kernel), len(fine_angles))
    atoms = np.flatnonzero(spread)
    mass, phi = spread[atoms], pull + values
    constant = float(mass @ phi[atoms])
    gap = max(constant - float(phi[::_FINER].min()), 0.0)
    if gap > tol * scale:
        raise NotAccurate(f"the gap stopped at {gap:.3g}, above the tolerance {tol * scale:.3g}.")
    return RepulsiveMinimiser(
        angles=fine_angles[atoms],
        weights=mass,
        constant=constant + lift,
        energy=float(mass @ (pull[atoms] / 2 + values[atoms])) + lift / 2,
        violation=max(gap, float(np.abs(phi[atoms] - constant).max())),
        gap=gap,
        circle_gap=max(constant - float(phi.min()), 0.0),
    )


def _interior_point(matrix: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Minimise w'Mw/2 + slopes'w over the simplex: Mehrotra's predictor and corrector, each a Cholesky solve."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    n = len(slopes)
    w = np.full(n, 1 / n)
    phi = matrix @ w + slopes
    c = phi.min() - 1.0
    z = phi - c
    best, best_gap = w, np.inf
    for _ in range(100):
        phi = matrix @ w + slopes
        gap = (w @ phi) / w.sum() - phi.min()
        if gap < best_gap:
            best, best_gap = w / w.sum(), gap
        mu = (w @ z) / n
        if best_gap < 1e-13 or mu < 1e-18:
            break
        try:
            factor = cho_factor(matrix + np.diag(z / w), lower=True, check_finite=False)
        except LinAlgError:  # rounding is larger than the smallest eigenvalue
            break
        towards = cho_solve(factor, np.ones(n), check_finite=False)
        system = (factor, towards, w, z, phi - c - z)
        dw, dc, dz = _newton(system, np.zeros(n))
        left = (w + _reach(w, dw) * dw) @ (z + _reach(z, dz) * dz) / (w @ z)
        dw, dc, dz = _newton(system, left**3 * mu - dw * dz)
        step = 0.995 * min(_reach(w, dw), _reach(z, dz))  # M couples weights and prices, so they move together
        w, c, z = w + step * dw, c + step * dc, z + step * dz
    return best


def _newton(system: tuple[Any, ...], target: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """The step towards w z = target, Mw + slopes - c - z = 0 and sum w = 1."""
    from scipy.linalg import cho_solve

    factor, towards, w, z, dual = system
    free = cho_solve(factor, target / w - z - dual, check_finite=False)
    dc = (1 - w.sum() - free.sum()) / towards.sum()
    dw = free + dc * towards
    return dw, dc, (target - z * dw) / w - z


def _reach(x: np.ndarray, dx: np.ndarray) -> float:
    """The largest step in [0, 1] that keeps x + step dx >= 0."""
    down = dx < 0
    return float(min(1.0, np.min(-x[down] / dx[down], initial=np.inf)))


def _polish(matrix: np.ndarray, slopes: np.ndarray, weights: np.ndarray, tol: float) -> np.ndarray:
    """Prune to the atoms and solve Phi = c, sum w = 1 on them; of those within the tolerance, the least in breach."""

    def cost(w: np.ndarray) -> tuple[float, float]:
        phi = matrix @ w + slopes
        constant = w @ phi
        gap = float(constant - phi.min())
        return max(gap, tol), max(gap, float(np.abs(phi[w > 0] - constant).max()))

    phi = matrix @ weights + slopes
    trials = [weights]
    for share in (1.0, 1e-2, 1e-4):  # weight times price is small everywhere: atoms are where the weight is larger
        support = np.flatnonzero(weights > share * (phi - phi.min()))
        trials.append(_on_support(len(weights), support, weights[support]))
        # a support this large is a density, which the equations do not determine beyond rounding
        while 0 < len(support) <= len(weights) // 4:
            m = len(support)
            system = np.ones((m + 1, m + 1))
            system[:m, :m], system[:m, m], system[m, m] = matrix[np.ix_(support, support)], -1, 0
            solved = np.linalg.lstsq(system, np.append(-slopes[support], 1.0), rcond=None)[0][:m]
            if (solved > 0).all():
                trials.append(_on_support(len(weights), support, solved))
                break
            support = support[solved > 0]
    return min(trials, key=cost)


def _on_support(n: int, support: np.ndarray, values: np.ndarray) -> np.ndarray:
    weights = np.zeros(n)
    weights[support] = values / values.sum()
    return weights
