"""Two clusters under two heads, spectra under axis heads, and where random tokens end."""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import brentq

from attnflow import in_float64
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import crossing, pair_angle
from attnflow.fields import AbstractField, Attention
from attnflow.flows import Adaptive, Evenly, Fixed, solve
from attnflow.spaces import Sphere
from attnflow.stability import jacobian
from attnflow.tokens import Measure, Tokens, uniform

MODELS = "SA", "USA0"
TOKENS = 24
NEAR = 0.02
"""Angle to the next token at which two tokens count as of one cluster: those at rest are at rounding."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    pairs: tuple[tuple[float, float], ...] = ((2.0, 20.0), (5.0, 20.0), (10.0, 20.0), (10.0, 30.0))
    """Inverse temperatures of two heads."""
    weights: tuple[float, ...] = (0.5, 0.1)
    """Of the flat head."""
    angles: tuple[float, ...] = (1.0, 1.5)
    weak: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    """Further weights of the flat head, for the first pair and the last angle."""
    until: float = 0.01
    rtol: float = 1e-11
    atol: float = 1e-12
    betas: tuple[float, ...] = (0.3, 1.0, 1.5, 2.0, 3.0)
    """At which rates are looked at."""
    dims: tuple[int, ...] = (2, 3)
    beta: float = 3.0
    """Of random starts."""
    usa: tuple[int, float, float] = (160, 200.0, 0.1)
    """Starts, end and step of random starts of USA, whose rates reach e^beta."""
    sa: tuple[int, float, float] = (40, 6000.0, 1.0)
    """The same for SA, whose slowest rate is 1 - tanh(beta)."""


QUICK = Parameters(
    pairs=((10.0, 30.0),),
    weights=(0.1,),
    angles=(1.5,),
    weak=(),
    betas=(1.0, 2.0),
    dims=(2,),
    usa=(96, 40.0, 0.1),
    sa=(6, 2500.0, 1.0),
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Merge times, rates, thresholds, ends of random starts."""
    makers: dict[str, Any] = {f"merging-{model}": (_merging, parameters, model) for model in MODELS}
    makers |= {"rates": (_rates, parameters), "thresholds": (_thresholds, parameters)}
    makers |= {"usa": (_starts, parameters, "USA", 0), "sa": (_starts, parameters, "SA", 1)}
    return study.parts(makers)


def mixed(betas: tuple[float, ...], weights: tuple[float, ...], model: str) -> AbstractField:
    """The weighted sum of heads that differ in beta alone."""
    parts = [weight * Attention(beta, normaliser=model) for beta, weight in zip(betas, weights, strict=True)]
    return sum(parts[1:], parts[0])


def axis_heads(beta: Any, d: int, model: str, other: Any = 1.0) -> AbstractField:
    """Heads that read and write one coordinate each, with weight 1 for the first and `other` for the others."""
    axes = np.eye(d)[:, :, None] * np.eye(d)[:, None, :]
    weights = np.array([1.0, *[other] * (d - 1)])[:, None, None]
    return Attention(beta, query=axes, value=weights * axes, average="sum", normaliser=model)


def cases(parameters: Parameters) -> list[tuple[tuple[float, float], float, float]]:
    """Inverse temperatures, weight of the flat head, angle."""
    found = list(itertools.product(parameters.pairs, parameters.weights, parameters.angles))
    return found + [(parameters.pairs[0], weight, parameters.angles[-1]) for weight in parameters.weak]


def _merging(parameters: Parameters, model: str) -> xr.Dataset:
    """Merge times of pairs of equal masses, with what their errors depend on."""
    method, rows = Adaptive(parameters.rtol, parameters.atol), []
    for betas, weight, angle in cases(parameters):
        field = mixed(betas, (weight, 1 - weight), model)
        tokens = Tokens(np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]))
        close, rate = crossing(field, tokens, method, parameters.until)
        there = solve(field, tokens, close, save=Evenly(15), method=method)
        time = close + np.log(pair_angle(there.positions.values[-1]) / parameters.until) / rate
        slowness = float(np.max(1 / there.dataset["speed"].values))
        steps, floor = there.steps["accepted"], float(np.max(there.dataset["floor"].values))
        # every coordinate is off by rtol + atol per step, going back to the sphere may double it
        off = slowness * (4 * np.sqrt(2) * (parameters.rtol + parameters.atol) * steps + 2 * floor * time)
        rows.append((time, off))
    time, off = np.array(rows).T
    return xr.Dataset({"time": ("case", time), "off": ("case", off)})


