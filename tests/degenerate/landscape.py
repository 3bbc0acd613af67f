"""Rows of `theory.landscape`."""

import math

import mpmath as mp
import numpy as np

from attnflow.theory import landscape as room
from tests.degenerate.row import EPS, NEAR, STEEP, Row, m

TRIANGLE = np.stack([np.cos(2 * np.pi * np.arange(3) / 3), np.sin(2 * np.pi * np.arange(3) / 3)], axis=1)


def uniform_energy(beta, d):
    nu, beta = m(d) / 2 - 1, m(beta)
    mean = mp.gamma(nu + 1) * (2 / beta) ** nu * mp.besseli(nu, beta)
    return (mean * mp.exp(-beta) - 1) / (2 * beta)


def inflection(beta):
    return mp.acos(2 * m(beta) / (1 + mp.sqrt(1 + 4 * m(beta) ** 2)))


def ring(beta, n, k):
    """The pair sum of USA0."""
    total = m(0)
    for j in range(1, n):
        a = 2 * mp.pi * j / n
        pull = (m(beta) * mp.sin(a) ** 2 - mp.cos(a)) * mp.exp(-m(beta) * (1 - mp.cos(a)))
        total += pull * (1 - mp.cos(k * a))
    return total / n


def delay(low, e):
    """The limit of t - s for V = [[1, 1], [low e, 1 + (1 + low) e]], low = 0 or -1, from (1/2, 1/2), by quadrature.

    e^(sV) is e^s [[1, (e^(es) - 1)/e], [0, e^(es)]], or e^s times a rotation by s sqrt(e) with the axes 1 and sqrt(e).
    """
    e = m(e)

    def excess(s):
        if low:
            turn = mp.sqrt(e)
            path = (
                mp.cos(turn * s) + (mp.sin(turn * s) / turn if e else s),
                mp.cos(turn * s) - turn * mp.sin(turn * s),
            )
        else:
            path = (1 + (mp.expm1(e * s) / e if e else s), mp.exp(e * s))
        return mp.coth(mp.exp(2 * s) * (path[0] ** 2 + path[1] ** 2) / 4) - 1

    return mp.quad(excess, [0, 0.5, 1, 2, 4])


def pair(e):
    """Two tokens at the angle e."""
    return np.array([[1.0, 0.0], [math.cos(e), math.sin(e)]])


def pair_rate(e, beta):
    """dE/dt of two equal tokens, USA0: both have the speed q sin/2."""
    a = mp.atan2(m(math.sin(e)), m(math.cos(e)))
    return (mp.exp(-m(beta) * 2 * mp.sin(a / 2) ** 2) * mp.sin(a) / 2) ** 2


