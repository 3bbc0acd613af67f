"""Many layers with random weights: their time, their regimes, and how overlaps move.

A layer is x_i <- N(x_i + (step/H) sum_h V_h m_h(x_i)), N(x) = x/|x|, where m_h is the softmax mean of the tokens with
logits beta <Q x_i, K x_j>. Weights are independent over H heads and L layers; V has entries of variance 1/d, and Q and
K have d_k rows of entries with variances sigma_q^2 and sigma_k^2. The layers then act as a diffusion in the time
tau = step^2 L/H, with one noise for all tokens (arXiv:2604.01978).
"""

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_reals

SMALL = 0.1
"""Times below this move tokens by too little to matter."""
COARSE = 0.25
"""Above this variance of one layer, step^2/H, layers are no longer close to a diffusion."""


@dataclasses.dataclass(frozen=True)
class Regime:
    """Which limit describes many layers at initialisation."""

    regime: str
    """"frozen", "diffusive", "ballistic", "modified" or "discrete"."""
    time: float
    """tau = step^2 layers/heads: the variance that the noise has brought."""
    drift_time: float
    """|mean value| step layers: the time of the deterministic flow."""
    error: float
    """The scale of the error of the limit, without its constant."""
    statement: str


def canonical_time(step: ArrayLike, *, layers: ArrayLike, heads: ArrayLike) -> Numbers:
    """tau = step^2 layers/heads, the time of the diffusion that the layers become (arXiv:2604.01978).

    For V with entries of variance 1/d and heads that are averaged; heads divided by sqrt(H) have tau = step^2 layers,
    which is heads = 1 here. step >= 0, layers >= 0, heads >= 1 broadcast.
    """
    step, layers, heads = (
        checked_reals("step", step, 0.0),
        checked_reals("layers", layers, 0.0),
        checked_reals("heads", heads, 1.0),
    )
    return step * step * layers / heads


def regime(step: float, *, layers: float, heads: float, mean_value: float = 0.0) -> Regime:
    """The regime of `layers` layers with `heads` heads whose values have mean E V = mean_value I (arXiv:2604.01978).

    With tau = step^2 L/H, t = |mean_value| step L and alpha = step/H:

        frozen      tau and t below 0.1: the identity map
        diffusive   tau at least 0.1: a common-noise SDE. error = step^2/H for mean_value = 0 (ours, measured), else
                    step (step L + 1) max(step, alpha)
        ballistic   tau and mean_value^2 step^2 L below 0.1: the ODE x_i' = P_{x_i} E B; error = (step L + 1)
                    max(step, alpha) (the rate printed there has one factor of step more, which fails off the grid)
        modified    tau and |mean_value|^3 step^3 L below 0.1: the ODE with its drift corrected by -(step/2) grad_b b
        discrete    step^2/H above 0.25, or none of these: layers are far from every limit

    The limits are asymptotic; the numbers 0.1 and 0.25 are conventions of ours.
    """
    tau = float(canonical_time(step, layers=layers, heads=heads))
    mean = abs(float(checked_reals("mean_value", mean_value, -math.inf)))
    drift = mean * step * layers
    lag = max(step, step / heads) * (step * layers + 1)
    if step * step / heads > COARSE:
        return Regime("discrete", tau, drift, step * step / heads, "one layer moves tokens too far for a limit")
    if tau < SMALL and drift < SMALL:
        return Regime("frozen", tau, drift, max(tau, drift), "the network is close to the identity map")
    if tau >= SMALL:
        error = step * lag if mean else step * step / heads
        return Regime("diffusive", tau, drift, error, "tokens diffuse, all driven by one common noise")
    if mean * step * drift < SMALL:
        return Regime("ballistic", tau, drift, lag, "tokens follow the ODE of the mean values")
    if (mean * step) ** 2 * drift < SMALL:
        return Regime("modified", tau, drift, lag, "tokens follow the ODE with its drift corrected for the step")
    return Regime("discrete", tau, drift, lag, "steps along the mean values are too long for an ODE")


def logit_scale(beta: ArrayLike, sigma_q: ArrayLike, sigma_k: ArrayLike, *, d_k: ArrayLike) -> Numbers:
    """b = beta sigma_q sigma_k sqrt(d_k): the standard deviation of the logits of unit tokens (arXiv:2604.01978).

    beta multiplies <Q x, K y>, whose Q and K have d_k rows of independent entries of deviations sigma_q, sigma_k.
    Initialisation with variance 1/d, tokens of norm sqrt(d) and logits over sqrt(d_k) has b = 1. All broadcast.
    """
    beta, d_k = checked_reals("beta", beta, 0.0), checked_reals("d_k", d_k, 1.0)
    return beta * checked_reals("sigma_q", sigma_q, 0.0) * checked_reals("sigma_k", sigma_k, 0.0) * np.sqrt(d_k)


def overlap_drift(overlap: ArrayLike, s_ij: ArrayLike, s_ii: ArrayLike, s_jj: ArrayLike, *, d: ArrayLike) -> Numbers:
    """The drift of R = <x_i, x_j> per unit of tau: [(d-2+R^2) s_ij - (d-1) R (s_ii+s_jj)/2]/d.

    s_ij = E <m_i, m_j> is the mean over Q and K of the product of two softmax means. Exact for every number of tokens,
    d, d_k and temperature with Gaussian V (ours; arXiv:2604.01978 has the limit d -> inf). All broadcast.
    """
    r, d = _overlap(overlap), checked_reals("d", d, 2.0)
    s_ij, own = checked_reals("s_ij", s_ij, -1.0), checked_reals("s_ii", s_ii, 0.0) + checked_reals("s_jj", s_jj, 0.0)
    return ((d - 2 + r * r) * s_ij - (d - 1) * r * own / 2) / d


