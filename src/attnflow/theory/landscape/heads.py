"""Axis heads: head h reads and writes coordinate h alone. States of several clusters that last for ever, or do not.

Q_h = K_h = V_h = e_h e_h^T, h = 1..d, summed: X[mu](x) = sum_h e_h sum_j (weight from beta x_h y_jh) y_jh. The matrices
V_h add up to I. At a token on an axis, let s be its coordinate along another axis k. For small s the equation is
s_i' = -D_i s_i + sum_j m_j s_j, j over the tokens that are not on axis k. All statements here are derived from it.
"""

import math

import numpy as np

from attnflow.special.formula import Integers, Reals, Word, formula
from attnflow.special.roots import root

USA_OR_SA = Word(("USA", "SA"))
BETA = Reals(0.0, 700.0, scalar=True)
"""e^beta is a rate here."""
SHARE = Reals(0.0, 1.0, ends="none", scalar=True)


@formula(
    beta=BETA,
    mass=SHARE,
    other=Reals(0.0, scalar=True),
    model=USA_OR_SA,
    relative=2e-15,
    absolute="2e-15 * (1 + other)",
)
def axis_pair_rates(beta: float, *, mass: float = 0.5, other: float = 1.0, model: str = "USA") -> np.ndarray:
    """Rates of the pair of clusters at e_1 and -e_1 under axis heads, largest first.

    Three rates: of s, in the two combinations of the clusters, and of tokens of one cluster relative to each other (the
    larger of the two). With D_+- = M_+- e^beta - M_-+ e^(-beta): USA has -min D and the roots of
    sum_+- M_+-/(l + D_+-) = 1/`other`; for equal masses -sinh(beta) and `other` - sinh(beta). SA divides D_+- by
    M_+- e^beta + M_-+ e^(-beta); for equal masses -tanh(beta) and `other` - tanh(beta). The pair is stable iff all
    rates are negative: for USA and equal heads above `axis_pair_threshold`; for SA and equal masses iff `other` <
    tanh(beta), never for equal heads.

    Arguments:
        beta: inverse temperature.
        mass: M_+, the mass of the cluster at e_1; M_- is 1 less that.
        other: weight of the heads of the other axes over that of head 1.
        model: clock of the rates, "USA" or "SA"; those of USA0 are e^(-beta) times those of USA.
    """
    masses = np.array([mass, 1 - mass])
    lead = np.array([1.0, -1.0]) * (2 * mass - 1)  # M_+- less M_-+
    # neither form of D is a difference of large numbers where it is used
    if model == "SA":
        tanh, fade = math.tanh(beta), math.exp(-2 * beta)
        late = (masses - masses[::-1] * fade) / (masses + masses[::-1] * fade)
        falls = (lead + tanh) / (1 + lead * tanh) if beta < 1 else late
    else:
        late = masses * math.exp(beta) - masses[::-1] * math.exp(-beta)
        falls = lead * math.cosh(beta) + math.sinh(beta) if beta < 1 else late
    # eigenvalues of -diag(D) + other 1 m^T; the smaller one as determinant over the larger one
    middle = other / 2 - falls.sum() / 2
    reach = math.hypot((falls[0] - falls[1] - other * lead[0]) / 2, other * math.sqrt(masses.prod()))
    larger = middle + math.copysign(reach, middle)
    smaller = 0.0
    if larger:
        shares = falls / larger
        smaller = falls[0] * shares[1] - other * (masses[::-1] @ shares)
    return np.sort([larger, smaller, -falls.min()])[::-1]


@formula(
    beta=BETA,
    d=Integers(2, scalar=True),
    model=USA_OR_SA,
    relative=2e-15,
    absolute=2e-15,
)
def axis_cross_rates(beta: float, d: int, *, model: str = "USA") -> np.ndarray:
    """Rates of the cross, 2 d equal clusters at +-e_h, under axis heads: of the mean of s, then of differences.

    USA: -(sinh(beta) - beta - d + 1)/d and -(sinh(beta) - beta)/d. SA: (beta + d - 1)/d - t and beta/d - t with
    t = sinh(beta)/(cosh(beta) + d - 1). The first is positive at every beta: for softmax the cross is unstable.

    Arguments:
        beta: inverse temperature.
        d: dimension of the space, and number of heads.
        model: clock of the rates, "USA" or "SA"; those of USA0 are e^(-beta) times those of USA.
    """
    if model == "USA":
        return np.array([(d - 1) / d - _sinh_excess(beta) / d, -_sinh_excess(beta) / d])
    weight = 1 + (d - 1) / math.cosh(beta)
    if beta > 2:
        return np.array([(beta + d - 1) / d, beta / d]) - math.tanh(beta) / weight
    # beta/d - t with the terms of first order taken off both
    differences = (2 * beta * math.sinh(beta / 2) ** 2 / d - _sinh_excess(beta)) / (math.cosh(beta) * weight)
    return np.array([(d - 1) / d + differences, differences])


@formula(mass=SHARE, relative=2e-15)
def axis_pair_threshold(mass: float = 0.5) -> float:
    """The beta above which the pair e_1, -e_1 of these masses is stable under USA axis heads; asinh 1 for equal ones.

    Where D_+- > 0 and sum_+- M_+-/D_+- = 1 (`axis_pair_rates`). With E = e^beta and the root E = 1 divided out it is
    (E - 1)(E + 1/E) = 1/(M_+ M_-), whose left side rises. A D below 0 makes the sum small and the pair unstable.
    """
    log_product = math.log(mass) + math.log1p(-mass)

    def excess(beta: float) -> float:
        return float(np.log(np.expm1(beta)) + np.logaddexp(beta, -beta) + log_product)

    return float(root(excess, math.asinh(1.0) / 2, 1 - log_product / 2, smallest=0.1))


@formula(d=Integers(2, scalar=True), relative=1e-15)
def axis_cross_threshold(d: int) -> float:
    """The beta above which the cross of 2 d equal clusters is stable under USA axis heads: sinh(beta) = beta + d - 1.

    d = 2: 1.72911690, 3: 2.12446619. For large d it is log(2 d) + O(log(d)/d).
    """
    return float(root(lambda beta: _sinh_excess(beta) - (d - 1), 1.0, 2 + math.log(2 * d), smallest=0.1))


def _sinh_excess(x: float) -> float:
    """sinh(x) - x, by its series where the two are close."""
    if x > 2:
        return math.sinh(x) - x
    powers = np.cumprod(x * x / (np.arange(2.0, 30.0, 2.0) * np.arange(3.0, 31.0, 2.0)))
    return float(x * powers[::-1].sum())
