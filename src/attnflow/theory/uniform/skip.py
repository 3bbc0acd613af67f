"""Layers x <- N(skip x + attention): equiangular tokens and the uniform measure, layer by layer."""

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.theory.uniform.equiangular import exact_product
from attnflow.theory.uniform.kernel import ratios
from attnflow.theory.uniform.spectrum import BETA, DEGREES, DIMENSION, growth_rates
from attnflow.wording import shown

SKIP = Reals(0.0, 1e150)


@formula(deficit=Reals(0.0, 2.0), beta=BETA, n=Integers(2), skip=SKIP, relative=2e-14)
def layer_deficit(deficit: ArrayLike, beta: ArrayLike, n: ArrayLike, *, skip: ArrayLike = 1.0) -> np.ndarray:
    """1 minus the common overlap of n tokens after one softmax layer x <- N(skip x + attention), from that before.

    With delta = 1 - overlap, e = exp(-beta delta), Z = 1 + (n-1) e, p = skip + (1-e)/Z, q = e/Z and
    s = n - (n-1) delta it is p^2 delta/(p^2 + (2 p q + n q^2) s), exactly. Near consensus delta falls by the factor
    (skip/(1+skip))^2 per layer, whatever n and beta are. Without a skip connection it is (beta/n)^2 delta^3: the
    logarithm of beta delta/n triples, a collapse that is doubly exponential in the number of layers
    (arXiv:2103.03404 has the cubic rate). Derived here; all arguments are broadcast.

    Arguments:
        deficit: 1 minus the overlap before the layer, at most n/(n-1), the simplex.
        beta: inverse temperatures.
        n: numbers of tokens.
        skip: weights of the skip connection.
    """
    deltas, betas, counts, skips = np.broadcast_arrays(deficit, beta, n.astype(np.float64), skip)
    product, lost = exact_product(counts - 1, deltas)
    mean = np.where(deltas == counts / (counts - 1), 0.0, (counts - product) - lost)
    if np.any(mean < 0):
        raise InvalidInput(
            f"`deficit` is {shown(deficit.tolist())}; n tokens cannot have a common overlap below -1/(n-1)."
        )
    with np.errstate(all="ignore"):
        e = np.exp(-betas * deltas)
        total = 1 + (counts - 1) * e
        local = skips + -np.expm1(-betas * deltas) / total
        if np.any((local == 0) & (mean == 0)):
            raise InvalidInput("`beta` and `skip` are 0; the mean of tokens on the simplex vanishes.")
        ratio = np.where(local > 0, e / total / local, np.inf)
        return np.where(ratio * mean == 0, deltas, deltas / (1 + ratio * (2 + counts * ratio) * mean))


@formula(beta=BETA, d=DIMENSION, k=DEGREES, skip=SKIP, relative="2e-15 * (5 + np.sqrt(k))")
def layer_growth(beta: ArrayLike, d: int, *, k: ArrayLike, skip: ArrayLike = 1.0) -> np.ndarray:
    """The factor by which a harmonic of degree k on top of the uniform measure grows in one layer of softmax attention.

    1 + lambda_k/(skip + r) with the rate lambda_k of `growth_rates` (SA) and r = I_{d/2}(beta)/I_{d/2-1}(beta), the
    length of the attention output at the uniform measure. On the circle without a skip connection it is
    1 + k^2 I_k/(beta I_1). To first order in the perturbation; derived here.

    Arguments:
        beta: inverse temperatures, positive where skip = 0.
        d: dimension of the space around the sphere.
        k: degrees, broadcast with beta and skip.
        skip: weights of the skip connection.
    """
    length = ratios(d / 2 - 1, beta, 1)[..., 0]
    if np.any(skip + length == 0):
        raise InvalidInput(f"`skip` is {shown(skip.tolist())}; the output of the layer is 0 where beta is 0 too.")
    with np.errstate(over="ignore"):
        growth = np.asarray(1 + growth_rates(beta, d, k=k) / (skip + length))
    if np.isinf(growth).any():
        raise InvalidInput(f"`skip` is {shown(skip.tolist())}; the growth leaves float range at this beta.")
    return growth
