"""Rows of `theory.uniform`."""

import mpmath as mp
import numpy as np
from scipy.optimize import brentq

from attnflow.theory import uniform as room
from tests.degenerate.row import DISTANCES, EPS, NEAR, STEEP, Row, m


def multiplier(k, beta, d):
    """a_k/a_0 of the kernel e^{beta <x, y>}."""
    nu = m(d) / 2 - 1
    return mp.besseli(k + nu, beta) / mp.besseli(nu, beta)


def rate(k, beta, d):
    """lambda_k of SA; at beta = 0 its limit."""
    if beta == 0:
        return m(d - 1) / d if k == 1 else m(0)
    return k * (k + d - 2) * multiplier(k, m(beta), d) / m(beta)


def weight(k, beta, d):
    """p_k of the kernel by degrees."""
    if beta == 0:
        return m(k == 0)
    nu, count = m(d) / 2 - 1, int(room.multiplicity(k, d))
    return count * mp.gamma(m(d) / 2) * (2 / m(beta)) ** nu * mp.besseli(k + nu, m(beta)) * mp.exp(-m(beta))


RESONANCE = brentq(
    lambda b: 2 * float(room.growth_rates(b, 2, k=1)) - float(room.growth_rates(b, 2, k=2)), 2.0, 3.0, xtol=1e-15
)
"""The beta at which degree 2 grows twice as fast as degree 1 on the circle."""


def cubic(beta, t=3, start=0.01):
    one, two = rate(1, beta, 2), rate(2, beta, 2)
    r1, r2 = (multiplier(k, m(beta), 2) if beta else m(0) for k in (1, 2))
    square, split = m(start) ** 2 * mp.expm1(2 * one * t) / (2 * one), 2 * one - two

    def doubled(s):
        return mp.exp(two * s) * (mp.expm1(split * s) / split if abs(split) > 1e-30 else s)

    double = one * (1 - r1) * m(start) ** 2 * mp.quad(doubled, [0, t])
    return -one * r1 * (1 - r1) / 4 * square - (one * (1 + r2) / 2 - two / 4) * double


def landau(beta, model):
    beta = m(beta)
    i0, i1, i2 = (mp.besseli(k, beta) for k in range(3))
    p, q, onset = i0 / i1, i2 / i1, i1 / i0 / beta
    if model == "SA":
        return onset * (p - 1) * ((p - 1) * q / (1 - q) - p - 2) / (4 * p**2)
    return mp.exp(-beta) * i0 * onset * (q / (1 - q) - 1) / 4


def equiangular(overlap, beta, n, overlap0):
    """The time of SA by quadrature over the log-odds."""

    def odds(g):
        return mp.log((1 + (n - 1) * m(g)) / (1 - m(g)))

    def slowness(z):
        left = n / (n - 1 + mp.exp(z))
        e = mp.exp(-m(beta) * left)
        return (1 + (n - 1) * e) / (2 * n * e)

    first, last = odds(overlap0), odds(overlap)
    return mp.quad(slowness, mp.linspace(first, last, 3)) if last > first else m(0)


def long_context(c, n, overlap):
    c, overlap, n = m(c), m(overlap), m(n)
    e = n ** (-c * (1 - overlap))
    if e == 1:
        return m(1)
    r, s = e / (1 - e), 1 + (n - 1) * overlap
    x = 2 * r * s + r**2 * n * s
    return (overlap + x) / (1 + x)


def growth(overlap, beta, n):
    """How the mean of a small deviation grows: gamma'(overlap)/gamma'(0)."""

    def speed(g):
        e = mp.exp(-m(beta) * (1 - m(g)))
        return e * (1 - m(g)) * (1 + (n - 1) * m(g)) / (1 + (n - 1) * e)

    return speed(overlap) / speed(0)


def moments(b, d):
    nu = m(d) / 2 - 1
    return mp.log(mp.gamma(nu + 1) * (2 / m(b)) ** nu * mp.besseli(nu, m(b)))


def iid(c, n, d, rho):
    b = m(c) * mp.log(m(n)) * (1 - m(rho))
    mean, slope = mp.exp(moments(b, d - 1)), multiplier(1, b, d - 1)
    others = (n - 2) * mean * mp.exp(-b)
    across = (1 - mp.exp(-2 * b) + others * slope) / (1 + others + mp.exp(-2 * b))
    ratio = (1 - m(rho)) / m(rho) * across**2
    return (1 - ratio) / (1 + ratio)


