"""Tokens that stand for the uniform measure: moments under general weights, and seeded modes along flows."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, solve
from attnflow.tokens import Tokens, stack

MODELS = "SA", "USA"
POWERS = 2, 3, 4
"""Of the moments E <x, u>^p."""
SEED = 1e-5
"""Size of the displacement that seeds a mode."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    ring: int = 64
    """Tokens on the circle."""
    latitudes: int = 16
    """Of the tokens on S^2, with twice as many longitudes."""
    scales: tuple[float, ...] = (0.5, 1.0, 2.0)
    """Of B, where moments are looked at."""
    directions: int = 6
    """Random u of the moments."""
    betas: tuple[float, ...] = (1.0, 3.0, 6.0)
    """Of growing modes."""
    degrees: tuple[int, ...] = (1, 2, 3)
    """Of the modes on the circle."""
    sphere_models: tuple[str, ...] = MODELS
    """Of growing modes on S^2."""
    until: float = 3.0
    """Of growing modes, on the clock of SA."""
    frames: int = 12
    step: float = 0.025


QUICK = Parameters(
    latitudes=10, scales=(0.5, 1.0), directions=3, betas=(3.0,), sphere_models=("SA",), until=1.0, frames=4, step=0.05
)


class Weights(NamedTuple):
    """B at the scale 1, and V."""

    name: str
    interaction: np.ndarray
    value: np.ndarray


class Turn(NamedTuple):
    """B = beta R and V = (c I + S) R: R turns by `angle` in the first plane, S is `spin` times its generator."""

    name: str
    angle: float
    scale: float
    spin: float


