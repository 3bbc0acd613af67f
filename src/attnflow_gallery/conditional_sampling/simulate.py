"""Divergences of conditional samplers by quadrature, random compositions, and units side by side."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import norm, uniform

from attnflow.control import Schedule, monotone, shear, split, triangular, units
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import averaged
from attnflow.fields import Perceptron

SHIFT = 3.0
"""c of the sheared target."""
FRAMES = 32
"""Random orthonormal frames; their axes, both ways, are the directions of random compositions."""
STEP = 1e-5
"""Of central differences, which are exact away from kinks: maps are piecewise linear."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    shears: tuple[tuple[int, int], ...] = ((4, 2), (8, 3), (16, 4), (32, 6))
    """Cells on the line and of the shear, K_1 and K_2."""
    scale: float = 1.0
    """c of y given x, normal with the standard deviation e^(cx)."""
    slabs: tuple[tuple[int, tuple[int, ...]], ...] = ((2, (1, 2, 4, 8, 16)), (3, (2, 4, 8)))
    """Dimension, and slabs on every axis."""
    cells: int = 32
    """Of the map in a slab, which is linear: they only say where the tails begin."""
    growth: float = 2.0
    """c of random compositions."""
    counts: tuple[int, ...] = (4, 16, 64)
    dims: tuple[int, ...] = (2, 10)
    draws: int = 1500
    """Of random compositions, and of random layers."""
    points: int = 64
    width: int = 16
    """Units side by side in a random layer."""
    biases: tuple[float, ...] = (0.0, 0.5, 1.0)
    sweeps: tuple[int, ...] = (8, 32, 128)
    """Units in a sweep, one after the other."""


