"""Residual networks as fields, with weights to be fitted."""

from typing import Any

import numpy as np

from attnflow.axes import positive
from attnflow.checks import generator, whole
from attnflow.feasible import require_memory
from attnflow.fields import Interpolated, PerLayer
from attnflow.fields.perceptron import Perceptron
from attnflow.flows import Layers
from attnflow.learn.classifier import Classifier


def residual_network(
    dim: int,
    width: int,
    layers: int,
    *,
    until: float = 1.0,
    seed: int = 0,
    activation: Any = "tanh",
    shared: bool = False,
    smooth: bool = True,
) -> Perceptron:
    """dx/dt = W(t) sigma(A(t) x + b(t)) on R^dim up to time `until`; `Layers(until / layers)` of it is the ResNet.

    All layers start with the same small random weights: a network that starts as the discretisation of a smooth flow
    stays one while it learns (arXiv:2309.01213); independent layers would average out (arXiv:2206.06929).

    Arguments:
        width: rows of A.
        layers: h = until / layers is the step at which the weights have values of their own.
        activation: "relu", "gelu", "tanh" or a function.
        shared: one set of weights for all times.
        smooth: weights linear in time between the layers (`Interpolated`, layers + 1 values), so that the network may
            be refined or run backwards; False holds them constant over each layer (`PerLayer`).
    """
    for name, value in (("dim", dim), ("width", width), ("layers", layers)):
        whole(name, value, 1)
    require_memory(16 * dim * width * (1 if shared else layers), "the weights of the network", "make it smaller")
    step = positive("until")(until) / layers
    rng = generator(seed)
    inner = rng.standard_normal((width, dim))
    bias = rng.standard_normal(width)
    outer = 0.1 * rng.standard_normal((dim, width)) / np.sqrt(width)

    def weight(start: np.ndarray) -> Any:
        if shared:
            return start
        values = np.repeat(start[None], layers + int(smooth), axis=0)
        return Interpolated(values, step) if smooth else PerLayer(values, step)

    return Perceptron(weight(inner), weight(bias), weight(outer), activation)


def residual_classifier(
    dim: int,
    width: int,
    layers: int,
    *,
    classes: int = 2,
    until: float = 1.0,
    seed: int = 0,
    activation: Any = "tanh",
    shared: bool = False,
    smooth: bool = True,
) -> Classifier:
    """The `residual_network` of these arguments, run layer by layer, with the first coordinates as scores at first."""
    whole("classes", classes, 2, whole("dim", dim, 2))
    field = residual_network(
        dim, width, layers, until=until, seed=seed, activation=activation, shared=shared, smooth=smooth
    )
    return Classifier(field, np.eye(classes, dim), method=Layers(until / layers), until=until)
