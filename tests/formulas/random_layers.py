"""Oracles of `theory.random_layers`."""

import functools
import itertools
import math

import mpmath as mp
import numpy as np
from scipy import linalg, special
from scipy.optimize import brentq

from tests.formulas.oracle import oracle
from tests.formulas.special import log_bessel
from tests.formulas.tokens import tokens


def real(*numbers):
    return [mp.mpf(number) for number in numbers]


# --- errors of layers --------------------------------------------------------------------------------------------


def small_d(rng):
    return int(rng.choice([2, 3, 4, 5, 8, 30, 500, 3000]))


@oracle(
    "random_layers.single_token_overlap",
    draws={"d": small_d},
    cases=(
        {"step": 1e-12, "time": 3.0, "d": 500},
        {"step": 1e-10, "time": 3.0, "d": 500},
        {"step": 1e-3, "time": 3.0, "d": 500},
        {"step": 1e-3, "time": 100.0, "d": 2},
        {"step": 1.0, "time": 3.0, "d": 2},
        {"step": 0.999, "time": 30.0, "d": 7},
        {"step": 0.03, "time": 1.0, "d": 2},
        {"step": 5.0, "time": 1.0, "d": 100000},
    ),
    fresh=2,
)
def single_token_overlap(step, time, d):
    """By the confluent hypergeometric function, at as many digits as 1 - rho needs."""
    digits = 60 - min(0, math.floor(math.log10(step)))
    with mp.workdps(digits):
        h, tau = real(step, time)
        z, c = d / (2 * h), mp.mpf(d) / 2 + 1
        front = mp.gamma(mp.mpf(d + 1) / 2) / mp.gamma(c)
        cosine = front * mp.sqrt(z) * mp.hyp1f1(0.5, c, -z, maxterms=10**6)
        return mp.exp(mp.log(cosine) / h * tau)


@oracle("random_layers.single_token_limit")
def single_token_limit(time, d):
    t, d = real(time, d)
    limit = mp.exp(-(d - 1) * t / (2 * d))
    return [limit, limit * t * (d - 1) * (d - 4) / (4 * d * d)]


@oracle(
    "random_layers.pair_layer_error",
    cases=tuple(
        {"time": 1.0, "overlap": overlap, "v": v, "d": d}
        for overlap, v, d in (
            (0.5, 1e-15, 3),
            (0.5, 1e-16, 3),
            (0.5, 1e-6, 3),
            (-0.5, 1e-3, 2),
            (0.0, 1e-9, 2),
            (0.999999, 3.0, 2),
            (-0.999999, 20.0, 5),
            (0.3, 400.0, 4),
            (0.3, 0.999999, 4),
            (0.3, 1.0, 4),
        )
    ),
    result=lambda error: [error.euler, error.noise],
)
def pair_layer_error(time, overlap, v, d):
    with mp.workdps(1000):
        t, r, v, d = real(time, overlap, v, d)
        first = mp.atanh(r)
        zeta = first + v * t
        if zeta > 10**4:
            return [0, 0]
        steep = mp.sech(zeta) ** 2
        grown = mp.log(mp.cosh(zeta) / mp.cosh(first))
        return [-(v**2) * t / 2 * steep, steep * (((d - 2) * t + grown / v) / (2 * d) - t / d * mp.tanh(zeta))]


def spectrum(rng):
    values = rng.standard_normal(int(rng.integers(2, 6))) * 10.0 ** rng.choice([-8, 0, 0, 8])
    values[0] = np.abs(values).max() * (1 + 10.0 ** -rng.choice([0, 4, 8, 15]))
    return values.tolist()


@oracle(
    "random_layers.consensus_fluctuation",
    draws={"eigenvalues": spectrum},
    cases=(
        {"eigenvalues": [1.0, -5.0], "step": 1.0, "heads": 1},
        {"eigenvalues": [1.0, 0.5, -1.0], "step": 1e17, "heads": 3},
        {"eigenvalues": [1.0, 1.0 - 2**-53], "step": 0.1, "heads": 1},
    ),
)
def consensus_fluctuation(eigenvalues, step, heads):
    """The variance q of s -> (1 + eta l_k)/(1 + eta l_1) s + noise, to first order in eta."""
    first, *others = real(*eigenvalues)
    eta = mp.mpf(step)
    dampings = [(1 + eta * first) ** 2 - (1 + eta * other) ** 2 for other in others]
    if any(2 + eta * (first + other) < 1 for other in others):
        return None
    return [eta**2 / (len(eigenvalues) * heads) / damping if eta else 0 for damping in dampings]


# --- diffusion ---------------------------------------------------------------------------------------------------


@oracle("random_layers.canonical_time")
def canonical_time(step, layers, heads):
    return mp.mpf(step) ** 2 * mp.mpf(layers) / mp.mpf(heads)


REGIMES = ("frozen", "diffusive", "ballistic", "modified", "discrete")


@oracle(
    "random_layers.regime",
    result=lambda r: [REGIMES.index(r.regime), r.time, r.drift_time, r.error],
    cases=tuple(
        {"step": step, "layers": layers, "heads": heads, "mean_value": mean}
        for step, layers, heads, mean in (
            (0.1, 1.0, 1.0, 0.0),
            (0.1, 100.0, 1.0, 0.0),
            (0.1, 100.0, 1.0, 1.0),
            (0.001, 5000.0, 1.0, 1.0),
            (0.2, 40.0, 40.0, -1.0),
            (0.6, 1.0, 1.0, 1.0),
            (0.6, 100.0, 1e4, 3.0),
        )
    ),
)
def regime(step, layers, heads, mean_value):
    step, layers, heads, mean = real(step, layers, heads, mean_value)
    tau, drift = step**2 * layers / heads, abs(mean) * step * layers
    lag = (step * layers + 1) * step
    if step**2 / heads > mp.mpf("0.25"):
        return [4, tau, drift, step**2 / heads]
    if max(tau, drift) < mp.mpf("0.1"):
        return [0, tau, drift, max(tau, drift)]
    if tau >= mp.mpf("0.1"):
        return [1, tau, drift, step * lag if mean else step**2 / heads]
    for place, power in ((2, 1), (3, 2)):
        if (abs(mean) * step) ** power * drift < mp.mpf("0.1"):
            return [place, tau, drift, lag]
    return [4, tau, drift, lag]


