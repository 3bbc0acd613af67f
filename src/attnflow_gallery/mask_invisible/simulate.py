"""Densities with places, iid prompts with and without a mask, and prompts whose topic changes."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.masks import AbstractMask, Causal, Everyone
from attnflow.meanfield import CircleBasis, Density, Places, evolve, evolve_placed, from_function, placed, sample
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

MODELS: tuple[str, ...] = ("SA", "USA0")
LAST = 0.75
"""The last quarter of the prompt is looked at."""
BINS = 10
"""Of places in the figure."""
STEP = 0.5
"""Of Runge-Kutta for tokens; rates are below 1/2, so that it errs by less than 1e-5 a step."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    beta: float = 1.0
    lean: float = 0.4
    """The density at the start is 1 + lean cos(theta) + (lean/2) cos(2 theta - 1)."""
    until: float = 2.0
    slopes: tuple[float, ...] = (0.0, 2.0)
    """Of ALiBi per prompt, for densities."""
    strong_beta: float = 4.0
    strong_until: float = 3.0
    """Densities alone, beyond linear theory."""
    degree: int = 48
    sizes: tuple[int, ...] = (64, 256, 1024)
    prompts: tuple[int, ...] = (4096, 2048, 768)
    share: float = 0.3
    """Of the early topic."""
    turn: float = 2.0
    """Angle between the topics."""
    switch_size: int = 1024
    switch_prompts: int = 768


QUICK = Parameters(sizes=(64, 256), prompts=(1024, 512), switch_size=256, switch_prompts=384)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Densities, iid prompts of every size, and switched prompts."""
    makers: dict[str, Any] = {"densities": (densities, parameters)}
    sizes = zip(parameters.sizes, parameters.prompts, strict=True)
    makers |= {f"iid-{n}": (iid, parameters, n, count) for n, count in sizes}
    return study.parts(makers | {"switch": (switch, parameters)})


def topic(parameters: Parameters, turn: float = 0.0) -> Density:
    """The density of one topic, turned by an angle."""

    def formula(theta: np.ndarray) -> np.ndarray:
        angle = theta - turn
        return 1 + parameters.lean * np.cos(angle) + parameters.lean / 2 * np.cos(2 * angle - 1)

    return from_function(CircleBasis(parameters.degree), formula)


def densities(parameters: Parameters) -> xr.Dataset:
    """Coefficients of the density at every place under a mask, and without places and mask, at the end."""
    start = topic(parameters)
    with_places = placed(Places(nodes=8), start)
    beta, until = parameters.strong_beta, parameters.strong_until
    alone, rows = [], []
    for model in MODELS:
        alone.append(evolve(Attention(beta, normaliser=model), start, until, save=1).dataset["coefficients"].values[-1])
        fields = [Attention(beta, normaliser=model, mask=Causal(slope=slope)) for slope in parameters.slopes]
        rows.append(
            [np.asarray(evolve_placed(field, with_places, until, save=1).last.coefficients) for field in fields]
        )
    return xr.Dataset(
        {
            "alone": (("model", "harmonic"), np.array(alone)),
            "placed": (("model", "slope", "place", "harmonic"), np.array(rows)),
        },
        coords={"model": list(MODELS), "slope": list(parameters.slopes), "place": with_places.places.points},
    )


def iid(parameters: Parameters, n: int, count: int) -> xr.Dataset:
    """The mean of the tokens, (mask, prompt, component), from the same starts with and without a mask."""
    start = prompts(n, count, [(1.0, topic(parameters))], parameters.seed(n))
    return _ends(parameters, start, 0.0)


def switch(parameters: Parameters) -> xr.Dataset:
    """The same for the last quarter of prompts whose topic changes."""
    topics = [(parameters.share, topic(parameters)), (1.0, topic(parameters, parameters.turn))]
    start = prompts(parameters.switch_size, parameters.switch_prompts, topics, parameters.seed(1))
    return _ends(parameters, start, LAST)


def prompts(n: int, count: int, topics: list[tuple[float, Density]], seed: int) -> Tokens:
    """Prompts of n independent tokens; each topic goes to the place that is given with it."""
    ends = [0, *(round(place * n) for place, _ in topics)]
    rows = [
        np.asarray(sample(density, (last - first) * count, 10 * seed + k).positions).reshape(count, last - first, 2)
        for k, ((first, last), (_, density)) in enumerate(zip(itertools.pairwise(ends), topics, strict=True))
    ]
    return Tokens(np.concatenate(rows, axis=1), space=Sphere(2), dims=("prompt",))


def _ends(parameters: Parameters, start: Tokens, first: float) -> xr.Dataset:
    masks: dict[str, AbstractMask] = {"masked": Causal(strict=True), "unmasked": Everyone()}
    rows, parts = [], []
    for mask in masks.values():
        field = field_of(parameters.beta, mask).prepare(start, 1e-6, flowing=True)
        end = np.asarray(advance(field, start, 0.0, parameters.until, Fixed(STEP)).positions)
        rows.append(end[:, round(first * start.n) :].mean(axis=1))
        parts.append([part.mean(axis=1) for part in np.array_split(end, BINS, axis=1)])
    profile = np.array(parts)  # (mask, bin, prompt, component)
    return xr.Dataset(
        {
            "order": (("mask", "prompt", "component"), np.array(rows)),
            "profile": (("mask", "bin", "component"), profile.mean(axis=2)),
            "profile_error": (("mask", "bin", "component"), profile.std(axis=2, ddof=1) / np.sqrt(profile.shape[2])),
        },
        coords={"mask": list(masks)},
    )


def field_of(beta: float, mask: AbstractMask) -> Attention:
    """The field of tokens."""
    return Attention(beta, mask=mask)
