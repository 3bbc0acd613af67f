"""Wide random fields, split into units in four ways; the reference is Strang's splitting with many more units."""

import dataclasses
import itertools

import numpy as np
import xarray as xr

from attnflow.control import split
from attnflow.experiments import Salted, Study

ORDERS = ("maurey", "trotter", "reshuffled", "strang")
Wide = tuple[np.ndarray, np.ndarray, np.ndarray]
"""w, a and b."""
VARIATION = 4.0
"""sum |w_j| |a_j|."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    dims: tuple[int, ...] = (2, 10, 50)
    units: int = 64
    elements: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
    reference: int = 2**17
    points: int = 500
    fields: int = 20
    """Random fields for every dimension."""
    draws: int = 6
    """Random orders for every field."""


QUICK = Parameters(dims=(2, 10), elements=(128, 512, 2048), points=100, fields=24, draws=2, reference=2**14)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Squared errors of maps and log-determinants."""
    return study.parts({"errors": (errors, parameters, study)})


def wide(parameters: Parameters, d: int, number: int) -> Wide:
    """Weights w, a, b of a random field."""
    rng, n = parameters.rng(1, d, number), parameters.units
    w, a, b = rng.standard_normal((n, d)), rng.standard_normal((n, d)), rng.standard_normal(n)
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    return w * VARIATION / np.linalg.norm(w, axis=1).sum(), a, b


def pushed(field: Wide, x: np.ndarray, count: int, order: str, seed: int) -> list[np.ndarray]:
    """End points and log-determinants of a splitting."""
    w, a, b = field
    return list(split(w, a, b, count, order=order, seed=seed).push(x))


def errors(parameters: Parameters, study: Study) -> xr.Dataset:
    """(d, order, elements, field) mean squares of errors of the map and of the log-determinant."""
    shape = (len(parameters.dims), len(ORDERS), len(parameters.elements), parameters.fields)
    found = np.zeros((2, *shape))
    for i, d in enumerate(parameters.dims):
        for f in range(parameters.fields):
            study.progress(f"d = {d}, field {f + 1}", (i + f / parameters.fields) / shape[0])
            field = wide(parameters, d, f)
            x = parameters.rng(2, d, f).standard_normal((parameters.points, d))
            exact = pushed(field, x, parameters.reference, "strang", 0)
            for (k, order), (j, count) in itertools.product(enumerate(ORDERS), enumerate(parameters.elements)):
                draws = parameters.draws if order in ("maurey", "reshuffled") else 1
                for seed in parameters.seeds(range(1000 * f, 1000 * f + draws)):
                    end, log_det = pushed(field, x, count, order, seed)
                    found[0, i, k, j, f] += np.mean(np.sum((end - exact[0]) ** 2, axis=1)) / draws
                    found[1, i, k, j, f] += np.mean((log_det - exact[1]) ** 2) / draws
    dims = ("d", "order", "elements", "field")
    labels = {"d": list(parameters.dims), "order": list(ORDERS), "elements": list(parameters.elements)}
    return xr.Dataset({"map": (dims, found[0]), "log_det": (dims, found[1])}, labels)
