"""Oracles of `theory.merging`: sums over panels of Gauss's rule at 50 digits, and clusters followed by brute force."""

import functools
import itertools
import json
import math

import mpmath as mp
import numpy as np
from mpmath.calculus.quadrature import GaussLegendre
from scipy.integrate import solve_ivp

from tests.formulas.oracle import oracle
from tests.formulas.tokens import tokens

m = mp.mpf
LARGEST, SMALLEST = math.log(1.7976e308), math.log(2.2251e-308)
FAMILIES = ("random", "random", "nearly coincident", "antipodal", "nearly antipodal", "orthogonal", "equator", "arc")


@functools.cache
def nodes():
    """48 nodes and weights on (-1, 1), to 60 digits."""
    with mp.workdps(60):
        return GaussLegendre(mp.mp).calc_nodes(5, mp.mp.prec)


def panels(f, low, high, cuts=()):
    """The integral of f over panels that end at `cuts`."""
    low, high, total = m(low), m(high), m(0)
    ends = {low, high, *(m(cut) for cut in cuts if low < cut < high)}
    ordered = sorted(ends)
    for left, right in itertools.pairwise(ordered):
        middle, half = (left + right) / 2, (right - left) / 2
        total += half * mp.fsum(w * f(middle + half * x) for x, w in nodes())
    return total


def graded(low, high, smallest, ratio=4):
    """Cuts that are denser towards `high`, where something changes on the scale `smallest`; and to `low`, if above 0."""
    low, high, step = m(low), m(high), m(smallest)
    cuts = []
    while step < high - low:
        cuts.append(high - step)
        step *= ratio
    cut = low * ratio
    while low > 0 and cut < high:
        cuts.append(cut)
        cut *= ratio
    return cuts


def kinks(beta, levels):
    """Angles at which beta u has these values."""
    return [2 * mp.asin(mp.sqrt(level / (2 * beta))) for level in levels if beta > 0 and 0 < level < 2 * beta]


def rate(theta, beta, masses, model):
    """The closing speed over sin(theta)."""
    m1, m2 = masses
    q = mp.exp(-beta * 2 * mp.sin(theta / 2) ** 2)
    return m2 * q / (m1 + m2 * q) + m1 * q / (m2 + m1 * q) if model == "SA" else (m1 + m2) * q


def pair_log_time(angle, beta, masses, until, model):
    """Log of the time of a pair: the integral of 1/speed over the angle, from its value at the start."""
    angle, beta, until, masses = m(angle), m(beta), m(until), [m(mass) for mass in masses]
    top = 2 * beta * mp.sin(angle / 2) ** 2
    m1, m2 = masses

    def relative(theta):
        """1/speed times e^(-top)."""
        fall = 2 * beta * mp.sin((angle + theta) / 2) * mp.sin((angle - theta) / 2)  # beta u at the start, less here
        if fall > 400 and top > 800:
            return m(0)
        if model != "SA":
            return mp.exp(-fall) / (m1 + m2) / mp.sin(theta)
        q = mp.exp(-(top - fall))
        factor = (m1 + m2 * q) * (m2 + m1 * q) / (m1 * m1 + m2 * m2 + 2 * m1 * m2 * q)
        return mp.exp(-fall) * factor / mp.sin(theta)

    scale = 1 / (beta * mp.sin(angle) + mp.sqrt(beta) + 1 / (mp.pi - angle) + 1 / (angle - until) + 1 / angle)
    kappa = abs(mp.log(m1 / m2))
    cuts = graded(until, angle, scale / 4)
    if model == "SA":
        cuts += kinks(beta, [kappa + 1.5 * j for j in range(-14, 15)])
    total = panels(relative, until, angle, cuts)
    return mp.log(total) + top - (beta if model == "USA" else 0)


def default_end(beta, until):
    return m(until) if until is not None else m("0.001") / max(m(beta), 1)


def one_or_none(log_time):
    """e^log_time, unless it leaves the range of floats."""
    return mp.exp(log_time) if SMALLEST < log_time < LARGEST else None


def pair_masses(rng, low=-100, high=100):
    kind = rng.integers(4)
    if kind == 0:
        return [0.5, 0.5]
    if kind == 3:
        return [10.0 ** rng.uniform(low, high), 10.0 ** rng.uniform(low, high)]
    return [float(x) for x in 10.0 ** rng.uniform(-1.5, 0.5, 2)]


MASSES = {"masses": pair_masses}


def ordered(a):
    """Ends below the angle, by more than a rounding of the default."""
    return a["angle"] > (1.001e-3 / max(a["beta"], 1) if a["until"] is None else a["until"])


@oracle(
    "merging.merge_time",
    draws=MASSES,
    relation=lambda a: ordered(a) and a["beta"] * (1 - math.cos(a["angle"])) < 1500,
    cases=(
        {"angle": 1.0, "beta": 9.0, "masses": [0.3, 0.7], "until": 2.0, "model": "SA"},
        {"angle": 0.5000000000000001, "beta": 9.0, "masses": [0.5, 0.5], "until": 0.5, "model": "USA0"},
        {"angle": 3.141592653589793 - 1e-14, "beta": 300.0, "masses": [0.3, 0.7], "until": None, "model": "SA"},
        {"angle": 1.5707963267948966, "beta": 1e18, "masses": [0.5, 0.5], "until": None, "model": "USA"},
    ),
    quick=12,
)
def merge_time(angle, beta, masses, until, model):
    end = default_end(beta, until)
    return one_or_none(pair_log_time(angle, beta, masses, end, model)) if end < angle else None


@oracle(
    "merging.log_merge_time",
    draws=MASSES,
    relation=ordered,
    cases=(
        {"angle": 1.0, "beta": 1e100, "masses": [1e-100, 1e100], "until": None, "model": "SA"},
        {"angle": 3.0, "beta": 200.0, "masses": [1e-80, 1e80], "until": 1e-9, "model": "SA"},
    ),
    quick=12,
)
def log_merge_time(angle, beta, masses, until, model):
    end = default_end(beta, until)
    return pair_log_time(angle, beta, masses, end, model) if end < angle else None


def heads(rng):
    count = int(rng.integers(1, 5))
    return [float(x) for x in 10.0 ** rng.uniform(-2, rng.choice([1.0, 2.5, 6.0]), count)]


def merge_time_of_heads(angle, betas, weights, masses, until, model):
    if until >= angle:
        return None
    angle, until, betas, weights = m(angle), m(until), [m(b) for b in betas], [m(w) for w in weights]
    masses = [m(mass) for mass in masses]

    def slowness(theta):
        speed = mp.fsum(w * rate(theta, b, masses, model) for w, b in zip(weights, betas, strict=True))
        return 1 / (speed * mp.sin(theta))

    if 2 * min(betas) * mp.sin(angle / 2) ** 2 > 3000:
        return mp.mpf("1e400")
    steepest = max(betas)
    scale = 1 / (steepest * mp.sin(angle) + mp.sqrt(steepest) + 1 / (mp.pi - angle) + 1 / (angle - until) + 1 / angle)
    levels = [abs(mp.log(masses[0] / masses[1])) + 1.5 * j for j in range(-10, 11)] if model == "SA" else []
    cuts = [cut for b in betas for cut in kinks(b, levels)]
    # where one head becomes weaker than another
    for (b, w), (c, v) in itertools.combinations(zip(betas, weights, strict=True), 2):
        if b != c:
            cuts += kinks(abs(b - c), [abs(mp.log(w / v)) + 1.5 * j for j in range(-10, 11)])
    time = panels(slowness, until, angle, [*graded(until, angle, scale / 4, 3), *cuts])
    return one_or_none(mp.log(time))


oracle(
    "merging.merge_time_of_heads",
    draws={
        "betas": heads,
        "weights": lambda rng: [float(x) for x in 10.0 ** rng.uniform(-8, 2, 4)],
        "masses": lambda rng: pair_masses(rng, -20, 20),
    },
    arguments=lambda a: {**a, "weights": a["weights"][: len(a["betas"])]},
    relation=lambda a: (
        a["until"] < a["angle"] and a["until"] > 1e-30 and min(a["betas"]) * (1 - math.cos(a["angle"])) < 600
    ),
    cases=(
        {
            "angle": 3.1,
            "betas": [0.5, 1e6],
            "weights": [1e-7, 1.0],
            "masses": [0.4, 0.6],
            "until": 1e-6,
            "model": "SA",
        },
        {"angle": 1.0, "betas": [1.0], "weights": [1.0], "masses": [0.4, 0.6], "until": 2.0, "model": "SA"},
    ),
    count=16,
    quick=6,
    fresh=1,
)(lambda weights, betas, **rest: merge_time_of_heads(betas=betas, weights=weights[: len(betas)], **rest))


