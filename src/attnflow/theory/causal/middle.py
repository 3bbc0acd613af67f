"""Lost in the middle: where the retrieval profile of the last token has its minimum, and when it has one.

The profile is p(s) = k(1, s) psi_c(Y(1, s)) over the place s of the source (`correlation`): early sources arrive
through many paths, late ones through the slope of ALiBi. With y = Y(1, s) and R = psi_c'/psi_c it is stationary where
y + log(R(y)/(1 - R(y))) = log(e^slope - 1), and its minimum is the root with the largest y (ours). `slope` is the slope
of ALiBi per token times the number of tokens, c = a_k t the scaled time. Conditions are those of `correlation`.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attnflow.errors import NotAccurate
from attnflow.special.formula import Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.special.roots import root
from attnflow.theory.causal.continuum import (
    LARGEST_SLOPE,
    LARGEST_TIME,
    SLOPE,
    log_profile,
    log_unit_growth,
    path_ratios,
)

CONVEX = 3 - math.sqrt(3)
"""The smaller root of c^2 - 6c + 6: up to this scaled time the profile is convex at every slope (arXiv:2605.09213)."""
SURE = 1e-10
"""Relative accuracy of the place of a minimum; where rounding decides about more it is refused."""
SCALAR_SLOPE = Reals(0.0, LARGEST_SLOPE, scalar=True)


@dataclass(frozen=True)
class Middle:
    """The minimum of a retrieval profile over the places of its source.

    `shape` is "middle" (an interior minimum), "falling" (sources are heard the less the later they are) or "rising"
    (the contrary, at the beginning; only with dilution). `place` is then that of the minimum, 1 or 0. `log_value` and
    `log_last` are logarithms of N times the correlation there and at the last place.
    """

    shape: Literal["middle", "falling", "rising"]
    place: float
    log_value: float
    log_last: float

    @property
    def exists(self) -> bool:
        """Whether there is an interior minimum."""
        return self.shape == "middle"

    @property
    def value(self) -> float:
        """N times the correlation at the minimum."""
        return float(np.exp(self.log_value))

    @property
    def last(self) -> float:
        """N times the correlation with a source just before the last token."""
        return float(np.exp(self.log_last))

    @property
    def contrast(self) -> float:
        """1 - value/last: how much less is heard from the minimum than from the last place (below 0: more)."""
        return float(-np.expm1(self.log_value - self.log_last))


@formula(slope=SLOPE, relative=1e-15)
def recency_threshold(slope: ArrayLike) -> np.ndarray:
    """2 (1 - e^{-slope}): below this scaled time c the profile rises towards the last place, above it falls there.

    Sharp for one degree (ours; arXiv:2605.09213 has it as a sufficient condition, with c <= 3 - sqrt(3)). 0 at slope 0,
    where there is no recency at any time.
    """
    return np.asarray(-2 * np.expm1(-slope))


@formula(slope=SLOPE, relative_dilution=Reals(0.0, 1e300, scalar=True), relative=1e-14)
def last_middle_time(slope: ArrayLike, *, relative_dilution: float = 0.0) -> np.ndarray:
    """The scaled time c up to which the profile of one degree has an interior minimum.

    2 (1 - e^{-slope}) for slope <= log 4. Beyond, the minimum outlives the rise at the last place, after a maximum,
    up to the time at which the two merge (ours). With `relative_dilution` (softmax, see `correlation`) a
    short flow may have no minimum either; 0 where there is none at any time.

    Arguments:
        slope: slopes of ALiBi per token times the number of tokens.
        relative_dilution: weight of a token on itself, in units of N mean weights; 0 leaves it out.

    Raises:
        NotAccurate: if the last minimum is so close to the first token that rounding decides whether it is inside.
    """
    q = relative_dilution
    return np.array([_latest(float(steep), q) for steep in slope.ravel()]).reshape(slope.shape)


@formula(
    c=Reals(1e-290, LARGEST_TIME, scalar=True),
    slope=SCALAR_SLOPE,
    relative_dilution=Reals(0.0, 1e300, scalar=True),
    relative=SURE,
    absolute="1e-14 * (1500 + slope + 1 / max(slope, 1 / max(relative_dilution, 1.0)))",
)
def find_middle(c: float, slope: float, *, relative_dilution: float = 0.0) -> Middle:
    """The interior minimum of the profile of one degree at c > 0 (arXiv:2605.09213; beyond its conditions ours).

    For c < 2 (1 - e^{-slope}) there is exactly one critical point: proved for c <= 3 - sqrt(3), beyond seen in scans.
    With softmax give `relative_dilution` = `softmax_dilution(beta, d)`/N; early sources are then heard less (ours).

    Arguments:
        c: scaled time.
        slope: slope of ALiBi per token times the number of tokens.
        relative_dilution: weight of a token on itself, in units of N mean weights; 0 leaves it out.

    Raises:
        NotAccurate: if the minimum is so flat, just before it goes, that rounding decides about its place.
    """
    dilution = slope * relative_dilution

    def log_kept(place: float) -> float:
        return float(log_profile(*map(np.asarray, (c, 1.0, place, slope, relative_dilution))))

    slowed, level, log_last = c / (1 + dilution), level_of(slope, relative_dilution), log_kept(1.0)
    if slope == 0:
        return Middle("falling", 1.0, log_last, log_last)
    if slowed < min(dilution, 1.0):  # R is at most slowed/2, so that a root would lie before the first token
        return Middle("rising", 0.0, log_kept(0.0), log_last)
    lowest = _lowest(slowed)
    margin = _condition(slowed, lowest) - level
    if lowest > 0 and abs(margin) <= 1e-14 * (1 + abs(level)):
        raise NotAccurate("rounding decides whether there is still a minimum; change `c` in its last digits.")
    if not margin < 0:
        return Middle("falling", 1.0, log_last, log_last)
    y = float(root(lambda y: min(_condition(slowed, y) - level, 1e300), lowest, lowest + 1, smallest=lowest))
    _, share, third = path_ratios(slowed, y, 3)
    check_steepness((share - third) / (1 - share), level, y)
    # at the root e^{level - y} = R/(1 - R), which gives u = e^{slope place} - 1 without the rounding of a large y
    steps = share / (1 - share) - dilution
    if steps <= 0:
        return Middle("rising", 0.0, log_kept(0.0), log_last)
    place = min(float(np.log1p(steps / (1 + dilution))) / slope, 1.0)
    return Middle("middle", place, log_kept(place), log_last)


def check_steepness(relative_fall: float, level: float, y: float) -> None:
    """Refuse a minimum that moves by more than `SURE` when its condition is rounded.

    Arguments:
        relative_fall: 1 less the slope of the condition at the minimum.
        level: what the condition has to reach.
        y: place of the minimum on the scale of the condition.
    """
    rounding = 1e-15 * (1 + abs(level) + y)
    if not relative_fall < 1 or abs(relative_fall) * rounding > SURE / 4 * (1 - relative_fall):
        raise NotAccurate("the minimum is so flat that rounding decides about its place; change the time a little.")


def level_of(slope: float, q: float) -> float:
    """log((1 + slope q) (e^slope - 1) + slope q), the level that the condition for the minimum must reach."""
    with np.errstate(divide="ignore"):
        return float(
            np.logaddexp(log_unit_growth(np.asarray(slope)) + np.log1p(slope * q), np.log(np.asarray(slope * q)))
        )


def _condition(c: float, y: float) -> float:
    """y + log(R/(1-R)), R = psi_c'(y)/psi_c(y); inf where R >= 1."""
    return y + float(logit(path_ratios(c, y, 2)[1]))


