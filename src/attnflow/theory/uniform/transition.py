"""Tokens with noise: which way ordered states leave the uniform measure."""

import numpy as np

from attnflow.special import bessel_gap
from attnflow.special.formula import MODEL, Integers, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.special.roots import root
from attnflow.theory.uniform.kernel import ratios
from attnflow.theory.uniform.spectrum import critical_noise


@formula(d=Integers(2), relative=2e-15)
def jump_threshold(d: ArrayLike) -> np.ndarray:
    """The beta* at which the transition of unnormalised attention with noise on S^{d-1} turns into a jump.

    The root of I_{d/2+1}(beta)/I_{d/2}(beta) = 1/d: 2.4469 (d = 2), 1.8162 (3), 1.2666 (8). Below beta* ordered states
    exist for kappa < kappa_c = `critical_noise` alone; above beta* they exist beyond kappa_c, up to a fold
    (arXiv:2606.05140; d = 2: arXiv:2604.16288). The ratio increases from 0 to 1, so there is one root.
    """

    def threshold(dim: int) -> float:
        # I_{d/2+1}/I_{d/2} is near beta/(d + 2) for small beta: roots fall from 2.45 (d = 2) to 1
        return float(root(lambda beta: dim * float(ratios(dim / 2, np.asarray(beta), 1)[0]) - 1, 1.0, 2.5))

    return np.array([threshold(int(dim)) for dim in d.ravel()]).reshape(d.shape)


@formula(
    beta=Reals(0.0, 1e150, ends="right"),
    model=MODEL,
    relative="1e-14 * (10 + np.minimum(beta, 750))",
    absolute="1e-16 * np.exp(np.minimum(beta, 709.0) if model == 'USA' else 0.0)",
)
def landau_coefficient(beta: ArrayLike, *, model: str = "SA") -> np.ndarray:
    """The c of kappa = kappa_c + 2 c m^2 + O(m^4) along ordered states on the circle, m = |mean of x|.

    With kappa_c = `critical_noise(beta, 2)` and q = I_2(beta)/I_1(beta): USA0 has c = (kappa_c/4)(q/(1-q) - 1), which
    is 0 at `jump_threshold(2)`. SA has c = kappa_c (p-1)((p-1) q/(1-q) - p - 2)/(4 p^2), p = I_0(beta)/I_1(beta).
    Both follow from rho ~ exp(Phi[rho]/kappa) expanded to third order in m. c < 0 is a continuous transition, c > 0 a
    jump. USA has e^beta times the c of USA0.
    """
    onset, below, above = critical_noise(beta, 2, model=model), bessel_gap(0.0, beta), bessel_gap(1.0, beta)
    if model == "SA":  # with 1 - 1/p = below and 1 - q = above, which are small for large beta
        return np.asarray(onset * below * (below * (1 / above - 1) - 3 + 2 * below) / 4)
    return np.asarray(onset * (1 / above - 2) / 4)
