"""Axis heads: head h reads and writes coordinate h alone. States of several clusters that last for ever, or do not.

Q_h = K_h = V_h = e_h e_h^T, h = 1..d, summed: X[mu](x) = sum_h e_h sum_j (weight from beta x_h y_jh) y_jh. The matrices
V_h add up to I. At a token on an axis, let s be its coordinate along another axis k. For small s the equation is
s_i' = -D_i s_i + sum_j m_j s_j, j over the tokens that are not on axis k. All statements here are derived from it.
"""

import numpy as np
from scipy.optimize import brentq

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_beta, checked_dimension, checked_model


def axis_pair_rates(beta: float, *, mass: float = 0.5, other: float = 1.0, model: str = "USA") -> np.ndarray:
    """Rates of the pair of clusters at e_1 (mass `mass`) and -e_1 (the rest) under axis heads, largest first.

    Three rates: of s, in the two combinations of the clusters, and of tokens of one cluster relative to each other (the
    larger of the two). With D_+- = M_+- e^beta - M_-+ e^(-beta): USA has -min D and the roots of
    sum_+- M_+-/(l + D_+-) = 1/`other`; for equal masses -sinh(beta) and `other` - sinh(beta). SA divides D_+- by
    M_+- e^beta + M_-+ e^(-beta); for equal masses -tanh(beta) and `other` - tanh(beta).

    `other` is the weight of the heads of the other axes over that of head 1. The pair is stable iff all rates are
    negative: for USA and equal heads above `axis_pair_threshold`; for SA and equal masses iff `other` < tanh(beta),
    never for equal heads.
    """
    b = _beta(beta)
    if not 0 < mass < 1:
        raise InvalidInput(f"mass is {mass!r}; it must be in (0, 1).")
    if not (np.isfinite(other) and other >= 0):
        raise InvalidInput(f"other is {other!r}; it must be finite and at least 0.")
    m = np.array([mass, 1 - mass])
    fall = m * np.exp(b) - m[::-1] * np.exp(-b)
    if _usa_or_sa(model) == "SA":
        fall = fall / (m * np.exp(b) + m[::-1] * np.exp(-b))
    # eigenvalues of -diag(D) + other 1 m^T, made symmetric by sqrt(m)
    root = np.sqrt(m)
    mixed = np.linalg.eigvalsh(-np.diag(fall) + other * np.outer(root, root))
    return np.sort([*mixed, float(-fall.min())])[::-1]


def axis_cross_rates(beta: float, d: int, *, model: str = "USA") -> np.ndarray:
    """Rates of the cross, 2 d equal clusters at +-e_h, under axis heads: of the mean of s, then of differences.

    USA: -(sinh(beta) - beta - d + 1)/d and -(sinh(beta) - beta)/d. SA: (beta + d - 1)/d - t and beta/d - t with
    t = sinh(beta)/(cosh(beta) + d - 1). The first is positive at every beta: for softmax the cross is unstable.
    """
    b, d = _beta(beta), checked_dimension(d)
    if _usa_or_sa(model) == "SA":
        fall = np.tanh(b) / (1 + (d - 1) / np.cosh(b))
        return np.array([(b + d - 1) / d - fall, b / d - fall])
    return np.array([-(np.sinh(b) - b - d + 1) / d, -(np.sinh(b) - b) / d])


def axis_pair_threshold(mass: float = 0.5) -> float:
    """The beta above which the pair e_1, -e_1 of these masses is stable under USA axis heads; asinh 1 for equal ones.

    Where D_+- > 0 and sum_+- M_+-/D_+- = 1 (`axis_pair_rates`). A D below 0 makes the sum small and the pair unstable.
    """
    if not 0 < mass < 1:
        raise InvalidInput(f"mass is {mass!r}; it must be in (0, 1).")
    small = min(mass, 1 - mass)
    # D_+- > 0 above the first end; the largest rate is 1 - e^beta + ... < 0 once min D > 1
    return float(
        brentq(
            lambda b: axis_pair_rates(b, mass=mass)[0],
            0.5 * np.log((1 - small) / small),
            np.arcsinh(1.0) + np.log(1 / small),
            xtol=1e-14,
            rtol=1e-14,
        )
    )


def axis_cross_threshold(d: int) -> float:
    """The beta above which the cross of 2 d equal clusters is stable under USA axis heads: sinh(beta) = beta + d - 1.

    d = 2: 1.72911690, 3: 2.12446619. For large d it is log(2 d) + O(log(d)/d).
    """
    d = checked_dimension(d)
    return float(brentq(lambda b: np.sinh(b) - b - d + 1, 0.5, 2 + np.log(2.0 * d), xtol=1e-14, rtol=1e-14))


def _beta(beta: float) -> float:
    found = checked_beta(beta)
    if found.ndim or found > 700:
        raise InvalidInput(f"beta is {beta!r}; it must be one number from 0 to 700, as e^beta is a rate here.")
    return float(found)


def _usa_or_sa(model: str) -> str:
    if checked_model(model) == "USA0":
        raise InvalidInput("model is 'USA0'; rates of axis heads are on the clock 'USA', divide them by e^beta.")
    return model
