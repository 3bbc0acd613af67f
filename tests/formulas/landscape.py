"""Oracles of `theory.landscape`."""

import importlib
import itertools
import math

import mpmath as mp
import numpy as np
from scipy.special import ndtr

from attnflow.theory.landscape import Landscape
from tests.formulas.oracle import oracle
from tests.formulas.tokens import tokens


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


# --- caps.py


@oracle(
    "landscape.cap_diameter",
    relation=allowed_start,
    # beyond a plateau the digits of t that a float does not have decide
    may_refuse=lambda a: a["t"] > 1e5,
    cases=(
        {"t": 0.0, "beta": 2.0, "d": 2, "start": 3.0},
        {"t": 5.0, "beta": 9.0, "d": 3, "start": 1.5},
        {"t": 30.0, "beta": 2.0, "d": 2, "start": 3.14159},
        {"t": 2e4, "beta": 9.0, "d": 2, "start": 2.0},
    ),
    quick=10,
    fresh=2,
)
def cap_diameter(t, beta, d, start):
    t, beta, start, end = mp.mpf(t), mp.mpf(beta), mp.mpf(start), mp.mpf(2 if d == 2 else 1)
    if t * cap_speed(start, beta, d) < start * mp.mpf(10) ** -20:
        return start

    def primitive(u):
        """Of e^(beta u)/(2 u) + e^(beta u)/(2 (end - u)): dt is that times -du, u = 1 - cos D."""
        if beta == 0:
            return (mp.log(u) - mp.log(end - u)) / 2
        return (mp.ei(beta * u) + mp.exp(end * beta) * mp.e1(beta * (end - u))) / 2

    high = 2 * mp.log(mp.sin(start / 2)) + mp.log(2)
    low, goal = mp.mpf(-1500), primitive(mp.exp(high)) - t
    if primitive(mp.exp(low)) > goal:
        return mp.mpf(0)
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if primitive(mp.exp(middle)) < goal else (low, middle)
    return 2 * mp.asin(mp.exp(low / 2) / mp.sqrt(2))


def peak(function, low, high):
    """Where a function with one maximum has it, by thirds at 90 digits."""
    with mp.workdps(90):
        low, high = mp.mpf(low), mp.mpf(high)
        for _ in range(340):
            first, second = low + (high - low) / 3, high - (high - low) / 3
            low, high = (first, high) if function(first) < function(second) else (low, second)
        return (low + high) / 2


def pull(x, beta):
    """(beta sin^2 - cos) e^(-x) at x = beta (1 - cos), without its factor for beta = 0."""
    u = x / beta
    return (beta * u * (2 - u) - 1 + u) * mp.exp(-x)


WARM = tuple({"beta": beta} for beta in (1 / 3, 0.3333333333333334, 1.0, 1.0000000000000002, 1e15, 1.7e308))


@oracle("landscape.expansion_rate", cases=WARM)
def expansion_rate(beta):
    beta = mp.mpf(beta)
    return pull(peak(lambda x: pull(x, beta), 0, min(2 * beta, 10)), beta) if beta else mp.mpf(1)


@oracle("landscape.steepest_overlap", cases=WARM)
def steepest_overlap(beta):
    beta = mp.mpf(beta)
    if beta < 1e-9:
        return mp.mpf(-1)
    with mp.workdps(90):
        overlap = 1 - peak(lambda x: pull(x, beta), 0, min(2 * beta, 10)) / beta
    return overlap if abs(overlap) > 1e-40 else mp.mpf(0)


@oracle(
    "landscape.stability_rate",
    draws={"p": lambda rng: float(rng.choice([1.0, 1.5, 2.0, 7.0, math.inf]))},
    cases=tuple({**row, "d": 3, "p": 1.0} for row in (*WARM, {"beta": 0.4}, {"beta": 5.0})),
)
def stability_rate(beta, d, p):
    if d == 2 or p == 2:
        return expansion_rate(beta) * (1 if d == p == 2 else 2)
    beta = mp.mpf(beta)
    if beta == 0:
        return mp.mpf(2)
    split, top = min(1, 2 * beta), min(2 * beta, 10)

    def height(x):
        q = (x / beta) * beta * (2 - x / beta) - 1 + x / beta
        return mp.exp(-x) * (q + max(1, abs(q)))

    return max(height(peak(height, *piece)) for piece in ((0, split), (split, top)))


@oracle("landscape.softmax_lipschitz", cases=({"beta": 0.5}, {"beta": 1e308}))
def softmax_lipschitz(beta):
    """beta Var(sin) - mean(cos) of two half masses at the angles +-a, the largest over a."""
    beta = mp.mpf(beta)
    slope = lambda c: beta * (1 - c**2) - c  # noqa: E731
    return slope(peak(slope, -1, 1))


@oracle(
    "landscape.softmax_spread",
    cases=(
        {"t": 5e9, "beta": 1e10, "variance": 1.0},
        {"t": 5e9, "beta": 1e5, "variance": 1e5},
        {"t": 4999999990.0, "beta": 1e5, "variance": 1e5},
        {"t": 0.0, "beta": 3.0, "variance": 0.3},
        {"t": 3.0, "beta": 1e-300, "variance": 1e-100},
    ),
)
def softmax_spread(t, beta, variance):
    t, beta, variance = mp.mpf(t), mp.mpf(beta), mp.mpf(variance)
    if beta * variance > mp.mpf(10) ** 300:
        return None
    with mp.workdps(700):
        goal = beta * variance + mp.log(beta * variance) - 2 * t
    low, high = mp.mpf(-4000), mp.log(beta * variance) + 1  # of log beta v
    if goal < low:
        return mp.mpf(0)
    for _ in range(220):
        middle = (low + high) / 2
        low, high = (middle, high) if middle + mp.exp(middle) < goal else (low, middle)
    return mp.exp(low) / beta


# --- heads.py


def rise(function, low, high, steps=200):
    """Where an increasing function is 0, by halving."""
    low, high = mp.mpf(low), mp.mpf(high)
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low


@oracle(
    "landscape.axis_pair_rates",
    cases=(
        {"beta": 0.0, "mass": 0.5, "other": 0.0, "model": "USA"},
        {"beta": 1e-12, "mass": 0.5, "other": 1.0, "model": "SA"},
        {"beta": 20.0, "mass": 1e-9, "other": 1.0, "model": "USA"},
        {"beta": 0.881373587019543, "mass": 0.5, "other": 1.0, "model": "USA"},
        {"beta": 700.0, "mass": 1e-300, "other": 1e10, "model": "USA"},
    ),
)
def axis_pair_rates(beta, mass, other, model):
    with mp.workdps(1000):
        beta, mass, other = mp.mpf(beta), mp.mpf(mass), mp.mpf(other)
        masses = [mass, 1 - mass]
        falls = [m * mp.exp(beta) - (1 - m) * mp.exp(-beta) for m in masses]
        if model == "SA":
            falls = [fall / (m * mp.exp(beta) + (1 - m) * mp.exp(-beta)) for fall, m in zip(falls, masses, strict=True)]
        # the matrix of s of the two clusters, without making it symmetric
        a, b = -falls[0] + other * masses[0], -falls[1] + other * masses[1]
        product = other**2 * masses[0] * masses[1]
        spread = mp.sqrt((a - b) ** 2 + 4 * product)
        return sorted([(a + b + spread) / 2, (a + b - spread) / 2, -min(falls)], reverse=True)


@oracle(
    "landscape.axis_pair_threshold",
    cases=({"mass": 0.5}, {"mass": 1e-100}, {"mass": 5e-324}, {"mass": 1 - 2**-53}),
    count=10,
)
def axis_pair_threshold(mass):
    """Where the largest eigenvalue changes its sign: the determinant, above the betas at which both D are positive."""
    with mp.workdps(700):
        m, k = mp.mpf(mass), 1 - mp.mpf(mass)
        low = abs(mp.log(k / m)) / 2

        def excess(beta):
            grown = mp.exp(beta)
            one, two = m * grown - k / grown, k * grown - m / grown
            return one * two - m * two - k * one

        return rise(excess, low + mp.mpf(10) ** -330, low + 800, 150)