@oracle("random_layers.logit_scale")
def logit_scale(beta, sigma_q, sigma_k, d_k):
    return mp.fprod(real(beta, sigma_q, sigma_k, mp.sqrt(mp.mpf(d_k))))


@oracle(
    "random_layers.overlap_drift",
    cases=({"overlap": 1 - 1e-12, "s_ij": 1 - 2e-12, "s_ii": 1.0, "s_jj": 1.0, "d": 3.0},),
)
def overlap_drift(overlap, s_ij, s_ii, s_jj, d):
    r, s, first, second, d = real(overlap, s_ij, s_ii, s_jj, d)
    return ((d - 2 + r * r) * s - (d - 1) * r * (first + second) / 2) / d


@oracle(
    "random_layers.overlap_variation",
    cases=({"overlap": 1 - 1e-12, "s_ij": 1 - 2e-12, "s_ii": 1.0, "s_jj": 1.0, "d": 3.0},),
)
def overlap_variation(overlap, s_ij, s_ii, s_jj, d):
    r, s, first, second, d = real(overlap, s_ij, s_ii, s_jj, d)
    return (1 - r * r) * (first + second - 2 * r * s) / d


def gram(rng):
    rows = np.array(tokens(rng, most=4, largest=3))
    overlaps = rows @ rows.T
    return ((overlaps + overlaps.T) / 2).tolist()


@oracle("random_layers.small_logit_products", draws={"gram": gram}, count=14)
def small_logit_products(gram, b):
    """From the moments of the logits: E l_ik l_jl = b^2 R_ij R_kl, and n p_k = 1 + c + (c^2 - mean c^2)/2 for c = l - mean l."""
    n = len(gram)
    r = [[mp.mpf(entry) for entry in row] for row in gram]
    means = [mp.fsum(row) / n for row in r]
    centred = [[r[k][m] - means[k] - means[m] + mp.fsum(means) / n for m in range(n)] for k in range(n)]
    trace = mp.fsum(centred[k][k] for k in range(n)) / n

    def product(i, j):
        total = mp.mpf(0)
        for k in range(n):
            for m in range(n):
                # tokens are unit vectors, R_ii = 1
                second = r[i][j] * centred[k][m] + (centred[k][k] - trace) / 2 + (centred[m][m] - trace) / 2
                total += r[k][m] * (1 + mp.mpf(b) ** 2 * second)
        return total / n**2

    return [[product(i, j) for j in range(n)] for i in range(n)]


@oracle("random_layers.poisson_log_order")
def poisson_log_order(u0):
    return mp.log(mp.mpf(u0))


@oracle("random_layers.one_token_decay")
def one_token_decay(tau, d):
    tau, d = real(tau, d)
    return mp.exp(-(d - 1) * tau / (2 * d))


@oracle("random_layers.hot_pair_collapse_probability")
def hot_pair_collapse_probability(overlap):
    with mp.workdps(400):
        return mp.acos(-mp.mpf(overlap)) / mp.pi


@oracle("random_layers.hot_mean_square")
def hot_mean_square(u0, tau):
    with mp.workdps(400):
        u, tau = real(u0, tau)
        return u / (u + (1 - u) * mp.exp(-tau)) if u else 0


@oracle("random_layers.hot_overlap", cases=({"overlap0": 0.0, "u0": 0.5, "tau": 1e-12},))
def hot_overlap(overlap0, u0, tau):
    with mp.workdps(700):
        r, u, tau = real(overlap0, u0, tau)
        fall = mp.exp(-min(tau, 10**300))
        return 1 - (1 - r) * (fall / (u + (1 - u) * fall) if u else 1)


# --- cosines -----------------------------------------------------------------------------------------------------


def one_matrix(r, d):
    d = mp.mpf(d)
    return 2 / d * (mp.gammaprod([(d + 1) / 2], [d / 2])) ** 2 * r * mp.hyp2f1(0.5, 0.5, d / 2 + 1, r * r)


@oracle(
    "random_layers.mean_cosine",
    draws={
        "d": lambda rng: int(rng.choice([2, 3, 4, 7, 64, 1000, 10**6])),
        "d_k": lambda rng: None if rng.random() < 0.6 else int(rng.choice([1, 2, 3, 5, 64, 3000])),
    },
    cases=(
        {"overlap": 0.5, "d": 10**12, "d_k": None},
        {"overlap": 1 - 1e-15, "d": 8, "d_k": 2},
        {"overlap": 0.5, "d": 8, "d_k": 10**6},
        {"overlap": 0.5, "d": 2, "d_k": 2},
        {"overlap": 0.999, "d": 3, "d_k": 2},
    ),
    fresh=1,
)
def mean_cosine(overlap, d, d_k):
    """A hypergeometric function, averaged over the density of a sample correlation with its constant."""
    big = mp.mpf(overlap)
    with mp.workdps(60 if d < 10**4 else 90):
        if d_k is None:
            return one_matrix(big, d)
    if d_k == 1:
        return 2 / mp.pi * mp.asin(big)
    if abs(big) == 1:
        return big
    with mp.workdps(25):
        k = mp.mpf(d_k)
        log_front = (
            mp.log(k - 1) + mp.loggamma(k) - mp.loggamma(k + 0.5) - mp.log(2 * mp.pi) / 2 + k / 2 * mp.log1p(-big * big)
        )

        def weighted(x):
            r = mp.tanh(x)
            left = mp.cosh(x - centre) / (mp.cosh(x) * mp.cosh(centre))
            log_density = log_front - (k - 1) * mp.log(mp.cosh(x)) + (0.5 - k) * mp.log(left)
            return mp.exp(log_density) * mp.hyp2f1(0.5, 0.5, k + 0.5, 1 - left / 2) * one_matrix(r, d)

        centre, width = mp.atanh(big), 1 / mp.sqrt(k)
        edges = [centre + width * place for place in (-9, -3, -1, 0, 1, 3, 9)]
        if d_k < 100:
            edges = [centre - 60 / (k - 1) - 9, *edges, centre + 60 / (k - 1) + 9]
        return mp.quad(weighted, sorted(edges))