@oracle("merging.layer_angle", quick=12)
def layer_angle(angle, beta, skip):
    half = m(angle) / 2
    fall = 2 * m(beta) * mp.sin(half) ** 2
    across = mp.sin(half) * (m(skip) - mp.expm1(-fall) / (1 + mp.exp(-fall)))  # of the mean of both clusters
    return 2 * mp.atan2(across, (m(skip) + 1) * mp.cos(half))


@oracle("merging.merging_angle", quick=8)
def merging_angle(beta):
    return m("0.001") / max(m(beta), 1)


def shares(theta, beta, m1, m2, model):
    if model != "SA":
        return m2 / (m1 + m2)
    q = mp.exp(-2 * beta * mp.sin(theta / 2) ** 2) if mp.isfinite(beta) else m(0)
    return m2 * (m2 + m1 * q) / (m1**2 + m2**2 + 2 * m1 * m2 * q)


def along_the_way(f, angle, beta, m1, m2):
    """The integral over (0, angle) of a function that changes with e^(-beta u)."""
    kappa = abs(mp.log(m1 / m2))
    cuts = []
    if mp.isfinite(beta):
        cuts = kinks(beta, [m(4) ** k for k in range(-30, 5)] + [kappa + 1.5 * j for j in range(-14, 15)])
    return panels(f, 0, angle, [*cuts, *(angle * m(j) / 8 for j in range(1, 8))])


def meeting_place(angle, beta, masses, model):
    m1, m2 = (m(mass) for mass in masses)
    angle, beta = m(angle), m(beta)
    return along_the_way(lambda t: shares(t, beta, m1, m2, model), angle, beta, m1, m2)


oracle(
    "merging.meeting_point",
    draws=MASSES,
    cases=(
        {"angle": 3.0, "beta": 1e100, "masses": [0.3, 0.7], "model": "SA"},
        {"angle": 3.1, "beta": 1e6, "masses": [1e-80, 1e80], "model": "SA"},
        {"angle": 3.1, "beta": 1e6, "masses": [1e80, 1e-80], "model": "SA"},
    ),
    quick=12,
)(meeting_place)


@oracle(
    "merging.merge_arc_length",
    draws={"masses": pair_masses, "beta": lambda rng: float(rng.choice([0.0, math.inf, 10 ** rng.uniform(-3, 9)]))},
    cases=({"angle": 3.0, "beta": 1e60, "masses": [0.3, 0.7], "model": "SA"},),
    quick=10,
)
def merge_arc_length(angle, beta, masses, model):
    m1, m2 = (m(mass) for mass in masses)

    def speed(theta):
        share = shares(theta, m(beta), m1, m2, model)
        return mp.sqrt(m1 * share**2 + m2 * (1 - share) ** 2)

    return along_the_way(speed, m(angle), m(beta), m1, m2)


@oracle("merging.meeting_point_limit", draws=MASSES, quick=8)
def meeting_point_limit(angle, masses):
    m1, m2 = (m(mass) for mass in masses)
    return m(angle) * m2**2 / (m1**2 + m2**2)


@oracle(
    "merging.coarse_graining_error",
    draws={"spread2": lambda rng: float(10.0 ** -rng.choice([2, 4, 8, 30, 300]))},
    relation=lambda a: ((a["beta"] * math.sin(a["angle"])) ** 2 + 3 * a["beta"]) * a["spread2"] < 3,
    cases=({"beta": 1000.0, "angle": 1.0, "spread2": 0.1},),
    quick=8,
)
def coarse_graining_error(beta, angle, spread2):
    half = (m(beta) * mp.sin(m(angle))) ** 2 + 3 * m(beta) + 1
    return half * m(spread2) / 2 if half * m(spread2) < 2 else None


def motion_margin(a):
    """The condition of the theorem, in floats."""
    logs = math.log(2) - math.log(a["size"]) + 2 * math.log(a["n"])
    return 1 - a["overlap"] - 8 * a["size"] - logs / a["beta"]


MOTION = {
    "relation": lambda a: abs(motion_margin(a)) > 1e-9,
    "draws": {"beta": lambda rng: float(10.0 ** rng.choice([0.5, 1, 1.5, 2, 2.5, 4, 8, 300]) * rng.uniform(1, 3))},
    "cases": ({"beta": 5.0, "overlap": 0.1, "size": 0.01, "n": 4},),
    "quick": 8,
}


@oracle("merging.log_slow_motion_time", **MOTION)
def log_slow_motion_time(beta, overlap, size, n):
    beta, overlap, size = m(beta), m(overlap), m(size)
    legal = 1 - overlap - 8 * size - mp.log(2 * m(n) ** 2 / size) / beta > 0
    return mp.log(size / n) + (1 - overlap) * beta if legal else None


@oracle("merging.slow_motion_time", **MOTION)
def slow_motion_time(beta, overlap, size, n):
    log_time = log_slow_motion_time(beta, overlap, size, n)
    return None if log_time is None else one_or_none(log_time)


@oracle("merging.cap_overlap", quick=8)
def cap_overlap(size):
    return mp.sin(2 * mp.acos(1 - 2 * m(size))) if size > 1e-20 else 4 * mp.sqrt(m(size))


def angle_share(angle, d):
    """The share of a sphere within an angle of a point, by the area of caps."""
    angle = m(angle)
    if angle > mp.pi / 2:
        return 1 - angle_share(mp.pi - angle, d)
    whole = mp.sqrt(mp.pi) * mp.gamma(m(d - 1) / 2) / mp.gamma(m(d) / 2)
    height = mp.log(mp.sin(angle)) * (d - 2)
    scale = 1 / (d * mp.cot(angle) + mp.sqrt(d)) if angle > 0 else 1
    area = panels(
        lambda t: mp.exp((d - 2) * mp.log(mp.sin(t)) - height), 0, angle, graded(0, angle, min(scale, angle) / 4)
    )
    return area * mp.exp(height) / whole


@oracle("merging.pair_angle_probability", cases=({"angle": 1e-200, "d": 2},), quick=12)
def pair_angle_probability(angle, d):
    return angle_share(angle, d) if angle > 0 else m(0)


def nearest_share(angle, d, n):
    angle = m(angle)
    if d == 2:
        share, power = n * angle / (2 * mp.pi), m(n - 1)
    else:
        share, power = angle_share(angle, d) if angle > 0 else m(0), m(n) * (n - 1) / 2
    if share > m("0.5"):
        return 1 - max(1 - share, 0) ** power
    return -mp.expm1(power * mp.log1p(-share))


oracle("merging.nearest_angle_probability", quick=12)(nearest_share)


@oracle(
    "merging.nearest_angle",
    count=14,
    quick=8,
    fresh=1,
    draws={"d": lambda rng: int(rng.choice([2, 3, 4, 10, 300, 10_000]))},
)
def nearest_angle(q, d, n):
    """Where the log of the probability has its value, by bisection in log(angle)."""
    if q == 0:
        return m(0)
    power = m(n - 1) if d == 2 else m(n) * (n - 1) / 2
    share = -mp.expm1(mp.log1p(-m(q)) / power)
    if d == 2:
        return 2 * mp.pi / n * share
    if share > m("0.5"):
        return mp.pi - _angle_of(1 - share, d)
    return _angle_of(share, d)


def _angle_of(share, d):
    low, high = mp.log(mp.mpf(10) ** -700), mp.log(mp.pi / 2)
    for _ in range(18):
        middle = (low + high) / 2
        low, high = (middle, high) if angle_share(mp.exp(middle), d) < share else (low, middle)
    x = high  # log P is concave in log(angle): Newton's method from the right
    whole = mp.sqrt(mp.pi) * mp.gamma(m(d - 1) / 2) / mp.gamma(m(d) / 2)
    for _ in range(30):
        a = mp.exp(x)
        value = angle_share(a, d)
        step = mp.log(value / share) / (mp.sin(a) ** (d - 2) / whole * a / value)
        x -= step
        if abs(step) < mp.mpf(10) ** -30:
            break
    return mp.exp(x)


def time_share(log_time, beta, d, n, model, until):
    """The probability of the angle of which the pair's time is this, by secants in z = log tan(angle/2)."""
    end = default_end(beta, until)
    mass = m(1) / n
    first = mp.log(mp.tan(end / 2))

    def excess(x):
        """At log tan(angle/2) = first + e^x."""
        angle = 2 * mp.atan(mp.exp(first + mp.exp(x)))
        return pair_log_time(angle, beta, (mass, mass), end, model) - log_time

    low, high = m(-45), mp.log(45 - first)
    with mp.workdps(40):
        if log_time == -math.inf or excess(low) > 0:
            return nearest_share(end, d, n)
        if log_time == math.inf or excess(high) < 0:
            return m(1)
        for _ in range(7):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) < 0 else (low, middle)
        x = mp.findroot(excess, (low, high), solver="anderson", tol=1e-25, verify=False, maxsteps=40)
        return nearest_share(2 * mp.atan(mp.exp(first + mp.exp(x))), d, n)


