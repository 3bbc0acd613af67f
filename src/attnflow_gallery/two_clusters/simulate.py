"""Two clusters followed in plain time to where they meet, and on the coordinate log t at large beta."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import crossing, pair_angle
from attnflow.fields import Attention
from attnflow.flows import Adaptive, Evenly, LongTime, solve, solve_long
from attnflow.tokens import Tokens

MODELS = "SA", "USA0"
AFTER = 30.0
"""How long a pair is followed beyond the crossing; the angle falls like e^(-t), to round-off."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    betas: tuple[float, ...] = (1.0, 3.0, 5.0, 10.0, 20.0, 40.0, 100.0)
    angles: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    masses: tuple[float, ...] = (0.5, 0.7, 0.9)
    """Mass of the first cluster."""
    dims: tuple[int, ...] = (2, 3)
    until: float = 0.01
    """The angle at which the clusters count as merged."""
    reach: float = 14.0
    """Largest beta (1 - cos angle) in plain time: beyond it the speed nears round-off."""
    rtol: float = 1e-11
    atol: float = 1e-12
    large_betas: tuple[float, float] = (1000.0, 2000.0)
    """Where the large-beta expansion is tried, on the coordinate log t."""
    large_tol: float = 1e-9


QUICK = Parameters(betas=(1.0, 5.0), angles=(1.0, 1.5), masses=(0.5, 0.7), dims=(3,))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Merge time and meeting point of every pair, with what their errors depend on; log times at large beta."""
    kinds = itertools.product(MODELS, parameters.dims)
    makers = {f"{model}-S{dim - 1}": (_pairs, parameters, study, model, dim) for model, dim in kinds}
    *pairs, large = study.parts({**makers, "large": (_large, parameters)}).values()
    return {"pairs": xr.concat(pairs, dim="pair"), "large": large}


def _pairs(parameters: Parameters, study: Study, model: str, dim: int) -> xr.Dataset:
    """Pairs of all inverse temperatures, angles and masses that plain time can follow."""
    rng, rows = parameters.rng(0, dim), []
    every = itertools.product(parameters.betas, parameters.angles, parameters.masses)
    pairs = [pair for pair in every if pair[0] * (1 - np.cos(pair[1])) <= parameters.reach]
    for k, (beta, angle, mass) in enumerate(pairs):
        study.progress(f"{model} on S^{dim - 1}: pair {k + 1} of {len(pairs)}", k / len(pairs))
        labels = {"model": model, "dim": dim, "beta": beta, "angle": angle, "mass": mass}
        rows.append(labels | follow(model, beta, place(angle, mass, dim, rng), parameters))
    return _table(rows)


def _table(rows: list[dict[str, Any]]) -> xr.Dataset:
    return xr.Dataset({name: ("pair", np.array([row[name] for row in rows])) for name in rows[0]})


def place(angle: float, mass: float, dim: int, rng: np.random.Generator) -> Tokens:
    """Two clusters at `angle` on a random great circle."""
    frame, _ = np.linalg.qr(rng.standard_normal((dim, 2)))
    return Tokens(np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]) @ frame.T, [mass, 1 - mass])


def follow(model: str, beta: float, tokens: Tokens, parameters: Parameters) -> dict[str, float]:
    """One pair: search for the crossing, flow there in one go, and on until the clusters have met."""
    field = Attention(beta, normaliser=model)
    method = Adaptive(parameters.rtol, parameters.atol)
    close, rate = crossing(field, tokens, method, parameters.until)
    there = solve(field, tokens, close, save=Evenly(15), method=method)
    last = there.positions.values[-1]
    time = close + np.log(pair_angle(last) / parameters.until) / rate
    after = solve(field, Tokens(last, tokens.masses), AFTER, save=Evenly(15), method=method)
    begin, end = np.asarray(tokens.positions), after.positions.values[-1]
    normal = begin[1] - (begin[0] @ begin[1]) * begin[0]
    circle = np.array([begin[0], normal / np.linalg.norm(normal)])
    along = circle @ end[0]
    return {
        "time": time,
        "travelled": float(np.arctan2(along[1], along[0])),
        "rest": pair_angle(end),
        "steps_to_time": there.steps["accepted"],
        "steps": there.steps["accepted"] + after.steps["accepted"],
        "slowness": float(np.max(1 / there.dataset["speed"].values)),
        "floor": float(np.max(there.dataset["floor"].values)),
    }


def _large(parameters: Parameters) -> xr.Dataset:
    """Log times of the most unequal pairs at large beta, and their errors as reported."""
    rng, mass, rows = parameters.rng(1), max(parameters.masses), []
    method = LongTime(parameters.large_tol, angle=2 * math.sin(parameters.until / 2))
    for model, angle, beta in itertools.product(MODELS, parameters.angles, parameters.large_betas):
        field = Attention(beta, normaliser=model)
        merges = solve_long(field, place(angle, mass, 3, rng), math.inf, method=method).merges
        off = float(merges["error"][0] - merges["bound"][0]) + parameters.large_tol
        labels = {"model": model, "angle": angle, "mass": mass, "beta": beta}
        rows.append(labels | {"log_time": float(merges["log_time"][0]), "off": off})
    return _table(rows)
