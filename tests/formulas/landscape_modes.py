"""Oracles of `theory.landscape`: modes of kernel densities."""

import math

import mpmath as mp
import numpy as np

from tests.formulas.oracle import oracle


@oracle("landscape.circle_points", cases=tuple({"angles": angle} for angle in (3.141592653589793, 1e22, 1e308, 6e5)))
def circle_points(angles):
    with mp.workdps(400):
        angle = mp.mpf(angles)
        return [mp.cos(angle), mp.sin(angle)]


@oracle("landscape.two_point_modes")
def two_point_modes(beta):
    """2 less the chance that two samples are less than 2 beta^{-1/2} apart, an integral of the normal density."""
    if beta == 0:
        return mp.mpf(1)
    distance = min(2 / mp.sqrt(mp.mpf(beta)), mp.mpf(40))
    return 2 - mp.quad(lambda u: mp.exp(-(u**2) / 4), mp.linspace(0, distance, 9)) / mp.sqrt(mp.pi)


@oracle("landscape.expected_modes", cases=tuple({"beta": beta} for beta in (1e-8, 9.0, 1e5, 1e154, 1.7e308)))
def expected_modes(beta):
    """From integrals of f'^2 and f''^2 of f = e^{beta cos t}."""
    if beta == 0:
        return mp.mpf(1)
    b, root = mp.mpf(beta), mp.sqrt(1 + mp.mpf(beta))

    def integral(height):
        """Over t = s/root; heights are of order 1, as `quad` stops at an absolute error."""
        return mp.quad(
            lambda s: height(s / root) * mp.exp(-4 * b * mp.sin(s / root / 2) ** 2),
            mp.linspace(0, min(mp.pi * root, 13), 4),
        )

    curved = integral(lambda t: (b * mp.sin(t) ** 2 - mp.cos(t)) ** 2)
    return root * mp.sqrt(curved / integral(lambda t: (root * mp.sin(t)) ** 2))


HERMITE = ((0, 1), (1, 1), (-1, 1), (1, -1), (-1, -1))
"""Signs in the five zeros +-sqrt(5 +- sqrt(10)) of Hermite's polynomial, and 0."""


def edge(n, beta):
    """The square of the largest x of `line_mode_density`."""
    return 2 * math.log(n) - math.log(beta)


@oracle(
    "landscape.line_mode_density",
    draws={"x": lambda rng: float(rng.choice([0.0, 10 ** rng.uniform(-9, 0.9), -(10 ** rng.uniform(-1, 0.7))]))},
    relation=lambda a: a["x"] ** 2 < edge(a["n"], a["beta"]) * (1 - 1e-12),
    cases=(
        {"x": 3.0, "n": 10, "beta": 1.0},
        {"x": 0.0, "n": 10, "beta": 1e4},
        {"x": 1e200, "n": 10, "beta": 1.0},
        {"x": 11.4, "n": 2, "beta": 3e-272},
        {"x": 3e-6, "n": 137392755, "beta": 1e-240},
        {"x": 1.7e-9, "n": 4711037119147664, "beta": 7699038.0},
        {"x": 3.9728348097036954, "n": 4817076883, "beta": 1521.1803301372338},
        {"x": 3.159798, "n": 180, "beta": 0.29559346},
        {"x": 3.8, "n": 56, "beta": 6e-7},
        {"x": 1.0, "n": 10**15, "beta": 1e29},
    ),
    fresh=8,
)
def line_mode_density(x, n, beta):
    """The integral of |f''| over the joint normal density of f' = 0 and f'' < 0; moments by Hermite's rule."""
    if edge(n, beta) < 0 or abs(x) > math.sqrt(edge(n, beta)):
        return None
    with mp.workdps(60 + max(0, int(-8 * math.log10(beta)))):  # variances vanish like beta^4 beside their terms
        x, n, b = mp.mpf(x), mp.mpf(n), mp.mpf(beta)
        nodes = [(outer * mp.sqrt(5 + inner * mp.sqrt(10)) if outer else mp.mpf(0)) for outer, inner in HERMITE]
        weights = [mp.mpf(24) / (5 * (node**4 - 6 * node**2 + 3) ** 2) for node in nodes]

        def mean(power, height):
            """E[height(y) e^(-power b y^2/2)] of y = x - X, exact for polynomials of degree 9."""
            variance = 1 / (1 + power * b)
            places = [x * variance + mp.sqrt(variance) * node for node in nodes]
            total = mp.fsum(weight * height(y) for weight, y in zip(weights, places, strict=True))
            return total * mp.sqrt(variance) * mp.exp(-power * b * x * x * variance / 2)

        first, second = lambda y: -y, lambda y: b * y * y - 1
        a1, a2 = mean(1, first), mean(1, second)
        s11 = n * (mean(2, lambda y: first(y) ** 2) - a1**2)
        s12 = n * (mean(2, lambda y: first(y) * second(y)) - a1 * a2)
        s22 = n * (mean(2, lambda y: second(y) ** 2) - a2**2)
        determinant = s11 * s22 - s12**2
        a1, a2 = n * a1, n * a2
        # at f'' = centre - w the exponent is -top - bend w^2/2 - slope w, the largest at w = 0
        centre = min(a2 - s12 * a1 / s11, mp.mpf(0))
        bend, slope = s11 / determinant, (s11 * (a2 - centre) - s12 * a1) / determinant
        top = (s22 * a1**2 - 2 * s12 * a1 * (a2 - centre) + s11 * (a2 - centre) ** 2) / determinant / 2
        unit = 1 / max(mp.sqrt(bend), abs(slope))
        bend, slope, depth = bend * unit**2, slope * unit, abs(centre) / unit
        factor = unit**2 * (1 + depth) * mp.exp(-top) / (2 * mp.pi * mp.sqrt(determinant))
    with mp.workdps(40):
        depth, bend, slope = +depth, +bend, +slope if centre == 0 else mp.mpf(0)
        ends = [-min(depth, 16), -1, 1, 4, 16, 90] if depth else [0, 1, 4, 16, 90]
        height = lambda w: (depth + w) / (1 + depth) * mp.exp(-bend * w * w / 2 - slope * w)  # noqa: E731
        return factor * mp.quad(height, sorted(end for end in set(ends) if end >= -depth))


