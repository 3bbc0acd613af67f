"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow import random_layers
from attnflow.axes import Along
from attnflow.experiments import Mutation, Salted, altered, result, scaled
from attnflow_gallery.common_noise import simulate


def stepped(heun: bool = False, bent: bool = False, factor: float = 1.0) -> Any:
    """Another `poisson_path`: noise times `factor`; with `heun` amplitudes are means of those at both ends of a step,
    as in Heun's method; with `bent` points follow layers, N(x + b), in place of boosts.
    """

    def path(w0: Any, tau: float, step: float, *, seed: int, replicas: int, save: Any, points: Any = None) -> Any:
        rng = Salted().rng(seed)  # the seed has the salt in it
        marks = np.linspace(0, tau, save + 1) if isinstance(save, int) else np.array(save)
        w = np.tile(np.asarray(w0, float), (replicas, 1))
        x = None if points is None else np.tile(points, (replicas, 1, 1))
        frames, carried, layers = [w], [x], np.rint(marks / step).astype(int)
        for k in range(1, layers[-1] + 1):
            noise = factor * np.sqrt(step / 2) * rng.standard_normal((replicas, 2))
            size = np.linalg.norm(w, axis=1, keepdims=True)
            if heun:
                after = np.asarray(random_layers.boost(w, size * noise))
                size = (size + np.linalg.norm(after, axis=1, keepdims=True)) / 2
            w = np.asarray(random_layers.boost(w, size * noise))
            if x is not None:
                by = (size * noise)[:, None, :]
                x = x + by if bent else np.asarray(random_layers.boost(x, np.broadcast_to(by, x.shape)))
                x = x / np.linalg.norm(x, axis=-1, keepdims=True)
            if k in layers:
                frames.append(w)
                carried.append(x)
        kept = np.stack([one for one in carried if one is not None], axis=1) if x is not None else None
        w = np.stack(frames, axis=1)
        return random_layers.PoissonPath(marks, w, 1 - np.sum(w**2, axis=-1), kept, seed)

    return lambda original: path


def moved(seeds: Along) -> Along:
    """Other head streams."""
    return Along("seed", tuple(int(one) + 500_000 for one in seeds.values))


def leaning(angle: np.ndarray) -> np.ndarray:
    """The uniform density and a little more on one side."""
    return 1 + 0.001 * np.cos(angle)


def evenly(original: Any) -> Any:
    """Tokens at the quantiles of the density in place of iid ones."""

    def place(n: int, parameters: simulate.Parameters) -> np.ndarray:
        angle = 2 * np.pi * (np.arange(n) + parameters.rng(1, n).uniform(size=(parameters.heads, 1))) / n
        z = simulate.wave(angle, -float(np.sqrt(parameters.order)))
        return np.stack([z.real, z.imag], axis=-1)

    return place


MUTATIONS = (
    Mutation("tokens have other heads than the density", simulate, "token_streams", result(moved)),
    Mutation("the other heads are the same", simulate, "others", lambda original: lambda values: values[:, None]),
    Mutation("tokens at quantiles in place of iid tokens", simulate, "iid", evenly),
    Mutation("40 % fewer tokens", simulate, "iid", altered("n", lambda n: int(0.6 * n))),
    Mutation("boosts of Heun: amplitudes from inside the step", simulate, "poisson_path", stepped(heun=True)),
    Mutation("points follow layers in place of boosts", simulate, "poisson_path", stepped(bent=True)),
    Mutation("noise of boosts 20 % larger", simulate, "poisson_path", stepped(factor=1.2)),
    Mutation("infinite temperature: weights kept for two layers", simulate, "hot", scaled("step", 2.0)),
    Mutation("logit scale half as large", simulate, "random_attention", scaled("logit_scale", 0.5)),
    Mutation("60 % more layers", simulate, "ends", scaled("tau", 1.6)),
    Mutation("a start with a little more on one side", simulate, "flat", lambda original: leaning),
)