@oracle(
    "landscape.axis_cross_rates",
    cases=(
        {"beta": 1e-6, "d": 3, "model": "SA"},
        {"beta": 1e-6, "d": 2, "model": "SA"},
        {"beta": 1e-6, "d": 2, "model": "USA"},
        {"beta": 2.0, "d": 5, "model": "SA"},
        {"beta": 1.72911690, "d": 2, "model": "USA"},
    ),
)
def axis_cross_rates(beta, d, model):
    with mp.workdps(700):
        beta, d = mp.mpf(beta), mp.mpf(d)
        if model == "USA":
            return [-(mp.sinh(beta) - beta - d + 1) / d, -(mp.sinh(beta) - beta) / d]
        turn = mp.sinh(beta) / (mp.cosh(beta) + d - 1)
        return [(beta + d - 1) / d - turn, beta / d - turn]


@oracle("landscape.axis_cross_threshold", cases=({"d": 2**53},), count=10)
def axis_cross_threshold(d):
    return rise(lambda beta: mp.sinh(beta) - beta - d + 1, 1, 50)


# --- gaussian.py


@oracle(
    "landscape.gaussian_moments",
    relation=lambda a: max(abs(x) for x in (a["value"], a["mean"], a["logits"])) < 1e200,
    cases=(
        {"t": 0.5, "value": 1.0, "covariance": 0.9999999999999999, "mean": 1.0, "logits": 1.0},
        {"t": 0.5, "value": 1.0, "covariance": 1.0, "mean": 1.0, "logits": 1.0},
        {"t": 700.3, "value": 1.01, "covariance": 0.3, "mean": 1e-100, "logits": -1.0},
        {"t": 0.1, "value": 0.1, "covariance": 16.666666666666664, "mean": -3.0, "logits": 3.0},
        {"t": 1e12, "value": -1.0, "covariance": 0.25, "mean": -0.3, "logits": 1.0},
        {"t": 3.0, "value": [-1.0, 0.1], "covariance": [0.3, 0.1], "mean": 2.0, "logits": 1.0},
    ),
    result=lambda r: [r.mean, r.covariance],
)
def gaussian_moments(t, value, covariance, mean, logits):
    if isinstance(value, list):
        pairs = [gaussian_moments(t, v, c, mean, logits) for v, c in zip(value, covariance, strict=True)]
        return [list(column) for column in zip(*pairs, strict=True)]
    with mp.workdps(1500):
        t, v, c, m, b = (mp.mpf(x) for x in (t, value, covariance, mean, logits))
        left = 1 - 2 * v * b * c * t
        if left <= 0:
            return None
        return [m * mp.exp(v * t) / mp.sqrt(left), c / left]


def five_points(beta, height):
    """Sum of e^(beta <x, y>) over pairs of an apex and a square at -height, or a bipyramid for height = None."""
    if height is None:
        ring = [[mp.cos(2 * mp.pi * k / 3), mp.sin(2 * mp.pi * k / 3), 0] for k in range(3)]
        rows = [[0, 0, 1], [0, 0, -1], *ring]
    else:
        side = mp.sqrt(1 - height**2)
        rows = [[0, 0, 1], [side, 0, -height], [-side, 0, -height], [0, side, -height], [0, -side, -height]]
    dots = [mp.fsum(a * b for a, b in zip(rows[i], rows[j], strict=True)) for i in range(5) for j in range(i)]
    return mp.fsum(mp.exp(beta * dot) for dot in dots)


def pyramid_energy(beta):
    scale = mp.log(2 + beta) / (2 + beta)  # of the best height where it is small
    return five_points(beta, peak(lambda h: -five_points(beta, h), 0, min(mp.mpf("0.3"), 3 * scale)))


@oracle("landscape.five_point_energies", count=12, quick=6, fresh=0, cases=({"beta": 6.88616081}, {"beta": 1e-12}))
def five_point_energies(beta):
    beta = mp.mpf(beta)
    return [five_points(beta, None), pyramid_energy(beta)]


@oracle("landscape.five_point_flip", count=1, quick=1, fresh=0)
def five_point_flip():
    return rise(lambda beta: five_points(beta, None) - pyramid_energy(beta), mp.mpf("6.88"), mp.mpf("6.89"), 70)


# --- held.py


def hold_ratio(gap, beta, opening, model):
    """log of sin(Theta - theta)/g at theta = Theta - gap."""
    angle = opening - gap
    grown = beta * (1 - mp.cos(angle))
    slow = grown if model == "USA0" else mp.log((1 + mp.exp(grown)) / 2)
    return mp.log(mp.sin(gap)) - mp.log(mp.sin(angle)) + slow


def hold(beta, opening, model):
    """log kappa and the gap of the threshold, and the gap of the maximum inside, by a scan and by thirds."""
    beta, opening = mp.mpf(beta), mp.mpf(opening)
    widest = 2 * opening - mp.pi
    ratio = lambda gap: hold_ratio(gap, beta, opening, model)  # noqa: E731
    grid = [widest * mp.mpf(10) ** (mp.mpf(-k) / 16) for k in range(300)]
    grid = sorted([*grid, *[widest * k / 100 for k in range(1, 100)]])
    heights = [ratio(gap) for gap in grid]
    tops = [k for k in range(1, len(grid) - 1) if heights[k - 1] < heights[k] > heights[k + 1]]
    inside = peak(ratio, grid[tops[0] - 1], grid[tops[0] + 1]) if tops else None
    best = inside if inside is not None and ratio(inside) > heights[-1] else widest
    return ratio(best), best, inside


HOLD_CASES = (
    {"beta": 3.0, "opening": 2.5, "model": "SA"},
    {"beta": 3.0, "opening": 2.5, "model": "USA0"},
    {"beta": 300.0, "opening": 1.7, "model": "SA"},
    {"beta": 100.0, "opening": 3.141592653589, "model": "USA0"},
    {"beta": 1.0, "opening": 2.5, "model": "SA"},
    {"beta": 0.0, "opening": 2.5, "model": "USA0"},
    {"beta": 1.4, "opening": 2.0, "model": "USA0"},
)


@oracle(
    "landscape.hold_threshold",
    count=20,
    quick=16,
    cases=HOLD_CASES,
    result=lambda r: [r.kappa, r.angle, float(r.turns)],
)
def hold_threshold(beta, opening, model):
    with mp.workdps(90):
        log_kappa, gap, _ = hold(beta, opening, model)
        angle = mp.mpf(opening) - gap
        return [mp.exp(log_kappa), angle, int(angle < opening - mp.pi / 2)]


def gap_held(beta, opening, kappa, model):
    """Theta - theta at weight kappa by halving, None above the threshold."""
    log_kappa, widest, inside = hold(beta, opening, model)
    beta, opening, goal = mp.mpf(beta), mp.mpf(opening), mp.log(mp.mpf(kappa))
    if goal >= log_kappa:
        return None
    if inside is not None and hold_ratio(inside, beta, opening, model) > goal:
        widest = inside
    return mp.exp(rise(lambda y: hold_ratio(mp.exp(y), beta, opening, model) - goal, -5000, mp.log(widest)))


HELD_CASES = (
    {"beta": 3.0, "opening": 2.5, "kappa": 42.9},
    {"beta": 3.0, "opening": 2.5, "kappa": 1e-30},
    {"beta": 1.4, "opening": 2.0, "kappa": 0.9},
    {"beta": 0.0, "opening": 2.5, "kappa": 1.0},
    {"beta": 50.0, "opening": 2.5, "kappa": 1e30},
    {"beta": 9.0, "opening": 3.1, "kappa": 1e6},
    {"beta": 400.0, "opening": 1.9, "kappa": 1e100},
    {"beta": 3.0, "opening": 2.5, "kappa": 42.9199871},
)


@oracle(
    "landscape.held_angle",
    count=16,
    quick=16,
    cases=tuple({**row, "model": model} for row in HELD_CASES for model in ("USA0", "SA")),
)
def held_angle(beta, opening, kappa, model):
    with mp.workdps(90):
        gap = gap_held(beta, opening, kappa, model)
        return None if gap is None else mp.mpf(opening) - gap


