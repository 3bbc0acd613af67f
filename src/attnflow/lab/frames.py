"""Frames as bytes: a header, a text in JSON, and arrays. `page/frames.js` reads them.

A frame is `AFL1`, the length of the text as a 32-bit integer, the text, then the arrays one after the other. All is
little-endian; text and arrays are filled up to multiples of 8 bytes. The text names the arrays with types and shapes.
"""

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

MAGIC = b"AFL1"
TYPES = {"<f4", "<f8", "|u1", "<u2", "<u4", "<i2"}


def pack(said: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """One frame; numbers of `said` that are not finite become null."""
    parts, described = [], []
    for name, values in arrays.items():
        plain = np.ascontiguousarray(values)
        assert plain.dtype.str in TYPES, plain.dtype
        described.append([name, plain.dtype.str, list(plain.shape)])
        parts.append(_filled(plain.tobytes()))
    text = json.dumps({**{key: _finite(value) for key, value in said.items()}, "arrays": described}, allow_nan=False)
    head = text.encode()
    head += b" " * (-len(head) % 8)
    return b"".join([struct.pack("<4sI", MAGIC, len(head)), head, *parts])


def _filled(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 8)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
