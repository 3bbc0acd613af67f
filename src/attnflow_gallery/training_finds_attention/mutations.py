"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered
from attnflow.learn import Prompt
from attnflow_gallery.training_finds_attention import simulate


def drawing(change: Any) -> Any:
    """Prompts are changed."""

    def around(original: Any) -> Any:
        class Changed(original):
            def draw(self, rng: np.random.Generator, count: int) -> Prompt:
                return change(super().draw(rng, count))

        return Changed

    return around


def flat(prompt: Any) -> Prompt:
    """Centres have a tenth of their first coordinate: directions are not alike."""
    squeeze = np.r_[0.1, np.ones(prompt.target.shape[-1] - 1)]
    return Prompt(*(one / np.linalg.norm(one, axis=-1, keepdims=True) for one in (x * squeeze for x in prompt[:2])))


def turned(prompt: Any) -> Prompt:
    """Targets are turned by 60 degrees in the plane of the first two coordinates."""
    turn = np.eye(prompt.target.shape[-1])
    turn[:2, :2] = [[0.5, -np.sqrt(0.75)], [np.sqrt(0.75), 0.5]]
    return prompt._replace(target=prompt.target @ turn.T)


def from_identity(original: Any) -> Any:
    """Training starts with Q = K = V = I."""

    def make(field: Any, task: Any, steps: int, rate: float, batch: int, seeds: Any, start: float, *more: Any) -> Any:
        value: Any = np.eye(field.value.weight.shape[-1])
        if isinstance(field.value.weight, simulate.PerLayer):
            values = field.value.weight.values
            value = simulate.PerLayer(np.broadcast_to(value, values.shape).copy(), field.value.weight.step)
        plain = simulate.Attention(1.0, query=value, key=value, value=value)
        return original(plain, task, steps, rate, batch, seeds, None, *more)

    return make


def opposite(value: Any) -> Any:
    """A value matrix, or those of each layer, with the other sign."""
    return simulate.PerLayer(-value.values, value.step) if isinstance(value, simulate.PerLayer) else -value


MUTATIONS = (
    Mutation("32 steps of training", simulate, "Train", altered("steps", lambda _: 32)),
    Mutation("targets turned", simulate, "Clustering", drawing(turned)),
    Mutation("prompts flat in one direction", simulate, "Clustering", drawing(flat)),
    Mutation("training starts with the identity", simulate, "Train", from_identity),
    Mutation("tokens of the tests are repelled", simulate, "Attention", altered("value", opposite)),
    Mutation("larger starts are as small as the others", simulate, "larger", altered("start", lambda _: 0.5)),
    Mutation("weights of each layer are shared", simulate, "attention_block", altered("layers", lambda _: None)),
)
