"""Oracles of `theory.causal`."""

import functools
import itertools
import math

import mpmath as mp
import numpy as np
from scipy import special

from tests.formulas.oracle import oracle

PROCEDURES = {}
ENDS = (1e-300, 1e-30, 1e-12, 1e-6, 1 - 1e-6, 1 - 1e-12, 1.0)


def place(rng):
    """A place in [1e-300, 1], in half of the draws an ordinary one."""
    return float(rng.uniform(0.01, 1.0)) if rng.random() < 0.5 else float(rng.choice(ENDS))


def slope(rng):
    """A slope per context: an ordinary one, none, or one of the extremes."""
    if rng.random() < 0.6:
        return float(10 ** rng.uniform(-2, 2.5))
    return float(rng.choice([0.0, 1e-300, 1e-12, 1e-6, 1e3, 1e4, 1e6]))


def time(rng, largest=1e8):
    """A scaled time c: an ordinary one in most draws."""
    if rng.random() < 0.7:
        return float(10 ** rng.uniform(-2, min(1.5, mp.log10(largest))))
    return float(rng.choice([c for c in (0.0, 1e-300, 1e-8, 1e3, 1e5, 1e8) if c <= largest]))


def dilution(rng):
    """A weight of a token on itself per number of tokens."""
    if rng.random() < 0.4:
        return 0.0
    return float(rng.choice([1e-300, 1e-8, 1e8, 1e300])) if rng.random() < 0.3 else float(10 ** rng.uniform(-3, 1))


PLACES = {"place": place, "source": place, "slope": slope}


def bessel(order, x):
    """I_order(x); by Hankel's expansion for large x, where mpmath is slow."""
    if x < 1e5:
        return mp.besseli(order, x)
    total = term = mp.mpf(1)
    for j in range(1, 40):
        term *= -(4 * mp.mpf(order) ** 2 - (2 * j - 1) ** 2) / (8 * j * x)
        total += term
    return total * mp.exp(x) / mp.sqrt(2 * mp.pi * x)


def mean_kernel(beta, d, degree=0):
    """l_k, the mean of e^{beta <x, y>} times a Gegenbauer polynomial of degree k with value 1 at 1."""
    half = mp.mpf(d) / 2
    power = (beta / 2) ** degree * mp.gamma(half) / mp.gamma(half + degree)
    return power * mp.hyp0f1(half + degree, beta**2 / 4, maxterms=10**7)


def rate(degree, beta, d, model):
    """a_k of a model."""
    if degree == 0:
        return mp.mpf(0)
    beta, degree = mp.mpf(beta), int(degree)
    mean = mean_kernel(beta, d)
    half = mp.mpf(d) / 2
    # l_k/beta, which is finite at beta = 0
    scaled = (beta / 2) ** (degree - 1) / 2 * mp.gamma(half) / mp.gamma(half + degree)
    usa = degree * (degree + d - 2) * scaled * mp.hyp0f1(half + degree, beta**2 / 4, maxterms=10**7)
    return {"USA": usa, "SA": usa / mean, "USA0": usa * mp.exp(-beta), "grad": beta * usa}[model]


def log(x):
    return mp.log(x) if x else -mp.inf


def moderate(a):
    """Bessel's series of mpmath has about beta terms."""
    return a["beta"] <= 3e3 and a["d"] <= 10**5 + 1 and a["degrees"] <= 1000


RATES = (
    {"degrees": 1, "beta": 0.0, "d": 3, "model": "SA"},
    {"degrees": 2, "beta": 0.0, "d": 3, "model": "USA"},
    {"degrees": 1, "beta": 0.0, "d": 3, "model": "grad"},
    {"degrees": 3, "beta": 1e-9, "d": 2, "model": "grad"},
    {"degrees": 1, "beta": 1.0, "d": 4096, "model": "USA"},
    {"degrees": 30, "beta": 600.0, "d": 2, "model": "USA0"},
    {"degrees": 7, "beta": 50.0, "d": 64, "model": "grad"},
    {"degrees": 2, "beta": 3000.0, "d": 2, "model": "USA"},
    {"degrees": 1, "beta": 1e6, "d": 2, "model": "SA"},
    {"degrees": 100, "beta": 1e5, "d": 1000, "model": "USA0"},
    {"degrees": 10_000, "beta": 1e4, "d": 2, "model": "SA"},
    {"degrees": 10_000, "beta": 1.0, "d": 10**6, "model": "SA"},
)


@oracle("causal.rates", relation=moderate, cases=RATES)
def rates(degrees, beta, d, model):
    return rate(degrees, beta, d, model)


@oracle("causal.log_rates", relation=moderate, cases=RATES)
def log_rates(degrees, beta, d, model):
    return log(rate(degrees, beta, d, model))


KERNELS = (
    {"beta": 0.0, "d": 5},
    {"beta": 1.0, "d": 10**5},
    {"beta": 2000.0, "d": 2},
    {"beta": 3000.0, "d": 4096},
    {"beta": 600.0, "d": 64},
    {"beta": 1e6, "d": 3},
    {"beta": 1.0, "d": 10**6},
)


@oracle("causal.softmax_dilution", relation=lambda a: a["beta"] <= 3e3 and a["d"] <= 10**5 + 1, cases=KERNELS)
def softmax_dilution(beta, d):
    return mp.exp(beta) / mean_kernel(mp.mpf(beta), d)


@oracle("causal.log_softmax_dilution", relation=lambda a: a["beta"] <= 3e3 and a["d"] <= 10**5 + 1, cases=KERNELS)
def log_softmax_dilution(beta, d):
    beta, half = mp.mpf(beta), mp.mpf(d) / 2
    if beta > 1:
        return mp.log(softmax_dilution(beta, d))
    square = beta**2 / 4
    return beta - mp.log1p(square / half * mp.hyper([1], [2, half + 1], square))


def steps(place, slope, q=0.0):
    """u of a place over slope, shifted by dilution."""
    place, slope, q = mp.mpf(place), mp.mpf(slope), mp.mpf(q)
    grown = mp.expm1(slope * place) / slope if slope else place
    return grown + q / (1 + slope * q)


def weight(place, source, slope, q=0.0):
    """The weight density, of which dilution leaves a part."""
    return mp.exp(mp.mpf(slope) * source) / steps(place, slope, q)


