"""GGUF: the header by a reader of our own, the numbers by the library `gguf`.

The library keeps an object of 650 bytes for every element of every array of the header (3.5 CPU s and 159 MB for the
0.25 million elements of SmolLM2: `GGUFReader(path)`), so that a header of 10 MB would take 6.5 GB.
"""

import math
import struct
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from attnflow.errors import MissingExtra
from attnflow.probe.networks.files.base import MOST_AXES, MOST_TENSORS, AbstractWeights, Stored, check_stored, refuse

VERSIONS = (2, 3)
MOST_KEYS, MOST_ELEMENTS, LARGEST_HEADER = 1 << 12, 1 << 20, 32 << 20
"""Keys, elements of all arrays together, and bytes of what is kept of them; Llama 3 has half a million elements."""
STRING, ARRAY = 8, 9
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
"""Formats of `struct`, by the number that GGUF gives to each type."""
BLOCK = 4 << 20
"""Numbers that are made of their quantised form at a time."""


class Place(NamedTuple):
    """Where a tensor lies, and in which quantised type."""

    offset: int
    kind: Any
    rows: int
    row_bytes: int


class GgufWeights(AbstractWeights):
    """A file of GGUF. `facts` are its keys; the tensors have the row as first axis, as NumPy has it."""

    form = "gguf"

    def __init__(self, path: Path):
        try:
            from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
        except ImportError:
            raise MissingExtra("files of GGUF need the library gguf; install `attnflow[probe]`.") from None
        self.path, size = path, path.stat().st_size
        with path.open("rb") as stream:
            header = _Header(path, stream, size)
            header.take(4)
            if (version := header.number(4)) not in VERSIONS:
                raise refuse(path, f"is GGUF of version {version}, not 2 or 3, or of another byte order")
            tensors, keys = header.number(10), header.number(10)
            if tensors > MOST_TENSORS or keys > MOST_KEYS:
                raise refuse(path, f"says that it has {tensors} tensors and {keys} keys")
            self.facts = {header.string(): header.value(header.number(4)) for _ in range(keys)}
            described = [header.tensor() for _ in range(tensors)]
            ended = stream.tell()
        alignment = self.facts.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 1 <= alignment <= 1 << 16:
            raise refuse(path, f"has the alignment {alignment!r}")
        start = -(-ended // alignment) * alignment
        self.stored, self._places = {}, {}
        for name, shape, number, offset in described:
            kind = GGMLQuantizationType(number)
            block, bytes_of_block = GGML_QUANT_SIZES[kind]
            if not shape or min(shape) < 1 or shape[-1] % block or name in self.stored:
                raise refuse(path, f"has the tensor {name[:60]!r} twice or with the shape {shape}")
            rows, row_bytes = math.prod(shape[:-1]), shape[-1] // block * bytes_of_block
            self.stored[name] = Stored(shape, kind.name, rows * row_bytes)
            self._places[name] = Place(start + offset, kind, rows, row_bytes)
            if start + offset + rows * row_bytes > size:
                raise refuse(path, f"is cut off: the tensor {name[:60]!r} ends after its {size} bytes")
        check_stored(path, self.stored, size)

    def array(self, name: str, out: np.ndarray | None = None) -> np.ndarray:
        from gguf.quants import dequantize

        from attnflow.probe.networks.files import refusing

        shape, place = self.stored[name].shape, self._places[name]
        found = np.empty(shape, np.float32) if out is None else out
        if found.shape != shape:
            raise ValueError(f"shape {shape} for a place of shape {found.shape}")
        flat = found.reshape(place.rows, shape[-1])
        if not np.shares_memory(flat, found):
            raise ValueError("the place of a tensor has gaps")
        step = max(1, BLOCK // shape[-1])
        with refusing(self.path), self.path.open("rb") as stream:
            stream.seek(place.offset)
            for row in range(0, place.rows, step):
                count = min(step, place.rows - row)
                raw = np.frombuffer(stream.read(count * place.row_bytes), np.uint8).reshape(count, place.row_bytes)
                flat[row : row + count] = dequantize(raw, place.kind)
        return found


class _Header:
    """The header of a file, from its start, within its limits."""

    def __init__(self, path: Path, stream: BinaryIO, size: int):
        self.path, self.stream, self.size = path, stream, size
        self.elements = self.kept = 0

    def take(self, count: int) -> bytes:
        left = self.size - self.stream.tell()
        if count > left:
            raise refuse(self.path, f"is cut off: {count} bytes are announced where {left} are left")
        self.kept += count
        if self.kept > LARGEST_HEADER:
            raise refuse(self.path, f"has a header of more than {LARGEST_HEADER} bytes")
        return self.stream.read(count)

    def number(self, kind: int) -> Any:
        form = NUMBERS.get(kind)
        if form is None:
            raise refuse(self.path, f"has a value of the type {kind}, which is not known")
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def string(self) -> str:
        return self.take(self.number(10)).decode()

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.number(kind)
        inner, count = self.number(4), self.number(10)
        self.elements += count
        if self.elements > MOST_ELEMENTS:
            raise refuse(self.path, f"has arrays of more than {MOST_ELEMENTS} elements in its header")
        if inner == STRING:
            return [self.string() for _ in range(count)]
        if inner not in NUMBERS:
            raise refuse(self.path, f"has an array of the type {inner} in its header, which is not read")
        form = NUMBERS[inner]
        return np.frombuffer(self.take(count * struct.calcsize(form)), np.dtype(form)).tolist()

    def tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name, axes = self.string(), self.number(4)
        if axes > MOST_AXES:
            raise refuse(self.path, f"has the tensor {name[:60]!r} with {axes} axes")
        lengths = [self.number(10) for _ in range(axes)]
        return name, tuple(reversed(lengths)), self.number(4), self.number(10)