@oracle("random_layers.cosine_drift_constant", draws={"d_k": lambda rng: rng.choice([None, 1, 2, 77, math.inf])})
def cosine_drift_constant(d, d_k, kind):
    d_k = d if d_k in (None, math.inf) else int(d_k)
    return {"product": mp.mpf(3) / 2 + mp.mpf(d) / (2 * d_k), "iid": mp.mpf(3) / 2, "orthogonal": 1}[kind]


# --- exponents ---------------------------------------------------------------------------------------------------


@oracle("random_layers.pair_exponent")
def pair_exponent(a, b_, d):
    a, b, d = real(a, b_, d)
    return ((d - 3) * b - (d - 1) * a) / d


@oracle("random_layers.pair_exponent_spread")
def pair_exponent_spread(a, b_, d):
    a, b, d = real(a, b_, d)
    return 4 * (a + b) / d


@oracle("random_layers.antipodal_exponent", cases=({"beta": 20.0, "d": 1e15}, {"beta": 19.0, "d": 3.0}))
def antipodal_exponent(beta, d):
    with mp.workdps(700):
        beta, d = real(min(beta, 400), d)
        return ((d - 3) - (d - 1) * mp.tanh(beta) ** 2) / d


def rows(rng):
    return None if rng.random() < 0.3 else int(rng.choice([1, 2, 3, 7, 64]))


def few(rng):
    return int(rng.choice([2, 3, 4, 7, 64]))


@oracle("random_layers.zero_temperature_exponent", draws={"d_k": rows})
def zero_temperature_exponent(d, d_k):
    """The limit of Lambda, whose A is 1: (d - 3) B/d - (d - 1)/d, where both means exist."""
    if d < 4:
        return -mp.inf if d == 2 else mp.mpf(-2) / 3
    if d_k is not None and d_k < 3:
        return mp.inf
    stretch = mp.mpf(d - 1) / (d - 2) * (mp.mpf(d_k - 1) / (d_k - 2) if d_k else 1)
    return ((d - 3) * stretch - (d - 1)) / mp.mpf(d)


@functools.cache
def gauss(count):
    """Nodes and weights of Gauss's rule, at 40 digits."""
    with mp.workdps(40):
        rule = []
        for start in np.polynomial.legendre.leggauss(count)[0]:
            x = mp.mpf(float(start))
            for _ in range(3):  # Newton's steps from 16 digits
                slope = count * (x * mp.legendre(count, x) - mp.legendre(count - 1, x)) / (x * x - 1)
                x -= mp.legendre(count, x) / slope
            rule.append((x, 2 / ((1 - x * x) * slope**2)))
        assert abs(sum(mass for _, mass in rule) - 2) < 1e-35
        return rule


def moments(b, d, d_k):
    """A and B as integrals over the product W of the two chi-squares, whose density is a Bessel function K."""
    b, k = mp.mpf(b), d_k or 0
    share = (b / mp.mpf(10) ** -30) ** 2 if b < mp.mpf(10) ** -30 else 1
    b = max(b, mp.mpf(10) ** -30)

    def density(y, d):
        """Of y = log W, or of log U without rows of Q and K."""
        if not d_k:
            return mp.exp(mp.mpf(d) / 2 * (y - mp.log(2)) - mp.exp(y) / 2 - mp.loggamma(mp.mpf(d) / 2))
        log_front = mp.mpf(d + k) / 4 * y - (mp.mpf(d + k) / 2 - 1) * mp.log(2)
        log_front -= mp.loggamma(mp.mpf(d) / 2) + mp.loggamma(mp.mpf(k) / 2)
        return mp.exp(log_front) * mp.besselk(mp.mpf(d - k) / 2, mp.exp(y / 2))

    def both(y):
        kappa = b * mp.exp(y / 2) / mp.sqrt(d_k or 1)
        nu = mp.mpf(d) / 2 - 1
        if kappa < 500:
            r = mp.besseli(nu + 1, kappa) / mp.besseli(nu, kappa)
        else:
            r = mp.exp(log_bessel(nu + 1, kappa) - log_bessel(nu, kappa))
        slope = 1 - r * r - (d - 1) * r / kappa
        mass = density(y, d)
        if d_k:
            radial = (slope * b) ** 2 / k * (d * density(y, d + 2) + (k - 1) * mass)
            return r * r * mass, radial + r * r * mp.exp(-y) * (d - 1) * (k - 1) * mass
        return r * r * mass, ((slope * b) ** 2 + r * r * (d - 1) * mp.exp(-y)) * mass

    top = 2 * mp.log(mp.sqrt(d * (d_k or 1)) + 60 + 8 * mp.sqrt(d + k))
    centre = mp.log(d * (d_k or 1))
    turn = mp.log(d_k or 1) - 2 * mp.log(b) + 2 * mp.log(d)  # where kappa = d
    bottom = min(centre, turn) - mp.mpf(100) / min(d, d_k or d)
    edges = {bottom, top, *(centre + mp.mpf(j) / 2 for j in range(-8, 9))}
    count = int((top - bottom) / 4) + 1
    edges = sorted(edge for edge in edges | {bottom + 4 * j for j in range(count)} if bottom <= edge <= top)
    points = [mp.mpf(0)] * 2
    with mp.workdps(30):
        for left, right in itertools.pairwise(edges):
            for node, weight in gauss(20):
                heights = both((left + right) / 2 + (right - left) / 2 * node)
                points = [p + (right - left) / 2 * weight * height for p, height in zip(points, heights, strict=True)]
    return [point * share for point in points]


