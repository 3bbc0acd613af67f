"""Correlations of exchangeable tokens that start iid and uniform: what propagation of chaos leaves at order 1/n."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exprel

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_degrees, checked_integers, checked_model, checked_reals
from attnflow.theory.uniform.spectrum import critical_noise, growth_rates, log_mean_kernel


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
    e^{2 lambda_k t} << n. Derived here; lambda_k are the `growth_rates`. t >= 0 and n >= 2 broadcast.
    """
    times, degree, model = checked_reals("t", t, 0.0), int(checked_degrees(k, 1)), checked_model(model)
    c = (1 if from_start else 2) * float(growth_rates(beta, d, k=degree, model=model)) * times
    if n is None:
        with np.errstate(over="ignore"):  # inf is what is meant
            return np.asarray(np.expm1(c))
    if model != "SA":
        raise InvalidInput(f"model is {model!r}; the closure at finite n is that of softmax: leave n out, or use 'SA'.")
    others = checked_integers("n", n, 2) - 1.0
    own = np.exp(-log_mean_kernel(np.asarray(float(beta)), d))  # e^beta/a_0
    w = 1 / (others + own)
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(c * others * w) - np.expm1(-c * w))


def triple_correlation(t: ArrayLike, beta: float, *, model: str = "SA") -> np.ndarray:
    """The limit of n^2 E cos(theta_1 + theta_2 - 2 theta_3) for many tokens, iid uniform on the circle at t = 0.

    With l_k = lambda_k it is T - e^{2 l_2 t} - 2 e^{2 l_1 t} + 2, where T = e^{(2 l_1 + l_2) t} (1 + 2 p (e^{l_2 t} -
    1)/l_2 + 2 q (e^{(2 l_1 - l_2) t} - 1)/(2 l_1 - l_2)); p = (2 b_2 - b_1 - b_1 b_2)/beta and q = 2 b_1 (1 - b_1)/beta
    for SA, b_k = I_k/I_0 at beta, and p = (2 I_2 - I_1)/beta, q = 2 I_1/beta for USA (times e^{-beta} for USA0).
    Without a normaliser forces act in pairs and it begins with t^2; softmax is a three-body force and it begins with
    -(2 b_1 b_2 + 4 b_1^2) t/beta. Derived here, for e^{2 lambda t} << n; to the absolute accuracy of e^{2 l_2 t}.
    """
    times, model = checked_reals("t", t, 0.0), checked_model(model)
    one, two = (float(rate) for rate in growth_rates(beta, 2, k=np.array([1, 2]), model=model))
    first, second = (float(share) for share in critical_noise(beta, 2, k=np.array([1, 2]), model=model))  # b_k/beta
    p, q = 2 * second - first, 2 * first
    if model == "SA":
        p, q = p - beta * first * second, q * (1 - beta * first)
    rate = max(4 * one, 2 * (one + two))
    if (largest := np.max(times, initial=0.0)) * rate > 680:  # the factor t has room below e^709
        raise InvalidInput(
            f"t is {largest}; the correlation, of order t e^{{{rate:.3g} t}}, is beyond doubles: take t <= "
            f"{680 / rate:.3g}."
        )
    split = 2 * one - two
    bent = 2 * times * (p * exprel(two * times) + q * exprel(split * times))
    return np.asarray(
        np.expm1((2 * one + two) * times)
        + np.exp((2 * one + two) * times) * bent
        - np.expm1(2 * two * times)
        - 2 * np.expm1(2 * one * times)
    )
