"""Places: modes of rotary attention on the circle, and words whose tokens carry orthogonal places."""

import numpy as np

from attnflow.special.curves import curve
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.theory.uniform.kernel import log_ratios, ratios
from attnflow.theory.uniform.spectrum import DEGREES, GROWING

ONE_BETA = Reals(0.0, 1e300, scalar=True)


@formula(beta=ONE_BETA, k=GROWING, relative="2e-15 * (2 + np.sqrt(k))")
def rotary_growth_rates(beta: float, *, k: ArrayLike) -> np.ndarray:
    """Growth rate of the place-correlated mode of degree k on the uniform measure: (k/2) I_{k-1}(beta)/I_0(beta).

    Softmax attention on the circle with the logits beta cos(theta_i - theta_j + omega (p_i - p_j)), values not rotated;
    places p uniform on [0, L] with omega L a multiple of 2 pi, or in the limit omega L -> infinity. The mode is
    cos(k theta + (k-1) omega p). Averages over the places do not see it for k >= 2, and the place-averaged kernel,
    whose only growing mode is k = 1, does not predict it. The largest rate is about sqrt(beta)/(2 sqrt e) and has no
    bound, where it is at most 2/e without rotary encoding. Derived here.
    """
    quotients = np.cumprod(ratios(0.0, np.asarray(beta), int(np.max(k, initial=1))))
    return np.asarray(k / 2 * np.concatenate([[1.0], quotients])[k - 1])


@formula(beta=ONE_BETA, q=DEGREES, relative=2e-14)
def rotary_consensus_rates(beta: float, *, q: ArrayLike) -> np.ndarray:
    """Rates -(1 - I_q(beta)/I_0(beta)) at which deviations theta_i = eps cos(q omega p_i) from consensus fall.

    Model and conditions as in `rotary_growth_rates`. q = 0 is a rotation of all tokens; the slowest is q = 1, with the
    gap 1 - I_1/I_0, about 1/(2 beta); without rotary encoding all fall at the rate 1. Derived here.
    """
    falls = np.cumsum(log_ratios(0.0, np.asarray(beta), max(int(np.max(q, initial=1)), 1)))
    return np.asarray(np.expm1(-np.concatenate([[0.0], falls])[q]))


@formula(
    t=Reals(0.0, 1e100),
    beta=Reals(0.0, 1e4, scalar=True),
    size=Reals(0.0, 1e150, scalar=True),
    words=Integers(2, 10**9, scalar=True),
    copies=Integers(1, 10**9, scalar=True),
    absolute=2e-9,
)
def placed_overlaps(
    t: ArrayLike, beta: float, size: float, *, words: int, copies: int
) -> tuple[np.ndarray, np.ndarray]:
    """Overlaps (a, b) at times t of tokens of one word and of different words, x = N(word + size place), SA.

    Words and places are orthonormal, every token has a place of its own, and there are `words` times `copies` tokens.
    a(0) = 1/(1 + size^2), b(0) = 0. With e_a = e^(-beta (1-a)), e_b likewise and Z = 1 + (r-1) e_a + (K-1) r e_b:
    a' = (2/Z)(1-a)[e_a (1 + (r-1) a) + (K-1) r e_b b],
    b' = (2/Z)[(r-1) e_a b (1-a) + e_b (1 - b^2 + (r-1)(a - b^2) + (K-2) r b (1-b))].
    Exact for these tokens, by symmetry; derived here. Places delay the gathering of copies, by the exponent
    beta size^2/(1 + size^2), and advance the merging of words. log(1-a) and log(1-b) are integrated, which remain
    smooth where tokens merge.

    Arguments:
        t: times, in any order.
        beta: inverse temperature.
        size: length of a place beside that of a word.
        words: number K of words.
        copies: number r of tokens of each word.

    Raises:
        NotAccurate: if tokens gather after a wait so long that the overlaps depend on its last digits.
    """
    overlap0, gap0 = 1 / (1 + size**2), size**2 / (1 + size**2)

    def overlaps(y: np.ndarray) -> np.ndarray:
        """a and b from log((1-a)/(1-a(0))) and log(1-b)."""
        falls = np.expm1(y)
        return np.array([overlap0 - gap0 * falls[0], -falls[1]])

    def slopes(_: float, y: np.ndarray) -> np.ndarray:
        a, b = overlaps(y)
        gaps = np.exp(y) * [gap0, 1.0]
        near, far = np.exp(-beta * gaps)
        # (1-a)/(1-b) <= 1 up to rounding: tokens of one word are closer
        quotient = gap0 * np.exp(min(y[0] - y[1], 500.0))
        z = (1 + (copies - 1) * near + (words - 1.0) * copies * far) / 2
        within = near * (1 + (copies - 1) * a) + (words - 1.0) * copies * far * b
        across = (copies - 1) * near * b * quotient + far * (
            copies * (1 + b) - (copies - 1) * quotient + (words - 2.0) * copies * b
        )
        return -np.array([within, across]) / z

    times, order = np.unique(t, return_inverse=True)
    with np.errstate(all="ignore"):  # a step of the solver that is too long is taken back
        logs = curve(slopes, [0.0, 0.0], [0.0, *times], rtol=1e-9, atol=1e-9)[:, 1:]
    a, b = overlaps(logs[:, order.ravel()])
    return a.reshape(t.shape), b.reshape(t.shape)
