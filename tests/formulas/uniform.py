"""Oracles of `theory.uniform`."""

import itertools

import mpmath as mp
import numpy as np
from scipy import integrate, optimize
from scipy import special as sp

from tests.formulas.oracle import oracle as register

PROCEDURES = {}


def representable(value):
    """Numbers far beyond the range of floats as 0 or infinity: their exponents alone may have 300 digits."""
    if isinstance(value, list | tuple):
        return [representable(part) for part in value]
    if value is None or mp.mpf(10) ** -400 < abs(value) < mp.mpf(10) ** 400:
        return value
    return mp.mpf(0) if abs(value) < 1 else mp.sign(value) * mp.inf


def oracle(name, **options):
    """Register an oracle whose results are representable."""

    def registered(value):
        register(name, **options)(lambda **arguments: representable(value(**arguments)))
        return value

    return registered


def bessel(order, x):
    """I_order(x) by its power series, by Hankel's series, or by the trapezoidal rule for its integral."""
    q, x = mp.mpf(order), mp.mpf(x)
    if x > 100 + q * q / 20:
        return mp.besseli(q, x)
    if min(x, x * x / (q + 1)) < 2000:
        term = total = mp.mpf(1)
        m = 0
        while term > total * mp.eps:
            m += 1
            term *= x * x / (4 * m * (m + q))
            total += term
        return (x / 2) ** q / mp.gamma(q + 1) * total
    # integral of e^(x tanh y)/cosh(y)^(2q+1): a bell on the whole line, for which the rule converges geometrically
    power = 2 * q + 1
    peak = mp.atanh(2 * x / (power + mp.sqrt(power * power + 4 * x * x)))
    step = 1 / mp.sqrt(2 * x * mp.tanh(peak) / mp.cosh(peak) ** 2 + power / mp.cosh(peak) ** 2) / 3
    nodes = [peak + j * step for j in range(-45, 46)]
    integral = step * sum(mp.exp(x * mp.tanh(y) - power * mp.log(mp.cosh(y))) for y in nodes)
    return (x / 2) ** q / (mp.sqrt(mp.pi) * mp.gamma(q + mp.mpf(1) / 2)) * integral


def share(k, beta, d):
    """l_k/l_0 of the kernel."""
    nu = mp.mpf(d) / 2 - 1
    return bessel(nu + k, beta) / bessel(nu, beta) if beta else mp.mpf(k == 0)


def mean_weight(beta, d):
    """l_0, the mean of e^(beta <x, y>) over y."""
    nu = mp.mpf(d) / 2 - 1
    return mp.gamma(nu + 1) * (2 / mp.mpf(beta)) ** nu * bessel(nu, beta) if beta else mp.mpf(1)


def clock(beta, d, model):
    """Rates of a model over those of SA."""
    if model == "SA":
        return mp.mpf(1)
    return mean_weight(beta, d) * (mp.exp(-mp.mpf(beta)) if model == "USA0" else 1)


def rate(k, beta, d, model="SA"):
    """lambda_k."""
    if beta == 0:
        return mp.mpf(d - 1) / d if k == 1 else mp.mpf(0)
    return k * mp.mpf(k + d - 2) * share(k, beta, d) / mp.mpf(beta) * clock(beta, d, model)


def harmonics(k, d):
    """How many harmonics of degree k there are."""
    return (2 * k + d - 2) * mp.binomial(k + d - 3, k - 1) / k if k else mp.mpf(1)


@oracle(
    "uniform.growth_rates",
    relation=lambda a: a["k"] is not None or a["beta"] < 50,
    cases=(
        {"beta": 1e16, "d": 3, "k": 2, "model": "SA"},
        {"beta": 1e6, "d": 1000, "k": 1000, "model": "SA"},
        {"beta": 30.0, "d": 2, "k": 100, "model": "USA0"},
        {"beta": 700.0, "d": 50, "k": 1, "model": "USA"},
        {"beta": 1e4, "d": 10**6, "k": 30, "model": "USA0"},
    ),
    result=lambda rates: [np.size(rates), np.ravel(rates)[-1], np.max(rates)],
)
def growth_rates(beta, d, k, model):
    if k is not None:
        return [1, rate(k, beta, d, model), rate(k, beta, d, model)]
    pace, rates = clock(beta, d, model), []
    while len(rates) < 3 or rates[-1] > 1e-12 or rates[-1] > rates[-2]:
        rates.append(rate(len(rates) + 1, beta, d))
    count = max(i for i, speed in enumerate(rates, 1) if speed > 1e-12)
    return [count, rates[count - 1] * pace, max(rates) * pace]


@oracle(
    "uniform.log_growth_rates",
    cases=({"beta": 1e4, "d": 4096, "k": 500, "model": "USA"}, {"beta": 1e-300, "d": 3, "k": 5, "model": "SA"}),
)
def log_growth_rates(beta, d, k, model):
    speed = rate(k, beta, d, model)
    return mp.log(speed) if speed else -mp.inf


@oracle("uniform.critical_noise", cases=({"beta": 1e3, "d": 2**53, "k": 100_000, "model": "SA"},))
def critical_noise(beta, d, k, model):
    return rate(k, beta, d, model) / (k * mp.mpf(k + d - 2)) if beta or k == 1 else mp.mpf(0)


@oracle("uniform.multiplicity", cases=({"k": 4000, "d": 200}, {"k": 10**9, "d": 10**9}, {"k": 2**53, "d": 3}))
def multiplicity(k, d):
    return harmonics(k, d)


@oracle(
    "uniform.dominant_degree",
    relation=lambda a: a["beta"] < 1e5,  # the oracle counts
    cases=({"beta": 1e10, "d": 2**53}, {"beta": 3.8, "d": 2}),
)
def dominant_degree(beta, d):
    if beta == 0:
        return mp.mpf(1)
    mp.mp.dps = 30
    # the rates have one peak: bisection on the sign of their differences
    low, high = 0, 4 + int(2 * beta**0.5)
    while high - low > 1:
        k = (low + high) // 2
        rising = (k + 1) * mp.mpf(k + d - 1) * share(k + 1, beta, d) > k * mp.mpf(k + d - 2) * share(k, beta, d)
        low, high = (k, high) if rising else (low, k)
    return mp.mpf(high)


