"""Changes of the mean overlap by attention of fresh networks: as predicted; more where one layer is repeated."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, observed
from attnflow.experiments.kit import LEVEL, Rows, averaged, lower_ends, student
from attnflow_gallery.fresh_networks.simulate import OWN, SHARED, Parameters, name

DRIFT = consequence("The drift of one layer")
SEEN = observed("A layer that is repeated")
HALF = 0.5
"""Share of the predicted change that is found at least: no motion at all makes the claim fail; fixed beforehand."""
TIMES = 3.0
"""How many times the predicted change a shared layer makes, at least; fixed from a first look at 60 other networks."""
ENTRIES = "interval of 99.9 % of the mean over texts, each with fresh networks of its own"


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The sum over layers is predicted, and resolved; a shared layer starts like that and then adds up."""
    own = {which: data[name(which, OWN)] for which in parameters.shapes}
    shared = {which: data[name(which, SHARED)] for which in parameters.shapes if name(which, SHARED) in data}
    return [_equal(own, shared), _resolved(parameters, own), _more(parameters, shared)]


def of_texts(parameters: Parameters, values: np.ndarray) -> np.ndarray:
    """(text,) means of values (draw,) over the networks that had the same text."""
    texts = np.arange(len(values)) % parameters.texts
    return np.bincount(texts, values) / np.bincount(texts)


def _equal(own: dict[str, xr.Dataset], shared: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    both = [(f"{which}, all layers", part, slice(None)) for which, part in own.items()]
    both += [(f"{which} repeated, first layer", part, slice(0, 1)) for which, part in shared.items()]
    for words, part, layers in both:
        measured, predicted = (part[key].values[:, layers].sum(axis=1) for key in ("measured", "predicted"))
        _, error = averaged(measured - predicted)
        allowed = student(LEVEL, len(measured), len(both)) * error + float(part["time"]) * predicted.mean()
        rows.add(predicted.mean(), measured.mean(), allowed, words)
        said.append(f"{words}: {measured.mean():.5f}, predicted {predicted.mean():.5f}, standard error {error:.5f}")
    return rows.equal(
        "change of the mean overlap by attention of fresh networks, predicted from the tokens that enter each layer",
        f"Student's test over networks at the level {LEVEL:g}, and tau of a layer, relative: the next order",
        origin=DRIFT,
        detail="; ".join(said),
        level=LEVEL,
    )


def _resolved(parameters: Parameters, own: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for which, part in own.items():
        measured, predicted = (part[key].values.sum(axis=1) for key in ("measured", "predicted"))
        rows.add(0.0, lower_ends(of_texts(parameters, measured - HALF * predicted))[1], 0.0, which)
    return rows.at_least(
        f"change of the mean overlap over all layers, less {HALF:g} of the predicted one",
        f"lower end of the {ENTRIES}; no motion at all is the null",
        origin=DRIFT,
    )


def _more(parameters: Parameters, shared: dict[str, xr.Dataset]) -> Claim:
    rows, said = Rows(), []
    for which, part in shared.items():
        measured, predicted = (part[key].values.sum(axis=1) for key in ("measured", "predicted"))
        rows.add(0.0, lower_ends(of_texts(parameters, measured - TIMES * predicted))[1], 0.0, which)
        ratio = np.mean(measured) / np.mean(predicted)
        said.append(f"{which}: {measured.mean():.4f}, {ratio:.1f} times the predicted {predicted.mean():.4f}")
    return rows.at_least(
        f"one fresh layer repeated: change of the mean overlap by attention, less {TIMES:g} times the predicted one",
        f"lower end of the {ENTRIES}; {TIMES:g} was fixed beforehand",
        origin=SEEN,
        detail="; ".join(said),
    )
