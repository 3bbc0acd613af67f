"""Distances and lengths along flows of equiangular tokens, and distances between two flows on the circle."""

import dataclasses
import itertools

import numpy as np
import xarray as xr
from scipy.integrate import cumulative_simpson
from scipy.optimize import minimize_scalar

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, Solve, solve
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, equiangular, stack, uniform
from attnflow.transport import distance, metric_speed

MODELS = "SA", "USA0"
SUBSTEPS = 4
"""Steps from one frame to the next."""
SHORT, NEAR = 1e-3, 1e-4
"""Time of the flows of two pairs, and the difference of their angles."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """Equiangular tokens, and pairs of starts on the circle."""

    tokens: tuple[int, ...] = (8, 5)
    overlaps: tuple[float, ...] = (0.0, 0.3)
    """The common overlap, one for each number of tokens."""
    beta: float = 2.0
    until: float = 8.0
    frames: int = 64
    """A multiple of 4."""
    betas: tuple[float, ...] = (0.5, 1.0, 4.0, 9.0, 100.0)
    """Of two pairs at the extremal angle."""
    random_beta: float = 9.0
    random_tokens: int = 16
    pairs: int = 32
    random_until: float = 8.0


QUICK = Parameters(tokens=(5,), overlaps=(0.3,), frames=32, betas=(1.0, 9.0), pairs=4)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Equiangular tokens of both models, two pairs, random pairs."""
    found = {}
    sizes = zip(parameters.tokens, parameters.overlaps, strict=True)
    for (n, overlap), model in study.along(list(itertools.product(sizes, MODELS))):
        part = study.refined(f"{model}-{n}", _straight(parameters, model, n, overlap))
        found[f"{model}-{n}"] = part.assign(_distances(part))
    return found | study.parts({"extremal": (_extremal, parameters), "random": (_random, parameters)})


def _straight(parameters: Parameters, model: str, n: int, overlap: float) -> Solve:
    """Tokens with one common overlap."""
    field = Attention(parameters.beta, normaliser=model)
    start = equiangular(Sphere(n), n=n, overlap=overlap, seed=parameters.seed(n))
    method = Fixed(parameters.until / parameters.frames / SUBSTEPS)
    seen = {"pace": metric_speed.of(field)}
    return Solve(
        field, start, parameters.until, save=parameters.frames, method=method, observe=seen, keep=("positions",)
    )


def _distances(part: xr.Dataset) -> dict[str, tuple[str, np.ndarray]]:
    """W_2 from the start at every frame, and the length of the path at every fourth."""
    x, pace = part["positions"].values, part["pace"].values
    apart = [float(distance(Tokens(x[0]), Tokens(one), order=2)) for one in x]
    # Simpson's rule is of order 4 after an even number of intervals only
    times = part["time"].values
    fine, coarse = (cumulative_simpson(pace[::k], x=times[::k], initial=0.0)[:: 4 // k] for k in (1, 2))
    found = {"length": fine, "length_error": np.abs(fine - coarse), "quarter": times[::4]}
    return {"apart": ("time", np.array(apart))} | {name: ("quarter", values) for name, values in found.items()}


def pull(angle: float, beta: float) -> float:
    """W'' at an angle: (beta sin^2 - cos) e^(beta (cos - 1))."""
    return float((beta * np.sin(angle) ** 2 - np.cos(angle)) * np.exp(beta * (np.cos(angle) - 1)))


def extremal_angle(beta: float) -> float:
    """Where W'' is largest."""
    grid = np.linspace(0, np.pi, 2001)
    k = int(np.argmax([pull(angle, beta) for angle in grid]))
    ends = grid[max(k - 1, 0)], grid[min(k + 1, 2000)]
    return float(
        minimize_scalar(lambda angle: -pull(angle, beta), bounds=ends, method="bounded", options={"xatol": 1e-12}).x
    )


def circle(angles: np.ndarray) -> Tokens:
    """Tokens on the circle."""
    return Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=-1))


def _extremal(parameters: Parameters) -> xr.Dataset:
    """The rate at which two pairs of tokens separate, both about the same mean, at the extremal angle."""
    rates = []
    for beta in parameters.betas:
        angle = extremal_angle(beta)
        field = Attention(beta, normaliser="USA0")
        starts = [circle(np.array([-0.5, 0.5]) * one) for one in (angle, angle + NEAR)]
        ends = solve(
            field, stack("pair", [0, 1], starts), SHORT, save=1, method=Fixed(SHORT / 8), keep=("positions",)
        ).tokens(-1)
        apart = [distance(one, other, order=2) for one, other in (starts, [ends.member(pair=k) for k in (0, 1)])]
        rates.append(np.log(apart[1] / apart[0]) / SHORT)
    return xr.Dataset({"rate": ("beta", rates)}, {"beta": list(parameters.betas)})


def _random(parameters: Parameters) -> xr.Dataset:
    """(pair, time): W_2 between flows from two random starts on the circle."""
    count = 2 * parameters.pairs
    start = uniform(Sphere(2), n=parameters.random_tokens, seed=parameters.seeds(range(count)))
    field = Attention(parameters.random_beta, normaliser="USA0")
    method = Fixed(parameters.random_until / 256)
    flow = solve(field, start, parameters.random_until, save=32, method=method, keep=("positions",))
    x = flow.positions.values
    apart = [
        [float(distance(Tokens(a), Tokens(b), order=2)) for a, b in zip(x[2 * k], x[2 * k + 1], strict=True)]
        for k in range(parameters.pairs)
    ]
    return xr.Dataset({"apart": (("pair", "time"), np.array(apart))}, {"time": flow.time.values})