ROWS = [
    *(
        Row(f"uniform.{name}", f"beta -> 0, d = {d}, k = {k}", found, exact, 16 * EPS)
        for d in (2, 3)
        for k in (1, 2)
        for name, found, exact in (
            (
                "growth_rates",
                lambda e, d=d, k=k: room.growth_rates(e, d, k=k),
                lambda e, d=d, k=k: rate(k, e, d),
            ),
            (
                "critical_noise",
                lambda e, d=d, k=k: room.critical_noise(e, d, k=k),
                lambda e, d=d, k=k: rate(k, e, d) / (k * (k + d - 2)),
            ),
        )
    ),
    *(
        Row(
            "uniform.growth_rates",
            f"beta -> infinity, d = {d}",
            lambda e, d=d: room.growth_rates(1 / e, d, k=2),
            lambda e, d=d: rate(2, 1 / e, d),
            1e-12,
            at=(1e-16, 1e-12, 1e-4),  # errors of 7 sqrt(beta) steps at beta = 1e4
        )
        for d in (2, 3)
    ),
    Row(
        "uniform.log_growth_rates",
        "beta -> 0",
        lambda e: room.log_growth_rates(e, 3, 2, model="USA"),
        lambda e: mp.log(rate(2, e, 3) * mp.sinh(m(e)) / m(e)),
        16 * EPS,
        at=NEAR,
    ),
    *(
        Row(
            "uniform.degree_weights",
            f"beta -> 0, d = {d}",
            lambda e, d=d: room.degree_weights(e, d, 3),
            lambda e, d=d: [weight(k, e, d) for k in range(3)],
            1e-13,
        )
        for d in (2, 3)
    ),
    Row(
        "uniform.cubic_growth",
        "degree 2 grows twice as fast as degree 1",
        lambda e: room.cubic_growth(3.0, 0.01, RESONANCE + e, k=1),
        lambda e: cubic(RESONANCE + e),
        64 * EPS,
    ),
    Row("uniform.cubic_growth", "beta -> 0", lambda e: room.cubic_growth(3.0, 0.01, e, k=1), cubic, 64 * EPS, at=NEAR),
    Row(
        "uniform.quadratic_growth",
        "beta -> 0, where the kernel is flat; 0 on the circle",
        lambda e: [room.quadratic_growth(e, 3, 2), room.quadratic_growth(e, 2, 2)],
        lambda e: [(1 - multiplier(2, m(e), 3)) / 2 * m(2) / 7, 0],
        64 * EPS,
        at=NEAR,
    ),
    *(
        Row(
            "uniform.landau_coefficient",
            f"beta -> {end}, {model}",
            lambda e, model=model, power=power: room.landau_coefficient(e**power, model=model),
            lambda e, model=model, power=power: landau(e**power, model),
            64 * EPS,
            at=at,
        )
        for model in ("SA", "USA0")
        for end, power, at in (("0", 1, NEAR), ("infinity", -1, (1e-12, 1e-6, 1e-4)))
    ),
    Row(
        "uniform.jump_threshold",
        "where landau_coefficient vanishes",
        lambda e: room.landau_coefficient(float(room.jump_threshold(2)) * (1 + e), model="USA0"),
        lambda e: landau(float(room.jump_threshold(2)) * (1 + e), "USA0"),
        1e-12,
        4 * EPS,
    ),
    Row(
        "uniform.equiangular_time",
        "overlap -> overlap0",
        lambda e: room.equiangular_time(0.3 + e, 5.0, 3, overlap0=0.3),
        lambda e: equiangular(0.3 + e, 5.0, 3, 0.3),
        64 * EPS,
    ),
    Row(
        "uniform.equiangular_time",
        "overlap0 -> the simplex",
        lambda e: room.equiangular_time(0.5, 5.0, 3, overlap0=-0.5 + e),
        lambda e: equiangular(0.5, 5.0, 3, -0.5 + e),
        64 * EPS,
        at=NEAR,
    ),
    Row(
        "uniform.equiangular_time",
        "overlap -> 1",
        lambda e: room.equiangular_time(1 - e, 5.0, 3),
        lambda e: equiangular(1 - e, 5.0, 3, 0.0),
        64 * EPS,
        at=NEAR,
    ),
    Row(
        "uniform.equiangular_time",
        "beta -> 0",
        lambda e: room.equiangular_time(0.5, e, 3),
        lambda e: equiangular(0.5, e, 3, 0.0),
        64 * EPS,
    ),
    Row(
        "uniform.log_equiangular_time",
        "overlap -> overlap0",
        lambda e: room.log_equiangular_time(0.25 + e, 50.0, 3, overlap0=0.25),
        lambda e: mp.log(equiangular(0.25 + e, 50.0, 3, 0.25)),
        64 * EPS,
        at=(1e-15, 1e-12, 1e-8, 1e-4),
    ),
    Row(
        "uniform.equiangular_overlap",
        "the time back: t -> 0, and overlap0 -> 1",
        lambda e: [
            room.equiangular_overlap(float(equiangular(0.3 + e, 5.0, 3, 0.3)), 5.0, 3, overlap0=0.3),
            room.equiangular_overlap(1.0, 5.0, 3, overlap0=1 - e if e else 0.5),
        ],
        lambda e: [
            0.3 + e,
            1 - (1 - m(1 - e)) * mp.exp(-2)
            if 0 < e < 1e-6
            else room.equiangular_overlap(1.0, 5.0, 3, overlap0=1 - e if e else 0.5),
        ],
        4 * EPS,
    ),
    *(
        Row("uniform.long_context_overlap", family, found, exact, 1e-13)
        for family, found, exact in (
            (
                "overlap -> 1",
                lambda e: room.long_context_overlap(0.7, 50.0, 1 - e),
                lambda e: long_context(0.7, 50, 1 - e),
            ),
            ("c -> 0", lambda e: room.long_context_overlap(e, 50.0, 0.5), lambda e: long_context(e, 50, 0.5)),
        )
    ),
    Row(
        "uniform.long_context_overlap",
        "the simplex",
        lambda e: room.long_context_overlap(0.7, 3.0, -0.5 + e),
        lambda e: long_context(0.7, 3, -0.5 + e),
        64 * EPS,
    ),
    Row(
        "uniform.long_context_limit",
        "the threshold in c",
        lambda e: room.long_context_limit(2 * (1 + e), 0.5),
        lambda e: m("0.8") if e < 1e-15 else m(0.5),
        4 * EPS,
    ),
    Row(
        "uniform.long_context_iid_overlap",
        "c -> 0",
        lambda e: room.long_context_iid_overlap(e, n=1e4, d=5, overlap=0.5),
        lambda e: iid(e, 10**4, 5, 0.5),
        1e-11,
        at=NEAR,
    ),
    Row(
        "uniform.exponential_moments",
        "b -> 0: log M to absolute accuracy",
        lambda e: room.exponential_moments(e, 5.0),
        lambda e: [moments(e, 5), multiplier(1, m(e), 5)],
        1e-13,
        1e-13,
        at=NEAR,
    ),
    *(
        Row(
            "uniform.overlap_growth",
            f"overlap -> {end}, beta = {beta:g}",
            lambda e, at=at, beta=beta: room.overlap_growth(at(e), beta, 5)[0],
            lambda e, at=at, beta=beta: growth(at(e), beta, 5),
            1e-12,
            at=near,
        )
        for beta in (1.0, 100.0)
        for end, at, near in (
            ("1", lambda e: 1 - e, NEAR),
            ("0", lambda e: e, DISTANCES),
            ("the simplex", lambda e: -0.25 + e, NEAR),
        )
    ),
    Row(
        "uniform.overlap_spread",
        "overlap -> 0, where it is 1",
        lambda e: room.overlap_spread(e, 2.0, 5),
        lambda e: 1,
        1e-15,
        1e-3,
        at=DISTANCES,
    ),
    Row(
        "uniform.overlap_rates",
        "overlap -> 1: -2 for every part, where tokens are one",
        lambda e: room.overlap_rates(1 - e, 3.0, 5)[1],
        lambda e: [-2, -2, -2],
        0,
        1e-2,
        at=DISTANCES,
    ),
    Row(
        "uniform.linear_modes",
        "beta -> 0, one mode; long times, the fastest",
        lambda e: [room.linear_modes(0.0, e), room.linear_modes(1e30, 9.0)],
        lambda e: [1, int(room.dominant_degree(9.0, 2))],
        1e-8,
        at=(0.0, 1e-16, 1e-12, 1e-8),
    ),
    Row(
        "uniform.dominant_degree",
        "the switch from k to k + 1",
        lambda e: [
            room.dominant_degree(float(room.switching_threshold(2, 3)) * (1 + s * (e + 1e-12)), 3) for s in (-1, 1)
        ],
        lambda e: [2, 3],
        0,
        at=(0.0, 1e-12, 1e-8, 1e-4),
    ),
    Row(
        "uniform.switching_threshold",
        "d = 2: both degrees grow alike",
        lambda e: room.growth_rates(room.switching_threshold(3, 2), 2, k=4),
        lambda e: float(room.growth_rates(room.switching_threshold(3, 2), 2, k=3)),
        1e-12,
        at=(0.0,),
    ),
    Row(
        "uniform.truncation_degree",
        "beta -> 0",
        lambda e: room.truncation_degree(1e-10, e, 3),
        lambda e: 0 if e < 1e-10 else 1 if e < 1e-5 else 2,
        0,
    ),
    Row(
        "uniform.norm_initial_rate",
        "beta -> infinity: 2 e^{-beta}",
        lambda e: room.norm_initial_rate(-np.log(max(e, 1e-300)), 4, "peri"),
        lambda e: 2 * m(max(e, 1e-300)),
        1e-7,
        at=STEEP,
    ),
    Row(
        "uniform.linear_time",
        "n -> what the fluctuations have from the beginning: 0",
        lambda e: room.linear_time(
            float(2 * sum(multiplier(k, m(4), 2) ** 2 for k in range(1, 40))) * (1 + e) + 1e-15, 4.0
        ),
        lambda e: (
            e
            * mp.nsum(lambda k: multiplier(k, m(4), 2) ** 2, [1, 40])
            / (2 * mp.nsum(lambda k: multiplier(k, m(4), 2) ** 2 * rate(k, 4.0, 2), [1, 40]))
        ),
        1e-3,
        4e-12,
    ),
]
