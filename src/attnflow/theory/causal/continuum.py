"""Causal attention on a continuum of places: rates, weights and the correlation of a token with an earlier one.

Token i of N sits at the place sigma = i/N in (0, 1] and hears earlier tokens with the weights of ALiBi, proportional to
e^{-slope (i-k)/N}. The argument `slope` of every function here is the slope per token times N (`lambda` in the papers).
The scaled time c = a_k t is time t measured by the rate a_k of `rates`. All formulas hold to first order in 1/N around
iid uniform tokens, for e^{4c} much smaller than N, and sources that are not among the first few tokens.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exprel, ive

from attnflow.errors import InvalidInput
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import as_reals, checked_beta, checked_dimension, written
from attnflow.theory.uniform.spectrum import LARGEST_LOG, growth_rates, log_growth_rates, log_mean_kernel

MODELS = ("SA", "USA0", "USA", "grad")
"""The three models, and "grad": USA beta times as fast, the time of arXiv:2605.09213."""
LARGEST_SLOPE = 1e6
LARGEST_TIME = 1e8


def rates(degrees: ArrayLike, beta: ArrayLike, d: int, *, model: str) -> np.ndarray:
    """The rate a_k at which causal attention carries correlations of degree k; degrees and beta broadcast.

    a_k = k (k+d-2) l_k/(beta l_0) for the model "SA", times l_0 for "USA", times e^{-beta} l_0 for "USA0" and times
    beta l_0 for "grad" (the time of arXiv:2605.09213: a_n = n^2 I_n(beta) on the circle), where l_k = Gamma(d/2)
    (2/beta)^{d/2-1} I_{k+d/2-1}(beta). They are the growth rates of harmonics of a density
    (`uniform.growth_rates`). beta >= 0, d >= 2. At beta = 0 degree 1 has (d-1)/d, or 0 for "grad", and the others 0.
    Rates beyond float range are refused.
    """
    logs = log_rates(degrees, beta, d, model=model)
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"beta is {beta!r}; rates under {model} leave float range there, use log_rates.")
    if model != "grad":
        return growth_rates(beta, d, k=degrees, model=model)
    return np.asarray(checked_beta(beta) * growth_rates(beta, d, k=degrees, model="USA"))


def log_rates(degrees: ArrayLike, beta: ArrayLike, d: int, *, model: str) -> np.ndarray:
    """The logarithm of `rates`, for models whose rates leave float range (USA and grad at large beta).

    -inf where a rate is 0: degree 0, degrees above 1 at beta = 0, and every degree at beta = 0 for "grad".
    """
    if model not in MODELS:
        raise InvalidInput(f"model is {model!r}; use 'SA', 'USA0', 'USA' or 'grad'.")
    if model != "grad":
        return log_growth_rates(beta, d, degrees, model=model)
    with np.errstate(divide="ignore"):
        return np.asarray(log_growth_rates(beta, d, degrees, model="USA") + np.log(checked_beta(beta)))


def softmax_dilution(beta: ArrayLike, d: int) -> np.ndarray:
    """The weight of a token on itself, in units of the mean weight of another token: e^beta/l_0(beta, d) >= 1.

    Softmax over k <= i includes the token itself. That moves nothing, but divides the weights of the others:
    w_ik = v_ik/(sum_{k<i} v_ik + dilution), v_ik = e^{-slope (i-k)/N} (ours). l_0 is the mean of e^{beta <x, y>} over
    uniform y. beta >= 0, d >= 2; beyond float range it is refused, `log_softmax_dilution` goes there.
    """
    logs = log_softmax_dilution(beta, d)
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"beta is {beta!r}; the dilution leaves float range there, use log_softmax_dilution.")
    return np.asarray(np.exp(logs))


def log_softmax_dilution(beta: ArrayLike, d: int) -> np.ndarray:
    """The logarithm of `softmax_dilution`: beta - log l_0(beta, d)."""
    return np.asarray(-log_mean_kernel(np.array(checked_beta(beta)), checked_dimension(d)))


def graphon(place: ArrayLike, source: ArrayLike, slope: ArrayLike) -> np.ndarray:
    """The weight density with which a token at `place` hears `source`: the limit of N w_ik for many tokens.

    k(p, s) = slope e^{-slope (p-s)}/(1 - e^{-slope p}) for s <= p, else 0; 1/p at slope 0. Its integral over s < p is 1
    (arXiv:2605.09213). At s = p it is the limit from s < p. Places in (0, 1], slope >= 0; arguments broadcast.
    """
    place, source, slope = _places(place, source, slope)
    return np.where(source <= place, np.exp(_log_weight(place, np.minimum(source, place), slope, 0.0)), 0.0)


def log_place_ratio(
    place: ArrayLike, source: ArrayLike, slope: ArrayLike, *, relative_dilution: ArrayLike = 0.0
) -> np.ndarray:
    """Y = log[(e^{slope place} - 1)/(e^{slope source} - 1)]: the number of hops between two places is about c Y.

    In terms of u = e^{slope place} - 1 a token hears the plain mean over 0 < u' < u, so that Y = log(u/u'); it is
    log(place/source) at slope 0 (ours). With `relative_dilution` q, the `softmax_dilution` divided by N,
    slope q/(1 + slope q) is added to both u (ours). Relative accuracy for every slope, source <= place.
    """
    place, source, slope = _places(place, source, slope)
    q = checked_amount("relative_dilution", relative_dilution)
    if (source > place).any():
        raise InvalidInput(f"source is {source!r}; a token hears earlier places alone, so give source <= place.")
    return _log_ratio(place, source, slope, q)


def hop_sum(c: ArrayLike, y: ArrayLike) -> np.ndarray:
    """psi_c(y) = sum_k c^{k+1} y^k/(k! (k+1)!) = sqrt(c/y) I_1(2 sqrt(c y)): the sum over paths with k stops.

    It solves y psi'' + 2 psi' = c psi with psi(0) = c (ours). c >= 0 and y >= 0 broadcast. Beyond float range it is
    refused, `log_hop_sum` goes there.
    """
    return _in_range(log_hop_sum(c, y), "c", c, "log_hop_sum")


def log_hop_sum(c: ArrayLike, y: ArrayLike) -> np.ndarray:
    """The logarithm of `hop_sum`, -inf at c = 0."""
    c, y = np.broadcast_arrays(checked_time(c), checked_amount("y", y))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(c) + _log_paths(c, y))


def hop_ratios(c: ArrayLike, y: ArrayLike, count: int) -> np.ndarray:
    """sqrt(c/y) I_k(z)/I_{k-1}(z) with z = 2 sqrt(c y), for k = 1, ..., count on the last axis.

    The second is psi_c'(y)/psi_c(y), for psi_c the `hop_sum`. The continued fraction r_k = c/(k + y r_{k+1}) run
    backwards has no singularity at y = 0, where r_k = c/k. c >= 0, y >= 0.
    """
    c, y = np.broadcast_arrays(checked_time(c), checked_amount("y", y))
    found = np.empty((*c.shape, count))
    z = 2 * np.sqrt(c) * np.sqrt(y)
    top = count + 60 + int(np.ceil(7 * np.sqrt(np.max(z, initial=0.0))))
    ratio = 2 * c / (top + np.hypot(top, z))
    for k in range(top - 1, 0, -1):
        ratio = c / (k + y * ratio)
        if k <= count:
            found[..., k - 1] = ratio
    return found


def correlation(
    c: ArrayLike, place: ArrayLike, source: ArrayLike, *, slope: ArrayLike, relative_dilution: ArrayLike = 0.0
) -> np.ndarray:
    """N times the correlation E P_k(<x(t) at `place`, x(0) at `source`>) at c = a_k t, for many tokens N.

    g = k(p, s) psi_c(Y), with the graphon k, psi of `hop_sum` and Y of `log_place_ratio`; 0 for s > p, and at s = p the
    limit from s < p (arXiv:2605.09213). It solves dg/dc = k(p, s) + integral over s < p' < p of k(p, p') g(p', s), and
    its integral over s is e^c - 1 at every slope. `relative_dilution` q = `softmax_dilution`/N divides the weights of
    softmax by 1 + q/((1 - e^{-slope p})/slope); then c becomes c/(1 + slope q) and u, Y are shifted (ours). All
    arguments broadcast. Beyond float range it is refused, `log_correlation` goes there.
    """
    return _in_range(
        log_correlation(c, place, source, slope=slope, relative_dilution=relative_dilution), "c", c, "log_correlation"
    )


def log_correlation(
    c: ArrayLike, place: ArrayLike, source: ArrayLike, *, slope: ArrayLike, relative_dilution: ArrayLike = 0.0
) -> np.ndarray:
    """The logarithm of `correlation`, -inf where it is 0."""
    place, source, slope = _places(place, source, slope)
    q = checked_amount("relative_dilution", relative_dilution)
    heard = np.minimum(source, place)
    slowed = checked_time(c) / (1 + slope * q)
    with np.errstate(divide="ignore"):
        paths = np.log(slowed) + _log_paths(slowed, _log_ratio(place, heard, slope, q))
    return np.where(source <= place, _log_weight(place, heard, slope, q) + paths, -np.inf)


def pair_correlation(c: ArrayLike, place: ArrayLike, source: ArrayLike, *, slope: ArrayLike) -> np.ndarray:
    """N times the correlation E P_k(<x(t) at `place`, x(t) at `source`>) of two tokens at the same time.

    g(p, s) + integral over v < s of g(p, v) g(s, v), with g of `correlation`, for s < p; symmetric in p and s
    (ours, checked by simulation; it is exp(cW) exp(cW^T) for many tokens). Gauss-Legendre panels in y = Y(s, v), where
    the integrand is entire, to about 1e-13. At p = s it is the limit. c <= 100.
    """
    c, place, source, slope = np.broadcast_arrays(checked_time(c), *_places(place, source, slope))
    if (c > 100).any():
        raise InvalidInput(f"c is {c!r}; the quadrature of this correlation needs c <= 100.")
    late, early = np.maximum(place, source), np.minimum(place, source)
    # e^{-y + 4 sqrt(c y)} peaks at sqrt(y) = 2 sqrt(c), with width below 1 in sqrt(y): 49 in the exponent are e^{-49}
    nodes, weights = gauss_panels(np.linspace(0.0, 2 * np.sqrt(np.max(c, initial=0.0)) + 7, 40))
    y = nodes**2
    shift = _log_ratio(late, early, slope, np.zeros(()))[..., None]
    scaled = c[..., None]
    density = 1 / (early * exprel(np.minimum(slope * early, 700.0)))  # slope/u of the earlier place
    inner = (density[..., None] + slope[..., None] * np.exp(-y)) * np.exp(
        _log_paths(scaled, y + shift) + _log_paths(scaled, y) - y - shift
    )
    shared = c**2 * (inner @ (2 * nodes * weights))
    return correlation(c, late, early, slope=slope) + shared


def gauss_panels(edges: np.ndarray, order: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature on every interval between neighbouring edges."""
    points, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges)[:, None] / 2
    return ((edges[:-1, None] + half) + half * points).ravel(), (half * weights).ravel()


