"""What one evaluation of each sum costs: seconds per pair, per token and harmonic, per call.

Measured by `python benchmarks/field.py --calibrate` on two cores of an Arm Neoverse N1 and on one NVIDIA H200. Other
machines differ by a common factor more than in their ratios, and only ratios decide.
"""

import dataclasses
from typing import Any

import numpy as np

from attnflow.special.degrees import basis_size


@dataclasses.dataclass(frozen=True)
class Costs:
    """Seconds on one kind of device, for one type of number."""

    pair: tuple[float, float]
    """Of a pair in tiles: with the maximum of each row, and without."""
    pair_dimension: float
    """Of a pair in tiles, for each dimension."""
    circle: float
    """Of a token and a function of the Fourier basis."""
    basis: float
    """Of a token and a spherical harmonic."""
    call: float
    """Of a series, whatever the number of tokens."""
    circle_chunk: int
    entries: int
    """Numbers in the arrays (rows, chunk) of a recurrence for harmonics."""

    def tiles(self, n: int, d: int, bounded: bool) -> float:
        """Seconds of all pairs of n tokens in tiles."""
        return n**2 * (self.pair[bounded] + d * self.pair_dimension)

    def harmonics(self, n: int, degree: int, d: int) -> float:
        """Seconds of a sum by harmonics up to a degree; rows of a recurrence in many dimensions do not fit a cache."""
        return n * basis_size(degree, d) * self.basis * max(1.0, 0.55 * (d - 2))

    def chunk(self, degree: int, d: int) -> int:
        """Tokens that go through the recurrence together."""
        return int(np.clip(self.entries // basis_size(degree, d - 1), 32, 1 << 17))


SETUP = {"Tiled": 1.0, "Dense": 1.0, "Cutoff": 1.0, "Fused": 1.0, "FastSphere": 1.5, "Circle": 2.0}
"""Seconds of one core for compiling a field with this sum, measured on an x86 core at 2.5 GHz."""


def setup_of_harmonics(degree: int, d: int) -> float:
    """Seconds for compiling a sum by harmonics: for d > 3 recurrences in lower dimensions are unrolled by degree."""
    return 2.5 + degree * (0.02 if d == 3 else 0.2 * (d - 3))


_COSTS = {
    ("cpu", "float64"): Costs((4.7e-9, 3.8e-9), 1.7e-10, 9.8e-9, 8.1e-9, 3e-4, 512, 1 << 14),
    ("cpu", "float32"): Costs((2.3e-9, 1.7e-9), 7.8e-11, 1.1e-8, 5.9e-9, 2e-4, 1024, 1 << 15),
    ("gpu", "float64"): Costs((1.1e-11, 8.3e-12), 8.1e-14, 2.1e-11, 8.0e-11, 2e-3, 1 << 21, 1 << 24),
    ("gpu", "float32"): Costs((6.1e-12, 3.0e-12), 1.3e-13, 1.1e-11, 4.2e-11, 3e-3, 1 << 21, 1 << 24),
}


def costs(backend: str, dtype: Any) -> Costs:
    """The costs on this kind of device; whatever is no CPU counts as a GPU."""
    return _COSTS["cpu" if backend == "cpu" else "gpu", np.dtype(dtype).name]
