"""Distances of all pairs of tokens: the Beta distribution of iid uniform tokens, and its first change."""

import math

import numpy as np
from scipy.special import gammaln, zeta

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special import degrees
from attnflow.special.formula import MODEL, Integers, Optional, Reals, formula
from attnflow.special.integrals import log_integral
from attnflow.special.numbers import ArrayLike
from attnflow.theory.uniform.correlations import correlations_over_rates
from attnflow.theory.uniform.spectrum import DIMENSION, growth_rates
from attnflow.wording import shown

OVERLAPS = Reals(-1.0, 1.0)


@formula(d=DIMENSION, relative=1e-15)
def mean_distance(d: int) -> float:
    """E |x - y| = 2^{d-1} Gamma(d/2)^2/(sqrt(pi) Gamma(d - 1/2)) for independent uniform x, y on S^{d-1}, d >= 2.

    4/pi on the circle, 4/3 on S^2, sqrt(2) for d -> infinity; E |x - y|^2 = 2 and the median is sqrt(2) for every d.
    """
    # sqrt(2) Gamma(z)^2/(Gamma(z - 1/4) Gamma(z + 1/4)) with z = d/2, expanded in the shift 1/4
    m = np.arange(1, 16)
    return float(math.sqrt(2) * np.exp(-np.sum(zeta(2 * m, d / 2) / (m * 16.0**m))))


@formula(overlap=OVERLAPS, d=DIMENSION, relative=2e-12)
def overlap_distribution(overlap: ArrayLike, d: int) -> np.ndarray:
    """P(<x, y> <= overlap) for independent uniform x, y on S^{d-1}: (1 + <x, y>)/2 is Beta((d-1)/2, (d-1)/2).

    By integrals of cos^{d-2} over the latitude, so that tails keep their relative accuracy in high dimension.
    """
    height = np.abs(overlap)
    with np.errstate(divide="ignore"):
        empty = (d - 1) / 2 * np.log((1 - height) * (1 + height)) < -750  # beyond, less than 1e-320 is left
    height = np.where(empty, 0.0, height)
    # from the equator in latitudes, near a pole in distances from it
    polar = height > 0.7
    latitude, colatitude = np.arcsin(np.where(polar, 0.0, height)), 2 * np.arcsin(np.sqrt((1 - height) / 2))

    def log_latitudes(x: np.ndarray) -> np.ndarray:
        return np.asarray((d - 2) * np.log1p(-(np.sin(x) ** 2)) / 2 if d > 2 else 0 * x)

    def log_colatitudes(x: np.ndarray) -> np.ndarray:
        return np.asarray((d - 2) * np.log(np.sin(x)) if d > 2 else 0 * x)

    # where cos^{d-2} has fallen to e^-800 nothing is left
    end = min(math.pi / 2, math.sqrt(1600 / max(d - 2, 1)))
    whole = log_integral(log_latitudes, 0.0, end)
    outer = np.where(
        polar,
        log_integral(log_colatitudes, 0.0, np.where(polar, colatitude, 0.0)),
        log_integral(log_latitudes, latitude, np.maximum(latitude, np.minimum(latitude + end, math.pi / 2))),
    )
    with np.errstate(under="ignore"):
        tail = np.where(empty, 0.0, np.exp(outer - whole) / 2)
    return np.where(overlap < 0, tail, 1 - tail)


@formula(
    overlap=OVERLAPS,
    t=Reals(0.0, scalar=True),
    beta=Reals(0.0, 1e4, scalar=True),
    d=Integers(2, 10_000, scalar=True),
    n=Optional(Integers(2, scalar=True)),
    model=MODEL,
    relative=1e-11,
    absolute="np.minimum(1e-13 * t * np.exp(np.minimum(3 * beta, 700.0)) * np.sqrt(d), 1e-9)",
)
def overlap_shift(
    overlap: ArrayLike, t: float, beta: float, *, d: int, n: int | None = None, model: str = "SA"
) -> np.ndarray:
    """n times the change of P(<x_1, x_2> <= overlap) at time t, for n tokens that start iid and uniform on S^{d-1}.

    The density of s = <x_1, x_2> is that of the Beta distribution, f, times 1 + (1/n) sum_k N(k, d) c_k P_k(s), with
    the `pair_correlation` c_k (its closure where n is given) and N the multiplicity. Since P_k is an eigenfunction,
    the integral is -sum_k N c_k f(s) (1 - s^2) P_k'(s)/(k (k+d-2)): no quadrature; P_k'/(k (k+d-2)) is P_{k-1} of
    dimension d + 2, over d - 1. Derived here; e^{2 lambda_k t} << n.

    Arguments:
        overlap: values of s.
        t: time.
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        n: number of tokens; None for many.
        model: dynamics of the tokens.

    Raises:
        NotAccurate: if terms of the sum cancel to less than 1e-9.
    """
    if n is not None and model != "SA":
        raise InvalidInput(
            f"`model` is {shown(model)}; the closure at finite n is that of SA: leave n out, or use 'SA'."
        )
    weights = degrees.degree_weights(beta, d)
    k = np.arange(1.0, len(weights))
    rates = growth_rates(beta, d, k=k, model=model)
    sa_rates = rates if model == "SA" else growth_rates(beta, d, k=k)
    with np.errstate(all="ignore"):
        # N times the SA rate: k (k+d-2) p_k/(beta p_0)
        strengths = k * (k + (d - 2)) * (weights[1:] / weights[0]) / beta if beta else np.where(k == 1, d - 1.0, 0.0)
        clock = np.where(sa_rates > 0, rates / sa_rates, 0.0)
        terms = (
            strengths
            * clock
            * correlations_over_rates(np.asarray(2 * t), rates, beta, d, None if n is None else np.asarray(n))
        )
    log_density = gammaln(d / 2) - gammaln((d - 1) / 2) - np.log(np.pi) / 2
    with np.errstate(under="ignore"):
        weight = np.exp(log_density) * ((1 - overlap) * (1 + overlap)) ** ((d - 1) / 2) / (d - 1)
    # P_0, P_1, ... of dimension d + 2, which are at most 1
    below, current, total = np.ones_like(overlap), overlap, terms[0] * np.ones_like(overlap)
    for j in range(1, len(k)):
        total = total + terms[j] * current
        below, current = current, ((2 * j + d) * overlap * current - j * below) / (j + d)
    if not np.all(4e-15 * weight * np.sum(np.abs(terms)) <= 1e-9):
        raise NotAccurate("degrees cancel in the distribution of overlaps at this time.")
    return np.asarray(-weight * total)
