"""Largest expansions of tokens, diameters of measures in caps, and the spread of a narrow cloud."""

import dataclasses
import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, Observable, solve
from attnflow.spaces import Sphere
from attnflow.stability import jacobian
from attnflow.tokens import Measure, Tokens, stack, uniform

MODELS = "SA", "USA0"
SPREAD_BETA = 1000.0
STEP = 0.025
"""Of the Runge-Kutta method in caps."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    betas: tuple[float, ...] = (0.5, 1.0, 4.0, 9.0)
    draws: int = 24
    """Random starts on the circle, whose largest expansion is looked at, for every beta."""
    tokens: int = 12
    cap_betas: tuple[float, ...] = (0.0, 1.0, 4.0, 9.0)
    caps: int = 8
    """Random measures in caps for every beta and dimension."""
    until: float = 8.0
    frames: int = 80
    spreads: tuple[float, ...] = (1.0, 4.0)
    """beta v at the start."""
    cloud: int = 40


QUICK = Parameters(betas=(1.0, 4.0), draws=4, cap_betas=(1.0, 9.0), caps=2, until=3.0, frames=12)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Expansions, caps of both dimensions and models, and the cloud."""
    makers: dict[str, Any] = {"expansion": (expansion, parameters)}
    makers |= {f"cap-{d}-{model}": (caps, parameters, d, model) for d in (2, 3) for model in MODELS}
    return study.parts(makers | {"cloud": (cloud, parameters)})


def field(beta: Any, model: str) -> Attention:
    """The attention that moves all tokens; an array of betas has one for every case."""
    each = Along("case", beta, labels=range(len(beta))) if np.ndim(beta) else beta
    return Attention(each, normaliser=model)


def on_circle(angles: Any) -> np.ndarray:
    """Unit vectors."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def steepest(beta: float) -> float:
    """The angle at which two tokens of USA0 separate fastest."""
    return float(np.arccos(theory.landscape.steepest_overlap(beta)))


def widest(beta: float) -> float:
    """The angle from a massless token to two half masses at which its derivative under softmax is largest."""
    return float(np.arccos(max(-1 / (2 * beta), -1.0)))


def expansion(parameters: Parameters) -> xr.Dataset:
    """Top eigenvalues of the symmetric part of the Jacobian, and derivatives at the massless token, by beta."""
    starts = [uniform(Sphere(2), n=parameters.tokens, seed=s) for s in parameters.seeds(range(parameters.draws))]
    rows: dict[str, list[Any]] = {"pair": [], "random": [], "softmax": []}
    for beta in parameters.betas:
        plain = field(beta, "USA0")
        rows["pair"].append(top(jacobian(plain, Tokens(on_circle(np.array([0.0, steepest(beta)]))))))
        rows["random"].append([top(jacobian(plain, start)) for start in starts])
        angles = np.array([0.0, widest(beta), -widest(beta)])
        three = Tokens(on_circle(angles), np.array([0.0, 0.5, 0.5]))
        rows["softmax"].append(float(jacobian(field(beta, "SA"), three)[0, 0]))
    dims: dict[str, Any] = {"pair": "beta", "random": ("beta", "draw"), "softmax": "beta"}
    return xr.Dataset(
        {name: (dims[name], np.array(row)) for name, row in rows.items()}, {"beta": list(parameters.betas)}
    )


def top(matrix: np.ndarray) -> float:
    """The largest rate at which a displacement of tokens of equal masses grows."""
    return float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1])


def measures(parameters: Parameters, d: int) -> list[Tokens]:
    """Iid tokens in caps, the first of equal masses, the others with three heavy atoms."""
    n, rng = 3 * parameters.tokens, parameters.rng(d)
    most = 3.0 if d == 2 else 1.5
    found = []
    for k in range(parameters.caps):
        wide = rng.uniform(0.3, most)
        # points whose distance from the centre is at most half of the diameter
        place = rng.uniform(-wide / 2, wide / 2, n)
        x = np.stack([np.cos(place), np.sin(place)], axis=1)
        if d == 3:
            turn = rng.uniform(0, 2 * np.pi, n)
            x = np.stack([np.cos(place), np.sin(place) * np.cos(turn), np.sin(place) * np.sin(turn)], axis=1)
        masses = np.where(np.arange(n) < 3, rng.exponential(1.0, n) * n / 4, 1.0) if k else np.ones(n)
        found.append(Tokens(x, masses))
    return found


def diameter(mu: Measure) -> Any:
    """The largest angle between two tokens, accurate for small ones."""
    gaps = mu.positions[:, None] - mu.positions[None]
    return 2 * jnp.arcsin(jnp.clip(jnp.sqrt(jnp.max(jnp.sum(gaps**2, axis=-1))) / 2, 0.0, 1.0))


def caps(parameters: Parameters, d: int, model: str) -> xr.Dataset:
    """Diameters of all measures at all frames, (case, time); on the circle also those of two atoms, which come last."""
    kinds = measures(parameters, d)
    if d == 2:
        kinds.append(Tokens(on_circle(np.repeat([-1.2, 1.2], 3 * parameters.tokens // 2))))
    cases = list(itertools.product(parameters.cap_betas, kinds))
    labels = range(len(cases))
    betas = np.array([beta for beta, _ in cases])
    tokens = stack("case", labels, [one for _, one in cases])
    how: Any = {"save": parameters.frames, "method": Fixed(STEP), "keep": ()}
    flow = solve(field(betas, model), tokens, parameters.until, observe={"diameter": Observable(diameter)}, **how)
    found = flow.dataset["diameter"].transpose("case", "time").values
    return xr.Dataset({"diameter": (("case", "time"), found), "beta": ("case", betas)}, {"time": flow.time.values})


def cloud(parameters: Parameters) -> xr.Dataset:
    """beta v of a Gaussian cloud of tokens at the nodes of Gauss and Hermite on the circle, (start, time)."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(parameters.cloud)
    starts = [Tokens(on_circle(nodes * np.sqrt(spread / SPREAD_BETA)), masses) for spread in parameters.spreads]
    tokens = stack("start", range(len(starts)), starts)
    flow = solve(field(SPREAD_BETA, "SA"), tokens, 4.0, save=4, method=Fixed(0.02), keep=("positions",))
    x = flow.positions.transpose("start", "time", "token", ...).values
    found = SPREAD_BETA * np.arctan2(x[..., 1], x[..., 0]) ** 2 @ (masses / masses.sum())
    return xr.Dataset({"spread": (("start", "time"), found)}, {"time": flow.time.values})