def ratio(place, source, slope, q=0.0):
    return mp.log(steps(place, slope, q) / steps(source, slope, q))


@oracle("causal.graphon", draws=PLACES)
def graphon(place, source, slope):
    return weight(place, source, slope) if source <= place else mp.mpf(0)


@oracle(
    "causal.log_place_ratio",
    draws=PLACES | {"relative_dilution": dilution},
    relation=lambda a: a["source"] <= a["place"],
    cases=(
        {"place": 1e-290, "source": 1e-300, "slope": 0.0, "relative_dilution": 0.0},
        {"place": 1.0, "source": 0.5, "slope": 1e6, "relative_dilution": 1e300},
        {"place": 0.7, "source": 0.7 - 1e-14, "slope": 3.0, "relative_dilution": 0.1},
    ),
)
def log_place_ratio(place, source, slope, relative_dilution):
    return ratio(place, source, slope, relative_dilution)


def paths(c, y):
    """The sum over paths, psi_c(y)."""
    c, z = mp.mpf(c), 2 * mp.sqrt(mp.mpf(c) * y)
    return c * (mp.hyp0f1(2, z**2 / 4) if z < 1 else 2 * bessel(1, z) / z)


HOPS = (
    {"c": 2.0, "y": 0.0},
    {"c": 0.0, "y": 2.0},
    {"c": 2.0, "y": 1e-6},
    {"c": 1e8, "y": 1e12},
    {"c": 1e-300, "y": 1e300},
    {"c": 1e-300, "y": 3e304 / 1e5},
    {"c": 100.0, "y": 1000.0},
)


@oracle("causal.hop_sum", cases=HOPS)
def hop_sum(c, y):
    return paths(c, y)


@oracle("causal.log_hop_sum", cases=HOPS)
def log_hop_sum(c, y):
    return log(paths(c, y))


@oracle(
    "causal.hop_ratios",
    cases=(
        {"c": 3.0, "y": 0.0, "count": 4},
        {"c": 0.0, "y": 3.0, "count": 2},
        {"c": 1e8, "y": 1e4, "count": 3},
        {"c": 1e8, "y": 1e300, "count": 100},
        {"c": 1.0, "y": 2.4e11, "count": 100},
        {"c": 1.0, "y": 2.6e11, "count": 100},
    ),
    quick=20,
)
def hop_ratios(c, y, count):
    c, y = mp.mpf(c), mp.mpf(y)
    z = 2 * mp.sqrt(c * y)
    if z < 1e-3:
        return [c / k * mp.hyp0f1(k + 1, c * y) / mp.hyp0f1(k, c * y) for k in range(1, count + 1)]
    values = [bessel(k, z) for k in range(count + 1)]
    return [mp.sqrt(c / y) * values[k] / values[k - 1] for k in range(1, count + 1)]


def kept(c, place, source, slope, q=0.0):
    """N times the correlation of a place with an earlier source."""
    slowed = mp.mpf(c) / (1 + mp.mpf(slope) * q)
    return weight(place, source, slope, q) * paths(slowed, ratio(place, source, slope, q))


PROFILES = (
    {"c": 1e4, "place": 1.0, "source": 1e-300, "slope": 1e4, "relative_dilution": 0.0},
    {"c": 1e8, "place": 1.0, "source": 0.5, "slope": 1e6, "relative_dilution": 0.0},
    {"c": 2.0, "place": 0.7, "source": 0.7, "slope": 1e-12, "relative_dilution": 0.0},
    {"c": 1e-300, "place": 1.0, "source": 0.5, "slope": 1.0, "relative_dilution": 1e300},
    {"c": 1.5, "place": 1.0, "source": 1e-6, "slope": 3.0, "relative_dilution": 0.2},
    {"c": 1e-3, "place": 1.0, "source": 1e-300, "slope": 700.0, "relative_dilution": 0.0},
)
PROFILE = PLACES | {"c": time, "relative_dilution": dilution}


@oracle("causal.correlation", draws=PROFILE, cases=PROFILES)
def correlation(c, place, source, slope, relative_dilution):
    return kept(c, place, source, slope, relative_dilution) if source <= place else mp.mpf(0)


@oracle("causal.log_correlation", draws=PROFILE, cases=PROFILES)
def log_correlation(c, place, source, slope, relative_dilution):
    return log(correlation(c, place, source, slope, relative_dilution))


@oracle(
    "causal.pair_correlation",
    draws=PLACES | {"c": lambda rng: time(rng, 100.0)},
    relation=lambda a: a["slope"] <= 1e4,
    cases=(
        {"c": 1.0, "place": 0.5, "source": 0.5, "slope": 0.0},
        {"c": 100.0, "place": 1.0, "source": 0.9, "slope": 1.0},
        {"c": 90.0, "place": 1.0, "source": 0.01, "slope": 300.0},
        {"c": 0.01, "place": 1.0, "source": 1e-300, "slope": 3.0},
        {"c": 1.0, "place": 1.0, "source": 0.999, "slope": 1e4},
    ),
    count=10,
    quick=12,
    fresh=0,
)
def pair_correlation(c, place, source, slope):
    late, early = max(place, source), min(place, source)
    if c == 0:
        return mp.mpf(0)
    c, slope = mp.mpf(c), mp.mpf(slope)
    above, below = steps(late, slope), steps(early, slope)

    def shared(x):
        # the source v at x^2 = log(u(early)/u(v)): dv = u/(1 + slope u) 2x dx in units of 1/slope
        u = below * mp.exp(-x * x)
        weights = (1 + slope * u) / above / below * u * 2 * x
        return weights * paths(c, mp.log(above / below) + x * x) * paths(c, x * x)

    with mp.workdps(25):
        return kept(c, late, early, slope) + gauss(shared, 0, 2 * mp.sqrt(c) + 10, mp.mpf(1) / 4)


@functools.cache
def nodes():
    """Nodes and weights of Gauss's rule with 24 nodes, at 40 digits."""
    with mp.workdps(40):
        roots = [mp.findroot(lambda x: mp.legendre(24, x), start) for start in np.polynomial.legendre.leggauss(24)[0]]
        slopes = [24 * mp.legendre(23, x) / (1 - x * x) for x in roots]
        return [(x, 2 / ((1 - x * x) * slope**2)) for x, slope in zip(roots, slopes, strict=True)]


