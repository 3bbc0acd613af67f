"""The first change of the histogram, atoms of solids, and the transform at beta."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, LEVEL, Rows, many_tokens, student
from attnflow_gallery.distances_through_time.simulate import BATCH, BINS, LOW, MODELS, SOLIDS, Parameters

FIRST = consequence("The first change of the histogram")
ATOMS = consequence("Atoms")
RISE = published("geshkovski2025perspective", "section 3")
FALL = consequence("Another kernel")
EXPECTED: dict[str, dict[float, float]] = {
    "octahedron": {1.0: 1 / 6, 0.0: 2 / 3, -1.0: 1 / 6},
    "cube": {1.0: 1 / 8, 1 / 3: 3 / 8, -1 / 3: 3 / 8, -1.0: 1 / 8},
}
"""Overlaps of the vertices and the share of all pairs, self pairs included."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Change, atoms, symmetry, rise, fall."""
    return [_change(parameters, data["change"]), *_atoms(parameters, data), *_transforms(parameters, data)]


def predicted(parameters: Parameters, n: int | None) -> np.ndarray:
    """n times the change of the bins: the limit, or with the closure of softmax at n tokens."""
    edges = np.linspace(-1, 1, BINS + 1)
    return np.diff(theory.uniform.overlap_shift(edges, parameters.until, parameters.beta, d=3, n=n))


def _change(parameters: Parameters, part: xr.Dataset) -> Claim:
    sizes, rows = part["size"].values, Rows()
    closure = np.array([predicted(parameters, int(n)) for n in sizes])
    left, error, room = many_tokens(sizes, part["mean"].values - closure, part["error"].values)
    allowed, limit = student(LEVEL, BATCH, BINS), predicted(parameters, None)
    labels = [f"s from {2 * k / BINS - 1:g} to {2 * (k + 1) / BINS - 1:g}, limit {limit[k]:.4f}" for k in range(BINS)]
    rows.add(0.0, left, allowed * error + room, labels)
    return rows.equal(
        f"S², softmax, β = {parameters.beta:g}, t = {parameters.until:g}: n times the change of the shares of "
        f"{BINS} bins of s, less its limit, for 1/n → 0",
        f"Student's test over draws, level {LEVEL:g} for all bins; a line in 1/n through n = {sizes[-2]} and "
        f"{sizes[-1]}; the bend seen since n = {sizes[-3]}, which is 1.5 times what a term of order 1/n² adds",
        origin=FIRST,
        level=LEVEL,
    )


def gathered(mass: np.ndarray, overlap: float) -> float:
    """The mass of pairs within a tenth of an overlap: two bins, at the ends one."""
    edges = np.linspace(-1, 1, 2 * BINS + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    return float(np.sum(mass[np.abs(middle - overlap) < 0.15]))


def _atoms(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    atoms, even, half = Rows(), Rows(), np.pi / parameters.latitudes / 2
    for solid in SOLIDS:
        mass = data[solid]["mass"].values
        for overlap, share in EXPECTED[solid].items():
            atoms.add(share, gathered(mass, overlap), half**2, f"{solid}, s = {overlap:.3g}")
        even.add(0.0, mass - mass[::-1], 1e3 * EPS * np.exp(parameters.solid_until), solid)
    return [
        atoms.equal(
            "condensed at an octahedron and a cube: shares of pairs at the distances of the vertices",
            "the square of half a cell of the grid, which breaks the symmetry: stragglers and unequal masses",
            origin=ATOMS,
        ),
        even.equal("the same: the histogram is even in s, all bins", "rounding, amplified by e^t", origin=ATOMS),
    ]


def _transforms(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    rise, fall = Rows(), Rows()
    for model in MODELS:
        part = data[f"rise-{model}"]
        names = [*(f"{model}, start {k}" for k in range(parameters.runs)), f"{model}, three tokens"]
        for name, row in zip(names, np.diff(part["own"].values, axis=1), strict=True):
            rise.add(0.0, row, 1e2 * EPS, name)
        low = part["low"].values[-1]
        fall.add(-1e-6, low.min() - low[0], 0.0, model)
    runs = f"{parameters.runs} random starts of {parameters.tokens} tokens, and three tokens"
    return [
        rise.at_least(
            f"β = {parameters.rise_beta:g}, {runs}: least change of ∫ e^(−βr²/2) from frame to frame",
            "rounding of a sum of shares",
            origin=RISE,
        ),
        fall.at_most(
            f"β = {parameters.rise_beta:g}, three tokens: largest fall of ∫ e^(−br²/2) with b = {LOW:g}",
            "a fall of 1e-6, which rounding, 1e-14, cannot feign",
            origin=FALL,
        ),
    ]