@oracle(
    "random_layers.attention_moments",
    draws={
        "logit_scale": lambda rng: float(
            rng.choice([10 ** rng.uniform(-2, 2), 1e-300, 1e-9, 1e4, 1e12, 0.0, math.inf])
        ),
        "d": few,
        "d_k": rows,
    },
    cases=(
        {"logit_scale": 1.0, "d": 1000, "d_k": 1},
        {"logit_scale": 30.0, "d": 2, "d_k": 1},
        {"logit_scale": 1e3, "d": 500, "d_k": None},
    ),
    count=10,
    fresh=0,
)
def attention_moments(logit_scale, d, d_k):
    if logit_scale == math.inf:
        exists = d > 2 and (d_k is None or d_k > 2)
        stretch = mp.mpf(d - 1) / (d - 2) * (mp.mpf(d_k - 1) / (d_k - 2) if d_k else 1) if exists else mp.inf
        return [1, stretch]
    return [0, 0] if logit_scale == 0 else moments(logit_scale, d, d_k)


@oracle(
    "random_layers.critical_logit_scale",
    draws={"d": lambda rng: int(rng.integers(2, 10)), "d_k": lambda rng: rng.choice([None, 3, 30])},
    cases=({"d": 4, "d_k": 1}, {"d": 8, "d_k": 6}, {"d": 10**4, "d_k": 10**4}),
    result=lambda scale: -1 if scale is None else scale,
    count=4,
    fresh=0,
)
def critical_logit_scale(d, d_k):
    if d_k is None or d < 4 or d_k >= d - 1:
        return -1

    def exponent(log_b):
        first, second = moments(mp.exp(log_b), d, d_k)
        return (d - 3) * second - (d - 1) * first

    def exponent_in_floats(log_b):
        """The same integral by 4,000 equidistant logarithms of W, for a first look."""
        y = np.linspace(2 * math.log(d * d_k) - 60, 2 * math.log(math.sqrt(d * d_k) + 60), 4000)
        kappa = math.exp(log_b) * np.exp(y / 2) / math.sqrt(d_k)
        r = np.where(kappa < 1e-3, kappa / d, special.ive(d / 2, kappa) / special.ive(d / 2 - 1, kappa))
        slope = np.where(kappa < 1e-3, 1 / d, 1 - r * r - (d - 1) * r / kappa)

        def log_density(d):
            root = np.exp(y / 2)
            return (d + d_k) / 4 * y + np.log(special.kve((d - d_k) / 2, root)) - root - math.lgamma(d / 2)

        density, density_above = np.exp(log_density(d)), np.exp(log_density(d + 2)) / 2
        radial = (slope * math.exp(log_b)) ** 2 / d_k * (d * density_above + (d_k - 1) * density)
        turning = r * r * np.exp(-y) * (d - 1) * (d_k - 1) * density
        return float(np.sum((d - 3) * (radial + turning) - (d - 1) * r * r * density))

    grid = np.arange(-2.0, 12.0, 0.25)
    upper = next(place for place in grid if exponent_in_floats(place) > 0)
    low = mp.mpf(brentq(exponent_in_floats, upper - 0.25, upper))
    high = low + mp.mpf("1e-6")
    values = exponent(low), exponent(high)
    with mp.workdps(30):
        while abs(high - low) > 1e-17:  # secants
            low, high = high, high - values[1] * (high - low) / (values[1] - values[0])
            values = values[1], exponent(high)
        return mp.exp(high)


# --- products of softmax means


NODES = 20


