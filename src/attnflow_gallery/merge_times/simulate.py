"""Weighted clusters on their way to consensus: pairs, triples, symmetric triples with an offset, four clusters."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import EPS
from attnflow.fields import Attention
from attnflow.flows import LongFlow, LongTime, solve_long
from attnflow.tokens import Tokens

MODELS = ("SA", "USA0", "USA")
BOTH = ("SA", "USA0")
LARGEST_CLOCK = 700.0
"""Beyond this beta the clock USA, e^beta faster than USA0, leaves the range of floats."""
TRIPLE, TRIPLE_MASSES = 0.8, (0.3, 0.3, 0.4)
"""Angle of the nearer pair of a triple; its clusters have equal masses, so that they move alike."""
SYMMETRIC, SYMMETRIC_MASSES = 1.0, (0.3, 0.4, 0.3)
FOUR, FOUR_MASSES, FOUR_BETA = (0.0, 0.9, 2.3, 3.9), (0.1, 0.2, 0.3, 0.4), 12.0


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    betas: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10000.0)
    angles: tuple[float, ...] = (0.3, 1.0, 2.0, 2.8)
    masses: tuple[float, ...] = (0.5, 0.7, 0.95)
    """Mass of the first of two clusters."""
    dims: tuple[int, ...] = (2, 8)
    chord: float = 1e-3
    """Where two clusters count as one."""
    tol: float = 1e-8
    triple_betas: tuple[float, ...] = (25.0, 100.0, 1000.0, 10000.0)
    gaps: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0)
    """beta (u_3 - u_1): how much farther the third cluster is."""
    symmetric_betas: tuple[float, ...] = (1.0, 4.0, 8.0, 12.0, 16.0, 20.0)
    offsets: tuple[tuple[float, float], ...] = ((1.0, 6e-4), (4.0, 5e-5), (8.0, 9e-7), (12.0, 1.3e-8))
    """beta, and the largest offset of the middle cluster of a symmetric triple."""
    offset_draws: int = 6
    offset_tol: float = 1e-11


QUICK = Parameters(
    betas=(1.0, 30.0, 10000.0),
    angles=(1.0, 2.8),
    masses=(0.5, 0.7),
    dims=(3,),
    triple_betas=(25.0, 1000.0),
    gaps=(2.0, 6.0, 12.0),
    symmetric_betas=(4.0, 16.0),
    offsets=((4.0, 5e-5), (12.0, 1.3e-8)),
    offset_draws=2,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Merges of pairs, of triples, of symmetric triples, of triples with an offset, and of four clusters."""
    makers: dict[str, tuple[Any, ...]] = {}
    for model, dim in itertools.product(MODELS, parameters.dims):
        makers[f"pair-{model}-S{dim - 1}"] = _table, "pair", _pairs, parameters, model, dim
    kinds = {"triple": _triples, "symmetric": _symmetric, "offset": _offsets, "four": _four}
    for model, (kind, rows) in itertools.product(BOTH, kinds.items()):
        makers[f"{kind}-{model}"] = _table, kind, rows, parameters, model
    found = study.parts(makers).values()
    return {kind: xr.concat([one for one in found if kind in one.dims], dim=kind) for kind in ("pair", *kinds)}


def _table(kind: str, make: Callable[..., list[dict[str, Any]]], *arguments: Any) -> xr.Dataset:
    rows = make(*arguments)
    return xr.Dataset({name: (kind, np.array([row[name] for row in rows])) for name in rows[0]})


def follow(model: str, beta: float, positions: np.ndarray, masses: Any, tol: float, chord: float) -> LongFlow:
    """Clusters on their way to consensus."""
    field = Attention(beta, normaliser=model)
    return solve_long(field, Tokens(positions, masses), math.inf, method=LongTime(tol, angle=chord))


def _off(flow: LongFlow, tol: float) -> np.ndarray:
    """Error of the log times: the errors of the steps, and tol for a step that ends just after the meeting.

    The bound on what merging does to later forces is taken out: the formulas are of merged clusters too.
    """
    return (flow.merges["error"] - flow.merges["bound"]).values + tol