def logit(ratio: Numbers) -> np.ndarray:
    """log(R/(1 - R)) of ratios; inf where R >= 1."""
    inside = np.asarray(ratio) < 1
    safe = np.where(inside, ratio, 0.5)
    return np.where(inside, np.log(safe) - np.log1p(-safe), np.inf)


def _lowest(c: float) -> float:
    """The y >= 0 at which the condition at c is lowest: the root of 2 r_2 - r_3 = 1 (r of `hop_ratios`)."""

    def slope(y: float) -> float:
        ratios = path_ratios(c, y, 3)
        return float(2 * ratios[1] - ratios[2] - 1)

    # r_2 decreases from c/2, so that the left side falls from 2c/3 - 1 at y = 0; it is near sqrt(c/y) - 1 for large y
    return 0.0 if c <= 1.5 else float(root(slope, max(c - 2, 0.0), c + 1, smallest=0.0))


def _latest(slope: float, q: float) -> float:
    dilution = slope * q
    # the scaled time at which the condition at y = 0 reaches the level: R = c/2 = e^level/(1 + e^level)
    first = 2 * (dilution - math.expm1(-slope))
    if first <= 1.5 * (1 + dilution) or slope == 0:
        return first if slope else 0.0
    level = level_of(slope, q)
    guess = max(0.7 * level, 1.5)
    c = float(root(lambda c: _condition(c, _lowest(c)) - level, guess, max(level, 2.0) + 2, smallest=1.5))
    share = float(path_ratios(c, _lowest(c), 2)[1])
    steps = share / (1 - share) - dilution
    if abs(steps) <= 1e-11 * dilution:
        raise NotAccurate("rounding decides whether the last minimum is inside; change `slope` in its last digits.")
    return c * (1 + dilution) if steps > 0 else 0.0