@functools.cache
def shares_of_energy(d_k):
    """Angles t of the singular values cos t > sin t of a matrix of two columns, without its size, and their masses."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low = 0.0 if d_k < 4 else math.asin(1e-18 ** (1 / (d_k - 2))) / 2
    t = low + (math.pi / 4 - low) * (1 + nodes) / 2
    masses = weights * np.sin(2 * t) ** (d_k - 2) * np.cos(2 * t)
    return t, masses / masses.sum()


def mean_product(phi, b, d_k, size):
    """E <m(0), m(phi)> over singular values and turns of Z and K in M = b/sqrt(d_k) Z (K^T K)^(1/2).

    Z and K have the squared sizes Gamma(2) and 2 Gamma(d_k), whose product has a Bessel function K as density; their
    shares and all turns are independent. Sums over turns are those of periodic functions.
    """
    log_w = 0.16 * np.arange(-150 if d_k > 1 else -260, 48) if d_k < 30 else 0.08 * np.arange(-200, 120)
    w = np.exp(log_w)  # the product of both Gammas
    root = 2 * np.sqrt(w)
    mass_w = np.exp((2 + d_k) / 2 * log_w + np.log(special.kve(d_k - 2, root)) - root)
    keep = mass_w > 1e-17 * mass_w.max()
    mass_w, strength = mass_w[keep] / mass_w.sum(), b / math.sqrt(d_k) * np.sqrt(2 * w[keep])
    psi = math.pi * np.arange(size) / size

    def softmax_mean(z):
        kappa = strength[:, None, None] * np.maximum(np.abs(z), 1e-300)
        return special.i1e(kappa) / special.i0e(kappa) * (z / np.maximum(np.abs(z), 1e-300))

    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    first, second = (np.exp(1j * angles) for angles in (psi, psi + phi))
    total = 0.0
    for t, mass in zip(*shares_of_energy(d_k), strict=True) if d_k > 1 else [(0.0, 1.0)]:
        for s, weight in zip(
            math.pi / 4 * (1 + nodes), math.pi / 4 * weights * np.sin(math.pi / 2 * (1 + nodes)), strict=True
        ):
            turn = np.exp(1j * math.pi * np.arange(size) / size)[:, None]
            means = []
            for z in (first, second):
                stretched = (math.cos(t) * z.real + 1j * math.sin(t) * z.imag) * turn
                # diag(cos s + sin s, cos s - sin s) is z cos s + conj(z) sin s
                means.append(softmax_mean(math.cos(s) * stretched + math.sin(s) * stretched.conj()))
            products = np.mean((means[0] * means[1].conj()).real, axis=(1, 2))
            total += mass * weight * (mass_w @ products)
    return total


@oracle(
    "random_layers.uniform_products",
    draws={
        "angle": lambda rng: float(rng.choice([rng.uniform(-4, 4), 0.0, 99.0])),
        "b": lambda rng: float(rng.choice([0.0, 1e-9, 0.3, 1.0])),
        "d_k": lambda rng: int(rng.choice([2, 3, 6])),
    },
    cases=(
        {"angle": 0.0, "b": 5.0, "d_k": 1},
        {"angle": math.pi, "b": 64.0, "d_k": 1},
        {"angle": 0.0, "b": 2.0, "d_k": 3},
        {"angle": 0.0, "b": 20.0, "d_k": 64},
        {"angle": math.pi, "b": 64.0, "d_k": 2},
    ),
    count=3,
    quick=2,
    fresh=0,
)
def uniform_products(angle, b, d_k):
    """At angles 0 and pi the moment A, else an integral over singular values, whose sums over turns leave 1e-10."""
    if b == 0:
        return mp.mpf(0)
    if angle in (0.0, math.pi):
        return moments(b, 2, d_k)[0] * (1 if angle == 0 else -1)
    return mp.mpf(mean_product(angle, b, d_k, 12 if b < 1 else 20))


@oracle(
    "random_layers.uniform_start_power",
    draws={"k": lambda rng: int(rng.integers(1, 7)), "b": lambda rng: 0.3, "d_k": lambda rng: int(rng.choice([2, 5]))},
    cases=({"k": 7, "b": 64.0, "d_k": 1}, {"k": 2, "b": 0.0, "d_k": 64}, {"k": 2, "b": 0.3, "d_k": 3}),
    count=3,
    quick=3,
    fresh=0,
)
def uniform_start_power(k, b, d_k):
    """Coefficients of `uniform_products` from its values at multiples of pi/8; degrees beyond 9 are below 1e-9."""
    if k % 2 or b == 0:
        return mp.mpf(0)
    turns = [math.pi * j / 8 for j in range(4)]
    values = [mp.mpf(uniform_products(turn, b, d_k)) for turn in turns]

    def coefficient(degree):
        parts = [2 * value * mp.cos(degree * turn) for value, turn in zip(values[1:], turns[1:], strict=True)]
        return (values[0] + mp.fsum(parts)) / 8

    return mp.mpf(k) ** 2 / 4 * (coefficient(k - 1) + coefficient(k + 1))


# --- softmax of Gaussian logits ----------------------------------------------------------------------------------

LONG = np.longdouble
PI = LONG("3.14159265358979323846264338327950288")


def exact_number(x):
    """A number of 80 bits as one of mpmath."""
    return mp.mpf(float(x)) + mp.mpf(float(LONG(x) - LONG(float(x))))


def normal_nodes(step, reach=13):
    """Equidistant standard normal numbers and their masses."""
    z = LONG(step) * np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1)
    return z, np.exp(-z * z / 2) * LONG(step) / np.sqrt(2 * PI)


def times_of(n, s):
    """Equidistant logarithms of t that matter to n tokens with logits of deviation s."""
    return LONG(0.15) * np.arange(math.floor(-(46 + math.log(n) + 10 * s) / 0.15), math.ceil((5 + 10 * s) / 0.15))


def heard_of_itself(n, s):
    """F_n(s, 1) = 1 - E sum_k p_k z_k/s by Gauss's integration by parts: first moments in place of squares."""
    if s < 1e-6:
        return LONG(1) / n
    z, mass = normal_nodes(min(0.15, 0.3 / s), 11)
    total = LONG(0)
    for t in np.array_split(times_of(n, s), 1 + int(s)):
        u = np.exp(t[:, None] + s * z)
        weights = np.exp(-u)
        powers = np.exp((n - 1) * np.log1p(-np.minimum(-np.expm1(-u) @ mass, 1 - LONG(1e-18))))
        total += LONG(0.15) * np.sum(((u * weights * z) @ mass) * powers)
    return 1 - n * total / s


def heard_by_two_of_two(s, defect):
    """F_2 = 1/2 + E tanh(sX/sqrt 2) tanh(sY/sqrt 2)/2 for the differences of both logits; defect is 1 - rho."""
    step = min(0.15, 0.3 / s)
    x, mass = normal_nodes(step, 11)
    common, difference = np.sqrt(1 - defect / 2), np.sqrt(defect / 2)
    first = np.tanh(s / np.sqrt(LONG(2)) * (common * x[:, None] + difference * x))
    second = np.tanh(s / np.sqrt(LONG(2)) * (common * x[:, None] - difference * x))
    return LONG(0.5) + mass @ (first * second) @ mass / 2


def heard_by_two(n, s, rho):
    """F_n by Mehler's formula: a sum over Hermite functions with the powers of rho."""
    z, mass = normal_nodes(min(0.15, 0.3 / s), 13)
    t = times_of(n, s)
    u = np.exp(t[:, None] + s * z)
    weights = np.exp(-u)
    hermite = [np.ones_like(z), z]
    for j in range(1, min(200, 4 + int(-45 / math.log(abs(rho))))):
        hermite.append((z * hermite[j] - np.sqrt(LONG(j)) * hermite[j - 1]) / np.sqrt(LONG(j + 1)))
    hermite = (np.array(hermite) * mass).T
    powers = LONG(rho) ** np.arange(hermite.shape[1])
    missing, coefficients = -np.expm1(-u) @ hermite, (u * weights) @ hermite
    reached = missing[:, :1] + missing[:, 0] - (missing * powers) @ missing.T
    survivors = np.exp((n - 1) * np.log1p(-np.minimum(reached, 1 - LONG(1e-18))))
    return n * LONG(0.15) ** 2 * np.sum(((coefficients * powers) @ coefficients.T) * survivors)


def largest_at_one_place(n, rho, defect):
    """F_n(inf, rho): angles for two and three tokens (Cheng 1969), else the tetrachoric series."""
    if n == 2:
        return 1 - 2 * np.arcsin(np.sqrt(defect / 2)) / PI
    if n == 3:
        with mp.workdps(50):
            r = 1 - exact_number(defect)
            angle, half_angle = mp.asin(r), mp.asin(r / 2)
            total = (
                mp.mpf(1) / 3 + 3 * (angle + half_angle) / (4 * mp.pi) + 3 * (angle**2 - half_angle**2) / (4 * mp.pi**2)
            )
            return LONG(mp.nstr(total, 25))
    x = 0.1 * np.arange(-100, 101)
    density, distribution = np.exp(-x * x / 2) / math.sqrt(2 * math.pi), special.ndtr(x)
    joint, hermite = np.outer(distribution, distribution), [np.ones_like(x), x]
    for j in range(200):
        joint += rho ** (j + 1) / (j + 1) * np.outer(density * hermite[j], density * hermite[j])
        hermite.append((x * hermite[j + 1] - math.sqrt(j + 1) * hermite[j]) / math.sqrt(j + 2))
    pair = np.exp(-(x[:, None] ** 2 - 2 * rho * x[:, None] * x + x * x) / (2 * (1 - rho * rho)))
    pair /= 2 * math.pi * math.sqrt(1 - rho * rho)
    return LONG(n * 0.01 * np.sum(pair * np.maximum(joint, 0) ** (n - 1)))


