"""Two clusters while the weights change with depth: a beta that grows, and a V with a skew part."""

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import expit

from attnflow.errors import InvalidInput
from attnflow.special.curves import curve
from attnflow.special.formula import Reals, formula
from attnflow.special.roots import root
from attnflow.theory.checks import checked_beta, checked_model


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
    """
    b, start = float(checked_beta(beta)), float(angle)
    m1, m2 = (float(one) for one in np.asarray(masses, dtype=np.float64) / np.sum(masses))
    if checked_model(model) == "USA" or not 0 < until < start < np.pi:
        raise InvalidInput(f"model is {model!r} and angle is {angle!r}; use 'SA' or 'USA0' and until < angle < pi.")

    def speed(t: float) -> float:
        q, near = np.exp(-b * (1 - np.cos(t))), 1 - np.cos(t)
        if model == "USA0":
            return float(-q * np.sin(t) + skew * (m1 - m2) * (1 - q * np.cos(t)))
        close = m2 * q / (m1 + m2 * q) + m1 * q / (m2 + m1 * q)
        return float(-np.sin(t) * close + skew * q * near * (m1 / (m2 + m1 * q) - m2 / (m1 + m2 * q)))

    # (1/q - cos)/sin grows from 0 to infinity on (0, pi): the speed has one sign on either way
    end = until if speed(start) < 0 else 2 * np.pi - until
    knots = np.linspace(start, end, 65)
    parts = [quad(lambda t: 1 / speed(t), *ends, epsabs=0, epsrel=1e-12)[0] for ends in itertools.pairwise(knots)]
    return float(np.sum(parts))