@oracle("uniform.switching_threshold", relation=lambda a: a["k"] <= 10**4, cases=({"k": 1000, "d": 1000},))
def switching_threshold(k, d):
    """The root by secants on the logarithm of beta, from the leading order on."""
    aim = k * mp.mpf(k + d - 2) / ((k + 1) * mp.mpf(k + d - 1))
    guess = mp.mpf(k) * (k + d - 1) / 2 + mp.mpf(d - 1) / 4
    nu = mp.mpf(d) / 2 - 1

    def excess(log_beta):
        x = mp.exp(log_beta)
        return bessel(nu + k + 1, x) / bessel(nu + k, x) / aim - 1

    return mp.exp(mp.findroot(excess, (mp.log(guess), mp.log(guess * 1.01)), solver="secant", tol=1e-40))


@oracle(
    "uniform.linear_modes",
    relation=lambda a: a["beta"] <= 1e4,
    # two rates that differ by less than their last digits times t
    may_refuse=lambda a: a["t"] > 1e3,
    cases=({"t": 1e30, "beta": 9.0, "model": "SA"}, {"t": 0.0, "beta": 1e4, "model": "USA0"}),
    quick=12,
)
def linear_modes(t, beta, model):
    if beta == 0:
        return mp.mpf(1)
    mp.mp.dps = 400 if t > 1e100 else 50 + (int(mp.log10(t)) if t > 1 else 0)
    pace = clock(beta, 2, model) * 2 * mp.mpf(t)
    i0, terms = bessel(0, beta), []
    top = 40 + int(12 * beta**0.5)
    above, current = bessel(top + 1, beta), bessel(top, beta)
    for k in range(top, 0, -1):  # I_(k-1) = I_(k+1) + 2 k I_k/beta: stable downwards
        terms.append((k, current / i0))
        above, current = current, above + 2 * k * current / mp.mpf(beta)
    fastest = max(k * k * quotient for k, quotient in terms) / mp.mpf(beta)
    weights = [(k, k * k * q * q * mp.exp(pace * (k * k * q / mp.mpf(beta) - fastest))) for k, q in terms]
    return mp.sqrt(sum(k * k * w for k, w in weights) / sum(w for _, w in weights))


@oracle(
    "uniform.linear_time", relation=lambda a: 1e-300 < a["beta"] <= 1e3, cases=({"n": 1.0, "beta": 1e-8},), quick=12
)
def linear_time(n, beta):
    quotients = [(k, share(k, beta, 2)) for k in range(1, 30 + int(12 * beta**0.5))]

    def excess(t):
        return mp.log(sum(2 * q * q * mp.exp(2 * k * k * q / mp.mpf(beta) * t) for k, q in quotients)) - mp.log(n)

    if excess(0) >= 0:
        return mp.mpf(0)
    high = mp.mpf(1)
    while excess(high) < 0:
        high *= 2
    return mp.findroot(excess, (0, high), solver="anderson", tol=1e-35, maxsteps=200)


def ramp_integral(first, last, k):
    """The integral of lambda_k of the circle; panels that grow by factors of 3 from a first one, in one logarithm."""
    first, last = mp.mpf(first), mp.mpf(last)
    edges = {first, last, *(edge for edge in (last * mp.mpf(3) ** -j for j in range(1, 24)) if edge > first)}
    with mp.workdps(26):
        top = rate(k, last, 2)  # mpmath takes its tolerance absolutely
        return top * mp.quad(lambda x: rate(k, x, 2) / top if x else mp.mpf(0), sorted(edges), method="gauss-legendre")


@oracle(
    "uniform.ramp_growth",
    cases=({"beta": 5.0, "k": 60}, {"beta": 3000.0, "k": 7}, {"beta": 1e8, "k": 100}),
    count=12,
    quick=6,
    fresh=1,
)
def ramp_growth(beta, k):
    if beta == 0:
        return mp.mpf(0)
    return ramp_integral(0, beta, k)


def ramp_switch_point(k):
    """One of Newton's steps from SciPy's root, 1e-9 away at most, so that the next is below 1e-17."""

    def rise(x, j):
        return j * j * sp.ive(j, x) / sp.ive(0, x) / x

    def excess(beta):
        edges = np.linspace(1e-9, beta, 12 + k)
        return sum(
            integrate.quad(lambda x: rise(x, k) - rise(x, k + 1), left, right, epsrel=1e-12, epsabs=1e-13)[0]
            for left, right in itertools.pairwise(edges)
        )

    beta = mp.mpf(optimize.brentq(excess, k, 2 * (k + 1) ** 2, xtol=1e-12))
    growth = [ramp_integral(0, beta, j) for j in (k, k + 1)]
    step = (growth[0] - growth[1]) / (rate(k + 1, beta, 2) - rate(k, beta, 2))
    return beta + step, growth[0] + step * rate(k, beta, 2)


@oracle(
    "uniform.ramp_switch",
    relation=lambda a: a["k"] <= 10,
    cases=({"k": 6}, {"k": 40}),
    count=3,
    quick=1,
    fresh=0,
)
def ramp_switch(k):
    return list(ramp_switch_point(k))


@oracle(
    "uniform.ramp_winner",
    relation=lambda a: a["product"] < 30,
    cases=({"product": 1.00815}, {"product": 3.3263}),
    count=4,
    quick=6,
    fresh=0,
)
def ramp_winner(product):
    k = 1
    while k * k < product / 2 or ramp_switch_point(k)[1] < product:
        k += 1
    return mp.mpf(k)


@oracle("uniform.jump_threshold")
def jump_threshold(d):
    def excess(beta):
        return d * bessel(mp.mpf(d) / 2 + 1, beta) / bessel(mp.mpf(d) / 2, beta) - 1

    return mp.findroot(excess, (mp.mpf("0.99"), mp.mpf("2.5")), solver="anderson", tol=1e-45)


@oracle(
    "uniform.landau_coefficient",
    relation=lambda a: a["beta"] > 1e-100,
    cases=(
        {"beta": 2.446916, "model": "USA0"},
        {"beta": 1e12, "model": "SA"},
        {"beta": 399.0, "model": "SA"},
        {"beta": 99.0, "model": "USA0"},
    ),
)
def landau_coefficient(beta, model):
    mp.mp.dps = 50 + int(3 * abs(mp.log10(beta)))
    first, second = share(1, beta, 2), share(2, beta, 2)
    p, q = 1 / first, second / first
    onset = first / mp.mpf(beta) * clock(beta, 2, model)
    if model == "SA":
        return onset * (p - 1) * ((p - 1) * q / (1 - q) - p - 2) / (4 * p * p)
    return onset * (q / (1 - q) - 1) / 4