def checked_amount(name: str, value: ArrayLike, most: float = np.inf) -> np.ndarray:
    """An argument as an array of finite numbers from 0 to `most`."""
    found = as_reals(name, value)
    if not (np.isfinite(found) & (found >= 0) & (found <= most)).all():
        limit = f" and at most {most:g}" if np.isfinite(most) else ""
        raise InvalidInput(f"{name} is {written(value)}; it must be finite, at least 0{limit}.")
    return found


def checked_time(c: ArrayLike) -> np.ndarray:
    """Scaled times c = a_k t >= 0."""
    return checked_amount("c", c, LARGEST_TIME)


def checked_slope(slope: ArrayLike) -> np.ndarray:
    """Slopes per context, at least 0."""
    return checked_amount("slope", slope, LARGEST_SLOPE)


def checked_place(name: str, value: ArrayLike) -> np.ndarray:
    """Places in (0, 1]."""
    found = checked_amount(name, value)
    if ((found <= 0) | (found > 1)).any():
        raise InvalidInput(f"{name} is {written(value)}; places are numbers i/N above 0 and at most 1.")
    return found


def log_unit_growth(slope: np.ndarray) -> Numbers:
    """log(e^slope - 1), -inf at slope 0."""
    with np.errstate(divide="ignore"):
        return slope + np.log(-np.expm1(-slope))


