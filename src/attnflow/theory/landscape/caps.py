"""How far two measures can drift apart, and how fast a measure in a cap contracts."""

import math

import numpy as np
from scipy.special import expit, wrightomega

from attnflow.errors import InvalidInput
from attnflow.special.curves import curve
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.theory.checks import checked_beta, checked_dimension, checked_reals
from attnflow.theory.merging.pairs import LARGEST_LOG, log_pull_integral


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


DIAMETER = Reals(0.0, math.pi, ends="none")


@formula(
    diameter=DIAMETER,
    beta=Reals(0.0, 1e4, scalar=True),
    d=Integers(2, scalar=True),
    start=Reals(0.0, math.pi, ends="none", scalar=True),
    relative="1e-14 * (10 + beta)",
)
def cap_time(diameter: ArrayLike, beta: float, *, d: int, start: float) -> np.ndarray:
    """Time after which every measure of diameter `start` has at most this diameter D, under SA and USA0.

    d = 2, start < pi (the shortest arc): D' <= -e^{-beta (1 - cos D)} sin D, the equation of two atoms under USA0. d >=
    3, start < pi/2: D' <= -2 cos D tan(D/2) e^{-beta (1 - cos D)}, which is that of two atoms at beta/2 and the angle a
    with sin^2(a/2) = 2 sin^2(D/2). Either is an integral of e^{beta (1 - cos D)} (`merge_time`). From below D >= e^{-t}
    D(0) for every measure, so that no atom forms in finite time. Derived here.

    Arguments:
        diameter: diameters to reach, at most `start`.
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        start: diameter at time 0, below pi for d = 2 and below pi/2 for d >= 3.

    Raises:
        InvalidInput: if a time is above 1e308.
    """
    _check_start(start, d)
    if (diameter > start).any():
        raise InvalidInput(f"`diameter` is {diameter!r}; it must be at most start = {start!r}.")
    log_time = _log_cap_time(start, _cap_way(start, diameter, d), beta, d)
    if (log_time > LARGEST_LOG).any():
        raise InvalidInput(
            f"`beta` is {beta!r} and `start` is {start!r}; the time e^{log_time.max():.0f} leaves the range of floats."
        )
    return np.asarray(np.exp(log_time))


@formula(
    t=Reals(0.0),
    beta=Reals(0.0, 1e4, scalar=True),
    d=Integers(2, scalar=True),
    start=Reals(0.0, math.pi, ends="none", scalar=True),
    relative=1e-9,
)
def cap_diameter(t: ArrayLike, beta: float, *, d: int, start: float) -> np.ndarray:
    """Upper bound of `cap_time` as a curve: the largest diameter at time t >= 0 of measures that had `start`.

    With z = log(u/(2 - u)) of the two atoms of `cap_time`, z' = -2 e^(-2 b/(1 + e^(-z))), b = beta for d = 2 and beta/2
    otherwise. Beyond a plateau the diameter falls like e^(-t): where t is so large that its own rounding, or that of
    the length of the plateau, decides about the diameter, it is refused.

    Arguments:
        t: times.
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        start: diameter at time 0, below pi for d = 2 and below pi/2 for d >= 3.

    Raises:
        NotAccurate: if the diameter depends on digits of t that a float does not have.
    """
    _check_start(start, d)
    pull = 2 * (beta if d == 2 else beta / 2)
    times, order = np.unique(t, return_inverse=True)
    # an error of z is a relative error of the diameter; the diameter is 0 as a float for z < -1500
    places = curve(
        lambda _, z: -2 * np.exp(-pull * expit(z)), _cap_place(start, d), [0.0, *times], rtol=1e-12, atol=1e-9
    )[0, 1:]
    diameters = 2 * np.arctan(np.exp(places / 2)) if d == 2 else 2 * np.arcsin(np.sqrt(expit(places) / 2))
    return np.asarray(diameters[order].reshape(t.shape))


def _cap_place(diameter: float, d: int) -> float:
    """z = log(u/(2 - u)) of the angle whose equation is that of two atoms."""
    if d == 2:
        return 2 * math.log(math.tan(diameter / 2))
    return 2 * math.log(math.sin(diameter / 2)) + math.log(2 / math.cos(diameter))


def _cap_way(start: float, end: np.ndarray, d: int) -> np.ndarray:
    """The difference of z between two diameters, without a difference of near-equal numbers."""
    if d == 2:
        return np.asarray(2 * np.log1p(np.sin((start - end) / 2) / (np.cos(start / 2) * np.sin(end / 2))))
    with np.errstate(divide="ignore"):
        chords = np.log(np.sin((start + end) / 2)) + np.log(np.sin((start - end) / 2)) - 2 * np.log(np.sin(end / 2))
    return np.logaddexp(0.0, chords - math.log(math.cos(start)))


def _log_cap_time(start: float, way: np.ndarray, beta: float, d: int) -> np.ndarray:
    return log_pull_integral(_cap_place(start, d), way, beta if d == 2 else beta / 2) - math.log(2)


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


def _check_start(start: float, d: int) -> None:
    if d > 2 and start >= math.pi / 2:
        raise InvalidInput(f"`start` is {start!r}; for d = {d} the bound holds for diameters below pi/2.")
