"""Causal attention on a continuum of places: rates, weights and the correlation of a token with an earlier one.

Token i of N sits at the place sigma = i/N in (0, 1] and hears earlier tokens with the weights of ALiBi, proportional to
e^{-slope (i-k)/N}. The argument `slope` of every function here is the slope per token times N (`lambda` in the papers).
The scaled time c = a_k t is time t measured by the rate a_k of `rates`. All formulas hold to first order in 1/N around
iid uniform tokens, for e^{4c} much smaller than N, and sources that are not among the first few tokens.
"""

import numpy as np
from scipy.special import exprel, i1e

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Reals, Word, formula
from attnflow.special.integrals import log_integral
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.uniform.spectrum import growth_rates, log_growth_rates, log_mean_kernel
from attnflow.wording import shown

LARGEST_LOG = float(np.log(np.finfo(np.float64).max))
LARGEST_SLOPE = 1e6
LARGEST_TIME = 1e8
BETA = Reals(0.0, 1e6)
DEGREES = Integers(0, 10_000)
DILUTION = Reals(0.0, 1e300)
DIMENSION = Integers(2, 10**6, scalar=True)
MODEL = Word(("SA", "USA0", "USA", "grad"))
"""The three models, and "grad": USA beta times as fast, the time of arXiv:2605.09213."""
PLACE = Reals(1e-300, 1.0)
SLOPE = Reals(0.0, LARGEST_SLOPE)
TIME = Reals(0.0, LARGEST_TIME)
CLOCK = "3e-16 * (20 + degrees + (model != 'SA') * (beta + d * np.log(d)))"
"""Error of the logarithm of a rate: of Bessel's quotients, and of the logarithm of the clock of a model."""


@formula(degrees=DEGREES, beta=BETA, d=DIMENSION, model=MODEL, relative=CLOCK)
def rates(degrees: ArrayLike, beta: ArrayLike, d: int, *, model: str) -> np.ndarray:
    """The rate a_k at which causal attention carries correlations of degree k; degrees and beta broadcast.

    a_k = k (k+d-2) l_k/(beta l_0) for the model "SA", times l_0 for "USA", times e^{-beta} l_0 for "USA0" and times
    beta l_0 for "grad" (the time of arXiv:2605.09213: a_n = n^2 I_n(beta) on the circle), where l_k = Gamma(d/2)
    (2/beta)^{d/2-1} I_{k+d/2-1}(beta). They are the growth rates of harmonics of a density (`uniform.growth_rates`).
    At beta = 0 degree 1 has (d-1)/d, or 0 for "grad", and the others 0. Rates beyond float range are refused.

    Arguments:
        degrees: degrees k.
        beta: inverse temperatures.
        d: dimension of the space around the sphere.
        model: "SA", "USA0", "USA" or "grad".
    """
    if np.any(_log_rates(degrees, beta, d, model) >= LARGEST_LOG):
        raise InvalidInput(f"`beta` is {shown(beta)}; rates under {model} leave float range there, use log_rates.")
    if model != "grad":
        return growth_rates(beta, d, k=degrees, model=model)
    return np.asarray(beta * growth_rates(beta, d, k=degrees, model="USA"))


@formula(degrees=DEGREES, beta=BETA, d=DIMENSION, model=MODEL, relative="4e-16 * (2 + degrees)", absolute=CLOCK)
def log_rates(degrees: ArrayLike, beta: ArrayLike, d: int, *, model: str) -> np.ndarray:
    """The logarithm of `rates`, for models whose rates leave float range (USA and grad at large beta).

    -inf where a rate is 0: degree 0, degrees above 1 at beta = 0, and every degree at beta = 0 for "grad".

    Arguments:
        degrees: degrees k.
        beta: inverse temperatures; both broadcast.
        d: dimension of the space around the sphere.
        model: "SA", "USA0", "USA" or "grad".
    """
    return _log_rates(degrees, beta, d, model)


def _log_rates(degrees: np.ndarray, beta: np.ndarray, d: int, model: str) -> np.ndarray:
    if model != "grad":
        return log_growth_rates(beta, d, degrees, model=model)
    with np.errstate(divide="ignore"):
        return np.asarray(log_growth_rates(beta, d, degrees, model="USA") + np.log(beta))


@formula(beta=BETA, d=DIMENSION, relative="3e-16 * (30 + beta + d * np.log(d))")
def softmax_dilution(beta: ArrayLike, d: int) -> np.ndarray:
    """The weight of a token on itself, in units of the mean weight of another token: e^beta/l_0(beta, d) >= 1.

    Softmax over k <= i includes the token itself. That moves nothing, but divides the weights of the others:
    w_ik = v_ik/(sum_{k<i} v_ik + dilution), v_ik = e^{-slope (i-k)/N} (ours). l_0 is the mean of e^{beta <x, y>} over
    uniform y. Beyond float range it is refused, `log_softmax_dilution` goes there.
    """
    logs = -log_mean_kernel(np.array(beta), d)
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"`beta` is {shown(beta)}; the dilution leaves float range there, use log_softmax_dilution.")
    return np.asarray(np.exp(logs))


