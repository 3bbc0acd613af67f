"""Rows of `theory.uniform` for general weights, correlations and patterns, of the tetrahedron, of caps and of layers."""

import mpmath as mp
import numpy as np

from attnflow.theory import landscape, random_layers
from attnflow.theory import uniform as room
from tests.degenerate.row import DISTANCES, NEAR, Row, m
from tests.degenerate.uniform import RESONANCE, multiplier, rate


def turning(beta, model):
    """Lambda for d = 3, k = 2, angle 0.5, c 0.6, spin 0.8: real and imaginary part, b_k' by a central difference."""
    beta = m(beta)

    def b(k, at):
        own = mp.besseli(k + 0.5, at) * mp.sqrt(mp.pi / (2 * at)) * mp.exp(-beta)
        return own if model == "USA0" else mp.besseli(k + 0.5, at) / mp.besseli(0.5, at)

    step, phase = beta * m(1e-12), mp.expj(m(-0.5))
    slope = (b(2, beta + step) - b(2, beta - step)) / (2 * step)
    whole = m(0.6) * 6 * b(2, beta) / beta * phase
    whole -= 1j * m(0.8) * ((slope + b(2, beta) / beta) * phase + b(1, beta))
    return [whole.real, whole.imag]


def triple(t, beta):
    """The closed form with quotients as they stand, at the resonance its limit; SA."""
    t, one, two = m(t), rate(1, beta, 2), rate(2, beta, 2)
    b1, b2 = multiplier(1, m(beta), 2), multiplier(2, m(beta), 2)
    p, q, split = (2 * b2 - b1 - b1 * b2) / m(beta), 2 * b1 * (1 - b1) / m(beta), 2 * one - two
    grown = mp.expm1(split * t) / split if abs(split) > 1e-30 else t
    whole = mp.exp((2 * one + two) * t) * (1 + 2 * p * mp.expm1(two * t) / two + 2 * q * grown)
    return whole - mp.exp(2 * two * t) - 2 * mp.exp(2 * one * t) + 2


def steepest(beta):
    """Where (b (1 - c^2) - c) e^{b (c - 1)} is largest, and its value."""
    b = m(beta)
    c = max((-3 + mp.sqrt(4 * b**2 + 5)) / (2 * b), mp.mpf(-1))
    return {"steepest_overlap": c, "expansion_rate": (b * (1 - c**2) - c) * mp.exp(b * (c - 1))}


def parts(number):
    """Real and imaginary part."""
    return [number.real, number.imag]


ROWS = [
    *(
        Row(
            "uniform.turning_rates",
            f"beta -> {end}, model {model}",
            lambda e, at=at, model=model: parts(
                room.turning_rates(at(e), 3, 2, angle=0.5, scale=0.6, spin=0.8, model=model)
            ),
            lambda e, at=at, model=model: turning(at(e), model),
            1e-12,
            atol,
            at=near,
        )
        for end, at, near, atol in (("0", lambda e: e, NEAR, 0.0), ("1e4", lambda e: 1e4 + e, DISTANCES, 1e-12))
        for model in ("SA", "USA0")
    ),
    Row(
        "uniform.uniform_velocity",
        "B -> 0",
        lambda e: room.uniform_velocity([0.6, 0.8], [[e, 0.0], [0.0, 2 * e]], np.eye(2)),
        lambda e: [-m(e) * m(0.48) * m(0.8) / 2, m(e) * m(0.48) * m(0.6) / 2],
        1e-8,  # the next order is |B|^2/8
        at=DISTANCES,
    ),
    Row(
        "uniform.triple_correlation",
        "the resonance 2 l_1 = l_2",
        lambda e: room.triple_correlation(0.7, RESONANCE * (1 + e)),
        lambda e: triple(0.7, RESONANCE * (1 + e)),
        1e-12,
    ),
    Row(
        "uniform.triple_correlation",
        "t -> 0, to absolute accuracy",
        lambda e: room.triple_correlation(e, 2.0),
        lambda e: triple(e, 2.0),
        0.0,
        1e-15,
    ),
    Row(
        "uniform.pair_correlation",
        "t -> 0",
        lambda e: room.pair_correlation(e, 3.0, 2, n=16),
        lambda e: 2 * rate(1, 3.0, 2) * m(e) * 16 / (15 + mp.exp(3) / mp.besseli(0, 3)),
        1e-3,  # the next order is 2 lambda_1 t
    ),
    Row(
        "uniform.pair_correlation",
        "beta -> 0",
        lambda e: room.pair_correlation(1.0, e, 3, n=16),
        lambda e: mp.expm1(2 * m(2) / 3 * 15 / 16) - mp.expm1(-2 * m(2) / 3 / 16),
        1e-3,
        at=DISTANCES,
    ),
    Row(
        "uniform.pattern_coefficient",
        "beta -> 0 and large",
        lambda e: [room.pattern_coefficient(e, 3, 2), room.pattern_coefficient(1e4 + e, 3, 2)],
        lambda e: [(1 - multiplier(2, m(e), 3)) / 2, (1 - multiplier(2, m(1e4 + e), 3)) / 2],
        1e-11,  # 1 - b_2 is 3e-4 at beta = 1e4
        at=NEAR,
    ),
    Row(
        "landscape.tetrahedron_rates",
        "beta -> 0: splitting is of second order",
        lambda e: landscape.tetrahedron_rates(3 * e / 4, model="USA0").splitting,
        lambda e: -mp.quad(lambda s: s * mp.exp(-s), [0, m(4 * (3 * e / 4) / 3)]) / 4,
        1e-14,
    ),
    *(
        Row(
            f"landscape.{name}",
            "beta -> 1/3, where the maximum leaves the antipode",
            lambda e, name=name: getattr(landscape, name)(1 / 3 + e),
            lambda e, name=name: steepest(1 / 3 + e)[name],
            1e-13,
        )
        for name in ("expansion_rate", "steepest_overlap")
    ),
    Row(
        "landscape.cap_time",
        "a short way",
        lambda e: landscape.cap_time(1.0 - e, 4.0, d=3, start=1.0),
        lambda e: -mp.log(m(1.0 - e)) / (2 * mp.cos(1) * mp.tan(m(0.5)) * mp.exp(-4 * (1 - mp.cos(1)))),
        1e-3,  # the rate changes along the way
        1e-15,
    ),
    Row(
        "random_layers.single_token_overlap",
        "small steps: the limit to 1e-9",
        lambda e: random_layers.single_token_overlap(1e-9 + e, 1.0, d=3),
        lambda e: mp.exp(-m(1) / 3) * (1 - (m(1e-9) + m(e)) / 18),
        2e-6,  # the mean cosine has an error of eps, and a power of 1e9
        at=(0.0, 1e-12, 1e-8, 1e-4),
    ),
]
