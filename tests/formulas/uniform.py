"""Oracles of `theory.uniform`."""

import mpmath as mp
import numpy as np
from scipy import integrate, optimize
from scipy import special as sp

from tests.formulas.oracle import oracle

PROCEDURES = {}


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


@oracle("uniform.linear_time", relation=lambda a: 1e-300 < a["beta"] <= 1e3, cases=({"n": 1.0, "beta": 1e-8},), quick=12)
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
        return top * mp.quad(
            lambda x: rate(k, x, 2) / top if x else mp.mpf(0), sorted(edges), method="gauss-legendre"
        )


@oracle(
    "uniform.ramp_growth",
    relation=lambda a: a["k"] <= 100 and a["beta"] <= 1e4,
    cases=({"beta": 5.0, "k": 60}, {"beta": 3000.0, "k": 7}),
    count=8,
    quick=6,
    fresh=0,
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
            for left, right in zip(edges[:-1], edges[1:], strict=True)
        )

    beta = mp.mpf(optimize.brentq(excess, k, 2 * (k + 1) ** 2, xtol=1e-12))
    growth = [ramp_integral(0, beta, j) for j in (k, k + 1)]
    step = (growth[0] - growth[1]) / (rate(k + 1, beta, 2) - rate(k, beta, 2))
    return beta + step, growth[0] + step * rate(k, beta, 2)


@oracle("uniform.ramp_switch", relation=lambda a: a["k"] <= 10, cases=({"k": 6},), count=3, quick=4, fresh=0)
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

    # panels in which the integrand falls by e^8 at most; behind e^-100 only a slope of 0 is left, or one of 1
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
    cases=({"overlap": 0.0, "beta": 1000.0, "n": 5, "model": "SA"}, {"overlap": -0.249999999999, "beta": 2.0, "n": 5, "model": "SA"}),
    result=lambda result: [result[0], *result[1]],
)
def overlap_rates(overlap, beta, n, model):
    speed, rates = pair_speed(overlap, beta, n, model)
    return [speed, *rates]


def pair_growth(overlap, beta, n, model):
    """exp of the integral of rate/gamma' over the overlap, panels towards both poles and of width 8/beta."""
    end = mp.mpf(overlap)
    poles = [1 - (1 - end) * 2**j for j in range(1, 60)] if end > 0 else [end + (end + mp.mpf(1) / (n - 1)) * (2**j - 1) for j in range(1, 60)]
    edges = {mp.mpf(0), end, *(edge for edge in poles if min(0, end) < edge < max(0, end))}
    edges |= {j * mp.mpf(2) ** -30 * end for j in (1, 30, 900, 27000, 810000, 24300000, 729000000)}
    edges |= {end * j / 16 for j in range(16)}

    def quotients(gamma):
        speed, rates = pair_speed(gamma, beta, n, model)
        return [part / speed for part in rates]

    with mp.workdps(30):
        return [
            mp.exp(mp.quad(lambda gamma, i=i: quotients(gamma)[i], sorted(edges, reverse=end < 0)))
            for i in range(3)
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


@oracle("uniform.collapse_time_spread", cases=({"beta": 1.0, "n": 2**53, "d": 2**53}, {"beta": 712.0, "n": 10**6, "d": 3}))
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
    mp.mp.dps = 60 + int(2 * abs(mp.log10(b))) if b else 50
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