@formula(beta=BETA, d=DIMENSION, absolute="3e-16 * (beta + d * np.log(d))", relative=1e-15)
def log_softmax_dilution(beta: ArrayLike, d: int) -> np.ndarray:
    """The logarithm of `softmax_dilution`: beta - log l_0(beta, d), l_0 the mean of e^{beta <x, y>} over uniform y."""
    return np.asarray(-log_mean_kernel(np.array(beta), d))


@formula(place=PLACE, source=PLACE, slope=SLOPE, relative="3e-16 * (20 + slope * np.abs(place - source))")
def graphon(place: ArrayLike, source: ArrayLike, slope: ArrayLike) -> np.ndarray:
    """The weight density with which a token at `place` hears `source`: the limit of N w_ik for many tokens.

    k(p, s) = slope e^{-slope (p-s)}/(1 - e^{-slope p}) for s <= p, else 0; 1/p at slope 0. Its integral over s < p is 1
    (arXiv:2605.09213). At s = p it is the limit from s < p. Arguments broadcast.

    Arguments:
        place: places p of tokens.
        source: places s of the tokens that they hear.
        slope: slope of ALiBi per token times the number of tokens.
    """
    place, source, slope = np.broadcast_arrays(place, source, slope)
    weight = np.exp(-slope * np.maximum(place - source, 0.0)) / _visible(place, slope, 0.0)
    return np.where(source <= place, weight, 0.0)


@formula(place=PLACE, source=PLACE, slope=SLOPE, relative_dilution=DILUTION, relative=4e-15)
def log_place_ratio(
    place: ArrayLike, source: ArrayLike, slope: ArrayLike, *, relative_dilution: ArrayLike = 0.0
) -> np.ndarray:
    """Y = log[(e^{slope place} - 1)/(e^{slope source} - 1)]: the number of hops between two places is about c Y.

    In terms of u = e^{slope place} - 1 a token hears the plain mean over 0 < u' < u, so that Y = log(u/u'); it is
    log(place/source) at slope 0 (ours). With `relative_dilution` q, the `softmax_dilution` divided by N,
    slope q/(1 + slope q) is added to both u (ours).

    Arguments:
        place: places of tokens.
        source: places of tokens that they hear, at most `place`.
        slope: slope of ALiBi per token times the number of tokens.
        relative_dilution: weight of a token on itself, in units of N mean weights; 0 leaves it out.
    """
    place, source, slope, q = np.broadcast_arrays(place, source, slope, relative_dilution)
    if (source > place).any():
        raise InvalidInput(f"`source` is {shown(source)}; a token hears earlier places alone, so give source <= place.")
    return place_ratio(place, source, slope, q)


@formula(c=TIME, y=Reals(0.0, 1e300), relative="1e-15 * (10 + 2 * np.sqrt(c) * np.sqrt(y))")
def hop_sum(c: ArrayLike, y: ArrayLike) -> np.ndarray:
    """psi_c(y) = sum_k c^{k+1} y^k/(k! (k+1)!) = sqrt(c/y) I_1(2 sqrt(c y)): the sum over paths with k stops.

    It solves y psi'' + 2 psi' = c psi with psi(0) = c (ours). Both arguments broadcast. Beyond float range it is
    refused, `log_hop_sum` goes there.
    """
    with np.errstate(over="ignore"):
        half = np.exp(log_paths(c, y) / 2)
        return in_range(c * half * half, "c", c, "log_hop_sum")


