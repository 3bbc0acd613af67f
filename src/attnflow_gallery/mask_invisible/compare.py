"""Densities with and without places, tokens with and without a mask, and what a change of topic sees."""

import functools

import numpy as np
import xarray as xr

from attnflow.experiments import NUMERICS, Claim, consequence
from attnflow.experiments.kit import LEVEL, Rows, student
from attnflow.fields import Attention
from attnflow.masks import Causal
from attnflow.meanfield import PlacedDensity, Places, evolve, evolve_placed, placed
from attnflow.theory.causal import weights as causal_weights
from attnflow_gallery.mask_invisible.linear import Carried, carried
from attnflow_gallery.mask_invisible.simulate import LAST, Parameters, topic

SAME = consequence("A prompt that is the same at all places")
NOISE = consequence("Noise of the start")
SWITCH = consequence("A change of topic")
MASKS = ("masked", "unmasked")


@functools.lru_cache
def iid_noise(parameters: Parameters, n: int, mask: str) -> Carried:
    """The order parameter of iid prompts of n tokens and its noise, by linear theory."""
    if mask == "unmasked":  # one place that hears itself: what a token adds to its own weight is of order 1/n
        found = carried(parameters.beta, [topic(parameters)], np.eye(1), np.ones(1), parameters.until)
        return Carried(found.order, found.noise / n)
    weights, looked = causal_weights(n, 0.0), np.full(n, 1 / n)
    return carried(parameters.beta, [topic(parameters)] * n, weights, looked, parameters.until)


@functools.lru_cache
def switch_noise(parameters: Parameters, mask: str) -> Carried:
    """The same for the last quarter of a prompt whose topic changes."""
    n = parameters.switch_size
    early = round(parameters.share * n)
    starts = [topic(parameters)] * early + [topic(parameters, parameters.turn)] * (n - early)
    weights = causal_weights(n, 0.0) if mask == "masked" else np.full((n, n), 1 / n)
    looked = np.where(np.arange(n) >= round(LAST * n), 1.0, 0.0)
    return carried(parameters.beta, starts, weights, looked / looked.sum(), parameters.until)


@functools.lru_cache
def density_order(parameters: Parameters) -> np.ndarray:
    """The order parameter of the density without places and mask."""
    flow = evolve(Attention(parameters.beta), topic(parameters), parameters.until, save=1)
    end = flow.density()
    return np.array([np.sum(np.asarray(end.coefficients) * end.basis.harmonic(1, order)) for order in (0, -1)])


@functools.lru_cache
def switched(parameters: Parameters, mask: str) -> PlacedDensity:
    """The placed density of a prompt whose topic changes, at the end."""
    start = placed(Places((0.0, parameters.share, 1.0)), [topic(parameters), topic(parameters, parameters.turn)])
    field = Attention(parameters.beta, mask=Causal()) if mask == "masked" else Attention(parameters.beta)
    return evolve_placed(field, start, parameters.until, save=1).last


def switched_order(parameters: Parameters, mask: str) -> np.ndarray:
    """The order parameter of its last quarter."""
    end = switched(parameters, mask)
    return np.array([end.integral(1, order, LAST, 1.0) for order in (0, -1)])


def mean_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over prompts, the second last axis, and its standard error."""
    return values.mean(axis=-2), values.std(axis=-2, ddof=1) / np.sqrt(values.shape[-2])


def squares(parameters: Parameters, data: dict[str, xr.Dataset], n: int) -> tuple[np.ndarray, np.ndarray]:
    """N E|z - z of the density|^2 of iid prompts by mask, and its standard error."""
    off = data[f"iid-{n}"]["order"].values - density_order(parameters)
    mean, error = mean_error(n * np.sum(off**2, axis=-1, keepdims=True))
    return mean[:, 0], error[:, 0]


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Densities; means and noise of iid prompts; prompts whose topic changes."""
    tokens = [_mean(parameters, data), _noise(parameters, data)]
    return [*_densities(data["densities"]), *tokens, _switch(parameters, data["switch"])]