ROWS = [
    *(
        Row(
            "landscape.energy_of_uniform",
            f"beta -> {end}, d = {d}",
            lambda e, d=d, power=power: room.energy_of_uniform(e**power, d),
            lambda e, d=d, power=power: uniform_energy(e**power, d),
            1e-14,
            at=at,
        )
        for d in (2, 3, 8)
        for end, power, at in (("0", 1, NEAR), ("infinity", -1, (1e-12, 1e-4)))
    ),
    *(
        Row(
            "landscape.circle_modes",
            f"two tokens, beta -> {end}",
            lambda e, power=power: room.circle_modes(2, e**power).value,
            lambda e, power=power: 2 - 2 * inflection(e**power) / mp.pi,
            4 * EPS,
            at=STEEP,
        )
        for end, power in (("infinity", -1), ("0", 1))
    ),
    Row(
        "landscape.two_point_modes",
        "beta -> 0 and infinity",
        lambda e: [room.two_point_modes(e), room.two_point_modes(1 / max(e, 1e-300))],
        lambda e: [1 + mp.erfc(1 / mp.sqrt(m(e))) if e else 1, 1 + mp.erfc(mp.sqrt(m(max(e, 1e-300))))],
        8 * EPS,
    ),
    Row(
        "landscape.line_modes",
        "two tokens are exact",
        lambda e: room.line_modes(2, 1.0 + e).value,
        lambda e: 1 + mp.erfc(1 / mp.sqrt(m(1.0 + e))),
        4 * EPS,
    ),
    Row(
        "landscape.expected_modes",
        "beta -> 0: 1 + 3 beta^2/16",
        lambda e: room.expected_modes(e),
        lambda e: mp.sqrt((1 + m(e) ** 2) / (1 + m(e) ** 2 / 4)),
        4 * EPS + 1e-12,
    ),
    Row(
        "landscape.count_circle_modes",
        "two tokens at the angle where the modes merge",
        lambda e: [
            room.count_circle_modes([0.0, 2 * float(inflection(9.0)) * (1 + s * max(e, 1e-6))], 9.0) for s in (-1, 1)
        ],
        lambda e: [1, 2],
        0,
        at=(1e-6, 1e-4),
    ),
    Row(
        "landscape.count_line_modes",
        "two tokens at the distance where the modes merge",
        lambda e: [room.count_line_modes([0.0, 2 / 3 * (1 + s * max(e, 1e-6))], 9.0) for s in (-1, 1)],
        lambda e: [1, 2],
        0,
        at=(1e-6, 1e-4),
    ),
    *(
        Row(
            "landscape.ring_growth_rates",
            f"beta -> 0, n = {n}",
            lambda e, n=n: room.ring_growth_rates(e, n, k=1, model="USA0"),
            lambda e, n=n: ring(e, n, 1),
            1e-12,
        )
        for n in (2, 3, 8)
    ),
    Row(
        "landscape.ring_growth_rates",
        "k = 0 and n: rotations",
        lambda e: room.ring_growth_rates(5.0, 6, k=[0, 6], model="USA0"),
        lambda e: [0, 0],
        0,
        4 * EPS,
        at=(0.0,),
    ),
    Row(
        "landscape.escape_rate",
        "beta -> 0, n = 3",
        lambda e: room.escape_rate(e, 4, model="USA0"),
        lambda e: max(ring(e, 4, k) for k in (1, 2)),
        1e-12,
    ),
    Row(
        "landscape.log_escape_rate",
        "beta -> infinity, n = 4",
        lambda e: room.log_escape_rate(1 / e, 4, model="USA0"),
        lambda e: mp.log(ring(1 / e, 4, 2)),
        1e-12,
        at=(1e-8, 1e-4),
    ),
    *(
        Row(
            "landscape.pair_delay",
            f"a matrix without a basis of eigenvectors, {shape}",
            lambda e, low=low: room.pair_delay([[1.0, 1.0], [low * e, 1.0 + (1 + low) * e]], [0.5, 0.5]),
            lambda e, low=low: delay(low, e),
            1e-11,  # weights below e^-40 are left out
        )
        for shape, low in (("two eigenvalues", 0), ("rotating", -1))
    ),
    Row(
        "landscape.pair_delay",
        "x has almost no part that grows",
        lambda e: room.pair_delay(np.diag([1.0, -1.0]), [e, 0.0]) - room.pair_delay(np.diag([1.0, -1.0]), [e, 1e-200]),
        lambda e: 0,
        0,
        1e-3,
        at=(1e-4,),
    ),
    Row(
        "landscape.regular_radius",
        "two corners are a pair; radius -> 0 for a time of order 1: z falls like e^{-t}",
        lambda e: [
            room.regular_radius(np.array([[1.0], [-1.0]]), 0.3 + e)
            / ((0.3 + e) * math.exp(-room.pair_delay([[1.0]], [0.3 + e]))),
            room.regular_radius(TRIANGLE, max(e, 1e-6), t=1.0) / (max(e, 1e-6) * math.exp(-1)),
        ],
        lambda e: [1, 1],
        1e-8,
        at=(0.0, 1e-8, 1e-6),
    ),
    Row(
        "landscape.pair_departure",
        "t -> 0: log of the growth is (X^2 coth X^2 tanh X^2 - 1) t, log X = log radius",
        lambda e: [room.pair_departure(0.5, e)[0], room.pair_departure(0.5, e)[1]],
        lambda e: [m(e) * (m(0.25) - 1), mp.log(m(0.5)) + m(e) * mp.tanh(m(0.25))],
        1e-3,
        1e-15,
    ),
    Row(
        "landscape.energy_rate_of_tokens",
        "coincident and antipodal tokens: 0",
        lambda e: [room.energy_rate_of_tokens(pair(a), 3.0, model="USA0") for a in (e, math.pi - e)],
        lambda e: [pair_rate(a, 3.0) for a in (e, math.pi - e)],
        1e-7,
        1e-31,  # velocities are right to a unit in the last place of 1, and the rate is their square
        at=(0.0, 1e-8, 1e-4),
    ),
    Row(
        "landscape.energy_rate_of_heads",
        "one head, coincident tokens",
        lambda e: room.energy_rate_of_heads(np.eye(2)[None], pair(e), [0.5, 0.5], beta=3.0, model="USA0")[0],
        lambda e: pair_rate(e, 3.0),
        1e-7,
        1e-31,
        at=(0.0, 1e-8, 1e-4),
    ),
    Row(
        "landscape.hemisphere_probability",
        "n = d, and one more",
        lambda e: [room.hemisphere_probability(n, 4) for n in (4, 5, 8)],
        lambda e: [1, 1 - m(1) / 16, m(1) / 2],
        8 * EPS,
        at=(0.0,),
    ),
    Row(
        "landscape.log_hemisphere_probability",
        "beyond float range",
        lambda e: room.log_hemisphere_probability(2000, 3),
        lambda e: mp.log(sum(mp.binomial(1999, k) for k in range(3))) - 1999 * mp.log(2),
        16 * EPS,
        at=(0.0,),
    ),
    Row(
        "landscape.non_atomic_density",
        "u -> 0 (uniform) and the threshold, where the density touches 0",
        lambda e: [
            room.non_atomic_density(0.3, e * float(room.non_atomic_threshold(2.0)), 2.0),
            room.non_atomic_density(0.0, (1 - e) * float(room.non_atomic_threshold(2.0)), 2.0),
        ],
        lambda e: [(1 - m(e) * mp.cos(m(0.3))) / (2 * mp.pi), m(e) / (2 * mp.pi)],
        1e-10,
        1e-16,
    ),
    Row(
        "landscape.Landscape",
        "log cosh at and near 0",
        lambda e: room.Landscape([[e, 0.0]], [0.0], [1.0], "tanh").potential([[1.0, 0.0]])[0],
        lambda e: mp.log1p(2 * mp.sinh(m(e) / 2) ** 2),
        8 * EPS,
    ),
    Row(
        "landscape.antipodal_spectrum",
        "beta -> 0: all tokens but one at a pole",
        lambda e: np.sort(room.antipodal_spectrum(n=4, d=3, first=3, beta=e))[-1],
        lambda e: float(np.sort(room.antipodal_spectrum(n=4, d=3, first=3, beta=0.0))[-1]),
        1e-3,
        at=(0.0, 1e-16, 1e-12, 1e-8, 1e-4),
    ),
]
