"""Rescaled tokens of attention whose V has a simple leading eigenvalue: random starts and exactly soluble ones."""

import dataclasses
import itertools

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import EPS, leaders
from attnflow.fields import Attention, Rescaled
from attnflow.flows import Fixed, Solve
from attnflow.observe import attention_matrix, hyperplane_coordinates
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens, stack

EXAMPLE = np.array([[1.0, 0.3], [0.0, -0.4]])
BEFORE = 2.0
"""How long before the end leaders are looked for; they must be the same at the end."""
ANGLES = (-1.0, 0.0, 1.0)
"""The clusters of a pair are at cos(angle) phi + sin(angle) w, phi*(w) = 0."""
SPREAD = 0.2
"""Of the random bases e^(SPREAD G), G Gaussian, in which V is block diagonal."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    tokens: int = 30
    """An even number."""
    starts: int = 60
    """Random ones, each with a V of its own, of leading eigenvalue 1."""
    dims: tuple[int, ...] = (2, 3)
    pairs: tuple[float, ...] = (0.4, 0.6, 0.8, 1.1, 1.5)
    """Norms of x(0) of two clusters at x and -x, in three directions each."""
    middles: tuple[float, ...] = (0.0, 0.5)
    """Mass of two tokens at 0 beside each pair, over the mass of the pair."""
    departures: tuple[float, ...] = (0.6, 1.0)
    """X(0) of clusters at X and -X with a token of no mass near 0."""
    offset: float = 1e-9
    """Initial distance of that token from 0."""
    until: float = 10.0
    legs: int = 80
    steps: int = 12
    """Per leg; half as long ones are taken for comparison."""


QUICK = Parameters(starts=12, dims=(2,), pairs=(0.6, 1.1), departures=(0.6,), legs=40, steps=10)


def exact(parameters: Parameters) -> list[tuple[float, float, float]]:
    """Norm, angle and mass in the middle of the pairs, in the order in which they follow the random starts."""
    return list(itertools.product(parameters.pairs, ANGLES, parameters.middles))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Frames of all starts of a dimension, their coordinates, and who leads whom shortly before the end."""
    return {f"R{dim}": _follow(parameters, dim, study) for dim in study.along(parameters.dims)}


def leading(value: np.ndarray) -> np.ndarray:
    """The unit eigenvector phi for the eigenvalue 1."""
    found, vectors = np.linalg.eig(value)
    return np.asarray(vectors[:, np.argmax(found.real)].real)


def draw_values(count: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Random V: the eigenvalue 1, others of real part between -0.4 and 0.3, every third time a complex pair."""
    from scipy.linalg import expm

    made = []
    for k in range(count):
        inner = np.diag(np.r_[1.0, rng.uniform(-0.4, 0.3, dim - 1)])
        if k % 3 == 2 and dim > 2:
            inner[2, 2] = inner[1, 1]
            inner[1, 2], inner[2, 1] = 1.0, -1.0
        basis = expm(SPREAD * rng.standard_normal((dim, dim)))
        made.append(basis @ inner @ np.linalg.inv(basis))
    if dim == 2:
        made[0] = EXAMPLE
    return np.array(made)


def _starts(parameters: Parameters, dim: int) -> tuple[list[Tokens], np.ndarray]:
    """Tokens and V: random ones, pairs of clusters with tokens at 0, and those with a token near 0."""
    rng, other, n = parameters.rng(2), parameters.rng(2, dim), parameters.tokens
    rng.standard_normal((20, 2))  # the example has the tokens that follow those of `vertices` in this stream
    values = draw_values(parameters.starts, dim, other)
    phi = leading(values[0])
    across = values[0] @ (aim := other.standard_normal(dim)) - aim  # phi* of it is 0
    across /= np.linalg.norm(across)
    side = np.repeat([1.0, 0.0, -1.0], [n // 2 - 1, 2, n // 2 - 1])[:, None]
    made = [(x, np.ones(n)) for x in rng.standard_normal((parameters.starts, n, dim))]
    for radius, angle, mass in exact(parameters):
        masses = balanced(np.where(side[:, 0] == 0, mass * (n - 2) / 2, 1.0))
        made.append((radius * side * (np.cos(angle) * phi + np.sin(angle) * across), masses))
    near = parameters.offset * (side == 0) * np.where(np.arange(n) < n // 2, 1.0, -1.0)[:, None]
    made += [((radius * side + near) * phi, np.abs(side[:, 0])) for radius in parameters.departures]
    tokens = [Tokens(x, masses, space=Euclidean(dim)) for x, masses in made]
    return tokens, np.concatenate([values, np.broadcast_to(values[0], (len(tokens) - len(values), dim, dim))])


def balanced(masses: np.ndarray) -> np.ndarray:
    """Masses of a start that is symmetric about 0, as they are; a mutation tips the balance."""
    return masses


def _follow(parameters: Parameters, dim: int, study: Study) -> xr.Dataset:
    """Arrays (time, start, ...): positions and leading coordinates, and what halving the steps changes of them."""
    tokens, values = _starts(parameters, dim)
    field = Rescaled(Attention(1.0, value=Along("start", values)))
    start = stack("start", range(len(tokens)), tokens)
    method = Fixed(parameters.until / parameters.legs / parameters.steps)
    flow = Solve(field, start, parameters.until, save=parameters.legs, method=method, keep=("positions",))
    found = study.refined(f"R{dim}", flow).transpose("time", "start", "token", "dim", ...)
    # the error by Richardson's extrapolation is 1/15 of the change
    time, z, change = found["time"].values, found["positions"].values, 15 * found["positions_error"].values
    error = np.linalg.norm(change, axis=3).max(axis=2) + 64 * EPS * np.abs(z).max(axis=(2, 3))
    duals = np.array([dual(value) for value in values])
    early = int(np.searchsorted(time, parameters.until - BEFORE - 1e-9))
    leader, doubt = _leaders(z[early], values[: parameters.starts], time[early])
    later, more = _leaders(z[-1], values[: parameters.starts], time[-1])
    return xr.Dataset(
        {
            "positions": found["positions"],
            "error": (("time", "start"), error),
            "coordinate": (("time", "start", "token"), np.einsum("fsnd,sd->fsn", z, duals)),
            "change": (("time", "start", "token"), np.einsum("fsnd,sd->fsn", change, np.abs(duals))),
            "value": (("start", "row", "dim"), values),
            "leader": (("random", "token"), leader),
            "doubt": (("random", "token"), np.where(leader == later, np.maximum(doubt, more), 1.0)),
        },
        attrs={"early": early},
    )


def _leaders(z: np.ndarray, values: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Whom each token of each start sees most, and the sum of its other weights; x = e^(tV) z."""
    from scipy.linalg import expm

    raw = [Tokens(x @ expm(t * v).T, space=Euclidean(len(v))) for x, v in zip(z, values, strict=False)]
    return leaders(attention_matrix(Attention(1.0), tokens) for tokens in raw)


def dual(value: np.ndarray) -> np.ndarray:
    """phi*, the vector of the leading coordinate; for V = I the first coordinate, as good as any."""
    same = np.eye(len(value))
    return same[0] if (value == same).all() else np.asarray(hyperplane_coordinates(same, value))