TURNS = (
    Turn("V = I, B turned by 0.7", 0.7, np.cos(0.7), -np.sin(0.7)),
    Turn("V = R, B turned by 0.7", 0.7, 1.0, 0.0),
    Turn("V = I, B turned by π/2", np.pi / 2, 0.0, -1.0),
    Turn("c = 0.6, S = 0.8, B turned by 0.7", 0.7, 0.6, 0.8),
)
"""On S^2 the first and third have the values (c I + S) R, which are not I; names of the circle are used."""
MODES = ((1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
"""Degree and azimuthal order of the modes on S^2."""


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Moments for both dimensions and models, growth for both, models and betas."""
    makers: dict[str, Any] = {
        f"moments-{d}-{model}": (moments, parameters, d, model) for d in (2, 3) for model in MODELS
    }
    makers |= {
        f"growth-{d}-{model}-{beta:g}": (growth, parameters, d, model, beta) for d, model, beta in growing(parameters)
    }
    return study.parts(makers)


def growing(parameters: Parameters) -> list[tuple[int, str, float]]:
    """Dimensions, models and betas of growing modes."""
    models = {2: MODELS, 3: parameters.sphere_models}
    return [(d, model, beta) for d in (2, 3) for model in models[d] for beta in parameters.betas]


def generator(d: int) -> np.ndarray:
    """The rotation generator of the first plane."""
    made = np.zeros((d, d))
    made[1, 0], made[0, 1] = 1.0, -1.0
    return made


def rotation(d: int, angle: float) -> np.ndarray:
    """The rotation by `angle` in the first plane."""
    made = np.eye(d)
    made[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return made


def kept(parameters: Parameters, d: int) -> list[Weights]:
    """Weights that keep the uniform measure."""
    rng = parameters.rng(d, 0)
    some = np.eye(d) + 0.4 * rng.standard_normal((d, d))
    turned = np.linalg.qr(rng.standard_normal((d, d)))[0]
    wide = np.diag([2.0, 2.0, 1.0][:d])
    skew = (0.5 * np.eye(d) + generator(d)) @ np.linalg.inv(wide)
    return [
        Weights("V = R, B = 2 R", 2 * turned, turned),
        Weights("V = B^(-T)", some, np.linalg.inv(some).T),
        Weights("V B^T = 0.5 I + S, [S, B B^T] = 0", wide, skew),
    ]


def moved(d: int) -> list[Weights]:
    """Weights that move the uniform measure."""
    if d == 2:
        one = [Weights("V = I, B a reflection", np.diag([3.0, -3.0]), np.eye(2))]
        return one + [Weights(f"V = I, B = diag({a}, 1)", np.diag([a, 1.0]), np.eye(2)) for a in (2, 4)]
    about_x = np.roll(generator(3), (1, 1), axis=(0, 1))
    wide = np.diag([2.0, 2.0, 1.0])
    return [
        Weights("V B^T = S, [S, B B^T] not 0", wide, about_x @ np.linalg.inv(wide)),
        Weights("V = I, B = diag(3, 2, 1)", np.diag([3.0, 2.0, 1.0]), np.eye(3)),
        Weights("V = I, B turned", 2 * rotation(3, 0.7), np.eye(3)),
    ]


def field(beta: float, interaction: Any, value: Any, model: str) -> Attention:
    """Attention with the logits beta <x, B y> and the values V y, one member for every pair of matrices."""
    query = Along("case", np.swapaxes(interaction, -1, -2), labels=range(len(interaction)))
    return Attention(beta, query=query, value=Along("case", value, labels=range(len(value))), normaliser=model)


def even(parameters: Parameters, d: int) -> Tokens:
    """Nodes and masses of a quadrature for the uniform measure."""
    size = parameters.ring if d == 2 else 2 * parameters.latitudes
    angles = 2 * np.pi * np.arange(size) / size
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if d == 2:
        return Tokens(around)
    c, masses = np.polynomial.legendre.leggauss(parameters.latitudes)
    flat = np.sqrt(1 - c**2)[:, None, None] * around
    up = np.broadcast_to(c[:, None, None], (*flat.shape[:2], 1))
    return Tokens(np.concatenate([flat, up], axis=-1).reshape(-1, 3), np.repeat(masses, size))


def directions(parameters: Parameters, d: int) -> np.ndarray:
    """Random unit vectors u."""
    u = parameters.rng(d, 1).standard_normal((parameters.directions, d))
    return np.asarray(u / np.linalg.norm(u, axis=1, keepdims=True))


def moment_rates(x: np.ndarray, masses: np.ndarray, velocity: np.ndarray, u: np.ndarray) -> np.ndarray:
    """d/dt E <x, u>^p for every u and p, from velocities: (direction, power)."""
    along, speed = x @ u.T, velocity @ u.T
    return np.stack([masses @ (p * along ** (p - 1) * speed) for p in POWERS], axis=-1)


def moments(parameters: Parameters, d: int, model: str) -> xr.Dataset:
    """Rates of the moments of all weights at all scales, (scale, case, direction, power)."""
    tokens, u = even(parameters, d), directions(parameters, d)
    x, masses = np.asarray(tokens.positions), np.asarray(tokens.masses)
    every = kept(parameters, d) + moved(d)
    value = np.array([one.value for one in every])
    rows = []
    for scale in parameters.scales:
        weights = field(1.0, np.array([scale * one.interaction for one in every]), value, model)
        rows.append([moment_rates(x, masses, np.asarray(v), u) for v in np.asarray(weights.velocity(tokens))])
    return xr.Dataset({"rate": (("scale", "case", "direction", "power"), np.array(rows))})


def modes(parameters: Parameters, d: int) -> Sequence[tuple[int, int]]:
    """Degree and azimuthal order of the seeded modes."""
    return [(k, k) for k in parameters.degrees] if d == 2 else MODES


def harmonic(degree: int, order: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x + iy)^m times 1, z or 3z^2 - 1, and its gradient in space, (..., d)."""
    plane, z = x[..., 0] + 1j * x[..., 1], x[..., 2] if x.shape[-1] > 2 else np.zeros_like(x[..., 0])
    height, slope = {0: (np.ones_like(z), np.zeros_like(z)), 1: (z, np.ones_like(z)), 2: (3 * z**2 - 1, 6 * z)}[
        degree - order
    ]
    along = order * plane ** max(order - 1, 0) * height
    return plane**order * height, np.stack([along, 1j * along, plane**order * slope][: x.shape[-1]], axis=-1)


def growth(parameters: Parameters, d: int, model: str, beta: float) -> xr.Dataset:
    """Complex amplitudes of seeded modes, (turn, mode, time): the part that is odd in the seed."""
    tokens, known = even(parameters, d), modes(parameters, d)
    x, masses = np.asarray(tokens.positions), np.asarray(tokens.masses)
    starts = []
    for (degree, order), sign in itertools.product(known, (1, -1)):
        slope = harmonic(degree, order, x)[1].real
        moved = x + sign * SEED * slope
        starts.append(Tokens(moved / np.linalg.norm(moved, axis=1, keepdims=True), masses))
    turned = [rotation(d, one.angle) for one in TURNS]
    values = [
        (one.scale * np.eye(d) + one.spin * generator(d)) @ matrix for one, matrix in zip(TURNS, turned, strict=True)
    ]
    each = len(starts)
    weights = field(beta, np.repeat(turned, each, axis=0), np.repeat(values, each, axis=0), model)
    # on the clock of SA: the models differ by their mean weight
    own, plain = (theory.uniform.growth_rates(beta, d, k=1, model=one) for one in (model, "SA"))
    unit = float(plain / own)
    batch = stack("case", range(len(TURNS) * each), starts * len(TURNS))
    end, method = parameters.until * unit, Fixed(parameters.step * unit)
    flow = solve(weights, batch, end, save=parameters.frames, method=method, keep=("positions",))
    found = flow.positions.transpose("case", "time", "token", ...).values
    found = found.reshape(len(TURNS), len(known), 2, *found.shape[1:])
    read = [np.conj(harmonic(*mode, found[:, k])[0]) @ masses for k, mode in enumerate(known)]
    amplitude = np.stack([(one[:, 0] - one[:, 1]) / 2 for one in read], axis=1)
    dims = ("turn", "mode", "time")
    parts = {"real": (dims, amplitude.real), "imaginary": (dims, amplitude.imag), "unit": unit}
    return xr.Dataset(parts, {"time": flow.time.values})