TIMES = {
    "log_time": lambda rng: float(rng.choice([rng.uniform(-10, 10), rng.uniform(0, 60), rng.uniform(0, 3000)])),
    "beta": lambda rng: float(rng.choice([0.0, 10 ** rng.uniform(-1, 1.5), 10 ** rng.uniform(-1, 3)])),
    "d": lambda rng: int(rng.choice([2, 3, 4, 10, 300])),
    "until": lambda rng: None if rng.random() < 0.4 else float(10.0 ** -rng.choice([0.3, 1, 3, 8, 30])),
}
SLOW = {"count": 8, "quick": 6, "fresh": 0}


@oracle(
    "merging.first_merge_probability",
    draws=TIMES,
    cases=(
        {"log_time": -math.inf, "beta": 9.0, "d": 3, "n": 8, "model": "SA", "until": 0.1},
        {"log_time": math.inf, "beta": 9.0, "d": 3, "n": 8, "model": "SA", "until": 0.1},
        {"log_time": 40.0, "beta": 30.0, "d": 3, "n": 8, "model": "USA0", "until": None},
    ),
    **SLOW,
)
def first_merge_probability(log_time, beta, d, n, model, until):
    return time_share(log_time, beta, d, n, model, until)


@oracle(
    "merging.pair_time_probability",
    draws=TIMES,
    cases=({"log_time": 3.0, "beta": 4.0, "d": 3, "model": "SA", "until": 0.1},),
    **SLOW,
)
def pair_time_probability(log_time, beta, d, model, until):
    return time_share(log_time, beta, d, 2, model, until)


def rough_log_freezing_rate(angle, beta):
    """In floats, by bisection: below the rate the pair merges, above it it stops.

    In s = -log(u/(2 - u)), y = beta u obeys dy/ds = u (r/2) e^y - y (1 - u/2). Where that is negative it stays so, as u
    falls: the pair merges. Where y is far above log(2 beta/r) it stops.
    """
    first = -2 * math.log(math.tan(angle / 2))

    def merges(log_r):
        def sign(s, state):
            u = 2 / (1 + math.exp(min(s, 700.0)))
            y = state[0] * u
            return log_r + y - math.log(2 * y * (1 - u / 2) / u) if y > 0 else 1.0

        def stopped(s, state):
            u = 2 / (1 + math.exp(min(s, 700.0)))
            return state[0] * u - 40 - max(math.log(2 * state[0] + 1e-300) - log_r, 0)

        def right(s, state):
            u = 2 / (1 + math.exp(min(s, 700.0)))
            return [np.exp(min(log_r + state[0] * u, 650.0)) / 2]

        sign.terminal = stopped.terminal = True
        if beta > 0 and sign(first, [beta]) <= 0:
            return True
        way = solve_ivp(
            right,
            (first, first + 3000),
            [beta],
            "DOP853",
            rtol=1e-12,
            atol=1e-300,
            events=(sign, stopped),
            first_step=1e-6,
        )
        return len(way.t_events[0]) > 0

    u = 2 * math.sin(angle / 2) ** 2
    low = math.log(2 * (beta + 1) * (1 - u / 2) + 1e-3) - beta * u - 5
    high = math.log(10 / u + 10 * beta) - beta * u + 10
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if merges(middle) else (low, middle)
    return (low + high) / 2


def pair_merges(angle, beta, rate, order=24):
    """Whether clusters merge while beta rises at a rate: power series of beta, u and e^y in s at 28 digits.

    dy/ds < 0 decides for merging, as above. y > 3 and y > log(2 beta/r) + 3 decide against it: the excess of y over
    log(2 beta/r) grows by (y - 1) e^excess - y (1 - u/2) > 0 from there on.
    """
    b, u = m(beta), 2 * mp.sin(m(angle) / 2) ** 2
    while True:
        y = b * u
        if b > 0 and u * rate / 2 * mp.exp(y) < y * (1 - u / 2):
            return True
        if y > 3 and y > mp.log(2 * b / rate) + 3:
            return False
        betas, us, ys, powers = [b], [u], [y], [mp.exp(y)]
        for k in range(order):
            betas.append(rate / 2 * powers[k] / (k + 1))
            us.append((mp.fdot(us, us[::-1]) / 2 - us[k]) / (k + 1))
            ys.append(mp.fdot(betas, us[::-1]))
            powers.append(mp.fdot([i * ys[i] for i in range(1, k + 2)], powers[::-1]) / (k + 1))
        radius = min(
            abs(series[0] / series[j]) ** (m(1) / j)
            for series in (betas, us, powers)
            for j in (order - 1, order)
            if series[0] and series[j]
        )
        step = radius * m(10) ** (m(-20) / order)
        b, u = (mp.fsum(c * step**k for k, c in enumerate(series)) for series in (betas, us))


def freezing_rate(angle, beta):
    """By bisection of the log of the rate to 1e-14, from a bracket that is checked."""
    with mp.workdps(28):
        middle, width = m(rough_log_freezing_rate(angle, beta)), m("1e-9")
        while not pair_merges(angle, beta, mp.exp(middle - width)) or pair_merges(angle, beta, mp.exp(middle + width)):
            width *= 10
        low, high = middle - width, middle + width
        while high - low > 1e-14:
            middle = (low + high) / 2
            low, high = (middle, high) if pair_merges(angle, beta, mp.exp(middle)) else (low, middle)
        return mp.exp((low + high) / 2)


oracle(
    "merging.freezing_rate",
    draws={
        "angle": lambda rng: float(rng.choice([rng.uniform(0.05, 3.1), 10.0 ** -rng.uniform(1, 20), np.pi - 1e-6])),
        "beta": lambda rng: float(rng.choice([0.0, rng.uniform(0, 50), 10.0 ** rng.uniform(-3, 6)])),
    },
    relation=lambda a: a["beta"] * (1 - math.cos(a["angle"])) < 600,
    cases=(
        {"angle": 1.0, "beta": 80.0},
        {"angle": 3.0, "beta": 10.0},
        {"angle": 3.0, "beta": 100.0},
        {"angle": 0.1, "beta": 0.0},
        {"angle": 1e-3, "beta": 1e6},
        {"angle": 3.1, "beta": 300.0},
    ),
    count=8,
    quick=4,
    fresh=1,
)(freezing_rate)


def turning(theta, beta, masses, skew, model):
    """angle' under V = I + skew J."""
    m1, m2 = masses
    q, near = mp.exp(-2 * beta * mp.sin(theta / 2) ** 2), 2 * mp.sin(theta / 2) ** 2
    if model == "USA0":
        return -q * mp.sin(theta) + skew * (m1 - m2) * (1 - q + q * near)
    close = m2 * q / (m1 + m2 * q) + m1 * q / (m2 + m1 * q)
    return -mp.sin(theta) * close + skew * q * near * (m1 / (m2 + m1 * q) - m2 / (m1 + m2 * q))


def near_equilibrium(a, share):
    """True if the speed at the start is less than a share of its parts, in floats."""
    m1, m2 = (x / sum(a["masses"]) for x in a["masses"])
    q, u = math.exp(-a["beta"] * (1 - math.cos(a["angle"]))), 2 * math.sin(a["angle"] / 2) ** 2
    if a["model"] == "USA0":
        pull, drift = q * math.sin(a["angle"]), a["skew"] * (m1 - m2) * (1 - q + q * u)
    else:
        pull, drift = math.sin(a["angle"]) * (m1 * m1 + m2 * m2 + 2 * m1 * m2 * q), a["skew"] * u * (m1 - m2)
    return abs(pull - drift) < share * max(abs(pull), abs(drift))


