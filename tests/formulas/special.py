"""Oracles of `attnflow.special`: mpmath, with sums and series in place of continued fractions."""

import itertools
import math

import mpmath as mp

from tests.formulas.oracle import oracle

LIMBS = 10**15


def bessel(order, x):
    """I_order(x) e^-x, by mpmath or, for large orders and arguments, by Debye's expansion with error bounds."""
    order, x = mp.mpf(order), mp.mpf(x)
    return mp.exp(log_bessel(order, x))


def log_bessel(order, x):
    """log(I_order(x) e^-x): power series of positive terms, Hankel's or Debye's expansion at 90 digits."""
    order, x = mp.mpf(order), mp.mpf(x)
    with mp.workdps(90):
        if x > 200 + 4 * order**2:
            total = term = mp.mpf(1)
            for k in range(1, 200):
                term *= ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * x)
                total += term
                if abs(term) < mp.mpf(10) ** -70:
                    return mp.log(total) - mp.log(2 * mp.pi * x) / 2
        if order > 5000 or x > 20000:
            return debye(order, x)
        term = total = mp.mpf(1)
        k = 0
        while term > total * mp.mpf(10) ** -70:
            k += 1
            term *= x * x / 4 / (k * (order + k))
            total += term
        return order * mp.log(x / 2) - mp.loggamma(order + 1) - x + mp.log(total)


POLYNOMIALS = [{0: mp.mpf(1)}]
"""u_k of Debye's expansion as {power: coefficient}, exact to 90 digits."""


def debye(order, x):
    with mp.workdps(90):
        while len(POLYNOMIALS) < 25:
            following = {}
            for power, coefficient in POLYNOMIALS[-1].items():
                for shift, factor in (
                    (1, mp.mpf(power) / 2 + mp.mpf(1) / (8 * (power + 1))),
                    (3, -mp.mpf(power) / 2 - mp.mpf(5) / (8 * (power + 3))),
                ):
                    following[power + shift] = following.get(power + shift, 0) + factor * coefficient
            POLYNOMIALS.append(following)
        root = mp.sqrt(order**2 + x**2)
        p = order / root
        # t = p and 1/order = 1/(p root): no division by a small order
        total = mp.fsum(
            coefficient * p ** (power - k) / root**k
            for k, polynomial in enumerate(POLYNOMIALS)
            for power, coefficient in polynomial.items()
        )
        return root - x - order * mp.asinh(order / x) - mp.log(2 * mp.pi * root) / 2 + mp.log(total)


@oracle(
    "special.bessel_ratios",
    relation=lambda a: a["count"] <= 5,
    cases=(
        {"order": 2047.0, "x": 1.0, "count": 3},
        {"order": 0.5, "x": 1e9, "count": 2},
        {"order": 1e6, "x": 1.1e9, "count": 1},
        {"order": 1e5, "x": 5e4, "count": 2},
        {"order": 99999.5, "x": 5e4, "count": 1},
        {"order": 1e5, "x": 1e3, "count": 1},
        {"order": 1.5e5, "x": 1e8, "count": 1},
        {"order": 3.0, "x": 0.0, "count": 2},
        {"order": 0.0, "x": 30.0, "count": 5},
    ),
    quick=14,
)
def bessel_ratios(order, x, count):
    logs = [log_bessel(mp.mpf(order) + j, x) if x else mp.ninf for j in range(count + 1)]
    return [mp.exp(after - before) if x else 0 for before, after in itertools.pairwise(logs)]


@oracle(
    "special.bessel_gap",
    cases=tuple(
        {"order": order, "x": x} for order in (0.0, 0.5, 7.0, 300.0, 1e5) for x in (1.0, 101.0, 0.5 * order, 1e12)
    ),
    quick=20,
)
def bessel_gap(order, x):
    if not x:
        return 1
    with mp.workdps(90):
        if x > 1e12 * (1 + order) ** 2:  # the first terms of the expansion in 1/x
            size, x = 2 * mp.mpf(order) + 1, mp.mpf(x)
            coefficients = [mp.mpf(1)]
            for m in range(1, 12):
                pairs = mp.fsum(coefficients[i] * coefficients[m - i] for i in range(1, m))
                coefficients.append(((m - 1 - size) * coefficients[m - 1] - pairs) / 2)
            return -mp.fsum(c * x**-k for k, c in enumerate(coefficients) if k)
        return -mp.expm1(log_bessel(mp.mpf(order) + 1, x) - log_bessel(order, x))


@oracle(
    "special.log_scaled_bessel",
    cases=tuple({"order": order, "x": x} for order in (0.0, 19.99, 20.0, 55.0) for x in (1e-20, 0.16, 12.0, 1.01e6)),
)
def log_scaled_bessel(order, x):
    return log_bessel(order, x)


@oracle("special.scaled_exp1", cases=tuple({"x": x} for x in (0.99, 39.9, 40.0, 49.9, 50.0)))
def scaled_exp1(x):
    with mp.workdps(60):
        return mp.hyperu(1, 1, mp.mpf(x)) if x > 1e-20 else -mp.log(mp.mpf(x)) - mp.euler


@oracle("special.scaled_expi", cases=tuple({"x": x} for x in (0.3725074107813666, 0.38, 39.9, 40.0, 45.0, 49.9, 50.0)))
def scaled_expi(x):
    with mp.workdps(60):
        if x > 1e6:
            return mp.fsum(mp.factorial(k) / mp.mpf(x) ** (k + 1) for k in range(40))
        return mp.exp(-mp.mpf(x)) * mp.ei(mp.mpf(x))


