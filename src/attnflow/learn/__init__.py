"""Learn: fit the weights of a field by gradients through the flow (residual networks, neural ODEs, prompts)."""

from attnflow.lazy import listing
from attnflow.learn.classifier import Classifier, padded
from attnflow.learn.data import interleaved_classes
from attnflow.learn.fit import Fit, Fitted, cross_entropy, fit
from attnflow.learn.heads import HeadFit, fit_heads
from attnflow.learn.networks import residual_classifier, residual_network
from attnflow.learn.tasks import AbstractTask, Clustering, Denoising, Prompt
from attnflow.learn.train import Train, Trained, attention_block, train
from attnflow.learn.trainable import trainable

__all__ = [
    "AbstractTask",
    "Classifier",
    "Clustering",
    "Denoising",
    "Fit",
    "Fitted",
    "HeadFit",
    "Prompt",
    "Train",
    "Trained",
    "attention_block",
    "cross_entropy",
    "fit",
    "fit_heads",
    "interleaved_classes",
    "padded",
    "residual_classifier",
    "residual_network",
    "train",
    "trainable",
]
__dir__ = listing(__all__)