@oracle(
    "merging.skew_merge_time",
    draws={
        "masses": lambda rng: pair_masses(rng, -10, 10),
        "beta": lambda rng: float(rng.choice([0.0, 10 ** rng.uniform(-1, 1.5), 10 ** rng.uniform(0, 4)])),
        "skew": lambda rng: float(rng.choice([0.0, rng.uniform(-2, 2), 10.0 ** rng.uniform(-12, 3)])),
    },
    relation=lambda a: (
        a["until"] < a["angle"]
        and a["until"] > 1e-40
        and (a["beta"] < 150 or (a["model"] == "USA0" and abs(a["skew"]) > 1e-8))
        and abs(a["masses"][0] - a["masses"][1]) > 1e-6 * a["masses"][0]
    ),
    # so near an equilibrium the time depends on digits that the forces have lost
    may_refuse=lambda a: near_equilibrium(a, 2e-4),
    cases=(
        {"angle": 1.5, "beta": 10.0, "skew": 0.1, "masses": [0.7, 0.3], "until": 0.01, "model": "USA0"},
        {"angle": 1.5, "beta": 200.0, "skew": -1e-9, "masses": [0.7, 0.3], "until": 0.01, "model": "USA0"},
        {"angle": 3.1, "beta": 300.0, "skew": 0.0, "masses": [0.7, 0.3], "until": 1e-9, "model": "SA"},
        {"angle": 0.1, "beta": 300.0, "skew": 100.0, "masses": [0.7, 0.3], "until": 0.01, "model": "SA"},
        {"angle": 0.1, "beta": 300.0, "skew": 100.0, "masses": [0.7, 0.3], "until": 1.0, "model": "SA"},
    ),
    count=16,
    quick=8,
    fresh=1,
)
def skew_merge_time(angle, beta, skew, masses, until, model):
    if until >= angle:
        return None
    masses = [m(mass) / mp.fsum(masses) for mass in masses]
    angle, beta, until, skew = m(angle), m(beta), m(until), m(skew)

    def slowness(theta):
        return 1 / abs(turning(theta, beta, masses, skew, model))

    turn = abs(skew * (masses[0] - masses[1]))
    levels = [0, abs(mp.log(masses[0] / masses[1])), -mp.log(turn) if 0 < turn < 1 else 0]
    around = kinks(beta, [level + 1.5 * j for level in levels for j in range(-14, 15)])
    small = [10 ** m(-k) for k in range(-1, 45)] + [10 ** m(-k) / 3 for k in range(-1, 45)]
    small += [x / turn for x in small] if turn > 0 else []
    scale = 1 / (beta * mp.sin(angle) + mp.sqrt(beta) + 1 / angle) / 100
    speed = turning(angle, beta, masses, skew, model)
    # where the speed would vanish on the other side of the start
    gap = abs(speed) / (beta + 1 + abs(skew)) / 100
    cuts = [*around, *small, *(mp.pi - x for x in small)]
    if speed < 0:
        ends = graded(until, angle, min(scale, gap), 3)
        return one_or_none(mp.log(panels(slowness, until, angle, [*cuts, *ends])))
    steps = [min(scale, gap) * m(3) ** k for k in range(120)]
    first = panels(slowness, angle, mp.pi, [*cuts, *(angle + x for x in steps), *graded(0, mp.pi, scale)])
    other = panels(
        lambda t: 1 / abs(turning(-t, beta, masses, skew, model)), until, mp.pi, [*cuts, *graded(until, mp.pi, scale)]
    )
    return one_or_none(mp.log(first + other))


def largest_step(a):
    """1 + c1/beta, in floats, where the expansion has two terms."""
    return 1 + 2 * math.cos(a["angle"]) / math.sin(a["angle"]) ** 2 / a["beta"]


@oracle(
    "merging.log_merge_time_expansion",
    draws=MASSES,
    relation=lambda a: a["terms"] != 2 or abs(largest_step(a) - 1e-3) > 1e-9 * (1 + abs(largest_step(a))),
    cases=({"angle": 2.5, "beta": 2.0, "masses": [0.5, 0.5], "model": "SA", "terms": 2},),
    quick=12,
)
def log_merge_time_expansion(angle, beta, masses, model, terms):
    """Derivatives of 1/(u (2 - u)) = (1/u + 1/(2 - u))/2, alternating, over powers of beta."""
    angle, beta, (m1, m2) = m(angle), m(beta), (m(mass) for mass in masses)
    u, w = 2 * mp.sin(angle / 2) ** 2, 2 * mp.cos(angle / 2) ** 2
    series = mp.fsum(
        (-1) ** k * mp.factorial(k) * ((-1) ** k / u ** (k + 1) + 1 / w ** (k + 1)) / 2 / beta**k for k in range(terms)
    )
    if series * u * w < m("0.001"):
        return mp.nan
    slow = 1 / (m1 / m2 + m2 / m1) if model == "SA" else 1 / (m1 + m2)
    return beta * u + mp.log(series * slow / beta) - (beta if model == "USA" else 0)


def pull_margin(a):
    """Of the terms of the escape rate, the sum over the size, at 50 digits."""
    with mp.workdps(50):
        angle, beta, (m1, m2) = m(a["angle"]), m(a["beta"]), (m(mass) for mass in a["masses"])
        steep, q = beta * mp.sin(angle) ** 2, mp.exp(-2 * beta * mp.sin(angle / 2) ** 2)
        parts = [steep, -mp.cos(angle)]
        if a["model"] == "SA":
            parts = []
            for mine, other in ((m1, m2), (m2, m1)):
                total = mine + other * q
                parts += [other / total * steep * mine / total, -other / total * mp.cos(angle)]
        return float(abs(mp.fsum(parts)) / mp.fsum(map(abs, parts)))


@oracle(
    "merging.log_pair_escape_rate",
    draws=MASSES,
    # so near the largest pull the log of the rate depends on digits that the difference has lost
    may_refuse=lambda a: pull_margin(a) < 1.1e-4,
    cases=(
        {"angle": 0.3299, "beta": 9.0, "masses": [0.5, 0.5], "model": "USA0"},
        {"angle": 1.0, "beta": 9.0, "masses": [0.5, 0.5], "model": "USA0"},
        {"angle": 1.0, "beta": 9.0, "masses": [0.2, 0.5], "model": "SA"},
        {"angle": 0.1, "beta": 900.0, "masses": [0.2, 0.5], "model": "SA"},
    ),
    quick=12,
)
def log_pair_escape_rate(angle, beta, masses, model):
    """A difference quotient at 900 digits."""
    with mp.workdps(900):
        angle, beta, masses = m(angle), m(beta), [m(mass) for mass in masses]
        step = angle * mp.mpf(10) ** -300
        ends = [rate(angle + s, beta, masses, model) * mp.sin(angle + s) for s in (-step, step)]
        slope = (ends[0] - ends[1]) / (2 * step)
        return mp.log(slope) + (beta if model == "USA" else 0) if slope > 0 else mp.nan


def three_speeds(positions, masses, beta, model):
    """How fast clusters 0 and 1 of three close."""
    speeds = []
    for q in (0, 1):
        apart = [positions[p] - positions[q] for p in range(3)]
        pulls = [masses[p] * mp.exp(-2 * beta * mp.sin(apart[p] / 2) ** 2) for p in range(3)]
        speeds.append(mp.fsum(w * mp.sin(a) for w, a in zip(pulls, apart, strict=True)))
        if model == "SA":
            speeds[-1] /= mp.fsum(pulls)
    return speeds[0] - speeds[1]


def closing(place, masses, start, end, beta, model):
    """Log of the time; `place` gives positions in mpmath. None if the two do not close."""
    start, end, beta, masses = m(start), m(end), m(beta), [m(mass) for mass in masses]
    top = 2 * beta * mp.sin(start / 2) ** 2

    def slowness(angle):
        return mp.exp(-top) / three_speeds(place(angle), masses, beta, model)

    scale = 1 / (beta * mp.sin(start) + mp.sqrt(beta) + 1 / (start - end) + 1 / start)
    cuts = [*graded(end, start, scale / 4, 3), *kinks(beta, [j * m("1.5") for j in range(1, 30)])]
    if any(three_speeds(place(a), masses, beta, model) <= 0 for a in [start, *cuts] if end <= a <= start):
        return None
    return mp.log(panels(slowness, end, start, cuts)) + top


def beside(share, far):
    """Clusters 0 and 1 around 0, with this share of the angle before it; cluster 2 at `far`."""
    return lambda t: (-share * t, (1 - share) * t, far + 0 * t)


def margin_of_closing(a, place):
    """The least speed over that without the third cluster, in floats."""
    start, end = a.get("start", a.get("angle")), a.get("end", a.get("until"))
    t, beta, (m0, m1, m2) = np.geomspace(end, start, 400), a["beta"], a["masses"]
    x = place(t)
    speeds = []
    for q, (own, other) in enumerate(((m0, m1), (m1, m0))):
        far, sign = x[2] - x[q], (1, -1)[q]
        u, v = 2 * np.sin(t / 2) ** 2, 2 * np.sin(far / 2) ** 2
        with np.errstate(over="ignore"):
            pull = other * np.sin(t) * sign + m2 * np.exp(np.minimum(beta * (u - v), 600)) * np.sin(far)
        total = own + other * np.exp(-beta * u) + m2 * np.exp(-beta * v) if a["model"] == "SA" else 1.0
        speeds.append(pull / total)
    return float(np.min((speeds[0] - speeds[1]) / np.sin(t)))