def weight(n, s, rho, defect=None):
    """F_n(s, rho); `defect` is 1 - rho where that has more digits."""
    defect = 1 - LONG(rho) if defect is None else LONG(defect)
    if n == 1 or (s == math.inf and defect == 0):
        return LONG(1)
    if s < 1e-100 or (rho == 0 and defect == 1):
        return LONG(1) / n
    if s == math.inf:
        return largest_at_one_place(n, rho, defect)
    if defect == 0:
        return heard_of_itself(n, s)
    return heard_by_two_of_two(s, defect) if n == 2 else heard_by_two(n, s, rho)


def has_weight(n, s, rho):
    """Arguments for which one of the oracles is fast and accurate."""
    return n <= 2 or rho in (0, 1) or abs(rho) <= 0.8 or (n == 3 and s == math.inf)


def correlation(rng):
    kind, small = rng.integers(6), 10.0 ** -rng.integers(1, 16)
    return float([1.0, -1.0, 0.0, rng.uniform(-0.8, 0.8), rng.choice([-1, 1]) * (1 - small), small][kind])


def logits(rng):
    return float(rng.choice([10 ** rng.uniform(-2, 0.7), 10 ** rng.uniform(-2, 0.7), 1e-300, 1e-5, 0.0, math.inf]))


@oracle(
    "random_layers.simplex_weights",
    draws={"s": logits, "rho": correlation, "n": lambda rng: int(rng.choice([1, 2, 2, 2, 3, 7, 100, 10**4]))},
    relation=lambda a: has_weight(a["n"], a["s"], a["rho"]),
    cases=(
        {"n": 10**8, "s": 3.0, "rho": 1.0},
        {"n": 10**6, "s": 8.0, "rho": 1.0},
        {"n": 2, "s": 30.0, "rho": 1.0},
        {"n": 2, "s": 20.0, "rho": 0.9},
        {"n": 2, "s": 9.0, "rho": -1.0},
        {"n": 2, "s": math.inf, "rho": -1.0},
        {"n": 3, "s": math.inf, "rho": -1.0 + 1e-9},
        {"n": 10**5, "s": 4.0, "rho": 0.7},
    ),
    fresh=2,
    quick=10,
)
def simplex_weights(n, s, rho):
    return exact_number(weight(n, s, rho))


def quotient(gamma, defect, f, g, d):
    """D/(1 - gamma), from the two products of `overlap_drift`."""
    if d == math.inf:
        return gamma * (1 - f) + g
    pair, own = gamma + defect * g, gamma + defect * f
    if defect > 1e-3:
        return ((d - 2 + gamma * gamma) * pair - (d - 1) * gamma * own) / (d * defect)
    # (d - 2 + gamma^2) gamma - (d - 1) gamma^2 = gamma (1 - gamma) (d - 2 - gamma)
    return (gamma * (d - 2 - gamma) + (d - 2 + gamma * gamma) * g - (d - 1) * gamma * f) / d


def weights(n, b, gamma, defect):
    s = b if b == math.inf else float(b * np.sqrt(LONG(defect)))
    f = LONG(1) if b == math.inf else weight(n, s, 1.0, 0)
    return f, weight(n, s, float(gamma), defect)


def scales(rng):
    return float(rng.choice([0.0, 0.0, math.inf, math.inf, 10 ** rng.uniform(-1, 0.5), 1e-9]))


def counts(rng):
    return int(rng.choice([2, 2, 2, 3, 16, 1000]))


def dimensions(rng):
    return float(rng.choice([math.inf, math.inf, 2, 3, 4, 8, 30, 1e6, 1e12]))


@oracle(
    "random_layers.simplex_drift",
    draws={"b": scales, "n": counts, "d": dimensions},
    relation=lambda a: a["overlap"] >= -1 / (a["n"] - 1) and has_weight(a["n"], a["b"], a["overlap"]),
    cases=(
        {"overlap": 1 - 1e-12, "n": 2, "b": 4.0, "d": 3.0},
        {"overlap": 0.0, "n": 10**6, "b": 2.0, "d": math.inf},
        {"overlap": 0.3, "n": 4096, "b": 4.0, "d": 64.0},
        {"overlap": -0.5, "n": 3, "b": 1.0, "d": math.inf},
    ),
    fresh=2,
    quick=9,
)
def simplex_drift(overlap, n, b, d):
    defect = 1 - LONG(overlap)
    f, g = weights(n, b, overlap, defect)
    return exact_number(defect * quotient(LONG(overlap), defect, f, g, LONG(d)))


@oracle(
    "random_layers.simplex_growth",
    draws={
        "b": lambda rng: float(rng.choice([10 ** rng.uniform(-2, 1), 0.0, math.inf, 1e-9])),
        "n": lambda rng: int(rng.choice([2, 3, 5, 30, 1000, 10**6, 10**8])),
    },
    cases=({"n": 3, "b": math.inf}, {"n": 10**8, "b": math.inf}, {"n": 2, "b": 60.0}),
    count=12,
    fresh=2,
)
def simplex_growth(n, b):
    f = mp.mpf(1) if b == math.inf else exact_number(heard_of_itself(n, b)) if b else mp.mpf(1) / n
    heard = mp.mpf(b) * (1 - f) if b < math.inf else largest_mean(n)
    return [f, 1 - f - mp.mpf(1) / n + heard**2 / (n - 1)]


