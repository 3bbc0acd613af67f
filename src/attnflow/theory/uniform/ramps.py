"""Which mode wins when beta grows linearly with depth from a near-uniform start on the circle."""

import functools
import math

import numpy as np

from attnflow.errors import NotAccurate
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.integrals import integral
from attnflow.special.roots import root
from attnflow.theory.uniform.spectrum import growth_rates


@formula(beta=Reals(0.0, 1e8, scalar=True), k=Integers(1, 1000, scalar=True), relative="1e-15 * (20 + 2 * np.sqrt(k))")
def ramp_growth(beta: float, k: int) -> float:
    """F_k(beta), the integral of the growth rate lambda_k (SA, circle) from 0 to beta.

    Under beta = r t mode k has grown by e^(F_k(beta)/r) when beta is reached.
    """
    return _growth(beta, k)


@formula(k=Integers(1, 300, scalar=True), relative="1e-14 * (10 + k)")
def ramp_switch(k: int) -> tuple[float, float]:
    """(beta, F) at which modes k and k + 1 have grown by the same factor under beta = r t: F = F_k = F_{k+1}.

    1 -> 2: 2.39095886, 1.00815089; 2 -> 3: 6.71251353, 3.32637727. Derived here.
    """
    return _switch(k)


@formula(product=Reals(0.0, 6e4, ends="right", scalar=True))
def ramp_winner(product: float) -> int:
    """The mode that first reaches the amplitude A from eps under beta = r t, from `product` = r log(A/eps) alone.

    Slow ramps, product < 1.008, give one cluster whatever the last beta is.

    Raises:
        NotAccurate: if two modes reach the amplitude together, to a relative 1e-11 of `product`.
    """
    k = max(round(math.sqrt(product / 0.77)), 1)  # F of the switches grows like 0.77 k^2
    while k > 1 and _switch(k - 1)[1] >= product:
        k -= 1
    while _switch(k)[1] < product:
        k += 1
    switches = [_switch(j)[1] for j in (k - 1, k) if j]
    if any(abs(switch / product - 1) < 1e-11 for switch in switches):
        raise NotAccurate("two modes reach the amplitude at the same time, to the last digits of `product`.")
    return k


@functools.cache
def _switch(k: int) -> tuple[float, float]:
    guess = 1.35 * k * (k + 1.0)
    beta = float(
        root(lambda beta: _growth(float(beta), k) - _growth(float(beta), k + 1), 0.8 * guess, guess, smallest=0.5 * k)
    )
    return beta, _growth(beta, k)


def _growth(beta: float, k: int) -> float:
    return float(integral(lambda x: np.where(x > 0, growth_rates(x, 2, k=k), 0.0), 0.0, beta, rtol=4e-15))