def three_masses(rng):
    first, second, third = (float(x) for x in 10.0 ** rng.uniform(-1.5, 0.5, 3))
    return [first, second, float(rng.choice([0.0, third, 1e-20]))]


def closes_clearly(a, place):
    return abs(margin_of_closing(a, place)) > 1e-3


def place_draw(rng):
    return [float(rng.uniform(0, 1)), float(rng.choice([rng.uniform(0.2, 3.1), 2.5]))]


ENDS = {"end": lambda rng: float(10.0 ** -rng.choice([0.5, 1, 3, 8, 15, 50]) * rng.uniform(0.5, 1))}


@oracle(
    "merging.log_closing_time",
    draws={
        "place": place_draw,
        "masses": three_masses,
        "start": lambda rng: float(rng.choice([rng.uniform(0.01, 2.5), 10.0 ** -rng.uniform(1, 5)])),
        "beta": lambda rng: float(rng.choice([0.0, 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(0, 5)])),
        **ENDS,
    },
    arguments=lambda a: {**a, "place": beside(*a["place"])},
    relation=lambda a: (
        a["end"] < a["start"]
        and a["place"][1] - a["start"] > 0.1
        and a["place"][1] + a["start"] < math.pi
        and closes_clearly(a, beside(*a["place"]))
    ),
    cases=(
        {
            "place": [0.0, 2.5],
            "masses": [0.3, 0.7, 0.0],
            "start": 1.0000000000000002,
            "end": 1.0,
            "beta": 9.0,
            "model": "SA",
        },
        {"place": [0.4, 2.5], "masses": [0.3, 0.7, 0.4], "start": 1.0, "end": 1e-50, "beta": 3.0, "model": "SA"},
        {"place": [0.4, 2.5], "masses": [0.3, 0.7, 40.0], "start": 1.0, "end": 1e-50, "beta": 1.0, "model": "USA0"},
        {"place": [0.0, 2.5], "masses": [0.3, 0.7, 0.0], "start": 1.0, "end": 1.5, "beta": 9.0, "model": "SA"},
    ),
    count=14,
    quick=8,
    fresh=1,
)
def log_closing_time(place, masses, start, end, beta, model):
    with mp.workdps(110):  # positions differ by as little as `end`
        return closing(beside(*map(m, place)), masses, start, end, beta, model) if end < start else None


def mirrored(angle, far):
    return lambda t: ((angle - t) / 2, (angle + t) / 2, angle + far)


@oracle(
    "merging.third_cluster_delay",
    draws={
        "masses": lambda rng: (lambda x: [x[0], x[0], x[2]])(three_masses(rng)),
        "angle": lambda rng: float(rng.choice([rng.uniform(0.01, 2.0), 10.0 ** -rng.uniform(1, 5)])),
        "far": lambda rng: float(rng.uniform(0.05, 3.1)),
        "until": ENDS["end"],
        "beta": lambda rng: float(rng.choice([0.0, 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(0, 4)])),
    },
    relation=lambda a: a["until"] < a["angle"] and closes_clearly(a, mirrored(a["angle"], a["far"])),
    cases=(
        {"angle": 0.8, "far": 1.15, "masses": [0.3, 0.3, 0.4], "beta": 12.0, "until": 1e-3, "model": "SA"},
        {"angle": 0.8, "far": 1.15, "masses": [0.3, 0.3, 0.0], "beta": 12.0, "until": 1e-3, "model": "USA0"},
        {"angle": 0.8, "far": 1.15, "masses": [0.3, 0.2, 0.4], "beta": 12.0, "until": 1e-3, "model": "USA0"},
    ),
    count=14,
    quick=8,
    fresh=1,
    result=list,
)
def third_cluster_delay(angle, far, masses, beta, until, model):
    with mp.workdps(110):
        return delay(angle, far, masses, beta, until, model)


def delay(angle, far, masses, beta, until, model):
    """By the difference of both times, and a bound on its error."""
    if masses[0] != masses[1]:
        return None
    place = mirrored(m(angle), m(far))
    three = closing(place, masses, angle, until, beta, model)
    if three is None:
        return None
    if masses[2] == 0:
        return [m(0), m(0)]
    two = closing(place, [*masses[:2], 0], angle, until, beta, model)
    m0, m1, m2 = (m(mass) for mass in masses)
    pull = m2 + m0 + m1 if model == "USA0" else m2 / m1 + (m0 + m1) / m2
    shift = pull * mp.exp(three - 2 * m(beta) * mp.sin(m(far) / 2) ** 2)
    change = (m(beta) + 1 / mp.sin(m(far))) * shift
    return [three - two, (three - two) * mp.expm1(change) if change < 700 else mp.inf * mp.sign(three - two)]


@oracle(
    "merging.log_asymmetry_growth",
    draws={
        "beta": lambda rng: float(rng.choice([0.0, 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(0, 6)])),
        "start": lambda rng: float(rng.choice([rng.uniform(0.01, 3.1), 10.0 ** -rng.uniform(1, 5)])),
        **ENDS,
    },
    relation=lambda a: (
        a["end"] < a["start"] and abs(pull_of_outer(a) / a["middle"]) > 1e-2 and (a["start"] < 2.0 or a["beta"] < 200)
    ),
    cases=(
        {"start": 1.0, "end": 1e-50, "beta": 9.0, "outer": 0.3, "middle": 0.4, "model": "SA"},
        {"start": 3.0, "end": 0.1, "beta": 9.0, "outer": 0.3, "middle": 0.4, "model": "SA"},
        {"start": 1.0, "end": 0.01, "beta": 1e6, "outer": 0.3, "middle": 0.4, "model": "USA0"},
    ),
    count=14,
    quick=8,
    fresh=1,
)
def log_asymmetry_growth(start, end, beta, outer, middle, model):
    if end >= start or pull_of_outer({"start": start, "beta": beta, "outer": outer, "middle": middle}) < 0:
        return None
    beta, outer, middle = m(beta), m(outer), m(middle)

    def pulls(r):
        """q and g and their derivatives."""
        q = mp.exp(-2 * beta * mp.sin(r / 2) ** 2)
        return q, q * mp.sin(r), -beta * mp.sin(r) * q, q * (mp.cos(r) - beta * mp.sin(r) ** 2)

    def growth(r):
        q, g, dq, dg = pulls(r)
        wide = pulls(2 * r)
        if model == "USA0":
            speed, w, z = middle * g + outer * wide[1], middle * dg, m(1)
        else:
            total = outer + middle * q + outer * wide[0]
            speed = (middle * g + outer * wide[1]) / total
            w, z = (middle * dg - speed * middle * dq) / total, middle + 2 * outer * q
        return -(2 * outer * dg / z + w) / speed

    scale = 1 / (beta * mp.sin(m(start)) + mp.sqrt(beta) + 1 / m(start))
    cuts = [*graded(end, start, scale / 4, 2), *kinks(beta, [m(2) ** k for k in range(-6, 12)])]
    width = mp.sqrt(1 / (1 + beta)) / 2
    if (m(start) - m(end)) / width < 300:
        cuts += [end + width * k for k in range(int((m(start) - m(end)) / width))]
    return panels(growth, end, start, cuts)


def pull_of_outer(a):
    """What pulls the outer clusters inward at the start, over that of the middle one, in floats."""
    r, beta = a["start"], a["beta"]
    weight = math.exp(min(-2 * beta * math.sin(1.5 * r) * math.sin(r / 2), 600))
    return a["middle"] + 2 * a["outer"] * math.cos(r) * weight


def balance(a, b, masses, beta):
    """The quotient of both pulls and the half of 1 - cos."""
    first, middle, third = (m(mass) for mass in masses)
    a, b, beta = m(a), m(b), m(beta)
    one = mp.sin(a) ** 2 * (first / middle + middle / first) + mp.sin(a) * mp.sin(b) * first / middle
    other = mp.sin(b) ** 2 * (third / middle + middle / third) + mp.sin(a) * mp.sin(b) * third / middle
    shift = mp.log(other / one) / (2 * beta)
    return shift, mp.sin(b / 2) ** 2 - shift


def small_difference(a):
    with mp.workdps(50):
        shift, half = balance(**a)
        size = mp.sin(m(a["b"]) / 2) ** 2 + abs(shift) + 4 / m(a["beta"])
        return 4.1e-16 * size > 1e-12 * abs(half) * abs(1 - half)


