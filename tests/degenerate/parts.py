"""Rows of what is no theory: exact elements, energies, log-determinants, series of kernels."""

import functools

import mpmath as mp
import numpy as np

import attnflow as af
from attnflow import control, observe
from attnflow.fields import Affine, Drift, MeanAttention, ReluUnit
from attnflow.kernels import Exponential
from tests.degenerate.row import EPS, Row, m

AXIS = np.eye(3)[0]


def near(sign, e, d=3):
    """A unit vector at the distance e of sign times the first axis."""
    x = sign * np.eye(d)[0] + e * np.eye(d)[1]
    return x / np.linalg.norm(x)


@functools.cache
def space(d):
    return af.Sphere(d)


def push(element, x, duration=1.0, mu=None):
    """(end, log-determinant) of one point, in one array."""
    end, grown = control.Schedule(space(len(x)), [(element, duration)]).push(
        x[None], **({} if mu is None else {"mu": mu})
    )
    return np.append(end[0], grown[0])


def round_trip(element, x):
    schedule = control.Schedule(space(len(x)), [(element, 1.0)])
    end, grown = schedule.push(x[None])
    back, shrunk = schedule.inverse().push(end)
    return np.append(back[0], grown[0] + shrunk[0])


def boosted(x, e, length):
    """The Moebius map towards e by tan(angle/2) -> e^{-length} tan(angle/2), and its log-determinant."""
    x, e = [m(v) for v in x], [m(v) for v in e]
    size = mp.sqrt(sum(v * v for v in x))
    x, q = [v / size for v in x], mp.exp(-m(length))
    to, fro = sum((a + b) ** 2 for a, b in zip(x, e, strict=True)), sum((a - b) ** 2 for a, b in zip(x, e, strict=True))
    along, below = sum(a * b for a, b in zip(x, e, strict=True)), to + q * q * fro
    moved = [((to - q * q * fro) * b + 4 * q * (a - along * b)) / below for a, b in zip(x, e, strict=True)]
    return [*moved, (len(x) - 1) * mp.log(4 * q / below)]


def linear(matrix, x):
    """y/|y| for y = e^A x, and tr A - d log|y|."""
    y = mp.expm(mp.matrix(matrix.tolist())) * mp.matrix([m(v) for v in x])
    size = mp.sqrt(sum(v * v for v in y))
    return [*(v / size for v in y), m(np.trace(matrix)) - len(x) * mp.log(size)]


def gate_time(sign, b, x):
    """The time that the gate (b + sign <e, x>) P_x e takes for what `push` did in the time 1, by quadrature."""
    end = push(ReluUnit(AXIS, sign * AXIS, b), x)[0]
    return mp.quad(lambda c: 1 / ((m(b) + sign * c) * (1 - c * c)), mp.linspace(m(x[0]), m(end), 3))


def meeting(e, masses):
    """|x + y| of two tokens after the time 1 of attention at infinite temperature: tan(angle/2) falls by 1/e."""
    x = np.stack([near(1, 0.0), near(-1, e)])
    mu = af.Tokens(x, masses)
    end, _ = control.Schedule(space(3), [(MeanAttention(np.eye(3)), 1.0)]).push(x, mu=mu)
    return np.linalg.norm(end[0] + end[1])


def met(e):
    x = near(-1, e)
    half = mp.atan2(mp.sqrt((1 - m(x[0])) ** 2 + m(x[1]) ** 2), mp.sqrt((1 + m(x[0])) ** 2 + m(x[1]) ** 2))
    return 2 * mp.cos(mp.atan(mp.tan(half) / mp.e)) if e else 0


def pair_energy(e, beta, sign):
    """Two tokens of masses 1/4 and 3/4, at the distance e of coincident or antipodal."""
    x, y = near(1, 0.0), near(sign, e)
    drop = -sum((m(a) - m(b)) ** 2 for a, b in zip(x, y, strict=True)) / 2
    return 2 * m(0.25) * m(0.75) * (mp.expm1(m(beta) * drop) / m(beta) if beta else drop) / 2


def pair(e, sign):
    return af.Tokens(np.stack([near(1, 0.0), near(sign, e)]), [0.25, 0.75])


@functools.cache
def one_token_map():
    """The flow map of attention to one token, which is a boost for every beta."""
    token = af.Tokens(AXIS[None])
    return af.flow_map(af.Attention(3.0), token, 1.0, method=af.Fixed(0.05))


def series(beta, d):
    with af.precision.full_precision():
        return np.asarray(Exponential(beta).expansion(d, 4).p)[:3]


def weights(beta, d):
    from tests.degenerate.uniform import weight

    return [weight(k, beta, d) for k in range(3)]


