"""Densities on the circle under the common noise of random layers.

Given the weights of a network, every token is moved by one map, so that the density of the tokens is carried along and
does not diffuse. At infinite temperature (b = 0) it stays a Poisson kernel with a moving mean w; from the uniform start
the powers of its modes grow in proportion to tau = step^2 L/H. Ours, in the setting of arXiv:2604.01978; d = 2.
"""

import functools
import math

import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.linalg import expm_multiply
from scipy.special import i0e, i1e

from attnflow.errors import InvalidInput
from attnflow.special.formula import Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.checks import checked_degrees, checked_integers, checked_reals

STENCIL = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
"""The second derivative on nine equidistant points, to order 8."""
SLOPES = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""The first derivative on the same points."""
ANGLES = 128
"""Points of half the circle on which softmax means are Fourier transformed, for b <= 4."""


@formula(u0=Reals(0.0, 1.0, ends="right"), relative=4e-16)
def poisson_log_order(u0: ArrayLike) -> Numbers:
    """E log u(tau) = log u_0 for every tau: the logarithm of the order parameter u = |w|^2 is a martingale.

    d = 2 and b = 0, where du = u (1-u)^2/4 dtau + u (1-u) dB/sqrt(2) and d log u = (1-u) dB/sqrt(2) in the sense of
    Ito, while u tends to 1 on almost every path. Ours.

    Arguments:
        u0: the order parameter at tau = 0.
    """
    return np.log(u0)


def poisson_order_mean(u0: ArrayLike, tau: ArrayLike) -> np.ndarray:
    """E u(tau) for the order parameter u = |w|^2 of the moving Poisson kernel, from u0 at tau = 0; d = 2, b = 0.

    y = log(u/(1-u)) has dy = (u/4) dtau + dB/sqrt(2), so that E u solves the backward equation
    V_tau = (V_yy + u V_y)/4 from V = u. Differences of order 8 on a window nine deviations wide, and the exponential of
    their matrix: 1e-9. The work grows like tau^{3/2}: a second at tau = 200. Ours. 0 <= u0 <= 1, tau >= 0 broadcast.
    """
    u0, tau = np.broadcast_arrays(_order(u0), checked_reals("tau", tau, 0.0))
    found = [_order_mean(float(one), float(time)) for one, time in zip(u0.ravel(), tau.ravel(), strict=True)]
    return np.reshape(np.array(found), u0.shape)


def uniform_start_power(k: int, b: float, *, d_k: int = 2) -> float:
    """E |c_k|^2/tau for the k-th Fourier coefficient of the density from the uniform start, to first order in tau.

    (k^2/4) (S_{k-1} + S_{k+1}), where S_k are the coefficients (1/2 pi) int s(phi) cos(k phi) dphi of
    s(phi) = E <m(0), m(phi)> (`uniform_products`). 0 for odd k: the density stays antipodally symmetric on every path,
    so that it can end in antipodal pairs, not in consensus. d = 2, k >= 1, b >= 0, d_k >= 1 rows of Q and K. Ours.
    """
    degree = checked_degrees(k, 1)
    if degree.ndim or degree > ANGLES // 2:
        raise InvalidInput(f"k is {k!r}; it must be one degree, from 1 to {ANGLES // 2}.")
    powers = _powers(float(checked_reals("b", b, 0.0)), _rows(d_k))
    half = int(degree) // 2
    return 0.0 if degree % 2 else float(half**2 * (powers[half - 1] + powers[half]))


def uniform_products(angle: ArrayLike, b: float, *, d_k: int = 2) -> np.ndarray:
    """s(phi) = E <m(0), m(phi)> for the softmax means m of two queries at angle phi over uniform keys; d = 2.

    m(x) = r(|a|) a/|a| with a = M x, M = (b/sqrt(d_k)) Q^T K and r = I_1/I_0. As a map of the plane of complex numbers,
    M z = P z + Q' conj(z); given V ~ Gamma(d_k) and c^2 ~ Beta(1, (d_k-1)/2), P and Q' are complex Gaussian numbers of
    variance V b^2/d_k and coherence c. Quadrature over |P|, |Q'| and c, 1e-7. s(0) = A of `attention_moments`. Ours.
    """
    phi = checked_reals("angle", angle, -math.inf)
    powers = _powers(float(checked_reals("b", b, 0.0)), _rows(d_k))
    k = 1 + 2 * np.arange(len(powers))
    return np.asarray(2 * np.cos(phi[..., None] * k) @ powers)


def _order_mean(u0: float, tau: float) -> float:
    if u0 in (0.0, 1.0) or tau == 0:
        return u0
    gap, spread = 0.2, math.sqrt(tau / 2)
    place = math.log(u0) - math.log1p(-u0)
    below, above = math.ceil(9 * spread / gap) + 8, math.ceil((9 * spread + tau / 4) / gap) + 8
    y = place + gap * np.arange(-below, above + 1)
    u = 1 / (1 + np.exp(-y))
    offsets = range(-4, 5)
    bands = [
        (second / gap**2 + u * first / gap)[max(0, -k) : len(y) - max(0, k)] / 4
        for k, second, first in zip(offsets, STENCIL, SLOPES, strict=True)
    ]
    generator = diags_array(bands, offsets=list(offsets)).tolil()
    generator[:4] = generator[-4:] = 0  # nine deviations away nothing has happened yet
    return float(expm_multiply(tau * generator.tocsr(), u)[below])


@functools.lru_cache(maxsize=64)
def _powers(b: float, d_k: int) -> np.ndarray:
    """S_k for odd k = 1, 3, ...: E(|z_k|^2 + |z_{-k}|^2)/2 for the Fourier coefficients z_k of m, an odd map."""
    if b == 0:
        return np.zeros(ANGLES // 2)
    zeta, share, log_w, density = _ellipses(d_k)
    count = ANGLES * 2 ** max(0, min(4, math.ceil(math.log2(b / 4))))
    turn = np.exp(1j * np.pi * np.arange(count) / count)
    size = b / math.sqrt(d_k) * np.exp(log_w[:, None] / 2)
    found = np.zeros(count)
    for angle, part, column in zip(np.pi / 4 - zeta, share, density.T, strict=True):
        image = math.cos(angle) * turn + math.sin(angle) * turn.conj()
        length = np.abs(image)
        kappa = size * length
        means = i1e(kappa) / i0e(kappa) * (image / length / turn)  # without one turn: odd degrees become all degrees
        found += part * (column @ np.abs(np.fft.fft(means, axis=1) / count) ** 2)
    return (found + found[::-1])[: count // 2] / 2


@functools.lru_cache(maxsize=64)
def _ellipses(d_k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The distribution of |P|^2 = W cos^2(pi/4 - zeta) and |Q'|^2 = W sin^2(pi/4 - zeta) for b^2 = d_k.

    Given V and c, p = W/V has the density p sin(2w)/(1-c^2) exp(-p/(1-c^2)) I_0(c p sin(2w)/(1-c^2)), w = pi/4 - zeta.
    1 - c^2 = U^{2/(d_k-1)} for a uniform number U. Its sum over c has a logarithm at zeta = 0, hence fifth powers.
    Returns zeta, its masses, log W and the conditional masses of log W, one column for each zeta.
    """
    gap = min(0.25, 0.35 / math.sqrt(d_k))
    x = gap * np.arange(math.floor(-20 / gap), math.ceil(4.7 / gap) + 1)
    log_v = gap * np.arange(math.floor(min(-45 / d_k, 0.0) / gap) - 2, math.ceil(math.log(60 + 9 * d_k**0.5) / gap) + 1)
    log_v = log_v + (round(math.log(d_k) / gap) * gap if d_k > 8 else 0.0)
    if d_k == 1:  # Q^T K has rank one: |P| = |Q'|, and |P|^2/V is exponential
        zeta, share = np.zeros(1), np.ones(1)
        table = (np.exp(x - np.exp(x) / 2) / 2)[:, None]
    else:
        nodes, weights = np.polynomial.legendre.leggauss(40)
        t = (1 + nodes) / 2
        zeta, share = np.pi / 4 * t**5, weights * t**4
        table = _sizes(x[:, None], zeta, d_k)
    mass_v = np.exp(d_k * log_v - np.exp(log_v))
    summed = np.apply_along_axis(np.convolve, 0, table, mass_v / mass_v.sum())
    total = share @ summed.sum(axis=0)
    return zeta, share / total, x[0] + log_v[0] + gap * np.arange(len(summed)), summed


