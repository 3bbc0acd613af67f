"""Networks of many layers, Runge-Kutta steps, and networks with independent layers."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import AbstractField, Attention, Perceptron, Random
from attnflow.flows import Fixed, Layers, ProjectRenormalise, Renormalise, solve
from attnflow.spaces import Euclidean, Sphere
from attnflow.tokens import Tokens, uniform
from attnflow_gallery.euler_limit.reference import limits

RULES = {"N(x + hA)": Renormalise, "N(x + hPA)": ProjectRenormalise}
NETWORK = "x + hf"
NAMES = (*RULES, NETWORK)
FRAMES = 25
"""Times at which a network is compared with its ODE, evenly up to T."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    n: int = 12
    d: int = 4
    beta: float = 3.0
    until: float = 2.0
    layers: tuple[int, ...] = (25, 50, 100, 200, 400, 800, 1600)
    """Numbers of layers; each must be twice the one before, and a multiple of FRAMES."""
    steps: tuple[int, ...] = (8, 16, 32, 64, 128)
    """Numbers of Runge-Kutta steps; each must be twice the one before."""
    random_layers: tuple[int, ...] = (50, 100, 200, 400, 800)
    """Of networks with independent layers."""
    networks: int = 1600
    """With independent layers, for each number of layers."""
    scale: float = 0.5
    """Standard deviation of the entries of their weights."""


QUICK = Parameters(layers=(50, 100, 200, 400), steps=(8, 16, 32, 64), random_layers=(25, 50, 100, 200), networks=200)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Errors against the ODE for every number of layers, the first terms of their expansions, and fluctuations."""
    limit = study.parts({"limit": (_limits, parameters)})
    makers = {"layers": _layers, "steps": _steps, "random": _random}
    return limit | study.parts({name: (make, parameters, limit["limit"], study) for name, make in makers.items()})


def weights(parameters: Parameters) -> dict[str, np.ndarray]:
    """Of the residual network W tanh((A + B sin t) x + b)."""
    rng, d = parameters.rng(0, 1), parameters.d
    return {name: rng.standard_normal((d, d)) / np.sqrt(d) for name in "ABW"} | {"b": rng.standard_normal(d)}


def start(parameters: Parameters) -> Tokens:
    """Where all networks start: iid tokens on the sphere."""
    return uniform(Sphere(parameters.d), n=parameters.n, seed=parameters.seed(0))


def times(parameters: Parameters) -> np.ndarray:
    """At which networks are compared with their ODE."""
    return parameters.until * np.arange(FRAMES + 1) / FRAMES


def _limits(parameters: Parameters) -> xr.Dataset:
    x = np.asarray(start(parameters).positions)
    return limits(x, weights(parameters), parameters.beta, parameters.scale, times(parameters), tuple(RULES), NETWORK)


def fields(parameters: Parameters) -> dict[str, tuple[AbstractField, Tokens]]:
    """The two simulated fields with their tokens."""
    tokens, w = start(parameters), weights(parameters)
    network = Perceptron(lambda t: jnp.asarray(w["A"]) + jnp.asarray(w["B"]) * depth(t), w["b"], w["W"], "tanh")
    free = Tokens(tokens.positions, space=Euclidean(parameters.d))
    return {"attention": (Attention(parameters.beta), tokens), "network": (network, free)}


def depth(t: Any) -> Any:
    """How the weights of the residual network depend on the depth."""
    return jnp.sin(t)


def _layers(parameters: Parameters, limit: xr.Dataset, study: Study) -> xr.Dataset:
    """Root of the sum of squares of x_L - x at every frame."""
    made, rows = fields(parameters), []
    for name in study.along(NAMES):
        which, rule = ("network", ()) if name == NETWORK else ("attention", (RULES[name](),))
        field, tokens = made[which]
        errors = []
        for k, count in enumerate(parameters.layers):
            study.progress(f"{count} layers {name}", k / len(parameters.layers))
            path = _path(field, tokens, parameters.until, Layers(parameters.until / count, *rule), FRAMES)
            errors.append(np.linalg.norm(path - limit[f"x_{which}"].values, axis=(1, 2)))
        rows.append(errors)
    return xr.Dataset(
        {"error": (("name", "count", "time"), np.array(rows))},
        {"name": list(NAMES), "count": list(parameters.layers), "time": times(parameters)},
    )


def _path(field: AbstractField, tokens: Tokens, until: float, method: Any, frames: int = 1) -> np.ndarray:
    """Positions (..., frame, token, dim)."""
    return np.asarray(solve(field, tokens, until, method=method, save=frames, keep=("positions",)).positions.values)


def _steps(parameters: Parameters, limit: xr.Dataset, study: Study) -> xr.Dataset:
    """Root of the sum of squares of what RK4 with so many steps misses at T."""
    made, rows = fields(parameters), {}
    for name, (field, tokens) in study.along(made.items()):
        study.progress(f"RK4, {name}", 0.0)
        methods = [Fixed(parameters.until / count) for count in parameters.steps]
        ends = np.array([_path(field, tokens, parameters.until, method)[-1] for method in methods])
        rows[name] = np.linalg.norm(ends - limit[f"x_{name}"].values[-1], axis=(1, 2))
    errors = np.array(list(rows.values()))
    return xr.Dataset({"error": (("name", "count"), errors)}, {"name": list(rows), "count": list(parameters.steps)})


def _random(parameters: Parameters, limit: xr.Dataset, study: Study) -> xr.Dataset:
    """Per network with independent layers the sum of squares of x_L - x(T); every L has networks of its own."""
    w, many, squares = weights(parameters), parameters.networks, []
    _, tokens = fields(parameters)["network"]
    for k, count in enumerate(parameters.random_layers):
        study.progress(f"{many} networks of {count} independent layers", k / len(parameters.random_layers))
        step = parameters.until / count
        own = Along("network", np.array(parameters.seeds(range(k * many, (k + 1) * many))))
        outer = Random((parameters.d, parameters.d), seed=own, step=step, scale=parameters.scale, mean=w["W"])
        end = _path(Perceptron(w["A"], w["b"], outer, "tanh"), tokens, parameters.until, Layers(step))[:, -1]
        squares.append(np.sum((end - limit["x_mean"].values) ** 2, axis=(1, 2)))
    return xr.Dataset({"square": (("count", "network"), np.array(squares))}, {"count": list(parameters.random_layers)})