ROWS = [
    *(
        Row(
            "Drift",
            f"points at {'the goal' if sign > 0 else 'the opposite of the goal'}, length {length:g}, d = {d}",
            lambda e, sign=sign, length=length, d=d: push(Drift(length * np.eye(d)[0]), near(sign, e, d)),
            lambda e, sign=sign, length=length, d=d: boosted(near(sign, e, d), np.eye(d)[0], length),
            1e-13,
            1e-15,
        )
        for d in (2, 3)
        for sign in (1, -1)
        for length in (1.0, 30.0)
    ),
    Row(
        "Drift",
        "a vector that vanishes",
        lambda e: push(Drift(e * AXIS), near(0.6, 0.8)),
        lambda e: boosted(near(0.6, 0.8), AXIS, e),
        1e-13,
        1e-15,
    ),
    *(
        Row(
            "ReluUnit",
            f"a = {sign} w, |b| = |a| {side}: the time that it took",
            lambda e, sign=sign, bias=bias: gate_time(sign, 1.0 + bias * e, np.array([0.0, 1.0, 0.0])),
            lambda e: 1,
            1e-9,  # the conditioning of the flow near its border, 1e3, times 1e3 roundings
        )
        for sign in (1, -1)
        for side, bias in (("and a little more", 1), ("and a little less", -1))
    ),
    Row(
        "ReluUnit",
        "a and w perpendicular, and a = 0: the inverse map undoes it",
        lambda e: round_trip(ReluUnit(AXIS, e * AXIS + np.eye(3)[1] * (e > 0), 0.3), np.array([0.0, 0.8, 0.6])),
        lambda e: [0, m(0.8), m(0.6), 0],
        1e-12,
        1e-13,
    ),
    *(
        Row(
            "Affine",
            family,
            lambda e, matrix=matrix: push(Affine(matrix(e)), near(1, 0.3)),
            lambda e, matrix=matrix: linear(matrix(e), near(1, 0.3)),
            1e-13,
            1e-14,
        )
        for family, matrix in (
            ("a multiple of the identity, which moves nothing", lambda e: np.eye(3) + e * np.diag([1.0, 0, 0])),
            ("no basis of eigenvectors", lambda e: np.eye(3) + np.eye(3, k=1) + e * np.diag([0.0, 1, 2])),
            ("zero", lambda e: e * np.diag([1.0, 2, 3])),
        )
    ),
    *(
        Row(
            "MeanAttention",
            f"antipodal tokens of masses {masses}: a mean that vanishes",
            lambda e, masses=masses: meeting(e, masses),
            lambda e: met(e),
            1e-6,
            1e-15,  # positions are rounded to a unit in the last place
        )
        for masses in ((0.5, 0.5), (0.6, 0.4))
    ),
    *(
        Row(
            "observe.energy",
            f"{'coincident' if sign > 0 else 'antipodal'} tokens, beta = {beta:g}",
            lambda e, sign=sign, beta=beta: observe.energy(pair(e, sign), beta),
            lambda e, sign=sign, beta=beta: pair_energy(e, beta, sign),
            1e-10 if beta > 1e3 else 1e-7 if sign > 0 else 32 * EPS,
            # centred at the mean, distances of 1e-8 carry roundings of 1e-16
        )
        for sign in (1, -1)
        for beta in (0.0, 1e-12, 1.0, 1e6)
    ),
    Row(
        "observe.energy",
        "beta -> 0",
        lambda e: observe.energy(pair(0.5, 1), e),
        lambda e: pair_energy(0.5, e, 1),
        16 * EPS,
    ),
    Row(
        "observe.log_energy",
        "coincident tokens: beta - log(2 beta)",
        lambda e: observe.log_energy(pair(e, 1), 9.0),
        lambda e: 9 - mp.log(18) + 18 * pair_energy(e, 9.0, 1),
        16 * EPS,
        at=(0.0, 1e-16, 1e-12, 1e-8),
    ),
    Row(
        "FlowMap.log_determinant",
        "points at the token and at its opposite",
        lambda e: one_token_map().log_determinant(np.stack([near(1, e), near(-1, e)])),
        lambda e: [boosted(near(sign, e), AXIS, 1.0)[-1] for sign in (1, -1)],
        1e-5,  # steps of the fourth order, 0.05^4
    ),
    *(
        Row(
            "kernels.Exponential.expansion",
            f"beta -> 0, d = {d}",
            lambda e, d=d: series(e, d),
            lambda e, d=d: weights(e, d),
            32 * EPS,
        )
        for d in (2, 3)
    ),
]
