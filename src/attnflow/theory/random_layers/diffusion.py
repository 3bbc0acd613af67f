"""Many layers with random weights: their time, their regimes, and how overlaps move.

A layer is x_i <- N(x_i + (step/H) sum_h V_h m_h(x_i)), N(x) = x/|x|, where m_h is the softmax mean of the tokens with
logits beta <Q x_i, K x_j>. Weights are independent over H heads and L layers; V has entries of variance 1/d, and Q and
K have d_k rows of entries with variances sigma_q^2 and sigma_k^2. The layers then act as a diffusion in the time
tau = step^2 L/H, with one noise for all tokens (arXiv:2604.01978).
"""

import dataclasses

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import Other, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.random_layers._domains import OVERLAP, SHARE, TIME
from attnflow.wording import shown

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


SIZE = Reals(0.0, 1e75)
DIMENSION = Reals(2.0)
PRODUCT = Reals(-1.0, 1e300)
SQUARE = Reals(0.0, 1e300)


@formula(step=SIZE, layers=SIZE, heads=Reals(1.0, 1e75), relative=1e-15)
def canonical_time(step: ArrayLike, *, layers: ArrayLike, heads: ArrayLike) -> Numbers:
    """tau = step^2 layers/heads, the time of the diffusion that the layers become (arXiv:2604.01978).

    For V with entries of variance 1/d and heads that are averaged; heads divided by sqrt(H) have tau = step^2 layers,
    which is heads = 1 here.

    Arguments:
        step: step of a layer.
        layers: number of layers.
        heads: number of heads.
    """
    return _product(step, step, layers, 1 / heads)