def gauss(f, low, high, width):
    """The integral of f by panels of about `width`."""
    count = int(mp.ceil((high - low) / width))
    half = (high - low) / count / 2
    middles = [low + (2 * j + 1) * half for j in range(count)]
    return half * mp.fsum(w * f(middle + half * x) for middle in middles for x, w in nodes())


# finitely many tokens


def heard(n, rate, self_weight):
    """What divides the weights r^{i-k} of tokens i = 1, ..., n, r = e^{-rate}."""
    r, seen, total = mp.exp(-rate), [], mp.mpf(0)
    for _ in range(n):
        seen.append(total + self_weight if total + self_weight else mp.mpf(1))
        total = (total + 1) * r
    return seen


def adjoint(c, start, rate, self_weight):
    """exp(cW^T) applied to a vector, by its Taylor series."""
    n, r, c = len(start), mp.exp(-rate), mp.mpf(c)
    seen = heard(n, rate, self_weight)
    term, total = list(start), list(start)
    for k in range(1, n):
        spread, later = [mp.mpf(0)] * n, mp.mpf(0)
        for j in range(n - 2, -1, -1):
            later = (later + term[j + 1] / seen[j + 1]) * r
            spread[j] = c / k * later
        term = spread
        total = [a + b for a, b in zip(total, term, strict=True)]
        if k > c + 10 and c**k / mp.factorial(k) * n < mp.mpf(10) ** -140:
            break
    return total


def row(i, c, n, slope, self_weight):
    """Row i of exp(cW), from which later tokens are missing."""
    with mp.workdps(30):
        return adjoint(c, [mp.mpf(j == i) for j in range(i + 1)], mp.mpf(slope) / n, mp.mpf(self_weight or 0))


