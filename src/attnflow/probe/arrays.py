"""Arrays from anywhere as NumPy arrays: torch tensors, JAX arrays, xarray and what else can become an array."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnflow.checks import shown
from attnflow.errors import InvalidInput

DIMS = ("text", "layer", "head", "query", "token")
"""Names of dimensions of an xarray by which it is put into order; others, such as `key`, keep theirs at the end."""
CHECKSUM = "attnflow_sha256"
"""The entry of a file with the checksum of everything else in it."""


def as_array(name: str, value: Any) -> np.ndarray:
    """`value` as a NumPy array; half precision becomes float32.

    Tensors of torch are recognised by their method `detach`, arrays of xarray by `dims`: no such package is imported.
    """
    if hasattr(value, "detach"):
        value = value.detach()
        value = value.cpu() if hasattr(value, "cpu") else value
        value = value.float() if "float16" in str(getattr(value, "dtype", "")) else value
    elif hasattr(value, "dims") and hasattr(value, "transpose"):
        known = [dim for dim in DIMS if dim in value.dims]
        value = value.transpose(*known, *(dim for dim in value.dims if dim not in known))
    try:
        found = np.asarray(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"`{name}` is {shown(value)}; give an array, with rows of one length.") from None
    return found.astype(np.float32) if found.dtype.name in ("bfloat16", "float16") else found


def as_reals(name: str, value: Any) -> np.ndarray:
    """`value` as an array of finite float32 or float64."""
    found = as_array(name, value)
    if found.dtype.kind not in "iuf":
        raise InvalidInput(f"`{name}` has dtype {found.dtype}; give real numbers.")
    found = found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
    if not np.isfinite(found).all():
        where = np.argwhere(~np.isfinite(found))[0].tolist()
        raise InvalidInput(
            f"`{name}` has {found[tuple(where)]} at {where}; activations must be finite, so run the network in float32."
        )
    return found


def program_size(n: int) -> int:
    """The number of rows, at least n, for which a program is compiled, so that texts of similar lengths share it."""
    step = 32 if n <= 128 else 64
    return max(16, -(-n // step) * step) if n > 16 else 16


def checksum(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of a description and of names, types, shapes and numbers of arrays.

    Arguments:
        text: what the file says about its arrays.
        arrays: the arrays by name, in any order.
    """
    total = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        array = plain(arrays[name])
        total.update(json.dumps([name, array.dtype.str, list(array.shape)]).encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def plain(array: np.ndarray) -> np.ndarray:
    """The array row by row and little-endian, as files hold it."""
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