@formula(
    step=Reals(0.0, 1e50, scalar=True),
    layers=Reals(0.0, 1e50, scalar=True),
    heads=Reals(1.0, 1e50, scalar=True),
    mean_value=Reals(-1e50, 1e50, scalar=True),
    relative=4e-15,
)
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

    Arguments:
        step: step of a layer.
        layers: number of layers L.
        heads: number of heads H.
        mean_value: mean of the values, a multiple of the identity.
    """
    tau = float(canonical_time(step, layers=layers, heads=heads))
    mean = abs(mean_value)
    drift = float(_product(mean, step, layers))
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


@formula(beta=SIZE, sigma_q=SIZE, sigma_k=SIZE, d_k=Reals(1.0), relative=1e-15)
def logit_scale(beta: ArrayLike, sigma_q: ArrayLike, sigma_k: ArrayLike, *, d_k: ArrayLike) -> Numbers:
    """b = beta sigma_q sigma_k sqrt(d_k): the standard deviation of the logits of unit tokens (arXiv:2604.01978).

    Initialisation with variance 1/d, tokens of norm sqrt(d) and logits over sqrt(d_k) has b = 1. Infinite above 1e308.

    Arguments:
        beta: factor of <Q x, K y>.
        sigma_q: standard deviation of the entries of Q.
        sigma_k: standard deviation of the entries of K.
        d_k: number of rows of Q and K.
    """
    return _product(beta, sigma_q, sigma_k, np.sqrt(d_k))


@formula(
    overlap=OVERLAP,
    s_ij=PRODUCT,
    s_ii=SQUARE,
    s_jj=SQUARE,
    d=DIMENSION,
    absolute="1e-15 * (np.abs(s_ij) + np.abs(overlap) * (s_ii + s_jj))",
)
def overlap_drift(overlap: ArrayLike, s_ij: ArrayLike, s_ii: ArrayLike, s_jj: ArrayLike, *, d: ArrayLike) -> Numbers:
    """The drift of R = <x_i, x_j> per unit of tau: [(d-2+R^2) s_ij - (d-1) R (s_ii+s_jj)/2]/d.

    Exact for every number of tokens, d, d_k and temperature with Gaussian V (ours; arXiv:2604.01978 has the limit
    d -> inf).

    Arguments:
        overlap: R.
        s_ij: E <m_i, m_j>, the mean over Q and K of the product of two softmax means.
        s_ii: E |m_i|^2.
        s_jj: E |m_j|^2.
        d: dimension of the tokens.
    """
    own = s_ii / 2 + s_jj / 2
    return ((d - 2) / d + overlap * overlap / d) * s_ij - (d - 1) / d * overlap * own


@formula(
    overlap=OVERLAP,
    s_ij=PRODUCT,
    s_ii=SQUARE,
    s_jj=SQUARE,
    d=DIMENSION,
    absolute="2e-15 * (1 - overlap) * (1 + overlap) * (s_ii + s_jj + 2 * np.abs(overlap * s_ij)) / d",
)
def overlap_variation(
    overlap: ArrayLike, s_ij: ArrayLike, s_ii: ArrayLike, s_jj: ArrayLike, *, d: ArrayLike
) -> Numbers:
    """The rate of the quadratic variation of R = <x_i, x_j>: (1-R^2) (s_ii + s_jj - 2 R s_ij)/d.

    Exact under the conditions of `overlap_drift`, whose arguments it has (ours).

    Arguments:
        overlap: R.
        s_ij: E <m_i, m_j>, the mean over Q and K of the product of two softmax means.
        s_ii: E |m_i|^2.
        s_jj: E |m_j|^2.
        d: dimension of the tokens.
    """
    return (1 - overlap) * (1 + overlap) / d * (s_ii + s_jj - 2 * overlap * s_ij)


@formula(
    gram=Other("a symmetric matrix of overlaps of unit vectors"),
    b=Reals(0.0, 1e100, scalar=True),
    absolute="1e-14 * (1 + b * b)",
)
def small_logit_products(gram: ArrayLike, b: float) -> np.ndarray:
    """The matrix s_ij = E <m_i, m_j> of n unit tokens with this Gram matrix, to order b^2.

    s_ij = |xm|^2 + b^2 (R_ij tr C^2 + <xm, mean_k |x_k-xm|^2 (x_k-xm)>) + O(b^4), with the mean xm and the covariance C
    of the tokens; d_k -> inf (ours). For three tokens the error is 0.2 b^4 in the median of random ones, up to 1.4 b^4
    among 40 of them, and 1.64 b^4 for x, x and -x.
    """
    try:
        r = np.asarray(gram, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"`gram` is {shown(gram)}; give a symmetric n x n matrix of overlaps.") from None
    if r.ndim != 2 or r.shape[0] != r.shape[1] or not np.isfinite(r).all() or not np.allclose(r, r.T):
        raise InvalidInput(f"`gram` has shape {r.shape}; it must be a symmetric n x n matrix of overlaps.")
    if not np.allclose(np.diag(r), 1.0):
        raise InvalidInput(f"`gram` has the diagonal {np.diag(r)!r}; tokens must be unit vectors.")
    rows = r.mean(axis=1)
    mean = rows.mean()
    centred = r - rows[:, None] - rows + mean
    skewness = np.mean(np.diag(centred) * (rows - mean))
    return mean + b * b * (r * np.sum(centred**2) / len(r) ** 2 + skewness)


@formula(tau=TIME, d=DIMENSION, relative="1e-15 * (1 + np.minimum(tau, 1500))")
def one_token_decay(tau: ArrayLike, d: ArrayLike) -> Numbers:
    """E <x(tau), x(0)> = e^{-(d-1) tau/(2d)} for one token whose softmax mean has length 1.

    One token alone, or hardmax (b = inf): x is a spherical Brownian motion (ours).
    """
    return np.exp(-(d - 1) / d / 2 * tau)


@formula(overlap=OVERLAP, relative=1e-15)
def hot_pair_collapse_probability(overlap: ArrayLike) -> Numbers:
    """P(two tokens merge) = 1/2 + arcsin(R)/pi at infinite temperature (b = 0) on the circle, d = 2; R their overlap.

    Else they become antipodal. At b = 0 R = tanh(z) with dz = ((d-2+tanh z)/(2d)) dtau + dB/sqrt(d): for d = 3 the
    antipode is critical, and for d >= 4 tokens merge with probability 1 (ours).
    """
    return np.arccos(-overlap) / np.pi


@formula(u0=SHARE, tau=TIME, relative=2e-15)
def hot_mean_square(u0: ArrayLike, tau: ArrayLike) -> Numbers:
    """u = |mean token|^2 at infinite temperature (b = 0) for d -> inf: u_0/(u_0 + (1-u_0) e^{-tau}).

    The logistic equation u' = u (1-u) of arXiv:2604.01978, from u0 at tau = 0; the corrections are O(1/d).
    """
    return np.where(u0 == 0, 0.0, u0 / np.where(u0 == 0, 1.0, u0 + (1 - u0) * np.exp(-tau)))[()]


@formula(overlap0=OVERLAP, u0=SHARE, tau=TIME, relative=2e-15, absolute="1e-15 * np.maximum(-overlap0, 0)")
def hot_overlap(overlap0: ArrayLike, u0: ArrayLike, tau: ArrayLike) -> Numbers:
    """The overlap R of two tokens at infinite temperature (b = 0) for d -> inf.

    1 - R(tau) = (1 - R(0)) e^{-int u} = (1 - R(0))/(1 + u_0 (e^tau - 1)) with u of `hot_mean_square` (ours, from the
    drift of arXiv:2604.01978). Every pair feels the mean token only.

    Arguments:
        overlap0: overlap at time 0.
        u0: |mean token|^2 at time 0.
        tau: canonical time.
    """
    fall = np.exp(-tau)
    kept = np.where(u0 == 0, 1.0, fall)
    return (overlap0 * kept - u0 * np.expm1(-tau)) / np.where(u0 == 0, 1.0, u0 + (1 - u0) * fall)


def _product(*factors: ArrayLike) -> np.ndarray:
    """A product none of whose partial products leaves float range."""
    mantissas, exponents = zip(*(np.frexp(factor) for factor in factors), strict=True)
    mantissa, exponent = np.ones(()), np.zeros((), int)
    for part, power in zip(mantissas, exponents, strict=True):
        mantissa, exponent = mantissa * part, exponent + power
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(mantissa, exponent))
