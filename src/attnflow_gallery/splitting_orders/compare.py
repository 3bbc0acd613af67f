"""Orders of the four splittings."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import LEVEL, Rows, averaged, student
from attnflow_gallery.splitting_orders.simulate import Parameters

DRAWS = consequence("Independent draws")
SPLITTINGS = consequence("Orders of splittings")
STEPS = consequence("The log-determinant")
WANTED = {"maurey": 0.5, "trotter": 1.0, "reshuffled": 1.5, "strang": 2.0}


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Orders of maps, of log-determinants, and the dimension."""
    part, left = data["errors"], left_out(parameters)
    dims = [f"d = {d}" for d in part["d"].values]
    reason = f"Student's bound of {parameters.fields} fields, level {LEVEL:g}; a further term as large at K = n"
    found = []
    for order, wanted in WANTED.items():
        slope, error = slopes(part["map"], order)
        off = student(LEVEL, parameters.fields, len(dims)) * error + left
        origin = DRAWS if order == "maurey" else SPLITTINGS
        found.append(
            Claim.equal(
                f"order of the map, {order}", wanted, slope, off, reason, origin=origin, labels=dims, level=LEVEL
            )
        )
    level, error = averaged(np.log(part["map"].sel(order="maurey").values[:, -1]) / 2, axis=-1)
    ratio, off = level[-1] - level[0], student(LEVEL, parameters.fields) * np.hypot(error[-1], error[0])
    words = "error of Maurey's draws, log of the ratio of largest and smallest dimension"
    reason = f"Student's bound of {parameters.fields} fields, level {LEVEL:g}"
    found.append(Claim.at_most(words, 0.0, ratio, off, reason, origin=DRAWS, level=LEVEL))
    rows = Rows()
    for order in ("reshuffled", "strang"):
        slope, error = slopes(part["log_det"], order)
        off = student(LEVEL, parameters.fields, 2 * len(dims)) * error + left
        rows.add(1.0, slope, off, [f"{order}, {d}" for d in dims])
    return [
        *found,
        rows.equal("order of the log-determinant, reshuffled and Strang", "as for the map", origin=STEPS, level=LEVEL),
    ]


def slopes(squares: xr.DataArray, order: str) -> tuple[np.ndarray, np.ndarray]:
    """-d log(error)/d log(elements) by least squares for every dimension: mean over fields, standard error."""
    logs = np.log(squares.sel(order=order).values) / 2  # (d, elements, field)
    count = np.log(squares["elements"].values.astype(float))
    count = count - count.mean()
    return averaged(-np.tensordot(logs, count / (count @ count), axes=([1], [0])), axis=-1)


def left_out(parameters: Parameters) -> float:
    """What a further term of the squared error changes in a slope, if it is h = n/K times the leading one."""
    count = np.array(parameters.elements, float)
    return float(abs(np.polyfit(np.log(count), np.log1p(parameters.units / count) / 2, 1)[0]))
