"""One attention layer over a long context: when beta = c log n keeps tokens apart."""

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import Other, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.uniform.equiangular import height
from attnflow.theory.uniform.kernel import log_mean, log_mean_kernel, ratios
from attnflow.wording import shown

LOG_SCALE = Reals(0.0, 1e150)
INSIDE = Reals(0.0, 1.0, ends="none")


@formula(
    c=LOG_SCALE, n=Reals(2.0, 1e300), overlap=Reals(-1.0, 1.0), absolute="1e-15 * (10 + np.log(n))", relative=1e-15
)
def long_context_overlap(c: ArrayLike, n: ArrayLike, overlap: ArrayLike) -> np.ndarray:
    """Cosine between two outputs of one softmax attention layer with beta = c log n on n equiangular unit inputs.

    Output i is parallel to (1-e) x_i + e sum_k x_k with e = n^{-c (1-overlap)}; with r = e/(1-e), s = 1+(n-1)overlap
    and X = 2 r s + r^2 n s the cosine is (overlap + X)/(1 + X): exact for every n, in logarithms, so that n may be
    any float up to 1e300. No residual connection, identity values (arXiv:2510.05554). All arguments are broadcast.

    Arguments:
        c: coefficients of log n in beta.
        n: numbers of tokens.
        overlap: overlaps of the inputs, at least -1/(n-1).
    """
    c, n, overlap = np.broadcast_arrays(c, n, overlap)
    above = height(n, overlap)
    if (above < 0).any():
        raise InvalidInput(f"`overlap` is {shown(overlap.tolist())}; n tokens need -1/(n-1) <= overlap <= 1.")
    exponent = c * (1 - overlap) * np.log(n)
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        # an exponent of 0 weighs all tokens alike: r and X are infinite, and the outputs coincide
        log_r = -exponent - np.log(-np.expm1(-exponent))
        log_x = np.log(above) + np.logaddexp(np.log(2) + log_r, 2 * log_r + np.log(n))
        spread = np.exp(-np.abs(log_x))
    return np.where(log_x > 0, (1 + overlap * spread) / (1 + spread), (overlap + spread) / (1 + spread))


@formula(c=LOG_SCALE, overlap=INSIDE, relative=4e-16)
def long_context_limit(c: ArrayLike, overlap: ArrayLike) -> np.ndarray:
    """The limit of `long_context_overlap` as n grows: 1 below the threshold in c, `overlap` above it.

    At c = 1/(1-overlap) itself (where c (1-overlap) is 1 to 1e-15) it is 4 overlap/(1 + 3 overlap). The approach is
    only as fast as n^{-|c (1-overlap) - 1|} (arXiv:2510.05554). Orthogonal inputs are another case, with threshold 1/2,
    because there the mean of the inputs vanishes.
    """
    c, overlap = np.broadcast_arrays(c, overlap)
    place = c * (1 - overlap)
    above = np.where(np.abs(place - 1) <= 1e-15, 4 * overlap / (1 + 3 * overlap), overlap)
    return np.where(place < 1 - 1e-15, 1.0, above)


@formula(overlap=INSIDE, relative=4e-16)
def long_context_threshold(overlap: ArrayLike) -> Numbers:
    """The c at which beta = c log n stops collapsing a long context: 1/(1 - overlap).

    There a token weighs itself as much as all others together (arXiv:2510.05554).
    """
    return 1 / (1 - overlap)


@formula(b=Reals(0.0, 1e300), d=Other("a number of at least 2, or inf"), relative=2e-14)
def exponential_moments(b: ArrayLike, d: float) -> tuple[np.ndarray, np.ndarray]:
    """log M(b) and M'(b)/M(b), M(b) = E e^{b <u, v>}, for u uniform on the sphere of R^d and a fixed unit vector v.

    M(b) = Gamma(d/2) (2/b)^nu I_nu(b) and M'/M = I_{nu+1}(b)/I_nu(b) with nu = d/2 - 1: the integral representation of
    Bessel's functions. For d = inf the overlap <u, v> is 0, so that log M = M'/M = 0.
    """
    _check_dimension(d, 2)
    if np.isinf(d):
        return np.zeros_like(b), np.zeros_like(b)
    return log_mean(b, d), ratios(d / 2 - 1, b, 1)[..., 0]


@formula(
    c=LOG_SCALE,
    n=Reals(2.0, 1e300, scalar=True),
    d=Other("a number of at least 3, or inf"),
    overlap=Reals(0.0, 1.0, ends="none", scalar=True),
    absolute="2e-15 * (10 + np.log(n))",
)
def long_context_iid_overlap(c: ArrayLike, *, n: float, d: float, overlap: float) -> np.ndarray:
    """Cosine of the outputs at the opposite queries u_1 = -u_2 of one layer with beta = c log n on iid tokens.

    Tokens are x_j = sqrt(rho) e + sqrt(1-rho) u_j, rho = `overlap`, u_j uniform on the unit sphere orthogonal to e in
    R^d. With b = beta (1-rho) and M of `exponential_moments` in dimension d - 1, the other tokens weigh
    W = (n-2) e^{-b} M(b) in the mean and point to sqrt(rho) e + sqrt(1-rho) (M'/M) u_1; a token itself weighs 1, its
    opposite e^{-2b}. Fluctuations of the sums over the others are left out: n large. In the limit d -> inf the overlaps
    are all rho, up to that of the two queries.

    Arguments:
        c: coefficients of log n in beta, any shape.
        n: number of tokens.
        d: dimension of the space around the sphere.
        overlap: square of the mean of the tokens.
    """
    _check_dimension(d, 3)
    b = c * np.log(n) * (1 - overlap)
    slope = np.zeros_like(b) if np.isinf(d) else ratios((d - 1) / 2 - 1, b, 1)[..., 0]
    with np.errstate(under="ignore"):
        others = (n - 2) * np.exp(-b if np.isinf(d) else log_mean_kernel(b, d - 1))
        across = (-np.expm1(-2 * b) + others * slope) / (1 + others + np.exp(-2 * b))
        lateral = (1 - overlap) * across**2
    return np.asarray((overlap - lateral) / (overlap + lateral))


def _check_dimension(d: float, smallest: int) -> None:
    try:
        fits = float(d) >= smallest
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InvalidInput(f"`d` is {shown(d)}; give a number of at least {smallest}, or inf.")
