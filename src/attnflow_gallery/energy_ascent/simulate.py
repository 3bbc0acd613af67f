"""Energies along flows, rates of the energy at random states of several heads, and a flow that descends."""

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
import xarray as xr

from attnflow import in_float64, theory
from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import Fixed, advance
from attnflow.observe import energy, energy_rate, interaction_energy
from attnflow.spaces import Sphere
from attnflow.tokens import Measure, Tokens, uniform

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
BETA = 2.0
"""Of the heads."""
TOKENS = 3
"""Of the heads, on the circle."""
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
    """Energies and their rates along flows, rates at random states, one flow that descends."""
    found = {}
    for k, model in enumerate(MODELS):
        study.progress(f"flows of {model}", k / 6)
        found[model] = study.part(model, functools.partial(_flow, parameters, model))
    for k, (model, heads) in enumerate(cases(parameters)):
        study.progress(f"random states of {heads} {model} heads", 1 / 3 + k / len(cases(parameters)) / 2)
        name = f"{model}-{heads}"
        found[name] = study.part(name, functools.partial(_rates, parameters, model, heads, k))
    study.progress("a flow that descends", 0.9)
    first = found[f"SA-{parameters.heads[0]}"]
    found["descent"] = study.part("descent", functools.partial(_descend, parameters, first))
    return found


def cases(parameters: Parameters) -> list[tuple[str, int]]:
    """Models and numbers of heads whose rates are looked at."""
    return [("SA", 1), ("USA0", max(parameters.heads)), *(("SA", heads) for heads in parameters.heads)]


def _flow(parameters: Parameters, model: str) -> xr.Dataset:
    """Energy, with a step and with half of it, and the rate of the energy of theory, at every frame."""
    betas = Along("beta", parameters.betas)
    field = Attention(betas, normaliser=MODELS[model])
    span = parameters.until / parameters.frames
    coarse = fine = uniform(Sphere(parameters.d), n=parameters.n, seed=parameters.seeds(range(parameters.draws)))
    rows = []
    for frame in range(parameters.frames + 1):
        if frame:
            coarse = advance(field, coarse, 0.0, span, Fixed(span / SUBSTEPS))
            for _ in range(2):
                fine = advance(field, fine, 0.0, span / 2, Fixed(span / 2 / SUBSTEPS))
        if frame == 0:  # from here on all betas have tokens of their own
            every = np.broadcast_to(fine.positions, (len(parameters.betas), *fine.positions.shape))
            coarse = fine = Tokens(every, dims=("beta", "seed"))
        rows.append((fine.positions, coarse.positions))
    seen = [np.stack(column, axis=2) for column in zip(*rows, strict=True)]  # (beta, seed, frame, token, dim)
    # the energy of the simulated tokens belongs to the beta of the parameters, whatever beta moved them
    columns = [np.asarray(energy(Tokens(x, dims=("beta", "seed", "frame")), betas)) for x in seen]
    rates = [
        theory.landscape.energy_rate_of_tokens(x, b, model) for x, b in zip(seen[0], parameters.betas, strict=True)
    ]
    return xr.Dataset(
        {
            name: (("beta", "seed", "time"), np.asarray(column))
            for name, column in zip(("energy", "coarse", "rate"), [*columns, rates], strict=True)
        },
        {"beta": list(parameters.betas), "time": np.linspace(0, parameters.until, parameters.frames + 1)},
    )


def states(
    parameters: Parameters, heads: int, size: float, labels: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices (states, heads, 2, 2), positions (states, tokens, 2), masses (states, tokens)."""
    rng, count = parameters.rng(*labels, 0), parameters.states
    gaussian = size * rng.standard_normal((count, heads, 2, 2))
    masses = rng.random((count, TOKENS)) + 0.5
    x = rng.standard_normal((count, TOKENS, 2))
    matrices = (gaussian + np.swapaxes(gaussian, -1, -2)) / 2
    return matrices, x / np.linalg.norm(x, axis=-1, keepdims=True), masses / masses.sum(axis=1, keepdims=True)


def heads_field(matrices: Any, model: str) -> Attention:
    """Heads with V = B that add up."""
    return Attention(BETA, query=matrices, value=matrices, average="sum", normaliser=MODELS[model])


def _rates(parameters: Parameters, model: str, heads: int, place: int) -> xr.Dataset:
    """dE/dt of random states by the library, by the formula, and the rounding error."""

    def one(matrices: Any, x: Any, masses: Any) -> Any:
        return energy_rate(heads_field(matrices, model), Measure(x, masses))

    compiled, rows = in_float64(jax.jit(jax.vmap(one))), []
    for k, size in enumerate(parameters.sizes):
        drawn = states(parameters, heads, size, (place, k))
        rows.append((np.asarray(compiled(*drawn)), *theory.landscape.energy_rate_of_heads(*drawn, BETA, model)))
    names, columns = ("rate", "formula", "rounding"), zip(*rows, strict=True)
    return xr.Dataset(
        {name: (("size", "state"), np.array(column)) for name, column in zip(names, columns, strict=True)},
        {"size": list(parameters.sizes)}, {"place": place, "heads": heads},
    )  # fmt: skip


def _descend(parameters: Parameters, part: xr.Dataset) -> xr.Dataset:
    """Flows of softmax and of USA heads from the state where softmax heads descend fastest relative to the energy."""
    size, heads = float(part["size"].values[0]), int(part.attrs["heads"])
    drawn = states(parameters, heads, size, (int(part.attrs["place"]), 0))
    logits = BETA * (np.einsum("nia,nhab,njb->nhij", drawn[1], drawn[0], drawn[1]) - 1)
    level = np.einsum("ni,nhij,nj->n", drawn[2], np.exp(logits), drawn[2]) / (2 * BETA)
    k = int(np.argmin(part["rate"].values[0] / level))
    found = xr.Dataset()
    for model in MODELS:
        rate, _ = theory.landscape.energy_rate_of_heads(drawn[0][k], drawn[1][k], drawn[2][k], BETA, model)
        # the energy changes by its own size in about level/|rate|; the time of a frame is a power of 2
        span = 2.0 ** np.floor(np.log2(2 / parameters.descent * level[k] / abs(float(rate))))
        seen = _follow(heads_field(drawn[0][k], model), Tokens(drawn[1][k], drawn[2][k]), span, parameters.descent)
        found = found.assign({f"{name}_{model}": part for name, part in seen.items()})
        found.attrs[f"unit_{model}"] = float(level[k] / abs(float(rate)))
    return found.assign_attrs(heads=heads, size=size)


def _follow(field: Attention, start: Tokens, span: float, frames: int) -> xr.Dataset:
    """Time, energy with a step and with half of it, and positions, at every frame."""
    coarse = fine = start
    rows = [(0.0, *(interaction_energy(field, start),) * 2, np.asarray(start.positions))]
    for frame in range(1, frames + 1):
        coarse = advance(field, coarse, 0.0, span, Fixed(span / SUBSTEPS))
        for _ in range(2):
            fine = advance(field, fine, 0.0, span / 2, Fixed(span / 2 / SUBSTEPS))
        energies = interaction_energy(field, fine), interaction_energy(field, coarse)
        rows.append((frame * span, *energies, np.asarray(fine.positions)))
    dims = {"positions": ("frame", "token", "dim")}
    columns = zip(("time", "energy", "coarse", "positions"), zip(*rows, strict=True), strict=True)
    return xr.Dataset({name: (dims.get(name, ("frame",)), np.array(column, float)) for name, column in columns})