def pair(mass: float) -> Tokens:
    """Two clusters at e_1 and -e_1, of two tokens each."""
    return Tokens(
        np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]), np.array([mass, mass, 1 - mass, 1 - mass]) / 2
    )


def cross(d: int) -> Tokens:
    """A cluster at both ends of every axis."""
    return Tokens(np.concatenate([np.eye(d), -np.eye(d)]))


def largest_rate(field: AbstractField, tokens: Tokens) -> float:
    """The largest real part of the spectrum of the linearised flow."""
    return float(np.linalg.eigvals(jacobian(field, tokens)).real.max())


def _rates(parameters: Parameters) -> xr.Dataset:
    """Largest rates at the pair of masses 1/2 and 0.7, and at the cross, for both models."""
    states = [(pair(0.5), 2), (pair(0.7), 2), *((cross(d), d) for d in parameters.dims)]
    rates = [
        [[largest_rate(axis_heads(beta, d, model), tokens) for beta in parameters.betas] for tokens, d in states]
        for model in ("USA", "SA")
    ]
    return xr.Dataset({"rate": (("model", "state", "beta"), np.array(rates))})


def _thresholds(parameters: Parameters) -> xr.Dataset:
    """Where the largest rate changes sign: in beta for USA, in the weight of the other head for SA."""

    def root(rate: Any, low: float, high: float) -> float:
        return float(brentq(rate, low, high, xtol=1e-13, rtol=1e-13))

    try:
        in_beta = [root(lambda b, m=m: largest_rate(axis_heads(b, 2, "USA"), pair(m)), 0.6, 3.0) for m in (0.5, 0.7)]
        in_beta += [
            root(lambda b, d=d: largest_rate(axis_heads(b, d, "USA"), cross(d)), 0.6, 5.0) for d in parameters.dims
        ]
        in_weight = [
            root(lambda w, b=b: largest_rate(axis_heads(b, 2, "SA", w), pair(0.5)), 0.01, 2.0) for b in parameters.betas
        ]
    except ValueError:  # no change of sign: other physics
        in_beta, in_weight = [0.0] * (2 + len(parameters.dims)), [0.0] * len(parameters.betas)
    return xr.Dataset({"in_beta": ("state", np.array(in_beta)), "in_weight": ("beta", np.array(in_weight))})


def _starts(parameters: Parameters, model: str, stream: int) -> xr.Dataset:
    """Where random tokens on the circle are at the end: angles, number of clusters, largest rate, largest speed."""
    draws, end, step = parameters.usa if model == "USA" else parameters.sa
    field = axis_heads(parameters.beta, 2, model)
    seeds = parameters.seeds(range(1000 * stream, 1000 * stream + draws))
    flow = solve(field, uniform(Sphere(2), n=TOKENS, seed=seeds), end, save=2, method=Fixed(step), keep=["positions"])
    x = flow.positions.values
    last = np.moveaxis(x, flow.positions.dims.index("time"), 0)[-1]
    angles = np.sort(np.arctan2(last[..., 1], last[..., 0]), axis=-1)
    gaps = np.diff(angles, axis=-1, append=angles[..., :1] + 2 * np.pi)
    count = np.maximum(np.sum(gaps > NEAR, axis=-1), 1)

    def speeds(theta: Any) -> Any:
        here = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)
        turn = jnp.stack([-jnp.sin(theta), jnp.cos(theta)], axis=-1)
        return jnp.sum(field.velocity(Measure(here)) * turn, axis=-1)

    found = in_float64(jax.jit(jax.vmap(lambda theta: (speeds(theta), jax.jacfwd(speeds)(theta)))))
    speed, matrices = (np.asarray(one) for one in found(angles))
    rate = np.linalg.eigvals(matrices).real.max(axis=-1)
    return xr.Dataset(
        {
            "angle": (("start", "token"), angles),
            "count": ("start", count.astype(float)),
            "rate": ("start", rate),
            "speed": ("start", np.abs(speed).max(axis=-1)),
        }
    )
