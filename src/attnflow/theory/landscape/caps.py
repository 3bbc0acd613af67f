"""How far two measures can drift apart, and how fast a measure in a cap contracts."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import wrightomega

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_beta, checked_dimension, checked_reals


def expansion_rate(beta: ArrayLike) -> np.ndarray:
    """omega with W_2(mu_t, nu_t) <= e^{omega t} W_2(mu_0, nu_0) for any two measures on the circle under USA0.

    omega = max_theta (beta sin^2 theta - cos theta) e^{beta (cos theta - 1)}. The maximum is at cos theta = (-3 +
    sqrt(4 beta^2 + 5))/(2 beta) for beta >= 1/3, and at -1 below, where it is e^{-2 beta}. Two equal tokens at this
    angle attain it: the constant is sharp on the circle. It is at most 2 e^{-3/2} = 0.4463 for beta >= 1, and tends
    to it. Derived here; beta >= 0, any shape.
    """
    b = checked_beta(beta)
    return _pull(steepest_overlap(b), b)


def steepest_overlap(beta: ArrayLike) -> np.ndarray:
    """The cosine of the angle at which two tokens of USA0 separate fastest, at the rate `expansion_rate`."""
    b = checked_beta(beta)
    warm = np.maximum(b, 1 / 3)
    # the root without the difference of two large numbers: (4 b^2 - 4)/(2 b (3 + sqrt(4 b^2 + 5)))
    return np.asarray(np.where(b > 1 / 3, (2 * warm**2 - 2) / (warm * (3 + np.sqrt(4 * warm**2 + 5))), -1.0))


def stability_rate(beta: ArrayLike, *, d: int, p: float) -> np.ndarray:
    """A rate L with W_p(mu_t, nu_t) <= e^{L t} W_p(mu_0, nu_0) for any two measures on S^{d-1} under USA0, p >= 1.

    omega of `expansion_rate` for d = 2 and p = 2, where it is sharp; 2 omega for other p on the circle and for p = 2 on
    other spheres; else the maximum over theta of e^{beta (cos theta - 1)} (q + max(1, |q|)), q = beta sin^2 theta -
    cos theta. All of them are at most 4 e^{-3/2} = 0.8925 for beta >= 1. Derived here, by carrying a coupling.
    """
    b, d = checked_beta(beta), checked_dimension(d)
    if not p >= 1:
        raise InvalidInput(f"p is {p!r}; a Wasserstein distance needs p >= 1.")
    if d == 2 or p == 2:
        return np.asarray((1 if d == p == 2 else 2) * expansion_rate(b))
    warm = np.maximum(b, 1e-9)
    # where the derivative of (q + 1) e^(beta c) or of 2 q e^(beta c) vanishes, and where q = 1
    places = [
        (-3 + np.sqrt(4 * warm**2 + 4 * warm + 5)) / (2 * warm),
        steepest_overlap(b),
        (-1 + np.sqrt(1 + 4 * warm * (warm - 1) + 0j).real) / (2 * warm),
    ]
    places = [np.clip(place, -1, 1) for place in (*places, np.full_like(b, -1.0))]
    return np.asarray(
        np.max([_pull(c, b) + np.exp(b * (c - 1)) * np.maximum(1, _bracket(c, b)) for c in places], axis=0)
    )


def softmax_lipschitz(beta: ArrayLike) -> np.ndarray:
    """The largest derivative in x of the velocity of softmax attention over all measures: beta + 1/(4 beta), or 1.

    1 for beta < 1/2. A massless token attains it between two half masses at the angle arccos(-1/(2 beta)) from it: the
    rate at which softmax can separate tokens grows with beta, other than that of USA0. Derived here.
    """
    b = checked_beta(beta)
    return np.asarray(np.where(b > 0.5, b + 1 / (4 * np.maximum(b, 0.5)), 1.0))


def cap_time(diameter: ArrayLike, beta: float, *, d: int, start: float) -> np.ndarray:
    """The time after which every measure of diameter `start` has at most this diameter D, under SA and USA0.

    d = 2, start < pi (the shortest arc): D' <= -e^{-beta (1 - cos D)} sin D, the equation of two atoms under USA0.
    d >= 3, start < pi/2: D' <= -2 cos D tan(D/2) e^{-beta (1 - cos D)}. Integrated in log D by Gauss quadrature. From
    below D >= e^{-t} D(0) for every measure, so that no atom forms in finite time. Derived here.
    """
    b, d = float(checked_beta(beta)), checked_dimension(d)
    ends = checked_reals("diameter", diameter, 0.0)
    _check_start(start, d)
    if (ends <= 0).any() or (ends > start).any():
        raise InvalidInput(f"diameter is {diameter!r}; it must be positive and at most start = {start!r}.")
    nodes, weights = np.polynomial.legendre.leggauss(80)
    span = np.log1p((start - ends) / ends)[..., None]
    return np.asarray(np.sum(weights / 2 * span / _cap_rate(start * np.exp(-span * (nodes + 1) / 2), b, d), axis=-1))


def cap_diameter(t: ArrayLike, beta: float, *, d: int, start: float) -> np.ndarray:
    """The upper bound of `cap_time` as a curve: the largest diameter at time t >= 0 of measures that had `start`.

    log D is integrated (DOP853, tolerance 1e-12), at the limit of its rate where D < 1e-12: that is off by D^2.
    """
    from scipy.integrate import solve_ivp

    times, b, d = checked_reals("t", t, 0.0), float(checked_beta(beta)), checked_dimension(d)
    _check_start(start, d)
    late = np.unique(times)
    if late[-1] == 0:
        return np.full(times.shape, float(start))
    found = solve_ivp(
        lambda _, y: -_cap_rate(np.exp(np.maximum(y, np.log(1e-12))), b, d),
        (0.0, late[-1]),
        [np.log(start)],
        "DOP853",
        late,
        rtol=1e-12,
        atol=1e-13,
    )
    return np.asarray(np.exp(found.y[0])[np.searchsorted(late, times)])


def softmax_spread(t: ArrayLike, beta: float, variance: float) -> np.ndarray:
    """The variance v(t) per direction of a narrow Gaussian cloud under SA: beta v = W_0(beta v_0 e^{beta v_0 - 2t}).

    x' = -x/(1 + beta v) for beta -> infinity with beta v of order 1, so that log v + beta v = const - 2t; W_0 is
    Lambert's function. Off by a relative order 1/beta. Derived here. beta > 0, variance > 0.
    """
    times, b = checked_reals("t", t, 0.0), float(checked_beta(beta))
    if not (b > 0 and np.isfinite(variance) and variance > 0):
        raise InvalidInput(f"beta is {beta!r} and variance is {variance!r}; both must be positive and finite.")
    return np.asarray(wrightomega(np.log(b * variance) + b * variance - 2 * times).real / b)


def _bracket(c: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(b * (1 - c) * (1 + c) - c)


def _pull(c: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(_bracket(c, b) * np.exp(b * (c - 1)))


def _cap_rate(diameter: np.ndarray, beta: float, d: int) -> np.ndarray:
    """-D'/D of the bound."""
    half = np.sin(diameter / 2)
    weight = np.exp(-2 * beta * half**2)
    steep = np.sin(diameter) if d == 2 else 2 * np.cos(diameter) * np.tan(diameter / 2)
    return np.asarray(weight * steep / diameter)


def _check_start(start: float, d: int) -> None:
    most = np.pi if d == 2 else np.pi / 2
    if not 0 < start < most:
        raise InvalidInput(f"start is {start!r}; for d = {d} the bound holds for diameters between 0 and {most:.6g}.")
