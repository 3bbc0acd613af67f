"""Tokens: weighted points on a space, and the ways to make them."""

from attnflow.tokens.measure import Tokens, from_array, onto, stack
from attnflow.tokens.starts import (
    caps,
    clustered,
    equiangular,
    orthonormal,
    ring,
    simplex,
    uniform,
    von_mises_fisher,
)

__all__ = [
    "Tokens",
    "caps",
    "clustered",
    "equiangular",
    "from_array",
    "onto",
    "orthonormal",
    "ring",
    "simplex",
    "stack",
    "uniform",
    "von_mises_fisher",
]