def odds(overlap, n):
    """Log-odds of an overlap; the float nearest to the simplex is the simplex."""
    return mp.log((1 + (n - 1) * mp.mpf(overlap)) / (1 - mp.mpf(overlap)))


def equiangular_times(first, last, beta, n, model):
    """The time between two log-odds L: of e^(beta (1 - overlap)) dL/2, over n and with (n - 1) dL/2n for SA."""
    beta = mp.mpf(beta)

    def exponent(z):
        return beta * n / (n - 1 + mp.exp(z)) - beta * n / (n - 1 + mp.exp(first))

    # panels in which the integrand falls by e^8 at most; below e^-100 only a slope of 0 is left, or one of 1
    edges = [first]
    while edges[-1] < last:
        z = edges[-1]
        weight = mp.exp(z) / (n - 1 + mp.exp(z))
        fall = beta * n / (n - 1 + mp.exp(z)) * weight
        edges.append(min(last, z + (min(2, 8 / fall) if fall > mp.mpf(10) ** -40 else last - z)))
        if exponent(edges[-1]) < -100:
            break
    with mp.workdps(28):
        total = mp.quad(lambda z: mp.exp(exponent(z)), edges, method="gauss-legendre")
    if edges[-1] < last and beta * n / (n - 1 + mp.exp(first)) < 250:
        total += mp.exp(-beta * n / (n - 1 + mp.exp(first))) * (last - edges[-1])
    total *= mp.exp(beta * n / (n - 1 + mp.exp(first)) - (beta if model == "USA" else 0)) / 2
    return (total + (n - 1) * (last - first) / 2) / n if model == "SA" else total


def equiangular_slowness(z, beta, n, model):
    """dt/dL at the log-odds z."""
    gap = n / (n - 1 + mp.exp(z))
    if model == "SA":
        return (mp.exp(beta * gap) + n - 1) / (2 * n)
    return mp.exp(beta * gap - (beta if model == "USA" else 0)) / 2


def moves(a):
    return a["overlap0"] > -1 / (a["n"] - 1) and a["overlap"] >= a["overlap0"]


TIMES = (
    {"overlap": 0.99, "beta": 5.0, "n": 4, "overlap0": -0.3333333333333332, "model": "SA"},
    {"overlap": 0.3 + 1e-9, "beta": 40.0, "n": 8, "overlap0": 0.3, "model": "USA0"},
    {"overlap": -0.1, "beta": 300.0, "n": 7, "overlap0": -0.16666666666666663, "model": "USA"},
    {"overlap": 0.999999, "beta": 1e-3, "n": 10**9, "overlap0": 0.0, "model": "SA"},
    {"overlap": 0.5, "beta": 0.37, "n": 3, "overlap0": 0.0, "model": "USA"},
)


def overlap_start(rng):
    return float(rng.choice([0.0, 0.0, 0.5, 0.9999, 1 - 1e-12, 1e-9, 1e-300, rng.random(), -1e-3]))


def overlap_end(rng):
    return float(rng.choice([0.99, 0.5, 1e-12, 1e-6, 0.99999999, 1 - 1e-15, rng.random()]))


@oracle(
    "uniform.equiangular_time",
    relation=lambda a: moves(a) and a["beta"] < 1e8,
    draws={"overlap0": overlap_start, "overlap": overlap_end},
    cases=TIMES,
    quick=12,
)
def equiangular_time(overlap, beta, n, overlap0, model):
    return equiangular_times(odds(overlap0, n), odds(overlap, n), beta, n, model)


@oracle(
    "uniform.log_equiangular_time",
    relation=lambda a: moves(a) and a["beta"] < 1e8,
    draws={"overlap0": overlap_start, "overlap": overlap_end},
    cases=(*TIMES, {"overlap": 0.99, "beta": 1e4, "n": 4, "overlap0": 0.0, "model": "SA"}),
    quick=12,
)
def log_equiangular_time(overlap, beta, n, overlap0, model):
    time = equiangular_times(odds(overlap0, n), odds(overlap, n), beta, n, model)
    return mp.log(time) if time else -mp.inf


@oracle(
    "uniform.equiangular_overlap",
    relation=lambda a: a["beta"] < 1e3 and a["overlap0"] >= -1 / (a["n"] - 1),
    draws={"overlap0": overlap_start},
    # the last digits of t decide about an escape
    may_refuse=lambda a: a["t"] > 1e5 or a["model"] == "USA",
    cases=(
        {"t": 1.0, "beta": 5.0, "n": 4, "overlap0": -0.3333333333333332, "model": "SA"},
        {"t": 1e-3, "beta": 200.0, "n": 4, "overlap0": 0.99, "model": "USA0"},
        {"t": 3.0, "beta": 0.0, "n": 4, "overlap0": -0.3333333333333333, "model": "SA"},
        {"t": 37.0, "beta": 6.0, "n": 40, "overlap0": 0.0, "model": "SA"},
    ),
    quick=12,
)
def equiangular_overlap(t, beta, n, overlap0, model):
    """Newton's method for the log-odds, each step by the time between neighbours."""
    t, beta = mp.mpf(t), mp.mpf(beta)
    if overlap0 == -1 / (n - 1) or t == 0:
        return mp.mpf(overlap0)
    first = low = odds(overlap0, n)
    spent, width = mp.mpf(0), min(mp.mpf(1), t / equiangular_slowness(first, beta, n, model))
    for _ in range(4000):
        ahead = equiangular_times(low, low + width, beta, n, model)
        if spent + ahead <= t:
            low, spent = low + width, spent + ahead
            if low - first > 400:
                return mp.mpf(1)
            width = min(2 * width, mp.mpf(1))
        else:
            width = min(width / 2, (t - spent) / equiangular_slowness(low, beta, n, model))
        if width < (low - first) * mp.mpf(10) ** -22 or spent == t:
            break
    rise = (1 + (n - 1) * mp.mpf(overlap0)) / (1 - mp.mpf(overlap0))
    gain = mp.expm1(low - first) * rise
    return mp.mpf(overlap0) + (1 - mp.mpf(overlap0)) * gain / (n + rise - 1 + gain)