@oracle(
    "merging.neighbour_balance",
    draws={"masses": lambda rng: [*pair_masses(rng, -50, 50), float(10.0 ** rng.uniform(-2, 2))]},
    # the angle is a difference of numbers that are rounded
    may_refuse=small_difference,
    cases=(
        {"a": 1e-7, "b": 1e-7, "masses": [1.0, 1.0, 1.0], "beta": 1e18},
        {"a": 1.0, "b": 1.0, "masses": [0.3, 0.3, 0.4], "beta": 40.0},
        {"a": 0.9, "b": 1.1, "masses": [0.3, 0.3, 4.0], "beta": 40.0},
        {"a": 3.0, "b": 0.2, "masses": [3.0, 0.3, 4.0], "beta": 4000.0},
    ),
    quick=12,
    result=list,
)
def neighbour_balance(a, b, masses, beta):
    half = balance(a, b, masses, beta)[1]
    if not 0 <= half <= 1:
        return None
    a, b, beta = m(a), m(b), m(beta)
    slant = abs(mp.cos(a)) / mp.sin(a) ** 2 + abs(mp.cos(b)) / mp.sin(b) ** 2
    return [2 * mp.asin(mp.sqrt(half)), 2 * slant / (beta**2 * mp.sin(b))]


CIRCLE_LIMIT, ROUNDING = 2e-4, m("1e-11")


def clusters(rng):
    """Positions of a random family and masses."""
    x = tokens(rng, most=5, largest=4, families=FAMILIES)
    kind = rng.integers(3)
    masses = [1 / len(x)] * len(x) if kind == 0 else (10.0 ** rng.uniform(-1, 0.5, len(x))).tolist()
    return {"positions": x, "masses": [float(mass) for mass in masses]}


def with_clusters(a):
    """Arguments with positions and masses, which are drawn together."""
    return {**a.pop("clusters"), **a} if "clusters" in a else a


def norm(x):
    return mp.sqrt(mp.fsum(c * c for c in x))


def unit(x):
    size = norm(x)
    return [c / size for c in x]


def dot(x, y):
    return mp.fsum(a * b for a, b in zip(x, y, strict=True))


def between(x, y):
    return 2 * mp.atan2(
        norm([a - b for a, b in zip(x, y, strict=True)]), norm([a + b for a, b in zip(x, y, strict=True)])
    )


def point_at(x, y, way):
    angle = between(x, y)
    if angle == 0:
        return x
    return unit([mp.sin(angle - way) * a + mp.sin(way) * b for a, b in zip(x, y, strict=True)])


class Doubtful(Exception):
    """Numbers are at a limit beyond which the formula refuses."""


def stairs(positions, masses, model):
    """Merges of the closest pairs (p, q, |x - y|, masses, point), or None where they are refused; the smallest |x + y|."""
    x, weights = [unit([m(c) for c in row]) for row in positions], [m(mass) for mass in masses]
    alive, merges, narrowest, gain = list(range(len(x))), [], m(2), m(1)
    while len(alive) > 1:
        pairs = sorted(
            (norm([a - b for a, b in zip(x[p], x[q], strict=True)]), p, q) for p, q in itertools.combinations(alive, 2)
        )
        near, p, q = pairs[0]
        together = norm([a + b for a, b in zip(x[p], x[q], strict=True)])
        tests = [near, together, *(pair[0] - near for pair in pairs[1:2])]
        if any(ROUNDING / 2 < test < 2 * ROUNDING for test in tests):
            raise Doubtful
        if any(test <= ROUNDING for test in tests):
            return None, narrowest, gain
        narrowest, gain = min(narrowest, together), gain * 2 / together
        both = weights[p], weights[q]
        share = both[1] ** 2 / (both[0] ** 2 + both[1] ** 2) if model == "SA" else both[1] / (both[0] + both[1])
        x[p] = point_at(x[p], x[q], share * between(x[p], x[q]))
        weights[p] += weights[q]
        merges.append((p, q, near, both, x[p]))
        alive.remove(q)
    return merges, narrowest, gain


@functools.cache
def cached_stairs(text, model):
    with mp.workdps(50):
        try:
            return stairs(*json.loads(text), model)
        except Doubtful:
            return None


def stairs_of(a):
    return cached_stairs(json.dumps([a["positions"], a["masses"]]), a.get("model", "SA"))


def merges_clearly(a):
    return stairs_of(a) is not None


def nearly_antipodal(a):
    """True where rounding moves points that clusters meet at: they were nearly antipodal, not on a circle."""
    found = stairs_of(a)
    return len(a["positions"][0]) > 2 and found is not None and (found[1] < 2e-3 or found[2] > 2e3)


def drawn_clusters(name):
    """A draw of positions or of masses: both from one generator of the same state."""

    def draw(rng):
        state = rng.bit_generator.state
        drawn = clusters(rng)
        if name == "positions":
            rng.bit_generator.state = state
        return drawn[name]

    return draw


CLUSTERS = {"positions": drawn_clusters("positions"), "masses": drawn_clusters("masses")}
FOUR = {
    "positions": [[math.cos(t), math.sin(t)] for t in (0, 0.9, 2.3, 3.9)],
    "masses": [0.1, 0.2, 0.3, 0.4],
}
SPACE = {
    "positions": [[1.0, 0.0, 0.0], [math.cos(0.8), math.sin(0.8), 0.0], [math.cos(2.5), 0.0, math.sin(2.5)]],
    "masses": [0.5, 0.2, 0.3],
}
OPPOSITE = {"positions": [[1.0, 0.0], [-math.cos(1e-8), math.sin(1e-8)]], "masses": [0.6, 0.4]}


@oracle(
    "merging.limit_staircase",
    draws=CLUSTERS,
    relation=merges_clearly,
    may_refuse=nearly_antipodal,
    cases=({**FOUR, "model": "SA"}, {**SPACE, "model": "USA"}, {**OPPOSITE, "model": "SA"}),
    quick=14,
    result=lambda r: [r.s, r.first, r.second, r.masses, r.points, r.levels],
)
def limit_staircase(positions, masses, model):
    merges, _, _ = stairs(positions, masses, model)
    if merges is None:
        return None
    clocks = itertools.accumulate((near**2 / 2 for _, _, near, _, _ in merges), max)
    level, levels = mp.fsum(m(mass) ** 2 for mass in masses), []
    for _, _, _, (m1, m2), _ in merges:
        level += 2 * m1 * m2
        levels.append(level)
    columns = zip(*merges, strict=True)
    first, second, _, both, points = ([*column] for column in columns)
    return [
        [clock - (model == "USA") for clock in clocks],
        first,
        second,
        [list(pair) for pair in both],
        points,
        [mp.fsum(m(mass) ** 2 for mass in masses), *levels],
    ]


@oracle(
    "merging.staircase_expansion",
    draws=CLUSTERS,
    relation=lambda a: merges_clearly(a) and all(near > 1e-6 for _, _, near, _, _ in stairs_of(a)[0] or ()),
    # polynomials lose digits where clusters are nearly antipodal, or so near that they are far apart in eps
    may_refuse=lambda a: stairs_of(a)[1] < 5e-3 or any(near < 1e-3 for _, _, near, _, _ in stairs_of(a)[0]),
    cases=({**FOUR, "model": "SA"}, {**SPACE, "model": "SA"}, {**SPACE, "model": "USA0"}),
    count=8,
    quick=6,
    fresh=0,
    result=list,
)
def staircase_expansion(positions, masses, model):
    """u of the pairs at eps = beta^(-1/2) = h, 2h, 4h, by the integrals of meeting points, and their differences."""
    merges, _, _ = stairs(positions, masses, model)
    if merges is None:
        return None

    def depths(eps):
        x, weights, rows = [unit([m(c) for c in row]) for row in positions], [m(mass) for mass in masses], []
        for p, q, *_ in merges:
            both, angle = (weights[p], weights[q]), between(x[p], x[q])
            rows.append(2 * mp.sin(angle / 2) ** 2)
            if eps == 0:
                share = both[1] ** 2 / (both[0] ** 2 + both[1] ** 2)
                way = angle * (share if model == "SA" else both[1] / (both[0] + both[1]))
            else:
                way = far_meeting(angle, eps, both) if model == "SA" else angle * both[1] / (both[0] + both[1])
            x[p] = point_at(x[p], x[q], way)
            weights[p] += weights[q]
        return rows

    h = m("1e-9")
    limit, *rows = (depths(eps) for eps in (0, h, 2 * h, 4 * h))
    firsts, seconds = [], []
    for u, *values in zip(limit, *rows, strict=True):
        # (u(eps) - u)/eps = c1 + c2 eps + c3 eps^2: Lagrange's polynomial
        slopes = [(value - u) / (h * 2**k) for k, value in enumerate(values)]
        firsts.append((8 * slopes[0] - 6 * slopes[1] + slopes[2]) / 3)
        seconds.append((-6 * slopes[0] + 7.5 * slopes[1] - 1.5 * slopes[2]) / 3 / h)
    clocks = itertools.accumulate((near**2 / 2 for _, _, near, _, _ in merges), max)
    angles = [2 * mp.asin(near / 2) for _, _, near, _, _ in merges]
    factors = [
        (m1 / m2 + m2 / m1 if model == "SA" else m1 + m2) * mp.sin(angle) ** 2
        for (_, _, _, (m1, m2), _), angle in zip(merges, angles, strict=True)
    ]
    return [[clock - (model == "USA") for clock in clocks], firsts, factors, seconds, angles]


