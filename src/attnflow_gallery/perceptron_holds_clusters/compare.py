"""Separations, folds and rates against closed forms; cycle products against 1 and against another program."""

import itertools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, observed
from attnflow.experiments.kit import Rows
from attnflow_gallery.perceptron_holds_clusters.simulate import MODELS, Parameters, guesses

HOLD = consequence("Two neurons against attention")
CYCLES = consequence("Softmax with a perceptron has no energy")
SEEN = observed("Cycle products")
KNOWN = {0.5: 1.06051914, 1.0: 1.08590227}
"""Cycle products of softmax by kappa, from central differences in a program of its own."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Held pairs, then cycles."""
    return [
        held(parameters, data),
        _folds(parameters, data["folds"]),
        _rates(parameters, data["rates"]),
        *_cycles(parameters, data["cycles"]),
    ]


def held(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Separations at rest."""
    rows, part = Rows(), data["held"]
    for k, ((opening, share, model), kappa) in enumerate(guesses(parameters).items()):
        known = theory.landscape.held_angle(parameters.beta, opening, kappa, model=model)
        # the slowest rate at these shares is above 0.2, so that e^(-12) of 0.1 rad is left; means of clusters of size s
        # are off by s^2
        off = 0.1 * np.exp(-0.2 * parameters.until) * 2 + float(part["size"][k]) ** 2 + 1e-8
        rows.add(known, part["angle"].values[k], off, f"{model}, opening {opening:g}, {share:g} of the threshold")
    return rows.equal(
        "12 tokens on S² and two neurons: separation at rest", "what is left at the slowest rate 0.2", origin=HOLD
    )


def _folds(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows, opening = Rows(), parameters.openings[0]
    for (i, model), (j, beta) in itertools.product(enumerate(MODELS), enumerate(parameters.betas)):
        low, high = part["log_kappa"].values[i, j]
        known = np.log(theory.landscape.hold_threshold(beta, opening, model=model).kappa)
        # a pair that is slower than pi/sqrt(share) at the bottleneck looks held: share = (2 pi/until)^2
        late = (2 * np.pi / parameters.long) ** 2
        rows.add(known + late / 2, (low + high) / 2, (high - low) / 2 + late, f"{model}, β = {beta:g}")
    return rows.equal(
        "two tokens and two neurons: log of the strength of attention at which they merge",
        "the bracket of bisection; pairs that pass the bottleneck too slowly",
        origin=HOLD,
    )


def _rates(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows = Rows()
    for k, (opening, share) in enumerate(itertools.product(parameters.openings, parameters.shares)):
        known = np.sort(
            theory.landscape.held_rates(parameters.beta, opening, guesses(parameters)[opening, share, "USA0"])
        )
        rows.add(known, part["rate"].values[k], 1e-6, f"opening {opening:g}, {share:g} of the threshold")
    return rows.equal(
        "held pair, USA0: all four rates", "separations are off by at most 1e-7, rates by some 10 of it", origin=HOLD
    )


def _cycles(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    usa, sa = part["cycle"].values
    labels = [f"κ = {kappa:g}" for kappa in parameters.kappas]
    known = [KNOWN[kappa] for kappa in parameters.kappas]
    reason = "rest to 1e-9; eight digits are printed"
    return [
        Claim.equal("three tokens, USA0: cycle product is 1", 1.0, usa, 1e-7, reason, origin=CYCLES, labels=labels),
        Claim.equal("three tokens, SA: cycle product is not 1", known, sa, 1e-7, reason, origin=SEEN, labels=labels),
    ]