@oracle(
    "uniform.layer_deficit",
    relation=lambda a: a["deficit"] < a["n"] / (a["n"] - 1),
    cases=(
        {"deficit": 1.3333333333333333, "beta": 1e-9, "n": 4, "skip": 0.0},
        {"deficit": 1.333333333333333, "beta": 1e-9, "n": 4, "skip": 0.0},
        {"deficit": 1e-100, "beta": 1.0, "n": 4, "skip": 0.0},
        {"deficit": 0.5, "beta": 3.0, "n": 2**53, "skip": 1.0},
    ),
)
def layer_deficit(deficit, beta, n, skip):
    delta = mp.mpf(deficit)
    e = mp.exp(-mp.mpf(beta) * delta)
    mean = n - (n - 1) * delta if deficit != n / (n - 1) else mp.mpf(0)
    local, other = mp.mpf(skip) + (1 - e) / (1 + (n - 1) * e), e / (1 + (n - 1) * e)
    if delta == 0 or local == 0:
        return mp.mpf(0) if mean else None
    # tokens local x_i + other sum x: length and overlap from the Gram matrix of the inputs
    square = local**2 + (2 * local * other + n * other**2) * mean
    return local**2 * delta / square


@oracle(
    "uniform.layer_growth",
    relation=lambda a: a["skip"] > 0 or a["beta"] > 0,
    cases=({"beta": 1e-300, "d": 3, "k": 1, "skip": 0.0}, {"beta": 0.0, "d": 3, "k": 1, "skip": 1.0}),
)
def layer_growth(beta, d, k, skip):
    return 1 + rate(k, beta, d) / (mp.mpf(skip) + share(1, beta, d))


def pair_parts(n):
    """Eigenvalues of D -> R_i + R_j, and how many of the n (n-1)/2 pairs each part has, by their definition."""
    return [(mp.mpf(2) * (n - 1), 1), (mp.mpf(n - 2), n - 1), (mp.mpf(0), mp.mpf(n) * (n - 3) / 2)]


def pair_speed(gamma, beta, n, model):
    """gamma' and the rates of `overlap_rates`, written as its docstring has them."""
    gamma, beta = mp.mpf(gamma), mp.mpf(beta)
    e, c = mp.exp(-beta * (1 - gamma)), (1 - gamma) * (1 + beta * gamma)
    z = (1 + (n - 1) * e) / n if model == "SA" else mp.mpf(1)
    speed = 2 * e / n * (1 - gamma) * (1 + (n - 1) * gamma) / z
    rates = []
    for rows, _ in pair_parts(n):
        pull = e / n * (2 * (beta * (1 - gamma**2) - n * gamma - c) + c * rows) / z
        rates.append(pull - (speed / 2 * e * beta * rows / n / z if model == "SA" else 0))
    return speed, rates


@oracle(
    "uniform.overlap_rates",
    relation=lambda a: a["overlap"] > -1 / (a["n"] - 1),
    draws={"overlap": overlap_start},
    cases=(
        {"overlap": 0.0, "beta": 1000.0, "n": 5, "model": "SA"},
        {"overlap": -0.249999999999, "beta": 2.0, "n": 5, "model": "SA"},
    ),
    result=lambda result: [result[0], *result[1]],
)
def overlap_rates(overlap, beta, n, model):
    speed, rates = pair_speed(overlap, beta, n, model)
    return [speed, *rates]


def pair_growth(overlap, beta, n, model):
    """exp of the integral of rate/gamma' over the overlap, panels towards both poles and of width 8/beta."""
    end = mp.mpf(overlap)
    poles = (
        [1 - (1 - end) * 2**j for j in range(1, 60)]
        if end > 0
        else [end + (end + mp.mpf(1) / (n - 1)) * (2**j - 1) for j in range(1, 60)]
    )
    edges = {mp.mpf(0), end, *(edge for edge in poles if min(0, end) < edge < max(0, end))}
    edges |= {j * mp.mpf(2) ** -30 * end for j in (1, 30, 900, 27000, 810000, 24300000, 729000000)}
    edges |= {end * j / 16 for j in range(16)}

    def quotients(gamma):
        speed, rates = pair_speed(gamma, beta, n, model)
        return [part / speed for part in rates]

    with mp.workdps(30):
        return [
            mp.exp(mp.quad(lambda gamma, i=i: quotients(gamma)[i], sorted(edges, reverse=end < 0))) for i in range(3)
        ]


SPREAD_CASES = (
    {"overlap": 0.7, "beta": 30.0, "n": 5, "model": "SA"},
    {"overlap": -0.2, "beta": 3.0, "n": 5, "model": "SA"},
    {"overlap": 1e-8, "beta": 1e6, "n": 100, "model": "USA0"},
)


@oracle(
    "uniform.overlap_growth",
    relation=lambda a: a["overlap"] > -0.999 / (a["n"] - 1) and a["beta"] * abs(a["overlap"]) < 300,
    draws={"overlap": overlap_start},
    cases=SPREAD_CASES,
    count=10,
    quick=8,
    fresh=0,
)
def overlap_growth(overlap, beta, n, model):
    return pair_growth(overlap, beta, n, model)


@oracle(
    "uniform.overlap_spread",
    relation=lambda a: a["overlap"] > -0.999 / (a["n"] - 1) and a["beta"] * abs(a["overlap"]) < 300,
    draws={"overlap": overlap_start},
    cases=SPREAD_CASES,
    count=6,
    quick=6,
    fresh=0,
)
def overlap_spread(overlap, beta, n, model):
    growth, parts = pair_growth(overlap, beta, n, model), pair_parts(n)
    total = sum(count for _, count in parts)
    return mp.sqrt(sum(count * factor**2 for factor, (_, count) in zip(growth, parts, strict=True)) / total)


@oracle(
    "uniform.collapse_time_spread", cases=({"beta": 1.0, "n": 2**53, "d": 2**53}, {"beta": 712.0, "n": 10**6, "d": 3})
)
def collapse_time_spread(beta, n, d):
    variance = mp.mpf(2) / (mp.mpf(n) * (n - 1) * d)
    return mp.sqrt(variance) / (2 / (mp.exp(mp.mpf(beta)) + n - 1))


@oracle(
    "uniform.long_context_overlap",
    relation=lambda a: a["overlap"] >= -1 / (a["n"] - 1),
    cases=(
        {"c": 0.4, "n": 1e300, "overlap": 0.0},
        {"c": 0.1, "n": 1e20, "overlap": -1e-20 * (1 - 1e-14)},
        {"c": 2.0, "n": 8.0, "overlap": -1 / 7},
        {"c": 1e-12, "n": 8.0, "overlap": -0.14},
    ),
)
def long_context_overlap(c, n, overlap):
    """From the Gram matrix of the outputs a x_i + b sum x."""
    c, count, g = mp.mpf(c), mp.mpf(n), mp.mpf(overlap)
    mp.mp.dps = 700
    e = count ** (-c * (1 - g))
    height = 1 + (count - 1) * g if overlap != -1 / (n - 1) else mp.mpf(0)
    square = (1 - e) ** 2 + (2 * (1 - e) * e + e * e * count) * height
    if square == 0:
        return mp.mpf(1)
    return ((1 - e) ** 2 * g + (2 * (1 - e) * e + e * e * count) * height) / square