def _places(place: ArrayLike, source: ArrayLike, slope: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = np.broadcast_arrays(checked_place("place", place), checked_place("source", source), checked_slope(slope))
    return found[0], found[1], found[2]


def _visible(place: np.ndarray, slope: np.ndarray, q: float | np.ndarray) -> Numbers:
    """The weight that a place sees: (1 - e^{-slope place})/slope, with what dilution adds to u, per slope e^{...}."""
    return place * exprel(-slope * place) + q / (1 + q * slope) * np.exp(-slope * place)


def _log_weight(place: np.ndarray, source: np.ndarray, slope: np.ndarray, q: float | np.ndarray) -> Numbers:
    return -slope * (place - source) - np.log(_visible(place, slope, q))


def _log_ratio(place: np.ndarray, source: np.ndarray, slope: np.ndarray, q: np.ndarray) -> np.ndarray:
    gap = place - source
    steep = slope * gap
    near = (steep < 30) & (gap < 1e6 * source)
    seen = _visible(source, slope, q)
    # e^Y - 1 keeps the relative accuracy of a small Y; a large one is a sum of logarithms
    small = np.log1p(np.where(near, gap, 0.0) * exprel(np.where(near, steep, 0.0)) / seen)
    return np.where(near, small, steep + np.log(_visible(place, slope, q)) - np.log(seen))


def _log_paths(c: ArrayLike, y: np.ndarray) -> np.ndarray:
    """log of psi_c(y)/c = 0F1(; 2; c y) = 2 I_1(z)/z, z = 2 sqrt(c y)."""
    z = np.asarray(2 * np.sqrt(c) * np.sqrt(y))
    w = np.minimum(z, 1.0) ** 2 / 4
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = z + np.log(2 * ive(1, z) / z)
        far = z - 0.5 * np.log(2 * np.pi * z) + np.log(2 / z) + np.log1p(-0.375 / z)
    # the first term left out of the series is w^3/144, that of the expansion for large z is 15/(128 z^2)
    return np.where(w < 1e-6, np.log1p(w / 2 + w * w / 12), np.where(z > 1e8, far, direct))


def _in_range(logs: np.ndarray, name: str, value: ArrayLike, instead: str) -> np.ndarray:
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(f"{name} is {written(value)}; the result leaves float range there, use {instead}.")
    return np.asarray(np.exp(logs))
