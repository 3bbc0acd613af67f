"""Tasks that are solved in context: prompts are drawn at random, and nothing but the prompt says what is wanted."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.axes import Number, positive
from attnflow.checks import generator, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory
from attnflow.fields import AbstractField
from attnflow.fields.queries import AtPoints
from attnflow.flows import Layers, advance
from attnflow.spaces import AbstractSpace, Euclidean, Sphere
from attnflow.tokens import Measure, from_array


class Prompt(NamedTuple):
    """One prompt; `AbstractTask.prompts` gives many, with one more axis in front."""

    positions: Float[Array | np.ndarray, "token dim"]
    """The tokens."""
    target: Float[Array | np.ndarray, "answer dim"]
    """The right answers."""
    query: Float[Array | np.ndarray, "answer dim"] | None = None
    """Where answers are asked for; None: at the tokens."""


class AbstractTask(eqx.Module):
    """Random prompts with right answers, and the loss of a field on one prompt."""

    @property
    @abc.abstractmethod
    def size(self) -> tuple[int, int]:
        """Tokens of a prompt, and their dimension."""

    @property
    @abc.abstractmethod
    def space(self) -> AbstractSpace:
        """Where the tokens are."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> Prompt:
        """`count` independent prompts, in NumPy; each array has one more axis in front."""

    @abc.abstractmethod
    def output(self, field: AbstractField, prompt: Prompt) -> Float[Array, "answer dim"]:
        """The answers of a field to one prompt; differentiable."""

    @abc.abstractmethod
    def loss(self, field: AbstractField, prompt: Prompt) -> Float[Array, ""]:
        """How wrong these answers are; differentiable."""

    def prompts(self, count: int, *, seed: int = 0) -> Prompt:
        """`count` independent prompts; each array has one more axis in front."""
        n, dim = self.size
        require_memory(16 * whole("count", count, 1) * n * dim, "the prompts", "draw fewer")
        return self.draw(generator(seed), count)

    def check(self, field: AbstractField) -> None:
        """Refuse a field that does not fit the prompts."""
        n, dim = self.size
        field.check(from_array(np.tile(np.eye(1, dim), (n, 1)), space=self.space))


class Clustering(AbstractTask):
    """In-context clustering: each token is a noisy copy of one of K centres, and shall be carried to its centre.

    The centres are iid uniform on the sphere and new in every prompt; tokens are N(c + sigma xi), xi Gaussian in R^dim,
    each with a random centre. A network of `layers` layers x <- N(x + step X[mu](x)) moves all tokens of the prompt;
    the loss is the mean of 1 - <x_i, c_i> at the end.

    Arguments:
        noise: sigma.
    """

    dim: int = eqx.field(static=True, default=8)
    tokens: int = eqx.field(static=True, default=32)
    centres: int = eqx.field(static=True, default=4)
    noise: Number = eqx.field(converter=positive("noise", batch=False), default=0.25)
    layers: int = eqx.field(static=True, default=6)
    step: Number = eqx.field(converter=positive("step", batch=False), default=0.5)

    def __check_init__(self) -> None:
        whole("dim", self.dim, 2)
        for name in ("tokens", "centres", "layers"):
            whole(name, getattr(self, name), 1)

    @property
    def size(self) -> tuple[int, int]:
        return self.tokens, self.dim

    @property
    def space(self) -> AbstractSpace:
        return Sphere(self.dim)

    def draw(self, rng: np.random.Generator, count: int) -> Prompt:
        centres = _unit(rng.standard_normal((count, self.centres, self.dim)))
        target = _chosen(rng, centres, self.tokens)
        return Prompt(_unit(target + float(self.noise) * rng.standard_normal(target.shape)), target)

    def output(self, field: AbstractField, prompt: Prompt) -> Any:
        until = self.layers * float(self.step)
        return advance(field, Measure(prompt.positions), 0.0, until, Layers(float(self.step))).positions

    def path(self, field: AbstractField, prompt: Prompt) -> Any:
        """(layers + 1, tokens, dim): the tokens before the first layer and after each."""
        step = float(self.step)
        found: list[Any] = [jnp.asarray(prompt.positions)]
        for k in range(self.layers):
            found.append(advance(field, Measure(found[-1]), k * step, (k + 1) * step, Layers(step)).positions)
        return jnp.stack(found)

    def loss(self, field: AbstractField, prompt: Prompt) -> Any:
        return jnp.mean(1 - jnp.sum(self.output(field, prompt) * prompt.target, axis=-1))


class Denoising(AbstractTask):
    """In-context denoising (arXiv:2502.05164): a noisy query shall be moved to the clean point that it was made of.

    The context are clean unit tokens: copies of K random centres, or, with `centres=None`, uniform on the sphere of a
    random subspace of dimension `subspace`. The query is a clean point of the same distribution plus sigma xi, xi
    Gaussian in R^dim. The answer is one attention of the query over the context, without residual and projection; the
    loss is the squared distance.

    For many tokens the best answer is the posterior mean, which is attention with Q^T K = I/sigma^2 and V = I.

    Arguments:
        noise: sigma.
    """

    dim: int = eqx.field(static=True, default=8)
    tokens: int = eqx.field(static=True, default=64)
    centres: int | None = eqx.field(static=True, default=4)
    subspace: int = eqx.field(static=True, default=3)
    noise: Number = eqx.field(converter=positive("noise", batch=False), default=0.5)

    def __check_init__(self) -> None:
        whole("dim", self.dim, 2)
        whole("tokens", self.tokens, 1)
        whole("subspace", self.subspace, 1, 2**20)
        if self.centres is not None:
            whole("centres", self.centres, 1)
        elif self.subspace > self.dim:
            raise InvalidInput(f"`subspace` is {self.subspace}; give at most the dimension, {self.dim}.")

    @property
    def size(self) -> tuple[int, int]:
        return self.tokens, self.dim

    @property
    def space(self) -> AbstractSpace:
        return Euclidean(self.dim)

    def draw(self, rng: np.random.Generator, count: int) -> Prompt:
        if self.centres is None:
            basis = np.linalg.qr(rng.standard_normal((count, self.dim, self.subspace)))[0]
            points = _unit(rng.standard_normal((count, self.tokens + 1, self.subspace))) @ np.swapaxes(basis, 1, 2)
        else:
            points = _chosen(rng, _unit(rng.standard_normal((count, self.centres, self.dim))), self.tokens + 1)
        noise = float(self.noise) * rng.standard_normal((count, 1, self.dim))
        return Prompt(points[:, 1:], points[:, :1], points[:, :1] + noise)

    def output(self, field: AbstractField, prompt: Prompt) -> Any:
        return field.formula(0.0, AtPoints(prompt.query), Measure(prompt.positions, space=self.space))

    def loss(self, field: AbstractField, prompt: Prompt) -> Any:
        return jnp.sum((self.output(field, prompt) - prompt.target) ** 2)


def _unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def _chosen(rng: np.random.Generator, centres: np.ndarray, n: int) -> np.ndarray:
    """(count, n, dim): one of the centres of its prompt for every token."""
    which = rng.integers(centres.shape[1], size=(len(centres), n))
    return np.take_along_axis(centres, which[..., None], axis=1)
