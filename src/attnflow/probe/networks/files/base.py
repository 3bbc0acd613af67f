"""What every file of weights offers."""

import abc
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attnflow.errors import InvalidInput

LARGEST_NAME = 512
"""Characters of the name of a tensor."""
MOST_TENSORS = 1 << 16
MOST_AXES = 4


class Stored(NamedTuple):
    """A tensor as it lies in a file."""

    shape: tuple[int, ...]
    encoding: str
    """The name of its number format in the file."""
    size: int
    """Bytes in the file."""


class AbstractWeights(abc.ABC):
    """The tensors of one file, read one at a time."""

    path: Path
    form: str
    """The format of the file: "safetensors", "gguf" or "torch"."""
    stored: Mapping[str, Stored]
    """Every tensor of the file by its name."""
    facts: Mapping[str, Any]
    """What the file says about itself besides the tensors."""

    @abc.abstractmethod
    def array(self, name: str, out: np.ndarray | None = None) -> np.ndarray:
        """The tensor of this name as float32, written into `out` if that is given."""


def refuse(path: Path, what: str) -> InvalidInput:
    """A refusal of a file, in one sentence."""
    return InvalidInput(f"{str(path)!r} {what}; fetch or save the file again.")


def check_stored(path: Path, stored: Mapping[str, Stored], size: int) -> None:
    """Refuse tensors that cannot all lie in a file of `size` bytes, or that no network has."""
    if len(stored) > MOST_TENSORS:
        raise refuse(path, f"holds {len(stored)} tensors, more than {MOST_TENSORS}")
    for name, one in stored.items():
        if len(name) > LARGEST_NAME:
            raise refuse(path, f"has a tensor with a name of {len(name)} characters")
        if len(one.shape) > MOST_AXES or any(length < 0 for length in one.shape):
            raise refuse(path, f"has the tensor {name!r} with the shape {one.shape[:6]}")
    if sum(one.size for one in stored.values()) > size:
        raise refuse(path, f"holds tensors that overlap or end after its {size} bytes")


def filled(found: np.ndarray, shape: tuple[int, ...], out: np.ndarray | None) -> np.ndarray:
    """`found` as float32 of this shape, in `out` if that is given."""
    if found.size != math.prod(shape):
        raise ValueError(f"{found.size} numbers for the shape {shape}")
    found = found.reshape(shape)
    if out is None:
        return found.astype(np.float32)
    if out.shape != shape:
        raise ValueError(f"shape {shape} for a place of shape {out.shape}")
    out[...] = found
    return out
