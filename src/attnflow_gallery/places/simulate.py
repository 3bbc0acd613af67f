"""Tokens with places: words with additive places, modes and ends of rotary attention on the circle."""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow import in_float64
from attnflow.experiments import Salted, Study
from attnflow.fields import AbstractField, Attention, Rotary
from attnflow.flows import At, Fixed, solve
from attnflow.spaces import Sphere
from attnflow.tokens import Measure, Tokens, uniform

GRID = 12, 48
"""Places and angles; the modes of low degree are those of the uniform measure, up to I_40(beta)."""
SMALL = 1e-6
"""Amplitude of modes."""
SPAN = 0.5
"""How long modes are followed."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    words: int = 3
    copies: int = 4
    sizes: tuple[float, ...] = (0.5, 1.0, 2.0)
    """Of additive places."""
    word_beta: float = 4.0
    times: tuple[float, ...] = (1.0, 3.0, 6.0)
    betas: tuple[float, ...] = (1.0, 5.0)
    """Of modes."""
    degrees: tuple[int, ...] = (1, 2, 3, 4)
    orders: tuple[int, ...] = (1, 2, 3)
    """Of deviations from consensus."""
    beta: float = 3.0
    """Of random starts."""
    tokens: int = 64
    starts: int = 128
    until: float = 120.0


QUICK = Parameters(sizes=(1.0,), betas=(3.0,), degrees=(1, 3), orders=(1,), tokens=24, starts=64, until=80.0)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Overlaps, factors of modes, ends of random starts."""
    makers: dict[str, Any] = {
        "words": (_words, parameters),
        "modes": (_modes, parameters),
        "consensus": (_consensus, parameters),
        "rotary": (_ends, parameters),
    }
    return study.parts(makers)


def attention(beta: float, rotary: bool) -> AbstractField:
    """Softmax attention, with queries and keys turned by the places or not."""
    return Attention(beta, encoding=Rotary() if rotary else None)


def word_tokens(words: int, copies: int, size: float) -> Tokens:
    """Unit vectors along word + size place, all words and places orthonormal."""
    n = words * copies
    x = np.concatenate([np.repeat(np.eye(words), copies, axis=0), size * np.eye(n)], axis=1)
    return Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))


def _words(parameters: Parameters) -> xr.Dataset:
    """Overlaps of two tokens of the first word, and of tokens of the first two words, with halved steps beside them."""
    field, copies, rows = attention(parameters.word_beta, False), parameters.copies, []
    for size, step in itertools.product(parameters.sizes, (0.02, 0.01)):
        tokens = word_tokens(parameters.words, copies, size)
        flow = solve(field, tokens, max(parameters.times), save=At(list(parameters.times)), method=Fixed(step))
        x = flow.positions.values[-len(parameters.times) :]
        rows.append([np.sum(x[:, 0] * x[:, k], axis=-1) for k in (1, copies)])
    shape = len(parameters.sizes), 2, 2, len(parameters.times)
    return xr.Dataset({"overlap": (("size", "step", "kind", "time"), np.reshape(rows, shape))})


def on_circle(angles: np.ndarray, places: np.ndarray) -> Tokens:
    """Tokens at these angles with these places, both of one shape."""
    flat = np.ravel(angles)
    return Tokens(np.stack([np.cos(flat), np.sin(flat)], axis=1), place=np.ravel(places))


def grown(beta: float, angles: np.ndarray, places: np.ndarray, mode: np.ndarray) -> float:
    """Log of the factor by which displacements along a mode grow in the time SPAN, over SPAN."""
    tokens = on_circle(angles + SMALL * mode, places)
    flow = solve(attention(beta, True), tokens, SPAN, save=1, method=Fixed(SPAN / 16), keep=["positions"])
    x, y = flow.positions.values[-1].T
    off = np.angle((x + 1j * y) * np.exp(-1j * np.ravel(angles)))
    return float(np.log(np.sum(off * np.ravel(mode)) / np.sum(np.ravel(mode) ** 2) / SMALL) / SPAN)


def _modes(parameters: Parameters) -> xr.Dataset:
    """Rates of the modes cos(k theta + (k-1) p) on a grid of places and angles."""
    place, angle = np.meshgrid(*(2 * np.pi * np.arange(count) / count for count in GRID), indexing="ij")
    every = itertools.product(parameters.betas, parameters.degrees)
    rates = [grown(beta, angle, place, np.cos(k * angle + (k - 1) * place)) for beta, k in every]
    return xr.Dataset({"rate": (("beta", "degree"), np.reshape(rates, (len(parameters.betas), -1)))})


def _consensus(parameters: Parameters) -> xr.Dataset:
    """Rates of deviations cos(q p) from consensus: as many tokens as the grid has, places go round once."""
    place = 2 * np.pi * np.arange(GRID[0] * GRID[1]) / (GRID[0] * GRID[1])
    every = itertools.product(parameters.betas, parameters.orders)
    rates = [grown(beta, 0 * place, place, np.cos(q * place)) for beta, q in every]
    return xr.Dataset({"rate": (("beta", "order"), np.reshape(rates, (len(parameters.betas), -1)))})


def _ends(parameters: Parameters) -> xr.Dataset:
    """Random tokens whose places go round once: order parameter, largest speed and second largest rate at the end."""
    n = parameters.tokens
    seeds = parameters.seeds(range(parameters.starts))
    angles = np.array([np.arctan2(*np.asarray(uniform(Sphere(2), n=n, seed=seed).positions).T[::-1]) for seed in seeds])
    place, field = 2 * np.pi * np.arange(n) / n, attention(parameters.beta, True)
    tokens = Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=-1), place=place, dims=("start",))
    flow = solve(field, tokens, parameters.until, save=1, method=Fixed(0.2), keep=["positions"])
    x = flow.positions.isel(time=-1).values
    ends = np.arctan2(x[..., 1], x[..., 0])

    def speeds(theta: Any) -> Any:
        here = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)
        turn = jnp.stack([-jnp.sin(theta), jnp.cos(theta)], axis=-1)
        return jnp.sum(field.velocity(Measure(here, place=place)) * turn, axis=-1)

    found = in_float64(jax.jit(jax.vmap(lambda theta: (speeds(theta), jax.jacfwd(speeds)(theta)))))
    speed, matrices = (np.asarray(one) for one in found(ends))
    rates = np.sort(np.linalg.eigvals(matrices).real, axis=-1)[..., -2]
    return xr.Dataset(
        {
            "angle": (("start", "token"), ends),
            "order": ("start", np.abs(np.exp(1j * ends).mean(axis=-1))),
            "speed": ("start", np.abs(speed).max(axis=-1)),
            "rate": ("start", rates),
        }
    )
