"""Fields: what a token at x feels from the measure mu at time t."""

from attnflow.fields.attention import Attention
from attnflow.fields.base import AbstractField, Total
from attnflow.fields.kernels import AbstractKernel, Exponential
from attnflow.fields.linear import AbstractLinearMap, Identity, Matrix
from attnflow.fields.normalisers import AbstractNormaliser, Softmax, Unnormalised

__all__ = [
    "AbstractField",
    "AbstractKernel",
    "AbstractLinearMap",
    "AbstractNormaliser",
    "Attention",
    "Exponential",
    "Identity",
    "Matrix",
    "Softmax",
    "Total",
    "Unnormalised",
]
