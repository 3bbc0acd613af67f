"""Numbers and places of clusters, antipodal symmetry, slopes of the skewness, and spectra."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.sphere_patterns.simulate import GROWN, MODELS, SEEDS, SMALL, Parameters, rotation
from attnflow_gallery.sphere_patterns.solids import VERTICES, skewness

SYMMETRY = consequence("Symmetries of the seed")
QUADRATIC = consequence("The quadratic term")
SOLIDS = consequence("Clusters at the vertices of a solid")
SIGNS = {"tetrahedron": (5, 0), "octahedron": (9, 0), "cube": (11, 2), "icosahedron": (21, 0), "dodecahedron": (29, 8)}
"""How many displacements of equal clusters at the vertices grow, and how many decay; three are rotations."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Platonic seeds, even degrees, skewness, solids."""
    return [
        *_platonic(parameters, data),
        *_even(parameters, data),
        _skewness(parameters, data),
        *_solids(parameters, data),
    ]


def ends_at(parameters: Parameters, k: int) -> np.ndarray:
    """Vertices of the solid that Platonic seed k should condense into."""
    return np.asarray(VERTICES[SEEDS[k].ends] @ rotation(parameters.rng(0, k)).T)


def off(centres: np.ndarray, vertices: np.ndarray) -> float:
    """The largest angle from a cluster to the nearest vertex, and from a vertex to the nearest cluster."""
    if not len(centres):
        return float(np.pi)
    angles = np.arccos(np.clip(centres @ vertices.T, -1, 1))
    return float(max(angles.min(axis=0).max(), angles.min(axis=1).max()))


def _platonic(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    counts, places, cell = Rows(), Rows(), np.pi / parameters.latitudes
    for k in parameters.platonic:
        one, part = SEEDS[k], data[f"seed-{k}"]
        label = f"degree {one.degree}, sign {'+' if one.sign > 0 else '−'}, {one.solid}: {one.ends}"
        counts.add(len(VERTICES[one.ends]), part.sizes["cluster"], 0.0, label)
        places.add(cell, off(part["centre"].values, ends_at(parameters, k)), 0.0, label)
    return [
        counts.equal(f"clusters of Platonic seeds at t = {parameters.until:g}", "whole numbers", origin=SYMMETRY),
        places.at_most(
            "largest angle between these clusters and the vertices of the solid",
            f"a cell of the grid, π/{parameters.latitudes}: the grid breaks the symmetry",
            origin=SYMMETRY,
        ),
    ]


def _even(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    mean, opposite = Rows(), Rows()
    for name, part in data.items():
        if name.startswith("random") or (name.startswith("seed") and SEEDS[int(name[5:])].degree % 2 == 0):
            centres, room = part["centre"].values, 1e3 * EPS * np.exp(parameters.until)
            mean.add(0.0, float(part["mean"]), room, name)
            opposite.add(0.0, off(centres, -centres), np.sqrt(EPS) + room, name)
    return [
        mean.equal("seeds of even degree: length of the mean token", "rounding, amplified by e^t", origin=SYMMETRY),
        opposite.equal(
            "seeds of even degree: largest angle from a cluster to the antipode of another",
            "the same, and the root of rounding that an arccosine has at 1",
            origin=SYMMETRY,
        ),
    ]


def slopes(part: xr.Dataset, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Measured slopes of the skewness, means over both signs; |Pi u^2|^2 - w^2 at the start; slopes of each seed."""
    found = part["coefficient"].values
    size = np.linalg.norm(found, axis=-1)
    w, square = skewness(degree, found / size[..., None])
    each = (w[:, 1] - w[:, 0]) / (size[:, 1] - size[:, 0])
    return each.reshape(-1, 2).mean(axis=1), (square - w**2)[::2, 0], each


def _skewness(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for degree, beta in parameters.skew:
        for model in MODELS:
            kappa = theory.uniform.pattern_coefficient(beta, 3, degree, model=model)
            found, bracket, _ = slopes(data[f"skew-{degree}-{model}"], degree)
            rows.add(3 * kappa * bracket, found, 10 * GROWN**2, f"degree {degree}, β = {beta:g}, {model}")
    return rows.equal(
        "growth of the skewness per amplitude, mean over both signs of the seed: 3κ(|Πu²|² − w²)",
        f"the third order of the amplitude, {GROWN:g}² times 10, which bounds the mean of u⁴; the second order has "
        "opposite signs for the two seeds",
        origin=QUADRATIC,
        detail=f"amplitudes {SMALL:g} to {GROWN:g}",
    )


def _solids(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    signs, closed, part = Rows(), Rows(), data["spectra"]["eigenvalue"].values
    for a, name in enumerate(parameters.solids):
        for b, beta in enumerate(parameters.betas):
            found = part[a, b, : 2 * len(VERTICES[name])]
            signs.add(SIGNS[name], (np.sum(found > 1e-9), np.sum(found < -1e-9)), 0.0, f"{name}, β = {beta:g}")
            if name == "tetrahedron":
                rates = theory.landscape.tetrahedron_rates(beta)
                expected = np.sort([*[rates.double] * 2, *[rates.triple] * 3, 0.0, 0.0, 0.0])
                closed.add(expected, np.sort(found), 1e3 * EPS, f"β = {beta:g}")
    return [
        closed.equal("SA, four clusters at a tetrahedron: all rates, closed form", "rounding", origin=SOLIDS),
        signs.equal(
            "SA, equal clusters at the vertices of solids: how many displacements grow, and how many decay",
            "whole numbers; rotations have rate 0 to 1e-9",
            origin=SOLIDS,
        ),
    ]