@oracle("landscape.held_rates", count=16, quick=16, cases=HELD_CASES)
def held_rates(beta, opening, kappa):
    with mp.workdps(90):
        gap = gap_held(beta, opening, kappa, "USA0")
        if gap is None:
            return None
        beta, opening, kappa = mp.mpf(beta), mp.mpf(opening), mp.mpf(kappa)
        angle = opening - gap
        q = mp.exp(-beta * (1 - mp.cos(angle)))
        return [
            -mp.cos(gap / 2) * mp.cos(opening / 2) / mp.cos(angle / 2),
            -(mp.cos(gap / 2) ** 2) - kappa / 2 * q * (1 + mp.cos(angle)),
            -mp.cos(gap),
            -mp.cos(gap) + kappa * q * (beta * mp.sin(angle) ** 2 - mp.cos(angle)),
        ]


# --- rescaled.py


def later(excess, t, end):
    """int_0^s excess at s + int_0^s excess = t by Newton's method in a bracket, or from 0 to `end` for t = infinity."""
    if t == math.inf:
        return mp.quad(excess, [0, *[end * mp.mpf(2) ** (mp.mpf(k) / 2 - 12) for k in range(25)]])
    s, total, low, high = mp.mpf(0), mp.mpf(0), mp.mpf(0), mp.mpf(t)
    for _ in range(200):
        low, high = (s, high) if s + total < t else (low, s)
        step = (t - s - total) / (1 + excess(s))
        if not low < s + step < high:
            step = (low + high) / 2 - s
        total += mp.quad(excess, [s + step * k / 3 for k in range(4)])
        s += step
        if abs(step) <= s * mp.mpf(10) ** -22:
            break
    return total


@oracle(
    "landscape.pair_limit",
    draws={"middle": lambda rng: bool(rng.integers(2))},
    cases=({"x": 0.02, "middle": False}, {"x": 0.03, "middle": True}, {"x": 1e308, "middle": False}),
    count=16,
    quick=12,
    fresh=2,
)
def pair_limit(x, middle):
    """By the integral over y = log u."""
    begin, kappa = 2 * mp.log(mp.mpf(x)), mp.mpf(middle) / 2

    def rest(y):
        u = mp.exp(y)
        return (mp.exp(-2 * u) + kappa * mp.exp(-u)) / -mp.expm1(-2 * u)  # (1/F - 1)/2

    if begin > 7:
        return mp.mpf(x)
    with mp.workdps(25):
        return mp.mpf(x) * mp.exp(-mp.quad(rest, [begin + (7 - begin) * k / 12 for k in range(13)]))


MATRICES = {
    "line": [[1.0]],
    "saddle": [[1.0, 0.0], [0.0, -1.0]],
    "Jordan": [[1.0, 1.0], [0.0, 1.0]],
    "spiral": [[0.5, -1.0], [1.0, 0.5]],
    "fast spiral": [[0.1, -4.0], [1.0, 0.1]],
    "slow": [[0.02, 0.0], [0.3, -0.5]],
}


def draw_matrix(rng):
    return MATRICES[str(rng.choice(sorted(MATRICES)))]


def draw_start(rng):
    return (rng.choice([0.05, 0.5, 2.0]) * rng.standard_normal(int(rng.choice([1, 2, 2, 2])))).tolist()


def draw_time(rng):
    return float(rng.choice([0.0, 1e-9, 0.3, 2.0, 40.0, math.inf, math.inf]))


def path_square(value, x, s):
    """|e^(sV) x|^2 for one or two dimensions, by the closed form of the exponential."""
    v, x = [[mp.mpf(entry) for entry in row] for row in value], [mp.mpf(entry) for entry in x]
    if len(x) == 1:
        return (x[0] * mp.exp(s * v[0][0])) ** 2
    half = (v[0][0] + v[1][1]) / 2
    q = mp.sqrt(mp.mpc(half**2 - v[0][0] * v[1][1] + v[0][1] * v[1][0]))
    cosh, sinhc = (mp.cosh(s * q), mp.sinh(s * q) / q) if q else (1, s)
    rows = [(v[0][0] - half) * x[0] + v[0][1] * x[1], v[1][0] * x[0] + (v[1][1] - half) * x[1]]
    ends = [mp.re(cosh * x[k] + sinhc * rows[k]) for k in range(2)]
    return mp.exp(2 * s * half) * mp.fsum(end**2 for end in ends)


@oracle(
    "landscape.pair_delay",
    relation=lambda a: len(a["value"]) == len(a["x"]) and a["middle"] < 1e30,
    draws={"value": draw_matrix, "x": draw_start, "t": draw_time},
    cases=(
        {"value": [[1.0]], "x": [1e-3], "t": math.inf, "middle": 0.0},
        {"value": [[1.0]], "x": [1e-3], "t": 10.0, "middle": 0.0},
        {"value": [[1.0]], "x": [9.0], "t": math.inf, "middle": 0.5},
        {"value": [[1.0, 0.0], [0.0, -1.0]], "x": [1e-4, 1.0], "t": math.inf, "middle": 0.0},
        {"value": [[1.0, 0.0], [0.0, -1.0]], "x": [0.0, 1.0], "t": math.inf, "middle": 0.0},
        {"value": [[0.0, 0.0], [0.0, 0.0]], "x": [1.0, 1.0], "t": math.inf, "middle": 0.0},
    ),
    # rounding decides how much of x grows
    may_refuse=lambda a: np.linalg.eigvals(a["value"]).real.min() < 0,
    count=10,
    quick=10,
    fresh=0,
)
def pair_delay(value, x, t, middle):
    rates = np.linalg.eigvals(np.array(value)).real
    if rates.max() <= 0 or (rates.min() < 0 and x[0] == 0):
        return None
    with mp.workdps(25):
        kappa, span = mp.mpf(middle), 60 / rates.max()
        for _ in range(8):  # from where u is beyond 2000
            span = span / 2 if path_square(value, x, span / 2) > 2000 else span

        def excess(s):
            u = path_square(value, x, s)
            return 2 * (mp.exp(-2 * u) + kappa * mp.exp(-u)) / -mp.expm1(-2 * u)

        return later(excess, t, span)


@oracle(
    "landscape.pair_departure",
    cases=(
        {"radius": 0.5, "t": 1e-9},
        {"radius": 0.05, "t": 100.0},
        {"radius": 0.05, "t": 240.0},
        {"radius": 0.6, "t": [0.0, 2.5]},
        {"radius": 1e-7, "t": 3.0},
        {"radius": 3.0, "t": 300.0},
    ),
    count=12,
    quick=18,
    fresh=2,
)
def pair_departure(radius, t):
    if isinstance(t, list):
        return [list(pair) for pair in zip(*[pair_departure(radius, time) for time in t], strict=True)]
    begin = mp.mpf(radius) ** 2
    if not 1e-300 < begin < 1e300 or t > 1000 / begin + 400:
        return None
    if t == 0:
        return [mp.mpf(0), mp.log(mp.mpf(radius))]
    with mp.workdps(30):
        way = mp.mpf(t) - later(lambda s: 2 / mp.expm1(2 * begin * mp.exp(2 * s)), mp.mpf(t), None)
        u = begin * mp.exp(2 * way)
        if mp.log(u) > 700:
            return None
        log_sinh = lambda v: v + mp.log(-mp.expm1(-2 * v) / 2)  # noqa: E731
    with mp.workdps(80):
        return [(log_sinh(u) - log_sinh(begin)) / 2 - t, mp.log(mp.mpf(radius)) + way]


def solid(name):
    """Corners of a regular polytope, exact to the digits of mpmath."""
    kind, size = name.split()
    if kind == "polygon":
        angles = [2 * mp.pi * k / int(size) for k in range(int(size))]
        return [[mp.cos(angle), mp.sin(angle)] for angle in angles]
    golden = (1 + mp.sqrt(5)) / 2
    signs = [-1, 1]
    rows = {
        "4": [[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]],
        "8": [[a, b, c] for a in signs for b in signs for c in signs],
        "12": [
            row for a in signs for b in signs for row in ([0, a, b * golden], [a, b * golden, 0], [b * golden, 0, a])
        ],
    }[size]
    return [[entry / mp.sqrt(mp.fsum(x * x for x in row)) for entry in row] for row in rows]


