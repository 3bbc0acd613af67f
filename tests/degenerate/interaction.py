"""Rows of `theory.uniform` for general weights."""

import mpmath as mp
import numpy as np

from attnflow.theory import uniform as room
from tests.degenerate.row import DISTANCES, NEAR, Row, m


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
]
