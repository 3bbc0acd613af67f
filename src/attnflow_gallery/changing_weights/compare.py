"""Winners of ramps, critical rates and times to merge against closed forms."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import Rows
from attnflow_gallery.changing_weights.simulate import LAST, MODELS, Parameters

RAMP = consequence("Winner of a ramp")
FREEZE = consequence("Freezing")
SKEW = consequence("V with a skew part")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Ramps, freezing, skew V."""
    return [winners(parameters, data), _freezing(parameters, data["freezing"]), _skew(parameters, data)]


def winners(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Modes that first reach a large amplitude."""
    rows = Rows()
    for k, product in enumerate(parameters.products):
        known = theory.uniform.ramp_winner(product)
        rows.add(known, data["ramps"]["winner"].values[k], 0.0, f"r log(A/ε) = {product:g}")
    return rows.equal(
        "β = r t from nine seeded modes: the mode that wins",
        "whole numbers; r log(A/ε) is at least a fifth away from a switch, where the winner leads by 1.7 or more",
        origin=RAMP,
    )


def _freezing(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows = Rows()
    for k, (first, angle) in enumerate(parameters.pairs):
        # y = beta u at the last beta: merged for ever if y <= log(beta/r) - 1, kept for ever if y >= log(2 beta/r) + 1
        below, above = LAST * (1 - np.cos(part["angle"].values[k]))
        slow, fast = part["rate"].values[k]
        label = f"first β {first:g}, angle {angle:g}"
        rows.add(0.0, below + 1 - np.log(LAST / slow), 0.0, f"{label}, below: βu + 1 − log(β/r)")
        rows.add(0.0, max(1 + np.log(2 * LAST / fast), 2.0) - above, 0.0, f"{label}, above: 1 + log(2β/r) − βu")
    return rows.at_most(
        f"two clusters under β₀ + r t: merged at {100 * parameters.near:g} % below the critical rate, kept above it",
        f"at β = {LAST:g} the pair is where u = 1 − cos θ falls to 0, or where βu grows for ever: no margin",
        origin=FREEZE,
    )


def _skew(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for model in MODELS:
        for k, skew in enumerate(parameters.skews):
            known = theory.merging.skew_merge_time(
                parameters.angle,
                parameters.beta,
                skew,
                masses=parameters.masses,
                until=parameters.until,
                model=model,
            )
            # some 300 steps, off by 2 rtol each, over the mean speed 1/T; the crossing is interpolated
            off = 1e-6 + 600 * parameters.rtol * known
            rows.add(known, data[f"skew-{model}"]["time"].values[k], off, f"{model}, ω = {skew:g}")
    return rows.equal(
        "V = I + ωJ, unequal clusters, USA0 and SA: time to merge, either way round",
        "300 steps of rtol over the mean speed; interpolation of the crossing",
        origin=SKEW,
    )
