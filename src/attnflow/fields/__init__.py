"""Fields: what a token at x feels from the measure mu at time t."""

from attnflow.fields.activations import AbstractActivation, Custom, Gelu, GeluTanh, Relu, Silu, Tanh
from attnflow.fields.attention import Attention
from attnflow.fields.base import AbstractField, AbstractLayered, Laws, Multiple, Total
from attnflow.fields.encodings import AbstractEncoding, NoEncoding, Rotary, Sinusoidal, sinusoids
from attnflow.fields.exact.affine import Affine
from attnflow.fields.exact.base import AbstractExact, carry_stretching
from attnflow.fields.exact.drift import Drift
from attnflow.fields.exact.in_turn import InTurn
from attnflow.fields.exact.mean_attention import MeanAttention
from attnflow.fields.exact.units import ReluUnit
from attnflow.fields.features import Features
from attnflow.fields.gated import GatedPerceptron
from attnflow.fields.linear import Biased, Identity, Matrix
from attnflow.fields.maps import AbstractLinearMap
from attnflow.fields.normalisers import AbstractNormaliser, Hardmax, Sinkhorn, Softmax, Unnormalised
from attnflow.fields.norms import AbstractNorm, LayerNorm, Mix, Ngpt, Peri, Post, Pre, RmsNorm, Scaled, Unit
from attnflow.fields.pairs import Pairs
from attnflow.fields.perceptron import Composed, Perceptron, Potential
from attnflow.fields.queries import AbstractQuery, AtPoints, AtTokens
from attnflow.fields.rescaled import Rescaled
from attnflow.fields.structure import Part
from attnflow.fields.timed import breaks
from attnflow.fields.weights import AbstractWeight, Constant, Function, Interpolated, PerLayer, Pieces, Random
from attnflow.lazy import listing

__all__ = [
    "AbstractActivation",
    "AbstractEncoding",
    "AbstractExact",
    "AbstractField",
    "AbstractLayered",
    "AbstractLinearMap",
    "AbstractNorm",
    "AbstractNormaliser",
    "AbstractQuery",
    "AbstractWeight",
    "Affine",
    "AtPoints",
    "AtTokens",
    "Attention",
    "Biased",
    "Composed",
    "Constant",
    "Custom",
    "Drift",
    "Features",
    "Function",
    "GatedPerceptron",
    "Gelu",
    "GeluTanh",
    "Hardmax",
    "Identity",
    "InTurn",
    "Interpolated",
    "Laws",
    "LayerNorm",
    "Matrix",
    "MeanAttention",
    "Mix",
    "Multiple",
    "Ngpt",
    "NoEncoding",
    "Pairs",
    "Part",
    "PerLayer",
    "Perceptron",
    "Peri",
    "Pieces",
    "Post",
    "Potential",
    "Pre",
    "Random",
    "Relu",
    "ReluUnit",
    "Rescaled",
    "RmsNorm",
    "Rotary",
    "Scaled",
    "Silu",
    "Sinkhorn",
    "Sinusoidal",
    "Softmax",
    "Tanh",
    "Total",
    "Unit",
    "Unnormalised",
    "breaks",
    "carry_stretching",
    "sinusoids",
]
__dir__ = listing(__all__)