QUICK = Parameters(
    shears=((4, 2),), slabs=((2, (4,)), (3, (4,))), counts=(4,), dims=(2,), draws=300, biases=(0.5,), sweeps=(8, 32)
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """The sheared target, conditional scales, compositions, random layers, and sweeps."""
    makers: dict[str, Any] = {"sheared": (sheared, parameters)}
    makers |= {f"scales-{d}": (scales, parameters, d, slabs) for d, slabs in parameters.slabs}
    makers |= {f"composed-{d}": (composed, parameters, d) for d in parameters.dims}
    return study.parts(makers | {"layers": (layers, parameters), "skew": (skew, parameters)})


def nodes(cells: int) -> np.ndarray:
    """The best cells for the density 2x on the line."""
    return (np.arange(cells + 1) / cells) ** 1.5


def gauss(edges: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss's rule in all cells, flat."""
    x, w = np.polynomial.legendre.leggauss(points)
    half = np.diff(edges)[:, None] / 2
    return ((edges[1:] + edges[:-1])[:, None] / 2 + half * x).ravel(), (half * w).ravel()


def hermite(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the normal density."""
    z, w = np.polynomial.hermite_e.hermegauss(points)
    return z, w / w.sum()


def log_base(x: np.ndarray) -> np.ndarray:
    """Of a last coordinate that is normal; the others have a density that is added where it is not constant."""
    return np.asarray(norm.logpdf(x[:, -1]))


def sheared(parameters: Parameters) -> xr.Dataset:
    """KL(target || reached) of x ~ 2x, y ~ N(c x^2, 1), and the number of units, by K_1 and K_2."""
    rows = []
    for along, across in parameters.shears:
        q = nodes(along)
        slopes = (float((q[1] - q[0]) / (q[1] ** 2 - q[0] ** 2)), float((q[-1] - q[-2]) / (q[-1] ** 2 - q[-2] ** 2)))
        first = monotone(q**2, q, slopes, dim=2, axis=0)  # of the density 1 on (0, 1)
        schedule = first.then(shear(lambda x: SHIFT * x**2, across, (0.0, 1.0)))
        # both densities are smooth between kinks; halvings towards 0, where the target vanishes
        near = q[1] * 2.0 ** -np.arange(40)
        edges = np.unique(np.concatenate([q, np.linspace(0, 1, across + 1), near]))
        x, masses = gauss(edges, 16)
        z, weights = hermite(8)
        points = np.stack([np.repeat(x, len(z)), (SHIFT * x[:, None] ** 2 + z).ravel()], axis=1)
        wanted = np.log(2 * x)[:, None] + norm.logpdf(z)
        reached = schedule.log_density(points, log_base).reshape(wanted.shape)
        rows.append((float((2 * x * masses) @ (wanted - reached) @ weights), len(schedule)))
    divergence, count = np.array(rows).T
    return xr.Dataset({"divergence": ("case", divergence), "units": ("case", count)})


def cell_law(c: float, slabs: int, centres: tuple[float, ...]) -> Any:
    """The normal density with the mean square of e^(c(x_1 + ... + x_k)) over the cells of these centres in (-1, 1)."""
    h = 2 * c / slabs
    square = np.prod([np.exp(2 * c * x) * np.sinh(h) / h for x in centres])
    return norm(0, np.sqrt(square))


def sampler(parameters: Parameters, d: int, slabs: int) -> Schedule:
    """Leaves d - 1 coordinates and maps the last one."""
    c, given = parameters.scale, uniform(-1, 2)
    firsts = [given, *(lambda *_: given for _ in range(d - 2))]
    last = lambda *centres: cell_law(c, slabs, centres)  # noqa: E731
    return triangular([*firsts, last], slabs=slabs, cells=parameters.cells, given=d - 1)


def scales(parameters: Parameters, d: int, slabs: tuple[int, ...]) -> xr.Dataset:
    """KL(target || reached) of y given x, averaged over x uniform on (-1, 1)^(d-1), and the number of units."""
    rows = []
    for j in slabs:
        schedule = sampler(parameters, d, j)
        one, mass = gauss(np.linspace(-1, 1, j + 1), 6)
        x = np.stack([part.ravel() for part in np.meshgrid(*[one] * (d - 1), indexing="ij")], axis=1)
        masses = np.prod(np.meshgrid(*[mass / 2] * (d - 1), indexing="ij"), axis=0).ravel()
        z, weights = hermite(12)
        deviation = np.exp(parameters.scale * x.sum(axis=1))
        points = np.concatenate([np.repeat(x, len(z), axis=0), (deviation[:, None] * z).reshape(-1, 1)], axis=1)
        wanted = norm.logpdf(z) - np.log(deviation)[:, None]
        reached = schedule.log_density(points, log_base).reshape(wanted.shape)
        rows.append((float(masses @ (wanted - reached) @ weights), len(schedule)))
    divergence, count = np.array(rows).T
    return xr.Dataset({"divergence": ("slabs", divergence), "units": ("slabs", count)}, {"slabs": list(slabs)})


def directions(parameters: Parameters, d: int) -> np.ndarray:
    """Unit vectors, with every one its opposite, that are a tight frame: (2 d FRAMES, d)."""
    frames = [np.linalg.qr(parameters.rng(1, d, k).standard_normal((d, d)))[0] for k in range(FRAMES)]
    return np.concatenate([*frames, *(-one for one in frames)])


def composed(parameters: Parameters, d: int) -> xr.Dataset:
    """Mean of |x_K - e^(c/2d) x_0|^2 over unit vectors x_0 and random compositions, with its standard error, by K."""
    c, a = parameters.growth, directions(parameters, d)
    start = parameters.rng(2, d).standard_normal((parameters.points, d))
    start = start / np.linalg.norm(start, axis=1, keepdims=True)
    rows = []
    for k, count in enumerate(parameters.counts):
        squares = []
        for seed in parameters.seeds(range(k * parameters.draws, (k + 1) * parameters.draws)):
            schedule = split(c * a / len(a), a, np.zeros(len(a)), count, order="maurey", seed=seed)
            end, _ = schedule.push(start)
            squares.append(np.mean(np.sum((end - np.exp(c / (2 * d)) * start) ** 2, axis=1)))
        rows.append(averaged(np.array(squares)))
    mean, error = np.array(rows).T
    return xr.Dataset({"mean": ("count", mean), "error": ("count", error)}, {"count": list(parameters.counts)})


def on_circle(angles: np.ndarray) -> np.ndarray:
    """Unit vectors of the plane."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def side_by_side(a: np.ndarray, bias: float) -> Perceptron:
    """F_m, the mean of the units a (<a, x> - b)_+."""
    return Perceptron(a, np.full(len(a), -bias), a.T / len(a))


def radial(x: np.ndarray, bias: float) -> np.ndarray:
    """F, the mean of a (<a, x> - b)_+ over all directions of the plane: x/r (r t - b sin t)/(2 pi), cos t = b/r."""
    r = np.linalg.norm(x, axis=1, keepdims=True)
    t = np.arccos(np.clip(bias / r, -1, 1))
    return x / r * (r * t - bias * np.sin(t)) / (2 * np.pi)


def layers(parameters: Parameters) -> xr.Dataset:
    """m E|F_m - F|^2 for m random directions and normal points, with its standard error, by bias."""
    rows = []
    for k, bias in enumerate(parameters.biases):
        squares = []
        for draw in range(parameters.draws):
            rng = parameters.rng(3, k, draw)
            a = on_circle(rng.uniform(0, 2 * np.pi, parameters.width))
            x = rng.standard_normal((parameters.points, 2))
            off = np.asarray(side_by_side(a, bias).map(0.0, x)) - radial(x, bias)
            squares.append(parameters.width * np.mean(np.sum(off**2, axis=1)))
        rows.append(averaged(np.array(squares)))
    mean, error = np.array(rows).T
    return xr.Dataset({"mean": ("bias", mean), "error": ("bias", error)}, {"bias": list(parameters.biases)})


def sweep(a: np.ndarray, bias: float, c: float) -> Any:
    """The units x + (c/m) a (<a, x> - b)_+, one after the other, as a function of points."""
    k = np.log1p(c / len(a)) * np.ones(len(a))
    schedule = units(k[:, None] * a, a, np.full(len(a), -bias))
    return lambda x: schedule.push(x)[0]


def layer(a: np.ndarray, bias: float, c: float) -> Any:
    """The same units side by side, as a function of points."""
    field = side_by_side(a, bias)
    return lambda x: x + c * np.asarray(field.map(0.0, x))


def skew(parameters: Parameters) -> xr.Dataset:
    """Root mean square, over the normal density, of the skew part of the Jacobian, by number of units."""
    r, weights = gauss(np.linspace(0, 6, 13), 6)
    weights = weights * r * np.exp(-(r**2) / 2)
    turn = 2 * np.pi * (np.arange(360) + 0.3819660113) / 360
    points = (r[:, None, None] * on_circle(turn)).reshape(-1, 2)
    masses = np.repeat(weights, len(turn)) / (len(turn) * weights.sum())
    rows = []
    for m in parameters.sweeps:
        a = on_circle(2 * np.pi * np.arange(m) / m)
        clear = np.abs(points @ a.T - 0.5).min(axis=1) > 2 * STEP  # of the kinks of the layer
        rows.append([rms_skew(make(a, 0.5, parameters.growth), points, masses * clear) for make in (layer, sweep)])
    found = np.array(rows).T
    return xr.Dataset({"layer": ("m", found[0]), "sweep": ("m", found[1])}, {"m": list(parameters.sweeps)})


def rms_skew(function: Any, points: np.ndarray, masses: np.ndarray) -> float:
    """sqrt(E |(D - D^T)/2|^2), Frobenius norm, D by central differences."""
    columns = [(function(points + STEP * e) - function(points - STEP * e)) / (2 * STEP) for e in np.eye(2)]
    half = (columns[1][:, 0] - columns[0][:, 1]) / 2
    return float(np.sqrt(2 * masses @ half**2))
