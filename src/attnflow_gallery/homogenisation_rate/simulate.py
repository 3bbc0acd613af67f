"""Random layers of finite steps: one token, two tokens, and the consensus under a mean of V."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import averaged
from attnflow.flows import Layers, solve
from attnflow.random_layers import gram_layers, random_attention
from attnflow.tokens import Tokens

BLOCK = 2048
"""Networks that are followed at once."""
EIGENVALUES = (1.0, 0.5, 0.0)
"""Of E V, where the consensus fluctuates."""


class Pair(NamedTuple):
    """Two tokens: dimension, heads, v of E V = v I, time eta L, and the overlap at the start."""

    d: int
    heads: int
    v: float
    time: float
    overlap: float


PAIRS = (Pair(3, 1, 1.0, 1.0, 0.0), Pair(8, 1, 1.0, 1.0, 0.0), Pair(8, 4, 1.0, 1.0, 0.5), Pair(3, 1, 0.5, 2.0, 0.0))


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    dims: tuple[int, ...] = (2, 3, 4, 8)
    """Of one token."""
    steps: tuple[float, ...] = (1.0, 0.5, 0.25)
    """eta^2 of one token, on the canonical clock."""
    time: float = 2.0
    blocks: int = 16
    """Of 2048 networks, for every dimension and step."""
    pairs: tuple[int, ...] = (0, 1, 2, 3)
    pair_step: float = 0.05
    pair_blocks: int = 60
    consensus_step: float = 0.05
    consensus_layers: int = 240
    consensus_blocks: int = 8
    expected_error: float = 32.0
    """Standard errors by which the error of the limit is expected to differ from 0."""


QUICK = Parameters(
    dims=(2, 8),
    steps=(1.0,),
    blocks=2,
    pairs=(0,),
    pair_step=0.1,
    pair_blocks=6,
    consensus_step=0.1,
    consensus_layers=60,
    consensus_blocks=1,
    expected_error=11.5,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """One token in every dimension, pairs, and the consensus."""
    makers: dict[str, Any] = {f"one-{d}": (one_token, parameters, d) for d in parameters.dims}
    makers |= {f"pair-{k}": (two_tokens, parameters, k) for k in parameters.pairs}
    return study.parts(makers | {"consensus": (consensus, parameters)})


def ends(parameters: Parameters, d: int, step: float, layers: int, first: int, mean: Any) -> np.ndarray:
    """The token that starts at e_1, after the last layer of a block of networks: (network, d)."""
    seeds = parameters.seeds(range(first, first + BLOCK))
    start = Tokens(np.eye(d)[:1])
    field = network(d, step, Along("seed", seeds), mean)
    flow = solve(field, start, step * layers, method=Layers(step), save=1, keep=("positions",))
    return np.asarray(flow.positions.isel(time=-1, token=0).transpose("seed", ...).values)


def network(d: int, step: float, seed: Any, mean: Any) -> Any:
    """Layers with fresh weights; one token sees itself alone, whatever the logits."""
    return random_attention(d, 0.0, step=step, seed=seed, mean_value=mean)


def one_token(parameters: Parameters, d: int) -> xr.Dataset:
    """Mean and standard error of <x_L, x_0> for every step."""
    rows = []
    for index, step in enumerate(parameters.steps):
        layers, found = round(parameters.time / step), []
        for block in range(parameters.blocks):
            first = BLOCK * (block + parameters.blocks * (index + len(parameters.steps) * (d % 100)))
            found.append(ends(parameters, d, float(np.sqrt(step)), layers, first, 0.0)[:, 0])
        rows.append(averaged(np.concatenate(found)))
    mean, error = np.array(rows).T
    return xr.Dataset({"mean": ("step", mean), "error": ("step", error)}, {"step": list(parameters.steps)})


def two_tokens(parameters: Parameters, k: int) -> xr.Dataset:
    """Mean and standard error of the overlap of two tokens."""
    one, found = PAIRS[k], []
    for block in range(parameters.pair_blocks):
        found.append(overlaps(one, parameters.pair_step, parameters.seed(500_000 + 1000 * k + block)))
    mean, error = averaged(np.concatenate(found))
    return xr.Dataset({"mean": mean, "error": error})


def overlaps(one: Pair, step: float, seed: int) -> np.ndarray:
    """Of a block of networks, by Gram matrices."""
    how: Any = {"heads": one.heads, "n": 2, "replicas": BLOCK, "mean_value": one.v, "seed": seed}
    return np.asarray(gram_layers(one.overlap, 0.0, step, round(one.time / step), one.d, **how).gram[:, -1, 0, 1])


def consensus(parameters: Parameters) -> xr.Dataset:
    """Mean squares of the components along e_2 and e_3, and their standard errors."""
    found = [
        ends(parameters, 3, parameters.consensus_step, parameters.consensus_layers, 600_000 + BLOCK * block, diagonal())
        for block in range(parameters.consensus_blocks)
    ]
    mean, error = averaged(np.concatenate(found)[:, 1:] ** 2)
    return xr.Dataset({"mean": ("axis", mean), "error": ("axis", error)})


def diagonal() -> np.ndarray:
    """E V."""
    return np.diag(EIGENVALUES)