@oracle(
    "landscape.regular_radius",
    draws={
        "corners": lambda rng: str(rng.choice(["polygon 2", "polygon 5", "solid 4", "solid 8", "solid 12"])),
        "radius": lambda rng: float(rng.choice([0.03, 0.1, 0.5, 1.0, 3.0, 10.0])),
        "t": draw_time,
    },
    arguments=lambda a: {**a, "corners": np.array(solid(a["corners"]), dtype=float)},
    cases=(
        {"corners": "polygon 3", "radius": 0.04, "t": 5.0},
        {"corners": "polygon 40", "radius": 2.0, "t": math.inf},
        {"corners": "polygon 3", "radius": 1e-9, "t": 5.0},
    ),
    count=12,
    quick=15,
    fresh=1,
)
def regular_radius(corners, radius, t):
    with mp.workdps(30):
        rows = solid(corners)
        cosines = [mp.fsum(a * b for a, b in zip(row, rows[0], strict=True)) for row in rows]
        nearest = 1 - sorted(cosines)[-2]
        begin = mp.mpf(radius) ** 2
        end = mp.log(800 / nearest / begin) / 2

        def excess(s):
            with mp.workdps(60):
                u = begin * mp.exp(2 * s)
                weights = [mp.exp(u * (c - 1)) for c in cosines]
                mean = mp.fsum(w * c for w, c in zip(weights, cosines, strict=True)) / mp.fsum(weights)
                return 1 / mean - 1

        if end <= 0:
            return mp.mpf(radius)
        return mp.mpf(radius) * mp.exp(-later(excess, t, end))


# --- energy.py


@oracle("landscape.largest_energy0", cases=({"beta": 5e-324}, {"beta": 1e308}), count=8)
def largest_energy0(beta):
    """Of tokens that coincide: the mean of e^0 over 2 beta."""
    return mp.exp(0) / (2 * mp.mpf(beta))


@oracle(
    "landscape.energy_of_uniform",
    cases=(
        {"beta": 100.0, "d": 2},
        {"beta": 100.00000000000001, "d": 3},
        {"beta": 101.0, "d": 1000},
        {"beta": 150.0, "d": 1001},
        {"beta": 3e5, "d": 10**5},
    ),
    count=16,
    fresh=2,
)
def energy_of_uniform(beta, d):
    """The mean of (e^(-beta (1 - cos a)) - 1)/(2 beta) over the angle a, with density sin^(d-2)."""
    beta, width, narrow = mp.mpf(beta), mp.sqrt(1 / mp.mpf(d)), mp.sqrt(1 / (1 + mp.mpf(beta)))
    places = [
        0,
        mp.pi,
        *(k * narrow for k in (1, 3, 9, 15)),
        *(mp.pi / 2 + k * width for k in (-15, -7, -3, 0, 3, 7, 15)),
    ]
    places = sorted({place for place in places if 0 <= place <= mp.pi})
    with mp.workdps(25):
        weight = lambda a: mp.sin(a) ** (d - 2)  # noqa: E731
        total = mp.quad(lambda a: weight(a) * mp.expm1(-2 * beta * mp.sin(a / 2) ** 2) / min(beta, 1), places)
        return total / mp.quad(weight, places) / (2 * max(beta, 1))


def draw_masses(rng):
    masses = rng.dirichlet(np.full(int(rng.integers(1, 6)), float(rng.choice([0.01, 1.0]))))
    return (masses / max(masses.sum(), 1.0)).tolist()


@oracle(
    "landscape.energy_of_clusters",
    draws={"masses": draw_masses},
    cases=({"masses": [1.0], "beta": 3.0}, {"masses": [1.0, 1e-17], "beta": 3.0}, {"masses": [0.5, 0.5], "beta": 1e-9}),
    count=12,
)
def energy_of_clusters(masses, beta):
    return (mp.fsum(mp.mpf(mass) ** 2 for mass in masses) - 1) / (2 * mp.mpf(beta))


def vectors(rows):
    """Rows of unit length in numbers of mpmath."""
    rows = [[mp.mpf(entry) for entry in row] for row in rows]
    return [[entry / mp.sqrt(mp.fsum(x * x for x in row)) for entry in row] for row in rows]


def dot(x, y):
    return mp.fsum(a * b for a, b in zip(x, y, strict=True))


@oracle(
    "landscape.energy_rate_of_tokens",
    draws={"positions": tokens},
    relation=lambda a: a["beta"] < 1e6,
    cases=(
        {"positions": [[1.0, 0.0], [math.cos(1e-8), math.sin(1e-8)]], "beta": 3.0, "model": "SA"},
        {"positions": [[1.0, 0.0], [-math.cos(1e-8), math.sin(1e-8)]], "beta": 3.0, "model": "USA0"},
        {"positions": [[1.0, 0.0], [math.cos(1e-4), math.sin(1e-4)]], "beta": 9e5, "model": "SA"},
    ),
)
def energy_rate_of_tokens(positions, beta, model):
    """The change of E along the field: sum_ij w_ij <x_j, v_i>/n^2."""
    x, n = vectors(positions), len(positions)
    total = mp.mpf(0)
    for i in range(n):
        weights = [mp.exp(mp.mpf(beta) * (dot(x[i], y) - 1)) / n for y in x]
        pull = [mp.fsum(w * y[a] for w, y in zip(weights, x, strict=True)) for a in range(len(x[i]))]
        pull = [p - dot(pull, x[i]) * c for p, c in zip(pull, x[i], strict=True)]
        velocity = [p / mp.fsum(weights) if model == "SA" else p for p in pull]
        total += mp.fsum(w * dot(y, velocity) for w, y in zip(weights, x, strict=True)) / n
    return total


def draw_heads(rng):
    parts = rng.standard_normal((2, 3, 3)) / 4
    return (parts + parts.swapaxes(-1, -2)).tolist()


@oracle(
    "landscape.energy_rate_of_heads",
    draws={
        "matrices": draw_heads,
        "positions": lambda rng: np.array(tokens(rng, families=("random",), largest=3)).tolist(),
        "masses": lambda rng: rng.dirichlet(np.ones(4)).tolist(),
    },
    relation=lambda a: np.shape(a["positions"]) == (4, 3) and a["beta"] < 30,
    result=lambda r: r[0],
    count=8,
)
def energy_rate_of_heads(matrices, positions, masses, beta, model):
    x, beta, m = vectors(positions), mp.mpf(beta), [mp.mpf(mass) for mass in masses]
    heads = [[[[mp.fsum(row[b] * y[b] for b in range(3)) for row in head]] for y in x] for head in np.array(matrices)]
    total = mp.mpf(0)
    for i in range(4):
        velocity, pull = [mp.mpf(0)] * 3, [mp.mpf(0)] * 3
        for head in heads:
            weights = [m[j] * mp.exp(beta * (dot(x[i], head[j][0]) - 1)) for j in range(4)]
            mean = [mp.fsum(weights[j] * head[j][0][a] for j in range(4)) for a in range(3)]
            mean = [p - dot(mean, x[i]) * c for p, c in zip(mean, x[i], strict=True)]
            clock = mp.fsum(weights) if model == "SA" else 1
            velocity = [v + p / clock for v, p in zip(velocity, mean, strict=True)]
            pull = [v + p for v, p in zip(pull, mean, strict=True)]
        total += m[i] * dot(velocity, pull)
    return total


# --- hemisphere.py


def tosses(n, d):
    """The chance of fewer than d heads in n - 1 tosses, and that of at least d, in whole numbers or by an integral."""
    if d >= n:
        return mp.mpf(1), mp.mpf(0)
    if n <= 20000:
        term, total = 1, 0
        for k in range(d):
            total += term
            term = term * (n - 1 - k) // (k + 1)
        return mp.mpf(total) / 2 ** (n - 1), mp.mpf(2 ** (n - 1) - total) / 2 ** (n - 1)
    with mp.workdps(40):
        a, b = mp.mpf(n - d), mp.mpf(d)
        scale = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
        width, centre = mp.sqrt(1 / mp.mpf(n)) / 2, (a - 1) / (n - 2)
        log_height = lambda t: (a - 1) * mp.log(t) + (b - 1) * mp.log1p(-t) - scale  # noqa: E731
        # how fast the integrand falls from 1/2, and the width of its peak
        fall = 1 / (2 * abs(a - b) + 1 / width)
        steps = [0, *(mp.mpf(3) ** k for k in range(-1, 9))]
        places = [mp.mpf(1) / 2 + sign * step * fall for step in steps for sign in (-1, 1)]
        places += [centre + sign * step * width for step in steps[:6] for sign in (-1, 1)]
        left = sorted({place for place in places if 0 < place <= 0.5})
        right = sorted({place for place in places if 0.5 <= place < 1})
        tops = [max(log_height(t) for t in side if t > 0.01) for side in (left, right)]
        return tuple(
            mp.exp(top) * mp.quad(lambda t, top=top: mp.exp(log_height(t) - top), side)
            for top, side in zip(tops, (left, right), strict=True)
        )


