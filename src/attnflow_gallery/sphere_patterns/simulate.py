"""Seeded densities on S^2 as tokens with masses: condensation, skewness; and spectra at the five solids."""

import dataclasses
import itertools
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, solve
from attnflow.observe import clusters
from attnflow.stability import spectrum
from attnflow.tokens import Tokens, stack
from attnflow_gallery.sphere_patterns.solids import VERTICES, harmonics, nodes

LINK = 0.1
"""Linking angle of clusters."""
LIGHT = 0.005
"""Clusters with less mass are stragglers near saddles."""
AMPLITUDE = 0.02
"""Root mean square of a Platonic seed; half of it for random seeds."""
SMALL, GROWN = 0.002, 0.01
"""Amplitudes between which the skewness is followed."""
MODELS = "SA", "USA0"


class Seed(NamedTuple):
    """h = sign times the sum of P_l(<x, v>) over the vertices v of a solid, and the solid it condenses into."""

    degree: int
    sign: int
    solid: str
    beta: float
    ends: str


SEEDS = (
    Seed(2, 1, "poles", 3.0, "poles"),
    Seed(3, 1, "tetrahedron", 6.0, "tetrahedron"),
    Seed(4, 1, "octahedron", 10.0, "octahedron"),
    Seed(4, -1, "octahedron", 10.0, "cube"),
    Seed(6, 1, "icosahedron", 20.0, "icosahedron"),
    Seed(6, -1, "icosahedron", 20.0, "dodecahedron"),
)


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    platonic: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    """Numbers of the Platonic seeds."""
    latitudes: int = 22
    """Of the tokens, with twice as many longitudes."""
    until: float = 15.0
    random: int = 6
    """Random seeds of degree 4."""
    skew: tuple[tuple[int, float], ...] = ((2, 3.0), (3, 6.0), (4, 10.0))
    """Degrees and betas at which the skewness is followed."""
    directions: int = 4
    """Random directions of each, with both signs."""
    skew_latitudes: int = 18
    betas: tuple[float, ...] = (0.5, 2.0, 5.0)
    """Of spectra at the solids."""
    solids: tuple[str, ...] = ("tetrahedron", "octahedron", "cube", "icosahedron", "dodecahedron")


QUICK = Parameters(
    platonic=(1, 2),
    latitudes=12,
    random=1,
    skew=((2, 3.0), (3, 3.0)),
    directions=2,
    skew_latitudes=10,
    betas=(2.0,),
    solids=("tetrahedron", "cube"),
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Every Platonic seed, random seeds, skewness of both models, spectra."""
    makers: dict[str, Any] = {f"seed-{k}": (platonic, parameters, k) for k in parameters.platonic}
    makers |= {f"random-{k}": (random_seed, parameters, k) for k in range(parameters.random)}
    makers |= {
        f"skew-{degree}-{model}": (skew, parameters, degree, beta, model)
        for (degree, beta), model in itertools.product(parameters.skew, MODELS)
    }
    return study.parts(makers | {"spectra": (spectra, parameters)})


def rotation(rng: np.random.Generator) -> np.ndarray:
    """A random rotation: a seed that is aligned with the grid leaves nodes on its mirror planes for ever."""
    return np.asarray(np.linalg.qr(rng.standard_normal((3, 3)))[0])


def platonic(parameters: Parameters, k: int) -> xr.Dataset:
    """Clusters of a Platonic seed, heaviest first."""
    one = SEEDS[k]
    at = VERTICES[one.solid] @ rotation(parameters.rng(0, k)).T
    u = one.sign * harmonics(one.degree, at).sum(axis=0)
    return condensed(parameters, one.degree, AMPLITUDE * u / np.linalg.norm(u), one.beta)


def random_seed(parameters: Parameters, k: int) -> xr.Dataset:
    """Clusters of a random harmonic of degree 4."""
    u = parameters.rng(1, k).standard_normal(9)
    return condensed(parameters, 4, AMPLITUDE / 2 * u / np.linalg.norm(u), 10.0)


def field(beta: float, model: str) -> Attention:
    """The attention that moves all tokens."""
    return Attention(beta, normaliser=model)


def density(degree: int, coefficients: np.ndarray, latitudes: int) -> Tokens:
    """The density 1 + sum of coefficients times harmonics, as tokens at the nodes of a quadrature."""
    x, masses = nodes(latitudes)
    return Tokens(x, masses * (1 + harmonics(degree, x) @ coefficients))


def condensed(parameters: Parameters, degree: int, coefficients: np.ndarray, beta: float) -> xr.Dataset:
    """Centres and masses of the clusters at the end, and the length of the mean token."""
    tokens = density(degree, coefficients, parameters.latitudes)
    flow = solve(field(beta, "SA"), tokens, parameters.until, save=1, method=Fixed(min(0.1, 1 / beta)))
    end = flow.tokens(-1)
    found = clusters(end, scale=LINK)
    heavy = found.masses > LIGHT
    mean = float(np.linalg.norm(np.asarray(end.masses) @ np.asarray(end.positions)))
    values = {"centre": (("cluster", "axis"), found.centres[heavy]), "mass": ("cluster", found.masses[heavy])}
    return xr.Dataset(values | {"mean": mean})


def skew(parameters: Parameters, degree: int, beta: float, model: str) -> xr.Dataset:
    """Coefficients of degree l of random seeds of both signs, at the start and when grown, (seed, frame, m)."""
    rng = parameters.rng(2, degree)
    u = rng.standard_normal((parameters.directions, 2 * degree + 1))
    u = (
        np.repeat(u / np.linalg.norm(u, axis=1, keepdims=True), 2, axis=0)
        * np.tile([1, -1], parameters.directions)[:, None]
    )
    starts = [density(degree, SMALL * one, parameters.skew_latitudes) for one in u]
    rate = float(theory.uniform.growth_rates(beta, 3, k=degree, model=model))
    until = np.log(GROWN / SMALL) / rate
    tokens = stack("seed", range(len(starts)), starts)
    flow = solve(field(beta, model), tokens, until, save=1, method=Fixed(until / 20), keep=("positions",))
    x = flow.positions.transpose("seed", "time", "token", ...).values
    masses = np.array([np.asarray(one.masses) for one in starts])
    rows = [[m @ harmonics(degree, frame) for frame in frames] for m, frames in zip(masses, x, strict=True)]
    return xr.Dataset({"coefficient": (("seed", "frame", "m"), np.array(rows))})


def spectra(parameters: Parameters) -> xr.Dataset:
    """Eigenvalues at equal clusters on the vertices of the solids, (solid, beta, order), the rest filled up with 0."""
    found = np.zeros((len(parameters.solids), len(parameters.betas), 40))
    for (a, name), (b, beta) in itertools.product(enumerate(parameters.solids), enumerate(parameters.betas)):
        values = np.real(spectrum(field(beta, "SA"), Tokens(VERTICES[name])).eigenvalues)
        found[a, b, : len(values)] = values
    return xr.Dataset({"eigenvalue": (("solid", "beta", "order"), found)}, {"solid": list(parameters.solids)})
