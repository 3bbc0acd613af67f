"""Correlations of exchangeable tokens that start iid and uniform: what propagation of chaos leaves at order 1/n."""

import numpy as np
from scipy.special import exprel

from attnflow.errors import InvalidInput
from attnflow.special.formula import MODEL, Integers, Optional, Other, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.uniform.kernel import log_mean_kernel
from attnflow.theory.uniform.spectrum import DIMENSION, critical_noise, growth_rates
from attnflow.wording import shown


@formula(
    t=Reals(0.0),
    beta=Reals(0.0, 1e300, scalar=True),
    d=DIMENSION,
    k=Integers(1, 100_000, scalar=True),
    n=Optional(Integers(2)),
    from_start=Other("True or False"),
    model=MODEL,
    relative="2e-15 * (5 + np.sqrt(k) + (0 if model == 'SA' and n is None else np.minimum(beta, 750)))"
    " * (1 + np.minimum(4 * t * k * np.exp(np.minimum(beta, 700.0) if model == 'USA' else 0.0), 710))",
)
def pair_correlation(
    t: ArrayLike,
    beta: float,
    d: int,
    *,
    k: int = 1,
    n: ArrayLike | None = None,
    from_start: bool = False,
    model: str = "SA",
) -> np.ndarray:
    """n E P_k(<x_1(t), x_2(t)>) of n tokens, iid uniform on S^{d-1} at t = 0, without a mask; P_k(1) = 1.

    Many tokens: e^{2 lambda_k t} - 1, and e^{lambda_k t} - 1 for <x_1(t), x_2(0)>, `from_start`. With n, which needs
    SA, the closure e^{2 lambda_k t (n-1) w} - e^{-2 lambda_k t w}, w = a_0/((n-1) a_0 + e^beta): a token's own weight
    e^beta counts in the softmax and moves nothing; it leaves a relative error of order 1/n. Noise must be small,
    e^{2 lambda_k t} << n. Infinite beyond float range. Derived here; lambda_k are the `growth_rates`.

    Arguments:
        t: times.
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        k: degree.
        n: numbers of tokens, broadcast with t; None for many.
        from_start: True for the correlation of a token with the start of another.
        model: dynamics of the tokens.
    """
    if n is not None and model != "SA":
        raise InvalidInput(
            f"`model` is {shown(model)}; the closure at finite n is that of SA: leave n out, or use 'SA'."
        )
    rate = growth_rates(beta, d, k=k, model=model)
    return rate * correlations_over_rates(t * (1 if from_start else 2), rate, beta, d, n)


def correlations_over_rates(clock: np.ndarray, rates: np.ndarray, beta: float, d: int, n: ArrayLike | None) -> Numbers:
    """`pair_correlation` divided by the rates, which may vanish; `clock` is 2t or t."""
    with np.errstate(over="ignore", under="ignore"):
        if n is None:
            return np.asarray(clock * exprel(rates * clock))
        mean = np.exp(log_mean_kernel(np.asarray(beta), d))
        others, slow = n - 1.0, clock * mean / (1 + (n - 1.0) * mean)
        return np.asarray(others * slow * exprel(rates * slow * others) + slow * exprel(-rates * slow))


@formula(
    t=Reals(0.0),
    beta=Reals(0.0, 1e300, scalar=True),
    model=MODEL,
    relative="1e-12 + 2e-15 * (0 if model == 'SA' else np.minimum(beta, 750))",
    absolute="1e-13 * t * np.minimum(1.0, 4 / (1 + beta)) * np.exp(np.minimum(beta, 700.0) if model == 'USA' else 0.0)",
)
def triple_correlation(t: ArrayLike, beta: float, *, model: str = "SA") -> np.ndarray:
    """The limit of n^2 E cos(theta_1 + theta_2 - 2 theta_3) for many tokens, iid uniform on the circle at t = 0.

    With l_k = lambda_k it is T - e^{2 l_2 t} - 2 e^{2 l_1 t} + 2, where T = e^{(2 l_1 + l_2) t} (1 + 2 p (e^{l_2 t} -
    1)/l_2 + 2 q (e^{(2 l_1 - l_2) t} - 1)/(2 l_1 - l_2)); p = (2 b_2 - b_1 - b_1 b_2)/beta and q = 2 b_1 (1 - b_1)/beta
    for SA, b_k = I_k/I_0 at beta, and p = (2 I_2 - I_1)/beta, q = 2 I_1/beta for USA (times e^{-beta} for USA0).
    Without a normaliser forces act in pairs and it begins with t^2; softmax is a three-body force and it begins with
    -(2 b_1 b_2 + 4 b_1^2) t/beta. Derived here, for e^{2 lambda t} << n.
    """
    one, two = (float(rate) for rate in growth_rates(beta, 2, k=np.array([1, 2]), model=model))
    first, second = (float(share) for share in critical_noise(beta, 2, k=np.array([1, 2]), model=model))  # b_k/beta
    p, q, begin = 2 * second - first, 2 * first, 0.0
    if model == "SA":
        p, q = p - beta * first * second, q * (1 - beta * first)
        begin = -beta * first * (2 * second + 4 * first)
    rate = max(4 * one, 2 * (one + two))
    if (largest := np.max(t, initial=0.0)) * rate > 680:  # the factor t has room below e^709
        raise InvalidInput(
            f"`t` is {largest}; the correlation, of order t e^{{{rate:.3g} t}}, is beyond doubles: take t <= "
            f"{680 / rate:.3g}."
        )
    # terms of first order in t cancel to `begin` t; of the others, e^x - 1 - x keeps its digits
    base, split = 2 * one + two, 2 * one - two
    bent = p * exprel(two * t) + q * exprel(split * t)
    bent_beyond = p * two * t * _second(two * t) + q * split * t * _second(split * t)
    return np.asarray(
        begin * t
        + _beyond(base * t)
        - _beyond(2 * two * t)
        - 2 * _beyond(2 * one * t)
        + 2 * t * (np.expm1(base * t) * bent + bent_beyond)
    )


def _second(x: np.ndarray) -> np.ndarray:
    """(e^x - 1 - x)/x^2."""
    small = np.abs(x) < 0.5
    near, far = np.where(small, x, 0.0), np.where(small, 1.0, x)
    series = np.zeros_like(near)
    for j in range(15, 1, -1):
        series = 1 + series * near / (j + 1)
    return np.where(small, series / 2, (np.expm1(far) - far) / far**2)


def _beyond(x: np.ndarray) -> np.ndarray:
    """e^x - 1 - x."""
    return np.where(np.abs(x) < 0.5, x * x * _second(x), np.expm1(x) - x)
