"""Two clusters while the weights change with depth: a beta that grows, and a V with a skew part."""

import itertools
import math
from typing import Any

import numpy as np
from scipy.special import expit

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.curves import curve
from attnflow.special.formula import Reals, Word, formula
from attnflow.special.integrals import log_integral
from attnflow.special.numbers import ArrayLike
from attnflow.special.roots import root
from attnflow.theory.merging.pairs import LARGEST_LOG, checked_pair


@formula(
    angle=Reals(0.0, math.pi, ends="none", scalar=True),
    beta=Reals(0.0, 1e6, scalar=True),
    relative=1e-9,
)
def freezing_rate(angle: float, beta: float) -> float:
    """Rate r of beta(t) = `beta` + r t above which two clusters (USA0, masses adding to 1) never merge.

    With u = 1 - cos(angle), du/dbeta = -(1/r) e^(-beta u) u (2 - u). Below the rate the clusters merge, above it they
    stop at a positive angle: attention gets sharp faster than the clusters close. Between the two lies the trajectory
    along which e^(beta u) = (2 beta/r)(1 + o(1)), the only one that neither merges nor stops. It attracts backwards in
    beta, so it is followed back from large beta, and r is the rate at which it comes from `angle`. Derived here.

    Arguments:
        angle: angle between the clusters at the start.
        beta: inverse temperature at the start; rates below 1e-300 are refused.
    """
    start = 2 * math.log(math.tan(angle / 2))  # Z = log(u/(2 - u))
    u = 2 * math.sin(angle / 2) ** 2
    guess = math.log(3.4 / u + 2 * beta) - beta * u
    log_rate = float(root(lambda r: critical_start(float(r), beta) - start, guess - 0.5, guess + 0.5))
    if log_rate < -690:
        raise InvalidInput(
            f"`angle` is {angle!r} and `beta` is {beta!r}; the rate e^{log_rate:.0f} leaves the range of floats."
        )
    return math.exp(log_rate)


def critical_start(log_rate: float, beta: float) -> float:
    """Z = log(u/(2 - u)) at `beta` on the trajectory between merging and stopping, for the rate e^`log_rate`.

    In w = log(beta + r) it obeys dZ/dw = -2 exp(w - log r - 2 beta sigma(Z)). Its start at large beta is off by a
    relative e^(-45) when it arrives, as errors decay like exp(-int y dw) with y = beta u.
    """
    rate, last = math.exp(log_rate), np.logaddexp(math.log(beta) if beta > 0 else -math.inf, log_rate)
    late = max(math.log(2) + float(last) - log_rate, 0.0)
    first = last - late + math.sqrt(late**2 + 90.0)  # int y dw = 45 for y = late + w - last
    far = math.exp(first) - rate
    y = max(math.log(2 * far) - log_rate, 2.0)
    for _ in range(50):
        y = max(math.log(2 * far) - log_rate + math.log1p(-min(y / (2 * far), 0.5)) - math.log1p(-1 / y), 1.5)

    def slope(w: float, state: np.ndarray) -> np.ndarray:
        return -2 * np.exp(w - log_rate - 2 * (math.exp(w) - rate) * expit(state))

    arrival = curve(slope, math.log(y / (2 * far - y)), [first, last], rtol=1e-11, atol=1e-11, method="LSODA")
    return float(arrival[0, -1])