def _pairs(parameters: Parameters, model: str, dim: int) -> list[dict[str, Any]]:
    """Two clusters on random great circles."""
    rng = parameters.rng(0, dim)
    rows = []
    for beta, angle, mass in itertools.product(parameters.betas, parameters.angles, parameters.masses):
        if model == "USA" and beta > LARGEST_CLOCK:
            continue
        circle = np.linalg.qr(rng.standard_normal((dim, 2)))[0].T
        start = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]) @ circle
        flow = follow(model, beta, start, [mass, 1 - mass], parameters.tol, parameters.chord)
        point, steps = flow.merges["point"].values[0], int(flow.merges["evaluations"][0]) / 15
        # a step moves a coordinate by tol/(1 + beta) at most. Along the circle the meeting point moves by no more than
        # a cluster does (its derivatives are in [0, 1] and add to 1)
        steps_off = steps * np.sqrt(dim) * (parameters.tol / (1 + beta) + 4 * EPS)
        # from the chord c on, SA is taken at the mass mean: off by 2 mu beta c^2/2 in the share, mu = m1 m2 |m1 - m2|,
        # and the mean of chords instead of angles by mu c^3/6
        mu = mass * (1 - mass) * abs(2 * mass - 1)
        rows.append({"model": model, "dim": dim, "beta": beta, "angle": angle, "mass": mass})
        rows[-1] |= {
            "log_time": float(flow.merges["log_time"][0]),
            "log_time_tolerance": float(_off(flow, parameters.tol)[0]),
            "way": float(np.arctan2(circle[1] @ point, circle[0] @ point)),
            "way_tolerance": steps_off + mu * (2 * beta + 1) / 6 * parameters.chord**3,
        }
    return rows


def _triples(parameters: Parameters, model: str) -> list[dict[str, Any]]:
    """The third cluster stands beside the second, so much farther that beta (u_3 - u_1) is a gap."""
    rows = []
    for beta, gap in itertools.product(parameters.triple_betas, parameters.gaps):
        far = distance_of_third(beta, gap)
        angles = np.array([0.0, TRIPLE, TRIPLE + far])
        rows.append({"model": model, "beta": beta, "gap": gap})
        rows[-1] |= _three(model, beta, angles, TRIPLE_MASSES, parameters.tol, math.sqrt(parameters.tol) / beta)
    return rows


def distance_of_third(beta: float, gap: float) -> float:
    """The angle at which beta (u_3 - u_1) is `gap`."""
    return math.acos(math.cos(TRIPLE) - gap / beta)


def _symmetric(parameters: Parameters, model: str) -> list[dict[str, Any]]:
    angles, rows = np.array([-SYMMETRIC, 0.0, SYMMETRIC]), []
    for beta in parameters.symmetric_betas:
        found = _three(model, beta, angles, SYMMETRIC_MASSES, parameters.tol, parameters.chord)
        rows.append({"model": model, "beta": beta} | found)
    return rows


def _offsets(parameters: Parameters, model: str) -> list[dict[str, Any]]:
    """The middle cluster is off by a random amount, of either sign, between half the largest offset and all of it."""
    rows, rng = [], parameters.rng(1)
    for beta, largest in parameters.offsets:
        share, sign = rng.uniform(0.5, 1.0, parameters.offset_draws), rng.choice([-1.0, 1.0], parameters.offset_draws)
        for size in largest * share * sign:
            angles = np.array([-SYMMETRIC, size, SYMMETRIC])
            found = _three(model, beta, angles, SYMMETRIC_MASSES, parameters.offset_tol, parameters.chord)
            rows.append({"model": model, "beta": beta, "size": size} | found)
    return rows


def _three(model: str, beta: float, angles: np.ndarray, masses: Any, tol: float, chord: float) -> dict[str, Any]:
    """Three clusters on the circle: both merges, and the pair that the first one leaves."""
    flow = follow(model, beta, np.stack([np.sin(angles), np.cos(angles)], axis=1), masses, tol, chord)
    merges, off = flow.merges, _off(flow, tol)
    after = flow.positions.values[np.searchsorted(flow.log_time.values, merges["log_time"].values[0])]
    last = next(k for k in range(3) if k not in (merges["first"][0], merges["second"][0]))
    merged = merges["point"].values[0]
    left = float(2 * np.arctan2(np.linalg.norm(merged - after[last]), np.linalg.norm(merged + after[last])))
    found: dict[str, Any] = {
        "left": left,
        "left_mass": masses[last],
        "chord": chord,
        "steps": int(merges["evaluations"][0]) / 15,
    }
    for k, name in enumerate(("first", "second")):
        found |= {name: float(merges["log_time"][k]), f"{name}_tolerance": off[k]}
    return found


def _four(parameters: Parameters, model: str) -> list[dict[str, Any]]:
    circle = np.stack([np.cos(FOUR), np.sin(FOUR)], axis=1)
    flow = follow(model, FOUR_BETA, circle, FOUR_MASSES, parameters.tol, 1e-3 / math.sqrt(FOUR_BETA))
    columns = zip(np.exp(flow.merges["log_time"].values), _off(flow, parameters.tol), strict=True)
    return [{"model": model, "merge": k + 1, "time": t, "tolerance": off} for k, (t, off) in enumerate(columns)]
