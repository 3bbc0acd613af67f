"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, scaled
from attnflow.learn import Prompt
from attnflow_gallery.in_context_denoising import simulate


def towards(prompt: Any) -> Prompt:
    """A context that lies on one half of each great sphere: tokens and targets are turned to the side of the first."""
    points = np.concatenate([prompt.target, prompt.positions], axis=1)
    turned = points * np.where(np.sum(points * points[:, :1], axis=-1, keepdims=True) < 0, -1.0, 1.0)
    return Prompt(turned[:, 1:], turned[:, :1], prompt.query - prompt.target + turned[:, :1])


def drawing(change: Any) -> Any:
    """Prompts of both tasks are changed."""

    def around(original: Any) -> Any:
        class Changed(original):
            def draw(self, rng: np.random.Generator, count: int) -> Prompt:
                return change(super().draw(rng, count))

        return Changed

    return around


def negated(prompt: Any) -> Prompt:
    """Contexts are turned around; query and target are not."""
    return prompt._replace(positions=-prompt.positions)


def stretched(prompt: Any) -> Prompt:
    """The first coordinate is three times as noisy."""
    return prompt._replace(
        query=prompt.target + (prompt.query - prompt.target) * np.r_[3.0, np.ones(prompt.query.shape[-1] - 1)]
    )


def still(original: Any) -> Any:
    """Training from Q = K = V = I with steps of no length."""

    def make(field: Any, task: Any, steps: int, rate: float, batch: int, seeds: Any, start: float, *more: Any) -> Any:
        eye = np.eye(task.dim)
        plain = simulate.Attention(1.0, query=eye, key=eye, value=eye)
        return original(plain, task, steps, 1e-12, batch, seeds, None, *more)

    return make


MUTATIONS = (
    Mutation("30 % more noise", simulate, "Denoising", scaled("noise", 1.3)),
    Mutation("contexts on half spheres", simulate, "Denoising", drawing(towards)),
    Mutation("contexts turned around", simulate, "Denoising", drawing(negated)),
    Mutation("noise three times as large in one coordinate", simulate, "Denoising", drawing(stretched)),
    Mutation("30 steps of training", simulate, "Train", altered("steps", lambda _: 32)),
    Mutation("weights start as the identity and stay", simulate, "Train", still),
)
