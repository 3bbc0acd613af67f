"""Winners of ramps, critical rates and times to merge against closed forms."""

import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import Rows
from attnflow_gallery.changing_weights.simulate import MODELS, Parameters

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
        below, above = part["angle"].values[k]
        label = f"first β {first:g}, angle {angle:g}"
        # merged pairs are at rounding; kept ones have β u > 5, u = angle²/2, at the last β of 300: angle > 0.18
        rows.add(0.0, below, 0.05, f"{label}, below")
        rows.add(1.0, min(above / 0.18, 1.0), 0.0, f"{label}, above")
    return rows.equal(
        f"two clusters under β₀ + r t: merged at {100 * parameters.near:g} % below the critical rate, kept above it",
        "merged: below 0.05 rad; kept: above 0.18 rad, where β u > 5 at the end",
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