# --- counting.py


def draw_samples(rng):
    """Up to six samples in units of a random size: independent, in pairs, in narrow groups, or on a lattice."""
    family, count = str(rng.choice(["random", "pairs", "groups", "lattice"])), int(rng.integers(1, 7))
    size = 10 ** (rng.uniform(-1, 1) if rng.random() < 0.7 else rng.uniform(-150, 150))
    places = rng.standard_normal(count)
    if family == "pairs":
        places = np.repeat(places, 2)[:count]
    if family == "groups":
        places = (
            np.repeat(places, 3)[: count + 1] + rng.choice([1e-3, 1e-9, 1e-14]) * rng.standard_normal(count + 1)[:1]
        )
    if family == "lattice":
        places = np.arange(count) + rng.standard_normal() + 0.01 * rng.standard_normal(count)
    return (size * places).tolist()


def crossings(slopes, cyclic=False):
    """Changes from + to - in a sequence, without its zeros."""
    signs = [mp.sign(slope) for slope in slopes if slope]
    return sum(first > 0 > second for first, second in zip(signs, signs[1:] + signs[:1] * cyclic, strict=False))


SHARES = [mp.mpf(2 * k + 1) / 32 - 1 for k in range(32)]
"""Places near a sample, in units of the distance where the kernel stops being concave."""


def slope(pulls, exponents):
    """f' over its largest weight, without what is below 1e-80."""
    smallest = min(exponents)
    pairs = zip(pulls, exponents, strict=True)
    return mp.fsum(pull * mp.exp(smallest - exponent) for pull, exponent in pairs if exponent < smallest + 200)


def line_count(points, beta):
    """Two samples by their distance, others by the signs of f' on a grid near each."""
    b, y = mp.mpf(beta), [mp.mpf(point) for point in points]
    if len(y) == 2:
        return 2 if b * (y[0] - y[1]) ** 2 > 4 else 1
    grid = sorted({center + share / mp.sqrt(b) for center in y for share in SHARES})
    return crossings([slope([q - t for q in y], [b * (q - t) ** 2 / 2 for q in y]) for t in grid])


@oracle(
    "landscape.count_line_modes",
    draws={"points": draw_samples},
    # at the brink of two modes rounding decides: extrema of f' are as large as the excess to the power 3/2
    may_refuse=lambda a: len(a["points"]) == 2 and abs(np.ptp(a["points"]) * math.sqrt(a["beta"]) - 2) < 4e-9,
    cases=(
        {"points": [0.0, 2 / 3 * (1 + 1e-8)], "beta": 9.0},
        {"points": [0.0, 2 / 3 * (1 - 1e-8)], "beta": 9.0},
        {"points": [0.0, 2 / 3 * (1 + 1e-15)], "beta": 9.0},
        {"points": [0.0, 2.0], "beta": 1.0},
        {"points": [0.0, 1e6, 1e6, 1e6 + 1e-9], "beta": 1e4},
        {"points": [1e6, 1e6 + 1e-9], "beta": 1e20},
        {"points": [0.0, 1e6, 1e6 + 1e-9, 1e6 + 2e-9], "beta": 3e19},
        {"points": [-1e308, 0.0, 1e308], "beta": 1e-320},
        {"points": [-1e308, 0.0, 1e308], "beta": 1e300},
        {"points": [0.3] * 5, "beta": 1e300},
    ),
    fresh=4,
)
def count_line_modes(points, beta):
    with mp.workdps(400):
        distances = [mp.mpf(point) - mp.mpf(points[0]) for point in points]
        digits = 60 + int(mp.log10(1 + mp.mpf(beta)) / 2 + mp.log10(1 + max(map(abs, distances))))
    with mp.workdps(digits):
        return line_count(distances, beta)


