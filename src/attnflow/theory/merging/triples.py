"""Two clusters to higher order, and three clusters on a great circle: delay, asymmetry, competing neighbours."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import MODEL, Integers, Other, Reals, Word, formula
from attnflow.special.integrals import integral, log_integral
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.merging.pairs import MASSES, checked_pair
from attnflow.wording import shown

ANGLE = Reals(1e-60, math.pi, ends="left", scalar=True)
BETA = Reals(0.0, 1e6, scalar=True)
MODELS = Word(("SA", "USA0"))
THREE_MASSES = Reals(0.0, 1e50)


@formula(
    angle=Reals(1e-60, math.pi, ends="left"),
    beta=Reals(1e-30, 1e300),
    masses=MASSES,
    model=MODEL,
    terms=Integers(1, 3, scalar=True),
    relative=4e-15,
    absolute=2e-12,
)
def log_merge_time_expansion(
    angle: ArrayLike, beta: ArrayLike, *, masses: tuple[float, float] = (0.5, 0.5), model: str = "SA", terms: int = 2
) -> Numbers:
    """The first terms of `log_merge_time` for large beta: log of e^{beta u}/(R beta sin^2) (1 + c1/beta + c2/beta^2).

    u = 1 - cos(angle); R = m1 + m2 (USA0) or m1/m2 + m2/m1 (SA); c1 = 2 cos/sin^2 and c2 = (2 + 8 cot^2)/sin^2, from
    integrating e^{beta u}/(u (2 - u)) by parts. What is left out is of the next order in 1/beta,
    besides about (R/r) beta sin^2 e^{-beta u} log(angle/until), r = m1 + m2 (USA0) or 1 (SA): the way along which the
    clusters are near each other, which alone depends on the angle `until` at which they count as one. It is large
    where beta u is not: at beta u = 4.6, angle 0.8 and until = 10^(-3)/beta the log is off by 0.8 (SA). NaN where the
    terms add to less than 1e-3, which is no expansion.

    Arguments:
        angle: angles at the start, broadcast with `beta`.
        beta: inverse temperatures.
        masses: two masses.
        model: the clock, "SA", "USA0" or "USA".
        terms: number of terms.
    """
    m1, m2 = checked_pair(np.asarray(masses))
    rate = m1 / m2 + m2 / m1 if model == "SA" else m1 + m2
    sin, cos = np.sin(angle), np.cos(angle)
    first = 2 * (cos / beta) / sin**2 if terms > 1 else np.zeros(())
    second = 2 / (beta * sin) ** 2 + 2 * first**2 if terms > 2 else 0.0
    series = 1 + first + second
    top = -beta * cos if model == "USA" else 2 * beta * np.sin(angle / 2) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.where(series > 1e-3, np.log(series), np.nan)
    return np.asarray(top - (np.log(rate) + np.log(beta) + 2 * np.log(sin)) + logs)[()]


@formula(angle=ANGLE, beta=Reals(0.0, 1e100, scalar=True), masses=MASSES, model=MODEL, relative=4e-15, absolute=1e-11)
def log_pair_escape_rate(angle: float, beta: float, masses: tuple[float, float], *, model: str = "SA") -> float:
    """Log of the rate at which the closing of two clusters grows: the derivative of the closing speed as they approach.

    USA0: M (beta sin^2 - cos) e^{-beta u}, M = m1 + m2. SA: e^{-beta u} sum over both clusters of
    m' (beta sin^2 m/(m + m' q) - cos)/(m + m' q) with q = e^{-beta u}. NaN where it is not positive: closer than the
    angle at which the pull is largest (cos = beta sin^2 for USA0) the closing slows down.

    Arguments:
        angle: angle between the clusters.
        beta: inverse temperature.
        masses: two masses.
        model: the clock, "SA", "USA0" or "USA".

    Raises:
        NotAccurate: where the terms cancel to 1e-4 of their size.
    """
    m1, m2 = checked_pair(np.asarray(masses))
    steep, cos, u = beta * math.sin(angle) * math.sin(angle), math.cos(angle), 2 * math.sin(angle / 2) ** 2
    if model == "SA":
        q, terms = math.exp(-beta * u), []
        for mine, other in ((m1, m2), (m2, m1)):
            # other/(mine + other q) and mine/(mine + other q)
            terms += [steep / (mine / other + q) / (1 + other / mine * q), -cos / (mine / other + q)]
    else:
        terms = [(m1 + m2) * steep, -(m1 + m2) * cos]
    rate = math.fsum(terms)
    if abs(rate) < 1e-4 * math.fsum(map(abs, terms)):
        raise NotAccurate("the angle is so near that of the largest pull that rounding decides about the rate.")
    if rate < 0:
        return math.nan
    return math.log(rate) + (beta * cos if model == "USA" else -beta * u)


@formula(
    place=Other("a function of the angle between clusters 0 and 1 that gives the positions of all three"),
    masses=THREE_MASSES,
    start=ANGLE,
    end=ANGLE,
    beta=BETA,
    model=MODELS,
    relative=1e-14,
    absolute=1e-12,
)
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

    The integral of 1/speed over log(angle), with e^{beta u} taken out, u = 1 - cos(angle). Where the pulls of the third
    cluster on both nearly cancel, their difference is taken from the angle, not from the positions.

    Arguments:
        place: positions on the circle of clusters 0, 1 and 2 when clusters 0 and 1 are at an angle, of an array of
            angles.
        masses: masses of the clusters; that of the third may be 0.
        start: angle at the start.
        end: angle at the end, below `start`.
        beta: inverse temperature.
        model: "SA" or "USA0".

    Raises:
        InvalidInput: if the third cluster pulls so much that the two do not close all the way.
    """
    return _closing(place, masses, start, end, beta, model)[0]


def _closing(
    place: Callable[[Any], Any], masses: Any, start: float, end: float, beta: float, model: str
) -> tuple[float, float]:
    """`log_closing_time`, and what the third cluster adds to it."""
    if masses.shape != (3,) or not np.all(masses[:2] > 0):
        raise InvalidInput(f"`masses` is {shown(masses.tolist())}; give three, the first two above 0.")
    if not end < start:
        raise InvalidInput(f"`end` is {end!r} and `start` is {start!r}; they must obey 0 < end < start.")
    m0, m1, m2 = masses.tolist()

    def speeds(s: Any) -> tuple[Any, Any, Any]:
        """Log of e^(-beta u)/angle, the speed of the two alone and what the third adds, both over e^(-beta u)/angle."""
        angle = start * np.exp(-s)
        positions = place(angle)
        far = positions[2] - positions[1]  # cluster 2 from cluster 1; it is far + angle from cluster 0
        half, u = np.sin(angle / 2), 2 * np.sin(angle / 2) ** 2
        q, sine = np.exp(-beta * u), np.sin(angle) / angle
        n0, n1 = (m0 + m1 * q, m1 + m0 * q) if model == "SA" else (1.0, 1.0)
        alone = (m1 / n0 + m0 / n1) * sine
        if m2 == 0:
            return beta * u, alone, 0.0 * alone
        # u of the third cluster to 1, and by how much that to 0 is larger
        u1, more = 2 * np.sin(far / 2) ** 2, 2 * np.sin(far + angle / 2) * half
        y1, pull1 = np.exp(-beta * u1), np.exp(beta * (u - u1))
        fall = np.expm1(-beta * more)
        # differences, of cluster 0 less cluster 1, over the angle: of the sines, and of the pulls of the third
        turn = 2 * np.cos(far + angle / 2) * half / angle
        change = pull1 * ((1 + fall) * turn + fall / angle * np.sin(far))
        if model == "USA0":
            return beta * u, alone, m2 * change
        y0 = y1 * (1 + fall)
        e0, e1 = n0 + m2 * y0, n1 + m2 * y1
        # 1/e0 - 1/e1 = (e1 - e0)/(e0 e1)
        gap = (m1 - m0) * -np.expm1(-beta * u) / angle - m2 * y1 * fall / angle
        third = m2 * (change / e0 + pull1 * np.sin(far) * (gap / e0 / e1))
        slower = -(m1 * (m2 * y0) / (n0 * e0) + m0 * (m2 * y1) / (n1 * e1)) * sine
        return beta * u, alone, third + slower

    way = math.log(start / end) if start > 2 * end else math.log1p((start - end) / end)
    top = 2 * beta * math.sin(start / 2) ** 2
    # e^(beta u) falls on the scale 1/(beta angle sin); the third cluster acts where its u is less
    points = np.arange(2, 40, 2) / max(2 * beta * start * math.sin(start / 2), 1e-3)

    def log_slowness(s: Any) -> np.ndarray:
        grown, alone, third = speeds(s)
        return np.asarray(grown - top - np.log(alone + third))

    marks = np.concatenate([np.linspace(0.0, way, 2001), points[points < way]])
    _, alone, third = speeds(marks)
    if not np.all(alone + third > 0):
        raise InvalidInput(f"`masses` is {shown(masses.tolist())}; the third cluster keeps the other two from closing.")
    with np.errstate(all="ignore"):
        log_time = float(log_integral(log_slowness, 0.0, way, points=points))

        def loss(s: Any) -> np.ndarray:
            grown, alone, third = speeds(s)
            return np.asarray(-third / alone * np.exp(grown - top - log_time) / (alone + third))

        # T3 - T2 over T3, so that log(T3/T2) = -log(1 - it)
        lost = 0.0 if m2 == 0 else float(integral(loss, 0.0, way, points=points, rtol=1e-11))
    return top + log_time, -math.log1p(-lost)


class Delay(NamedTuple):
    """What a third cluster adds to log T, and a bound on the error of that."""

    value: float
    error: float


@formula(
    angle=ANGLE,
    far=ANGLE,
    masses=THREE_MASSES,
    beta=Reals(0.0, 1e4, scalar=True),
    until=ANGLE,
    model=MODELS,
    relative="1e-11 * (10 + beta)",
    absolute=1e-15,
)
def third_cluster_delay(
    angle: float, far: float, masses: tuple[float, float, float], *, beta: float, until: float, model: str = "SA"
) -> Delay:
    """What a third cluster, at `far` beyond cluster 1, adds to log T of the merge of clusters 0 and 1 at `angle`.

    Clusters 0 and 1 have equal masses, so that each travels half the angle. The pair is taken along this path, and only
    its speed is that of three clusters (`log_closing_time`). Meanwhile the third cluster and the pair approach each
    other by at most `shift` = (pull of both) e^{log T - beta u(far)}; the pull of the third, of which the logarithm has
    a slope of at most beta + 1/sin, changes by that factor.

    Arguments:
        angle: angle of clusters 0 and 1.
        far: angle of clusters 1 and 2.
        masses: three masses, the first two equal; with a third of 0 nothing is added.
        beta: inverse temperature.
        until: angle at which two clusters count as one, below `angle`.
        model: "SA" or "USA0".

    Raises:
        InvalidInput: if the third cluster keeps the other two from closing.
    """
    weights = np.asarray(masses)
    if weights.shape != (3,) or weights[0] != weights[1]:
        raise InvalidInput(f"`masses` is {shown(weights.tolist())}; give three, of which the first two are equal.")

    def place(t: Any) -> Any:
        return (angle - t) / 2, (angle + t) / 2, angle + far

    three, value = _closing(place, weights, angle, until, beta, model)
    m0, m1, m2 = weights.tolist()
    if m2 == 0:
        return Delay(0.0, 0.0)
    pull = m2 + m0 + m1 if model == "USA0" else m2 / m1 + (m0 + m1) / m2
    log_shift = math.log(pull) + three - 2 * beta * math.sin(far / 2) ** 2
    log_change = math.log(beta + 1 / math.sin(far)) + log_shift
    return Delay(value, value * math.expm1(math.exp(log_change)) if log_change < math.log(700) else math.inf)


@formula(
    start=ANGLE,
    end=ANGLE,
    beta=BETA,
    outer=Reals(1e-3, 1e3, scalar=True),
    middle=Reals(1e-3, 1e3, scalar=True),
    model=MODELS,
    relative=1e-12,
    absolute="1e-13 * (1 + outer/middle) * (1 + beta) * (10 + np.log(start/end))",
)
def log_asymmetry_growth(
    start: float, end: float, beta: float, *, outer: float, middle: float, model: str = "SA"
) -> float:
    """Log of the growth of a small asymmetry of three clusters at -r, e, r, while r falls from `start` to `end`.

    The outer two have the mass m, the middle one M. With q(r) = e^{-beta (1 - cos r)} and g = q sin, the distance falls
    as r' = -v and the offset e of the middle cluster from the mean of the others obeys e' = -(2 m g'(r)/Z + w) e:
    USA0: v = M g(r) + m g(2r), w = M g'(r), Z = 1. SA: v = (M g(r) + m g(2r))/N with N = m + M q(r) + m q(2r),
    w = (M g'(r) - v M q'(r))/N (the distance 2r of the outer ones does not change to first order), Z = M + 2 m q(r).
    So the log growth is -int_end^start (2 m g'/Z + w)/v dr: it rises like beta u of the start, and falls like log r at
    the end.

    Arguments:
        start: distance r at the start.
        end: distance at the end, below `start`.
        beta: inverse temperature.
        outer: mass of each of the outer clusters.
        middle: mass of the middle cluster.
        model: "SA" or "USA0".

    Raises:
        InvalidInput: if the outer clusters do not approach the middle one at the start.
    """
    if not end < start:
        raise InvalidInput(f"`end` is {end!r} and `start` is {start!r}; they must obey 0 < end < start.")

    def rate(s: Any) -> tuple[Any, Any]:
        """The pull and -d(log asymmetry)/ds + 2 at r = start e^(-s)."""
        r = start * np.exp(-s)
        cos, u = np.cos(r), 2 * np.sin(r / 2) ** 2
        # in units of q(r) sin(r): the pull; in units of q(r): g'
        pull = middle + 2 * outer * cos * np.exp(-beta * 2 * np.sin(1.5 * r) * np.sin(r / 2))
        slope, ratio = cos - beta * np.sin(r) ** 2, r / np.sin(r)
        if model == "USA0":
            return pull, 2 - (2 * outer + middle) * slope / pull * ratio
        q = np.exp(-beta * u)
        wide = np.exp(-beta * 2 * np.sin(r) ** 2)
        total = outer + middle * q + outer * wide
        speed = pull / total * np.sin(r)
        fall = -beta * np.sin(r)
        w = 2 * outer * slope / (middle + 2 * outer * q) + (middle * slope - speed * middle * q * fall) / total
        return pull, 2 - w * total / pull * ratio

    way = math.log(start / end) if start > 2 * end else math.log1p((start - end) / end)
    points = np.concatenate([np.linspace(0, way, 9)[1:-1], [0.5 * math.log1p(beta * start**2)]])
    with np.errstate(all="ignore"):
        if not float(rate(0.0)[0]) > 0:
            raise InvalidInput(
                f"`start` is {start!r}; the outer clusters do not approach the middle one, give a smaller one."
            )
        # 2 is added as the growth falls like -s near the end: the integral of both has no cancelling parts
        return float(integral(lambda s: rate(s)[1], 0.0, way, points=points)) - 2 * way


class Balance(NamedTuple):
    """The largest angle at which the middle cluster merges with its first neighbour, and its uncertainty."""

    angle: float
    error: float


@formula(
    a=Reals(1e-100, math.pi, ends="left", scalar=True),
    b=Reals(1e-100, math.pi, ends="left", scalar=True),
    masses=Reals(1e-50, 1e50),
    beta=Reals(1e-3, 1e100, scalar=True),
    relative=1e-11,
)
def neighbour_balance(a: float, b: float, masses: tuple[float, float, float], *, beta: float) -> Balance:
    """SA, three clusters on a great circle, the middle one (mass m) at `a` from the first and at `b` from the third.

    With A and B the masses of its neighbours and y = e^{-beta u}, a' = -(A/m + m/A) y_a sin a + (B/m) y_b sin b, and
    b' likewise. So y_a and y_b obey quadratic equations while sin a and sin b keep, and neither neighbour wins where
    y_a/y_b = (sin^2 b (B/m + m/B) + sin a sin b B/m)/(sin^2 a (A/m + m/A) + sin a sin b A/m). This gives the angle to
    the first neighbour at which the middle cluster is undecided. While it is decided angles change by about
    1/(beta sin), the sines by |cot| of it, and twice that is the uncertainty.

    Arguments:
        a: angle of the middle cluster to the first.
        b: angle of the middle cluster to the third.
        masses: masses of the first, the middle and the third cluster.
        beta: inverse temperature.

    Raises:
        InvalidInput: if one neighbour wins at every angle.
        NotAccurate: if rounding decides about the angle.
    """
    weights = np.asarray(masses)
    if weights.shape != (3,):
        raise InvalidInput(f"`masses` is {shown(weights.tolist())}; give three positive numbers.")
    first, m, third = weights.tolist()
    sines = math.sin(b) / math.sin(a)
    ratio = (sines * (third / m + m / third) + third / m) / ((first / m + m / first) / sines + first / m)
    slant = abs(math.cos(a)) / math.sin(a) ** 2 + abs(math.cos(b)) / math.sin(b) ** 2
    near, shift = math.sin(b / 2) ** 2, math.log(ratio) / (2 * beta)
    half = near - shift  # (1 - cos)/2 of the angle
    if 4e-16 * (near + abs(shift) + 4 / beta) > 1e-12 * abs(half) * abs(1 - half):
        raise NotAccurate("the angle is so near 0 or pi, or such a small difference, that rounding decides about it.")
    if not 0 <= half <= 1:
        winner = "third" if half < 0 else "first"
        raise InvalidInput(
            f"`masses` is {shown(weights.tolist())}; the {winner} neighbour wins at every angle, give a larger beta."
        )
    return Balance(2 * math.asin(math.sqrt(half)), 2 * slant / beta / beta / math.sin(b))
