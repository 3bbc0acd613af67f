"""Heads with perceptrons of their own, averaged: composed and additive, against numbers of a program in NumPy."""

import numpy as np

import attnflow as af

X = np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1], [-0.6, 0, 0.8]])
VALUES = np.eye(3), np.diag([1.0, -1.0, 0.5])
OUTER = (
    np.array([[1, 0.5, 0], [0, 1, -0.5], [0.3, 0, 1]]),
    np.array([[0.5, 0, 1], [1, 1, 0], [0, -1, 0.5]]),
)
BIASES = np.array([0.1, -0.1, 0]), np.array([0, 0.2, -0.3])
COMPOSED = [
    [0, 0.4544974991, 0.2075829834],
    [0.1456351094, -0.1092263320, 0.2128563033],
    [0.1411122101, -0.0664444793, 0],
    [0.1811893635, -0.0820006046, 0.1358920226],
]
ADDITIVE = [
    [0, 0.6310569240, 0.1935321384],
    [0.3008091447, -0.2256068585, -0.2585391583],
    [0.3433395117, -0.1044762548, 0],
    [0.4848789195, -0.0592149980, 0.3636591896],
]


def test_composed_and_additive_averages():
    """Ten digits after the point are printed."""
    heads = [af.Attention(beta, value=value) for beta, value in zip((1.0, 3.0), VALUES, strict=True)]
    blocks = [af.Perceptron(np.eye(3), b, w) for w, b in zip(OUTER, BIASES, strict=True)]
    composed = sum([af.Composed(block, head) for block, head in zip(blocks, heads, strict=True)]) / 2
    additive = sum([block + head for block, head in zip(blocks, heads, strict=True)]) / 2
    for field, known in ((composed, COMPOSED), (additive, ADDITIVE)):
        np.testing.assert_allclose(field.velocity(af.from_array(X)), known, atol=1e-10)
