"""Two clusters that merge: how long, where, how exact a cluster is as one particle, and how long nothing happens."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special as sp
from scipy.special import expit

from attnflow.errors import InvalidInput
from attnflow.special import scaled_exp1, scaled_expi
from attnflow.special.integrals import log_integral
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_beta, checked_model, checked_reals

LARGEST_LOG = float(np.log(np.finfo(np.float64).max))
_SMALLEST_LOG = float(np.log(np.finfo(np.float64).tiny))


def merge_time(
    angle: ArrayLike,
    beta: ArrayLike,
    *,
    masses: ArrayLike = (0.5, 0.5),
    until: float | None = None,
    model: str = "SA",
) -> Numbers:
    """Time in which two clusters of these masses come from `angle` to the angle `until`, on the clock of `model`.

    Left out, `until` is `merging_angle(beta)`, at which `solve_long` and `merge_times` count two clusters as one.

    With u = 1 - cos(angle), E = e^{beta u}, z = log(u/(2-u)) and J = int E dz over the way:
    USA0: angle' = -M e^{-beta u} sin(angle), M = m1 + m2, and the time is J/(2M) with
    J = Ei(beta u0) - Ei(beta u1) + e^{2 beta} (E1(beta (2-u0)) - E1(beta (2-u1))); USA divides by e^beta. The masses
    need not sum to 1: other clusters may exist, far away.
    SA: the integral of (m1 E + m2)(m2 E + m1)/((m1^2+m2^2) E + 2 m1 m2) dz/2; J/4 + (z0 - z1)/4 for equal masses.
    Only the ratio of the masses matters, and there are no other clusters nearby.

    beta >= 0, until < angle < pi (at pi the pair is in equilibrium). The approach is exponential, so the time depends
    on `until` for ever: at angles below beta^(-1/2) the angle falls at the rate m1 + m2 (USA0; 1 for SA), and an end
    that is 10 times nearer adds log(10) to the time. Exact for point clusters (arXiv:2312.10794, arXiv:2410.06833).
    A loop over broadcast angles and betas; `log_merge_time` gives times beyond float range.
    """
    log_time = log_merge_time(angle, beta, masses=masses, until=until, model=model)
    if np.any(log_time > LARGEST_LOG) or np.any(log_time < _SMALLEST_LOG):
        raise InvalidInput(
            f"beta is {beta!r} and angle is {angle!r}; the merge time leaves the range of floats, use log_merge_time."
        )
    return np.exp(log_time)


def log_merge_time(
    angle: ArrayLike,
    beta: ArrayLike,
    *,
    masses: ArrayLike = (0.5, 0.5),
    until: float | None = None,
    model: str = "SA",
) -> np.ndarray:
    """Natural logarithm of `merge_time`, finite for every finite beta >= 0 (see there for the formula)."""
    m1, m2 = _checked_masses(masses)
    checked_model(model)
    angles, betas = _checked_angles(angle), checked_beta(beta)
    ends = merging_angle(betas) if until is None else np.float64(until)
    if not np.all(ends > 0) or np.any(angles <= ends):
        end = f"the merging angle of beta = {beta!r}" if until is None else repr(until)
        raise InvalidInput(f"until is {end} and angle is {angle!r}; they must obey 0 < until < angle.")

    def one(a: float, b: float, until: float) -> float:
        if model != "SA":
            return _log_exponential_integral(a, until, b) - np.log(2 * (m1 + m2)) - (b if model == "USA" else 0.0)
        if m1 == m2:
            way = _way(a, until)
            return float(np.logaddexp(_log_exponential_integral(a, until, b), np.log(way))) - np.log(4.0)
        k1, k2 = np.log(m1 / (m1 + m2)), np.log(m2 / (m1 + m2))
        squares, product = np.logaddexp(2 * k1, 2 * k2), np.log(2.0) + k1 + k2

        def log_slowness(u: np.ndarray) -> np.ndarray:
            grown = b * u
            return np.logaddexp(k1 + grown, k2) + np.logaddexp(k2 + grown, k1) - np.logaddexp(squares + grown, product)

        return _log_quadrature(log_slowness, a, until, b) - np.log(2.0)

    return np.vectorize(one, otypes=[np.float64])(angles, betas, ends)


def merge_time_of_heads(
    angle: float,
    betas: ArrayLike,
    weights: ArrayLike,
    *,
    masses: ArrayLike = (0.5, 0.5),
    until: float = 0.01,
    model: str = "SA",
) -> float:
    """Time in which two clusters come from `angle` to `until` under the field sum_h w_h (attention with beta_h).

    With u = 1 - cos(angle):
    USA0: angle' = -(m1 + m2) sin(angle) sum_h w_h e^(-beta_h u).
    SA: angle' = -sin(angle) sum_h w_h [m2/(m1 e^(beta_h u) + m2) + m1/(m2 e^(beta_h u) + m1)].
    USA0 is never slower than its flattest head alone: T <= T(beta_min)/w_min, where w_min is the weight of the head
    with the smallest beta, and T w_min/T(beta_min) -> 1 as (beta_h - beta_min) u -> infinity, for SA too. So the life
    of a plateau has the exponent min beta_h and the prefactor 1/w_min. A flat head of weight eps ends a plateau of the
    others as soon as eps >> e^(-(beta_2 - beta_1) u).

    weights > 0, 0 < until < angle < pi; Q = K = V = I up to the factors. Derived here from the two-body reduction of
    arXiv:2410.06833. For one head it is `merge_time`.
    """
    m1, m2 = _checked_masses(masses)
    if checked_model(model) == "USA":
        raise InvalidInput("model is 'USA', on whose clock heads of different beta have different units; use 'USA0'.")
    start = float(_checked_angles(angle))
    rates, shares = np.atleast_1d(checked_beta(betas)), np.atleast_1d(checked_reals("weights", weights, 0.0))
    if rates.ndim != 1 or rates.shape != shares.shape or not np.all(shares > 0):
        raise InvalidInput(f"weights is {weights!r}; give one positive number for each of the {rates.size} betas.")
    if not 0 < until < start:
        raise InvalidInput(f"until is {until!r} and angle is {angle!r}; they must obey 0 < until < angle.")

    def log_slowness(u: np.ndarray) -> np.ndarray:
        grown = rates[:, None] * np.ravel(u)
        if model == "USA0":
            logs = np.log(m1 + m2) - grown
        else:
            one, two = np.log(m1), np.log(m2)
            logs = np.logaddexp(two - np.logaddexp(one + grown, two), one - np.logaddexp(two + grown, one))
        return -np.logaddexp.reduce(np.log(shares)[:, None] + logs, axis=0).reshape(np.shape(u))

    return float(np.exp(_log_quadrature(log_slowness, start, until, float(rates.max())) - np.log(2.0)))


def layer_angle(angle: ArrayLike, beta: ArrayLike, *, skip: ArrayLike = 1.0) -> Numbers:
    """The angle of two clusters of equal mass after one softmax layer x <- N(skip x + attention).

    With half-angles f: tan f' = tan f (skip + tanh(beta sin^2 f))/(skip + 1), exactly. log tan f falls per layer by
    -log(1 - h g), h = 1/(1 + skip), g = 1 - tanh(beta sin^2 f), where the flow (`merge_time`, SA) has the rate -g. So a
    pair merges after (1 + skip) T - [log tan f + log g]/2 + O(h) layers, with the bracket at the start minus that at
    the end. Derived here. 0 < angle < pi, skip >= 0.
    """
    half, skips = _checked_angles(angle) / 2, checked_reals("skip", skip, 0.0)
    kept = (skips + np.tanh(checked_beta(beta) * np.sin(half) ** 2)) / (skips + 1)
    return 2 * np.arctan(np.tan(half) * kept)


def merging_angle(beta: ArrayLike) -> Numbers:
    """The angle below which two clusters count as one unless another is given: 10^(-3)/max(beta, 1).

    Point clusters never meet: near each other their angle a falls like e^(-t). An end is a convention, and it has to
    be so near that nothing else depends on it. One particle in the place of a pair of equal masses changes the force on
    others by the relative error (beta^2 + 3 beta + 1)/2 (a/2)^2 (`coarse_graining_error`), which is 7e-7 at most here.
    The simulator has the same default: beta a = sqrt(tol) with the tolerance 10^(-6) of log t.
    """
    return 1e-3 / np.maximum(checked_beta(beta), 1.0)


def meeting_point(
    angle: ArrayLike, beta: ArrayLike, *, masses: ArrayLike = (0.5, 0.5), model: str = "SA"
) -> np.ndarray:
    """Angle that cluster 1 travels towards cluster 2 until they meet, of the initial `angle` in (0, pi).

    USA, USA0: the mass mean, angle m2/(m1+m2), exactly. SA: the integral over (0, angle) of
    m2 (m2 + m1 q)/(m1^2 + m2^2 + 2 m1 m2 q), q = e^{-beta (1 - cos)}; only the ratio of the masses matters, and the
    clusters are alone. A loop over broadcast angles and betas (two-body reduction of arXiv:2410.06833).
    """
    m1, m2 = _checked_masses(masses)
    checked_model(model)
    angles, betas = _checked_angles(angle), checked_beta(beta)
    m1, m2 = m1 / (m1 + m2), m2 / (m1 + m2)
    if model != "SA":
        return np.broadcast_arrays(angles * m2, betas)[0].copy()
    nodes, weights = np.polynomial.legendre.leggauss(16)

    def one(a: float, b: float) -> float:
        # the nearest singularity of the integrand is 1.7 b^{-1/2} from the real line; the panels are that wide at most
        panels = int(np.ceil(a * np.sqrt(1 + b)))
        half = a / panels / 2
        theta = (2 * np.arange(panels)[:, None] + 1 + nodes) * half
        q = np.exp(-2 * b * np.sin(theta / 2) ** 2)
        # rates written as a quotient, so that a mass of 1e-200 has no square
        return half * float(np.sum(weights * m2 / (m2 + m1 * (m1 + m2 * q) / (m2 + m1 * q))))

    return np.vectorize(one, otypes=[np.float64])(angles, betas)


def meeting_point_limit(angle: ArrayLike, *, masses: ArrayLike = (0.5, 0.5)) -> Numbers:
    """Limit beta -> infinity of the SA `meeting_point`: angle m2^2/(m1^2 + m2^2), with an error O(beta^{-1/2})."""
    m1, m2 = _checked_masses(masses)
    ratio = m1 / m2
    return _checked_angles(angle) / (1 + ratio**2 if ratio < 1e150 else np.inf)


def coarse_graining_error(beta: ArrayLike, angle: ArrayLike, spread2: ArrayLike) -> Numbers:
    """Bound on the relative error of the USA0 force of a tight cluster when one particle stands for it.

    (beta^2 sin^2(angle) + 3 beta + 1) spread2 / 2, where spread2 = tr S is the mass-weighted mean square of the
    tangent deviations from the centre, and `angle` is that from the centre to the particle that feels the force. It is
    the leading order in the spread, so a bound of 1 or more is no bound and is refused (cf. arXiv:2410.06833).
    """
    betas, angles = checked_beta(beta), np.asarray(angle, dtype=np.float64)
    spreads = np.asarray(spread2, dtype=np.float64)
    if not np.all((angles >= 0) & (angles <= np.pi)):
        raise InvalidInput(f"angle is {angle!r}; it must be in [0, pi].")
    if not np.all((spreads >= 0) & np.isfinite(spreads)):
        raise InvalidInput(f"spread2 is {spread2!r}; it must be finite and at least 0.")
    bound = 0.5 * ((betas * np.sin(angles)) ** 2 + 3 * betas + 1) * spreads
    if np.any(bound >= 1):
        raise InvalidInput(f"spread2 is {spread2!r}; the error of the expansion would reach 1, give smaller clusters.")
    return bound


def slow_motion_time(beta: ArrayLike, overlap: ArrayLike, size: ArrayLike, *, n: ArrayLike) -> Numbers:
    """Lower bound T_2 >= (size/n) e^{(1-overlap) beta} on the time for which n tokens stay near where they gathered.

    The tokens start in caps {<x, w_q> >= 1 - size}, `overlap` is the largest <x, y> between two of the caps of twice
    that size, and until T_2 no token leaves its cap of twice the size. Clock of SA or USA0. Conditions: beta > 1,
    0 < size < 1/16 and 1 - overlap - 8 size - log(2 n^2/size)/beta > 0 (theorem of arXiv:2410.06833).
    """
    log_time = log_slow_motion_time(beta, overlap, size, n=n)
    if np.any(log_time > LARGEST_LOG):
        raise InvalidInput(f"beta is {beta!r}; the time leaves the range of floats, use log_slow_motion_time.")
    return np.exp(log_time)


def log_slow_motion_time(beta: ArrayLike, overlap: ArrayLike, size: ArrayLike, *, n: ArrayLike) -> Numbers:
    """Natural logarithm of `slow_motion_time`, under the same conditions."""
    betas, overlaps, sizes, ns = (np.asarray(a, dtype=np.float64) for a in (beta, overlap, size, n))
    if not np.all((betas > 1) & np.isfinite(betas)):
        raise InvalidInput(f"beta is {beta!r}; the theorem needs a finite beta > 1.")
    if not np.all((sizes > 0) & (sizes < 1 / 16)):
        raise InvalidInput(f"size is {size!r}; the theorem needs it in (0, 1/16).")
    if not np.all((overlaps >= -1) & (overlaps < 1)):
        raise InvalidInput(f"overlap is {overlap!r}; it must be in [-1, 1).")
    if not np.all((ns >= 1) & (ns == np.floor(ns)) & np.isfinite(ns)):
        raise InvalidInput(f"n is {n!r}; it must be an integer of at least 1.")
    gamma = 1 - overlaps - 8 * sizes - (np.log(2 / sizes) + 2 * np.log(ns)) / betas
    if not np.all(gamma > 0):
        raise InvalidInput(
            f"beta is {beta!r}; the theorem needs 1 - overlap - 8 size - log(2 n^2/size)/beta > 0 and it is "
            f"{float(np.min(gamma)):.4g}."
        )
    return np.log(sizes) - np.log(ns) + (1 - overlaps) * betas


def cap_overlap(size: ArrayLike) -> Numbers:
    """Largest <x, y> between caps {<x, w> >= 1 - 2 size} about orthogonal w: 4 (1-2 size) sqrt(size (1-size)).

    The `overlap` that `slow_motion_time` asks for, when the tokens gather about an orthogonal frame: the sine of twice
    the opening angle. It needs 0 <= size <= (2 - sqrt 2)/4 = 0.146..., where two caps begin to touch.
    """
    sizes = np.asarray(size, dtype=np.float64)
    if not np.all((sizes >= 0) & (sizes <= (2 - np.sqrt(2)) / 4)):
        raise InvalidInput(f"size is {size!r}; it must be in [0, (2 - sqrt 2)/4], where the caps do not meet.")
    return 4 * (1 - 2 * sizes) * np.sqrt(sizes * (1 - sizes))


def log_pull_integral(start: ArrayLike, way: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """Logarithm of the integral of e^(2 beta sigma(z)) dz from `start` - `way` to `start`, sigma(z) = 1/(1 + e^(-z)).

    Half of it is the time in which a pair of USA0 with masses adding to 1 falls by `way` in z = log(u/(2 - u)), u = 1 -
    cos(angle). The exponent is taken from its value at the start, where it is largest, so that it is not a difference
    of large numbers.
    """
    starts, ways, betas = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (start, way, beta)))
    steepness = 2 * betas * expit(starts) * expit(-starts)
    points = np.concatenate(  # where the exponent falls from its peak, and where 2 sigma goes from 2 to 0
        [np.arange(5, 45, 5) / np.maximum(steepness, 1e-300)[..., None], starts[..., None] + np.arange(-40, 45, 5)],
        axis=-1,
    )

    def log_height(s: np.ndarray, start: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """2 beta (sigma(start - s) - sigma(start)) at the way s from the start."""
        return np.asarray(2 * beta * expit(start) * expit(s - start) * np.expm1(-s))

    return np.asarray(2 * betas * expit(starts) + log_integral(log_height, 0.0, ways, starts, betas, points=points))


def _way(angle: float, until: float) -> float:
    """z0 - z1 for z = log(u/(2-u)) = 2 log tan(angle/2), the clock in which free motion (beta = 0) is uniform.

    The quotient of the tangents is 1 + sin((angle - until)/2)/(cos(angle/2) sin(until/2)): angles that are close to
    each other cost no digits.
    """
    return 2 * float(np.log1p(np.sin((angle - until) / 2) / (np.cos(angle / 2) * np.sin(until / 2))))


def _log_exponential_integral(angle: float, until: float, beta: float) -> float:
    """Log of J = int e^{beta u} dz from `until` to `angle`, in exponential integrals where they do not cancel."""
    u0, u1 = 2 * np.sin(angle / 2) ** 2, 2 * np.sin(until / 2) ** 2
    w0, w1 = 2 * np.cos(angle / 2) ** 2, 2 * np.cos(until / 2) ** 2  # 2 - u, exact near angle = pi
    if beta * u1 > 0 and beta * w0 > 0:
        fall = np.exp(beta * (u1 - u0))
        terms = np.array(
            [
                scaled_expi(beta * u0),
                -fall * scaled_expi(beta * u1),
                scaled_exp1(beta * w0),
                -fall * scaled_exp1(beta * w1),
            ]
        )
        if terms.sum() > 0.1 * np.abs(terms).sum():
            return float(beta * u0 + np.log(terms.sum()))
    return _log_quadrature(lambda u: beta * u, angle, until, beta)


def _log_quadrature(log_h: Callable[[np.ndarray], np.ndarray], angle: float, until: float, beta: float) -> float:
    """Log of int h dz between the angles, h a nondecreasing function of u that varies on the scale 1/beta.

    Gauss-Legendre with 16 nodes on panels no wider than 1 in z and 2/beta in u: the singularities are at least pi away
    in beta u and in z, so a panel is exact to 1e-16. Panels that add less than e^{-40} of the whole are left out.
    """
    start, way = 2 * float(np.log(np.tan(until / 2))), _way(angle, until)  # z of the end, and from there on
    u0, u1 = 2 * np.sin(angle / 2) ** 2, 2 * np.sin(until / 2) ** 2
    steps = np.linspace(u1, u0, int(np.ceil(beta * (u0 - u1) / 2)) + 1)[1:-1]
    edges = np.concatenate([np.linspace(0.0, way, int(np.ceil(way)) + 1), np.log(steps / (2 - steps)) - start])
    edges = np.unique(np.clip(edges, 0.0, way))
    height = log_h(2 * sp.expit(start + edges))
    floor = height[-2] + np.log(edges[-1] - edges[-2]) - 40 - np.log(way)
    first = int(np.argmax(height[1:] >= floor))
    left, half = edges[first:-1, None], np.diff(edges[first:])[:, None] / 2
    nodes, weights = np.polynomial.legendre.leggauss(16)
    z = start + left + half * (1 + nodes)
    logs = log_h(2 * sp.expit(z))
    return float(height[-1] + np.log(np.sum(half * weights * np.exp(logs - height[-1]))))


def _checked_masses(masses: ArrayLike) -> tuple[float, float]:
    found = np.asarray(masses, dtype=np.float64)
    if found.shape != (2,) or not np.all((found > 0) & np.isfinite(found)):
        raise InvalidInput(f"masses is {masses!r}; it must be two positive finite numbers.")
    return float(found[0]), float(found[1])


def _checked_angles(angle: ArrayLike) -> np.ndarray:
    angles = np.asarray(angle, dtype=np.float64)
    if not np.all((angles > 0) & (angles < np.pi)):
        raise InvalidInput(f"angle is {angle!r}; it must be in (0, pi), as a pair at angle pi is in equilibrium.")
    return angles
