"""Densities on the circle under the common noise of random layers.

Given the weights of a network, every token is moved by one map, so that the density of the tokens is carried along and
does not diffuse. At infinite temperature (b = 0) it stays a Poisson kernel with a moving mean w; from the uniform start
the powers of its modes grow in proportion to tau = step^2 L/H. Ours, in the setting of arXiv:2604.01978; d = 2.
"""

import functools
import math

import numpy as np
from scipy.special import gammainccinv, gammaincinv, i0e, i1e

from attnflow.errors import NotAccurate
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.integrals import integral
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.random_layers._domains import TIME

TERMS = 160
"""Terms of power series at 1/2."""
EARLIEST, LONGEST = 0.2, 1e60
"""Before, 18 powers of the time give the mean of the order parameter; after, it is 1 for every float above 0."""
ANGLES = 128
"""Points of half the circle on which softmax means are Fourier transformed first, for b <= 4."""
LOGITS, KEYS = Reals(0.0, 64.0, scalar=True), Integers(1, 64, scalar=True)


@formula(u0=Reals(0.0, 1.0, ends="right"), relative=4e-16)
def poisson_log_order(u0: ArrayLike) -> Numbers:
    """E log u(tau) = log u_0 for every tau: the logarithm of the order parameter u = |w|^2 is a martingale.

    d = 2 and b = 0, where du = u (1-u)^2/4 dtau + u (1-u) dB/sqrt(2) and d log u = (1-u) dB/sqrt(2) in the sense of
    Ito, while u tends to 1 on almost every path. Ours.

    Arguments:
        u0: the order parameter at tau = 0.
    """
    return np.log(u0)


@formula(u0=Reals(0.0, 1.0), tau=TIME, relative=1e-11)
def poisson_order_mean(u0: ArrayLike, tau: ArrayLike) -> Numbers:
    """E u(tau) for the order parameter u = |w|^2 of the moving Poisson kernel, from u0 at tau = 0; d = 2, b = 0.

    V = E u solves V_tau = (1-u)^2/4 (u d/du)^2 V from V = u. Its Laplace transform G(q^2) is hypergeometric, and

        V = (1/pi) int e^{q^2 tau} q G(q^2) dk    over q = c + i k,

    for any c > 0; c is taken near the saddle point, so that nothing cancels. Ours.

    Arguments:
        u0: the order parameter at tau = 0.
        tau: times.
    """
    u, time = np.broadcast_arrays(u0, np.minimum(tau, LONGEST))
    early_means = _early_order(u, np.minimum(time, EARLIEST))
    is_moving = (time > EARLIEST) & (u > 0) & (u < 1)
    u, time = np.where(is_moving, u, 0.5), np.where(is_moving, time, 1.0)
    width = 1 / np.sqrt(time)
    place = np.maximum(width, np.minimum(-np.log(u) / time, 0.5 + 1 / time))

    def height(k: np.ndarray, u: np.ndarray, time: np.ndarray, place: np.ndarray) -> np.ndarray:
        q = place + 1j * k
        return np.asarray((np.exp(q * q * time) * q * _order_transform(q, u)).real) * 2 / np.pi

    means = integral(height, 0.0, 6.5 * width, u, time, place, rtol=1e-12)
    return np.where(is_moving, means, early_means)[()]


@formula(
    k=Integers(1, 64, scalar=True),
    b=LOGITS,
    d_k=KEYS,
    absolute="2e-8 * np.minimum(1.0, b * b) * k**2",
)
def uniform_start_power(k: int, b: float, *, d_k: int = 2) -> float:
    """E |c_k|^2/tau for the k-th Fourier coefficient of the density from the uniform start, to first order in tau.

    (k^2/4) (S_{k-1} + S_{k+1}), where S_k are the coefficients (1/2 pi) int s(phi) cos(k phi) dphi of
    s(phi) = E <m(0), m(phi)> (`uniform_products`). 0 for odd k: the density stays antipodally symmetric on every path,
    so that it can end in antipodal pairs, not in consensus. d = 2. Ours.

    Arguments:
        k: degree of the coefficient.
        b: scale of the logits.
        d_k: number of rows of Q and K.
    """
    powers, half = _powers(b, d_k), k // 2
    return 0.0 if k % 2 else float(half**2 * (powers[half - 1] + powers[half]))


@formula(angle=Reals(-100.0, 100.0), b=LOGITS, d_k=KEYS, absolute="2e-8 * np.minimum(1.0, b * b)")
def uniform_products(angle: ArrayLike, b: float, *, d_k: int = 2) -> Numbers:
    """s(phi) = E <m(0), m(phi)> for the softmax means m of two queries at angle phi over uniform keys; d = 2.

    m(x) = r(|a|) a/|a| with a = M x, M = (b/sqrt(d_k)) Q^T K and r = I_1/I_0. As a map of the plane of complex numbers,
    M z = P z + Q' conj(z); given V ~ Gamma(d_k) and c^2 ~ Beta(1, (d_k-1)/2), P and Q' are complex Gaussian numbers of
    variance V b^2/d_k and coherence c. Integrated over |P|, |Q'| and c on grids that are refined until two agree.
    s(0) = A of `attention_moments`. Ours.

    Arguments:
        angle: angles phi between the two queries.
        b: scale of the logits.
        d_k: number of rows of Q and K.
    """
    powers = _powers(b, d_k)
    k = 1 + 2 * np.arange(len(powers))
    return (2 * np.cos(angle[..., None] * k) @ powers)[()]