def _densities(part: xr.Dataset) -> list[Claim]:
    rows, alone = part["placed"].values, part["alone"].values
    off = np.max(np.abs(rows - alone[:, None, None]), axis=(2, 3))
    spread = np.max(np.ptp(rows, axis=2), axis=-1)
    labels = [f"{model}, slope {slope:g}" for model in part["model"].values for slope in part["slope"].values]
    same, differ = Rows(), Rows()
    # two solvers that allow 1e-10 a step relative to the largest coefficient, some tens of steps
    same.add(0.0, off, 1e-8, labels)
    differ.add(0.0, spread, 1e-12, labels)
    equal = "densities: coefficients under a mask equal those without"
    apart = "densities: coefficients under a mask differ between places by"
    rounding = "rounding: prefix weights sum to 1 to the last bits, and errors grow by at most e^(4 t/4)"
    return [
        same.equal(equal, "both solvers ask for 1e-10 a step", origin=NUMERICS),
        differ.at_most(apart, rounding, origin=NUMERICS),
    ]


def _mean(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, order = Rows(), density_order(parameters)
    allowed = student(LEVEL, min(parameters.prompts), 4 * len(parameters.sizes))
    for n in parameters.sizes:
        mean, error = mean_error(data[f"iid-{n}"]["order"].values)
        for at, mask in enumerate(MASKS):
            labels = [f"{mask}, N = {n}, {wave}" for wave in ("cos", "sin")]
            rows.add(0.0, mean[at] - order, allowed * error[at] + iid_noise(parameters, n, mask).noise, labels)
    says = "iid prompts: the mean order parameter, with and without a mask, less that of the density"
    reason = f"Student's test, level {LEVEL:g} for all; second order: the mean square of the noise"
    detail = f"the density's is {np.hypot(*order):.4f}, {parameters.lean / 2:g} at the start"
    return rows.equal(says, reason, origin=SAME, level=LEVEL, detail=detail)


def _noise(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, allowed = Rows(), student(LEVEL, min(parameters.prompts), 2 * len(parameters.sizes))
    for n in parameters.sizes:
        mean, error = squares(parameters, data, n)
        linear = np.array([n * iid_noise(parameters, n, mask).noise for mask in MASKS])
        rows.add(linear, mean, allowed * error + 2 * linear**2 / n, [f"{mask}, N = {n}" for mask in MASKS])
    says = "iid prompts: N E|z − z of the density|² is that of noise carried by the linearised flow"
    reason = f"Student's test, level {LEVEL:g} for all; a share 2 E|noise|² of the second order"
    detail = (
        f"at N = {n} predicted {linear[0]:.2f} masked, {linear[1]:.2f} not; measured {mean[0]:.2f} and {mean[1]:.2f}"
    )
    return rows.equal(says, reason, origin=NOISE, level=LEVEL, detail=detail)


def _switch(parameters: Parameters, part: xr.Dataset) -> Claim:
    values, allowed = part["order"].values, student(LEVEL, parameters.switch_prompts, 4)
    mean, error = mean_error(values)
    predicted, rows = np.array([switched_order(parameters, mask) for mask in MASKS]), Rows()
    for at, mask in enumerate(MASKS):
        discrete = switch_noise(parameters, mask)
        room = np.abs(discrete.order - predicted[at]) + discrete.noise
        rows.add(predicted[at], mean[at], allowed * error[at] + room, [f"{mask}, {wave}" for wave in ("cos", "sin")])
    apart = np.hypot(*(mean[0] - mean[1])), np.hypot(*(predicted[0] - predicted[1]))
    order = "a change of topic: order parameter of the last quarter, with and without a mask, by the placed density"
    places = f"{parameters.switch_size} places instead of a continuum"
    reason = f"Student's test, level {LEVEL:g} for all; {places}; second order: the mean square of the noise"
    detail = f"the mask moves it by {apart[0]:.4f}; placed densities: {apart[1]:.4f}"
    return rows.equal(order, reason, origin=SWITCH, level=LEVEL, detail=detail)