HEMISPHERES = tuple(
    {"n": n, "d": d}
    for n, d in (
        (5, 4),
        (200, 90),
        (201, 90),
        (201, 120),
        (10**4, 4000),
        (10**4, 5100),
        (10**6, 490000),
        (10**6, 503000),
        (10**9, 5 * 10**8 - 10**5),
        (10**12, 5 * 10**11 - 10**6),
        (10**12, 5 * 10**11 + 3 * 10**6),
        (20000, 2),
    )
)


@oracle(
    "landscape.hemisphere_probability",
    cases=HEMISPHERES,
    relation=lambda a: a["n"] <= 20000,
    count=16,
    fresh=2,
    quick=12,
)
def hemisphere_probability(n, d):
    return tosses(n, d)[0]


@oracle(
    "landscape.log_hemisphere_probability",
    cases=(*HEMISPHERES, {"n": 300, "d": 299}, {"n": 3000, "d": 2500}),
    relation=lambda a: a["n"] <= 20000,
    count=16,
    fresh=2,
)
def log_hemisphere_probability(n, d):
    lower, upper = tosses(n, d)
    return mp.log(lower) if lower < 0.5 else mp.log1p(-upper)


# --- solids.py


@oracle("landscape.tetrahedron_rates", cases=({"beta": 1e308, "model": "SA"}, {"beta": 700.0, "model": "USA"}))
def tetrahedron_rates(beta, model):
    """From the field of four clusters: differences of it at 120 digits in one direction of each kind."""
    if model == "USA" and beta > 700:
        return None
    with mp.workdps(1600):
        b = mp.mpf(beta)
        corners = vectors([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
        if b > 1e6:
            return [0, 0, -1 if model == "SA" else mp.mpf(-1) / 4]
        step = mp.mpf(10) ** -700

        def velocity(x, tokens):
            weights = [mp.exp(b * (dot(x, y) - 1)) / 4 for y in tokens]
            pull = [mp.fsum(w * y[a] for w, y in zip(weights, tokens, strict=True)) for a in range(3)]
            clock = mp.fsum(weights) if model == "SA" else mp.exp(-b) if model == "USA" else 1
            return [(p - dot(pull, x) * c) / clock for p, c in zip(pull, x, strict=True)]

        def rate(moves):
            """<moves, change of the field>/|moves|^2 for an eigenvector."""
            great_circle_point = vectors(
                [[c + step * m for c, m in zip(x, move, strict=True)] for x, move in zip(corners, moves, strict=True)]
            )
            fields = [velocity(x, great_circle_point) for x in great_circle_point]
            change = mp.fsum(dot(field, move) for field, move in zip(fields, moves, strict=True)) / step
            return change / mp.fsum(dot(move, move) for move in moves)

        def tangent(x, direction):
            return [p - dot(direction, x) * c for p, c in zip(direction, x, strict=True)]

        # x, y, z stretched with sum 0 is one of the two; a shift of all corners one of the three
        double = rate([tangent(x, [x[0], -x[1], 0]) for x in corners])
        triple = rate([tangent(x, [1, 0, 0]) for x in corners])
        move = tangent(corners[0], [1, 0, 0])
        beside = vectors([[c + step * m for c, m in zip(corners[0], move, strict=True)]])[0]
        splitting = dot(velocity(beside, corners), move) / step / dot(move, move)
        return [double, triple, splitting]


# --- rings.py and saddles.py


def ring_size(rng):
    return int(rng.choice([1, 2, 3, 4, 5, 8, 13, 30, 60]))


def ring_sum(beta, n, term):
    """(1/n) sum_j e^(-beta (1 - cos a_j)) term(a_j)."""
    angles = [2 * mp.pi * j / n for j in range(n)]
    return mp.fsum(mp.exp(-beta * (1 - mp.cos(a))) * term(a) for a in angles) / n


def ring_rate(beta, n, k, model):
    """The pair sum, with digits for what cancels; below 1e-300 it is 0 as a float."""
    with mp.workdps(400 + int(abs(mp.log10(1 + abs(mp.mpf(beta)))))):
        b = mp.mpf(beta)
        rate = ring_sum(b, n, lambda a: (b * mp.sin(a) ** 2 - mp.cos(a)) * (1 - mp.cos(k % n * a)))
        if model == "SA":
            rate /= ring_sum(b, n, lambda a: 1)
        rate *= mp.exp(b) if model == "USA" else 1
        return rate if abs(rate) > mp.mpf(10) ** -310 else mp.mpf(0)


@oracle(
    "landscape.ring_growth_rates",
    draws={"n": ring_size},
    relation=lambda a: (a["beta"] >= 0 or (a["n"] <= 3 and a["beta"] > -1e3)) and a["beta"] < 1e200,
    cases=(
        {"beta": 9.0, "n": 300, "k": 5, "model": "USA0"},
        {"beta": 0.0, "n": 3, "k": 1, "model": "USA0"},
        {"beta": -0.66, "n": 3, "k": 1, "model": "SA"},
        {"beta": 3.0, "n": 11, "k": [0, 1, 10], "model": "SA"},
        {"beta": 1e-9, "n": 7, "k": None, "model": "SA"},
        # on both sides of where neighbours begin to repel
        {"beta": 5.6, "n": 13, "k": None, "model": "USA0"},
        {"beta": 3.6, "n": 13, "k": None, "model": "USA0"},
        {"beta": 3.9, "n": 13, "k": None, "model": "USA0"},
    ),
    count=16,
    fresh=2,
)
def ring_growth_rates(beta, n, k, model):
    modes = range(1, n // 2 + 1) if k is None else k
    return [ring_rate(beta, n, q, model) for q in modes] if hasattr(modes, "__len__") else ring_rate(beta, n, k, model)


def log_largest_rate(beta, n, model):
    """Mode by mode, with digits beyond what the farthest pair is suppressed by."""
    with mp.workdps(60 + int(min(2 * beta, 4e3))):
        b = mp.mpf(beta)
        rates = [
            ring_sum(b, n, lambda a, k=k: (b * mp.sin(a) ** 2 - mp.cos(a)) * (1 - mp.cos(k * a)))
            for k in range(1, n // 2 + 1)
        ]
        top = mp.log(max(rates))
        if model == "SA":
            return top - mp.log(ring_sum(b, n, lambda a: 1))
        return top + (b if model == "USA" else 0)


ESCAPES = (
    {"beta": 1e4, "n": 4, "model": "USA0"},
    {"beta": 1e300, "n": 5, "model": "SA"},
    {"beta": 30.0, "n": 60, "model": "SA"},
    {"beta": 700.0, "n": 2, "model": "USA0"},
)


@oracle("landscape.log_escape_rate", draws={"n": lambda rng: 1 + ring_size(rng)}, cases=ESCAPES, count=12, fresh=0)
def log_escape_rate(beta, n, model):
    return log_largest_rate(beta, n, model)


@oracle("landscape.escape_rate", draws={"n": lambda rng: 1 + ring_size(rng)}, cases=ESCAPES, count=12, fresh=0)
def escape_rate(beta, n, model):
    log_rate = log_largest_rate(beta, n, model)
    return mp.exp(log_rate) if log_rate > -1e6 else mp.mpf(0)


@oracle(
    "landscape.antipodal_spectrum",
    draws={"n": ring_size, "d": lambda rng: int(rng.integers(2, 5)), "first": lambda rng: int(rng.integers(1, 9))},
    relation=lambda a: a["first"] <= a["n"] < 20,
    cases=({"n": 4, "d": 2, "first": 2, "beta": 1e-12},),
    count=12,
)
def antipodal_spectrum(n, d, first, beta):
    a, fade = mp.mpf(first) / n, mp.exp(-2 * mp.mpf(beta))
    rates = [mp.mpf(0), *[-a + (1 - a) * fade] * (first - 1)]
    rates += [fade, *[-(1 - a) + a * fade] * (n - first - 1)] if first < n else []
    return sorted([rate for rate in rates for _ in range(d - 1)], reverse=True)


@oracle(
    "landscape.ring_spectrum",
    draws={"n": ring_size, "d": lambda rng: int(rng.integers(2, 5))},
    relation=lambda a: a["n"] * a["d"] < 40,
    cases=({"n": 5, "d": 3, "beta": 1e5},),
    count=10,
)
def ring_spectrum(n, d, beta):
    inside = [ring_rate(beta, n, k, "USA0") for k in range(n)]
    outside = [ring_sum(mp.mpf(beta), n, lambda a, k=k: mp.cos(k * a) - mp.cos(a)) for k in range(n)]
    return sorted([*inside, *(outside * (d - 2))], reverse=True)


def draw_gram(rng):
    rows = np.round(tokens(rng, most=5, largest=3), 3)
    return (rows @ rows.T).tolist()


@oracle(
    "landscape.labelled_configurations",
    draws={"gram": draw_gram, "spans": lambda rng: bool(rng.integers(2))},
    cases=(
        {"gram": [[1.0, -0.5, -0.5], [-0.5, 1.0, -0.5], [-0.5, -0.5, 1.0]], "spans": True},
        {"gram": [[1.0]], "spans": False},
    ),
    count=8,
)
def labelled_configurations(gram, spans):
    """Different matrices among all orders of the tokens."""
    orders = itertools.permutations(range(len(gram)))
    return len({tuple(round(gram[i][j], 4) for i in order for j in order) for order in orders}) * (2 if spans else 1)


def draw_list(low, high):
    return lambda rng: rng.integers(low, high, 4).tolist()


EQUILIBRIA = (
    {"n": 2, "d": 2, "index": [0, 1], "count": [1, 1], "collinear": [True, True]},
    {"n": 3, "d": 2, "index": [0, 1, 2], "count": [1, 3, 2], "collinear": [True, True, False]},
    {
        "n": 4,
        "d": 3,
        "index": [5, 4, 3, 2, 2, 0],
        "count": [2, 3, 6, 3, 4, 1],
        "collinear": [False, False, False, True, True, True],
    },
    {"n": 40, "d": 3, "index": [0], "count": [2**40], "collinear": [False]},
    {"n": 1, "d": 3, "index": [0], "count": [1], "collinear": [True]},
)
LISTS = {
    "index": draw_list(0, 4),
    "count": draw_list(0, 9),
    "collinear": lambda rng: rng.integers(0, 2, 4).astype(bool).tolist(),
}


@oracle("landscape.euler_sums", draws=LISTS, relation=lambda a: a["n"] >= 2, cases=EQUILIBRIA, count=10)
def euler_sums(n, d, index, count, collinear):
    rows = list(zip(index, count, collinear, strict=True))
    if d == 2:
        return [0, sum(c * (-1) ** k for k, c, _ in rows)]
    # half the derivative at 1 of the collinear series, less that of (1 + t^2)^(n - 1)
    half = sum(c * k for k, c, line in rows if line) // 2
    poincare = sum(2 * k * math.comb(n - 1, k) for k in range(n)) // 2
    return [half - poincare, sum(c * (-1) ** k for k, c, line in rows if not line)]


@oracle(
    "landscape.morse_quotient",
    draws=LISTS,
    relation=lambda a: a["n"] >= 2,
    cases=EQUILIBRIA,
    count=10,
    result=lambda r: [r[0], *r[1]],
)
def morse_quotient(n, d, index, count, collinear):
    """By power series from t = 0."""
    size = n * d
    free, fixed = [0] * size, [0] * size
    for k, c, line in zip(index, count, collinear, strict=True):
        (fixed if line and d == 3 else free)[k] += c
    for k in range(n):
        (free if d == 2 else fixed)[k * (d - 1)] -= math.comb(n - 1, k)
    if d == 3:
        even, odd = sum(fixed[::2]), sum(fixed[1::2])
        if even or odd:
            return [max(abs(even), abs(odd)), -1]
        free = [free[k] + sum(fixed[j] for j in range(k % 2, k + 1, 2)) for k in range(size)]
    rest = sum(c * (-1) ** k for k, c in enumerate(free))
    free[0] -= rest
    quotient = [sum(free[j] * (-1) ** (k - j) for j in range(k + 1)) for k in range(size - 1)] or [0]
    while len(quotient) > 1 and quotient[-1] == 0:
        quotient.pop()
    return [rest, *quotient]


# --- perceptron.py and repulsion.py


@oracle(
    "landscape.dirac_bound",
    cases=(
        {"beta": 5e-324, "max_potential": -1e308, "model": "USA0"},
        {"beta": 9.0, "max_potential": -1 / 18, "model": "USA0"},
        {"beta": 700.0, "max_potential": 1.0, "model": "USA"},
        {"beta": 700.0000000000001, "max_potential": 1.0, "model": "USA"},
    ),
    count=16,
)
def dirac_bound(beta, max_potential, model):
    """Two halves that coincide, at the height of U."""
    if model == "USA" and beta > 700:
        return None
    kernel, half = mp.exp(mp.mpf(beta) if model == "USA" else 0), mp.mpf(1) / 2
    pairs = mp.fsum(half * half * kernel for _ in range(4))
    return pairs / (2 * mp.mpf(beta)) + mp.fsum(half * mp.mpf(max_potential) for _ in range(2))


def bessel1(beta):
    """e^(-beta) I_1(beta)/beta by Poisson's integral."""
    beta = mp.mpf(beta)
    width = 1 / mp.sqrt(1 + beta)
    places = sorted({0, mp.pi, *(place for place in (2 * width, 6 * width, 13 * width) if place < mp.pi)})
    with mp.workdps(30):
        weight = lambda a: (width * mp.sin(a)) ** 2 * mp.exp(-2 * beta * mp.sin(a / 2) ** 2)  # noqa: E731
        return mp.quad(weight, places) / width**2 / mp.pi


@oracle("landscape.non_atomic_threshold", cases=tuple({"beta": b, "model": "USA0"} for b in (5e-324, 8.0, 1e308)))
def non_atomic_threshold(beta, model):
    if model == "USA":
        return bessel1(beta) * mp.exp(mp.mpf(beta)) if beta <= 700 else None
    return bessel1(beta)


@oracle(
    "landscape.non_atomic_density",
    draws={"u": lambda rng: float(rng.choice([-1, 1]) * 10.0 ** -rng.choice([0.5, 1, 2, 4, 8, 30, 300]))},
    cases=(
        {"theta": 0.0, "u": 0.5, "beta": 1e-300, "model": "USA0"},
        {"theta": 1e-9, "u": 0.01413610932621, "beta": 9.0, "model": "USA0"},
        {"theta": 0.0, "u": 0.0141361094, "beta": 9.0, "model": "USA0"},
        {"theta": 3.0, "u": 1e20, "beta": 600.0, "model": "USA"},
    ),
    count=30,
    quick=34,
)
def non_atomic_density(theta, u, beta, model):
    """First moment -u/(2 threshold): the derivative of the first variation is 0."""
    limit = non_atomic_threshold(beta, model)
    if limit is None or abs(mp.mpf(u)) > limit:
        return None
    return (1 + 2 * mp.cos(mp.mpf(theta)) * -mp.mpf(u) / limit / 2) / (2 * mp.pi)


def normal(z):
    """The distribution function of the normal law."""
    return mp.erfc(-z / mp.sqrt(2)) / 2


def primitive(z, activation):
    """The antiderivative of the activation; that of gelu by Stein's identities from the mean of (z + Z)_+^2/2."""
    if activation == "relu":
        return max(z, mp.mpf(0)) ** 2 / 2
    if activation == "tanh":
        return mp.log((mp.exp(z) + mp.exp(-z)) / 2) if abs(z) < 1e4 else abs(z) - mp.log(2)
    square = ((z**2 + 1) * normal(z) + z * mp.exp(-(z**2) / 2) / mp.sqrt(2 * mp.pi)) / 2
    return square - normal(z)


def height(x, landscape):
    """U at a vector of numbers of mpmath."""
    units = zip(landscape["directions"], landscape["biases"], landscape["weights"], strict=True)
    return mp.fsum(
        mp.mpf(weight) * primitive(dot([mp.mpf(c) for c in a], x) + mp.mpf(bias), landscape["activation"])
        for a, bias, weight in units
    )


def draw_network(rng, *, d=None):
    """A perceptron, in half of the cases with steep, faint or shifted units."""
    d, m = int(rng.integers(2, 5)) if d is None else d, int(rng.integers(1, 4))
    size = float(rng.choice([1.0, 1.0, 1.0, 1e-3, 30.0, 1e4]))
    return {
        "directions": (size * rng.standard_normal((m, d))).tolist(),
        "biases": (float(rng.choice([0.0, 0.5, size])) * rng.standard_normal(m)).tolist(),
        "weights": (float(rng.choice([1.0, 1.0, 1e-6, 1e3])) * rng.standard_normal(m)).tolist(),
        "activation": str(rng.choice(["relu", "gelu", "tanh"])),
    }


def with_landscape(a):
    return {**a, "landscape": Landscape(**a["landscape"])}


def same_space(a):
    vectors_given = a["positions"] if "positions" in a else [a["x0"]]
    masses = len(a.get("masses", vectors_given)) == len(vectors_given)
    return len(vectors_given[0]) == len(a["landscape"]["directions"][0]) and masses


def draw_beta(rng):
    return float(10.0 ** rng.choice([*rng.uniform(-2, 3, 6), rng.uniform(3, 8), -8.0, -300.0]))


ATOMS = {
    "beta": draw_beta,
    "positions": lambda rng: tokens(rng, most=4, largest=4),
    "masses": lambda rng: rng.dirichlet(np.ones(int(rng.integers(2, 5)))).tolist(),
    "landscape": draw_network,
}
SILENT = {"directions": [[1.0, 0.0]], "biases": [0.0], "weights": [0.0], "activation": "relu"}
PRINTED = {
    "directions": [[1.0, 0.0], [-1.0, 0.2]],
    "biases": [-0.2, -0.2],
    "weights": [0.5, 0.4],
    "activation": "relu",
}
CLOSE = [[1.0, 0.0], [math.cos(1e-4), math.sin(1e-4)], [math.cos(3e-4), math.sin(3e-4)]]
MEASURES = (
    {"positions": CLOSE, "masses": [0.2, 0.3, 0.5], "beta": 1e8, "landscape": SILENT, "model": "USA0"},
    {"positions": CLOSE, "masses": [0.2, 0.3, 0.5], "beta": 1e7, "landscape": PRINTED, "model": "USA0"},
    {
        "positions": [[0.0, 1.0], [-1.0, 1e-7]],
        "masses": [0.5, 0.5],
        "beta": 700.0,
        "landscape": PRINTED,
        "model": "USA",
    },
    {
        "positions": [[1.0000001, 0.0], [0.9999999, 1e-4]],
        "masses": [1, 0],
        "beta": 1e8,
        "landscape": SILENT,
        "model": "USA0",
    },
    {"positions": [[1.0, 0.0]], "masses": [1.0], "beta": 9.0, "landscape": PRINTED, "model": "USA0"},
)


def kernel(x, y, beta, model):
    return mp.exp(mp.mpf(beta) * (dot(x, y) - (model == "USA0")))


@oracle(
    "landscape.perceptron_energy",
    draws=ATOMS,
    relation=same_space,
    arguments=with_landscape,
    cases=MEASURES,
)
def perceptron_energy(positions, masses, beta, landscape, model):
    if model == "USA" and beta > 700:
        return None
    x, m = vectors(positions), [mp.mpf(mass) for mass in masses]
    pairs = mp.fsum(
        p * q * kernel(y, z, beta, model) for p, y in zip(m, x, strict=True) for q, z in zip(m, x, strict=True)
    )
    return pairs / (2 * mp.mpf(beta)) + mp.fsum(p * height(y, landscape) for p, y in zip(m, x, strict=True))


@oracle(
    "landscape.first_variation",
    draws={**ATOMS, "x": lambda rng: tokens(rng, most=3, largest=4)},
    relation=lambda a: same_space(a) and len(a["x"][0]) == len(a["positions"][0]),
    arguments=with_landscape,
    cases=tuple({**row, "x": [[math.cos(2e-4), math.sin(2e-4)], [-1.0, 0.0]]} for row in MEASURES),
)
def first_variation(x, positions, masses, beta, landscape, model):
    """Term by term; `tests/theory/test_perceptron.py` takes it from differences of the energy."""
    if model == "USA" and beta > 700:
        return None
    atoms, m = vectors(positions), [mp.mpf(mass) for mass in masses]
    return [
        mp.fsum(p * kernel(y, z, beta, model) for p, z in zip(m, atoms, strict=True)) / mp.mpf(beta)
        + height(y, landscape)
        for y in vectors(x)
    ]


def tangent_basis(x):
    """Orthonormal vectors across the unit vector x."""
    rows = [x]
    for k in sorted(range(len(x)), key=lambda k: abs(x[k]))[:-1]:
        axis = [mp.mpf(j == k) for j in range(len(x))]
        for row in rows:
            share = dot(axis, row)
            axis = [a - share * b for a, b in zip(axis, row, strict=True)]
        rows.append(vectors([axis])[0])
    return rows[1:]


def great_circle_point(x, v, step):
    """The point of the great circle from x along v."""
    return [mp.cos(step) * a + mp.sin(step) * b for a, b in zip(x, v, strict=True)]


STEP = mp.mpf(10) ** -30
"""Of differences at 110 digits."""


@oracle(
    "landscape.critical_residuals",
    draws=ATOMS,
    relation=same_space,
    arguments=with_landscape,
    cases=MEASURES,
)
def critical_residuals(positions, masses, beta, landscape, model):
    """Differences of the price along great circles."""
    if model == "USA" and beta > 700:
        return None
    with mp.workdps(110):
        x, m = vectors(positions), [mp.mpf(mass) for mass in masses]

        def price(y):
            gaps = [mp.mpf(beta) * (dot(y, z) - 1) for z in x]
            pull = mp.fsum(p * mp.expm1(gap) for p, gap in zip(m, gaps, strict=True)) / mp.mpf(beta)
            return pull * mp.exp(mp.mpf(beta) if model == "USA" else 0) + height(y, landscape)

        slopes = [
            [
                (price(great_circle_point(y, v, STEP)) - price(great_circle_point(y, v, -STEP))) / (2 * STEP)
                for v in tangent_basis(y)
            ]
            for y in x
        ]
        return [mp.sqrt(dot(slope, slope)) for slope in slopes]


@oracle(
    "landscape.dirac_stability",
    draws={"x0": lambda rng: tokens(rng, families=("random", "orthogonal"), largest=4)[0], "landscape": draw_network},
    relation=same_space,
    arguments=with_landscape,
    result=lambda r: [
        float(r.critical),
        float(r.against_splitting),
        float(r.against_translation),
        r.residual,
        *r.hessian_eigenvalues,
    ],
    cases=(
        {"x0": [1.0, 0.0], "beta": 9.0, "landscape": PRINTED, "model": "USA0", "tol": 1e-9},
        {"x0": [0.2, math.sqrt(0.96)], "beta": 9.0, "landscape": PRINTED, "model": "USA0", "tol": 1e-9},
        {"x0": [0.2 + 1e-13, math.sqrt(0.96)], "beta": 9.0, "landscape": PRINTED, "model": "USA0", "tol": 1e-9},
        {"x0": [0.6, 0.8], "beta": 9.0, "landscape": SILENT, "model": "USA0", "tol": 0.0},
        # a . x + b is 0 to rounding: of size 1e-10
        {
            "x0": [0.6, 0.8],
            "beta": 9.0,
            "landscape": {**PRINTED, "directions": [[4e5, 3e5], [1.0, 1.0]], "biases": [-4.8e5, 0.1]},
            "model": "USA0",
            "tol": 1e-9,
        },
        {"x0": [1.0, 0.0], "beta": 5.0, "landscape": {**PRINTED, "weights": [-4.0, -50.0]}, "model": "USA", "tol": 0.0},
        {"x0": [1.0, 0.0], "beta": 1.0, "landscape": {**PRINTED, "weights": [-4.0, 0.0]}, "model": "USA", "tol": 0.0},
    ),
)
def dirac_stability(x0, beta, landscape, model, tol):
    """Differences of U along great circles, by polarisation."""
    with mp.workdps(110):
        x = vectors([x0])[0]
        kinks = [
            abs(dot([mp.mpf(c) for c in a], x) + bias) / (1 + abs(mp.mpf(bias)))
            for a, bias in zip(landscape["directions"], landscape["biases"], strict=True)
        ]
        if landscape["activation"] == "relu" and min(kinks) < 1e-15:
            return None
        frame, height_at_x = tangent_basis(x), height(x, landscape)
        slope = [
            (height(great_circle_point(x, v, STEP), landscape) - height(great_circle_point(x, v, -STEP), landscape))
            / (2 * STEP)
            for v in frame
        ]

        def bend(v):
            """The second derivative along v, which need not have unit length."""
            size = mp.sqrt(dot(v, v))
            if size == 0:
                return mp.mpf(0)
            unit = [c / size for c in v]
            ends = mp.fsum(height(great_circle_point(x, unit, sign * STEP), landscape) for sign in (1, -1))
            return size**2 * (ends - 2 * height_at_x) / STEP**2

        hessian = mp.matrix(len(frame))
        for i, v in enumerate(frame):
            for j, w in enumerate(frame):
                sums, gaps = ([a + sign * b for a, b in zip(v, w, strict=True)] for sign in (1, -1))
                hessian[i, j] = (bend(sums) - bend(gaps)) / 4
        eigenvalues = sorted(mp.eigsy(hessian, eigvals_only=True))
        residual, top = mp.sqrt(dot(slope, slope)), eigenvalues[-1]
        threshold = mp.exp(min(mp.mpf(beta), 10**6)) if model == "USA" else 1
        return [int(residual <= tol), int(top < threshold), int(top <= tol), residual, *eigenvalues]


def float_height(angles, landscape):
    """U on the circle in floats, for a first look."""
    a = np.array(landscape["directions"]).reshape(-1, 2)
    z = np.stack([np.cos(angles), np.sin(angles)], axis=-1) @ a.T + np.array(landscape["biases"])
    kind = landscape["activation"]
    if kind == "gelu":
        parts = (z**2 - 1) / 2 * ndtr(z) + z * np.exp(-(z**2) / 2) / math.sqrt(8 * math.pi)
    else:
        parts = np.maximum(z, 0) ** 2 / 2 if kind == "relu" else np.logaddexp(z, -z) - math.log(2)
    return parts @ np.array(landscape["weights"])


def quarters(activation):
    """Four units without bias: U is constant for relu and gelu."""
    axes = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    return {"directions": axes, "biases": [0.0] * 4, "weights": [1.0] * 4, "activation": activation}


@oracle(
    "landscape.largest_potential",
    draws={"landscape": lambda rng: draw_network(rng, d=2)},
    arguments=with_landscape,
    result=lambda r: r[0],
    cases=(
        {"landscape": PRINTED},
        {"landscape": SILENT},
        *({"landscape": quarters(activation)} for activation in ("relu", "gelu", "tanh")),
        # a peak of width 1e-6 that no grid of 262,144 points sees, on a broad hill
        {
            "landscape": {
                "directions": [[3e6, 4e6], [3e6, 4e6], [3e6, 4e6], [-1.0, 0.0]],
                "biases": [-3.5e6, -3.5e6 + 3, -3.5e6 + 6, 0.3],
                "weights": [3.0, -6.0, 3.0, 0.1],
                "activation": "tanh",
            }
        },
        {
            "landscape": {
                "directions": [[1e4, 0.0], [-1.0, 0.0]],
                "biases": [-9999.9, 0.3],
                "weights": [1e3, 1.0],
                "activation": "relu",
            }
        },
    ),
    fresh=2,
)
def largest_potential(landscape):
    """The highest peaks of a graded grid, refined by thirds."""
    offsets = np.concatenate([[0.0], np.logspace(-12, 0, 800)])
    angles = [np.linspace(0, 2 * np.pi, 4000)]
    for a, bias in zip(landscape["directions"], landscape["biases"], strict=True):
        length, middle = math.hypot(*a), math.atan2(a[1], a[0])
        opening = math.acos(max(-1.0, min(1.0, -bias / length)))
        for centre in (middle - opening, middle + opening, middle, middle + math.pi):
            angles += [centre + offsets, centre - offsets]
    angles = np.unique(np.mod(np.concatenate(angles), 2 * np.pi))
    angles = np.concatenate([angles[-1:] - 2 * np.pi, angles, angles[:1] + 2 * np.pi])
    values = float_height(angles, landscape)
    inner = np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])) + 1
    best = mp.mpf("-inf")
    with mp.workdps(32):
        for k in inner[np.argsort(-values[inner], kind="stable")][:3]:
            low, high = mp.mpf(angles[k - 1]), mp.mpf(angles[k + 1])
            for _ in range(38):
                first, second = low + (high - low) / 3, high - (high - low) / 3
                heights = [height([mp.cos(t), mp.sin(t)], landscape) for t in (first, second)]
                low, high, best = *((first, high) if heights[0] < heights[1] else (low, second)), max(best, *heights)
    return best


def draw_waves(rng):
    """Coefficients of cos k and sin k, k = 0, 1, 2."""
    return (float(rng.choice([0.0, 1e-6, 0.1, 1.0, 30.0])) * rng.standard_normal((2, 3))).tolist()


def with_field(a):
    def field(angles):
        return sum(c * np.cos(k * angles) + s * np.sin(k * angles) for k, (c, s) in enumerate(np.transpose(a["field"])))

    return {**a, "field": field}


@oracle(
    "landscape.repulsive_minimiser",
    draws={
        "field": draw_waves,
        "beta": draw_beta,
        "points": lambda rng: int(rng.integers(3, 7)),
        "tol": lambda rng: float(10.0 ** -rng.integers(9, 14)),
    },
    arguments=with_field,
    result=lambda r: r.energy,
    cases=tuple(
        {"field": [[0.0, u, 0.0], [0.0] * 3], "beta": beta, "model": model, "points": 120, "tol": 1e-12}
        for u, beta, model in ((0.01, 9.0, "USA0"), (0.0, 50.0, "USA0"), (0.3, 1.0, "USA"))
    ),
    # rounding alone leaves a gap of some 1e-13 of the larger term
    may_refuse=lambda a: a["tol"] < 1e-11,
    fresh=2,
)
def repulsive_minimiser(field, beta, model, points, tol):
    """The smallest of the energies at which the equations of one set of atoms hold with positive masses.

    The density of `non_atomic_density` for 120 points, whose sums are integrals to I_119(beta).
    """
    if model == "USA" and beta > 700:
        return None
    with mp.workdps(60 + 6 * max(0, int(-math.log10(beta)))):
        beta, factor = mp.mpf(beta), mp.exp(0 if model == "USA0" else mp.mpf(beta))
        if points == 120:
            u, first = mp.mpf(field[0][1]), mp.besseli(1, beta) * mp.exp(-beta) * factor
            share = u * beta / first
            pairs = mp.besseli(0, beta) * mp.exp(-beta) * factor + first * share**2 / 2
            return pairs / (2 * beta) - u * share / 2
        angles = [2 * mp.pi * k / points for k in range(points)]
        waves = list(enumerate(zip(*field, strict=True)))
        heights = [mp.fsum(c * mp.cos(k * a) + s * mp.sin(k * a) for k, (c, s) in waves) for a in angles]
        pair = [factor / beta * mp.exp(-2 * beta * mp.sin(a / 2) ** 2) for a in angles]
        energies = []
        for size in range(1, points + 1):
            for atoms in itertools.combinations(range(points), size):
                rows = [[pair[abs(i - j)] / pair[0] for j in atoms] + [-1] for i in atoms] + [[1] * size + [0]]
                right = [-heights[i] / pair[0] for i in atoms] + [1]
                masses = list(mp.lu_solve(mp.matrix(rows), mp.matrix(right)))[:size]
                if min(masses) > 0:
                    couples = mp.fsum(
                        p * q * pair[abs(i - j)]
                        for p, i in zip(masses, atoms, strict=True)
                        for q, j in zip(masses, atoms, strict=True)
                    )
                    energies.append(couples / 2 + mp.fsum(p * heights[i] for p, i in zip(masses, atoms, strict=True)))
        return min(energies)


importlib.import_module("tests.formulas.landscape_modes")
