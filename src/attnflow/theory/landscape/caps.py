"""How far two measures can drift apart, and how fast a measure in a cap contracts."""

import math
from fractions import Fraction

import numpy as np
from scipy.special import expit, wrightomega

from attnflow.errors import InvalidInput
from attnflow.special.curves import curve
from attnflow.special.formula import Integers, Other, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.merging.pairs import LARGEST_LOG, log_pull_integral

LARGEST_PRODUCT = 10**300
"""beta v_0 above would leave the range of floats."""


@formula(beta=Reals(0.0), relative=1e-15)
def expansion_rate(beta: ArrayLike) -> Numbers:
    """omega with W_2(mu_t, nu_t) <= e^{omega t} W_2(mu_0, nu_0) for any two measures on the circle under USA0.

    omega = max_theta (beta sin^2 theta - cos theta) e^{beta (cos theta - 1)}. The maximum is at cos theta = (-3 +
    sqrt(4 beta^2 + 5))/(2 beta) for beta >= 1/3, and at -1 below, where it is e^{-2 beta}. Two equal tokens at this
    angle attain it: the constant is sharp on the circle. It is at most 2 e^{-3/2} = 0.4463 for beta >= 1, and tends
    to it. Derived here.
    """
    return _largest_pull(beta)


@formula(beta=Reals(0.0), relative=1e-15)
def steepest_overlap(beta: ArrayLike) -> Numbers:
    """The cosine of the angle at which two tokens of USA0 separate fastest, at the rate `expansion_rate`.

    (-3 + sqrt(4 beta^2 + 5))/(2 beta) for beta >= 1/3 and -1 below. Derived here.
    """
    warm = np.maximum(beta, 1 / 3)
    # the root without the difference of two large numbers: (4 b^2 - 4)/(2 b (3 + sqrt(4 b^2 + 5)))
    overlap = (warm - 1) * (1 + 1 / warm) / (1.5 + np.hypot(warm, math.sqrt(1.25)))
    return np.where(beta > 1 / 3, overlap, -1.0)


@formula(
    beta=Reals(0.0),
    d=Integers(2, scalar=True),
    p=Other("a number of at least 1, or infinity"),
    relative=4e-15,
)
def stability_rate(beta: ArrayLike, *, d: int, p: float) -> Numbers:
    """A rate L with W_p(mu_t, nu_t) <= e^{L t} W_p(mu_0, nu_0) for any two measures on S^{d-1} under USA0.

    omega of `expansion_rate` for d = 2 and p = 2, where it is sharp; 2 omega for other p on the circle and for p = 2 on
    other spheres; else the maximum over theta of e^{beta (cos theta - 1)} (q + max(1, |q|)), q = beta sin^2 theta -
    cos theta. All of them are at most 4 e^{-3/2} = 0.8925 for beta >= 1. Derived here, by carrying a coupling.

    Arguments:
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        p: exponent of the Wasserstein distance, at least 1; infinity for the largest distance of a coupling.
    """
    if not (isinstance(p, int | float | np.number) and p >= 1):
        raise InvalidInput(f"`p` is {p!r}; a Wasserstein distance needs p >= 1.")
    if d == 2 or p == 2:
        return (1 if d == p == 2 else 2) * _largest_pull(beta)
    # q > -1 everywhere, and q > 1 where x = beta (1 - cos theta) is above 1: (q + 1) e^{-x} and 2 q e^{-x} have one
    # maximum each
    x = np.minimum((beta + 0.5) / (beta / 2 + 0.75 + np.hypot(beta / 2 + 0.25, 0.5)), 2 * np.minimum(beta, 1.0))
    u = _height(x, beta)
    return np.maximum((2 * x + u * (1 - x)) * np.exp(-x), 2 * _largest_pull(beta))


@formula(beta=Reals(0.0), relative=1e-15)
def softmax_lipschitz(beta: ArrayLike) -> Numbers:
    """The largest derivative in x of the velocity of softmax attention over all measures: beta + 1/(4 beta), or 1.

    1 for beta < 1/2. A massless token attains it between two half masses at the angle arccos(-1/(2 beta)) from it: the
    rate at which softmax can separate tokens grows with beta, other than that of USA0. Derived here.
    """
    return np.where(beta > 0.5, beta + 0.25 / np.maximum(beta, 0.5), 1.0)


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
    diameters = (
        2 * np.arctan(np.exp(places / 2))
        if d == 2
        else 2 * np.arcsin(np.exp(-np.logaddexp(0.0, -places) / 2) / math.sqrt(2))
    )
    return np.asarray(np.where(times == 0, start, diameters)[order].reshape(t.shape))


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


@formula(
    t=Reals(0.0),
    beta=Reals(0.0, ends="none", scalar=True),
    variance=Reals(0.0, ends="none", scalar=True),
    relative=2e-13,
)
def softmax_spread(t: ArrayLike, beta: float, variance: float) -> Numbers:
    """The variance v(t) per direction of a narrow Gaussian cloud under SA: beta v = W_0(beta v_0 e^{beta v_0 - 2t}).

    x' = -x/(1 + beta v) for beta -> infinity with beta v of order 1, so that log v + beta v = const - 2t; W_0 is
    Lambert's function. Off by a relative order 1/beta. Derived here.

    Arguments:
        t: times.
        beta: inverse temperature.
        variance: v_0, the variance at time 0.
    """
    product = Fraction(beta) * Fraction(variance)
    if product > LARGEST_PRODUCT:
        raise InvalidInput(f"`beta` is {beta!r} and `variance` is {variance!r}; their product has to be below 1e300.")
    # beta v_0 - 2 t without rounding: after a long time it is a small difference of large numbers
    falls = [float(product - 2 * Fraction(float(time))) if time < 1e300 else -1e300 for time in np.ravel(t)]
    fall = np.reshape(falls, np.shape(t))
    width = wrightomega(math.log(beta) + math.log(variance) + fall).real
    with np.errstate(under="ignore"):
        late = variance * np.exp(fall - width)
    return np.where(width < 1, late, width / beta)


def _height(x: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """1 - cos theta = x/beta, 2 at beta = 0."""
    return np.asarray(np.where(beta > 0, x / np.where(beta > 0, beta, 1.0), 2.0))


def _largest_pull(beta: np.ndarray) -> Numbers:
    """The maximum of (beta sin^2 theta - cos theta) e^{-x}, x = beta (1 - cos theta)."""
    steepest = (0.75 * beta + 0.25) / (beta / 4 + 0.375 + np.hypot(beta, math.sqrt(1.25)) / 4)
    x = np.where(beta > 1 / 3, steepest, 2 * np.minimum(beta, 1.0))
    u = _height(x, beta)
    return (x * (2 - u) - (1 - u)) * np.exp(-x)


def _check_start(start: float, d: int) -> None:
    if d > 2 and start >= math.pi / 2:
        raise InvalidInput(f"`start` is {start!r}; for d = {d} the bound holds for diameters below pi/2.")
