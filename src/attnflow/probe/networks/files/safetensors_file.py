"""Safetensors, by their library; the header is measured before the library reads it."""

import math
import struct
from pathlib import Path

import numpy as np

from attnflow.errors import MissingExtra
from attnflow.probe.networks.files.base import AbstractWeights, Stored, check_stored, filled, refuse

LARGEST_HEADER = 4 << 20
"""Bytes; a network of 1,000 tensors has 0.1 MB. The library itself would parse 100 MB of JSON."""
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
"""Number formats that are read."""


class SafetensorsWeights(AbstractWeights):
    """A file of safetensors."""

    form = "safetensors"

    def __init__(self, path: Path):
        try:
            from safetensors import safe_open
        except ImportError:
            raise MissingExtra("files of safetensors need their library; install `attnflow[probe]`.") from None
        self.path, size = path, path.stat().st_size
        with path.open("rb") as stream:
            first = stream.read(8)
        header = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if not 2 <= header <= size - 8:
            raise refuse(path, "is neither GGUF nor torch nor safetensors, or is cut off in its header")
        if header > LARGEST_HEADER:
            raise refuse(path, f"has a header of {header} bytes, more than {LARGEST_HEADER}")
        self._open = lambda: safe_open(str(path), framework="numpy")
        with self._open() as opened:
            self.facts = dict(opened.metadata() or {})
            slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118 (no mapping)
            described = {name: (tuple(one.get_shape()), str(one.get_dtype())) for name, one in slices.items()}
        self.stored = {
            name: Stored(shape, dtype, math.prod(shape) * BYTES.get(dtype, 1))
            for name, (shape, dtype) in described.items()
        }
        check_stored(path, self.stored, size)

    def array(self, name: str, out: np.ndarray | None = None) -> np.ndarray:
        from attnflow.probe.networks.files import refusing

        one = self.stored[name]
        if one.encoding not in BYTES:
            raise refuse(self.path, f"has the tensor {name!r} in the number format {one.encoding}, which is not read")
        with refusing(self.path), self._open() as opened:
            return filled(opened.get_tensor(name), one.shape, out)