def _early_order(u: np.ndarray, time: np.ndarray) -> np.ndarray:
    """E u(tau) by powers of the generator, polynomials in u or in 1 - u; the k-th is some (tau k/27)^k u."""
    distance = np.minimum(u, 1 - u)
    powers, complement = np.array([0.0, 1.0]), np.array([0.0, 1.0])  # coefficients of u^n and of (1-u)^n
    mean = np.zeros_like(u)
    for k in range(19):
        share = time**k / math.factorial(k)
        from_one = np.polynomial.polynomial.polyval(distance, complement) * share
        from_zero = np.polynomial.polynomial.polyval(distance, powers) * share
        mean = mean + np.where(u <= 0.5, from_zero, (k == 0) - from_one)
        n = np.arange(len(powers))
        powers = np.convolve(powers * n * n / 4, [1.0, -2.0, 1.0])
        stay, rise, twice = (
            np.pad(complement * size / 4, pad)
            for size, pad in ((n * (n - 1), (0, 2)), (-n * (2 * n - 1), (1, 1)), (n * n, (2, 0)))
        )
        complement = stay + rise + twice
    return mean


def _order_transform(q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """G(q^2) = int e^{-q^2 tau} E u(tau) dtau, which solves (1-u)^2 (u d/du)^2 G/4 - q^2 G + u = 0.

    A power series in u plus the solution u^{2q} (1-u)^{1-a} 2F1 that is small at u = 0, and one in 1-u plus
    (1-u)^a u^{-2q} 2F1, which is small at u = 1; a = (1 + sqrt(1+16 q^2))/2. Values and slopes agree at u = 1/2.
    """
    root = np.sqrt(1 + 16 * q * q)
    bend = 1 / (4 * q + root)  # = sqrt(1+16 q^2) - 4 q
    low = u <= 0.5
    distance = np.where(low, u, 1 - u)
    # coefficients of u^n and of (1-u)^n, and both series at `near` and at 1/2 with their slopes there
    zero_term_before, zero_term, one_term_before, one_term = 0 * q, -4 / (1 - 4 * q * q), 1 / (q * q), -1 / (q * q)
    power, half = distance, 0.5
    zero_half = zero_slope = 0 * q
    one_half, one_slope = one_term_before, 0 * q
    series = np.where(low, 0.0, one_term_before)
    for n in range(1, TERMS):
        zero_half, zero_slope = zero_half + zero_term * half, zero_slope + n * zero_term * half
        one_half, one_slope = one_half + one_term * half, one_slope - n * one_term * half
        series = series + np.where(low, zero_term, one_term) * power
        power, half = power * distance, half / 2
        zero_term_before, zero_term = (
            zero_term,
            (2 * n * n * zero_term - (n - 1) ** 2 * zero_term_before) / ((n + 1) ** 2 - 4 * q * q),
        )
        one_term_before, one_term = (
            one_term,
            (n * (2 * n - 1) * one_term - (n - 1) ** 2 * one_term_before) / (n * (n + 1) - 4 * q * q),
        )
    first, first_slope = _gauss_series((1 - bend) / 2, 1 + 4 * q, 0.5)
    second, second_slope = _gauss_series((1 + bend) / 2, 1 + root, 0.5)
    inner_slope = (
        2 * q - (1 - root) / 2 + first_slope / first
    )  # logarithmic slopes u d/du of the homogeneous solutions at 1/2
    outer_slope = -2 * q - (1 + root) / 2 - second_slope / second
    share = (one_slope - zero_slope - outer_slope * (one_half - zero_half)) / (inner_slope - outer_slope)
    homogeneous = np.where(
        low,
        share
        * np.exp(2 * q * np.log(2 * u) + (1 - root) / 2 * np.log(2 * (1 - u)))
        * _gauss_series((1 - bend) / 2, 1 + 4 * q, distance)[0]
        / first,
        (zero_half - one_half + share)
        * np.exp((1 + root) / 2 * np.log(2 * (1 - u)) - 2 * q * np.log(2 * u))
        * _gauss_series((1 + bend) / 2, 1 + root, distance)[0]
        / second,
    )
    return series + homogeneous


def _gauss_series(a: np.ndarray, c: np.ndarray, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """2F1(a, a; c; x) for 0 <= x <= 1/2 and x times its derivative."""
    term = total = np.ones_like(a * x)
    slope = np.zeros_like(total)
    for n in range(60):
        term = term * ((a + n) ** 2 / ((c + n) * (n + 1)) * x)
        total, slope = total + term, slope + (n + 1) * term
    return total, slope


@functools.lru_cache(maxsize=64)
def _powers(b: float, d_k: int) -> np.ndarray:
    """S_k for odd k = 1, 3, ...: E(|z_k|^2 + |z_{-k}|^2)/2 for the Fourier coefficients z_k of m, an odd map.

    Raises:
        NotAccurate: if S and their sum differ by more than 1e-8 of the largest S on the two finest grids.
    """
    if b == 0:
        return np.zeros(ANGLES // 2)
    count = ANGLES * 2 ** max(0, math.ceil(math.log2(b / 4)))
    before = _powers_on_grid(b, d_k, count // 2, 1.4)
    for finer in (1, 2, 4):
        powers = _powers_on_grid(b, d_k, count * finer, finer**-0.5)
        changes = powers[: len(before)] - before
        if max(np.abs(changes).max(), abs(powers.sum() - before.sum())) <= 1e-8 * powers.max():
            return powers
        before = powers
    raise NotAccurate("its integral over the weights is not accurate to 1e-8.")


def _powers_on_grid(b: float, d_k: int, count: int, width: float) -> np.ndarray:
    """S_k from `count` queries on half the circle, integrated over the weights with gaps in proportion to `width`."""
    zeta, share, log_w, density = _ellipses(d_k, width)
    turn = np.exp(1j * np.pi * np.arange(count) / count)
    size = b / math.sqrt(d_k) * np.exp(log_w[:, None] / 2)
    powers = np.zeros(count)
    for angle, part, column in zip(np.pi / 4 - zeta, share, density.T, strict=True):
        image = math.cos(angle) * turn + math.sin(angle) * turn.conj()
        length = np.maximum(np.abs(image), 1e-300)  # of one query it may be 0
        kappa = size * length
        means = i1e(kappa) / i0e(kappa) * (image / length / turn)  # without one turn: odd degrees become all degrees
        powers += part * (column @ np.abs(np.fft.fft(means, axis=1) / count) ** 2)
    return (powers + powers[::-1])[: count // 2] / 2


def _ellipses(d_k: int, width: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The distribution of |P|^2 = W cos^2(pi/4 - zeta) and |Q'|^2 = W sin^2(pi/4 - zeta) for b^2 = d_k.

    Given V and c, p = W/V has the density p sin(2w)/(1-c^2) exp(-p/(1-c^2)) I_0(c p sin(2w)/(1-c^2)), w = pi/4 - zeta.
    1 - c^2 = U^{2/(d_k-1)} for a uniform number U. Its sum over c has a logarithm at zeta = 0, hence fifth powers.
    The logarithms of p and V have equal gaps, for which sums converge like those of periodic functions.

    Returns:
        zeta, its masses, log W and the conditional masses of log W, one column for each zeta.
    """
    gap = width * min(0.25, 0.35 / math.sqrt(d_k))
    low = -40.0 if d_k == 1 else -20.0  # smaller ones weigh e^low, or e^(2 low) for d_k > 1
    x = gap * np.arange(math.floor(low / gap), math.ceil(4.7 / gap) + 1)
    smallest_log, largest_log = np.log(gammaincinv(d_k, 1e-17)), np.log(gammainccinv(d_k, 1e-17))
    log_v = gap * np.arange(math.floor(max(smallest_log, low) / gap), math.ceil(largest_log / gap) + 1)
    if d_k == 1:  # Q^T K has rank one: |P| = |Q'|, and |P|^2/V is exponential
        zeta, share = np.zeros(1), np.ones(1)
        table = (np.exp(x - np.exp(x) / 2) / 2)[:, None]
    else:
        nodes, weights = np.polynomial.legendre.leggauss(round(40 / width))
        t = (1 + nodes) / 2
        zeta, share = np.pi / 4 * t**5, weights * t**4
        table = _sizes(x[:, None], zeta, d_k)
    mass_v = np.exp(d_k * (log_v - math.log(d_k)) - np.exp(log_v) + d_k)
    summed = np.apply_along_axis(np.convolve, 0, table, mass_v / mass_v.sum())
    total = share @ summed.sum(axis=0)
    return zeta, share / total, x[0] + log_v[0] + gap * np.arange(len(summed)), summed


def _sizes(log_p: np.ndarray, zeta: np.ndarray, d_k: int) -> np.ndarray:
    """The density of log p and zeta, summed over the coherence c by the double exponential rule in U."""
    p, density = np.exp(log_p), np.zeros((len(log_p), len(zeta)))
    for t in 0.125 * np.arange(-30, 31):
        arm = math.pi / 2 * math.sinh(t)
        log_u = -math.log1p(math.exp(-2 * arm)) if arm > -300 else 2 * arm
        weight = math.cosh(t) / math.cosh(arm) ** 2
        defect = math.exp(2 / (d_k - 1) * log_u)
        c = math.sqrt(-math.expm1(2 / (d_k - 1) * log_u))
        inner = defect / (1 + c) + 2 * c * np.sin(zeta) ** 2  # 1 - c cos(2 zeta)
        cosine = np.cos(2 * zeta)
        density += weight * p * p * cosine / defect * np.exp(-p * inner / defect) * i0e(c * p * cosine / defect)
    return density
