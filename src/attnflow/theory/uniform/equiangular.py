"""Tokens with one common overlap: the reduction to a single ODE, and its solution in closed form."""

import numpy as np

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special import scaled_exp1, scaled_expi
from attnflow.special.formula import MODEL, Integers, Reals, formula
from attnflow.special.integrals import integral
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.special.roots import root
from attnflow.theory.uniform.spectrum import BETA, LARGEST_LOG
from attnflow.wording import shown

OVERLAP = Reals(-1.0, 1.0, ends="left")
COUNT = Integers(2)
LONGEST = 6.0
"""Log of a gain in log-odds, 403, after which the overlap is 1 as a float for every n and start."""


@formula(
    t=Reals(0.0),
    beta=BETA,
    n=COUNT,
    overlap0=OVERLAP,
    model=MODEL,
    relative=2e-13,
    absolute="np.where(overlap0 == 0, 0.0, 3e-16)"
    " + np.minimum(1e-14 * t * np.exp(np.minimum(beta, 700.0) if model == 'USA' else 0.0), 1e-6)",
)
def equiangular_overlap(
    t: ArrayLike, beta: ArrayLike, n: ArrayLike, *, overlap0: ArrayLike = 0.0, model: str = "SA"
) -> np.ndarray:
    """The common overlap gamma(t) of n tokens that start with <x_i, x_j> = overlap0 for all i != j.

    SA: gamma' = 2 e (1-gamma)(1+(n-1)gamma)/(1+(n-1)e), e = exp(-beta (1-gamma)); USA0 has n below; USA
    runs e^beta faster (arXiv:2312.10794, section 6). The closed form of `equiangular_time` is inverted in the logarithm
    of the log-odds. For large beta the escape is sharp: it takes a time of order 1 after a wait of order e^beta. The
    simplex, overlap0 = -1/(n-1), never moves. All arguments are broadcast.

    Arguments:
        t: times.
        beta: inverse temperatures.
        n: numbers of tokens.
        overlap0: overlaps at time 0, at least -1/(n-1).
        model: dynamics of the tokens.

    Raises:
        NotAccurate: if t falls into an escape after a wait so long that the last digits of t decide.
    """
    t, beta, n, overlap0 = np.broadcast_arrays(t, beta, n.astype(np.float64), overlap0)
    height0 = height(n, overlap0)
    if (height0 < 0).any():
        raise InvalidInput(
            f"`overlap0` is {shown(overlap0.tolist())}; n tokens cannot have a common overlap below -1/(n-1)."
        )
    moving = (t > 0) & (height0 > 0)
    overlaps = np.array(overlap0)
    if moving.any():
        overlaps[moving] = _invert(t[moving], beta[moving], n[moving], overlap0[moving], model)
    return overlaps


@formula(
    overlap=OVERLAP,
    beta=BETA,
    n=COUNT,
    overlap0=OVERLAP,
    model=MODEL,
    relative="5e-14 + 5e-16 * np.minimum(beta * (1 - overlap0), 1500)",
)
def equiangular_time(
    overlap: ArrayLike, beta: ArrayLike, n: ArrayLike, *, overlap0: ArrayLike = 0.0, model: str = "SA"
) -> np.ndarray:
    """The time at which n tokens with common overlap overlap0 have the common overlap `overlap`: exact.

    With x = beta (1-gamma), y = beta (1+(n-1)gamma)/(n-1), F = Ei(x) + e^{x+y} E1(y) and the log-odds
    L = log((1+(n-1)gamma)/(1-gamma)): USA0 takes J/2, SA takes (J + (n-1) dL)/(2n), where J = F(overlap0) -
    F(overlap) and dL is the gain of L; USA is e^beta faster, and beta = 0 gives dL/2. As a function of beta, the
    time to 0.99 is the transition curve of the histogram of overlaps for tokens in high dimension
    (arXiv:2312.10794, section 6). All arguments are broadcast; a time out of float range is refused.

    Arguments:
        overlap: overlaps to reach, at least overlap0.
        beta: inverse temperatures.
        n: numbers of tokens.
        overlap0: overlaps at time 0, above -1/(n-1).
        model: dynamics of the tokens.
    """
    mantissa, exponent = _time(overlap, beta, n, overlap0, model)
    with np.errstate(divide="ignore"):
        logs = np.log(mantissa) + exponent
    if np.any(logs >= LARGEST_LOG):
        raise InvalidInput(
            f"`beta` is {shown(beta.tolist())}; the time leaves float range there, use log_equiangular_time."
        )
    # two factors, for e^exponent alone may be out of range
    with np.errstate(under="ignore"):
        return np.asarray(mantissa * np.exp(exponent / 2) * np.exp(exponent / 2))