@formula(
    c=TIME,
    y=Reals(0.0, 1e300),
    relative=1e-15,
    absolute="1e-15 * (10 + np.abs(np.log(np.maximum(c, 1e-300))) + 2 * np.sqrt(c) * np.sqrt(y))",
)
def log_hop_sum(c: ArrayLike, y: ArrayLike) -> np.ndarray:
    """The logarithm of `hop_sum`, -inf at c = 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(c) + log_paths(c, y))


@formula(c=TIME, y=Reals(0.0, 1e300), count=Integers(1, 100, scalar=True), relative=1e-14)
def hop_ratios(c: ArrayLike, y: ArrayLike, count: int) -> np.ndarray:
    """sqrt(c/y) I_k(z)/I_{k-1}(z) with z = 2 sqrt(c y), for k = 1, ..., count on the last axis.

    The second is psi_c'(y)/psi_c(y), for psi_c the `hop_sum`. The continued fraction r_k = c/(k + y r_{k+1}) run
    backwards has no singularity at y = 0, where r_k = c/k.

    Arguments:
        c: scaled times.
        y: values of `log_place_ratio`; both broadcast.
        count: number of quotients.
    """
    return path_ratios(c, y, count)


@formula(
    c=TIME,
    place=PLACE,
    source=PLACE,
    slope=SLOPE,
    relative_dilution=DILUTION,
    relative="1e-15 * (20 + slope * np.abs(place - source) + 2 * np.sqrt(c * (slope * np.abs(place - source)"
    " + np.abs(np.log(place / source)))))",
)
def correlation(
    c: ArrayLike, place: ArrayLike, source: ArrayLike, *, slope: ArrayLike, relative_dilution: ArrayLike = 0.0
) -> np.ndarray:
    """N times the correlation E P_k(<x(t) at `place`, x(0) at `source`>) at c = a_k t, for many tokens N.

    g = k(p, s) psi_c(Y), with the graphon k, psi of `hop_sum` and Y of `log_place_ratio`; 0 for s > p, and at s = p the
    limit from s < p (arXiv:2605.09213). It solves dg/dc = k(p, s) + integral over s < p' < p of k(p, p') g(p', s), and
    its integral over s is e^c - 1 at every slope. `relative_dilution` q = `softmax_dilution`/N divides the weights of
    softmax by 1 + q/((1 - e^{-slope p})/slope); then c becomes c/(1 + slope q) and u, Y are shifted (ours). All
    arguments broadcast. Beyond float range it is refused, `log_correlation` goes there.

    Arguments:
        c: scaled times.
        place: places p.
        source: places s.
        slope: slope of ALiBi per token times the number of tokens.
        relative_dilution: weight of a token on itself, in units of N mean weights; 0 leaves it out.
    """
    c, place, source, slope, q = np.broadcast_arrays(c, place, source, slope, relative_dilution)
    heard, slowed = np.minimum(source, place), c / (1 + slope * q)
    exponent = log_paths(slowed, place_ratio(place, heard, slope, q)) - slope * (place - heard)
    with np.errstate(over="ignore"):
        half = np.exp(exponent / 2)
        value = slowed * half / _visible(place, slope, q) * half
    return in_range(np.where(source <= place, value, 0.0), "c", c, "log_correlation")


@formula(
    c=TIME,
    place=PLACE,
    source=PLACE,
    slope=SLOPE,
    relative_dilution=DILUTION,
    relative=1e-15,
    absolute="1e-15 * (1500 + slope * np.abs(place - source) + 2 * np.sqrt(c * (slope * np.abs(place - source)"
    " + np.abs(np.log(place / source)))))",
)
def log_correlation(
    c: ArrayLike, place: ArrayLike, source: ArrayLike, *, slope: ArrayLike, relative_dilution: ArrayLike = 0.0
) -> np.ndarray:
    """The logarithm of `correlation`, -inf where it is 0.

    Arguments:
        c: scaled times.
        place: places p of tokens.
        source: places s of the tokens that they hear; -inf for s > p.
        slope: slope of ALiBi per token times the number of tokens.
        relative_dilution: weight of a token on itself, in units of N mean weights; 0 leaves it out.
    """
    return log_profile(c, place, source, slope, relative_dilution)


@formula(c=Reals(0.0, 100.0), place=PLACE, source=PLACE, slope=SLOPE, relative=1e-12)
def pair_correlation(c: ArrayLike, place: ArrayLike, source: ArrayLike, *, slope: ArrayLike) -> np.ndarray:
    """N times the correlation E P_k(<x(t) at `place`, x(t) at `source`>) of two tokens at the same time.

    g(p, s) + integral over v < s of g(p, v) g(s, v), with g of `correlation`, for s < p; symmetric in p and s
    (ours, checked by simulation; it is exp(cW) exp(cW^T) for many tokens). At p = s it is the limit. Beyond float range
    it is refused.

    Arguments:
        c: scaled times.
        place: places p.
        source: places s.
        slope: slope of ALiBi per token times the number of tokens.
    """
    c, place, source, slope = np.broadcast_arrays(c, place, source, slope)
    late, early = np.maximum(place, source), np.minimum(place, source)
    with np.errstate(divide="ignore", over="ignore"):
        log_slope, log_density = np.log(slope), -np.log(early * exprel(slope * early))  # slope/u of the earlier place

        def log_shared(
            x: np.ndarray, c: np.ndarray, shift: np.ndarray, log_slope: np.ndarray, log_density: np.ndarray
        ) -> np.ndarray:
            y = x * x  # Y(early, v), of which the integrand is an entire function
            return (
                np.log(2 * x) + np.logaddexp(log_density, log_slope - y) - y + log_paths(c, y + shift) + log_paths(c, y)
            )

        shift = place_ratio(late, early, slope, np.zeros(()))
        # e^{-y + 4 sqrt(c y)} peaks at sqrt(y) = 2 sqrt(c), with width below 1 in sqrt(y): e^{-81} is left
        last = 2 * np.sqrt(c) + 9
        shared = log_integral(log_shared, 0.0, last, c, shift, log_slope, log_density)
        direct = log_profile(c, late, early, slope, np.zeros(()))
        return in_range(np.exp(np.logaddexp(direct, 2 * np.log(c) + shared - shift)), "c", c, "a smaller time")


def log_profile(c: np.ndarray, place: np.ndarray, source: np.ndarray, slope: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The formula of `log_correlation` for checked arguments; a source at 0 is allowed with dilution q > 0."""
    c, place, source, slope, q = np.broadcast_arrays(c, place, source, slope, q)
    heard, slowed = np.minimum(source, place), c / (1 + slope * q)
    with np.errstate(divide="ignore"):
        paths = np.log(c) - np.log1p(slope * q) + log_paths(slowed, place_ratio(place, heard, slope, q))
        weight = -slope * (place - heard) - np.log(_visible(place, slope, q))
    return np.where(source <= place, weight + paths, -np.inf)


def place_ratio(place: np.ndarray, source: np.ndarray, slope: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The formula of `log_place_ratio` for checked arguments; a source at 0 is allowed with dilution q > 0."""
    gap = place - source
    steep, seen = slope * gap, _visible(source, slope, q)
    # e^Y - 1 keeps the relative accuracy of a small Y; a large one is a sum of positive logarithms
    near = (steep < 30) & (gap < 1e6 * seen)
    small = np.log1p(np.where(near, gap, 0.0) * exprel(np.where(near, steep, 0.0)) / np.where(near, seen, 1.0))
    return np.where(near, small, steep + np.log(_visible(place, slope, q) / seen))


def log_paths(c: ArrayLike, y: ArrayLike) -> np.ndarray:
    """log of psi_c(y)/c = 0F1(; 2; c y) = 2 I_1(z)/z, z = 2 sqrt(c y)."""
    z = np.asarray(2 * np.sqrt(c) * np.sqrt(y))
    square = np.minimum(z, 1e-3) ** 2 / 4
    # the first term left out of the series is square^3/144
    return np.where(z < 1e-3, np.log1p(square / 2 + square * square / 12), z + log_scaled_paths(z))


def log_scaled_paths(z: np.ndarray) -> np.ndarray:
    """log of 2 e^{-z} I_1(z)/z."""
    z = np.maximum(z, 1e-100)
    return np.asarray(np.log(2 * i1e(z) / z))


def path_ratios(c: ArrayLike, y: ArrayLike, count: int) -> np.ndarray:
    """The formula of `hop_ratios` for checked arguments."""
    c, y = np.broadcast_arrays(c, y)
    z = 2 * np.sqrt(c) * np.sqrt(y)
    # for large z by the expansion of Bessel's functions, whose cost does not grow with z
    far = z > 300 + 10 * count**2
    top = count + 60 + int(np.ceil(7 * np.sqrt(np.max(np.where(far, 0.0, z), initial=0.0))))
    ratio = 2 * c / (top + np.hypot(top, z))
    ratios = np.empty((*c.shape, count))
    for k in range(top - 1, 0, -1):
        ratio = c / (k + y * ratio)
        if k <= count:
            ratios[..., k - 1] = ratio
    if far.any():
        scale = np.sqrt(c[far]) / np.sqrt(y[far])
        for k in range(1, count + 1):
            ratios[far, k - 1] = scale * _hankel(k, z[far]) / _hankel(k - 1, z[far])
    return ratios


def _hankel(order: int, z: np.ndarray) -> np.ndarray:
    """sqrt(2 pi z) e^{-z} I_order(z) by its expansion, whose terms fall to 1e-17 for z > 300 + 10 order^2."""
    total = term = np.ones_like(z)
    for j in range(1, 15):
        term = -term * (4 * order**2 - (2 * j - 1) ** 2) / (8 * j * z)
        total = total + term
    return total


def log_unit_growth(slope: np.ndarray) -> Numbers:
    """log(e^slope - 1), -inf at slope 0."""
    with np.errstate(divide="ignore"):
        return slope + np.log(-np.expm1(-slope))


def _visible(place: np.ndarray, slope: np.ndarray, q: float | np.ndarray) -> Numbers:
    """The weight that a place sees: (1 - e^{-slope place})/slope, with what dilution adds to u, per slope e^{...}."""
    return place * exprel(-slope * place) + q / (1 + q * slope) * np.exp(-slope * place)


def in_range(values: np.ndarray, name: str, argument: ArrayLike, instead: str) -> np.ndarray:
    """The values, or a refusal where one is infinite."""
    if np.any(values == np.inf):
        raise InvalidInput(f"`{name}` is {shown(argument)}; the result leaves float range there, use {instead}.")
    return np.asarray(values)
