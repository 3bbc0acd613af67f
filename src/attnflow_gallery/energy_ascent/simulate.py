"""Energies along flows, rates of the energy at random states of several heads, and a flow that descends."""

import dataclasses
import itertools
from typing import Any

import jax
import numpy as np
import xarray as xr

from attnflow import in_float64, theory
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, Solve
from attnflow.observe import energy, energy_rate, interaction_energy
from attnflow.spaces import Sphere
from attnflow.tokens import Measure, Tokens, uniform

MODELS = "SA", "USA0"
BETA = 2.0
"""Of the heads."""
TOKENS = 3
"""Of the heads, on the circle."""
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Matrices, positions and masses of random states."""
SUBSTEPS = 4
"""Steps from one frame to the next."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    n: int = 16
    d: int = 3
    betas: tuple[float, ...] = (1.0, 4.0, 9.0)
    draws: int = 4
    until: float = 8.0
    frames: int = 160
    """A multiple of 4; the integral is done by Simpson's rule on all frames and on every second one."""
    heads: tuple[int, ...] = (2, 4, 8)
    sizes: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 6.0)
    """s, the size of the matrices."""
    states: int = 2000
    """Random states per size of matrices."""
    descent: int = 64
    """Frames of the flow that descends."""


QUICK = Parameters(betas=(1.0, 4.0), draws=2, frames=48, descent=16, heads=(2,), sizes=(3.0,), states=1000)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Energies and their rates along flows, rates at random states, flows from a state that descends."""
    found = {}
    for model, beta in study.along(flows(parameters)):
        name = flow_name(model, beta)
        part = study.refined(name, _flow(parameters, model, beta))
        rate = theory.landscape.energy_rate_of_tokens(part["positions"].values, beta, model=model)
        found[name] = part.assign(rate=(("seed", "time"), np.asarray(rate)))
    rates = {f"{m}-{heads}": (_rates, parameters, m, heads, k) for k, (m, heads) in enumerate(cases(parameters))}
    found |= study.parts(rates)
    return found | _descend(parameters, found[f"SA-{parameters.heads[0]}"], study)


def flows(parameters: Parameters) -> list[tuple[str, float]]:
    """Models and betas of flows with Q = K = V = I."""
    return list(itertools.product(MODELS, parameters.betas))


def flow_name(model: str, beta: float) -> str:
    """The part of the data with this flow."""
    return f"{model}-beta{beta:g}"


def cases(parameters: Parameters) -> list[tuple[str, int]]:
    """Models and numbers of heads whose rates are looked at."""
    return [("SA", 1), ("USA0", max(parameters.heads)), *(("SA", heads) for heads in parameters.heads)]


def _flow(parameters: Parameters, model: str, beta: float) -> Solve:
    """Tokens from all draws; the energy that is observed has the beta of the parameters, whatever moves the tokens."""
    start = uniform(Sphere(parameters.d), n=parameters.n, seed=parameters.seeds(range(parameters.draws)))
    return _followed(Attention(beta, normaliser=model), start, parameters.until, parameters.frames, energy.of(beta))


def _followed(field: Attention, start: Tokens, until: float, frames: int, level: Any) -> Solve:
    """Positions and the energy `level` at every frame."""
    method, seen = Fixed(until / frames / SUBSTEPS), {"level": level}
    return Solve(field, start, until, save=frames, method=method, observe=seen, keep=("positions",))


def states(parameters: Parameters, heads: int, size: float, labels: tuple[int, int]) -> Drawn:
    """Matrices (states, heads, 2, 2), positions (states, tokens, 2), masses (states, tokens)."""
    rng, count = parameters.rng(*labels, 0), parameters.states
    gaussian = size * rng.standard_normal((count, heads, 2, 2))
    masses = rng.random((count, TOKENS)) + 0.5
    x = rng.standard_normal((count, TOKENS, 2))
    matrices = (gaussian + np.swapaxes(gaussian, -1, -2)) / 2
    return matrices, x / np.linalg.norm(x, axis=-1, keepdims=True), masses / masses.sum(axis=1, keepdims=True)


def heads_field(matrices: Any, model: str) -> Attention:
    """Heads with V = B that add up."""
    return Attention(BETA, query=matrices, value=matrices, average="sum", normaliser=model)


def _rates(parameters: Parameters, model: str, heads: int, place: int) -> xr.Dataset:
    """dE/dt of random states by the library, by the formula, and the rounding error."""

    def one(matrices: Any, x: Any, masses: Any) -> Any:
        return energy_rate(heads_field(matrices, model), Measure(x, masses))

    compiled, rows = in_float64(jax.jit(jax.vmap(one))), []
    for k, size in enumerate(parameters.sizes):
        drawn = states(parameters, heads, size, (place, k))
        rows.append(
            (np.asarray(compiled(*drawn)), *theory.landscape.energy_rate_of_heads(*drawn, beta=BETA, model=model))
        )
    names, columns = ("rate", "formula", "rounding"), zip(*rows, strict=True)
    made = {name: (("size", "state"), np.array(column)) for name, column in zip(names, columns, strict=True)}
    return xr.Dataset(made, {"size": list(parameters.sizes)}, {"place": place, "heads": heads})


def _descend(parameters: Parameters, part: xr.Dataset, study: Study) -> dict[str, xr.Dataset]:
    """Flows of softmax and of USA heads from the state where softmax heads descend fastest relative to the energy."""
    drawn = states(parameters, int(part.attrs["heads"]), float(part["size"][0]), (int(part.attrs["place"]), 0))
    logits = BETA * (np.einsum("nia,nhab,njb->nhij", drawn[1], drawn[0], drawn[1]) - 1)
    level = np.einsum("ni,nhij,nj->n", drawn[2], np.exp(logits), drawn[2]) / (2 * BETA)
    k, found = int(np.argmin(part["rate"].values[0] / level)), {}
    matrices, x, masses = (one[k] for one in drawn)
    for model in study.along(MODELS):
        # the energy changes by its own size in about this time; the time of a frame is a power of 2
        unit = float(
            level[k] / abs(float(theory.landscape.energy_rate_of_heads(matrices, x, masses, beta=BETA, model=model)[0]))
        )
        until = parameters.descent * 2.0 ** np.floor(np.log2(2 / parameters.descent * unit))
        field = heads_field(matrices, model)
        flow = _followed(field, Tokens(x, masses), until, parameters.descent, interaction_energy.of(field))
        found[f"descent-{model}"] = study.refined(f"descent-{model}", flow).assign_attrs(unit=unit)
    return found
