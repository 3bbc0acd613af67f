"""Planted groups, plateaus of iid starts, tubes around flows on the circle, and balls of starts."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.certify import Certificate, check, circle_consensus, circle_flow, plateaus, stay_apart
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Adaptive, LongTime, solve, solve_long
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, uniform

CENTRES = {2: (0.0, 2.0), 3: (0.0, 2.1, 4.2)}
"""Angles of the centres of two and of three groups on a great circle."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is proved and simulated."""

    models: tuple[str, ...] = ("SA", "USA0")
    betas: tuple[float, ...] = (6.0, 9.0, 14.0, 20.0, 30.0, 45.0)
    groups: tuple[int, ...] = (2, 3)
    dims: tuple[int, ...] = (2, 3)
    each: int = 6
    """Tokens of a group."""
    radius: float = 0.15
    """Of the caps, in angle."""
    points: tuple[float, ...] = (0.8, 1.4, 2.0)
    """Angles of two point masses."""
    masses: tuple[float, ...] = (0.5, 0.8)
    """Of the first point mass."""
    tol: float = 1e-9
    """Of `solve_long` for two point masses."""
    iid: int = 12
    """Starts of `n` iid tokens on the circle, followed through their plateaus."""
    n: int = 16
    beta: float = 30.0
    """Of the iid starts."""
    flows: int = 12
    """Starts on the circle that are followed with a proved error."""
    tokens: int = 5
    """Of these starts."""
    until: float = 3.0
    cold: float = 4.0
    """beta of these flows and of the balls."""
    ball: float = 1e-3
    """Radius of the balls of starts, in every angle."""
    corners: int = 40
    """Starts that are drawn from a ball."""


