"""The distribution of the merge time of two random tokens."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special as sp

from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_dimension
from attnflow.theory.merging.pairs import log_merge_time, merging_angle


def pair_angle_probability(angle: ArrayLike, d: int) -> Numbers:
    """Probability that two independent uniform points of S^{d-1} are at most `angle` apart.

    sin^2(angle/2) has the beta distribution with both parameters (d-1)/2: angle/pi on the circle and sin^2(angle/2) on
    S^2.
    """
    half = (checked_dimension(d) - 1) / 2
    return sp.betainc(half, half, np.sin(np.asarray(angle, dtype=np.float64) / 2) ** 2)


def pair_time_probability(
    log_time: ArrayLike, beta: float, d: int, *, model: str = "SA", until: float | None = None
) -> np.ndarray:
    """Probability that two independent uniform tokens of S^{d-1}, of mass 1/2 each, merge before e^log_time.

    The merge time increases with the angle, so the probability is `pair_angle_probability` of the angle whose
    `log_merge_time` is `log_time`. The inverse is interpolated from 2,000 angles, evenly spaced in log tan(angle/2), to
    1e-6. Tokens that start closer than `until`, by default `merging_angle(beta)`, have merged at time 0.
    """
    from scipy.interpolate import PchipInterpolator

    until = float(merging_angle(beta)) if until is None else until
    z = np.linspace(np.log(np.tan(until / 2)) + 1e-9, 16.0, 2000)
    times = log_merge_time(2 * np.arctan(np.exp(z)), beta, masses=(0.5, 0.5), until=until, model=model)
    at = np.clip(np.asarray(log_time, dtype=np.float64), times[0], times[-1])
    return np.asarray(pair_angle_probability(2 * np.arctan(np.exp(PchipInterpolator(times, z)(at))), d))
