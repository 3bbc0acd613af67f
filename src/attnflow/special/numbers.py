"""Types of what formulas of one number or of many take and give back."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    ArrayLike: TypeAlias = Any
    Numbers: TypeAlias = np.ndarray
else:
    from numpy.typing import ArrayLike

    Numbers = np.ndarray | np.number
"""`ArrayLike` is an argument of a `formula`: a number, a list or an array for who calls it, an array in its body, as
the decorator converts it. `Numbers` is a result: an array, of one number a scalar of NumPy with the methods of an
array without axes. A type checker takes it for an array, as NumPy's own types do: else no result could be indexed.
"""

__all__ = ["ArrayLike", "Numbers"]
