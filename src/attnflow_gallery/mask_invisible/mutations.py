"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.fields import Attention
from attnflow.masks import Causal, Everyone
from attnflow.meanfield import Density, PlacedDensity, mixture, uniform
from attnflow.tokens import Tokens
from attnflow_gallery.mask_invisible import simulate


def _other_beta(factor: float) -> Any:
    def change(field: Attention) -> Attention:
        return Attention(factor * field.beta, normaliser=field.normaliser, mask=field.mask)

    return altered("field", change)


def _flatter(density: Density) -> Density:
    """One token in four is uniform."""
    return mixture((0.75, 0.25), [density, uniform(density.basis)])


def _tilted(density: PlacedDensity) -> PlacedDensity:
    """The first harmonic falls by a millionth from the first place to the last."""
    rows = np.array(density.coefficients)
    rows[:, 1] *= 1 - 1e-6 * density.places.points
    return PlacedDensity(density.places, density.basis, rows)


def _sorted(prompts: Tokens) -> Tokens:
    """Tokens of a prompt in the order of their first coordinate."""
    rows = np.asarray(prompts.positions)
    order = np.argsort(rows[..., 0], axis=1)
    return prompts.moved(np.take_along_axis(rows, order[..., None], axis=1))


def _repeated(prompts: Tokens) -> Tokens:
    """Every second token repeats the one before it: noise of half as many tokens."""
    rows = np.array(prompts.positions)
    rows[:, 1::2] = rows[:, ::2][:, : rows[:, 1::2].shape[1]]
    return prompts.moved(rows)


MUTATIONS = (
    Mutation("beta of densities with places 0.0001 % larger", simulate, "evolve_placed", _other_beta(1 + 1e-6)),
    Mutation("densities with places differ by 1e-6", simulate, "placed", result(_tilted)),
    Mutation("beta of tokens twice as large", simulate, "field_of", scaled("beta", 2.0)),
    Mutation("no mask", simulate, "field_of", altered("mask", lambda mask: Everyone())),
    Mutation("mask everywhere", simulate, "field_of", altered("mask", lambda mask: Causal(strict=True))),
    Mutation("one token in four is uniform", simulate, "sample", altered("density", _flatter)),
    Mutation("sorted prompts", simulate, "prompts", result(_sorted)),
    Mutation("every second token repeats the one before", simulate, "prompts", result(_repeated)),
)
