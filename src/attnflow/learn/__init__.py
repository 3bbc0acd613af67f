"""Learn: fit the weights of a field by gradients through the flow (residual networks, neural ODEs)."""

from attnflow.lazy import listing
from attnflow.learn.classifier import Classifier, padded
from attnflow.learn.data import interleaved_classes
from attnflow.learn.fit import Fit, Fitted, cross_entropy, fit, trainable
from attnflow.learn.networks import residual_classifier, residual_network

__all__ = [
    "Classifier",
    "Fit",
    "Fitted",
    "cross_entropy",
    "fit",
    "interleaved_classes",
    "padded",
    "residual_classifier",
    "residual_network",
    "trainable",
]
__dir__ = listing(__all__)
