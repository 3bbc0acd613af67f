"""Errors of the limits of random layers: how far a network of finite steps is from its equation, in the mean."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, hyp1f1

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_dimension, checked_integer, checked_reals


class LayerError(NamedTuple):
    """E R = R(ODE) + eta (euler + noise/H) + O(eta^2)."""

    euler: np.ndarray
    noise: np.ndarray


def single_token_overlap(step: ArrayLike, time: ArrayLike, *, d: int) -> np.ndarray:
    """E <x_L, x_0> of one token after L = time/step random layers, E V = 0, step = eta^2/H on the canonical clock.

    Exact: rho^L with rho = Gamma((d+1)/2)/(sqrt(2) Gamma(d/2+1)) k 1F1(1/2; d/2+1; -k^2/2), k^2 = d/step, the mean
    cosine of a unit vector and itself plus a Gaussian one. One token sees itself alone, so that attention does not
    matter. Layers x <- N(x + (eta/H) sum_h V_h x), entries of V_h of variance 1/d (derived here; the limit is
    arXiv:2604.01978). step > 0 and time >= 0 broadcast, d >= 2.
    """
    h, tau, d = checked_reals("step", step, 0.0), checked_reals("time", time, 0.0), checked_dimension(d)
    if (h == 0).any():
        raise InvalidInput(f"step is {step!r}; it must be positive: single_token_limit is the limit of small steps.")
    k = np.sqrt(d / h)
    log_scale = gammaln((d + 1) / 2) - gammaln(d / 2 + 1) - np.log(2) / 2
    cosine = np.exp(log_scale) * k * hyp1f1(0.5, d / 2 + 1, -(k**2) / 2)
    return np.asarray(cosine ** (tau / h))


def single_token_limit(time: ArrayLike, *, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The limit e^{-(d-1) time/(2d)} of `single_token_overlap` for small steps, and its derivative in the step.

    The derivative is the limit times time (d-1)(d-4)/(4 d^2): the error halves with the step (weak order 1), is
    negative for d < 4, positive for d > 4, and of second order at d = 4. Derived here.
    """
    tau, d = checked_reals("time", time, 0.0), checked_dimension(d)
    limit = np.exp(-(d - 1) * tau / (2 * d))
    return np.asarray(limit), np.asarray(limit * tau * (d - 1) * (d - 4) / (4 * d**2))


def pair_layer_error(time: ArrayLike, overlap: float, v: float, *, d: int) -> LayerError:
    """First error of the mean overlap of two tokens under uniform attention (b = 0) and E V = v I, at time = eta L.

    The overlap follows R = tanh(zeta), zeta = artanh(overlap) + v time, up to eta (euler + noise/H), with
    euler = -(v^2 time/2) sech^2 zeta and noise = sech^2 zeta (((d-2) time + log(cosh zeta/cosh zeta_0)/v)/(2d) -
    (time/d) tanh zeta). Layers as in `single_token_overlap`, with the steps eta. Derived here. v > 0, |overlap| < 1.
    """
    t, d = checked_reals("time", time, 0.0), checked_dimension(d)
    if not (abs(overlap) < 1 and v > 0 and np.isfinite(v)):
        raise InvalidInput(f"overlap is {overlap!r} and v is {v!r}; give |overlap| < 1 and a positive v.")
    first = np.arctanh(overlap)
    zeta = first + v * t
    steep = np.cosh(zeta) ** -2.0
    grown = np.logaddexp(zeta, -zeta) - np.logaddexp(first, -first)
    noise = steep * (((d - 2) * t + grown / v) / (2 * d) - t / d * np.tanh(zeta))
    return LayerError(np.asarray(-(v**2) * t / 2 * steep), np.asarray(noise))


def consensus_fluctuation(eigenvalues: ArrayLike, step: float, *, heads: int = 1) -> np.ndarray:
    """Variance of the components of the consensus along e_2, ..., e_d, for E V = diag(eigenvalues), largest first.

    One token, or the consensus of many, follows x' = P_x D x, power iteration, to +-e_1. Layers of size eta = `step`
    fluctuate around it with the variance (eta/(d H))/(2 (l_1 - l_k) + eta (l_1^2 - l_k^2)), to first order in eta. The
    relative modes of many tokens decay at l_1, the consensus at l_1 - l_k. Derived here. l_1 > l_k, l_1 > 0.
    """
    values, eta = checked_reals("eigenvalues", eigenvalues, -np.inf), float(checked_reals("step", step, 0.0))
    count = checked_integer("heads", heads, 1)
    if values.ndim != 1 or len(values) < 2 or values[0] <= max(values[1:].max(), 0):
        raise InvalidInput(f"eigenvalues is {eigenvalues!r}; give two or more, the first the largest and positive.")
    first, rest = values[0], values[1:]
    return np.asarray(eta / (len(values) * count) / (2 * (first - rest) + eta * (first**2 - rest**2)))