@oracle("uniform.long_context_limit", cases=({"c": 2.0, "overlap": 0.5}, {"c": 1 / 0.7, "overlap": 0.3}))
def long_context_limit(c, overlap):
    """Of the cosine with X = n^(1 - 2 c (1 - overlap)) ..., the power of n decides."""
    place, g = mp.mpf(c) * (1 - mp.mpf(overlap)), mp.mpf(overlap)
    if abs(place - 1) <= 1e-15:  # X is n^0 (2 g + g)
        return (g + 3 * g) / (1 + 3 * g)
    return mp.mpf(1) if place < 1 else g


@oracle("uniform.long_context_threshold")
def long_context_threshold(overlap):
    return 1 / (1 - mp.mpf(overlap))


def any_dimension(rng):
    return float(rng.choice([3.0, 4.0, 5.5, 17.0, 100.0, 1e3, 1e6, 1e9]))


@oracle(
    "uniform.exponential_moments",
    draws={"d": any_dimension},
    relation=lambda a: a["b"] > 1e-100,
    cases=({"b": 0.0, "d": 4.0}, {"b": 1e3, "d": 2.0}, {"b": 40.0, "d": 2.5}, {"b": 3e5, "d": 1e9}),
    result=list,
)
def exponential_moments(b, d):
    mp.mp.dps = 60 + int(2 * max(-mp.log10(b), 0)) if b else 50
    return [mp.log(mean_weight(b, d)), share(1, b, d)]


@oracle(
    "uniform.long_context_iid_overlap",
    draws={"d": any_dimension},
    cases=(
        {"c": 0.0, "n": 1e4, "d": 5.0, "overlap": 0.5},
        {"c": 1e-12, "n": 1e4, "d": 5.0, "overlap": 1e-9},
        {"c": 1.3, "n": 1e300, "d": 50.0, "overlap": 0.2},
    ),
)
def long_context_iid_overlap(c, n, d, overlap):
    b = mp.mpf(c) * mp.log(n) * (1 - mp.mpf(overlap))
    other, opposite = (mp.mpf(n) - 2) * mp.exp(-b) * mean_weight(b, mp.mpf(d) - 1), mp.exp(-2 * b)
    across = (1 - opposite + other * share(1, b, mp.mpf(d) - 1)) / (1 + other + opposite)
    along, sideways = mp.mpf(overlap), (1 - mp.mpf(overlap)) * across**2
    return (along - sideways) / (along + sideways)


@oracle("uniform.rotary_growth_rates", cases=({"beta": 1e7, "k": 30_000},))
def rotary_growth_rates(beta, k):
    return mp.mpf(k) / 2 * (share(k - 1, beta, 2) if k > 1 else 1)


@oracle(
    "uniform.rotary_consensus_rates", cases=({"beta": 1e7, "q": 1}, {"beta": 150.0, "q": 2}, {"beta": 99.0, "q": 1})
)
def rotary_consensus_rates(beta, q):
    mp.mp.dps = 50 + int(max(mp.log10(beta), 0)) if beta else 50
    return share(q, beta, 2) - 1 if q else mp.mpf(0)


def taylor(slopes, start, t):
    """The solution of y' = slopes(y) at t, by mpmath's Taylor series."""
    with mp.workdps(18):
        return mp.odefun(lambda _, y: slopes(y), 0, [mp.mpf(part) for part in start], tol=mp.mpf(10) ** -14)(mp.mpf(t))


@oracle(
    "uniform.placed_overlaps",
    relation=lambda a: a["t"] * (1 + a["beta"]) < 20 and a["beta"] < 10 and a["size"] < 1e4,
    # the last digits of t decide about an escape
    may_refuse=lambda a: a["t"] > 1e5,
    cases=(
        {"t": 3.0, "beta": 4.0, "size": 1.0, "words": 3, "copies": 4},
        {"t": 6.0, "beta": 0.5, "size": 0.0, "words": 3, "copies": 4},
    ),
    count=8,
    quick=4,
    fresh=0,
)
def placed_overlaps(t, beta, size, words, copies):
    b, r, k = mp.mpf(beta), copies, words

    def slopes(y):
        one, two = y
        near, far = mp.exp(-b * (1 - one)), mp.exp(-b * (1 - two))
        z = 1 + (r - 1) * near + (k - 1) * r * far
        within = near * (1 + (r - 1) * one) + (k - 1) * r * far * two
        across = 1 - two**2 + (r - 1) * (one - two**2) + (k - 2) * r * two * (1 - two)
        return [2 * (1 - one) * within / z, 2 * ((r - 1) * near * two * (1 - one) + far * across) / z]

    return taylor(slopes, [1 / (1 + mp.mpf(size) ** 2), 0], t)


