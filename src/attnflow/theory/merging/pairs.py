"""Two clusters that merge: how long, where, and how exact a cluster is as one particle."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from attnflow.errors import InvalidInput
from attnflow.special.formula import MODEL, Optional, Reals, Word, formula
from attnflow.special.integrals import integral, log_integral
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.wording import shown

LARGEST_LOG = float(np.log(np.finfo(np.float64).max))
_SMALLEST_LOG = float(np.log(np.finfo(np.float64).tiny))
ANGLE = Reals(0.0, math.pi, ends="none")
BETA = Reals(0.0, 1e100)
MASSES = Reals(1e-100, 1e100)
BLOCK = 500
"""Integrals that are evaluated together; more do not become faster."""


@formula(angle=ANGLE, beta=BETA, masses=MASSES, until=Optional(ANGLE), model=MODEL, relative=1e-12)
def merge_time(
    angle: ArrayLike,
    beta: ArrayLike,
    *,
    masses: ArrayLike = (0.5, 0.5),
    until: float | None = None,
    model: str = "SA",
) -> Numbers:
    """Time in which two clusters of these masses come from `angle` to the angle `until`, on the clock of `model`.

    With u = 1 - cos(angle), E = e^{beta u}, z = log(u/(2-u)) and J = int E dz over the way:
    USA0: angle' = -M e^{-beta u} sin(angle), M = m1 + m2, and the time is J/(2M) with
    J = Ei(beta u0) - Ei(beta u1) + e^{2 beta} (E1(beta (2-u0)) - E1(beta (2-u1))); USA divides by e^beta. The masses
    need not sum to 1: other clusters may exist, far away.
    SA: the integral of (m1 E + m2)(m2 E + m1)/((m1^2+m2^2) E + 2 m1 m2) dz/2; J/4 + (z0 - z1)/4 for equal masses.
    Only the ratio of the masses matters, and there are no other clusters nearby.

    The pair is in equilibrium at the angle pi. The approach is exponential, so the time depends on `until` for ever: at
    angles below beta^(-1/2) the angle falls at the rate m1 + m2 (USA0; 1 for SA), and an end that is 10 times nearer
    adds log(10) to the time. Exact for point clusters (arXiv:2312.10794, arXiv:2410.06833).

    Arguments:
        angle: angles at the start; they, `beta` and `until` are broadcast.
        beta: inverse temperatures.
        masses: two masses.
        until: angle at which two clusters count as one, below `angle`; `merging_angle(beta)` if left out, at which
            `solve_long` and `merge_times` count them as one.
        model: the clock, "SA", "USA0" or "USA".

    Raises:
        InvalidInput: if a time is outside the range of floats; `log_merge_time` has no such limit.
    """
    log_time = log_merge_time(angle, beta, masses=masses, until=until, model=model)
    if np.any(log_time > LARGEST_LOG) or np.any(log_time < _SMALLEST_LOG):
        raise InvalidInput(
            f"`beta` is {shown(beta.tolist())} and `angle` is {shown(angle.tolist())}; the merge time leaves the range "
            "of floats, use log_merge_time."
        )
    return np.exp(log_time)


@formula(angle=ANGLE, beta=BETA, masses=MASSES, until=Optional(ANGLE), model=MODEL, relative=2e-15, absolute=1e-13)
def log_merge_time(
    angle: ArrayLike,
    beta: ArrayLike,
    *,
    masses: ArrayLike = (0.5, 0.5),
    until: float | None = None,
    model: str = "SA",
) -> np.ndarray:
    """Natural logarithm of the time in which two clusters merge, in float range where `merge_time` is not.

    The integral of 1/speed over the way from `angle` to `until` (see `merge_time` for the formula).

    Arguments:
        angle: angles at the start; they, `beta` and `until` are broadcast.
        beta: inverse temperatures.
        masses: two masses.
        until: angle at which two clusters count as one, below `angle`; `merging_angle(beta)` if left out.
        model: the clock, "SA", "USA0" or "USA".
    """
    m1, m2 = checked_pair(masses)
    ends = merging_angle(beta) if until is None else until
    if np.any(angle <= ends):
        end = (
            f"the merging angle of beta = {shown(beta.tolist())}"
            if until is None
            else shown(np.asarray(until).tolist())
        )
        raise InvalidInput(
            f"`until` is {end} and `angle` is {shown(angle.tolist())}; they must obey 0 < until < angle."
        )
    return log_pair_times(angle, beta, m1, m2, ends, model)


def log_pair_times(angle: Any, beta: Any, m1: Any, m2: Any, until: Any, model: str) -> np.ndarray:
    """`log_merge_time` of arguments that are checked; arrays of masses too, everything is broadcast."""
    # the exponent at the start: beta u, or beta u - beta
    top = -beta * np.cos(angle) if model == "USA" else 2 * beta * np.sin(angle / 2) ** 2
    return np.asarray(top) + log_times_of_ways(2 * np.log(np.tan(angle / 2)), _way(angle, until), beta, m1, m2, model)


def log_times_of_ways(start: Any, way: Any, beta: Any, m1: Any, m2: Any, model: str) -> np.ndarray:
    """Log of e^(-beta u) times that in which a pair falls by `way` from `start` in z = log(u/(2-u)), u at the start."""
    if model != "SA":
        return np.asarray(_log_relative_integral(start, way, beta) - np.log(2 * (m1 + m2)))
    ratio = np.minimum(m1, m2) / np.maximum(m1, m2)

    def log_share(u: np.ndarray, beta: np.ndarray, ratio: np.ndarray) -> np.ndarray:
        """Log of the slowness over e^(beta u): of (1 + r q)(r + q)/(1 + r^2 + 2 r q), q = e^(-beta u)."""
        q = np.exp(-beta * u)
        return np.asarray(np.log((1 + ratio * q) * (ratio + q) / (1 + ratio**2 + 2 * ratio * q)))

    return np.asarray(_log_relative_integral(start, way, beta, ratio, log_share=log_share) - np.log(2))


@formula(
    angle=Reals(0.0, math.pi, ends="none", scalar=True),
    betas=Reals(0.0, 1e8),
    weights=Reals(1e-100, 1e100),
    masses=MASSES,
    until=Reals(0.0, math.pi, ends="none", scalar=True),
    model=Word(("SA", "USA0")),
    relative=2e-12,
)
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

    Q = K = V = I up to the factors. Derived here from the two-body reduction of arXiv:2410.06833. For one head it is
    `merge_time`.

    Arguments:
        angle: angle at the start.
        betas: inverse temperatures of the heads.
        weights: weights of the heads.
        masses: two masses.
        until: angle at the end, below `angle`.
        model: "SA" or "USA0"; on the clock of USA heads of different beta have different units.

    Raises:
        InvalidInput: if the time is outside the range of floats.
    """
    m1, m2 = checked_pair(masses)
    rates, shares = np.atleast_1d(betas), np.atleast_1d(weights)
    if rates.ndim != 1 or rates.shape != shares.shape or not rates.size:
        raise InvalidInput(
            f"`weights` is {shown(weights.tolist())}; give one positive number for each of the {rates.size} betas."
        )
    if until >= angle:
        raise InvalidInput(f"`until` is {until!r} and `angle` is {angle!r}; they must obey 0 < until < angle.")
    ratio, log_weights = min(m1, m2) / max(m1, m2), np.log(shares)[:, None, None]

    def log_slowness(s: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Of all heads at the way s from the start, in z."""
        fall = 2 * rates[:, None, None] * expit(start - s)
        log_pulls: Any = math.log(m1 + m2)
        if model == "SA":
            q = np.exp(-fall)
            log_pulls = np.log(ratio / (1 + ratio * q) + 1 / (ratio + q))
        return np.asarray(-np.logaddexp.reduce(log_weights + log_pulls - fall, axis=0))

    start = 2 * math.log(math.tan(angle / 2))
    points = _landmarks(np.asarray(start), rates).ravel()
    log_time = float(log_integral(log_slowness, 0.0, _way(angle, until), start, points=points)) - math.log(2)
    if not _SMALLEST_LOG < log_time < LARGEST_LOG:
        raise InvalidInput(
            f"`betas` is {shown(betas.tolist())} and `angle` is {angle!r}; the merge time e^{log_time:.0f} leaves the "
            "range of floats."
        )
    return math.exp(log_time)


@formula(angle=ANGLE, beta=Reals(0.0), skip=Reals(0.0), relative=4e-15)
def layer_angle(angle: ArrayLike, beta: ArrayLike, *, skip: ArrayLike = 1.0) -> Numbers:
    """The angle of two clusters of equal mass after one softmax layer x <- N(skip x + attention).

    With half-angles f: tan f' = tan f (skip + tanh(beta sin^2 f))/(skip + 1), exactly. log tan f falls per layer by
    -log(1 - h g), h = 1/(1 + skip), g = 1 - tanh(beta sin^2 f), where the flow (`merge_time`, SA) has the rate -g. So a
    pair merges after (1 + skip) T - [log tan f + log g]/2 + O(h) layers, with the bracket at the start minus that at
    the end. Derived here.

    Arguments:
        angle: angles before the layer.
        beta: inverse temperatures.
        skip: weights of the skip connection.
    """
    half = angle / 2
    kept = (skip + np.tanh(beta * np.sin(half) * np.sin(half))) / (skip + 1)
    return 2 * np.arctan(np.tan(half) * kept)


@formula(beta=Reals(0.0), relative=4e-16)
def merging_angle(beta: ArrayLike) -> Numbers:
    """The angle below which two clusters count as one unless another is given: 10^(-3)/max(beta, 1).

    Point clusters never meet: near each other their angle a falls like e^(-t). An end is a convention, and it has to
    be so near that nothing else depends on it. One particle in the place of a pair of equal masses changes the force on
    others by the relative error (beta^2 + 3 beta + 1)/2 (a/2)^2 (`coarse_graining_error`), which is 7e-7 at most here.
    The simulator has the same default: beta a = sqrt(tol) with the tolerance 10^(-6) of log t.
    """
    return 1e-3 / np.maximum(beta, 1.0)


@formula(angle=ANGLE, beta=BETA, masses=MASSES, model=MODEL, relative=1e-13)
def meeting_point(
    angle: ArrayLike, beta: ArrayLike, *, masses: ArrayLike = (0.5, 0.5), model: str = "SA"
) -> np.ndarray:
    """Angle that cluster 1 travels towards cluster 2 until they meet, of the initial `angle`.

    USA, USA0: the mass mean, angle m2/(m1+m2), exactly. SA: the integral over (0, angle) of
    m2 (m2 + m1 q)/(m1^2 + m2^2 + 2 m1 m2 q), q = e^{-beta (1 - cos)}; only the ratio of the masses matters, and the
    clusters are alone (two-body reduction of arXiv:2410.06833).

    Arguments:
        angle: angles at the start, broadcast with `beta`.
        beta: inverse temperatures.
        masses: two masses.
        model: "SA", "USA0" or "USA".
    """
    m1, m2 = checked_pair(masses)
    if model != "SA":
        return np.broadcast_arrays(angle * (m2 / (m1 + m2)), beta)[0].copy()
    return integral_over_angles(lambda q: closing_shares(q, m1, m2)[0], angle, beta)


def closing_shares(q: np.ndarray, m1: float, m2: float) -> tuple[np.ndarray, np.ndarray]:
    """Shares of the closing that clusters 1 and 2 of SA do, where the weight of the other is q = e^(-beta u)."""
    first, second = m2 / m1 + q, m1 / m2 + q
    return first / (first + second), second / (first + second)


def integral_over_angles(function: Callable[[np.ndarray], np.ndarray], angle: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """The integral over (0, `angle`) of a positive function of q = e^(-beta (1 - cos)), which is constant for q = 0."""
    widths = np.sqrt(np.concatenate([[0.25, 1.0, 2.0], np.arange(5.0, 800.0, 30.0)]))  # sqrt(2 beta u)
    points = widths / np.sqrt(np.maximum(beta, 1e-3))[..., None]
    return integral(lambda theta, b: function(np.exp(-2 * b * np.sin(theta / 2) ** 2)), 0.0, angle, beta, points=points)


@formula(angle=ANGLE, masses=MASSES, relative=2e-15)
def meeting_point_limit(angle: ArrayLike, *, masses: ArrayLike = (0.5, 0.5)) -> Numbers:
    """Limit beta -> infinity of the SA `meeting_point`: angle m2^2/(m1^2 + m2^2), with an error O(beta^{-1/2})."""
    m1, m2 = checked_pair(masses)
    return angle * closing_shares(np.asarray(0.0), m1, m2)[0]


@formula(beta=Reals(0.0, 1e150), angle=Reals(0.0, math.pi), spread2=Reals(0.0), relative=4e-15)
def coarse_graining_error(beta: ArrayLike, angle: ArrayLike, spread2: ArrayLike) -> Numbers:
    """Bound on the relative error of the USA0 force of a tight cluster when one particle stands for it.

    (beta^2 sin^2(angle) + 3 beta + 1) spread2 / 2. It is the leading order in the spread, so a bound of 1 or more is no
    bound and is refused (cf. arXiv:2410.06833).

    Arguments:
        beta: inverse temperature.
        angle: angle from the centre of the cluster to the particle that feels the force.
        spread2: tr S, the mass-weighted mean square of the tangent deviations from the centre.
    """
    bound = 0.5 * ((beta * np.sin(angle)) ** 2 + 3 * beta + 1) * spread2
    if np.any(bound >= 1):
        raise InvalidInput(
            f"`spread2` is {shown(spread2.tolist())}; the error of the expansion would reach 1, give smaller clusters."
        )
    return bound


def log_pull_integral(start: ArrayLike, way: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """Logarithm of the integral of e^(2 beta sigma(z)) dz from `start` - `way` to `start`, sigma(z) = 1/(1 + e^(-z)).

    Half of it is the time in which a pair of USA0 with masses adding to 1 falls by `way` in z = log(u/(2 - u)), u = 1 -
    cos(angle).
    """
    start, way, beta = (np.asarray(part, dtype=np.float64) for part in (start, way, beta))
    return np.asarray(2 * beta * expit(start) + _log_relative_integral(start, way, beta))


def _log_relative_integral(
    start: Any, way: Any, beta: Any, *arguments: Any, log_share: Callable[..., np.ndarray] | None = None
) -> np.ndarray:
    """Log of the integral of e^(beta (u(z) - u(start)) + log_share(u, beta, *arguments)) over `way` below `start`.

    u = 2 sigma(z). The exponent is taken from its value at the start, where it is largest, so that it is not a
    difference of large numbers.
    """
    parts = [np.asarray(part, dtype=np.float64) for part in (start, way, beta, *arguments)]
    parts = list(np.broadcast_arrays(*parts))
    shape, flat = parts[0].shape, [part.ravel() for part in parts]

    def log_height(s: np.ndarray, start: np.ndarray, beta: np.ndarray, *values: np.ndarray) -> np.ndarray:
        """At the way s from the start."""
        height = 2 * beta * expit(start) * expit(s - start) * np.expm1(-s)
        return np.asarray(height if log_share is None else height + log_share(2 * expit(start - s), beta, *values))

    blocks = [np.empty(0)]
    for first in range(0, flat[0].size, BLOCK):
        start, way, beta, *values = (part[first : first + BLOCK] for part in flat)
        points = _landmarks(start, beta)
        blocks.append(log_integral(log_height, 0.0, way, start, beta, *values, points=points))
    return np.concatenate(blocks).reshape(shape)


def _landmarks(start: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Ways from `start` where e^(2 beta sigma(z)) falls from its peak, and where 2 sigma goes from 2 to 0."""
    steepness = 2 * beta * expit(start) * expit(-start)
    return np.concatenate(
        [
            np.arange(5, 45, 5) / np.maximum(steepness, 1e-300)[..., None],
            (start + 0 * beta)[..., None] + np.arange(-40, 45, 5),
        ],
        axis=-1,
    )


def _way(angle: Any, until: Any) -> np.ndarray:
    """z0 - z1 for z = log(u/(2-u)) = 2 log tan(angle/2), the clock in which free motion (beta = 0) is uniform.

    The quotient of the tangents is 1 + sin((angle - until)/2)/(cos(angle/2) sin(until/2)): angles that are close to
    each other cost no digits. Where it leaves the range of floats the logarithms are far apart.
    """
    with np.errstate(over="ignore"):
        quotient = np.sin((angle - until) / 2) / (np.cos(angle / 2) * np.sin(until / 2))
    logs = np.log(np.tan(angle / 2)) - np.log(np.tan(until / 2))
    return np.asarray(2 * np.where(quotient < 1e15, np.log1p(np.minimum(quotient, 1e15)), logs))


def checked_pair(masses: np.ndarray) -> tuple[float, float]:
    """Two masses."""
    if masses.shape != (2,):
        raise InvalidInput(f"`masses` is {shown(masses.tolist())}; give two positive numbers.")
    return float(masses[0]), float(masses[1])
