"""Causal softmax attention to late times, near consensus, and at large beta; centres of uniform starts."""

import dataclasses
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import AbstractMethod, Adaptive, Fixed, solve
from attnflow.masks import Causal
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, uniform

LARGE = 4.0
"""Centres of large-beta flows are this times beta^(-1/2) apart, as in figure 2 of arXiv:2411.04990."""
GAP = 0.5
"""Groups of tokens that are farther apart than this times beta^(-1/2) are two clusters."""
TOLERANCE = 1e-11
"""Of a step in flows that are compared to formulas."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    betas: tuple[float, ...] = (0.5, 1.0, 2.0)
    n: int = 16
    starts: int = 8
    times: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0)
    """Of flows to consensus on S^2."""
    keys: int = 3
    """Pairs of random matrices Q, K, for flows to consensus."""
    near: float = 1e-4
    """Distance from consensus of the linear regime."""
    near_tokens: int = 7
    near_times: tuple[float, ...] = (1.0, 2.0, 4.0)
    angles: tuple[float, ...] = (0.25, 0.5, 1.0)
    """At which centres of starts are counted."""
    strong_tokens: int = 400
    renyi_tokens: int = 20_000
    draws: int = 1000
    large_betas: tuple[float, ...] = (25.0, 100.0, 400.0)
    density: float = 6.4
    """Tokens of a large-beta flow, over sqrt(beta)."""
    prompts: tuple[int, ...] = (384, 256, 128)
    until: float = 20.0
    expected_share: float = 50.0
    """Standard errors by which tokens are expected to gather at Rényi centres rather than at random tokens."""


QUICK = Parameters(
    betas=(1.0, 2.0),
    n=8,
    starts=4,
    times=(1.0, 5.0, 20.0, 640.0),
    keys=1,
    angles=(0.5, 1.0),
    renyi_tokens=10_000,
    draws=300,
    large_betas=(25.0, 100.0),
    prompts=(96, 64),
    expected_share=24.0,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Flows to consensus and near it, centres of starts, and clusters at large beta."""
    large = zip(parameters.large_betas, parameters.prompts, strict=True)
    first = (("consensus", consensus), ("keys", keys), ("near", near), ("starts", starts))
    return study.parts(
        {name: (make, parameters) for name, make in first}
        | {f"beta{beta:g}": (gather, parameters, beta, count) for beta, count in large}
    )


def consensus(parameters: Parameters) -> xr.Dataset:
    """Angles (beta, time, start, token) between every token and the start of the first, from iid tokens on S^2."""
    start = uniform(Sphere(3), n=parameters.n, seed=parameters.seeds(range(parameters.starts)))
    first = np.asarray(start.positions)[:, :1]
    rows = []
    for beta in parameters.betas:
        rows.append(angle(_frames(beta, start, parameters.times, Adaptive(TOLERANCE, TOLERANCE)), first))
    return xr.Dataset(
        {"angle": (("beta", "time", "start", "token"), np.array(rows))},
        coords={"beta": list(parameters.betas), "time": [0.0, *parameters.times]},
    )


def keys(parameters: Parameters) -> xr.Dataset:
    """The same at the last time, (beta, pair, start, token), with random Q and K, scaled to a norm 1 of Q^T K."""
    start = uniform(Sphere(3), n=parameters.n, seed=parameters.seeds(range(100, 100 + parameters.starts)))
    first, method, rows = np.asarray(start.positions)[:, :1], Adaptive(TOLERANCE, TOLERANCE), []
    for beta in parameters.betas:
        for pair in range(parameters.keys):
            query, key = parameters.rng(4, pair).standard_normal((2, 3, 3))
            query = query / np.linalg.norm(query.T @ key, 2)
            rows.append(angle(_frames(beta, start, parameters.times[-1:], method, query, key)[-1], first))
    shape = len(parameters.betas), parameters.keys, parameters.starts, parameters.n
    return xr.Dataset({"angle": (("beta", "pair", "start", "token"), np.reshape(rows, shape))})


def near(parameters: Parameters) -> xr.Dataset:
    """Forward differences (beta, time, order, component) at the first token of tokens close to it, over `near`."""
    n, rng = parameters.near_tokens, parameters.rng(1)
    flat = parameters.near * rng.uniform(-1, 1, (n, 2))
    flat[0] = 0
    # the chart (x, y) of the sphere at its north pole, where the first token sits
    start = Tokens(np.concatenate([flat, np.sqrt(1 - np.sum(flat**2, axis=1, keepdims=True))], axis=1), space=Sphere(3))
    rows = []
    for beta in parameters.betas:
        frames = _frames(beta, start, parameters.near_times, Adaptive(TOLERANCE, 1e-15))
        rows.append([[np.diff(frame[:, :2], p, axis=0)[0] for p in range(1, n)] for frame in frames])
    return xr.Dataset(
        {"difference": (("beta", "time", "order", "component"), np.array(rows) / parameters.near)},
        coords={"beta": list(parameters.betas), "time": [0.0, *parameters.near_times], "order": range(1, n)},
    )