@formula(
    angle=Reals(0.0, math.pi, ends="none", scalar=True),
    beta=Reals(0.0, 1e8, scalar=True),
    skew=Reals(-1e100, 1e100, scalar=True),
    masses=Reals(1e-50, 1e50),
    until=Reals(0.0, math.pi, ends="none", scalar=True),
    model=Word(("USA0", "SA")),
    relative=1e-11,
)
def skew_merge_time(
    angle: float, beta: float, skew: float, *, masses: ArrayLike, until: float = 0.01, model: str = "USA0"
) -> float:
    """Time of two clusters under V = I + `skew` J, J a turn by 90 degrees, to the angle `until`, either way round.

    The angle of cluster 1 ahead of cluster 2 obeys, with q = e^(-beta (1 - cos)),
    USA0: angle' = -q sin(angle) + skew (m1 - m2)(1 - q cos(angle)), masses adding to 1: clusters turn at speeds
    proportional to their masses, so unequal clusters lap each other and no plateau outlasts 2 pi/(skew |m1 - m2|).
    SA: angle' = -sin(angle)(h1 + h2) + skew q (1 - cos(angle)) [m1/(m2 + m1 q) - m2/(m1 + m2 q)], with
    h1 = m2 q/(m1 + m2 q) and h2 = m1 q/(m2 + m1 q): the drift is exponentially small too. V = I + skew J is not a
    rotating frame. Derived here.

    Arguments:
        angle: angle at the start.
        beta: inverse temperature.
        skew: weight of J.
        masses: two masses, divided by their sum.
        until: angle at the end, below `angle`.
        model: "SA" or "USA0".

    Raises:
        InvalidInput: if the time is outside the range of floats.
        NotAccurate: if the start is an equilibrium, or so near it that rounding decides about the time.
    """
    m1, m2 = checked_pair(masses)
    if until >= angle:
        raise InvalidInput(f"`until` is {until!r} and `angle` is {angle!r}; they must obey 0 < until < angle.")
    turn = skew * (m1 - m2) / (m1 + m2)
    m1, m2 = m1 / (m1 + m2), m2 / (m1 + m2)

    def forces(t: Any, side: float) -> tuple[Any, Any, Any]:
        """Log of a common factor of both forces, the attraction and the turn, at the angle `side` t modulo 2 pi."""
        fall, u = 2 * beta * np.sin(t / 2) ** 2, 2 * np.sin(t / 2) ** 2
        q = np.exp(-fall)
        if model == "SA":
            common = -fall - np.log((m2 + m1 * q) * (m1 + m2 * q))
            return common, -side * np.sin(t) * (m1**2 + m2**2 + 2 * m1 * m2 * q), turn * u
        if turn == 0:
            return -fall, -side * np.sin(t), 0.0 * t
        return 0.0 * t, -side * np.sin(t) * q, turn * (u * q - np.expm1(-fall))

    def log_time(nearer: float, farther: float, side: float) -> float:
        """Log of the time between two angles, in log t below 1."""

        def log_slowness(y: Any) -> np.ndarray:
            t = np.where(y < 0, np.exp(np.minimum(y, 0.0)), 1 + y)
            common, attraction, drift = forces(t, side)
            return np.asarray(np.where(y < 0, y, 0.0) - common - np.log(np.abs(attraction + drift)))

        # y = log t below 1 and t - 1 above; the exponential changes on the scale 1/beta near both ends
        low, high = (math.log(t) if t < 1 else t - 1 for t in (nearer, farther))
        scale = 1 / (1 + beta * min(1.0, farther) * farther)
        steps = scale * 4.0 ** np.arange(-2, 12)
        parts = [low, *([0.0] if low < 0 < high else []), high]
        logs = [
            log_integral(log_slowness, left, right, points=np.concatenate([left + steps, right - steps]))
            for left, right in itertools.pairwise(parts)
        ]
        return float(np.logaddexp.reduce(logs))

    _, attraction, drift = (float(part) for part in forces(angle, 1.0))
    if abs(attraction + drift) <= 1e-4 * max(abs(attraction), abs(drift)):
        raise NotAccurate("the start is so near an equilibrium that rounding decides about the time.")
    # (1/q - cos)/sin grows from 0 to infinity on (0, pi): the speed has one sign on either way
    if attraction + drift < 0:
        log_total = log_time(until, angle, 1.0)
    else:
        ways = [(angle, math.pi, 1.0), (until, math.pi, -1.0)]
        log_total = float(np.logaddexp.reduce([log_time(*way) for way in ways]))
    if not -700 < log_total < LARGEST_LOG:
        raise InvalidInput(
            f"`beta` is {beta!r} and `skew` is {skew!r}; the time e^{log_total:.0f} leaves the range of floats."
        )
    return math.exp(log_total)
