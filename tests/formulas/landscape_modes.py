"""Oracles of `theory.landscape`: modes of kernel densities."""

import math

import mpmath as mp

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
    apart = min(2 / mp.sqrt(mp.mpf(beta)), mp.mpf(40))
    return 2 - mp.quad(lambda u: mp.exp(-(u**2) / 4), mp.linspace(0, apart, 9)) / mp.sqrt(mp.pi)


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