def largest_mean(n):
    """The mean of the largest of n normal numbers: int z dP(all <= z), by 1 - P above a point and P below it."""
    step = mp.mpf(1) / 16
    places = [step * j for j in range(-14 * 16, 14 * 16 + 1)]
    with mp.workdps(30):
        # the trapezoidal rule for int (1{z > 0} - P(z)) dz in pairs z, -z; smooth as P(z) + P(-z) - 1
        total = sum(1 - mp.ncdf(z) ** n - mp.ncdf(-z) ** n for z in places if z > 0) + (1 - 2 * mp.ncdf(0) ** n) / 2
        return total * step


# --- paths of equal overlaps -------------------------------------------------------------------------------------


def slowness(way, start, n, b, d):
    """1/v' at v = start + way, v = log(u/(1-u)) and u = (1 + (n-1) gamma)/n; `way` is one number of 80 bits."""
    v = LONG(start) + way
    u, rest = 1 / (1 + np.exp(-v)), 1 / (1 + np.exp(v))
    defect = rest * n / (n - 1)
    gamma = (n * u - 1) / (n - 1)
    return u / quotient(gamma, defect, *weights(n, b, gamma, defect), LONG(d))


@functools.cache
def legendre(count):
    return [(LONG(mp.nstr(x, 22)), LONG(mp.nstr(mass, 22))) for x, mass in gauss(count)]


def stretch_time(start, first, last, n, b, d):
    """The time from `first` to `last` along the way by Gauss's rule on unit panels; inf where the speed vanishes."""
    edges = np.linspace(LONG(first), LONG(last), max(1, math.ceil(abs(last - first))) + 1)
    total = LONG(0)
    for left, right in itertools.pairwise(edges):
        half = (right - left) / 2
        for x, mass in legendre(20):
            height = slowness(left + half * (1 + x), start, n, b, d)
            if height <= 0 or not np.isfinite(height):
                return LONG(math.inf)
            total += half * mass * height
    return total


def logit(gamma, n):
    gamma = LONG(gamma)
    return np.log1p((n - 1) * gamma) - np.log(LONG(n - 1)) - np.log1p(-gamma)


def is_fast(n, b):
    """Whether weights along a path are closed forms, or integrals of two tokens at a moderate temperature."""
    return b == 0 or (b == math.inf and n <= 3) or (n == 2 and b <= 5)


def levels(rng):
    return float(
        rng.choice([rng.uniform(0, 0.95), 10.0 ** -rng.integers(2, 16), 1 - 10.0 ** -rng.integers(2, 16), 1.0])
    )


def starts(rng):
    return float(rng.choice([0.0, 0.0, rng.uniform(-0.4, 0.8), 10.0 ** -rng.integers(2, 12)]))


@oracle(
    "random_layers.collapse_time",
    draws={"b": scales, "n": counts, "d": dimensions, "overlap": levels, "overlap0": starts},
    relation=lambda a: (
        is_fast(a["n"], a["b"])
        and a["overlap0"] <= a["overlap"]
        and 1 + (a["n"] - 1) * a["overlap0"] > 0.1
        and (a["overlap"] < 0.99 or a["b"] in (0, math.inf))
    ),
    cases=(
        {"n": 16, "b": 3.0, "overlap": 0.15, "d": math.inf, "overlap0": 0.1},
        {"n": 16, "b": math.inf, "overlap": 0.7, "d": 8.0, "overlap0": 0.0},
        {"n": 2, "b": 1.0, "overlap": 0.5, "d": 2.0, "overlap0": -0.9},
        {"n": 2, "b": 0.0, "overlap": 1e-300, "d": math.inf, "overlap0": 0.0},
    ),
    count=10,
    fresh=1,
    quick=4,
)
def collapse_time(n, b, overlap, d, overlap0):
    if overlap == 1:
        return mp.inf
    begin, end = real(overlap0, overlap)
    way = (
        mp.log((1 + (n - 1) * end) / (1 + (n - 1) * begin) * (1 - begin) / (1 - end))
        if end > 1e-40
        else (end - begin) * n
    )  # from 0
    time = stretch_time(logit(overlap0, n), 0, LONG(mp.nstr(way, 25)), n, b, d)
    return exact_number(time) if np.isfinite(time) else mp.inf


def way_at(tau, start, n, b, d):
    """The way after the time tau, by Newton's steps; each integrates what it adds."""
    way, spent = LONG(0), LONG(0)
    for _ in range(60):
        step = (LONG(tau) - spent) / slowness(way, start, n, b, d)
        step = min(step, 1 + abs(way) / 2)
        spent += stretch_time(start, way, way + step, n, b, d)
        way += step
        if abs(step) < 1e-15 * (1 + abs(way)):
            break
    return way


def durations(rng):
    return float(rng.choice([rng.uniform(0, 3), 10.0 ** -rng.integers(1, 12), 30.0, 300.0, 1e4, 0.0]))


@oracle(
    "random_layers.simplex_path",
    draws={
        "b": scales,
        "n": counts,
        "d": lambda rng: float(rng.choice([math.inf, 30, 1e6])),
        "tau": durations,
        "overlap0": starts,
        "gap": lambda rng: bool(rng.integers(2)),
    },
    relation=lambda a: (
        is_fast(a["n"], a["b"])
        and 1 + (a["n"] - 1) * a["overlap0"] > 0.1
        and (a["tau"] < 3 or a["b"] == 0 or (a["b"] == math.inf and a["tau"] < 40))
    ),
    cases=({"n": 1000, "b": 0.0, "tau": 1e-3, "overlap0": 0.0, "d": math.inf, "gap": False},),
    count=14,
    fresh=1,
    quick=5,
)
def simplex_path(n, b, tau, overlap0, d, gap):
    start = logit(overlap0, n)
    v = start + (LONG(tau) if b == 0 and d == math.inf else way_at(tau, start, n, b, d))
    distance = LONG(n) / (n - 1) / (1 + np.exp(v))
    return exact_number(distance if gap else 1 - distance)


# --- common noise ------------------------------------------------------------------------------------------------