@oracle(
    "special.divided_exprel",
    cases=tuple(
        {"x": x, "y": y}
        for x, y in (
            (0.0, 0.0),
            (1e-9, -1e-9),
            (0.05, -0.06),
            (3.0, 3.0),
            (-1000.0, -1000.2),
            (-1e5, -1e5),
            (-1e300, 700.0),
            (700.0, 699.99),
            (0.9, -0.2),
            (-50.0, 1e-300),
            (-1.0, -1.0),
            (2.0, 2.05),
        )
    ),
)
def divided_exprel(x, y):
    """The integral over 0 < t < 1 of t e^(t y) phi(t (x - y)), as a series or at as many digits as cancel."""
    x, y = mp.mpf(x), mp.mpf(y)
    if abs(x) < 2 and abs(y) < 2:
        powers = [(x**j * y**k, j + k) for j in range(40) for k in range(40)]
        return mp.fsum(term / mp.factorial(degree + 2) for term, degree in powers)
    with mp.workdps(700):
        if x == y:
            return (x * mp.exp(x) - mp.expm1(x)) / x**2
        return (phi(x) - phi(y)) / (x - y)


def phi(z):
    return mp.expm1(z) / z if z else mp.mpf(1)


def log_weight(k, beta, d):
    """log p_k from the multiplicity and the Bessel function."""
    beta, nu = mp.mpf(beta), mp.mpf(d) / 2 - 1
    if not beta:
        return mp.mpf(0) if k == 0 else mp.ninf
    count = mp.binomial(k + d - 1, d - 1) - (mp.binomial(k + d - 3, d - 1) if k > 1 else 0)
    return mp.log(count) + mp.loggamma(nu + 1) + nu * mp.log(2 / beta) + log_bessel(k + nu, beta)


def betas(rng):
    return float(rng.choice([0.0, 10 ** rng.uniform(-10, 0), 10 ** rng.uniform(0, 3), 10 ** rng.uniform(3, 6)]))


PLACES = [0, 1, 2, 5, 10, 30, 63]


@oracle(
    "special.degree_weights",
    draws={"beta": betas, "d": lambda rng: int(rng.choice([2, 3, 4, 7, 64, 1000, 30000])), "count": lambda rng: 64},
    result=lambda weights: [*weights[PLACES], weights[64:].sum() if weights[64:].sum() > 1e-290 else 0.0],
    cases=({"beta": 1e8, "d": 2, "count": 1, "depth": 60.0}, {"beta": 0.0, "d": 5, "count": 3, "depth": 700.0}),
    count=16,
    quick=8,
    fresh=2,
)
def degree_weights(beta, d, count, depth):
    weights = [mp.exp(log_weight(k, beta, d)) for k in range(64)]
    remaining = 1 - mp.fsum(weights)
    return [*(weights[k] for k in PLACES), remaining if remaining > 1e-30 else tail(63, beta, d)]


def tail(degree, beta, d):
    """sum_{k > degree} p_k, where it falls from the first term."""
    total, k = mp.mpf(0), degree + 1
    while True:
        term = mp.exp(log_weight(k, beta, d))
        total += term
        if term < total * mp.mpf(10) ** -30 or term < mp.mpf(10) ** -320:
            return total
        k += 1


@oracle(
    "special.truncation_degrees",
    draws={
        "bounds": lambda rng: float(10 ** -rng.choice([0.1, 1, 3, 8, 16, 100, 290])),
        "beta": lambda rng: float(10 ** rng.uniform(-10, 3)),
        "d": lambda rng: int(rng.choice([2, 3, 4, 7, 64, 1000])),
    },
    cases=({"bounds": 1.5, "beta": 3.0, "d": 3}, {"bounds": 1e-10, "beta": 0.0, "d": 3}),
    count=12,
)
def truncation_degrees(bounds, beta, d):
    terms = []
    while not terms or terms[-1] > bounds * mp.mpf(10) ** -25 or terms[-1] > terms[-2 if len(terms) > 1 else -1]:
        terms.append(mp.exp(log_weight(len(terms), beta, d)))
    total = mp.mpf(0)
    for k in range(len(terms) - 1, 0, -1):
        total += terms[k]
        if total > bounds:
            return k
    return 0


@oracle(
    "special.basis_size",
    result=lambda size: [size // LIMBS**k % LIMBS for k in range(21)],
    relation=lambda a: min(a["degree"], a["d"]) < 2000,
    cases=({"degree": 0, "d": 2}, {"degree": 500, "d": 20}, {"degree": 4000, "d": 4096}, {"degree": 10**9, "d": 10**9}),
)
def basis_size(degree, d):
    """The sum of (2k + d - 2)/(k + d - 2) C(k + d - 2, d - 2) over degrees, by the recurrence of its terms."""
    if min(degree, d) > 2000:
        return None
    if degree > 3000:  # a polynomial of degree d - 1 in the degree, as (2K + d - 1) (K + d - 2)! / (K! (d - 1)!)
        size = (2 * degree + d - 1) * math.prod(range(degree + 1, degree + d - 1)) // math.factorial(d - 1)
    else:
        size, term = 1, 1
        for k in range(1, degree + 1):
            term = d if k == 1 else term * (2 * k + d - 2) * (k + d - 3) // ((2 * k + d - 4) * k)
            size += term
    return None if size > 1.7e308 else [size // LIMBS**k % LIMBS for k in range(21)]