def starts(parameters: Parameters) -> xr.Dataset:
    """Numbers of strong centres on the circle and on S^2 and of Renyi centres on the circle, (angle, draw)."""
    found: dict[str, list[list[int]]] = {"strong-2": [], "strong-3": [], "renyi": []}
    for k, delta in enumerate(parameters.angles):
        for name, rows in found.items():
            rng = parameters.rng(2, k, list(found).index(name))
            d, n = (3 if name == "strong-3" else 2), parameters.renyi_tokens
            if name == "renyi":
                draws = rng.uniform(0, 2 * np.pi, (parameters.draws, n))
                rows.append([len(renyi(theta, delta)) for theta in draws])
            else:
                points = rng.standard_normal((parameters.draws, parameters.strong_tokens, d))
                points /= np.linalg.norm(points, axis=-1, keepdims=True)
                rows.append([int(np.sum(strong(one @ one.T, delta))) for one in points])
    return xr.Dataset(
        {name: (("angle", "draw"), np.array(rows)) for name, rows in found.items()},
        coords={"angle": list(parameters.angles)},
    )


def gather(parameters: Parameters, beta: float, count: int) -> xr.Dataset:
    """Counts by prompt of a large-beta flow on the circle: clusters, centres of the start, and what became of these."""
    n, unit = round(parameters.density * np.sqrt(beta)), 1 / np.sqrt(beta)
    begin = parameters.rng(3, round(beta)).uniform(0, 2 * np.pi, (count, n))
    start = Tokens(np.stack([np.cos(begin), np.sin(begin)], axis=-1), space=Sphere(2), dims=("prompt",))
    end = _frames(beta, start, (parameters.until,), Fixed(0.4))[-1]
    end = np.arctan2(end[..., 1], end[..., 0])
    rows = []
    for before, after in zip(begin, end, strict=True):
        firm = strong(np.cos(before[:, None] - before), LARGE * unit)
        parked, group = renyi(before, LARGE * unit), groups(after, GAP * unit)
        row: dict[str, float] = {"strong": int(np.sum(firm)), "renyi": len(parked)}
        row["clusters"] = np.max(group) + 1
        row["moved"] = float(np.max(turn(after[firm] - before[firm]))) / unit
        row["shared"] = row["strong"] - len(np.unique(group[firm]))
        row["at_centres"] = float(np.mean(np.isin(group, group[parked])))
        row["at_random"] = covered(np.bincount(group), len(parked))
        rows.append(row)
    table = {name: ("prompt", np.array([row[name] for row in rows])) for name in rows[0]}
    return xr.Dataset(table | {"begin": ("token", begin[0]), "end": ("token", end[0])})


def field(beta: float, query: Any = None, key: Any = None) -> Attention:
    """Causal softmax attention with V = I."""
    return Attention(beta, query=query, key=key, mask=Causal())


def _frames(beta: float, start: Tokens, times: tuple[float, ...], method: AbstractMethod, *matrices: Any) -> np.ndarray:
    """Positions (time, ...) at time 0 and at `times`; `matrices` are Q and K."""
    flow = solve(field(beta, *matrices), start, times[-1], save=times, method=method, keep=("positions",))
    return np.asarray(flow.positions.transpose("time", ...).values)


def angle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Angles between unit vectors, accurate when small."""
    return np.asarray(2 * np.arctan2(np.linalg.norm(x - y, axis=-1), np.linalg.norm(x + y, axis=-1)))


def turn(difference: np.ndarray) -> np.ndarray:
    """The distance on the circle."""
    return np.abs(np.mod(difference + np.pi, 2 * np.pi) - np.pi)


def strong(overlap: np.ndarray, delta: float) -> np.ndarray:
    """Which tokens are farther than `delta` from all earlier ones, by their matrix of overlaps."""
    return np.max(np.tril(overlap + 2, -1) - 2, axis=1) < np.cos(delta)


def renyi(theta: np.ndarray, delta: float) -> np.ndarray:
    """Indices of the tokens on the circle that are farther than `delta` from all earlier ones of these."""
    free, found = np.arange(len(theta)), []
    while len(free):
        found.append(free[0])
        free = free[turn(theta[free] - theta[free[0]]) > delta]
    return np.array(found)


def groups(theta: np.ndarray, gap: float) -> np.ndarray:
    """The number of the group of every token on the circle; groups are at least `gap` apart."""
    around = np.mod(theta, 2 * np.pi)
    order = np.argsort(around)
    ahead = np.diff(np.append(around[order], around[order[0]] + 2 * np.pi)) > gap
    # the gap after a token begins the next group; after the last gap the first group goes on
    number = np.empty(len(theta), dtype=int)
    number[order] = (np.cumsum(ahead) - ahead) % max(np.sum(ahead), 1)
    return number


def covered(sizes: np.ndarray, chosen: int) -> float:
    """The mean share of tokens that are in the group of one of `chosen` tokens that are drawn at random."""
    n = int(np.sum(sizes))
    missed = [math.comb(n - int(size), chosen) / math.comb(n, chosen) for size in sizes]
    return float(1 - np.dot(sizes, missed) / n)
