"""Given tokens arrive; fresh ones miss where a schedule cuts, and sometimes where it does not."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import averaged, fit, log_rms, refusal_bound, student
from attnflow_gallery.interpolation_is_not_learning.simulate import Parameters

GIVEN = consequence("Given tokens")
FRESH = consequence("Fresh tokens")
CUTS = consequence("Cuts")
TOL = 1e-3
"""W_2 that was asked for; a fresh sample beyond it has missed its target."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Distances of given and fresh tokens, wrong masses, and shifts of clouds."""
    part = data["samples"]
    there = part["found"].values != 0
    count, most = there.size, parameters.refusals
    refused = float(count - np.sum(part["found"].values))
    one, four = (missed(part["fresh"].values[k][there[k]].ravel()) for k in (0, 1))
    least = lower_mean(part["wrong"].values[1][there[1]], part["shift"].values[1][there[1]], parameters.level)
    level = log_rms(data["shifts"]["shift"].values ** 2)
    slope, error = fit([np.ones(len(level[0])), np.log(data["shifts"]["n"].values)], *level)
    given = f"given tokens, n = {parameters.tokens[0]}, followed by an adaptive solver: largest W_2"
    masses = "four atoms, clouds shifted by more than their radius: mean of the mass at wrong atoms"
    bound = f"Student's lower bound, level {parameters.level:g}"
    off = student(parameters.level, parameters.pairs)
    trial = "fixed after a trial with another salt, in which a quarter missed: that none does has the probability"
    return [
        Claim.at_most(
            given, TOL, part["given"].values[there[:, 0]], 0.0, "the tolerance that was asked for", origin=GIVEN
        ),
        Claim.at_most(f"refused schedules of {count}", most, refused, 0.0, refusal_bound(most, count), origin=GIVEN),
        Claim.at_least(
            "one atom: fresh samples that miss", 1.0, np.sum(one), 0.0, f"{trial} {0.75 ** (count / 2):.1g}",
            origin=FRESH,
        ),
        Claim.at_least(
            "four atoms: share of fresh samples that miss, less that for one atom", 1 / count,
            lower_difference(one, four, parameters.level), 0.0, bound, origin=CUTS, level=parameters.level,
        ),
        Claim.at_least(masses, 0.25, least, 0.0, bound, origin=CUTS, level=parameters.level),
        Claim.equal(
            "power of n in the shift of clouds", -0.5, float(slope[1]), off * float(error[1]) + 0.02,
            f"Student's test of the fit, level {parameters.level:g}; 0.02 for terms of order 1/n", origin=FRESH,
            level=parameters.level,
        ),
    ]  # fmt: skip


def missed(distance: np.ndarray) -> np.ndarray:
    """1 where W_2 is beyond the tolerance, 0 where it is not, and no number where it is none."""
    return np.asarray((distance > TOL) + 0 * distance)


def lower_mean(wrong: np.ndarray, shift: np.ndarray, level: float) -> float:
    """Student's lower bound of the mean wrong mass of samples whose cloud is shifted by more than its radius."""
    far = wrong[shift > 1] + 0 * np.sum(shift + wrong)  # no number if one of any sample is none
    if far.size < 2:
        return float("nan")
    mean, error = averaged(far)
    return float(mean - student(level, far.size) * error)


def lower_difference(one: np.ndarray, other: np.ndarray, level: float) -> float:
    """Student's lower bound of the difference of two means; NaN if there are too few."""
    if min(one.size, other.size) < 2:
        return float("nan")
    (first, error), (second, noise) = averaged(one), averaged(other)
    return float(second - first - student(level, min(one.size, other.size)) * np.hypot(error, noise))
