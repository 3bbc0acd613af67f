"""Errors of the limits of random layers: how far a network of finite steps is from its equation, in the mean."""

from typing import NamedTuple

import numpy as np
from scipy.special import erfc

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.integrals import integral
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.random_layers._domains import TIME

DIMENSION = Integers(2, scalar=True)
REACH = 7.5
"""e^(-w^2) is integrated up to here: what lies beyond is 1e-25 of the integral."""
SMALLEST_STEP = 1e-30
"""Below, the decay per unit of time is that of the limit to rounding."""


class LayerError(NamedTuple):
    """E R = R(ODE) + eta (euler + noise/H) + O(eta^2)."""

    euler: Numbers
    noise: Numbers


@formula(step=Reals(0.0, ends="right"), time=TIME, d=DIMENSION, relative="1e-14 * (1 + np.minimum(time, 1500))")
def single_token_overlap(step: ArrayLike, time: ArrayLike, *, d: int) -> Numbers:
    """E <x_L, x_0> of one token after L = time/step random layers, E V = 0, step = eta^2/H on the canonical clock.

    Exact: rho^L with the mean cosine rho of a unit vector and itself plus a Gaussian one,

        rho = (2/sqrt(pi)) int_0^W (1 - w^2/W^2)^{(d-1)/2} e^{-w^2} dw,    W^2 = d/(2 step).

    From 1/|y| as an integral over e^{-u^2 |y|^2}; for small steps 1 - rho is integrated, so that log rho keeps its
    digits. One token sees itself alone, so that attention does not matter. Layers x <- N(x + (eta/H) sum_h V_h x),
    entries of V_h of variance 1/d (derived here; the limit is arXiv:2604.01978).

    Arguments:
        step: eta^2/H; `single_token_limit` is the limit of small steps.
        time: step times the number of layers.
        d: dimension of the token.
    """
    h = np.maximum(step, SMALLEST_STEP)
    widths, power = np.sqrt(d / (2 * h)), (d - 1) / 2

    def lost(w: np.ndarray, width: np.ndarray) -> Numbers:
        """The integrand of 1 - rho."""
        return -np.expm1(power * np.log1p(-np.minimum((w / width) ** 2, 1.0))) * np.exp(-w * w)

    def kept(v: np.ndarray, width: np.ndarray, end: np.ndarray) -> Numbers:
        """The integrand of rho in units of its own width: v = w end/width."""
        return np.exp(power * np.log1p(-np.minimum((v / end) ** 2, 1.0)) - (v * width / end) ** 2)

    short = h <= 1
    narrow = np.where(short, widths, 1.0)
    with np.errstate(divide="ignore"):
        defect = integral(lost, 0.0, np.minimum(narrow, REACH), narrow) * 2 / np.sqrt(np.pi) + erfc(narrow)
        wide = np.where(short, 1.0, widths)
        ends = np.hypot(wide, np.sqrt(power))
        cosine = integral(kept, 0.0, np.minimum(ends, REACH), wide, ends) * 2 / np.sqrt(np.pi) * wide / ends
        log_cosine = np.where(short, np.log1p(-np.where(short, defect, 0.0)), np.log(cosine))
        return np.exp(log_cosine / h * time)


@formula(time=TIME, d=DIMENSION, relative="1e-15 * (1 + np.minimum(time, 1500))")
def single_token_limit(time: ArrayLike, *, d: int) -> tuple[Numbers, Numbers]:
    """The limit e^{-(d-1) time/(2d)} of `single_token_overlap` for small steps, and its derivative in the step.

    The derivative is the limit times time (d-1)(d-4)/(4 d^2): the error halves with the step (weak order 1), is
    negative for d < 4, positive for d > 4, and of second order at d = 4. Derived here.
    """
    rate = (d - 1) / d / 2
    limit = np.exp(-rate * time)
    return limit, limit * time * (rate * ((d - 4) / d) / 2)


@formula(
    time=Reals(0.0, 1e100),
    overlap=Reals(-1.0, 1.0, ends="none", scalar=True),
    v=Reals(0.0, 1e100, ends="right", scalar=True),
    d=DIMENSION,
    relative="1e-14 * (1 + np.minimum(v * time, 400))",
    absolute="4e-15 * time / np.cosh(np.minimum(np.arctanh(overlap) + v * time, 350)) ** 2",
)
def pair_layer_error(time: ArrayLike, overlap: float, v: float, *, d: int) -> LayerError:
    """First error of the mean overlap of two tokens under uniform attention (b = 0) and E V = v I, at time = eta L.

    The overlap follows R = tanh(zeta), zeta = artanh(overlap) + v time, up to eta (euler + noise/H), with
    euler = -(v^2 time/2) sech^2 zeta and noise = (time/2d) sech^2 zeta (d - 2 + G - 2 tanh zeta), G the mean of
    tanh from artanh(overlap) to zeta. Layers as in `single_token_overlap`, with the steps eta. Derived here.

    Arguments:
        time: eta times the number of layers.
        overlap: overlap at time 0.
        v: mean value, positive.
        d: dimension of the tokens.
    """
    way = v * time
    fall = np.exp(-2 * way)
    # cosh(zeta) = e^way base cosh(artanh(overlap)), without the difference of two large numbers
    base = (1 + overlap) / 2 + (1 - overlap) / 2 * fall
    steep = (1 - overlap) * (1 + overlap) * fall / base**2
    short = np.clip(way, 1e-30, 1.0)  # the mean over a shorter way is tanh at its start to rounding
    near = np.log1p(2 * np.sinh(short / 2) ** 2 + overlap * np.sinh(short)) / short
    mean = np.where(way < 1, near, 1 + np.log(base) / np.maximum(way, 1.0))
    rise = np.tanh(way)
    end = np.where(way < 1, (overlap + rise) / (1 + overlap * rise), 1 - (1 - overlap) * fall / base)
    return LayerError(-way * v / 2 * steep, time / d / 2 * steep * (d - 2 + mean - 2 * end))


@formula(
    eigenvalues=Reals(-1e100, 1e100),
    step=Reals(0.0, 1e100, scalar=True),
    heads=Integers(1, scalar=True),
    relative=2e-15,
)
def consensus_fluctuation(eigenvalues: ArrayLike, step: float, *, heads: int = 1) -> Numbers:
    """Variance of the components of the consensus along e_2, ..., e_d, for E V = diag(eigenvalues), largest first.

    One token, or the consensus of many, follows x' = P_x D x, power iteration, to +-e_1. Layers of size eta = `step`
    fluctuate around it with the variance (eta/(d H))/((l_1 - l_k) (2 + eta (l_1 + l_k))), to first order in eta. The
    relative modes of many tokens decay at l_1, the consensus at l_1 - l_k. Derived here.

    Arguments:
        eigenvalues: l_1 > l_2, ..., l_d; l_1 positive, and eta (l_1 + l_k) at least -1.
        step: eta.
        heads: number of heads H.
    """
    if eigenvalues.ndim != 1 or len(eigenvalues) < 2 or eigenvalues[0] <= max(eigenvalues[1:].max(), 0):
        raise InvalidInput(f"`eigenvalues` is {eigenvalues!r}; give two or more, the first the largest and positive.")
    first, others = eigenvalues[0], eigenvalues[1:]
    damping = 2 + step * (first + others)
    if (damping < 1).any():
        raise InvalidInput(f"`step` is {step!r}; steps so long along negative eigenvalues do not end at +-e_1.")
    return step / len(eigenvalues) / heads / (first - others) / damping