def overlap_variation(
    overlap: ArrayLike, s_ij: ArrayLike, s_ii: ArrayLike, s_jj: ArrayLike, *, d: ArrayLike
) -> Numbers:
    """The rate of the quadratic variation of R = <x_i, x_j>: (1-R^2) (s_ii + s_jj - 2 R s_ij)/d.

    Exact under the conditions of `overlap_drift` (ours). All broadcast.
    """
    r, d = _overlap(overlap), checked_reals("d", d, 2.0)
    s_ij, own = checked_reals("s_ij", s_ij, -1.0), checked_reals("s_ii", s_ii, 0.0) + checked_reals("s_jj", s_jj, 0.0)
    return (1 - r) * (1 + r) * (own - 2 * r * s_ij) / d


def small_logit_products(gram: ArrayLike, b: float) -> np.ndarray:
    """The matrix s_ij = E <m_i, m_j> of n unit tokens with this Gram matrix, to order b^2.

    s_ij = |xm|^2 + b^2 (R_ij tr C^2 + <xm, mean_k |x_k-xm|^2 (x_k-xm)>) + O(b^4), with the mean xm and the covariance C
    of the tokens; d_k -> inf (ours). For three tokens the error is 0.2 b^4 in the median of random ones, up to 1.4 b^4
    among 40 of them, and 1.64 b^4 for x, x and -x. b >= 0.
    """
    r = np.asarray(gram, dtype=np.float64)
    if r.ndim != 2 or r.shape[0] != r.shape[1] or not np.isfinite(r).all() or not np.allclose(r, r.T):
        raise InvalidInput(f"gram has shape {r.shape}; it must be a symmetric n x n matrix of overlaps.")
    if not np.allclose(np.diag(r), 1.0):
        raise InvalidInput(f"gram has the diagonal {np.diag(r)!r}; tokens must be unit vectors.")
    b = float(checked_reals("b", b, 0.0))
    rows = r.mean(axis=1)
    mean = rows.mean()
    centred = r - rows[:, None] - rows + mean
    skewness = np.mean(np.diag(centred) * (rows - mean))
    return mean + b * b * (r * np.sum(centred**2) / len(r) ** 2 + skewness)


def one_token_decay(tau: ArrayLike, d: ArrayLike) -> Numbers:
    """E <x(tau), x(0)> = e^{-(d-1) tau/(2d)} for one token whose softmax mean has length 1.

    One token alone, or hardmax (b = inf): x is a spherical Brownian motion (ours). tau >= 0, d >= 2 broadcast.
    """
    tau, d = checked_reals("tau", tau, 0.0), checked_reals("d", d, 2.0)
    return np.exp(-(d - 1) * tau / (2 * d))


def hot_pair_collapse_probability(overlap: ArrayLike) -> Numbers:
    """P(two tokens merge) = 1/2 + arcsin(R)/pi at infinite temperature (b = 0) on the circle, d = 2; R their overlap.

    Else they become antipodal. At b = 0 R = tanh(z) with dz = ((d-2+tanh z)/(2d)) dtau + dB/sqrt(d): for d = 3 the
    antipode is critical, and for d >= 4 tokens merge with probability 1 (ours).
    """
    return np.arccos(-_overlap(overlap)) / np.pi


def hot_mean_square(u0: ArrayLike, tau: ArrayLike) -> Numbers:
    """u = |mean token|^2 at infinite temperature (b = 0) for d -> inf: u_0/(u_0 + (1-u_0) e^{-tau}).

    The logistic equation u' = u (1-u) of arXiv:2604.01978, from 0 <= u0 <= 1; the corrections are O(1/d).
    """
    u0, tau = _share(u0), checked_reals("tau", tau, 0.0)
    fall = np.exp(-tau)
    return np.where(u0 == 0, 0.0, u0 / np.where(u0 == 0, 1.0, u0 + (1 - u0) * fall))[()]


def hot_overlap(overlap0: ArrayLike, u0: ArrayLike, tau: ArrayLike) -> Numbers:
    """The overlap of two tokens at infinite temperature (b = 0) for d -> inf, from overlap0 and u0 = |mean token|^2.

    1 - R(tau) = (1 - R(0)) e^{-int u} = (1 - R(0))/(1 + u_0 (e^tau - 1)) with u of `hot_mean_square` (ours, from the
    drift of arXiv:2604.01978). Every pair feels the mean token only.
    """
    r, u0, tau = _overlap(overlap0), _share(u0), checked_reals("tau", tau, 0.0)
    fall = np.exp(-tau)
    with np.errstate(invalid="ignore"):
        left = fall / (u0 + (1 - u0) * fall)
    return 1 - (1 - r) * np.where(u0 == 0, 1.0, left)[()]


def _overlap(value: ArrayLike) -> np.ndarray:
    found = checked_reals("overlap", value, -1.0)
    if (found > 1).any():
        raise InvalidInput(f"overlap is {value!r}; unit vectors have overlaps between -1 and 1.")
    return found


def _share(value: ArrayLike) -> np.ndarray:
    found = checked_reals("u0", value, 0.0)
    if (found > 1).any():
        raise InvalidInput(f"u0 is {value!r}; the square of the mean of unit vectors lies between 0 and 1.")
    return found