def _sizes(log_p: np.ndarray, zeta: np.ndarray, d_k: int) -> np.ndarray:
    """The density of log p and zeta, summed over the coherence c by the double exponential rule in U."""
    p, found = np.exp(log_p), np.zeros((len(log_p), len(zeta)))
    for t in 0.125 * np.arange(-30, 31):
        arm = math.pi / 2 * math.sinh(t)
        log_u = -math.log1p(math.exp(-2 * arm)) if arm > -300 else 2 * arm
        weight = math.cosh(t) / math.cosh(arm) ** 2
        defect = math.exp(2 / (d_k - 1) * log_u)
        c = math.sqrt(-math.expm1(2 / (d_k - 1) * log_u))
        inner = defect / (1 + c) + 2 * c * np.sin(zeta) ** 2  # 1 - c cos(2 zeta)
        cosine = np.cos(2 * zeta)
        found += weight * p * p * cosine / defect * np.exp(-p * inner / defect) * i0e(c * p * cosine / defect)
    return found


def _rows(d_k: int) -> int:
    found = checked_integers("d_k", d_k, 1)
    if found.ndim:
        raise InvalidInput(f"d_k is {d_k!r}; it must be one integer, at least 1.")
    return int(found)


def _order(u0: ArrayLike) -> np.ndarray:
    found = checked_reals("u0", u0, 0.0)
    if (found > 1).any():
        raise InvalidInput(f"u0 is {u0!r}; an order parameter is a number from 0 to 1.")
    return found