QUICK = Parameters(
    models=("USA0",),
    betas=(9.0, 20.0),
    groups=(2,),
    dims=(2,),
    each=3,
    points=(1.4,),
    iid=1,
    n=6,
    flows=2,
    tokens=3,
    until=1.0,
    corners=2,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Certificates beside simulations."""
    return study.parts(
        {
            "planted": (_planted, parameters),
            "points": (_points, parameters),
            "iid": (_iid, parameters),
            "flows": (_flows, parameters),
            "balls": (_balls, parameters),
        }
    )


def _planted(parameters: Parameters) -> xr.Dataset:
    """Groups in caps: proved time, and when tokens of different groups merge."""
    rng, rows = parameters.rng(0), []
    kinds = itertools.product(parameters.models, parameters.groups, parameters.dims, parameters.betas)
    for model, k, d, beta in kinds:
        tokens, groups = plant(k, parameters.each, d, parameters.radius, rng)
        found = stay_apart(tokens, beta, groups, model=model)
        if not isinstance(found, Certificate):  # the caps are too wide for softmax at this beta
            rows.append((model, k, d, beta, 0, 0.0, 0.0, 0))
            continue
        flow = solve_long(Attention(beta, normaliser=model), tokens, math.inf)
        merges = flow.merges
        apart = [groups[p] != groups[q] for p, q in zip(merges["first"].values, merges["second"].values, strict=True)]
        first = float(merges["log_time"].values[np.argmax(apart)])
        rows.append((model, k, d, beta, 1, math.log(found.claims["time"]), first, int(check(found).confirmed)))
    names = ("model", "groups", "d", "beta", "proved", "log_proved", "log_time", "confirmed")
    return _table("case", names, rows)


def plant(k: int, each: int, d: int, radius: float, rng: np.random.Generator) -> tuple[Tokens, list[int]]:
    """Groups of tokens, uniform in angle up to `radius` from centres on a great circle of S^(d-1)."""
    rows, groups = [], []
    for group, centre in enumerate(CENTRES[k]):
        middle = np.array([math.cos(centre), math.sin(centre), *[0.0] * (d - 2)])
        for _ in range(each):
            side = rng.standard_normal(d)
            side -= (side @ middle) * middle
            angle = radius * rng.uniform(0, 1)
            rows.append(math.cos(angle) * middle + math.sin(angle) * side / np.linalg.norm(side))
            groups.append(group)
    return Tokens(np.array(rows), space=Sphere(d)), groups


def _points(parameters: Parameters) -> xr.Dataset:
    """Two point masses: proved time, and when they are as near as the certificate says."""
    rows = []
    for angle, mass, beta in itertools.product(parameters.points, parameters.masses, parameters.betas):
        tokens = Tokens(np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]]), [mass, 1 - mass])
        found = stay_apart(tokens, beta, [0, 1])
        if not isinstance(found, Certificate):
            continue
        near = LongTime(parameters.tol, angle=2 * math.sin(found.claims["gap"] / 2))
        merges = solve_long(Attention(beta, normaliser="USA0"), tokens, math.inf, method=near).merges
        log_time, error = float(merges["log_time"][0]), float(merges["error"][0] - merges["bound"][0])
        rows.append((angle, mass, beta, math.log(found.claims["time"]), log_time, error + parameters.tol))
    return _table("pair", ("angle", "mass", "beta", "log_proved", "log_time", "error"), rows)


def _iid(parameters: Parameters) -> xr.Dataset:
    """Plateaus of iid starts on the circle, USA0, with what is proved of them."""
    rows = []
    for seed in parameters.seeds(range(parameters.iid)):
        tokens = uniform(Sphere(2), n=parameters.n, seed=seed)
        table = plateaus(solve_long(Attention(parameters.beta, normaliser="USA0"), tokens, math.inf))
        columns = (table[key].values.tolist() for key in ("clusters", "log_end", "log_proved"))
        rows += [row for row in zip(*columns, strict=True) if math.isfinite(row[-1])]
    return _table("plateau", ("clusters", "log_end", "log_proved"), rows)


def on_circle(angles: np.ndarray) -> Tokens:
    """Tokens at angles (start, token)."""
    return Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=-1), dims=("start",))


def ends(parameters: Parameters, angles: np.ndarray, until: float) -> np.ndarray:
    """Angles (start, token) at a time, by a flow in floats."""
    method = Adaptive(1e-12, 1e-13)
    flow = solve(Attention(parameters.cold), on_circle(angles), until, save=1, method=method)
    x = flow.positions.isel(time=-1).transpose("start", "token", "dim").values
    return np.arctan2(x[..., 1], x[..., 0])


def _flows(parameters: Parameters) -> xr.Dataset:
    """Where starts are at the end: the radius of the proved tube, and how far the flow in floats is from its centre."""
    angles = parameters.rng(1).uniform(0, 2 * np.pi, (parameters.flows, parameters.tokens))
    found = [circle_flow(one, parameters.cold, parameters.until) for one in angles]
    there, rows = ends(parameters, angles, parameters.until), []
    for one, last in zip(found, there, strict=True):
        off = np.abs(np.sin(np.array(one.claims["end"]) - last)).max()
        rows.append((float(off), one.claims["radius"], int(check(one).confirmed)))
    return _table("flow", ("off", "radius", "confirmed"), rows)


def _balls(parameters: Parameters) -> xr.Dataset:
    """Balls of starts whose consensus is proved: the least largest gap of random starts when the proof says half."""
    rng, rows = parameters.rng(2), []
    for _ in range(parameters.flows):
        angles = rng.uniform(0, 2 * np.pi, parameters.tokens)
        found = circle_consensus(angles, parameters.cold, ball=parameters.ball)
        if not isinstance(found, Certificate):
            rows.append((0, 0.0, 0.0, 1))
            continue
        time = found.claims["time"]
        starts = angles + parameters.ball * rng.uniform(-1, 1, (parameters.corners, parameters.tokens))
        ordered = np.sort((ends(parameters, starts, time) if time > 0 else starts) % (2 * np.pi), axis=1)
        gaps = np.diff(ordered, axis=1, append=ordered[:, :1] + 2 * np.pi).max(axis=1)
        rows.append((1, time, float(gaps.min()), int(check(found).confirmed)))
    return _table("ball", ("proved", "time", "gap", "confirmed"), rows)


def _table(kind: str, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> xr.Dataset:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return xr.Dataset({key: (kind, np.array(column)) for key, column in zip(names, columns, strict=True)})
