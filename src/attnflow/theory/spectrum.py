"""Linear stability of the uniform measure on the sphere."""

import numpy as np
from numpy.typing import ArrayLike

from attnflow.special import bessel_ratios, log_scaled_bessel


def growth_rates(beta: float, d: int, k: ArrayLike | None = None, model: str = "SA") -> np.ndarray:
    """Growth rate of a degree-k harmonic perturbation of the uniform measure on S^{d-1}.

    lambda_k = k (k+d-2) a_k / (beta a_0) for SA, with a_k/a_0 = I_{k+nu}(beta)/I_nu(beta), nu = d/2 - 1;
    USA0 multiplies by e^{-beta} a_0, USA by a_0 (arXiv:2312.10794; Funk-Hecke). Degrees default to 1, 2, ... up to
    where the rate has fallen below 1e-12. beta >= 0, d >= 2.
    """
    if not (np.isfinite(beta) and beta >= 0):
        raise ValueError(f"beta is {beta}; growth rates need a finite beta >= 0.")
    if d < 2 or d != int(d):
        raise ValueError(f"d is {d}; growth rates need an integer d >= 2.")
    if model not in ("SA", "USA0", "USA"):
        raise ValueError(f"model is {model!r}; use 'SA', 'USA0' or 'USA'.")
    degrees = None if k is None else np.asarray(k, dtype=np.int64)
    if degrees is not None and (degrees < 0).any():
        raise ValueError(f"k is {k!r}; degrees are at least 0.")
    top = 20 + int(12 * np.sqrt(beta + 1)) if degrees is None else int(np.max(degrees, initial=1))
    nu = d / 2 - 1
    ratios = bessel_ratios(nu, beta, max(top, 1))
    # lambda_k = k(k+d-2)/beta * prod_j ratio_j; the first ratio over beta is finite at beta = 0
    first = 1 / (2 * nu + 2 + beta * bessel_ratios(nu + 1, beta, 1)[0])
    products = first * np.concatenate([[1.0], np.cumprod(ratios[1:])])
    every = np.arange(1, len(products) + 1)
    rates = np.concatenate([[0.0], every * (every + d - 2) * products])
    if model != "SA" and beta > 0:
        from scipy.special import gammaln

        log_a0 = gammaln(d / 2) + nu * np.log(2 / beta) + log_scaled_bessel(nu, beta)
        rates = rates * np.exp(log_a0 + (beta if model == "USA" else 0.0))
    if degrees is not None:
        return rates[degrees]
    alive = np.flatnonzero(rates > 1e-12)
    return rates[1 : alive[-1] + 1]
