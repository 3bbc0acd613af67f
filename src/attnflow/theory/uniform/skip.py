"""Layers x <- N(skip x + attention): equiangular tokens and the uniform measure, layer by layer."""

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.special import bessel_ratios
from attnflow.theory.checks import checked_beta, checked_degrees, checked_dimension, checked_integers, checked_reals
from attnflow.theory.uniform.spectrum import growth_rates


def layer_deficit(deficit: ArrayLike, beta: ArrayLike, n: ArrayLike, *, skip: ArrayLike = 1.0) -> np.ndarray:
    """1 minus the common overlap of n tokens after one softmax layer x <- N(skip x + attention), from that before.

    With delta = 1 - overlap, e = exp(-beta delta), Z = 1 + (n-1) e, p = skip + (1-e)/Z, q = e/Z and
    s = n - (n-1) delta it is p^2 delta/(p^2 + (2 p q + n q^2) s), exactly. Near consensus delta falls by the factor
    (skip/(1+skip))^2 per layer, whatever n and beta are. Without a skip connection it is (beta/n)^2 delta^3: the
    logarithm of beta delta/n triples, a collapse that is doubly exponential in the number of layers
    (arXiv:2103.03404 has the cubic rate). Derived here; 0 <= deficit <= n/(n-1), skip >= 0.
    """
    delta, betas, ns, skips = np.broadcast_arrays(
        checked_reals("deficit", deficit, 0.0),
        checked_beta(beta),
        checked_integers("n", n, 2),
        checked_reals("skip", skip, 0.0),
    )
    if np.any(delta > ns / (ns - 1)):
        raise InvalidInput(f"deficit is {deficit!r}; n tokens cannot have a common overlap below -1/(n-1).")
    fall = -np.expm1(-betas * delta)
    total = 1 + (ns - 1) * (1 - fall)
    p, q = skips + fall / total, (1 - fall) / total
    mean = ns - (ns - 1) * delta
    return np.asarray(p**2 * delta / (p**2 + (2 * p * q + ns * q**2) * mean))


def layer_growth(beta: ArrayLike, d: int, *, k: ArrayLike, skip: ArrayLike = 1.0) -> np.ndarray:
    """The factor by which a harmonic of degree k on top of the uniform measure grows in one layer of softmax attention.

    1 + lambda_k/(skip + r) with the rate lambda_k of `growth_rates` (SA) and r = I_{d/2}(beta)/I_{d/2-1}(beta), the
    length of the attention output at the uniform measure. On the circle without a skip connection it is
    1 + k^2 I_k/(beta I_1). To first order in the perturbation; derived here. beta > 0 where skip = 0.
    """
    betas, d = checked_beta(beta), checked_dimension(d)
    skips, degrees = checked_reals("skip", skip, 0.0), checked_degrees(k, 0)

    length = np.asarray(bessel_ratios(d / 2 - 1, betas, 1))[..., 0]
    if np.any(skips + length == 0):
        raise InvalidInput(f"beta is {beta!r} and skip is {skip!r}; the output of the layer is 0 there.")
    return np.asarray(1 + growth_rates(betas, d, k=degrees) / (skips + length))
