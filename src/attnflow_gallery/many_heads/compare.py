"""The parity obstruction and the bias, the diagonal, two tokens, products that stall, flow maps, and averages."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, observed
from attnflow.experiments.kit import LEVEL, Rows, averaged, student
from attnflow_gallery.many_heads.simulate import Parameters

PARITY = consequence("Parity")
DIAGONAL = consequence("The diagonal")
TWO = consequence("Two tokens")
STALL = observed("Products for more tokens")
FLOWS = observed("Flow maps")
AVERAGES = consequence("Averages")
ROUNDING = 1e-9
"""Of errors that are 0 or 1 in exact arithmetic: least squares with condition numbers up to 1e6."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Obstructions for every number of heads; what is approximated and what stalls."""
    parts = {(n, d): data[f"fits-{n}-{d}"] for n, d in parameters.sizes}
    even, both, bias, flow, product = Rows(), Rows(), Rows(), Rows(), Rows()
    for (n, d), part in parts.items():
        error = {name: part["error"].sel(target=name).values for name in part["target"].values}
        label = [f"n = {n}, d = {d}, H = {h}" for h in parameters.heads]
        even.add(1.0, error["even"], ROUNDING, label)
        # |e_1 + F|^2 = 1 + |F|^2 = 2 for unit F: the square of the error is (1 + that of F)/2
        both.add(np.sqrt((1 + error["flow"] ** 2) / 2), error["sum"], ROUNDING, label)
        bias.add(ROUNDING, float(part["biased"]), 0.0, f"n = {n}, d = {d}")
        flow.add(0.6, error["flow"][-1] / error["flow"][0], 0.0, f"n = {n}, d = {d}")
        if n == 4:
            product.add(0.8, error["product"][-1] / error["product"][-2], 0.0, f"n = {n}, d = {d}")
            product.add(0.15, error["product"][-1], 0.0, f"n = {n}, d = {d}, the error itself")
    two = parts[parameters.sizes[0]]["error"].sel(target="product").values
    diagonal, average = data["diagonal"], data["averages"]
    off = np.abs(diagonal["answer"].values - diagonal["line"].values).max() / float(diagonal["size"])
    mean, spread = averaged(average["square"].values, axis=1)
    variance, noise = averaged(average["variance"].values)
    allowed = student(LEVEL, parameters.repeats, len(mean)) * np.hypot(spread, noise) + variance * 2e-2
    first, last = parameters.heads[0], parameters.heads[-1]
    seen = "fixed after trials with other seeds"
    orthogonal = "odd and even maps are orthogonal on prompts with their antipodes; rounding"
    return [
        even.equal("even target e_1: error for every number of heads", orthogonal, origin=PARITY),
        both.equal("e_1 and a flow map: error from that of the flow map alone", orthogonal, origin=PARITY),
        bias.at_most(f"e_1 with a bias, {first} heads: error", "rounding", origin=PARITY),
        Claim.at_most(
            "heads on the diagonal: distance to a linear map",
            1e-14,
            off,
            0.0,
            "rounding, relative to the sum of |V_h|",
            origin=DIAGONAL,
        ),
        Claim.at_most(f"two tokens: error of |mean|^2 mean with {last} heads", 1e-3, two[-1], 0.0, seen, origin=TWO),
        product.at_least(
            f"four tokens: error of |mean|^2 mean with {last} heads, and over that with fewer", seen, origin=STALL
        ),
        flow.at_most(f"flow maps: error with {last} heads over that with {first}", seen, origin=FLOWS),
        Claim.at_most(
            "one head that is among the heads: error",
            1e-10,
            float(data["exact"]["error"]),
            0.0,
            "rounding",
            origin=PARITY,
        ),
        Claim.equal(
            "averages of H heads: H times the mean square error",
            float(variance),
            mean,
            allowed,
            f"Student's test of {parameters.repeats} averages at level {LEVEL:g}; 2 % for the error of the mean",
            origin=AVERAGES,
            labels=[f"H = {h}" for h in parameters.averaged],
            level=LEVEL,
        ),
    ]