@formula(
    overlap=OVERLAP,
    beta=BETA,
    n=COUNT,
    overlap0=OVERLAP,
    model=MODEL,
    relative=5e-16,
    absolute="5e-14 + 5e-16 * beta * (1 - overlap0)",
)
def log_equiangular_time(
    overlap: ArrayLike, beta: ArrayLike, n: ArrayLike, *, overlap0: ArrayLike = 0.0, model: str = "SA"
) -> np.ndarray:
    """The logarithm of `equiangular_time`, for times beyond float range; -inf where overlap equals overlap0.

    From overlap 0 it is near beta - log(2 beta) for beta >> n (SA; arXiv:2312.10794).

    Arguments:
        overlap: overlaps to reach, at least overlap0.
        beta: inverse temperatures.
        n: numbers of tokens.
        overlap0: overlaps at time 0, above -1/(n-1).
        model: dynamics of the tokens.
    """
    mantissa, exponent = _time(overlap, beta, n, overlap0, model)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mantissa) + exponent)


def exact_product(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """a b as a float and what its rounding has lost, by Veltkamp's splitting; |a|, |b| <= 1e300."""
    halves = []
    for factor in (a, b):
        wide = 134217729.0 * factor
        upper = wide - (wide - factor)
        halves.append((upper, factor - upper))
    (a1, a2), (b1, b2) = halves
    product = a * b
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def height(n: np.ndarray, overlap: np.ndarray) -> np.ndarray:
    """1 + (n-1) overlap to relative accuracy: 0 at the float nearest to the simplex -1/(n-1), negative below."""
    product, lost = exact_product(n, overlap)
    gap = 1 - overlap
    lost = lost + ((1 - (gap - (gap - 1))) + (-overlap - (gap - 1)))
    return np.asarray(np.where(overlap == -1 / (n - 1), 0.0, (gap + product) + lost))


def _time(
    overlap: np.ndarray, beta: np.ndarray, n: np.ndarray, overlap0: np.ndarray, model: str
) -> tuple[Numbers, Numbers]:
    """Mantissa and exponent of the time between two overlaps, after the checks."""
    overlap, beta, n, overlap0 = np.broadcast_arrays(overlap, beta, n.astype(np.float64), overlap0)
    height0 = height(n, overlap0)
    if (height0 <= 0).any():
        raise InvalidInput(
            f"`overlap0` is {shown(overlap0.tolist())}; it must exceed -1/(n-1), at which no tokens move."
        )
    if (overlap < overlap0).any():
        raise InvalidInput(
            f"`overlap` is {shown(overlap.tolist())}; it must be at least overlap0, for overlaps increase."
        )
    gain = overlap - overlap0
    # the quotient of the gaps, by the form that keeps its digits: a short way, or an end close to 1
    part = gain / (1 - overlap0)
    fall = np.where(part < 0.5, np.log1p(-np.minimum(part, 0.5)), np.log((1 - overlap) / (1 - overlap0)))
    return _scaled_time(np.log1p((n - 1) * gain / height0) - fall, beta, n, overlap0, height0, model)


def _scaled_time(
    log_odds: Numbers, beta: np.ndarray, n: np.ndarray, overlap0: np.ndarray, height0: np.ndarray, model: str
) -> tuple[Numbers, Numbers]:
    """Mantissa and exponent of the time in which the log-odds gain `log_odds` >= 0.

    t_USA0 = 1/2 int e^{beta (1-gamma)} dL; the factor e^{beta (1-overlap0)}, its largest value, is the exponent.
    """
    gap0 = 1 - overlap0
    start = beta * gap0
    gap, gain = _move(log_odds, n, gap0, height0)
    # closed form; Ei and E1 come without their exponentials
    warm = beta > 1e-17
    positive = np.where(warm, beta, 1.0)
    with np.errstate(under="ignore"):
        first = scaled_expi(positive * gap0), scaled_exp1(positive * (height0 / (n - 1)))
        # 1e-300 stands in for a gap that has underflowed, where the overlap is 1 anyway
        fade, above = np.exp(-beta * gain), height0 + (n - 1) * gain
        last = (
            fade * scaled_expi(positive * np.maximum(gap, 1e-300)),
            fade * scaled_exp1(positive * (above / (n - 1))),
        )
        times = np.asarray((first[0] - last[0]) + (first[1] - last[1]))
        size = np.abs(first[0]) + np.abs(first[1]) + np.abs(last[0]) + np.abs(last[1])
        # a short way or a small beta: the difference cancels, the integral does not
        short = ~(warm & (times > 0.05 * size))
        if short.any():
            times[short] = integral(
                lambda part, b, n, gap0, height0: np.exp(-b * _move(part, n, gap0, height0)[1]),
                0.0,
                *(np.asarray(part)[short] for part in (log_odds, beta, n, gap0, height0)),
                rtol=2e-15,
            )
        if model == "SA":
            return (times + (n - 1) * log_odds * np.exp(-start)) / (2 * n), start
    return times / 2, -beta * overlap0 if model == "USA" else start


def _move(log_odds: Numbers, n: np.ndarray, gap0: Numbers, height0: Numbers) -> tuple[Numbers, Numbers]:
    """1 - gamma and gamma - overlap0 after a gain in log-odds, both with full relative accuracy."""
    decay, lost = np.exp(-log_odds), -np.expm1(-log_odds)
    total = n * decay + height0 * lost
    return gap0 * (n * decay / total), gap0 * (height0 * lost / total)


def _invert(t: np.ndarray, beta: np.ndarray, n: np.ndarray, overlap0: np.ndarray, model: str) -> np.ndarray:
    """The overlap at time t > 0, from the logarithm of the gain in log-odds.

    dt/dL falls from its value at the start to 1/2, which brackets the gain between t/(dt/dL at the start) and 2t.
    """
    log_t = np.log(t) + (beta if model == "USA" else 0.0)
    model = "USA0" if model == "USA" else model
    height0, start = height(n, overlap0), beta * (1 - overlap0)
    log_slope = np.logaddexp(start, np.log(n - 1)) - np.log(2 * n) if model == "SA" else start - np.log(2)

    def lateness(log_gain: np.ndarray, *values: np.ndarray) -> np.ndarray:
        beta, n, overlap0, height0, log_t = values
        with np.errstate(divide="ignore"):  # a gain that underflows takes no time
            mantissa, exponent = _scaled_time(np.exp(log_gain), beta, n, overlap0, height0, model)
            return np.asarray(np.log(mantissa) + exponent - log_t)

    values = [beta, n, overlap0, height0, log_t]
    gains = np.zeros_like(t)
    first = log_t - log_slope
    ended = lateness(np.full_like(t, LONGEST), *values) <= 0
    gains[ended] = np.exp(LONGEST)
    moving = ~ended & (first > -740)  # below, the gain is 0 as a float
    if moving.any():
        high = np.minimum(log_t[moving] + np.log(2), LONGEST)
        low = np.minimum(first[moving], high)
        gains[moving] = np.exp(root(lateness, low - 0.1, high + 0.1, *(value[moving] for value in values)))
    gap, gain = _move(gains, n, 1 - overlap0, height0)
    with np.errstate(divide="ignore"):
        # what an error of t by a few last digits, and of the exponent beta (1 - overlap0), moves the overlap
        log_speed = np.log(2 * gap * (height0 + (n - 1) * gain)) - (
            np.logaddexp(beta * gap, np.log(n - 1)) if model == "SA" else beta * gap + np.log(n)
        )
        if np.any(~ended & (log_t + log_speed + np.log(4e-15 + 2e-16 * np.minimum(start, 1500)) > np.log(1e-6))):
            raise NotAccurate("`t` falls into an escape that the last digits of t decide.")
    return np.minimum(overlap0 + gain, 1.0)
