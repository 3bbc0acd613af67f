"""Oracles of `transport`."""

import mpmath as mp
import numpy as np

from tests.formulas.measures import attention, chord2, dot, exact, made, measure, transport, velocities
from tests.formulas.oracle import oracle

PROCEDURES = {
    "path_efficiency": "reads a flow, frame by frame",
    "path_length": "reads a flow, frame by frame",
}


def place(rng):
    """A measure on the circle or the sphere, or in the unit ball of the line or of R^2; few shapes are compiled."""
    d = int(rng.integers(0, 4))
    system = measure(rng, shape=(4, 2 if d == 0 else 3))
    if d in (1, 2):
        system |= {"space": "euclidean", "positions": [row[:d] for row in system["positions"]]}
    return system


def sphere(rng):
    return measure(rng, shape=(4, int(rng.choice([2, 3, 3]))))


def together(arguments):
    mu, nu = arguments["mu"], arguments["nu"]
    return mu["space"] == nu["space"] and len(mu["positions"][0]) == len(nu["positions"][0])


def shortest(x, y, space):
    """The distance of two points."""
    if space == "euclidean":
        return mp.sqrt(chord2(x, y))
    opposite = [-c for c in y]
    return 2 * mp.atan2(mp.sqrt(chord2(x, y)), mp.sqrt(chord2(x, opposite)))


def wasserstein(mu, nu, order):
    (x, a), (y, b) = exact(mu), exact(nu)
    cost = [[shortest(p, q, mu["space"]) ** order for q in y] for p in x]
    return mp.root(transport(cost, a, b), order)


SHIFTED = {"positions": [[1.0, 0.0], [0.6, 0.8]], "masses": [1.0, 2.0], "space": "sphere"}
PAIR = {"positions": [[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]], "masses": [1.0, 2.0], "space": "sphere"}
THREE = {
    "positions": [[0.0, 0.6, -0.8], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
    "masses": [1.0, 1.0, 1.0],
    "space": "sphere",
}


@oracle(
    "transport.distance",
    draws={"mu": place, "nu": place, "limit": lambda rng: None},
    relation=together,
    arguments=made,
    cases=(
        {"mu": SHIFTED, "nu": SHIFTED, "order": 2, "limit": None},
        {"mu": PAIR, "nu": PAIR, "order": 2, "limit": None},
        {"mu": PAIR, "nu": THREE, "order": 1, "limit": 3},
    ),
    quick=10,
)
def distance(mu, nu, order, limit):
    return wasserstein(mu, nu, order)


ENDS = []
"""The measures of the last call of `geodesic`, whose result is judged by its distances from both."""


def between(arguments):
    ENDS[:] = arguments["mu"], arguments["nu"]
    return made(arguments)


def ways(at):
    """W_2 from mu to the measure on the geodesic and from there to nu."""
    mu, nu = ENDS
    middle = {"positions": np.asarray(at.positions).tolist(), "masses": np.asarray(at.masses).tolist()}
    middle["space"] = mu["space"]
    with mp.workdps(50):
        return [float(wasserstein(mu, middle, 2)), float(wasserstein(middle, nu, 2))]


@oracle(
    "transport.geodesic",
    draws={"mu": place, "nu": place, "limit": lambda rng: None},
    relation=together,
    arguments=between,
    result=ways,
    count=16,
    quick=12,
)
def geodesic(mu, nu, s, limit):
    whole = wasserstein(mu, nu, 2)
    return [s * whole, (1 - mp.mpf(s)) * whole]


@oracle(
    "transport.sliced_distance",
    draws={
        "mu": sphere,
        "nu": sphere,
        "circles": lambda rng: int(rng.integers(1, 4)),
        "seed": lambda rng: int(rng.integers(0, 100)),
    },
    relation=together,
    arguments=made,
    count=12,
    quick=8,
)
def sliced_distance(mu, nu, order, circles, seed):
    """Great circles are those of the generator; tokens are projected on each, and moved along it."""
    (x, a), (y, b) = exact(mu), exact(nu)
    if len(x[0]) == 2:
        return wasserstein(mu, nu, order)
    rng, total = np.random.default_rng(seed), mp.mpf(0)
    for _ in range(circles):
        plane = np.linalg.qr(rng.standard_normal((len(x[0]), 2)))[0].T

        def projected(rows, plane=plane):
            return [[dot(point, [mp.mpf(c) for c in axis]) for axis in plane] for point in rows]

        def unit(rows):
            return [[c / mp.norm(row) for c in row] for row in rows]

        cost = [[shortest(p, q, "sphere") ** order for q in unit(projected(y))] for p in unit(projected(x))]
        total += transport(cost, a, b)
    return mp.root(total / circles, order)


BALANCE = {
    "draws": {
        "field": attention,
        "tokens": lambda rng: measure(rng, shape=(4, 3)),
        "t": lambda rng: 0.0,
    },
    "arguments": made,
    "quick": 8,
}


def sums(tokens, field):
    """The sums of m |v|^2, m <v, g> and m |g|^2."""
    _, masses, _, v, g = velocities(tokens, field)
    pairs = ((v, v), (v, g), (g, g))
    return [mp.fsum(m * dot(p, q) for m, p, q in zip(masses, a, b, strict=True)) for a, b in pairs]


@oracle("transport.metric_speed", **BALANCE)
def metric_speed(field, tokens, t):
    return mp.sqrt(sums(tokens, field)[0])


@oracle("transport.energy_slope", **BALANCE)
def energy_slope(field, tokens):
    return mp.sqrt(sums(tokens, field)[2])


@oracle("transport.balance_gap", **BALANCE)
def balance_gap(field, tokens):
    speed, rate, slope = sums(tokens, field)
    return speed / 2 + slope / 2 - rate


def moves(arguments):
    with mp.workdps(30):
        return sums(arguments["tokens"], arguments["field"])[0] > 1e-12


AT_REST = {"positions": [[0.6, 0.0, 0.8]] * 4, "masses": [1.0, 2.0, 3.0, 4.0], "space": "sphere"}
OPPOSITE = {"positions": [[0.6, 0.0, 0.8], [-0.6, 0.0, -0.8]] * 2, "masses": [1.0, 2.0, 3.0, 4.0], "space": "sphere"}


@oracle(
    "transport.gradient_alignment",
    **BALANCE,
    relation=moves,
    cases=(
        {"field": {"beta": 2.0, "model": "SA"}, "tokens": AT_REST},
        {"field": {"beta": 2.0, "model": "SA"}, "tokens": OPPOSITE},
    ),
)
def gradient_alignment(field, tokens):
    speed, rate, slope = sums(tokens, field)
    return mp.nan if speed < mp.mpf(10) ** -60 else rate / mp.sqrt(speed * slope)
