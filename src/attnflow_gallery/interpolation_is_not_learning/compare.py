"""Given tokens arrive; fresh ones miss where a schedule cuts, and sometimes where it does not."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import LEVEL, Effects, averaged, fit, log_rms, refusal_bound, student
from attnflow_gallery.interpolation_is_not_learning.simulate import Parameters

GIVEN = consequence("Given tokens")
FRESH = consequence("Fresh tokens")
CUTS = consequence("Cuts")
MISSING = 0.5
"""Share of the schedules for one atom that are expected to let some fresh sample miss; 0.54 to 0.8 did."""
TOL = 1e-3
"""W_2 that was asked for; a fresh sample beyond it has missed its target."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Distances of given and fresh tokens, wrong masses, and shifts of clouds."""
    part = data["samples"]
    there = part["found"].values != 0
    count, most = there.size, parameters.refusals
    refused = float(count - np.sum(part["found"].values))
    one, four = (missed(part["fresh"].values[k][there[k]].ravel()) for k in (0, 1))
    cut = far_masses(part["wrong"].values[1][there[1]], part["shift"].values[1][there[1]])
    draws = len(parameters.tokens) * parameters.repeats * parameters.measures
    more, masses = Effects(draws, parameters.expected_misses), Effects(draws, parameters.expected_mass)
    difference, noise = mean_difference(one, four)
    more.add(1 / count, difference, noise, "four atoms less one")
    mass, error = averaged(cut) if cut.size > 1 else (np.nan, np.nan)
    masses.add(0.25, mass, error, f"{cut.size} clouds")
    level = log_rms(data["shifts"]["shift"].values ** 2)
    slope, off = fit([np.ones(len(level[0])), np.log(data["shifts"]["n"].values)], *level)
    given = f"given tokens, n = {parameters.tokens[0]}, followed by an adaptive solver: largest W_2"
    wrong = "four atoms, clouds shifted by more than their radius: mean of the mass at wrong atoms"
    allowed = student(LEVEL, parameters.pairs)
    none = (1 - MISSING) ** (count / 2)
    trial = f"for one atom a share of {MISSING:g} of the schedules of other salts, or more, let a sample miss"
    return [
        Claim.at_most(
            given, TOL, part["given"].values[there[:, 0]], 0.0, "the tolerance that was asked for", origin=GIVEN
        ),
        Claim.at_most(f"refused schedules of {count}", most, refused, 0.0, refusal_bound(most, count), origin=GIVEN),
        Claim.at_least(
            "one atom: fresh samples that miss", 1.0, np.sum(one), 0.0,
            f"{trial}; that none does has the probability {none:.0e}", origin=FRESH, level=none,
        ),
        more.above(
            "four atoms: share of fresh samples that miss, less that for one atom", "Student's test", origin=CUTS
        ),
        masses.above(wrong, "Student's test", origin=CUTS),
        Claim.equal(
            "power of n in the shift of clouds", -0.5, float(slope[1]), allowed * float(off[1]) + 0.02,
            f"Student's test of the fit, level {LEVEL:g}; 0.02 for terms of order 1/n", origin=FRESH, level=LEVEL,
        ),
    ]  # fmt: skip


def missed(distance: np.ndarray) -> np.ndarray:
    """1 where W_2 is beyond the tolerance, 0 where it is not, and no number where it is none."""
    return np.asarray((distance > TOL) + 0 * distance)


def far_masses(wrong: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The wrong masses of samples whose cloud is shifted by more than its radius; NaN if any number is none."""
    return np.asarray(wrong[shift > 1] + 0 * np.sum(shift + wrong))


def mean_difference(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The mean of the second sample less that of the first, and its standard error; NaN if there are too few."""
    if min(first.size, second.size) < 2:
        return float("nan"), float("nan")
    (mean, error), (other, noise) = averaged(first), averaged(second)
    return float(other - mean), float(np.hypot(error, noise))
