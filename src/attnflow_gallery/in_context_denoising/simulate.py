"""Training of one attention layer on two tasks, and the loss of every multiple of the identity."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow import in_float64
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import averaged
from attnflow.fields import Attention
from attnflow.learn import Denoising, Prompt, Train, attention_block

TASKS = ("centres", "great-sphere")


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    dim: int = 8
    noises: tuple[float, float] = (0.5, 0.4)
    """sigma of each task."""
    subspace: int = 3
    """Dimension of the subspaces whose unit spheres are the great spheres."""
    contexts: tuple[int, int] = (64, 128)
    """Tokens of a context."""
    steps: int = 1000
    """A mark, so that the last mark is the end."""
    batch: int = 128
    rate: float = 0.02
    decay: float = 400.0
    """After so many steps the rate is half as large."""
    start: float = 0.5
    """Entries of Q, K and V have this over the root of the dimension as standard deviation at first."""
    starts: int = 2
    """Seeds that are trained side by side, for each task."""
    least: int = 3
    """How many of all seeds have to leave the plateau of the start; fixed after trials."""
    far: float = 0.15
    """How far the inverse temperature may be from 1/sigma^2, as a part of it; the valley of the loss is flat."""
    test: int = 8192
    """Prompts of the test."""
    betas: tuple[float, ...] = (0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
    """Inverse temperatures of the grid of isotropic layers, in units of 1/sigma^2."""
    values: tuple[float, ...] = (0.94, 0.96, 0.98, 1.0, 1.02)
    """v of V = v I on this grid."""


QUICK = Parameters(
    dim=4, subspace=2, contexts=(48, 48), steps=422, batch=48, rate=0.05, decay=150.0, test=1024, far=0.3
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Weights through training, and losses of isotropic layers."""
    return study.parts(
        {f"train-{name}": training(name, parameters) for name in TASKS}
        | {f"grid-{name}": (grid, name, parameters) for name in TASKS}
    )


def task_of(name: str, parameters: Parameters) -> Denoising:
    """The task of a name."""
    p, k = parameters, TASKS.index(name)
    return Denoising(p.dim, p.contexts[k], (4, None)[k], p.subspace, p.noises[k])


def training(name: str, parameters: Parameters) -> Train:
    """One layer from random weights."""
    p, task = parameters, task_of(name, parameters)
    seeds = p.seeds(range(p.starts))
    return Train(attention_block(p.dim), task, p.steps, p.rate, p.batch, seeds, p.start, p.test, p.decay)


def tested(name: str, parameters: Parameters) -> tuple[Denoising, Prompt]:
    """The prompts of the test loss of the training."""
    work = training(name, parameters).checked()
    task: Any = work.task
    return task, work.test_prompts()


def weights_of(part: xr.Dataset) -> list[np.ndarray]:
    """Q, K and V at every mark, for every seed."""
    starts = ("weight_features_query", "weight_features_key", "weight_value")
    return [part[name].values for start in starts for name in part if str(name).startswith(start)]


def grid(name: str, parameters: Parameters) -> xr.Dataset:
    """(beta, v): the loss of attention with Q^T K = beta I, V = v I on the test prompts, and of the mirror image."""
    task, prompts = tested(name, parameters)
    k = TASKS.index(name)
    betas, values = (np.array(one) for one in (parameters.betas, parameters.values))
    betas = betas / parameters.noises[k] ** 2

    @eqx.filter_jit
    def products(beta: Any, prompts: Any) -> Any:
        field = Attention(beta, value=np.eye(parameters.dim))
        answers = jax.vmap(lambda prompt: task.output(field, prompt))(prompts)
        return (answers**2).sum((1, 2)), (answers * prompts.target).sum((1, 2))

    rows = [in_float64(products)(jnp.asarray(sign * beta), prompts) for sign in (1, -1) for beta in betas]
    square, product = np.moveaxis(np.array(rows), 1, 0).reshape(2, 2, len(betas), 1, -1)
    signs, v = np.array([1.0, -1.0]).reshape(2, 1, 1, 1), values[:, None]
    loss = v**2 * square - 2 * signs * v * product + 1  # |v a - t|^2 for unit t; the mirror image is -v at -beta
    more, error = averaged(loss[1] - loss[0], axis=-1)
    dims, best = ("beta", "v"), loss.mean(axis=-1)
    found = {"loss": best[0], "mirror": best[1], "difference": more, "error": error}
    return xr.Dataset({name: (dims, row) for name, row in found.items()}, {"beta": betas, "v": values})
