"""Training with shared weights and with weights of each layer, isotropic flows, and observables through training."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow import in_float64
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention, PerLayer
from attnflow.learn import Clustering, Train, attention_block

LINK = 0.3
"""Tokens nearer than this belong to one cluster."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    dim: int = 8
    tokens: int = 24
    centres: int = 4
    noise: float = 0.25
    layers: int = 5
    step: float = 0.5
    steps: int = 750
    """A mark of training, so that the last mark is the end."""
    batch: int = 64
    rate: float = 0.02
    decay: float = 150.0
    """After so many steps the rate is half as large."""
    start: float = 0.5
    """Entries of Q, K and V have this over the root of the dimension as standard deviation at first."""
    starts: int = 8
    """Seeds that are trained side by side."""
    least: int = 6
    """How many seeds have to leave the plateau; fixed after trials."""
    before: int = 64
    """Starts whose energy is looked at before training."""
    flat: float = 0.05
    """The largest anisotropy that is called isotropic; fixed after trials."""
    larger: tuple[float, ...] = (2.0,)
    """Larger starts, for comparison."""
    larger_steps: int = 237
    """A mark of training."""
    own: int = 2
    """Seeds with weights of each layer."""
    test: int = 512
    prompts: int = 48
    """Of which observables are averages."""
    betas: tuple[float, ...] = (4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
    """Of the isotropic flows."""
    values: tuple[float, ...] = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
    """v of the isotropic flows."""


QUICK = Parameters(
    dim=4,
    tokens=12,
    centres=3,
    noise=0.3,
    layers=3,
    steps=316,
    batch=24,
    rate=0.04,
    flat=0.1,
    larger_steps=100,
    starts=4,
    least=3,
    own=1,
    test=128,
    prompts=24,
)
"""Adam ends in a cloud about the minimum, whose anisotropy goes like (rate d)^(1/2) batch^(-1/4) (derivation): with the
rates of the last steps that is 1.8 times that of the full version, and the bound is twice as large."""


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Weights through training, then what they do to prompts; losses of isotropic flows."""
    trained = study.parts({"shared": training(parameters), "own": training(parameters, parameters.layers)})
    return trained | study.parts(
        {f"{name}-seen": (look, part, parameters) for name, part in trained.items()}
        | {"before": (look_before, parameters), "grid": (grid, parameters)}
        | {f"start-{start:g}": larger(start, parameters) for start in parameters.larger}
    )


def task_of(parameters: Parameters) -> Clustering:
    """The task."""
    p = parameters
    return Clustering(p.dim, p.tokens, p.centres, p.noise, p.layers, p.step)


def training(parameters: Parameters, layers: int | None = None) -> Train:
    """From random weights: the same in all layers, or those of each of several layers."""
    p = parameters
    seeds = p.seeds(range(p.starts if layers is None else p.own))
    block = attention_block(p.dim, layers=layers, step=p.step)
    return Train(block, task_of(p), p.steps, p.rate, p.batch, seeds, p.start, p.test, p.decay)


def larger(start: float, parameters: Parameters) -> Train:
    """Shared weights that start larger."""
    p = parameters
    seeds, block = p.seeds(range(p.starts)), attention_block(p.dim)
    return Train(block, task_of(p), p.larger_steps, p.rate, p.batch, seeds, start, p.test, p.decay)


def weights_of(part: xr.Dataset) -> list[np.ndarray]:
    """Q, K and V at every mark, for every seed."""
    starts = ("weight_features_query", "weight_features_key", "weight_value")
    return [part[name].values for start in starts for name in part if str(name).startswith(start)]


def grid(parameters: Parameters) -> xr.Dataset:
    """(beta, v): test loss of layers with Q^T K = beta I and V = v I, on the prompts of the shared weights."""
    work = training(parameters).checked()
    prompts, eye = work.test_prompts(), np.eye(parameters.dim)

    @eqx.filter_jit
    def mean(beta: Any, v: Any, prompts: Any) -> Any:
        field = Attention(beta, value=v * eye)
        return jnp.mean(jax.vmap(lambda prompt: work.task.loss(field, prompt))(prompts))

    found = [
        [in_float64(mean)(jnp.asarray(beta), jnp.asarray(v), prompts) for v in parameters.values]
        for beta in parameters.betas
    ]
    labels = {"beta": np.array(parameters.betas), "v": np.array(parameters.values)}
    rest = in_float64(lambda: 1 - jnp.mean(jnp.sum(prompts.positions * prompts.target, axis=-1)))()
    return xr.Dataset({"loss": (("beta", "v"), np.array(found)), "input": float(rest)}, labels)


def seen_by(parameters: Parameters) -> Any:
    """(Q, K, V) -> the paths of the test prompts, and by how much each layer raises the logarithm of its energy."""
    task, step = task_of(parameters), parameters.step
    prompts: Any = jax.tree.map(lambda a: a[: parameters.prompts], training(parameters).checked().test_prompts())

    @jax.jit
    def seen(query: Any, key: Any, value: Any) -> Any:
        def one(prompt: Any) -> Any:
            q, k, v = (a if a.ndim == 2 else PerLayer(a, step) for a in (query, key, value))
            path = task.path(Attention(1.0, query=q, key=k, value=v), prompt)
            # the energy of the layer that acts next: its own matrices before and after it
            a = jnp.einsum("...ab,...ac->...bc", query, key)
            a = jnp.broadcast_to(a, (parameters.layers, *a.shape[-2:]))
            before, after = (
                jnp.log(jnp.mean(jnp.exp(jnp.einsum("lia,lab,ljb->lij", x, a, x)), axis=(1, 2)))
                for x in (path[:-1], path[1:])
            )
            return path, after - before

        return jax.vmap(one)(prompts)

    return lambda *weights: tuple(np.asarray(a) for a in in_float64(seen)(*weights))


def look(part: xr.Dataset, parameters: Parameters) -> xr.Dataset:
    """(mark, seed, prompt, layer): energy, clusters and order parameter of prompts under the weights at every mark."""
    weights, seen = weights_of(part), seen_by(parameters)
    rows: list[list[np.ndarray]] = [[], [], []]
    for mark in np.ndindex(weights[0].shape[:2]):
        path, gain = seen(*(w[mark] for w in weights))
        for row, found in zip(rows, (gain, clusters(path), np.linalg.norm(path.mean(axis=2), axis=-1)), strict=True):
            row.append(found)
    shape = weights[0].shape[:2]
    dims = ("mark", "seed", "prompt")
    names = {"gain": "layer", "clusters": "depth", "order": "depth"}
    arrays = {
        name: ((*dims, last), np.reshape(row, (*shape, *np.shape(row)[1:])))
        for (name, last), row in zip(names.items(), rows, strict=True)
    }
    return xr.Dataset(arrays, {"mark_step": part["mark_step"]})


def look_before(parameters: Parameters) -> xr.Dataset:
    """(start, prompt, layer): the energy under shared weights before training, for more starts than are trained."""
    work = dataclasses.replace(training(parameters), seeds=parameters.seeds(range(parameters.before)))
    start, seen = work.checked().starts(), seen_by(parameters)
    weights = (start.features.query.weight.value, start.features.key.weight.value, start.value.weight.value)
    gain = [seen(*one)[1] for one in zip(*weights, strict=True)]
    return xr.Dataset({"gain": (("start", "prompt", "layer"), np.array(gain))})


def clusters(path: np.ndarray) -> np.ndarray:
    """(prompt, depth): connected components of tokens (prompt, depth, token, dim) that are nearer than `LINK`."""
    linked = np.einsum("pkia,pkja->pkij", path, path) > 1 - LINK**2 / 2  # |x - y|^2 = 2 - 2 <x, y>
    reach = linked.astype(np.float32)
    for _ in range(int(np.ceil(np.log2(path.shape[2])))):
        reach = np.minimum(reach @ reach, 1)
    first = np.argmax(reach > 0, axis=-1)  # the first token of the cluster of each token
    return np.asarray(np.sum(first == np.arange(path.shape[2]), axis=-1))
