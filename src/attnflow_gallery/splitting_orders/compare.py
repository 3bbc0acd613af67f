"""Orders of the four splittings."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import Rows
from attnflow_gallery.splitting_orders.simulate import Parameters

MAUREY = published("geshkovski2026constructive", "abstract: 1/eps^2 switches")
SPLITTINGS = consequence("Orders of splittings")
STEPS = consequence("The log-determinant")
WANTED = {"maurey": 0.5, "trotter": 1.0, "reshuffled": 1.5, "strang": 2.0}
BEST = 1.15


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Orders of maps, of log-determinants, and the dimension."""
    part = data["errors"]
    dims = [f"d = {d}" for d in part["d"].values]
    scatter = "random fields and orders scatter by 0.05; corrections of higher order at K = 2n"
    found = []
    for order, wanted in WANTED.items():
        origin, slope = MAUREY if order == "maurey" else SPLITTINGS, slopes(part["map"], order)
        found.append(
            Claim.equal(f"order of the map, {order}", wanted, slope, 0.15, scatter, origin=origin, labels=dims)
        )
    errors = np.sqrt(part["map"].sel(order="maurey").isel(elements=-1).mean("field").values)
    words = "error of Maurey's draws, largest over smallest dimension"
    reason = "the bound depends on sum |w||a| alone; fields differ by 20 %"
    found.append(Claim.at_most(words, 1.5, errors[-1] / errors[0], 0.0, reason, origin=MAUREY))
    rows = Rows()
    for order in ("reshuffled", "strang"):
        rows.add(1.0, slopes(part["log_det"], order), BEST - 1, [f"{order}, {d}" for d in dims])
    words = "order of the log-determinant, reshuffled and Strang"
    return [*found, rows.equal(words, "as for the map", origin=STEPS)]


def slopes(squares: xr.DataArray, order: str) -> np.ndarray:
    """-d log(error)/d log(elements) by least squares, for every dimension."""
    rms = np.sqrt(squares.sel(order=order).mean("field").values)
    return np.asarray(-np.polyfit(np.log(squares["elements"].values), np.log(rms).T, 1)[0])
