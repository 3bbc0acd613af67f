"""Two clusters to higher order, and three clusters on a great circle: delay, asymmetry, competing neighbours."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_beta, checked_model

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def log_merge_time_expansion(
    angle: ArrayLike, beta: ArrayLike, *, masses: tuple[float, float] = (0.5, 0.5), model: str = "SA", terms: int = 2
) -> Numbers:
    """The first terms of `log_merge_time` for large beta: log of e^{beta u}/(R beta sin^2) (1 + c1/beta + c2/beta^2).

    u = 1 - cos(angle); R = m1 + m2 (USA0) or m1/m2 + m2/m1 (SA); c1 = 2 cos/sin^2 and c2 = (2 + 8 cot^2)/sin^2, from
    integrating e^{beta u}/(u (2 - u)) by parts. `terms` is 1, 2 or 3; what is left out is of the next order in 1/beta,
    besides about (R/r) beta sin^2 e^{-beta u} log(angle/until), r = m1 + m2 (USA0) or 1 (SA): the way along which the
    clusters are near each other, which alone depends on the angle `until` at which they count as one. It is large
    where beta u is not: at beta u = 4.6, angle 0.8 and until = 10^(-3)/beta the log is off by 0.8 (SA).
    """
    angles, betas = np.asarray(angle, dtype=np.float64), checked_beta(beta)
    if terms not in (1, 2, 3):
        raise InvalidInput(f"terms is {terms!r}; use 1, 2 or 3.")
    m1, m2 = masses
    rate = m1 / m2 + m2 / m1 if checked_model(model) == "SA" else m1 + m2
    f, cos = 1 / np.sin(angles) ** 2, np.cos(angles)
    series = (
        1 + (2 * cos * f / betas if terms > 1 else 0.0) + ((2 * f + 8 * cos**2 * f**2) / betas**2 if terms > 2 else 0)
    )
    clock = betas if model == "USA" else 0.0
    return 2 * betas * np.sin(angles / 2) ** 2 - np.log(rate * betas / f) + np.log(series) - clock


def log_pair_escape_rate(angle: float, beta: float, masses: tuple[float, float], *, model: str = "SA") -> float:
    """Log of the rate at which the closing of two clusters grows: the derivative of the closing speed as they approach.

    USA0: M (beta sin^2 - cos) e^{-beta u}, M = m1 + m2. SA: e^{-beta u} sum over both clusters of
    m' (beta sin^2 m/(m + m' q) - cos)/(m + m' q) with q = e^{-beta u}. NaN where it is not positive: closer than the
    angle at which the pull is largest (cos = beta sin^2 for USA0) the closing slows down.
    """
    m1, m2 = masses
    steep, cos, u = beta * math.sin(angle) ** 2, math.cos(angle), 2 * math.sin(angle / 2) ** 2
    if checked_model(model) == "SA":
        q, rate = math.exp(-beta * u), 0.0
        for mine, other in ((m1, m2), (m2, m1)):
            total = mine + other * q
            rate += other / total * (steep * mine / total - cos)
    else:
        rate = (m1 + m2) * (steep - cos)
    return math.log(rate) - beta * u + (beta if model == "USA" else 0.0) if rate > 0 else math.nan


def log_closing_time(
    place: Callable[[Any], Any],
    masses: tuple[float, float, float],
    *,
    start: float,
    end: float,
    beta: float,
    model: str,
) -> float:
    """Log of the time in which clusters 0 and 1 of three on a great circle come from the angle `start` to `end`.

    `place(angle)` are the positions of all three on the circle when clusters 0 and 1 are at `angle`. The integral of
    1/speed, with e^{beta u} taken out, by Gauss's rule with 16 nodes on panels that halve towards both ends.
    SA or USA0.
    """
    edges = np.concatenate([start - (start - end) * 0.5 ** np.arange(48), end * 2.0 ** np.arange(48), [start, end]])
    edges = np.unique(np.clip(edges, end, start))
    half = np.diff(edges)[:, None] / 2
    angle = edges[:-1, None] + half * (1 + NODES)
    u, top = 2 * np.sin(angle / 2) ** 2, 2 * np.sin(start / 2) ** 2
    x = place(angle)
    speed = []
    for q in (0, 1):
        apart = {p: x[p] - x[q] for p in range(3) if p != q}
        pull = sum(masses[p] * np.exp(beta * (u - 2 * np.sin(a / 2) ** 2)) * np.sin(a) for p, a in apart.items())
        if model == "SA":
            others = sum(masses[p] * np.exp(-2 * beta * np.sin(a / 2) ** 2) for p, a in apart.items())
            pull = pull / (masses[q] + others)
        speed.append(pull)
    return float(beta * top + np.log(np.sum(half * WEIGHTS * np.exp(beta * (u - top)) / (speed[0] - speed[1]))))


class Delay(NamedTuple):
    """What a third cluster adds to log T, and a bound on the error of that."""

    value: float
    error: float


def third_cluster_delay(
    angle: float, far: float, masses: tuple[float, float, float], *, beta: float, until: float, model: str = "SA"
) -> Delay:
    """What a third cluster, at `far` beyond cluster 1, adds to log T of the merge of clusters 0 and 1 at `angle`.

    Clusters 0 and 1 have equal masses, so that each travels half the angle. The pair is taken along this path, and only
    its speed is that of three clusters (`log_closing_time`). Meanwhile the third cluster and the pair approach each
    other by at most `shift` = (pull of both) e^{log T - beta u(far)}; the pull of the third, of which the logarithm has
    a slope of at most beta + 1/sin, changes by that factor.
    """
    m0, m1, m2 = masses
    if m0 != m1:
        raise InvalidInput(f"masses is {masses!r}; the first two clusters need equal masses.")

    def place(t: Any) -> Any:
        return (angle - t) / 2, (angle + t) / 2, angle + far

    three = log_closing_time(place, masses, start=angle, end=until, beta=beta, model=model)
    two = log_closing_time(place, (m0, m1, 0.0), start=angle, end=until, beta=beta, model=model)
    pull = m2 + m0 + m1 if model == "USA0" else m2 / m1 + (m0 + m1) / m2
    shift = pull * math.exp(three - 2 * beta * math.sin(far / 2) ** 2)
    change = (beta + 1 / math.sin(far)) * shift
    return Delay(three - two, (three - two) * math.expm1(change) if change < 700 else math.inf)


def log_asymmetry_growth(
    start: float, end: float, beta: float, *, outer: float, middle: float, model: str = "SA"
) -> float:
    """Log of the growth of a small asymmetry of three clusters at -r, e, r, while r falls from `start` to `end`.

    The outer two have the mass m, the middle one M. With q(r) = e^{-beta (1 - cos r)} and g = q sin, the distance falls
    as r' = -v and the offset e of the middle cluster from the mean of the others obeys e' = -(2 m g'(r)/Z + w) e:
    USA0: v = M g(r) + m g(2r), w = M g'(r), Z = 1. SA: v = (M g(r) + m g(2r))/N with N = m + M q(r) + m q(2r),
    w = (M g'(r) - v M q'(r))/N (the distance 2r of the outer ones does not change to first order), Z = M + 2 m q(r).
    So the log growth is -int_end^start (2 m g'/Z + w)/v dr: it rises like beta u of the start, and falls like log r at
    the end. Gauss's rule with 16 nodes.
    """
    checked_model(model)
    steps = np.linspace(end, start, math.ceil((start - end) * 2 * math.sqrt(1 + beta)) + 1)
    edges = np.unique(np.clip(np.concatenate([steps, end * 2.0 ** np.arange(60)]), end, start))
    half = np.diff(edges)[:, None] / 2
    r = edges[:-1, None] + half * (1 + NODES)
    sin, cos = np.sin(r), np.cos(r)
    # in units of q(r): g, g', q' and the pull of the outer ones on each other
    slope, fall = cos - beta * sin**2, -beta * sin
    wide = np.exp(-beta * (cos - np.cos(2 * r)))
    pull = middle * sin + outer * wide * np.sin(2 * r)
    q = np.exp(-2 * beta * np.sin(r / 2) ** 2)
    if model == "SA":
        total = outer + middle * q + outer * wide * q
        speed = pull / total
        rate = 2 * outer * slope / (middle + 2 * outer * q) + (middle * slope - speed * middle * q * fall) / total
    else:
        speed, rate = pull, (2 * outer + middle) * slope
    return -float(np.sum(half * WEIGHTS * rate / speed))


class Balance(NamedTuple):
    """The largest angle at which the middle cluster merges with its first neighbour, and its uncertainty."""

    angle: float
    error: float


def neighbour_balance(a: float, b: float, masses: tuple[float, float, float], *, beta: float) -> Balance:
    """SA, three clusters on a great circle, the middle one (mass m) at `a` from the first and at `b` from the third.

    With A and B the masses of its neighbours and y = e^{-beta u}, a' = -(A/m + m/A) y_a sin a + (B/m) y_b sin b, and
    b' likewise. So y_a and y_b obey quadratic equations while sin a and sin b keep, and neither neighbour wins where
    y_a/y_b = (sin^2 b (B/m + m/B) + sin a sin b B/m)/(sin^2 a (A/m + m/A) + sin a sin b A/m). This gives the angle to
    the first neighbour at which the middle cluster is undecided. While it is decided angles change by about
    1/(beta sin), the sines by |cot| of it, and twice that is the uncertainty.
    """
    first, m, third = masses
    cross = math.sin(a) * math.sin(b) / m
    ratio = math.sin(b) ** 2 * (third / m + m / third) + cross * third
    ratio /= math.sin(a) ** 2 * (first / m + m / first) + cross * first
    slant = abs(math.cos(a)) / math.sin(a) ** 2 + abs(math.cos(b)) / math.sin(b) ** 2
    half = math.sin(b / 2) ** 2 - math.log(ratio) / (2 * beta)  # (1 - cos)/2 of the angle
    if not 0 <= half <= 1:
        winner = "third" if half < 0 else "first"
        raise InvalidInput(f"masses is {masses!r}; the {winner} neighbour wins at every angle, give a larger beta.")
    return Balance(2 * math.asin(math.sqrt(half)), 2 * slant / (beta**2 * math.sin(b)))
