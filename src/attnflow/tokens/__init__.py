"""Tokens: weighted points on a space, the ways to make them, and the pure measures that fields receive."""

from attnflow.lazy import listing
from attnflow.tokens.ensemble import Tokens, from_array, onto
from attnflow.tokens.files import from_file
from attnflow.tokens.ladder import padded
from attnflow.tokens.measure import Measure, all_present
from attnflow.tokens.stacking import stack
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
    "Measure",
    "Tokens",
    "all_present",
    "caps",
    "clustered",
    "equiangular",
    "from_array",
    "from_file",
    "onto",
    "orthonormal",
    "padded",
    "ring",
    "simplex",
    "stack",
    "uniform",
    "von_mises_fisher",
]
__dir__ = listing(__all__)
