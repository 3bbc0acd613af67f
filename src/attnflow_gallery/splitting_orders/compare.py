"""Orders of the four splittings."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, Origin, consequence, published
from attnflow_gallery.splitting_orders.simulate import ORDERS, Parameters

MAUREY = published("geshkovski2026constructive", "abstract: 1/eps^2 switches")
SPLITTINGS = consequence("Orders of splittings")
STEPS = consequence("The log-determinant")
WANTED = {"maurey": 0.5, "trotter": 1.0, "reshuffled": 1.5, "strang": 2.0}
BEST = 1.15


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Orders of maps, of log-determinants, and the dimension."""
    part = data["errors"]
    dims = [f"d = {d}" for d in part["d"].values]
    found = [
        Claim.equal(
            f"order of the map, {order}", WANTED[order], slopes(part["map"], order), 0.15,
            "random fields and orders scatter by 0.05; corrections of higher order at K = 2n", origin=_origin(order),
            labels=dims,
        )
        for order in ORDERS
    ]  # fmt: skip
    last = np.sqrt(part["map"].sel(order="maurey").isel(elements=-1).mean("field").values)
    found.append(
        Claim.at_most(
            "error of Maurey's draws, largest over smallest dimension", 1.5, float(last[-1] / last[0]), 0.0,
            "the bound depends on sum |w||a| alone; fields differ by 20 %", origin=MAUREY,
        )
    )  # fmt: skip
    steps = np.array([slopes(part["log_det"], order) for order in ("reshuffled", "strang")])
    found.append(
        Claim.equal(
            "order of the log-determinant, reshuffled and Strang", 1.0, steps, BEST - 1,
            "as for the map", origin=STEPS, labels=lambda at: f"{('reshuffled', 'strang')[at[0]]}, {dims[at[1]]}",
        )
    )  # fmt: skip
    return found


def _origin(order: str) -> Origin:
    return MAUREY if order == "maurey" else SPLITTINGS


def slopes(squares: xr.DataArray, order: str) -> np.ndarray:
    """-d log(error)/d log(elements) by least squares, for every dimension."""
    rms = np.sqrt(squares.sel(order=order).mean("field").values)
    return np.asarray(-np.polyfit(np.log(squares["elements"].values), np.log(rms).T, 1)[0])