def far_meeting(angle, eps, both):
    """Where a pair meets at beta = eps^-2, beyond 20 eps at the share of q = 0."""
    m1, m2 = both
    limit = m2**2 / (m1**2 + m2**2)
    beta = eps**-2
    return limit * angle + panels(
        lambda t: shares(t, beta, m1, m2, "SA") - limit, 0, 16 * eps, [16 * eps * m(j) / 12 for j in range(1, 12)]
    )


def cascade(positions, masses, beta, model, until):
    """Merges of pairs, each alone: columns of `PairCascade`, None if a pair is antipodal; and the gain of errors."""
    x, weights = [unit([m(c) for c in row]) for row in positions], [m(mass) for mass in masses]
    alive, rows, log_time, arc, missed = list(range(len(x))), [], mp.ninf, m(0), m(0)
    end, gain, steepest = default_end(beta, until), m(1), m(0)
    while len(alive) > 1:
        lives = {pair: life(x, weights, pair, beta, model, end) for pair in itertools.combinations(alive, 2)}
        ranked = sorted(lives, key=lambda pair: lives[pair][1])
        p, q = pair = ranked[0]
        angle, log_life = lives[pair]
        if log_life > mp.ninf and len(ranked) > 1 and abs(lives[ranked[1]][1] - log_life) < m("1e-7") * (1 + beta):
            raise Doubtful
        if angle > mp.pi - ROUNDING:
            return None, mp.inf
        both = weights[p], weights[q]
        steepest = max(steepest, *(gain * steepness(x, weights, other, lives[other], beta, model) for other in lives))
        gain *= 1 / mp.cos(angle / 2) if len(x[0]) > 2 else 1
        if log_life > mp.ninf:
            missed += 2 * mp.fsum(mp.exp(log_life - lives[other][1]) / mp.sin(lives[other][0]) for other in ranked[1:])
        log_time = log_life if log_time == mp.ninf else mp.log(mp.exp(log_time) + mp.exp(log_life))
        arc += merge_arc_length(angle, beta, both, model) if angle > 0 else 0
        slope = steepness(x, weights, pair, lives[pair], beta, model)
        x[p] = point_at(x[p], x[q], meeting_place(angle, beta, both, model)) if angle > 0 else x[p]
        weights[p] += weights[q]
        alive.remove(q)
        rows.append([log_time, p, q, x[p], arc, slope, missed])
    return [list(column) for column in zip(*rows, strict=True)], steepest


def steepness(x, weights, pair, lived, beta, model):
    """The derivative of the log time of a pair in its angle; infinite for antipodal ones."""
    angle, log_life = lived
    if log_life == mp.ninf:
        return m(0)
    if log_life == mp.inf:
        return mp.inf
    both = weights[pair[0]], weights[pair[1]]
    speed = rate(angle, m(beta), both, model) * mp.sin(angle) * (mp.exp(m(beta)) if model == "USA" else 1)
    return mp.exp(-log_life) / speed


def life(x, weights, pair, beta, model, end):
    """Angle and log merge time of a pair; infinite for antipodal ones, and minus infinity for near ones."""
    p, q = pair
    angle = between(x[p], x[q])
    if angle <= end:
        return angle, mp.ninf
    if angle > mp.pi - ROUNDING:
        return angle, mp.inf
    return angle, pair_log_time(angle, beta, (weights[p], weights[q]), end, model)


@functools.cache
def cached_cascade(text):
    with mp.workdps(30):
        try:
            return cascade(*json.loads(text))
        except Doubtful:
            return "doubtful"


def cascade_of(a):
    return cached_cascade(json.dumps([a["positions"], a["masses"], a["beta"], a["model"], a["until"]]))


def ends_clearly(a):
    """No two clusters are at the end angle to rounding."""
    end = float(default_end(a["beta"], a["until"]))
    x = [np.array(row) / np.linalg.norm(row) for row in a["positions"]]
    angles = [2 * math.atan2(np.linalg.norm(y - z), np.linalg.norm(y + z)) for y, z in itertools.combinations(x, 2)]
    return all(abs(angle - end) > 1e-10 * (1 + a["beta"]) for angle in angles)


CASCADES = {
    "beta": lambda rng: float(rng.choice([0.0, 1e-3, 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(1, 3)])),
    "until": lambda rng: None if rng.random() < 0.5 else float(10.0 ** -rng.uniform(0.5, 9)),
}


def rounding_decides(a):
    """True where an error of some 1e-15 of a point changes a log time by 2e-10 (1 + beta)."""
    return cascade_of(a)[1] > 5e5 * (1 + a["beta"]) or nearly_antipodal(a)


def cascades_clearly(a):
    return ends_clearly(a) and merges_clearly(a) and cascade_of(a) != "doubtful"


@oracle(
    "merging.pair_cascade",
    draws={**CLUSTERS, **CASCADES},
    relation=cascades_clearly,
    may_refuse=rounding_decides,
    cases=(
        {**FOUR, "beta": 30.0, "model": "SA", "until": None},
        {**SPACE, "beta": 0.0, "model": "USA0", "until": 1e-3},
        {**SPACE, "beta": 5.0, "model": "USA", "until": 0.9},
    ),
    count=4,
    quick=3,
    fresh=0,
    result=lambda r: [list(column) for column in r],
)
def pair_cascade(positions, masses, beta, model, until):
    with mp.workdps(30):
        return cascade(positions, masses, beta, model, until)[0]


def lives(positions, masses, beta, model, until):
    x, weights = [unit([m(c) for c in row]) for row in positions], [m(mass) for mass in masses]
    end = default_end(beta, until)
    pairs = itertools.combinations(range(len(x)), 2)
    return x, weights, {pair: life(x, weights, pair, beta, model, end) for pair in pairs}


def rounding_decides_about_a_life(a):
    with mp.workdps(30):
        x, weights, pairs = lives(**a)
        slopes = [steepness(x, weights, pair, lived, a["beta"], a["model"]) for pair, lived in pairs.items()]
        return max(slopes) > 5e5 * (1 + a["beta"])


@oracle(
    "merging.pair_lives",
    draws={**CLUSTERS, **CASCADES, "until": lambda rng: float(10.0 ** -rng.uniform(0.5, 9))},
    relation=ends_clearly,
    may_refuse=rounding_decides_about_a_life,
    cases=({**FOUR, "beta": 30.0, "model": "SA", "until": 0.9001},),
    count=10,
    quick=6,
    fresh=1,
    result=lambda r: [value for pair in sorted(r) for value in r[pair]],
)
def pair_lives(positions, masses, beta, model, until):
    pairs = lives(positions, masses, beta, model, until)[2]
    if any(log_life == mp.inf for _, log_life in pairs.values()):
        return None
    return [value for pair in sorted(pairs) for value in pairs[pair]]


@oracle(
    "merging.log_first_merge_time",
    draws={**CLUSTERS, **CASCADES},
    relation=ends_clearly,
    may_refuse=rounding_decides_about_a_life,
    cases=(
        {**FOUR, "beta": 1e5, "model": "SA", "until": None},
        # 1.0 and 1.1 are the nearest, but so unequal that the others are faster
        {
            "positions": [[math.cos(t), math.sin(t)] for t in (0.0, 1.0, 2.001)],
            "masses": [1.0, 1e-6, 1e-6],
            "beta": 3.0,
            "model": "SA",
            "until": None,
        },
    ),
    count=10,
    quick=6,
    fresh=1,
)
def log_first_merge_time(positions, masses, beta, model, until):
    log_time = min(log_life for _, log_life in lives(positions, masses, beta, model, until)[2].values())
    return None if log_time == mp.inf else log_time


