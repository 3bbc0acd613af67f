"""Tokens on the line without layer norm: random starts, and exactly soluble ones of two clusters and a token at 0."""

import dataclasses
import functools
import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import EPS
from attnflow.fields import Attention, Rescaled
from attnflow.flows import Fixed, Solve
from attnflow.observe import attention_matrix
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens, stack

LINE = (-1.3, -0.4, -0.05, 0.2, 0.7, 1.9)
"""The example."""
SHOWN = 8.0
"""Until when the attention matrices of the example are kept."""
APART = 1e-3
"""Two outermost tokens of a random start are further apart; closer ones are not told apart by the time of the end."""
LARGEST = 40.0
"""Exact starts are looked at in the last frame at which u = QK x^2 of the outer tokens is below this number."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    sizes: tuple[int, ...] = (6, 24)
    """Numbers of tokens of random starts."""
    starts: int = 120
    """Random ones of each size, Gaussian, V = QK = 1 (units of time and length); a third has tokens > 0 only."""
    radii: tuple[float, ...] = (0.7, 1.0, 1.6)
    """a of the exact starts, tokens at -a, 0 and a."""
    values: tuple[float, ...] = (0.5, 1.0, 2.0)
    products: tuple[float, ...] = (0.5, 2.0)
    """QK of the exact starts."""
    middles: tuple[float, ...] = (0.0, 0.5)
    """Mass of the token at 0 over that of the two others together."""
    until: float = 16.0
    legs: int = 128
    steps: int = 12
    """Per leg; half as long ones are taken too, the difference gives the tolerance."""
    look: float = 6.0
    span: float = 0.5
    """When the decay of weights is looked at, and for how long."""


QUICK = Parameters(
    sizes=(6,), starts=12, radii=(0.7,), values=(0.5, 2.0), products=(2.0,), until=14.0, legs=112, steps=4
)


def exact(parameters: Parameters) -> list[tuple[float, float, float, float]]:
    """a, V, QK and the mass in the middle of the exact starts."""
    return list(itertools.product(parameters.radii, parameters.values, parameters.products, parameters.middles))


class Starts(NamedTuple):
    """Systems that are followed together."""

    tokens: list[Tokens]
    value: np.ndarray
    """V of each."""
    product: np.ndarray
    """QK of each."""


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Positions and attention matrices: random starts for each number of tokens, and exact starts."""
    starts = {f"n{n}": random_starts(parameters, n) for n in parameters.sizes} | {"exact": exact_starts(parameters)}
    found = {}
    for name, some in study.along(starts.items()):
        flow = _positions(study.refined(name, _flow(parameters, some)))
        look = _exact_matrices if name == "exact" else functools.partial(_random_matrices, parameters)
        found[name] = flow.merge(study.part(name, functools.partial(look, some, flow)))
    return found


def random_starts(parameters: Parameters, n: int) -> Starts:
    """Gaussian tokens, without starts whose two outermost tokens are closer than APART; the second is the example."""
    rng, found = parameters.rng(2, n), list[np.ndarray]()
    while len(found) < parameters.starts:
        x = rng.standard_normal(n)
        x = np.sort(np.abs(x) if len(found) % 3 == 0 else x)
        if lead(x) > APART:
            found.append(np.array(LINE) if (n, len(found)) == (len(LINE), 1) else x)
    tokens = [Tokens(one[:, None], space=Euclidean(1)) for one in found]
    return Starts(tokens, np.ones(len(found)), np.ones(len(found)))


def lead(x: np.ndarray) -> float:
    """The distance of the outermost token from the next one on its side of 0; of the two sides the smaller."""
    sides = (np.sort(np.abs(x[side]))[-2:] for side in (x > 0, x < 0))
    return min((float(np.diff(two)[0]) for two in sides if two.size == 2), default=np.inf)


def exact_starts(parameters: Parameters) -> Starts:
    """Tokens at -a, 0 and a."""
    known = exact(parameters)
    value, product = (np.array([one[k] for one in known]) for k in (1, 2))
    return Starts([Tokens(*triple(a, mass), space=Euclidean(1)) for a, _, _, mass in known], value, product)


def triple(radius: float, middle: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions and masses of tokens at -a, 0 and a."""
    return np.array([[-radius], [0.0], [radius]]), np.array([1.0, 2 * middle, 1.0])


def _flow(parameters: Parameters, starts: Starts) -> Solve:
    query, value = (Along("start", one[:, None, None]) for one in (starts.product, starts.value))
    field = Rescaled(Attention(1.0, query=query, value=value))
    tokens = stack("start", range(len(starts.tokens)), starts.tokens)
    method = Fixed(parameters.until / (parameters.legs * parameters.steps))
    return Solve(field, tokens, parameters.until, save=parameters.legs, method=method, keep=("positions",))


def _positions(flow: xr.Dataset) -> xr.Dataset:
    """z, (time, start, token), and what halving the steps, or rounding, changes of it, (time, start)."""
    z = flow["positions"].isel(dim=0).transpose("time", "start", "token")
    change = 15 * flow["positions_error"].isel(dim=0).transpose("time", "start", "token")
    return xr.Dataset({"z": z, "error": change.max("token") + 64 * EPS * abs(z).max("token")})


def _random_matrices(parameters: Parameters, starts: Starts, flow: xr.Dataset) -> xr.Dataset:
    """Attention matrices of all starts at the end and some time after gaps froze, and of the example at early times."""
    later, last = (int(np.argmin(np.abs(flow["time"].values - t))) for t in (parameters.look + parameters.span, SHOWN))
    numbers, dims = range(len(starts.tokens)), ("query", "key")
    return xr.Dataset(
        {
            "end": (("start", *dims), _matrices(starts, flow, [(-1, k) for k in numbers])),
            "later": (("start", *dims), _matrices(starts, flow, [(later, k) for k in numbers])),
            "story": (("early", *dims), _matrices(starts, flow, [(frame, 1) for frame in range(last + 1)])),
        }
    )


def _exact_matrices(starts: Starts, flow: xr.Dataset) -> xr.Dataset:
    """The frame at which each start is looked at, and its attention matrix."""
    square = starts.product * (np.exp(np.outer(flow["time"], starts.value)) * flow["z"].values[:, :, -1]) ** 2
    frame = np.array([np.flatnonzero(one < LARGEST)[-1] for one in square.T])
    matrix = _matrices(starts, flow, zip(frame, range(len(frame)), strict=True))
    return xr.Dataset({"look": ("start", frame), "matrix": (("start", "query", "key"), matrix)})


def _matrices(starts: Starts, flow: xr.Dataset, chosen: Iterable[tuple[int, int]]) -> np.ndarray:
    """Attention matrices at some (frame, start), x = e^(Vt) z."""
    times, z, made = flow["time"].values, flow["z"].values, []
    for frame, k in chosen:
        grown = np.exp(min(starts.value[k] * times[frame], 300.0)) * z[frame, k]
        raw = Tokens(grown[:, None], starts.tokens[k].masses, space=Euclidean(1))
        made.append(np.asarray(attention_matrix(Attention(starts.product[k]), raw)))
    return np.array(made)
