"""Networks of many layers, Runge-Kutta steps, and networks with independent layers."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow import in_float64
from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import AbstractField, Attention, Perceptron, Random
from attnflow.flows import Fixed, Layers, ProjectRenormalise, Renormalise, advance
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
    networks: int = 400
    """With independent layers, for each number of layers."""
    scale: float = 0.5
    """Standard deviation of the entries of their weights."""


QUICK = Parameters(layers=(50, 100, 200, 400), steps=(8, 16, 32, 64), random_layers=(25, 50, 100, 200), networks=200)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Errors against the ODE for every number of layers, the first terms of their expansions, and fluctuations."""
    study.progress("the ODEs and their variational equations", 0.0)
    found = {"limit": study.part("limit", functools.partial(_limits, parameters))}
    found["layers"] = study.part("layers", functools.partial(_layers, parameters, found["limit"], study))
    found["steps"] = study.part("steps", functools.partial(_steps, parameters, found["limit"], study))
    found["random"] = study.part("random", functools.partial(_random, parameters, found["limit"], study))
    return found


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
    """Root of the sum of squares of x_L - x at every frame; one compiled program serves all L and frames."""
    made, rows = fields(parameters), []
    for k, name in enumerate(NAMES):
        study.progress(f"layers {name}", 0.1 + 0.4 * k / len(NAMES))
        which = "network" if name == NETWORK else "attention"
        field, tokens = made[which]
        leg = in_float64(jax.jit(functools.partial(_leg, field, tokens, parameters.until / FRAMES, RULES.get(name))))
        ode = limit[f"x_{which}"].values
        rows.append([np.linalg.norm(_path(leg, tokens, parameters, L) - ode, axis=(1, 2)) for L in parameters.layers])
    return xr.Dataset(
        {"error": (("name", "count", "time"), np.array(rows))},
        {"name": list(NAMES), "count": list(parameters.layers), "time": times(parameters)},
    )


def _leg(field: AbstractField, tokens: Tokens, span: float, rule: Any, x: Any, begin: Any, step: Any) -> Any:
    method = Layers(step) if rule is None else Layers(step, rule())
    return advance(field, tokens.moved(x), begin, begin + span, method).positions


def _path(leg: Any, tokens: Tokens, parameters: Parameters, count: int) -> np.ndarray:
    path = [np.asarray(tokens.positions)]
    for begin in times(parameters)[:-1]:
        path.append(np.asarray(leg(path[-1], begin, parameters.until / count)))
    return np.array(path)


def _steps(parameters: Parameters, limit: xr.Dataset, study: Study) -> xr.Dataset:
    """Root of the sum of squares of what RK4 with so many steps misses at T."""
    names, rows = ("attention", "network"), []
    for k, name in enumerate(names):
        study.progress(f"RK4, {name}", 0.5 + 0.1 * k)
        end = in_float64(jax.jit(functools.partial(_end, *fields(parameters)[name], parameters.until)))
        ends = np.array([end(parameters.until / count) for count in parameters.steps])
        rows.append(np.linalg.norm(ends - limit[f"x_{name}"].values[-1], axis=(1, 2)))
    return xr.Dataset(
        {"error": (("name", "count"), np.array(rows))}, {"name": list(names), "count": list(parameters.steps)}
    )


def _end(field: AbstractField, tokens: Tokens, until: float, step: Any) -> Any:
    return advance(field, tokens, 0.0, until, Fixed(step)).positions


def _random(parameters: Parameters, limit: xr.Dataset, study: Study) -> xr.Dataset:
    """Per network with independent layers the sum of squares of x_L - x(T); every L has networks of its own."""
    w, many, squares = weights(parameters), parameters.networks, []
    _, tokens = fields(parameters)["network"]
    for k, count in enumerate(parameters.random_layers):
        study.progress(f"{many} networks of {count} independent layers", 0.7 + 0.3 * k / len(parameters.random_layers))
        step = parameters.until / count
        own = Along("network", np.array(parameters.seeds(range(k * many, (k + 1) * many))))
        outer = Random((parameters.d, parameters.d), seed=own, step=step, scale=parameters.scale, mean=w["W"])
        end = advance(Perceptron(w["A"], w["b"], outer, "tanh"), tokens, 0.0, parameters.until, Layers(step))
        squares.append(np.sum((np.asarray(end.positions) - limit["x_mean"].values) ** 2, axis=(1, 2)))
    return xr.Dataset({"square": (("count", "network"), np.array(squares))}, {"count": list(parameters.random_layers)})
