"""Oracles of `theory.landscape`."""

import math

import mpmath as mp

from tests.formulas.oracle import oracle


def cap_speed(diameter, beta, d):
    """-dD/dt of the bound of `cap_time`."""
    steep = mp.sin(diameter) if d == 2 else 2 * mp.cos(diameter) * mp.tan(diameter / 2)
    return steep * mp.exp(-beta * 2 * mp.sin(diameter / 2) ** 2)


def allowed_start(a):
    return a["start"] < (math.pi if a["d"] == 2 else math.pi / 2)


@oracle(
    "landscape.cap_time",
    relation=lambda a: a["diameter"] < a["start"] and allowed_start(a),
    cases=(
        {"diameter": 1e-3, "beta": 2.0, "d": 2, "start": 3.14159},
        {"diameter": 0.1, "beta": 50.0, "d": 3, "start": 1.57},
        {"diameter": 1e-9, "beta": 2.0, "d": 2, "start": 3.0},
        {"diameter": 1.0, "beta": 2.0, "d": 2, "start": 1.0},
    ),
    fresh=1,
)
def cap_time(diameter, beta, d, start):
    first, last, beta = mp.mpf(diameter), mp.mpf(start), mp.mpf(beta)
    # panels that grow by factors of 30 from both ends: 1/speed has poles at 0 and at the end of the domain
    edges = {first, last, *(first * mp.mpf(30) ** k for k in range(1, 250) if first * mp.mpf(30) ** k < last)}
    edges |= {last - (last - first) * mp.mpf(30) ** -k for k in range(1, 14)}
    return mp.quad(lambda x: 1 / cap_speed(x, beta, d), sorted(edges))