def picked(n):
    """Numbers of a few tokens."""
    return sorted({0, n // 4, n // 2, n - 2, n - 1})


def few(rng):
    return int(rng.choice([2, 3, 5, 10, 30, 100, 300]))


def short_time(rng):
    return (
        float(rng.choice([0.0, 1e-300, 1e-8, 30.0, 100.0])) if rng.random() < 0.4 else float(10 ** rng.uniform(-2, 1))
    )


def self_weight(rng):
    draw = rng.random()
    if draw < 0.4:
        return None
    return float(rng.choice([0.0, 1e-300, 1e-8, 1e8, 1e300])) if draw < 0.6 else float(10 ** rng.uniform(-1, 3))


TOKENS = {"n": few, "slope": slope, "dilution": self_weight}
ROWS = {"c": short_time} | TOKENS
STEEP = {"n": 12, "slope": 100.0, "dilution": None}
CASES = (
    {"c": 0.5} | STEEP,
    {"c": 1.0, "n": 30, "slope": 90.0, "dilution": None},
    {"c": 200.0, "n": 100, "slope": 30.0, "dilution": None},
    {"c": 1.0, "n": 3, "slope": 2000.0, "dilution": 1e-280},
    {"c": 2.0, "n": 1000, "slope": 3.0, "dilution": None},
)


@oracle(
    "causal.weights",
    draws=TOKENS,
    cases=(STEEP, {"n": 3, "slope": 2000.0, "dilution": 1e-280}, {"n": 1000, "slope": 1e4, "dilution": 2.0}),
    result=lambda matrix: matrix[np.ix_(picked(len(matrix)), picked(len(matrix)))],
)
def weights(n, slope, dilution):
    rate = mp.mpf(slope) / n
    seen = heard(n, rate, mp.mpf(dilution or 0))
    return [[mp.exp(-rate * (i - k)) / seen[i] if k < i else 0 for k in picked(n)] for i in picked(n)]


@oracle(
    "causal.correlation_matrix",
    draws=ROWS,
    cases=CASES[:4],
    result=lambda matrix: matrix[np.ix_([len(matrix) // 2, len(matrix) - 1], picked(len(matrix)))],
    count=12,
    quick=14,
    fresh=1,
)
def correlation_matrix(c, n, slope, dilution):
    rows = [row(i, c, n, slope, dilution) for i in (n // 2, n - 1)]
    return [[values[j] if j < len(values) else 0 for j in picked(n)] for values in rows]


@oracle(
    "causal.equal_time_correlations",
    draws=ROWS,
    cases=CASES[:4],
    result=lambda matrix: [*matrix[-1, picked(len(matrix))], *matrix[picked(len(matrix)), -1]],
    count=12,
    quick=14,
    fresh=1,
)
def equal_time_correlations(c, n, slope, dilution):
    last = row(n - 1, c, n, slope, dilution)
    products = [mp.fsum(a * b for a, b in zip(row(i, c, n, slope, dilution), last, strict=False)) for i in picked(n)]
    return products * 2


@oracle(
    "causal.last_row_correlations",
    draws=ROWS,
    cases=(*CASES, {"c": 1.0, "n": 3000, "slope": 5.0, "dilution": 30.0}),
    result=lambda values: values[picked(len(values))],
    fresh=1,
)
def last_row_correlations(c, n, slope, dilution):
    values = row(n - 1, c, n, slope, dilution)
    return [values[j] for j in picked(n)]


@oracle("causal.discrete_prefix_noise", draws=ROWS, cases=CASES, fresh=1)
def discrete_prefix_noise(c, n, slope, dilution):
    with mp.workdps(30):
        sums = adjoint(c, [mp.mpf(1)] * n, mp.mpf(slope) / n, mp.mpf(dilution or 0))
        return mp.fsum(x * x for x in sums) / n


def noise(c, slope):
    """The integral over sources s of the square of all that the mean hears from s."""
    if slope == 0:
        return mp.exp(2 * mp.mpf(c)) * bessel(0, 2 * mp.mpf(c))
    if c > 50:
        return None
    with mp.workdps(22):
        c, slope = mp.mpf(c), mp.mpf(slope)
        top = mp.expm1(slope)
        ends = (mp.sqrt(c) + 8) ** 2, mp.log(top) - 60, max(mp.log(top), 0) + (2 * mp.sqrt(c) + 8) ** 2
        # beyond the first end all is heard that will be, until the source is among the first tokens
        near = [mp.mpf(j) * 4 for j in range(int(min(ends[0], ends[2]) / 4) + 1)]
        start = max(ends[1], near[-1])
        edges = near + [start + mp.mpf(j) * 4 for j in range(int((ends[2] - start) / 4) + 2)]
        total, done = mp.mpf(0), []
        for low, high in itertools.pairwise(edges):
            panel = [((low + high) / 2 + (high - low) / 2 * x, (high - low) / 2 * w) for x, w in nodes()]
            if high == low:
                continue
            for y, measure in panel:
                u = top * mp.exp(-y)
                part = [(low + (y - low) * (1 + x) / 2, (y - low) / 2 * w) for x, w in nodes()] if low < start else []
                inner = [*done, *((mp.exp(v), w * paths(c, v)) for v, w in part)]
                sum_ = 1 + (1 + u) * mp.fsum(psi / (1 + u * grown) for grown, psi in inner)
                total += measure * sum_**2 * u / (1 + u) / slope
            done += [(mp.exp(v), w * paths(c, v)) for v, w in panel] if low < start else []
        return total


NOISES = (
    {"c": 0.0, "slope": 0.0},
    {"c": 1e-12, "slope": 0.0},
    {"c": 177.0, "slope": 0.0},
    {"c": 1e8, "slope": 0.0},
    {"c": 1.0, "slope": 1.0},
    {"c": 0.5, "slope": 1000.0},
)
NOISE = {
    "count": 8,
    "quick": 6,
    "fresh": 0,
    "cases": NOISES,
    "draws": {
        "c": lambda rng: float(10 ** rng.uniform(-3, 0.5)),
        "slope": lambda rng: float(rng.choice([0.0, 0.0, 1e-6, 10 ** rng.uniform(-1, 1.5)])),
    },
}


@oracle("causal.prefix_noise", **(NOISE | {"quick": 6}))
def prefix_noise(c, slope):
    return noise(c, slope)


@oracle("causal.log_prefix_noise", **NOISE | {"quick": 4})
def log_prefix_noise(c, slope):
    with mp.workdps(350):  # the noise at c = 1e-300 is above 1
        return None if (value := noise(c, slope)) is None else mp.log(value)


@oracle(
    "causal.attended_noise",
    draws={"c": lambda rng: time(rng, 100.0), "slope": slope},
    cases=({"c": 178.0, "slope": 0.0}, {"c": 175.0, "slope": 1e6}, {"c": 0.0, "slope": 1e6}),
    count=16,
    quick=16,
    fresh=1,
)
def attended_noise(c, slope):
    with mp.workdps(25):
        c, slope = mp.mpf(c), mp.mpf(slope)
        share = slope / mp.expm1(slope) if slope else mp.mpf(1)

        def squares(x):
            return (share + slope * mp.exp(-x * x)) * 2 * x * mp.exp(-x * x) * bessel(0, 2 * mp.sqrt(c) * x) ** 2

        return gauss(squares, 0, 2 * mp.sqrt(c) + 9, mp.mpf(1) / 2)


# two topics


def signals(c, y):
    """Amplitudes of the early and of the late topic: e^{-y} sums over j of y^j/j! times parts of e^c."""
    with mp.workdps(60):
        c, y = mp.mpf(c), mp.mpf(y)
        middle = max(y, mp.sqrt(c * y))
        top = int(middle + 16 * mp.sqrt(middle) + 150)
        powers, term = [], mp.mpf(1)
        for j in range(top + 2):
            powers.append(term)
            term *= c / (j + 1)
        # the tail of e^c beyond j, from its far end unless most of e^c is there
        tail, k = mp.exp(c) - mp.fsum(powers) if c > top else mp.mpf(0), top + 2
        while c <= top and term > tail * mp.mpf(10) ** -45:
            tail += term
            k += 1
            term *= c / k
        tails = [mp.mpf(0)] * (top + 1)
        for j in range(top, -1, -1):
            tail += powers[j + 1]
            tails[j] = tail
        early = late = head = mp.mpf(0)
        weight = mp.exp(-y)
        for j in range(top + 1):
            head += powers[j]
            early, late = early + weight * tails[j], late + weight * head
            weight *= y / (j + 1)
        return early, late


def topic_signals(c, share, slope, place):
    if place <= share:
        return mp.exp(mp.mpf(c)), mp.mpf(0)
    return signals(c, ratio(place, share, slope))


def few_hops(a):
    """Sums of the oracle have about y terms."""
    return a["c"] <= 3e4 and a["slope"] <= 1e4


TOPICS = {
    "draws": {
        "share": place,
        "slope": slope,
        "place": lambda rng: 1.0 if rng.random() < 0.5 else place(rng),
        "c": time,
    },
    "relation": few_hops,
    "cases": (
        {"c": 1e4, "share": 1e-300, "slope": 0.0, "place": 1.0},
        {"c": 1e-3, "share": 1e-300, "slope": 0.0, "place": 1.0},
        {"c": 1.3, "share": 1 - 1e-12, "slope": 0.0, "place": 1.0},
        {"c": 0.0, "share": 0.5, "slope": 0.0, "place": 1.0},
        {"c": 1e-16, "share": 0.5, "slope": 1.0, "place": 1.0},
        {"c": 5.0, "share": 0.5, "slope": 1.0, "place": 0.5},
        {"c": 1e8, "share": 0.9999, "slope": 0.0, "place": 1.0},
        {"c": 1050.0, "share": 0.001, "slope": 1000.0, "place": 1.0},
        {"c": 5000.0, "share": 0.001, "slope": 1e4, "place": 1.0},
        {"c": 40.0, "share": 0.9, "slope": 1.0, "place": 1.0},
    ),
    "fresh": 1,
}


@oracle("causal.early_share", **TOPICS)
def early_share(c, share, slope, place):
    return topic_signals(c, share, slope, place)[0] / mp.exp(mp.mpf(c))


@oracle("causal.early_signal", **TOPICS)
def early_signal(c, share, slope, place):
    return topic_signals(c, share, slope, place)[0]


@oracle("causal.late_signal", **TOPICS)
def late_signal(c, share, slope, place):
    return topic_signals(c, share, slope, place)[1]


@oracle("causal.log_early_signal", **TOPICS)
def log_early_signal(c, share, slope, place):
    return log(topic_signals(c, share, slope, place)[0])


@oracle("causal.log_late_signal", **TOPICS)
def log_late_signal(c, share, slope, place):
    # near c = 0 it is c less a small part of it
    return c - log_reciprocal(*topic_signals(c, share, slope, place)) if share < place else -mp.inf


def log_reciprocal(early, late):
    """log of (early + late)/late."""
    return mp.log1p(early / late)


@oracle(
    "causal.takeover_time",
    draws={
        "share": lambda rng: float(rng.choice([0.01, 0.1, 0.5, 0.9, rng.uniform(0.01, 1), 1 - 1e-6, 1e-6])),
        "slope": lambda rng: min(slope(rng), 200.0),
        "place": lambda rng: 1.0 if rng.random() < 0.7 else place(rng),
        "relative_dilution": lambda rng: 0.0 if rng.random() < 0.5 else float(10 ** rng.uniform(-2, 1)),
    },
    relation=lambda a: a["relative_dilution"] == 0 or (a["share"] > 0.05 and a["place"] > 0.5 and a["slope"] < 30),
    cases=(
        {"share": 1e-300, "slope": 0.0, "place": 1.0, "relative_dilution": 0.0},
        {"share": 1 - 1e-12, "slope": 3.0, "place": 1.0, "relative_dilution": 0.0},
        {"share": 0.5, "slope": 0.0, "place": 0.4, "relative_dilution": 0.0},
        {"share": 1e-5, "slope": 1000.0, "place": 1.0, "relative_dilution": 0.0},
        {"share": 0.5, "slope": 0.0, "place": 1.0, "relative_dilution": 1e6},
        {"share": 0.5, "slope": 2.0, "place": 1.0, "relative_dilution": 1e300},
        {"share": 0.01, "slope": 1.0, "place": 1.0, "relative_dilution": 3.0},
    ),
    count=16,
    quick=12,
    fresh=1,
)
def takeover_time(share, slope, place, relative_dilution):
    if place <= share:
        return mp.mpf(0)
    q = mp.mpf(relative_dilution)
    y = ratio(place, share, slope, q)
    whole = mp.log(steps(place, slope, q) / (q / (1 + slope * q))) if q else None

    def lead(c):
        early, late = signals(c, y)
        return mp.log(early / late) if not q else mp.log(signals(c, whole)[1] / late) - mp.log(2)

    with mp.workdps(40):
        low, high = y, y + 1
        while lead(high) < 0:
            low, high = high, 2 * high
            if high > 1e9:
                return None
        return mp.findroot(lead, (low, high), solver="anderson", tol=mp.mpf(10) ** -50, verify=False) * (1 + slope * q)


# the minimum of a profile


def hop_slope(c, y):
    """R = psi'/psi = c 0F1(3; c y)/(2 0F1(2; c y))."""
    z = 2 * mp.sqrt(c * y)
    if z < 1e-3:
        return c / 2 * mp.hyp0f1(3, c * y) / mp.hyp0f1(2, c * y)
    return mp.sqrt(c / y) * bessel(2, z) / bessel(1, z)


def float_slope(c, y):
    """The same in floats, for the search of brackets; c and y broadcast."""
    z = 2 * np.sqrt(c) * np.sqrt(y)
    far = np.maximum(z, 1e-2)
    quotients = np.sqrt(c) / np.sqrt(np.where(z > 1e-2, y, 1.0)) * special.ive(2, far) / special.ive(1, far)
    return np.where(z > 1e-2, quotients, c / 2 * (1 - c * y / 6))


def final_level(slope, q):
    """log((1 + slope q) e^slope - 1)."""
    slope, q = mp.mpf(slope), mp.mpf(q)
    return mp.log(mp.expm1(slope) + slope * q * mp.exp(slope))


def crossing(slope_of, level, floats):
    """The largest y at which y + log(R/(1 - R)) comes up to the level, or None; searched in floats from far out."""
    top = max(float(level), 1.0) + 5
    while not floats(np.array([top]))[0] > float(level) + 1:
        top *= 2
    grid = np.unique(np.concatenate([top * np.linspace(0, 1, 3000) ** 2, np.geomspace(1e-8, top, 2000)]))
    below = np.flatnonzero(floats(grid) < float(level))
    if not len(below):
        return None
    low, high = mp.mpf(grid[below[-1]]), mp.mpf(grid[below[-1] + 1])

    def rise(y):
        share = slope_of(y)
        return (y + mp.log(share / (1 - share)) if share < 1 else mp.mpf(10) ** 6) - level

    return bisected(rise, low, high)


def bisected(rise, low, high):
    """The root of an increasing function, to 40 digits."""
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if rise(middle) < 0 else (low, middle)
    return mp.findroot(rise, (low, high), solver="anderson", tol=mp.mpf(10) ** -70, verify=False)


def float_condition(share, y):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(share < 1, y + np.log(share) - np.log1p(-np.minimum(share, 1.0)), np.inf)


def numbers_of(middle):
    """A `Middle` as numbers."""
    return [("rising", "middle", "falling").index(middle.shape), middle.place, middle.log_value, middle.log_last]


def middle_place(y, slope, q):
    """The place at a y, from u(1)/u(place) = e^y; 0 where it would lie before the first token."""
    start = mp.mpf(q) / (1 + mp.mpf(slope) * q)
    grown = steps(1, slope, q) * mp.exp(-y) - start
    return mp.log1p(mp.mpf(slope) * grown) / slope if grown > 0 else mp.mpf(0)


@oracle(
    "causal.find_middle",
    draws={"c": lambda rng: max(time(rng), 1e-290), "slope": slope, "relative_dilution": dilution},
    relation=lambda a: a["c"] <= 1e4 and a["slope"] <= 1e4,
    cases=(
        {"c": 1e-10, "slope": 1e-3, "relative_dilution": 0.0},
        {"c": 1.0, "slope": 1e4, "relative_dilution": 0.0},
        {"c": 5000.0, "slope": 1e4, "relative_dilution": 0.0},
        {"c": 30.0, "slope": 1e6, "relative_dilution": 0.0},
        {"c": 1e5, "slope": 1e6, "relative_dilution": 0.0},
        {"c": 1e-290, "slope": 1.0, "relative_dilution": 0.0},
        {"c": 1.0, "slope": 1.0, "relative_dilution": 0.0},
        {"c": 2.39, "slope": 3.0, "relative_dilution": 0.0},
        {"c": 2.4, "slope": 3.0, "relative_dilution": 0.0},
        {"c": 0.5, "slope": 1.0, "relative_dilution": 0.05},
        {"c": 0.5, "slope": 1.0, "relative_dilution": 0.5},
        {"c": 0.5, "slope": 0.0, "relative_dilution": 0.5},
        {"c": 1e8, "slope": 1.0, "relative_dilution": 1e8},
        {"c": 1e-290, "slope": 5.0, "relative_dilution": 1e300},
        {"c": 100.0, "slope": 1e6, "relative_dilution": 1e-5},
    ),
    result=numbers_of,
    fresh=1,
)
def find_middle(c, slope, relative_dilution):
    c, q = mp.mpf(c), relative_dilution
    slowed = c / (1 + mp.mpf(slope) * q)
    last = log(kept(c, 1, 1, slope, q))
    y = None
    if slope and slowed < 1e-300:  # R is slowed/2
        y = final_level(slope, q) - mp.log(slowed / 2)
    elif slope:
        y = crossing(
            lambda y: hop_slope(slowed, y),
            final_level(slope, q),
            lambda y: float_condition(float_slope(float(slowed), y), y),
        )
    if y is None:
        return [2, 1, last, last]
    place = middle_place(y, slope, q)
    return [int(place > 0), place, log(kept(c, 1, place, slope, q)), last]


@oracle("causal.recency_threshold")
def recency_threshold(slope):
    return -2 * mp.expm1(-mp.mpf(slope))


@oracle(
    "causal.last_middle_time",
    draws={
        "slope": lambda rng: min(slope(rng), 300.0),
        "relative_dilution": lambda rng: 0.0 if rng.random() < 0.5 else dilution(rng),
    },
    cases=(
        {"slope": 0.0, "relative_dilution": 1.0},
        {"slope": 1e-12, "relative_dilution": 0.0},
        {"slope": 1.3862943611198906, "relative_dilution": 0.0},
        {"slope": 1.3862943611198908, "relative_dilution": 0.0},
        {"slope": 1e6, "relative_dilution": 0.0},
        {"slope": 3.0, "relative_dilution": 0.01},
        {"slope": 1.0, "relative_dilution": 100.0},
    ),
    count=12,
    quick=9,
    fresh=0,
)
def last_middle_time(slope, relative_dilution):
    """The largest c of all whose condition comes up to the level at some y >= 0."""
    if slope == 0:
        return mp.mpf(0)
    level = final_level(slope, relative_dilution)
    slowing = 1 + mp.mpf(slope) * relative_dilution

    def time_of(y):
        """The c at which R(y) = 1/(1 + e^{y - level}), in floats."""
        share = special.expit(float(level) - y)
        low, high = 2 * share, 2 * share * (1 + y) + share**2 * y * 2
        for _ in range(70):
            middle = (low + high) / 2
            above = float_slope(middle, y) > share
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return low

    grid = np.unique(np.concatenate([np.linspace(0, max(float(level), 1.0) + 30, 3001), np.geomspace(1e-3, 30, 1000)]))
    times = time_of(grid)
    k = int(np.argmax(times))
    if times[k] <= times[0] * (1 + 1e-11):  # the condition rises from y = 0 on
        c, y = 2 / (1 + mp.exp(-level)), mp.mpf(0)
        return c * slowing

    def mp_time(y):
        return mp.findroot(
            lambda c: hop_slope(c, y) - 1 / (1 + mp.exp(y - level)),
            (times[k] * (1 - 1e-6), times[k]),
            solver="secant",
            tol=mp.mpf(10) ** -80,
            verify=False,
        )

    def falling(y):
        c = mp_time(y)
        z = 2 * mp.sqrt(c * y)
        return 1 + mp.sqrt(c / y) * (bessel(3, z) / bessel(2, z) - 2 * bessel(2, z) / bessel(1, z))

    y = bisected(falling, mp.mpf(grid[k - 1]), mp.mpf(grid[min(k + 1, len(grid) - 1)]))
    c = mp_time(y)
    return c * slowing if middle_place(y, slope, relative_dilution) > 0 else mp.mpf(0)


def rate_of(n, beta):
    """n^2 I_n(beta)."""
    beta = mp.mpf(beta)
    return n**2 * (beta / 2) ** n / mp.factorial(n) * mp.hyp0f1(n + 1, beta**2 / 4)


def soft_modes(t, beta, vocabulary):
    """Weights and times of the degrees; None where a time is above 1e8."""
    count = 60 + int(13 * beta**0.5)
    modes = [(mp.exp(-((mp.pi * n / vocabulary) ** 2) / 2), t * rate_of(n, beta)) for n in range(1, count)]
    return modes if max(c for _, c in modes) <= 1e8 else None


def soft(modes, place, slope):
    """The soft profile, from the degrees that matter."""
    logs = [mp.log(w) + log(c) + 2 * mp.sqrt(c * ratio(1, place, slope)) for w, c in modes]
    return mp.fsum(
        w * kept(c, 1, place, slope) for (w, c), size in zip(modes, logs, strict=True) if size > max(logs) - 120
    )


SOFT = {
    "t": lambda rng: float(10 ** rng.uniform(-3, 1)) if rng.random() < 0.7 else float(10.0 ** rng.integers(-290, 290)),
    "beta": lambda rng: (
        float(10 ** rng.uniform(-1, 1)) if rng.random() < 0.7 else float(rng.choice([1e-290, 1e-6, 100.0]))
    ),
    "source": place,
    "slope": slope,
    "vocabulary": lambda rng: int(rng.choice([1, 2, 8, 64, 10**6])),
}
SOFT_CASES = (
    {"t": 1e6, "source": 1e-9, "beta": 3.0, "slope": 1.0, "vocabulary": 8},
    {"t": 1e-39, "source": 0.5, "beta": 100.0, "slope": 1.0, "vocabulary": 1},
    {"t": 1e-284, "source": 0.5, "beta": 650.0, "slope": 1.0, "vocabulary": 2},
    {"t": 1e3, "source": 0.3, "beta": 1e-290, "slope": 0.0, "vocabulary": 1000},
    {"t": 1.0, "source": 0.5, "beta": 1.0, "slope": 1.0, "vocabulary": 8},
)


@oracle("causal.soft_profile", draws=SOFT, cases=SOFT_CASES, fresh=1)
def soft_profile(t, source, beta, slope, vocabulary):
    modes = soft_modes(t, beta, vocabulary)
    return soft(modes, source, slope) if modes else None


@oracle(
    "causal.soft_accuracy",
    draws=SOFT | {"context": lambda rng: float(rng.choice([2.0, 1e3, 1e300]))},
    cases=({"t": 1.0, "source": 0.5, "beta": 1.0, "slope": 1.0, "vocabulary": 8, "context": 100.0},),
    count=16,
    fresh=1,
)
def soft_accuracy(t, source, beta, slope, vocabulary, context):
    modes = soft_modes(t, beta, vocabulary)
    signal = soft(modes, source, slope) / context if modes else None
    return (mp.sqrt(mp.pi / 2) + mp.sqrt(2 * mp.pi) * signal) / vocabulary if modes else None


RATED = {key: SOFT[key] for key in ("beta", "slope", "vocabulary")}


@oracle(
    "causal.soft_critical_time",
    draws=RATED,
    cases=({"beta": 690.0, "slope": 1e-300, "vocabulary": 1}, {"beta": 9.0, "slope": 1.2, "vocabulary": 64}),
    fresh=1,
)
def soft_critical_time(beta, slope, vocabulary):
    modes = [(w, c) for w, c in soft_modes(mp.mpf(10) ** -320, beta, vocabulary)]
    first, second = mp.fsum(w * c for w, c in modes), mp.fsum(w * c * c for w, c in modes)
    return recency_threshold(slope) * first / second * mp.mpf(10) ** -320


@oracle(
    "causal.theorem_time",
    draws={key: SOFT[key] for key in ("beta", "slope")},
    cases=({"beta": 690.0, "slope": 3.0}, {"beta": 2.0, "slope": 1e-12}),
    fresh=1,
)
def theorem_time(beta, slope):
    fastest = max(rate_of(n, beta) for n in range(1, 60 + int(13 * beta**0.5)))
    return min(3 - mp.sqrt(3), recency_threshold(slope)) / fastest


@oracle(
    "causal.find_soft_middle",
    draws={key: SOFT[key] for key in ("t", "beta", "slope", "vocabulary")},
    relation=lambda a: a["slope"] <= 1e3 and 1e-3 <= a["t"] <= 1e3 and a["beta"] <= 10,
    cases=(
        {"t": 1.0, "beta": 1.0, "slope": 1.0, "vocabulary": 8},
        {"t": 2.0, "beta": 1.0, "slope": 1.0, "vocabulary": 8},
        {"t": 0.3, "beta": 2.0, "slope": 1.0, "vocabulary": 8},
        {"t": 30.0, "beta": 1.0, "slope": 1.0, "vocabulary": 8},
        {"t": 3.0, "beta": 1.0, "slope": 4.0, "vocabulary": 64},
        {"t": 20.0, "beta": 1.0, "slope": 40.0, "vocabulary": 64},
        {"t": 1e-290, "beta": 600.0, "slope": 2.0, "vocabulary": 3},
        {"t": 1e-3, "beta": 1e-200, "slope": 2.0, "vocabulary": 3},
        {"t": 1.0, "beta": 1.0, "slope": 0.0, "vocabulary": 8},
    ),
    result=numbers_of,
    count=6,
    quick=9,
    fresh=0,
)
def find_soft_middle(t, beta, slope, vocabulary):
    modes = soft_modes(mp.mpf(t), beta, vocabulary)
    if modes is None:
        return None
    last = log(soft(modes, 1, slope))
    parts, times = np.array([[float(mp.log(w)), float(log(c))] for w, c in modes if c > 0]).T
    size = np.exp(times)

    def share(y):
        sizes = parts + times + 2 * np.sqrt(size * float(y))
        matter = [mode for mode, large in zip(modes, sizes > sizes.max() - 90, strict=False) if large]
        values = [(w * paths(c, y), hop_slope(c, y)) for w, c in matter]
        return mp.fsum(p * r for p, r in values) / mp.fsum(p for p, _ in values)

    def floats(y):
        z = 2 * np.sqrt(size) * np.sqrt(y[:, None])
        far = np.maximum(z, 1e-2)
        logs = parts + times + np.where(z > 1e-2, z + np.log(2 * special.ive(1, far) / far), z**2 / 8)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return float_condition(np.sum(shares * float_slope(size, y[:, None]), 1) / shares.sum(1), y)

    with mp.workdps(30):
        y = crossing(share, final_level(slope, 0.0), floats) if slope else None
        if y is None:
            return [2, 1, last, last]
        place = middle_place(y, slope, 0.0)
        return [1, place, log(soft(modes, place, slope)), last]


# centres


@oracle(
    "causal.strong_centres",
    relation=lambda a: a["d"] <= 10**4 + 1,
    cases=(
        {"n": 3, "angle": math.pi, "d": 3},
        {"n": 3, "angle": math.pi, "d": 2},
        {"n": 10**9, "angle": 1e-5, "d": 2},
        {"n": 10**9, "angle": 0.3, "d": 3},
        {"n": 1000, "angle": 0.1, "d": 4096},
        {"n": 2**53, "angle": 1.5, "d": 1000},
    ),
)
def strong_centres(n, angle, d):
    angle, half = mp.mpf(angle), mp.mpf(d - 1) / 2
    # the measure of a cap as an incomplete Beta function; that of the cap around the antipode where it is smaller
    small = min(angle, mp.pi - angle)
    cap = angle / mp.pi if d == 2 else mp.betainc(half, half, 0, mp.sin(small / 2) ** 2, regularized=True)
    cap = 1 - cap if d > 2 and small < angle else cap
    return -mp.expm1(n * mp.log1p(-cap)) / cap if cap * n > mp.mpf(10) ** -40 else n - n * (n - 1) / mp.mpf(2) * cap


@functools.cache
def renyi_pieces():
    """Taylor polynomials in x - k - 1/2 of (x - 1) M(x) - (x - 1) = 2 (integral of M up to x - 1) on [k, k + 1]."""
    with mp.workdps(70):
        half, pieces, before = mp.mpf(1) / 2, {1: [mp.mpf(1)]}, mp.mpf(0)
        for k in range(2, 42):
            earlier = pieces[k - 1]
            # the integral of M from k - 1 on, then (x - 1 + 2 integral)/(x - 1), where x - 1 = k - 1/2 + h
            primitive = [a / (j + 1) for j, a in enumerate(earlier)]
            start = -mp.fsum(a * (-half) ** (j + 1) for j, a in enumerate(primitive))
            top = [2 * (before + start) + k - half, *(2 * a for a in primitive)]
            top[1] += 1
            before += start + mp.fsum(a * half ** (j + 1) for j, a in enumerate(primitive))
            quotient, base = [], k - half
            for j in range(150):
                quotient.append(((top[j] if j < len(top) else 0) - (quotient[-1] if j else 0)) / base)
            pieces[k] = quotient
        return pieces


@functools.cache
def renyi_constant():
    """The integral over t of e^{-2 (E_1(t) + log t + gamma)}."""
    with mp.workdps(40):
        return mp.quad(lambda t: mp.exp(-2 * (mp.e1(t) + mp.log(t) + mp.euler)), [0, 1, 4, 16, mp.inf])


@oracle(
    "causal.renyi_centres",
    cases=tuple(
        {"angle": angle}
        for angle in (math.pi, 3.1, 2 * math.pi / 3, 2.0, 1.5, 0.6, 0.5, 0.45, 0.42, 2 * math.pi / 23, 0.27, 0.1)
    ),
)
def renyi_centres(angle):
    x = 2 * mp.pi / mp.mpf(angle) - 1
    if x > 41:
        m = renyi_constant()
        return m * x + m
    k = int(mp.floor(x))
    return 1 + mp.fsum(a * (x - k - mp.mpf(1) / 2) ** j for j, a in enumerate(renyi_pieces()[k]))


# a decoder


def decoder(context, slope, beta, time, d, model):
    """The relative dilution, the scaled time of degree 1 and the slope per context."""
    q = softmax_dilution(beta, d) / context if model == "SA" else mp.mpf(0)
    return q, rate(1, beta, d, model) * mp.mpf(time), mp.mpf(slope) * context


def profile(c, n, steep, q, j):
    """N times the correlation of the last of N tokens with token j."""
    if n <= 1e6 and c <= 700:
        return n * row(n - 1, c, n, steep, q * n)[j - 1]
    return kept(c, 1, mp.mpf(int(j)) / n, steep, q)


DECODER = {
    "context": lambda rng: int(rng.choice([2, 3, 64, 500, 10**7])),
    "slope": lambda rng: float(rng.choice([0.0, 1e-7, 1e-3, 1 / 64])),
    "beta": lambda rng: float(rng.choice([0.1, 1.0, 4.0, 50.0])),
    "time": lambda rng: float(10 ** rng.uniform(-1, 0.7)),
    "d": lambda rng: int(rng.choice([2, 3, 64, 4096])),
}


@oracle(
    "causal.predict_middle",
    draws=DECODER | {"share": lambda rng: float(rng.choice([0.1, 0.5, rng.uniform(0.05, 1)]))},
    relation=lambda a: a["slope"] * a["context"] <= 1e3,
    cases=(
        {"context": 500, "slope": 1 / 128, "beta": 1.0, "time": 1.0, "d": 64, "model": "SA", "share": 0.1},
        {"context": 10**7, "slope": 3e-7, "beta": 1.0, "time": 1.5, "d": 2, "model": "USA", "share": 0.25},
        {"context": 64, "slope": 0.01, "beta": 700.0, "time": 5.0, "d": 64, "model": "SA", "share": 0.5},
    ),
    result=lambda predictions: [prediction.value for prediction in predictions],
    count=5,
    quick=4,
    fresh=0,
)
def predict_middle(context, slope, beta, time, d, model, share):
    q, c, steep = decoder(context, slope, beta, time, d, model)
    speed, n = c / time, context
    if not 1e-290 < c <= 1e8:
        return None
    numbers = [c]
    if model == "SA":
        numbers.append(mp.log10(q * n))
    kind, place, value, last = find_middle(c, steep, q)
    if kind == 1:
        numbers.append(min(max(place * n, 1), n))
        numbers += [mp.exp(value - last), mp.exp(value) / profile(c, n, steep, q, 1)]
    if end := last_middle_time(steep, q):
        numbers.append(end / speed)
    takeover = takeover_time(share, steep, mp.mpf(1), q)
    numbers.append(None if takeover is None else takeover / speed)
    fastest = max(rate(k, beta, d, model) for k in range(1, 20 + int(2 * beta**0.5)))
    numbers.append(mp.log10(noise(fastest * time, 0)))
    limit = mp.mpf("0.1") * n
    if limit <= 1:
        return [*numbers, 0]
    low, high = mp.mpf(0), mp.log(limit)
    return [*numbers, bisected(lambda c: mp.log(noise(c, 0) / limit), low, high) / fastest]


@oracle(
    "causal.middle_curve",
    draws=DECODER | {"count": lambda rng: int(rng.choice([2, 5, 30]))},
    relation=lambda a: a["slope"] * a["context"] <= 1e4,
    cases=(
        {"context": 300, "slope": 1e-2, "beta": 1.0, "time": 1.0, "d": 64, "model": "SA", "count": 10},
        {"context": 10**12, "slope": 1e-9, "beta": 1.0, "time": 1.0, "d": 2, "model": "grad", "count": 30},
        {"context": 7, "slope": 0.0, "beta": 0.0, "time": 1.0, "d": 64, "model": "SA", "count": 10},
    ),
    result=lambda curve: [*curve[0][spread(curve)], *curve[1][spread(curve)]],
    count=8,
    fresh=0,
)
def middle_curve(context, slope, beta, time, d, model, count):
    q, c, steep = decoder(context, slope, beta, time, d, model)
    n = context
    if not 1e-290 < c <= 1e8:
        return None
    if n <= count:
        tokens = np.arange(1, n)
    else:
        ends, middle = np.geomspace(1, n - 1, max(count // 3, 2)), np.linspace(1, n - 1, max(count // 3, 2))
        places = np.round(np.concatenate([ends, n - ends, middle]))
        tokens = np.unique(np.clip(places, 1, n - 1).astype(int))
    chosen = tokens[spread((tokens,))]
    if n <= 1e6 and c <= 700:
        values = row(n - 1, c, n, steep, q * n)
        return [*map(int, chosen), *(n * values[j - 1] for j in chosen)]
    return [*map(int, chosen), *(kept(c, 1, mp.mpf(int(j)) / n, steep, q) for j in chosen)]


def spread(curve):
    """Indices of four tokens of a curve."""
    count = len(curve[0])
    return np.array([0, count // 3, 2 * count // 3, count - 1])
