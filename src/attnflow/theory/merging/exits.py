"""The distributions of the merge time of two random tokens, and of the first merge of many."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special as sp

from attnflow.errors import InvalidInput
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_dimension, checked_integers
from attnflow.theory.merging.pairs import log_merge_time, merging_angle


def pair_angle_probability(angle: ArrayLike, d: int) -> Numbers:
    """Probability that two independent uniform points of S^{d-1} are at most `angle` apart.

    sin^2(angle/2) has the beta distribution with both parameters (d-1)/2: angle/pi on the circle and sin^2(angle/2) on
    S^2.
    """
    half = (checked_dimension(d) - 1) / 2
    return sp.betainc(half, half, np.sin(np.asarray(angle, dtype=np.float64) / 2) ** 2)


def nearest_angle_probability(angle: ArrayLike, d: int, *, n: int) -> Numbers:
    """Probability that two of n independent uniform points of S^{d-1} are at most `angle` apart.

    On the circle 1 - (1 - n angle/(2 pi))^(n-1), at most 1: the least of n gaps. From d = 3 on
    1 - (1 - p)^(n(n-1)/2) with p = `pair_angle_probability`, as if all pairs were independent. They are so two by
    two: the formula is exact for n = 2. On S^2 it is off by 0.05 for n = 3, by 0.03 for n = 8 and by less for more
    tokens and dimensions (sampled in tests/theory/test_first_merge.py).
    """
    checked_integers("n", n, 2)
    angles = np.asarray(angle, dtype=np.float64)
    if checked_dimension(d) == 2:
        share, power = n * angles / (2 * np.pi), n - 1.0
    else:
        share, power = pair_angle_probability(angles, d), n * (n - 1) / 2
    with np.errstate(divide="ignore"):
        return -np.expm1(power * np.log1p(-np.minimum(share, 1.0)))


def nearest_angle(q: ArrayLike, d: int, *, n: int) -> Numbers:
    """The angle that the nearest two of n independent uniform points of S^{d-1} have with probability q at most.

    The inverse of `nearest_angle_probability`.
    """
    checked_integers("n", n, 2)
    share = np.asarray(q, dtype=np.float64)
    if not np.all((share >= 0) & (share < 1)):
        raise InvalidInput(f"q is {q!r}; it must be in [0, 1).")
    if checked_dimension(d) == 2:
        return 2 * np.pi / n * -np.expm1(np.log1p(-share) / (n - 1))
    half = (d - 1) / 2
    return 2 * np.arcsin(np.sqrt(sp.betaincinv(half, half, -np.expm1(2 / (n * (n - 1)) * np.log1p(-share)))))


def first_merge_probability(
    log_time: ArrayLike, beta: float, d: int, *, n: int, model: str = "SA", until: float | None = None
) -> np.ndarray:
    """Probability that the first of n independent uniform tokens of S^{d-1}, of mass 1/n each, merge before e^log_time.

    The nearest two merge first, as if they were alone: the probability is `nearest_angle_probability` of the angle
    whose `log_merge_time` is `log_time`. For n = 2 that is exact. For more it needs other pairs to be slow,
    beta (1 - cos angle) well above 1 at the usual nearest angle (two-body reduction of arXiv:2410.06833): otherwise all
    tokens move at once. The inverse is interpolated from 2,000 angles, evenly spaced in log tan(angle/2), to 1e-6.
    Tokens that start closer than `until`, by default `merging_angle(beta)`, have merged at time 0.
    """
    from scipy.interpolate import PchipInterpolator

    checked_integers("n", n, 2)
    until = float(merging_angle(beta)) if until is None else until
    z = np.linspace(np.log(np.tan(until / 2)) + 1e-9, 16.0, 2000)
    times = log_merge_time(2 * np.arctan(np.exp(z)), beta, masses=(1 / n, 1 / n), until=until, model=model)
    at = np.clip(np.asarray(log_time, dtype=np.float64), times[0], times[-1])
    angle = 2 * np.arctan(np.exp(PchipInterpolator(times, z)(at)))
    return np.asarray(nearest_angle_probability(angle, d, n=n))


def pair_time_probability(
    log_time: ArrayLike, beta: float, d: int, *, model: str = "SA", until: float | None = None
) -> np.ndarray:
    """Probability that two independent uniform tokens of S^{d-1}, of mass 1/2 each, merge before e^log_time.

    The merge time increases with the angle, so the probability is `pair_angle_probability` of the angle whose
    `log_merge_time` is `log_time`: `first_merge_probability` for n = 2, where it is exact.
    """
    return first_merge_probability(log_time, beta, d, n=2, model=model, until=until)
