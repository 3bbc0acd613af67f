"""The probability that random tokens lie in one hemisphere, where clustering is certain."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special as sp

from attnflow.errors import InvalidInput


def hemisphere_probability(n: ArrayLike, d: ArrayLike) -> np.ndarray:
    """Probability that n iid tokens of a symmetric continuous distribution on S^{d-1} lie in one open hemisphere.

    Wendel: 2^{1-n} sum_{k<d} C(n-1, k), the chance of fewer than d heads in n - 1 tosses, computed as an incomplete
    beta function; 1 for n <= d. In a hemisphere SA and USA converge to one point exponentially fast
    (arXiv:2312.10794). Below 1e-308 it rounds to 0: see `log_hemisphere_probability`. Vectorised.
    """
    ns, ds = _checked_sizes(n, d)
    inside = ns > ds
    # I_{1/2}(n-d, d) = P(Binomial(n-1, 1/2) <= d-1)
    return np.where(inside, sp.betainc(np.where(inside, ns - ds, 1.0), ds, 0.5), 1.0)


def log_hemisphere_probability(n: ArrayLike, d: ArrayLike) -> np.ndarray:
    """Natural logarithm of `hemisphere_probability`, also where the probability leaves the range of floats."""
    ns, ds = _checked_sizes(n, d)

    def one(n_: float, d_: float) -> float:
        direct = float(hemisphere_probability(n_, d_))
        if direct > 1e-290:
            return float(np.log(direct))
        # so small only for d far below n/2, where the terms fall from k = d-1 down faster than geometrically
        k = np.arange(d_ - 1, 0, -1)
        tail = 1 + np.sum(np.cumprod(k / (n_ - k)))
        return float(-np.log(n_) - sp.betaln(d_, n_ - d_ + 1) + np.log(tail) - (n_ - 1) * np.log(2))

    return np.vectorize(one, otypes=[np.float64])(ns, ds)


def _checked_sizes(n: ArrayLike, d: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    ns, ds = np.asarray(n, dtype=np.float64), np.asarray(d, dtype=np.float64)
    for name, given, value in (("n", n, ns), ("d", d, ds)):
        if not np.all((value >= 1) & (value == np.floor(value)) & np.isfinite(value)):
            raise InvalidInput(f"{name} is {given!r}; it must be an integer of at least 1.")
    return ns, ds
