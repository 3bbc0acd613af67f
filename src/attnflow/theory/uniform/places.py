"""Places: modes of rotary attention on the circle, and words whose tokens carry orthogonal places."""

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.special import bessel_ratios
from attnflow.theory.checks import checked_beta, checked_degrees, checked_integer, checked_reals


def rotary_growth_rates(beta: float, *, k: ArrayLike) -> np.ndarray:
    """Growth rate of the place-correlated mode of degree k on the uniform measure: (k/2) I_{k-1}(beta)/I_0(beta).

    Softmax attention on the circle with the logits beta cos(theta_i - theta_j + omega (p_i - p_j)), values not rotated;
    places p uniform on [0, L] with omega L a multiple of 2 pi, or in the limit omega L -> infinity. The mode is
    cos(k theta + (k-1) omega p). Averages over the places do not see it for k >= 2, and the place-averaged kernel,
    whose only growing mode is k = 1, does not predict it. The largest rate is about sqrt(beta)/(2 sqrt e) and has no
    bound, where it is at most 2/e without rotary encoding. Derived here.
    """
    b, degrees = checked_beta(beta), checked_degrees(k, 1)
    if b.ndim:
        raise InvalidInput(f"beta is {beta!r}; it must be one number.")
    return np.asarray(degrees / 2 * _quotients(float(b), int(np.max(degrees, initial=1)))[degrees - 1])


def rotary_consensus_rates(beta: float, *, q: ArrayLike) -> np.ndarray:
    """Rates -(1 - I_q(beta)/I_0(beta)) at which deviations theta_i = eps cos(q omega p_i) from consensus fall.

    Model and conditions as in `rotary_growth_rates`. q = 0 is a rotation of all tokens; the slowest is q = 1, with the
    gap 1 - I_1/I_0, about 1/(2 beta); without rotary encoding all fall at the rate 1. Derived here.
    """
    b, orders = checked_beta(beta), checked_degrees(q, 0)
    if b.ndim:
        raise InvalidInput(f"beta is {beta!r}; it must be one number.")
    return np.asarray(_quotients(float(b), int(np.max(orders, initial=0)) + 1)[orders] - 1)


def placed_overlaps(
    t: ArrayLike, beta: float, size: float, *, words: int, copies: int
) -> tuple[np.ndarray, np.ndarray]:
    """Overlaps (a, b) at times t of tokens of one word and of different words, x = N(word + size place), SA.

    Words and places are orthonormal, every token has a place of its own, and there are `words` times `copies` tokens.
    a(0) = 1/(1 + size^2), b(0) = 0. With e_a = e^(-beta (1-a)), e_b likewise and Z = 1 + (r-1) e_a + (K-1) r e_b:
    a' = (2/Z)(1-a)[e_a (1 + (r-1) a) + (K-1) r e_b b],
    b' = (2/Z)[(r-1) e_a b (1-a) + e_b (1 - b^2 + (r-1)(a - b^2) + (K-2) r b (1-b))].
    Exact for these tokens, by symmetry; derived here. Places delay the gathering of copies, by the exponent
    beta size^2/(1 + size^2), and advance the merging of words. Integrated with relative steps of 1e-12.
    """
    from scipy.integrate import solve_ivp

    times = checked_reals("t", t, 0.0)
    b, s = float(checked_beta(beta)), float(checked_reals("size", size, 0.0))
    count, r = checked_integer("words", words, 2), checked_integer("copies", copies, 1)

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        one, two = y
        near, far = np.exp(-b * (1 - one)), np.exp(-b * (1 - two))
        total = 1 + (r - 1) * near + (count - 1) * r * far
        inside = near * (1 + (r - 1) * one) + (count - 1) * r * far * two
        across = (1 - two**2) + (r - 1) * (one - two**2) + (count - 2) * r * two * (1 - two)
        return np.array([2 * (1 - one) * inside / total, 2 * ((r - 1) * near * two * (1 - one) + far * across) / total])

    flat = np.ravel(times)
    order, end = np.argsort(flat), float(np.max(flat, initial=0.0))
    start = [1 / (1 + s**2), 0.0]
    if end == 0.0:
        return np.full(times.shape, start[0]), np.full(times.shape, start[1])
    found = solve_ivp(rates, (0.0, end), start, method="DOP853", t_eval=flat[order], rtol=1e-12, atol=1e-14).y
    back = np.empty_like(found)
    back[:, order] = found
    return back[0].reshape(times.shape), back[1].reshape(times.shape)


def _quotients(beta: float, count: int) -> np.ndarray:
    """I_0/I_0, I_1/I_0, ..., I_count/I_0."""
    return np.concatenate([[1.0], np.cumprod(np.asarray(bessel_ratios(0.0, beta, count)).ravel())])
