"""Complete lists with their certificates, the same lists by Newton's method, and indices of rings and polytopes."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.certify import Certificate, check, circle_equilibria, equilibrium
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.spaces import Sphere
from attnflow.stability import find_equilibria, spectrum
from attnflow.tokens import Tokens

NEUTRAL = 1e-7
"""Eigenvalues in floats below this are neutral: equilibria are found to 1e-12, and rates here are above 1e-4."""
APART = 1e-3
"""Tokens nearer than this angle are one cluster of an equilibrium in floats."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is proved and looked for."""

    lists: tuple[tuple[int, float], ...] = (
        *((3, beta) for beta in (-0.2, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0)),
        *((4, beta) for beta in (0.25, 0.5, 1.0, 2.0, 4.0, 10.0)),
        *((5, beta) for beta in (0.15, 0.19, 0.21, 0.3, 0.5, 1.0, 2.0, 4.0, 9.0)),
        *((6, beta) for beta in (1.0, 2.0, 4.0)),
    )
    """Numbers of tokens and beta."""
    intervals: tuple[tuple[int, float, float], ...] = ((3, -0.3, 20.0), (4, 0.25, 10.0))
    """Numbers of tokens and intervals of beta for all of which the list is proved."""
    checked: int = 5
    """Tokens up to which lists at one beta are confirmed by the checker."""
    newton: tuple[float, ...] = (1.0, 4.0)
    """Where Newton's method looks for the same lists."""
    starts: int = 8
    """Of Newton's method in one batch, for three tokens; three times as many for each token more."""
    batches: int = 6
    solids: tuple[str, ...] = ("3-gon", "6-gon", "12-gon", "tetrahedron", "octahedron", "cube", "icosahedron")
    """Configurations on S^2."""
    betas: tuple[float, ...] = (1.0, 3.0, 9.0)
    """Of the configurations on S^2."""


QUICK = Parameters(
    lists=((4, 1.0), (5, 0.15)),
    intervals=((3, 1.0, 1.5),),
    checked=3,
    newton=(1.0,),
    batches=2,
    solids=("6-gon", "octahedron"),
    betas=(3.0,),
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Lists at one beta and over intervals, and configurations on S^2."""
    makers: dict[str, Any] = {name(n, b, b): (_list, parameters, n, b, b) for n, b in parameters.lists}
    makers |= {name(*one): (_list, parameters, *one) for one in parameters.intervals}
    return study.parts(makers | {"solids": (_solids, parameters)})


def name(n: int, low: float, high: float) -> str:
    """Of a list."""
    return f"{n}-beta{low:g}" if low == high else f"{n}-beta{low:g}to{high:g}"


def _list(parameters: Parameters, n: int, low: float, high: float) -> xr.Dataset:
    """The proved classes, what the checker says, and what Newton's method finds."""
    found = circle_equilibria(n=n, beta=low if low == high else (low, high))
    proved = isinstance(found, Certificate)
    classes = found.claims["classes"] if proved else []
    asked = proved and n <= parameters.checked and (low == high or high - low <= 1)
    columns = {
        "sizes": ("equilibrium", np.array(["+".join(map(str, one["sizes"])) for one in classes], dtype="U16")),
        "index": ("equilibrium", np.array([one["unstable"] for one in classes], dtype=int)),
        "labelled": ("equilibrium", np.array([one["labelled"] for one in classes], dtype=int)),
    }
    if low == high and low in parameters.newton:
        rows = _newton(parameters, n, low)
        columns["found_sizes"] = "found", np.array([sizes for sizes, _ in rows], dtype="U16")
        columns["found_index"] = "found", np.array([index for _, index in rows], dtype=int)
    attrs = {"n": n, "low": low, "high": high, "proved": int(proved), "asked": int(asked)}
    return xr.Dataset(columns, attrs=attrs | {"confirmed": int(asked and check(found).confirmed)})


def _newton(parameters: Parameters, n: int, beta: float) -> list[tuple[str, int]]:
    """Cluster sizes and index of the equilibria that Newton's method finds on the circle."""
    rows = set()
    for batch in range(parameters.batches):
        starts, seed = parameters.starts * 3 ** (n - 3), parameters.seed(100 * n + batch)
        for one in find_equilibria(n=n, d=2, beta=beta, starts=starts, seed=seed):
            index = int(np.sum(one.spectrum.eigenvalues.real > NEUTRAL))
            rows.add((arrangement(np.asarray(one.tokens.positions)), index))
    return sorted(rows)


def arrangement(positions: np.ndarray) -> str:
    """Cluster sizes around the circle, the largest of their shifts and reflections, as in 3+1+1."""
    angles = np.sort(np.arctan2(positions[:, 1], positions[:, 0]))
    gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
    cuts = np.flatnonzero(gaps > APART)
    sizes = np.diff(cuts, append=cuts[0] + len(angles)).tolist() if len(cuts) else [len(angles)]
    every = [one[k:] + one[:k] for one in (sizes, sizes[::-1]) for k in range(len(sizes))]
    return "+".join(map(str, max(every)))


def _solids(parameters: Parameters) -> xr.Dataset:
    """Proved and computed indices of configurations on S^2."""
    rows = []
    for solid, beta in itertools.product(parameters.solids, parameters.betas):
        points = shape(solid)
        found = equilibrium(points, beta)
        rates = spectrum(Attention(beta, normaliser="USA0"), Tokens(points, space=Sphere(3))).eigenvalues.real
        proved = isinstance(found, Certificate)
        counts = [found.claims[key] for key in ("unstable", "stable", "rotations")] if proved else [-1, -1, -1]
        floats = [int(np.sum(rates > NEUTRAL)), int(np.sum(rates < -NEUTRAL))]
        rows.append((solid, beta, len(points), *counts, *floats, proved and check(found).confirmed))
    names = ("solid", "beta", "n", "unstable", "stable", "rotations", "found", "found_stable", "confirmed")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return xr.Dataset({key: ("case", np.array(column)) for key, column in columns})


def shape(solid: str) -> np.ndarray:
    """The points of a configuration on S^2."""
    if solid.endswith("-gon"):
        angles = 2 * np.pi * np.arange(int(solid.removesuffix("-gon"))) / int(solid.removesuffix("-gon"))
        return np.column_stack([np.cos(angles), np.sin(angles), 0 * angles])
    golden = (1 + 5**0.5) / 2
    signs = list(itertools.product((1.0, -1.0), repeat=3))
    points = {
        "tetrahedron": [s for s in signs if np.prod(s) > 0],
        "octahedron": [*np.eye(3), *-np.eye(3)],
        "cube": signs,
        "icosahedron": [np.roll((0, a, b * golden), k) for a in (1, -1) for b in (1, -1) for k in range(3)],
    }[solid]
    return np.array(points) / np.linalg.norm(points[0])