@oracle(
    "merging.pair_disturbance",
    draws={
        "life": lambda rng: float(rng.choice([-1, 1]) * 10.0 ** rng.uniform(-2, 3)),
        "others": lambda rng: [
            [float(rng.uniform(1e-9, 3.1)), float(10.0 ** rng.uniform(-2, 3))] for _ in range(rng.integers(0, 4))
        ],
    },
    cases=({"life": 3.0, "others": [[1.0, -800.0]]},),
    quick=8,
)
def pair_disturbance(life, others):
    if any(log_time < life - 700 for _, log_time in others):
        return None
    return 2 * mp.fsum(mp.exp(m(life) - m(log_time)) / mp.sin(m(angle)) for angle, log_time in others)


def plateau(a, angle, n, beta):
    """log T_2 for caps of the opening angle a, and the margin of its condition."""
    value = 2 * math.log(math.sin(a / 2)) - math.log(n) + 2 * beta * math.sin(angle / 2 - a) ** 2
    return value, (value - math.log(2 * n)) / beta - 8 * math.sin(a / 2) ** 2


@functools.cache
def plateau_grid(beta, angle, n):
    """Opening angles, log T_2 and margins, in floats."""
    end = min(math.acos(7 / 8), angle / 2)
    a = np.unique(np.concatenate([np.geomspace(end * 1e-14, end, 100_000), np.linspace(end / 1e5, end, 100_000)]))
    value = 2 * np.log(np.sin(a / 2)) - math.log(n) + 2 * beta * np.sin(angle / 2 - a) ** 2
    return a, value, (value - math.log(2 * n)) / beta - 8 * np.sin(a / 2) ** 2


@oracle(
    "merging.log_plateau_bound",
    draws={
        "beta": lambda rng: float(rng.choice([rng.uniform(1, 100), 10 ** rng.uniform(0, 12), 1.0])),
        "angle": lambda rng: float(rng.choice([rng.uniform(0.05, 3.1), 10.0 ** -rng.uniform(0, 6), math.pi])),
    },
    # a window of sizes that is narrower than the grid is not seen
    relation=lambda a: a["beta"] <= 1 or abs(plateau_grid(**a)[2].max()) > 1e-6,
    cases=(
        {"beta": 8.0, "angle": 1.8012297892959859, "n": 2},
        {"beta": 10.0, "angle": 2.265201550013073, "n": 50},
    ),
    quick=10,
    fresh=1,
)
def log_plateau_bound(beta, angle, n):
    """The best point of a grid, and from there by the golden section or to the end of what is legal."""
    if beta <= 1:
        return mp.nan
    a, value, margin = plateau_grid(beta, angle, n)
    if not (margin > 0).any():
        return mp.nan
    best = int(np.argmax(np.where(margin > 0, value, -np.inf)))
    end = min(mp.acos(m(7) / 8), m(angle) / 2)

    def exact(x):
        x = min(x, end)
        f = 2 * mp.log(mp.sin(x / 2)) - mp.log(n) + 2 * m(beta) * mp.sin(m(angle) / 2 - x) ** 2
        return f, (f - mp.log(2 * n)) / beta - 8 * mp.sin(x / 2) ** 2

    low, high = m(a[best - 1]), m(a[best + 1]) if best + 1 < len(a) else end
    if exact(high)[1] <= 0:  # the last legal size
        for _ in range(160):
            middle = (low + high) / 2
            low, high = (middle, high) if exact(middle)[1] > 0 else (low, middle)
        if exact(low)[0] >= exact(low - (m(a[best]) - m(a[best - 1])) / 1000)[0]:
            return exact(low)[0]
        low = m(a[best - 1])
    third = (3 - mp.sqrt(5)) / 2
    for _ in range(110):
        left, right = low + third * (high - low), high - third * (high - low)
        low, high = (low, right) if exact(left)[0] > exact(right)[0] else (left, high)
    return exact((low + high) / 2)[0]


def followed(counts, beta, smallest_step=1e-12):
    """The state that comes from 120 degrees at beta = -infinity, and how far it can be followed, at most to `beta`."""
    masses, target = [m(int(count)) / sum(counts) for count in counts], -1 / m(beta)
    angles, inverse, step = [2 * mp.pi / 3] * 3, m("1e-8"), m("0.3")
    angles = _newton(angles, masses, 1 / inverse)
    while inverse < target and step > smallest_step:
        following = min(inverse * (1 + step), target)
        moved = _newton(angles, masses, 1 / following)
        if (
            moved is None
            or max(abs(x - y) for x, y in zip(moved, angles, strict=True)) > m("0.1")
            or not _stable(moved, masses, 1 / following, counts)
        ):
            step /= 2
        else:
            angles, inverse = moved, following
    return angles, -1 / inverse


def _newton(angles, masses, b):
    """The state near these angles, or None."""
    unknowns = mp.matrix([*angles, mp.log(mp.sin(angles[0])) - b * mp.cos(angles[0]) - mp.log(masses[0])])
    for _ in range(40):
        matrix, residual = mp.zeros(4, 4), mp.zeros(4, 1)
        for k in range(3):
            if not 0 < unknowns[k] < mp.pi:
                return None
            matrix[k, k] = mp.cot(unknowns[k]) + b * mp.sin(unknowns[k])
            matrix[k, 3], matrix[3, k] = -1, 1
            residual[k] = mp.log(mp.sin(unknowns[k])) - b * mp.cos(unknowns[k]) - mp.log(masses[k]) - unknowns[3]
        residual[3] = unknowns[0] + unknowns[1] + unknowns[2] - 2 * mp.pi
        try:
            change = mp.lu_solve(matrix, residual)
        except ZeroDivisionError:
            return None
        unknowns -= change
        if mp.norm(change, mp.inf) < m(10) ** (8 - mp.mp.dps):
            return [unknowns[k] for k in range(3)]
    return None


def _stable(angles, masses, b, counts):
    """Rates of the motion of three clusters and of tokens that leave, in mpmath."""
    pulls = [mp.sin(a) * mp.exp(-b * (mp.cos(a) - 1)) for a in angles]
    slopes = [mp.exp(-b * (mp.cos(a) - 1)) * (mp.cos(a) + b * mp.sin(a) ** 2) for a in angles]
    scale = max(pulls)
    matrix = mp.zeros(3, 3)
    for i, j in itertools.permutations(range(3), 2):
        matrix[i, j] = masses[j] * slopes[3 - i - j] / scale
        matrix[i, i] -= masses[j] * slopes[3 - i - j] / scale
    trace = matrix[0, 0] + matrix[1, 1] + matrix[2, 2]
    minors = mp.fsum(matrix[i, i] * matrix[j, j] - matrix[i, j] * matrix[j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    leaving = [matrix[k, k] - masses[k] / scale for k in range(3)]
    return trace < 0 and minors > 0 and all(rate < 0 for rate, n in zip(leaving, counts, strict=True) if n > 1)


@oracle(
    "merging.three_clusters",
    draws={
        "counts": lambda rng: [int(x) for x in 10.0 ** rng.uniform(0, rng.choice([1, 2, 6]), 3)],
        "beta": lambda rng: -float(rng.choice([rng.uniform(0.1, 5), 10 ** rng.uniform(0, 2), 10 ** rng.uniform(1, 6)])),
    },
    cases=(
        {"counts": [2, 1, 1], "beta": -2.2125},
        {"counts": [2, 1, 1], "beta": -2.2123},
        {"counts": [2, 2, 2], "beta": -0.6667},
        {"counts": [2, 2, 2], "beta": -0.6666},
        {"counts": [34, 33, 33], "beta": -0.9},
        {"counts": [1, 1000000, 1], "beta": -30.0},
        {"counts": [7, 7, 7], "beta": -1e6},
    ),
    count=14,
    quick=12,
    fresh=1,
)
def three_clusters(counts, beta):
    state, last = followed(counts, beta, 1e-9)
    return [state] if abs(last - m(beta)) < mp.mpf(10) ** -40 * abs(last) else []


@oracle(
    "merging.three_cluster_threshold",
    draws={
        "n": lambda rng: int(rng.choice([3, 4, 5, 6, 7, 8])),
        "tol": lambda rng: float(10.0 ** -rng.uniform(1, 9)),
    },
    cases=({"n": 10, "tol": 1e-7},),
    count=6,
    quick=3,
    fresh=0,
)
def three_cluster_threshold(n, tol):
    """The largest beta up to which a state can be followed from -infinity, of all ways to share n tokens."""
    if n % 3 == 0:
        return -m(2) / 3
    splits = [(a, b, n - a - b) for a in range(1, n // 3 + 1) for b in range(a, (n - a) // 2 + 1)]
    with mp.workdps(20):
        return max(followed(counts, -m(1) / 2, tol / 1000)[1] for counts in splits)