@oracle(
    "uniform.norm_overlap",
    relation=lambda a: (
        a["overlap0"] >= -1 / (a["n"] - 1)
        and 1e-3 < a["alpha"] < 1e3
        and 0.1 < a["radius0"] < 1e3
        and max(a["t"], a["t"] * a["alpha"]) * (1 + a["beta"]) < 30
        and a["beta"] < 10
        and a["n"] < 100
        and (a["overlap0"] > -0.9 / (a["n"] - 1) or a["beta"] > 0.1)
    ),
    draws={
        "overlap0": lambda rng: float(rng.choice([0.0, 0.5, 0.999, -0.1, -1e-6])),
        "radius0": lambda rng: float(10.0 ** rng.uniform(-1, 1)),
        "alpha": lambda rng: float(10.0 ** rng.uniform(-1, 1)),
        "switch": lambda rng: float(rng.choice([0.0, 0.3, 1.0, 5.0])),
        "t": lambda rng: float(10.0 ** rng.uniform(-3, 1)),
        "beta": lambda rng: float(rng.choice([0.0, 1e-6, 0.5, 2.0, 6.0])),
    },
    cases=(
        {
            "t": 20.0,
            "beta": 2.0,
            "n": 8,
            "placement": "pre",
            "overlap0": 0.0,
            "radius0": 1.0,
            "alpha": 1.0,
            "switch": 1.0,
        },
        {
            "t": 60.0,
            "beta": 4.0,
            "n": 8,
            "placement": "ln-scaling",
            "overlap0": 0.0,
            "radius0": 1.0,
            "alpha": 1.0,
            "switch": 1.0,
        },
        {
            "t": 3.0,
            "beta": 2.0,
            "n": 8,
            "placement": "pre",
            "overlap0": -1 / 7,
            "radius0": 1.0,
            "alpha": 1.0,
            "switch": 1.0,
        },
    ),
    result=lambda path: [path.overlap, path.radius, path.log_gap],
    count=12,
    quick=8,
    fresh=0,
)
def norm_overlap(t, beta, n, placement, overlap0, radius0, alpha, switch):
    """The equations of the docstring in (log(1 - rho), log r), with clocks of the placement."""
    b, at_simplex = mp.mpf(beta), overlap0 == -1 / (n - 1)

    def slopes(norm):
        def of(y):
            gap, r = mp.exp(y[0]), mp.exp(y[1])
            q = n - (n - 1) * gap if not at_simplex else mp.mpf(0)
            e = mp.exp(-b * gap)
            a = 1 + (n - 1) * e
            along = (1 + (n - 1) * e * (1 - gap)) / a
            length = mp.sqrt(1 + 2 * (n - 1) * (1 - gap) * e + (n - 1) * e**2 * (1 + (n - 2) * (1 - gap))) / a
            speed = {"post": 1, "pre": r, "peri": r * length, "ngpt": length / mp.mpf(alpha)}[norm]
            growth = {"post": 0, "pre": along / r, "peri": along / length / r, "ngpt": 0}[norm]
            return [-2 * e * q / a / speed, growth]

        return of

    start = [mp.log(1 - mp.mpf(overlap0)), mp.log(radius0)]
    if placement == "mix":
        end = taylor(slopes("post"), start, min(t, switch))
        end = taylor(slopes("pre"), end, t - switch) if t > switch else end
    elif placement == "ln-scaling":
        end = taylor(slopes("pre"), start, 2 * (mp.sqrt(1 + mp.mpf(t)) - 1))
    else:
        end = taylor(slopes(placement), start, t)
    return [1 - mp.exp(end[0]), mp.exp(end[1]), end[0]]


@oracle("uniform.norm_decay", result=lambda decay: [decay[0] == "exponential", decay[1]])
def norm_decay(placement, alpha):
    """rho' = 2 (1 - rho)/s at rho = 1, where r' is 1, or t^(-1/2) with s = r t^(1/2)."""
    if placement in ("post", "ngpt"):
        return [mp.mpf(1), 2 / (1 if placement == "post" else 1 / mp.mpf(alpha))]
    power = mp.mpf(1) / 2 if placement == "ln-scaling" else mp.mpf(1)  # of r = t^power/power, s = t/power
    return [mp.mpf(0), 2 * power]


@oracle("uniform.norm_initial_rate")
def norm_initial_rate(beta, n, placement, alpha):
    """2 e/(a s) with |A|^2 from the Gram matrix, which is the identity."""
    weights = [mp.mpf(1), mp.exp(-mp.mpf(beta))]
    total = weights[0] + (n - 1) * weights[1]
    length = mp.sqrt(weights[0] ** 2 + (n - 1) * weights[1] ** 2) / total
    speed = {"peri": length, "ngpt": length / mp.mpf(alpha)}.get(placement, 1)
    return 2 * weights[1] / total / speed


@oracle("uniform.pattern_coefficient", cases=({"beta": 1e7, "d": 3, "k": 2, "model": "SA"},))
def pattern_coefficient(beta, d, k, model):
    mp.mp.dps = 50 + int(max(mp.log10(beta), 0)) if beta else 50
    return (1 - share(k, beta, d)) / 2 if model == "SA" else mp.mpf(1) / 2


