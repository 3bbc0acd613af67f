"""The distributions of the merge time of two random tokens, and of the first merge of many."""

import math
from typing import Any

import numpy as np
from scipy import special as sp
from scipy.special import expit

from attnflow.errors import InvalidInput
from attnflow.special.formula import MODEL, Integers, Optional, Other, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.special.roots import root
from attnflow.theory.merging.pairs import log_times_of_ways, merging_angle

DIMENSION = Integers(2, 10_000, scalar=True)
COUNT = Integers(2, scalar=True)
END = Optional(Reals(1e-100, 3.0, scalar=True))
FARTHEST = 90.0
"""z = log(u/(2 - u)) of two points that are opposite to each other, to a float: their angle is pi - e^(-45)."""


@formula(angle=Reals(0.0, math.pi), d=DIMENSION, relative="2e-15 * (10 + d)")
def pair_angle_probability(angle: ArrayLike, d: int) -> Numbers:
    """Probability that two independent uniform points of S^{d-1} are at most `angle` apart.

    sin^2(angle/2) has the beta distribution with both parameters (d-1)/2: angle/pi on the circle and sin^2(angle/2) on
    S^2.
    """
    half = (d - 1) / 2
    return angle / np.pi if d == 2 else sp.betainc(half, half, np.sin(angle / 2) ** 2)


@formula(angle=Reals(0.0, math.pi), d=DIMENSION, n=COUNT, relative="4e-15 * (10 + d)")
def nearest_angle_probability(angle: ArrayLike, d: int, *, n: int) -> Numbers:
    """Probability that two of n independent uniform points of S^{d-1} are at most `angle` apart.

    On the circle 1 - (1 - n angle/(2 pi))^(n-1), at most 1: the least of n gaps. From d = 3 on
    1 - (1 - p)^(n(n-1)/2) with p = `pair_angle_probability`, as if all pairs were independent. They are so two by
    two: the formula is exact for n = 2. On S^2 it is off by 0.05 for n = 3, by 0.03 for n = 8 and by less for more
    tokens and dimensions (sampled in tests/theory/test_first_merge.py).

    Arguments:
        angle: angles.
        d: dimension of the space around the sphere.
        n: number of points.
    """
    if d == 2:
        share, power = n * angle / (2 * np.pi), n - 1.0
    else:
        share, power = pair_angle_probability(angle, d), n * (n - 1) / 2
    with np.errstate(divide="ignore"):
        return -np.expm1(power * np.log1p(-np.minimum(share, 1.0)))


@formula(q=Reals(0.0, 1.0, ends="left"), d=DIMENSION, n=COUNT, relative=4e-14)
def nearest_angle(q: ArrayLike, d: int, *, n: int) -> Numbers:
    """The angle that the nearest two of n independent uniform points of S^{d-1} have with probability q at most.

    The inverse of `nearest_angle_probability`.

    Arguments:
        q: probabilities.
        d: dimension of the space around the sphere.
        n: number of points.
    """
    if d == 2:
        return 2 * np.pi / n * -np.expm1(np.log1p(-q) / (n - 1))
    half, share = (d - 1) / 2, -np.expm1(2 / (n * (n - 1)) * np.log1p(-q))
    return 2 * np.arcsin(np.sqrt(sp.betaincinv(half, half, share)))


LOG_TIME = Other("numbers; minus infinity is time 0")


@formula(
    log_time=LOG_TIME,
    beta=Reals(0.0, 1e8, scalar=True),
    d=DIMENSION,
    n=COUNT,
    model=MODEL,
    until=END,
    relative="1e-15 * d * (1000 + beta)",
)
def first_merge_probability(
    log_time: ArrayLike, beta: float, d: int, *, n: int, model: str = "SA", until: float | None = None
) -> np.ndarray:
    """Probability that the first of n independent uniform tokens of S^{d-1}, of mass 1/n each, merge before e^log_time.

    The nearest two merge first, as if they were alone: the probability is `nearest_angle_probability` of the angle
    whose `log_merge_time` is `log_time`. For n = 2 that is exact. For more it needs other pairs to be slow,
    beta (1 - cos angle) well above 1 at the usual nearest angle (two-body reduction of arXiv:2410.06833): otherwise all
    tokens move at once. Tokens that start closer than `until` have merged at time 0.

    Arguments:
        log_time: natural logarithms of times.
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        n: number of tokens.
        model: the clock, "SA", "USA0" or "USA".
        until: angle at which two tokens count as one, `merging_angle(beta)` if left out.
    """
    times = np.asarray(log_time, dtype=np.float64)
    if np.isnan(times).any():
        raise InvalidInput("`log_time` has a value that is not a number.")
    end = float(merging_angle(beta)) if until is None else until
    # z = log(u/(2 - u)) at the end, and ways from there to pairs of any angle
    z = 2 * math.log(math.tan(end / 2))

    def excess(way: Any, log_time: Any) -> np.ndarray:
        """The log of the time in which a pair comes from z + way to z, less `log_time`."""
        top = beta * np.tanh((z + way) / 2) if model == "USA" else 2 * beta * expit(z + way)
        return np.asarray(top + log_times_of_ways(z + way, way, beta, 1 / n, 1 / n, model) - log_time)

    grid = np.append(1e-25, np.linspace(0.0, FARTHEST - z, 200)[1:])
    cells = np.searchsorted(excess(grid, 0.0), times)
    ways, inside = np.where(cells > 0, grid[-1], 0.0), (cells > 0) & (cells < len(grid))
    if inside.any():
        ways[inside] = root(
            excess, grid[cells[inside] - 1], grid[cells[inside]], times[inside], smallest=grid[0], largest=grid[-1]
        )
    angles = np.minimum(2 * np.arctan(np.exp((z + ways) / 2)), np.pi)
    return np.asarray(nearest_angle_probability(angles, d, n=n))


@formula(
    log_time=LOG_TIME,
    beta=Reals(0.0, 1e8, scalar=True),
    d=DIMENSION,
    model=MODEL,
    until=END,
    relative="1e-15 * d * (1000 + beta)",
)
def pair_time_probability(
    log_time: ArrayLike, beta: float, d: int, *, model: str = "SA", until: float | None = None
) -> np.ndarray:
    """Probability that two independent uniform tokens of S^{d-1}, of mass 1/2 each, merge before e^log_time.

    The merge time increases with the angle, so the probability is `pair_angle_probability` of the angle whose
    `log_merge_time` is `log_time`: `first_merge_probability` for n = 2, where it is exact.

    Arguments:
        log_time: natural logarithms of times.
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        model: the clock, "SA", "USA0" or "USA".
        until: angle at which two tokens count as one, `merging_angle(beta)` if left out.
    """
    return first_merge_probability(log_time, beta, d, n=2, model=model, until=until)