@oracle(
    "random_layers.poisson_order_mean",
    draws={
        "u0": lambda rng: float(
            rng.choice([rng.uniform(), rng.uniform(), 1 - 10.0 ** -rng.integers(1, 16), 0.01, 1e-40, 1e-300, 0.0, 1.0])
        ),
        "tau": lambda rng: float(rng.choice([10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-3, 1), 1e-9, 0.0, 30, 1e80])),
    },
    relation=lambda a: a["tau"] <= 30 or a["u0"] > 1e-3,
    cases=({"u0": 0.3, "tau": 100.0}, {"u0": 0.5, "tau": 1e-4}, {"u0": 0.02, "tau": 60.0}),
    count=18,
    fresh=2,
    quick=10,
)
def poisson_order_mean(u0, tau):
    """By sinc functions of y = log(u/(1-u)) and the exponential of their matrix, and a power series for small u0."""
    if u0 in (0, 1) or tau == 0:
        return mp.mpf(u0)
    if tau > 1e40:
        return mp.mpf(1)
    u, tau = real(u0, tau)
    if u < 1e-20:
        return u * mp.exp(tau / 4)
    if tau < 1e-4:  # powers of the generator on u: the third is (tau/4)^3 u times 2 at most
        return u + tau * u * (1 - u) ** 2 / 4 + tau**2 / 32 * u * (1 - u) ** 2 * (1 - 8 * u + 9 * u**2)
    y0, gap = float(mp.log(u / (1 - u))), 0.28
    reach = 9 * math.sqrt(tau / 2) + 32
    before, after = math.ceil((reach + max(y0, 0)) / gap), math.ceil((reach + max(-y0, 0)) / gap)
    y = y0 + gap * np.arange(-before, after + 1)
    share = special.expit(y)
    k = np.arange(len(y))[:, None] - np.arange(len(y))
    signs = np.where(k % 2 == 0, 1.0, -1.0)
    safe = np.where(k == 0, 1, k)
    bend = np.where(k == 0, -(np.pi**2) / 3, -2 * signs / safe**2) / gap**2
    slope = np.where(k == 0, 0.0, signs / safe) / gap
    matrix = np.zeros((len(y) + 1,) * 2)
    matrix[:-1, :-1] = (bend + share[:, None] * slope) / 4
    matrix[:-1, -1] = share * special.expit(-y) ** 2 / 4  # the first motion of u; the rest starts from 0
    return u + mp.mpf(float(linalg.expm(float(tau) * matrix)[before, -1]))


# --- predictions -------------------------------------------------------------------------------------------------

SIZES = {
    "layers": lambda rng: int(rng.choice([1, 2, 12, 96, 1000])),
    "heads": lambda rng: int(rng.choice([1, 3, 64])),
    "d": lambda rng: int(rng.choice([4, 8, 64, 4096])),
    "context": lambda rng: int(rng.choice([2, 3, 100, 8192])),
    "step": lambda rng: float(rng.choice([1e-6, 0.1, 0.5, 1.0])),
    "logit_scale": lambda rng: float(rng.choice([0.0, math.inf])),
}


def has_fast_network(a):
    return (a["logit_scale"] == 0 or a["context"] <= 3) and a["step"] ** 2 * a["layers"] / a["heads"] < 40


def end_overlap(n, b, d, tau):
    start = logit(0.0, n)
    return exact_number(1 - LONG(n) / (n - 1) / (1 + np.exp(start + way_at(tau, start, n, b, d))))


@oracle(
    "random_layers.layer_curve",
    draws={**SIZES, "d_k": lambda rng: 16, "count": lambda rng: int(rng.integers(2, 5))},
    relation=has_fast_network,
    count=6,
    fresh=1,
    quick=4,
)
def layer_curve(layers, heads, d, d_k, context, step, logit_scale, count):
    chosen = sorted({round(layers * j / (count - 1)) for j in range(count)})
    taus = [LONG(step) ** 2 * layer / heads for layer in chosen]
    return [chosen, [end_overlap(context, logit_scale, d, tau) if tau else mp.mpf(0) for tau in taus]]


def listed(predictions):
    """Values of predictions; -1 for None."""
    values = [p.value if isinstance(p.value, list) else [p.value] for p in predictions]
    return [-1.0 if value is None else value for row in values for value in row]


@oracle(
    "random_layers.predict_layers",
    draws={**SIZES, "d_k": lambda rng: 10**6},
    relation=lambda a: has_fast_network(a) and (a["logit_scale"] == 0 or a["context"] == 2),
    cases=({"layers": 40, "heads": 1, "d": 8, "d_k": 7, "context": 2, "step": 0.5, "logit_scale": math.inf},),
    result=listed,
    count=5,
    fresh=0,
    quick=4,
)
def predict_layers(layers, heads, d, d_k, context, step, logit_scale):
    """Pieces of other oracles; rows of Q and K are so many that nearby tokens meet at every logit scale."""
    assert d_k >= d - 1
    n, b = context, logit_scale
    tau = mp.mpf(step) ** 2 * layers / heads

    def passing(n, b, level):
        return collapse_time(n, b, level, d, 0.0)

    values = [tau, end_overlap(n, b, d, mp_to_long(tau))]
    for level in (0.5, 0.9):
        layer = layers * passing(n, b, level) / tau
        values.append(layer if layer <= layers else -1)
    more, fewer = max(n + 1, round(n * 1.05)), max(2, round(n / 1.05))
    times = [passing(more, b, 0.5), passing(fewer, b, 0.5)]
    warm = 0 < b < math.inf
    scales = [passing(n, b * 1.05, 0.5), passing(n, b / 1.05, 0.5)] if warm else [mp.mpf(1)] * 2
    if mp.isinf(max(times)):
        values.append(-1)
    else:
        by_context = mp.log(times[0] / times[1]) / mp.log(mp.mpf(more) / fewer)
        values += [-2, 1, by_context, mp.log(scales[0] / scales[1]) / (2 * mp.log(mp.mpf("1.05")))]
    first, second = attention_moments(b, d, d_k)
    return [*values, (mp.mpf(d - 3) * second - (d - 1) * first) / d, -1]


def mp_to_long(x):
    return LONG(mp.nstr(x, 25))