def circle_count(angles, beta):
    """Two samples by their angle, others by the signs of f' on a grid near each."""
    b = mp.mpf(beta)
    y = [mp.mpf(angle) % (2 * mp.pi) for angle in angles]
    if len(y) == 2:
        half = (y[0] - y[1]) / 2
        return 2 if b * mp.sin(half) ** 2 > abs(mp.cos(half)) else 1
    # cos = beta sin^2 is a quadratic equation in cos
    reach = 2 * mp.asin(mp.sqrt((1 - 2 * b / (1 + mp.sqrt(1 + 4 * b * b))) / 2))
    grid = sorted({(center + share * reach) % (2 * mp.pi) for center in y for share in SHARES})
    halves = [[mp.sin((q - t) / 2) for q in y] for t in grid]
    pulls = [[mp.sin(q - t) for q in y] for t in grid]
    exponents = [[2 * b * half**2 for half in row] for row in halves]
    return crossings([slope(*rows) for rows in zip(pulls, exponents, strict=True)], cyclic=True)


def draw_angles(rng):
    places = np.array(draw_samples(rng))
    return (places / max(np.abs(places).max() / rng.choice([1e-12, 0.1, 3.0, 10.0, 1e5]), 1e-300)).tolist()


BRINK = 2 * math.acos(18 / (1 + math.sqrt(325)))


@oracle(
    "landscape.count_circle_modes",
    draws={"angles": draw_angles},
    relation=lambda a: a["beta"] <= 1e300,
    # without a first harmonic the density is flat to rounding at small beta
    may_refuse=lambda a: (
        abs(np.exp(1j * np.array(a["angles"])).sum()) < 1e-6 or abs(np.ptp(a["angles"]) - BRINK) < 2e-9
    ),
    cases=(
        *({"angles": [1.0, 1.0 + BRINK * (1 + share)], "beta": 9.0} for share in (1e-8, -1e-8, 1e-15)),
        {"angles": [0.0, 3.141592653589793], "beta": 1e-3},
        {"angles": [0.0, 3.141592653589793], "beta": 1e-300},
        {"angles": [k * 2 * math.pi / 5 for k in range(5)], "beta": 2.0},
        {"angles": [k * 2 * math.pi / 20 for k in range(20)], "beta": 1.0},
        {"angles": [6.2831853071795, 1e-13, 2.0, 1e-13 + 2e-14], "beta": 1e27},
        {"angles": [1.0, 2.0, 1e6, -1e6], "beta": 0.01},
        {"angles": [0.3, 1.0, 4.0], "beta": 9.0},
        # at the brink, one turned 15915 times
        {"angles": [1e5, 3.1058362368815198], "beta": 4.443304418115578e25},
        {"angles": [1e5, 3.1058362368815198], "beta": 4.443215552915867e25},
    ),
    fresh=4,
)
def count_circle_modes(angles, beta):
    with mp.workdps(60 + int(max(0, math.log10(beta)))):
        return circle_count(angles, beta)


# --- modes.py: random samples


def estimate(counts):
    """Mean and standard error of counts."""
    size = len(counts)
    mean = mp.mpf(sum(counts)) / size
    return [mean, mp.sqrt(mp.fsum((count - mean) ** 2 for count in counts) / (size - 1) / size)]


RANDOM = {
    "draws": {
        "n": lambda rng: int(rng.choice([1, 2, 2, 3, 4, 5])),
        "samples": lambda rng: int(rng.integers(2, 5)),
        "seed": lambda rng: int(rng.integers(2**40)),
    },
    "result": lambda r: [r.value, r.standard_error],
    "count": 16,
    "fresh": 2,
}


@oracle(
    "landscape.line_modes",
    **RANDOM,
    cases=(
        {"n": 2, "beta": 4.0, "samples": None, "seed": 0},
        {"n": 9, "beta": 0.0, "samples": None, "seed": 0},
        {"n": 12, "beta": 30.0, "samples": 3, "seed": 1},
    ),
)
def line_modes(n, beta, samples, seed):
    if n <= 2 or beta == 0:
        return [two_point_modes(beta) if n == 2 else 1, 0]
    rng = np.random.default_rng(seed)
    return estimate([int(count_line_modes(rng.standard_normal(n).tolist(), beta)) for _ in range(samples)])


@oracle(
    "landscape.circle_modes",
    **RANDOM,
    cases=(
        *({"n": 2, "beta": beta, "samples": None, "seed": 0} for beta in (1e-12, 4.0, 1e12, 1e300)),
        {"n": 9, "beta": 0.0, "samples": None, "seed": 0},
        {"n": 12, "beta": 30.0, "samples": 3, "seed": 1},
    ),
)
def circle_modes(n, beta, samples, seed):
    if n == 1 or beta == 0:
        return [1, 0]
    if n == 2:  # two modes from the angle on at which beta sin^2 of its half is the cosine; all angles are as likely
        low, high = mp.mpf(0), mp.pi / 2
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if beta * mp.sin(middle) ** 2 < mp.cos(middle) else (low, middle)
        return [2 - low / (mp.pi / 2), 0]
    rng = np.random.default_rng(seed)
    draws = [rng.uniform(0, 2 * np.pi, n).tolist() for _ in range(samples)]
    return estimate([int(count_circle_modes(draw, beta)) for draw in draws])
