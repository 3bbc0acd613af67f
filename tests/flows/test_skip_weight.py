"""The weight of the skip connection: layers are those of NumPy, weight 0 included, and negative ones are refused."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.flows import Layers, Renormalise


@pytest.mark.parametrize("skip", [0.0, 0.5])
def test_layers_with_a_weighted_skip_connection(skip):
    """Three layers of eight tokens: sums of eight rounded products, grown little."""
    tokens = af.uniform(af.Sphere(3), n=8, seed=0)
    found = af.solve(af.Attention(2.0), tokens, 3.0, save=3, method=Layers(1.0, Renormalise(skip=skip)))
    x = np.asarray(tokens.positions)
    for layer in range(1, 4):
        weights = np.exp(2 * (x @ x.T - 1))
        x = skip * x + weights @ x / weights.sum(axis=1, keepdims=True)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        np.testing.assert_allclose(found.positions.values[layer], x, atol=1e-14)


def test_a_negative_weight_is_refused():
    with pytest.raises(InvalidInput, match="skip"):
        Renormalise(skip=-1.0)