def legendre_means(d, k):
    """Means over the sphere of P_k^2 and P_k^3 by Gauss's rule for the polynomial in s, from mpmath's Legendre rule.

    With s = cos(angle) an even power of sin is left for odd d only; for all d the trapezoidal rule in the angle is
    exact for trigonometric polynomials if the weight is one (even d), and else moments are summed by Beta functions.
    """
    half = mp.mpf(d - 2) / 2
    # coefficients of P_k in s^2 (even k): C_k = sum_m (-1)^m (half)_(k-m) (2s)^(k-2m)/(m! (k-2m)!)
    poly = [mp.mpf(0)] * (k + 1)
    for m in range(k // 2 + 1):
        poly[k - 2 * m] = (-1) ** m * mp.rf(half, k - m) / mp.factorial(m) / mp.factorial(k - 2 * m) * 2 ** (k - 2 * m)
    size = sum(poly)
    poly = [part / size for part in poly]

    def product(a, b):
        result = [mp.mpf(0)] * (len(a) + len(b) - 1)
        for i, left in enumerate(a):
            if left:
                for j, right in enumerate(b):
                    result[i + j] += left * right
        return result

    def mean(coefficients):
        """Moments of s: E s^(2j) = (1/2)_j/(d/2)_j."""
        return sum(
            c * mp.rf(mp.mpf(1) / 2, i // 2) / mp.rf(mp.mpf(d) / 2, i // 2)
            for i, c in enumerate(coefficients)
            if i % 2 == 0
        )

    square = product(poly, poly)
    return mean(square), mean(product(square, poly))


@oracle(
    "uniform.pattern_skewness",
    relation=lambda a: a["k"] <= 30,
    cases=({"d": 3, "k": 60}, {"d": 500, "k": 20}),
    result=list,
    quick=12,
)
def pattern_skewness(d, k):
    mp.mp.dps = 120
    if k % 2 or d == 2:
        return [mp.mpf(0)] * 3
    count, cube = harmonics(k, d), legendre_means(d, k)[1]
    scale = count**2 * cube / (count + 2)
    return [6 * scale / (count + 4), 2 * scale, 6 * scale * (count + 1) / (count + 4)]


@oracle(
    "uniform.quadratic_growth",
    relation=lambda a: a["k"] <= 30,
    cases=({"beta": 1e7, "d": 5, "k": 20, "model": "SA"},),
    quick=12,
)
def quadratic_growth(beta, d, k, model):
    if k % 2 or d == 2:
        return mp.mpf(0)
    mp.mp.dps = 120 + int(max(mp.log10(beta), 0)) if beta else 120
    square, cube = legendre_means(d, k)
    return pattern_coefficient(beta, d, k, model) * cube / square


@oracle(
    "uniform.cubic_growth",
    relation=lambda a: a["k"] <= 1000,
    cases=(
        {"t": 3.0, "start": 0.01, "beta": 2.4, "k": 1, "model": "USA0"},
        {"t": 3.0, "start": 0.01, "beta": 1e7, "k": 2, "model": "SA"},
        {"t": 1e-9, "start": 0.5, "beta": 2.0, "k": 3, "model": "SA"},
    ),
)
def cubic_growth(t, start, beta, k, model):
    mp.mp.dps = 60 + 3 * int(max(abs(mp.log10(beta)), 0)) if beta else 60
    t, a = mp.mpf(t), mp.mpf(start)
    one, two = rate(k, beta, 2, model), rate(2 * k, beta, 2, model)
    r1, r2 = (share(k, beta, 2), share(2 * k, beta, 2)) if model == "SA" else (mp.mpf(0), mp.mpf(0))
    if one > 1.797e308 or two > 1.797e308:
        return None
    if t == 0 or a == 0:
        return mp.mpf(0)
    if 2 * one * t > 10**4 or two * t > 10**4:
        return mp.mpf("-inf")
    square = a * a * (mp.expm1(2 * one * t) / (2 * one) if one else t)
    split = 2 * one - two
    # the integral of b, b = l_1 (1 - r_1) a^2 e^(l_2 t) (e^(split t) - 1)/split

    def phi(x):
        return mp.expm1(x) / x if x else mp.mpf(1)

    double = one * (1 - r1) * a * a * t * ((phi(2 * one * t) - phi(two * t)) / split if split else t / 2)
    result = -one * r1 * (1 - r1) / 4 * square - (one * (1 + r2) / 2 - two / 4) * double
    return result


@oracle(
    "uniform.pair_correlation",
    relation=lambda a: a["n"] is None or a["model"] == "SA",
    draws={"from_start": lambda rng: bool(rng.random() < 0.5)},
    cases=({"t": 1.0, "beta": 800.0, "d": 50, "k": 1, "n": 10, "from_start": False, "model": "SA"},),
)
def pair_correlation(t, beta, d, k, n, from_start, model):
    c = (1 if from_start else 2) * rate(k, beta, d, model) * mp.mpf(t)
    if rate(k, beta, d, model) > 1.797e308:
        return None
    if c > 10**7:
        return mp.inf
    if n is None:
        return mp.expm1(c)
    mean = mean_weight(beta, d)
    w = mean / ((n - 1) * mean + mp.exp(mp.mpf(beta)))
    return mp.expm1(c * (n - 1) * w) - mp.expm1(-c * w)


@oracle(
    "uniform.triple_correlation",
    relation=lambda a: a["beta"] > 1e-12 or a["beta"] == 0,
    cases=(
        {"t": 1e-9, "beta": 4.0, "model": "USA"},
        {"t": 1e-9, "beta": 4.0, "model": "SA"},
        {"t": 0.3, "beta": 0.0, "model": "SA"},
    ),
)
def triple_correlation(t, beta, model):
    mp.mp.dps = 100 + (int(2 * abs(mp.log10(t))) if t else 0) + (int(2 * abs(mp.log10(beta))) if beta else 0)
    t, pace = mp.mpf(t), clock(beta, 2, model)
    one, two = rate(1, beta, 2, model), rate(2, beta, 2, model)
    if beta:
        b1, b2, beta = share(1, beta, 2), share(2, beta, 2), mp.mpf(beta)
        p, q = (2 * b2 - b1) / beta * pace, 2 * b1 / beta * pace
        if model == "SA":
            p, q = (2 * b2 - b1 - b1 * b2) / beta, 2 * b1 * (1 - b1) / beta
    else:
        p, q = mp.mpf(-1) / 2, mp.mpf(1)
    if t * max(4 * one, 2 * (one + two)) > 680:
        return None

    def over(x):
        return mp.expm1(x * t) / x if x else t

    bent = mp.exp((2 * one + two) * t) * (1 + 2 * p * over(two) + 2 * q * over(2 * one - two))
    return bent - mp.exp(2 * two * t) - 2 * mp.exp(2 * one * t) + 2


@oracle(
    "uniform.degree_weights",
    relation=lambda a: a["beta"] <= 1e4 and a["count"] <= 100 and (a["d"] < 1e4 or a["beta"] < 1e3),
    cases=({"beta": 300.0, "d": 3, "count": 60},),
    result=lambda weights: [weights[0], weights[-1]],
)
def degree_weights(beta, d, count):
    return [degree_weight(0, beta, d), degree_weight(count - 1, beta, d)]


def degree_weight(k, beta, d):
    return harmonics(k, d) * share(k, beta, d) * mean_weight(beta, d) * mp.exp(-mp.mpf(beta))


@oracle(
    "uniform.truncation_degree",
    relation=lambda a: a["beta"] <= 30,
    cases=(
        {"tol": 1e-290, "beta": 1.0, "d": 3},
        {"tol": 0.5, "beta": 90.0, "d": 10**6},
        {"tol": 1e-12, "beta": 1e4, "d": 2},
        {"tol": 1e-100, "beta": 300.0, "d": 100},
    ),
)
def truncation_degree(tol, beta, d):
    mp.mp.dps = 40 + int(-mp.log10(tol))
    total, k = degree_weight(0, beta, d), 0
    while 1 - total > tol:
        k += 1
        total += degree_weight(k, beta, d)
    return mp.mpf(k)


@oracle("uniform.basis_size", cases=({"degree": 10**9, "d": 10**9}, {"degree": 2**53, "d": 3}))
def basis_size(degree, d):
    return mp.binomial(degree + d - 1, degree) + (mp.binomial(degree + d - 2, degree - 1) if degree else 0)


@oracle("uniform.mean_distance", cases=({"d": 2**53},))
def mean_distance(d):
    mp.mp.dps = 80
    return mp.exp((d - 1) * mp.log(2) + 2 * mp.loggamma(mp.mpf(d) / 2) - mp.loggamma(d - mp.mpf(1) / 2)) / mp.sqrt(
        mp.pi
    )


@oracle(
    "uniform.overlap_distribution",
    cases=(
        {"overlap": -1e-3, "d": 10**9},
        {"overlap": 1e-9, "d": 3},
        {"overlap": -0.9999, "d": 2},
        {"overlap": -0.3, "d": 501},
    ),
)
def overlap_distribution(overlap, d):
    """By the trapezoidal rule in y, s = tanh y: the density is cosh(y)^(1-d)."""
    if abs(overlap) == 1:
        return mp.mpf(overlap > 0)
    mp.mp.dps = 40
    power, height = mp.mpf(d - 1), mp.atanh(abs(mp.mpf(overlap)))
    # from `height` on by Gauss's rule, in panels in which the integrand falls by e^8
    with mp.workdps(30):

        def tail(first):
            edges = [first]
            while power * (mp.log(mp.cosh(edges[-1])) - mp.log(mp.cosh(first))) < 90:
                y = edges[-1]
                edges.append(y + min(4 / (power * mp.tanh(y)) if y else mp.inf, 2 / mp.sqrt(power)))
            top = -power * mp.log(mp.cosh(first))
            parts = mp.quad(
                lambda y: mp.exp(-power * mp.log(mp.cosh(y)) - top) * mp.sqrt(power), edges, method="gauss-legendre"
            )
            return parts * mp.exp(top)

        outer = tail(height) / tail(mp.mpf(0)) / 2
    return outer if overlap < 0 else 1 - outer


@oracle(
    "uniform.overlap_shift",
    relation=lambda a: a["beta"] <= 20 and a["t"] < 10 and (a["n"] is None or a["model"] == "SA"),
    # degrees cancel
    may_refuse=lambda a: a["beta"] > 3 or a["t"] > 1,
    cases=(
        {"overlap": 0.3, "t": 1.0, "beta": 2.0, "d": 3, "n": 10, "model": "SA"},
        {"overlap": 0.05, "t": 0.5, "beta": 10.0, "d": 1000, "n": None, "model": "SA"},
    ),
    count=12,
    quick=12,
)
def overlap_shift(overlap, t, beta, d, n, model):
    """The integral of the density over s, degree by degree: of P_k f it is -(1 - s^2) P_k' f/(k (k+d-2))."""
    mp.mp.dps = 60 + d // 10
    s, half, total, k = mp.mpf(overlap), mp.mpf(d) / 2 - 1, mp.mpf(0), 0
    density = (
        mp.gamma(half + 1) / mp.gamma(half + mp.mpf(1) / 2) / mp.sqrt(mp.pi) * (1 - s * s) ** (half + mp.mpf(1) / 2)
        if abs(s) < 1
        else mp.mpf(0)
    )
    if t == 0 or density == 0:
        return mp.mpf(0)
    below, current = mp.mpf(0), mp.mpf(1)
    while True:
        k += 1
        size = harmonics(k, d) * pair_correlation(t, beta, d, k, n, False, model)
        if (k > 5 and abs(size) < mp.mpf(10) ** -30) or size == 0:
            return -density / (d - 1) * total
        total += size * current
        below, current = current, ((2 * k + d - 2) * s * current - (k - 1) * below) / (k + d - 1)


def matrix(rng, d):
    """A random matrix: general, symmetric, skew, orthogonal, of rank one, or tiny."""
    entries = rng.standard_normal((d, d))
    kind = rng.integers(6)
    if kind == 1:
        entries = entries + entries.T
    elif kind == 2:
        entries = entries - entries.T
    elif kind == 3:
        entries = np.linalg.qr(entries)[0]
    elif kind == 4:
        entries = np.outer(entries[0], entries[1])
    elif kind == 5:
        entries = entries * 10.0 ** -float(rng.choice([8, 16, 90]))
    return entries.tolist()


def unit_points(rng):
    points = rng.standard_normal((2, 3))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).tolist()


@oracle(
    "uniform.uniform_velocity",
    relation=lambda a: a["model"] != "USA0",
    draws={"points": unit_points, "interaction": lambda rng: matrix(rng, 3), "value": lambda rng: matrix(rng, 3)},
)
def uniform_velocity(points, interaction, value, model):
    b, v, flows = mp.matrix(interaction), mp.matrix(value), []
    for point in points:
        x = mp.matrix(point)
        key = b.T * x
        size = mp.sqrt(sum(part**2 for part in key))
        # of S^2: (coth s - 1/s)/s, and the mean weight sinh(s)/s
        slope = (mp.coth(size) - 1 / size) / size if size > 1e-15 else mp.mpf(1) / 3
        drive = v * key * slope * (mp.sinh(size) / size if model == "USA" else 1)
        flows.append(list(drive - x * (x.T * drive)[0]))
    return flows


@oracle(
    "uniform.stationarity_defect",
    draws={"interaction": lambda rng: matrix(rng, 4), "value": lambda rng: matrix(rng, 4)},
    cases=(
        {"interaction": [[1e80, 0.0], [0.0, 2e80]], "value": [[1.0, 1.0], [0.0, 1.0]]},
        {"interaction": [[0.0, 0.0], [0.0, 0.0]], "value": [[1.0, 1.0], [0.0, 1.0]]},
    ),
)
def stationarity_defect(interaction, value):
    b, v = mp.matrix(interaction), mp.matrix(value)

    def norm(a):
        return mp.sqrt(sum(part**2 for part in a))

    m, square = v * b.T, b * b.T
    if norm(m) == 0:
        return mp.mpf(0)
    even, skew = (m + m.T) / 2, (m - m.T) / 2
    trace = sum(m[i, i] for i in range(m.rows)) / m.rows
    return (norm(even - trace * mp.eye(m.rows)) + norm(skew * square - square * skew) / norm(square)) / norm(m)


@oracle(
    "uniform.turning_rates",
    cases=({"beta": 0.0, "d": 3, "k": 1, "angle": 1.0, "scale": 1.0, "spin": 2.0, "model": "SA"},),
    result=lambda rates: [rates.real, rates.imag],
)
def turning_rates(beta, d, k, angle, scale, spin, model):
    """With the derivative of b_k from its recurrence, b_k' = b_(k-1) - (k+d-2) b_k/beta (- b_k a_0'/a_0 for SA)."""
    pace = clock(beta, d, model)
    phase = mp.expj(-mp.mpf(angle))
    growth = rate(k, beta, d) * pace
    if beta == 0:
        # I_(k+nu) goes like beta^k: b_1 is 0, and b_1' + (d-2) b_1/beta tends to (d-1)/d
        radial, first = (mp.mpf(d - 1) / d if k == 1 else mp.mpf(0)) * pace, mp.mpf(0)
    else:
        x = mp.mpf(beta)
        before, current, first = (share(j, beta, d) for j in (k - 1, k, 1))
        slope = before - (k + d - 2) * current / x  # I_(k+nu)' with its power of beta
        radial = (slope - (current * first if model == "SA" else 0) + (d - 2) * current / x) * pace
        first *= pace
    value = scale * growth * phase - mp.mpc(0, 1) * mp.mpf(spin) * (radial * phase + first)
    return [mp.re(value), mp.im(value)]
