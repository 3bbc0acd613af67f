"""Two clusters while the weights change with depth: a beta that grows, and a V with a skew part."""

import itertools

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad, solve_ivp

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_beta, checked_model

FAR = 60.0
"""beta u above which what attention still does is below rounding."""


def freezing_rate(angle: float, beta: float) -> float:
    """The rate r of beta(t) = `beta` + r t above which two clusters (USA0, masses adding to 1) never merge.

    With u = 1 - cos(angle), du/dbeta = -(1/r) e^(-beta u) u (2 - u). Below the rate the clusters merge, above it they
    stop at a positive angle: attention gets sharp faster than the clusters close. By bisection of the equation, to
    1e-9; derived here. 0 < angle < pi.
    """
    b = checked_beta(beta)
    if b.ndim or not 0 < angle < np.pi:
        raise InvalidInput(f"angle is {angle!r} and beta is {beta!r}; give one angle in (0, pi) and one beta.")
    start, first = float(np.log(1 - np.cos(angle))), float(b)

    def keeps(log_rate: float) -> bool:
        def slope(b: float, y: np.ndarray) -> np.ndarray:
            u = np.exp(y)
            return np.asarray(-np.exp(-b * u - log_rate) * (2 - u))

        def far(b: float, y: np.ndarray) -> float:
            return float(b * np.exp(y[0]) - FAR)

        def gone(b: float, y: np.ndarray) -> float:
            return float(y[0] - start + 9.0)

        far.terminal = gone.terminal = True  # type: ignore[attr-defined]
        found = solve_ivp(slope, (first, 1e7), [start], method="LSODA", events=[far, gone], rtol=1e-10, atol=1e-12)
        return len(found.t_events[0]) > 0

    low, high = -12.0, 6.0
    while high - low > 2e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return float(np.exp((low + high) / 2))


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
