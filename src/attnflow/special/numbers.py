"""The type of what functions of one number or of many give back."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    Numbers: TypeAlias = np.ndarray
else:
    Numbers = np.ndarray | np.number
"""An array; of one number NumPy makes a scalar instead, with the methods of an array without axes.

A type checker takes both for an array, as NumPy's own types do: else no result could be indexed.
"""
