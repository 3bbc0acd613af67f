"""Tokens under six placements of the layer norm, followed with a step and with half the step."""

import dataclasses
import itertools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import cloud
from attnflow.fields import AbstractField, Attention, Mix, Ngpt, Peri, Pre, Scaled
from attnflow.flows import Fixed, advance
from attnflow.spaces import Euclidean, Sphere
from attnflow.tokens import Tokens, orthonormal

NAMES = {
    "post": "Post-LN",
    "pre": "Pre-LN",
    "peri": "Peri-LN",
    "ngpt": "nGPT",
    "mix": "Mix-LN",
    "ln-scaling": "LN-scaling",
}
STARTS = ("orthonormal", "cone")
SPREAD = 0.4
"""Of the tokens in a cone: their centre plus a Gaussian vector of this spread, normalised; overlaps are about 0.4.

Iid tokens of the whole sphere may linger in two clusters beyond any time of the experiment (one start of eight did).
"""
STEPS = 16
"""Steps from one frame to the next."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    placements: tuple[str, ...] = tuple(NAMES)
    n: int = 8
    beta: float = 2.0
    alpha: float = 0.5
    """Of nGPT."""
    switch: float = 1.0
    """Of Mix-LN: the time at which it goes over from post to pre."""
    last: int = 14
    """Frames are at 1/8, 1/4, ..., 1, sqrt(2), 2, ..., 2^last where the collapse is algebraic."""
    gap: float = 1e-10
    """Where an exponential collapse is left, well above rounding."""


QUICK = Parameters(last=8)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Gap and radius at every frame, per placement and start."""
    return study.parts({placement: (_follow, parameters, placement) for placement in parameters.placements})


def field(parameters: Parameters, placement: str) -> AbstractField:
    """The placement around plain softmax attention."""
    inner = Attention(parameters.beta)
    made: dict[str, AbstractField] = {
        "post": inner,
        "pre": Pre(inner),
        "peri": Peri(inner),
        "ngpt": Ngpt(inner, parameters.alpha),
        "mix": Mix(inner, parameters.switch),
        "ln-scaling": Scaled(inner),
    }
    return made[placement]


def starts(parameters: Parameters, placement: str) -> Tokens:
    """Orthonormal tokens, and iid ones in a cone, side by side."""
    n, flat = parameters.n, decay(parameters, placement)[0] == "algebraic"
    positions = [orthonormal(Sphere(n), n=n).positions, cloud(parameters.rng(0), n, n, SPREAD).positions]
    return Tokens(np.stack(positions), space=Euclidean(n) if flat else Sphere(n), dims=("start",))


def decay(parameters: Parameters, placement: str) -> tuple[str, float]:
    """Kind and exponent of the collapse, from the theory."""
    return theory.uniform.norm_decay(placement, alpha=parameters.alpha)  # type: ignore[arg-type]


def times(parameters: Parameters, placement: str) -> np.ndarray:
    """Frames: in proportion where radii grow, evenly where they do not; the switch is one of them."""
    kind, rate = decay(parameters, placement)
    if kind == "exponential":
        span = -np.log(parameters.gap) / rate
        return np.linspace(0.0, span, int(np.ceil(2 * span)) + 1)
    frames = np.concatenate([[0.0], np.geomspace(0.125, 1.0, 4), 2.0 ** (np.arange(1, 2 * parameters.last + 1) / 2)])
    return np.unique(np.append(frames, parameters.switch)) if placement == "mix" else frames


def _follow(parameters: Parameters, placement: str) -> xr.Dataset:
    frames, made = times(parameters, placement), field(parameters, placement)
    coarse = fine = starts(parameters, placement)
    rows = [(gaps(fine), gaps(coarse), radii(fine))]
    for begin, end in itertools.pairwise(frames):
        coarse, middle = _leg(made, coarse, begin, end), (begin + end) / 2
        fine = _leg(made, _leg(made, fine, begin, middle), middle, end)
        rows.append((gaps(fine), gaps(coarse), radii(fine)))
    columns = zip(("gap", "coarse", "radius"), zip(*rows, strict=True), strict=True)
    found = {name: (("time", "start"), np.array(column)) for name, column in columns}
    return xr.Dataset(found, {"time": frames, "start": list(STARTS)})


def _leg(made: AbstractField, tokens: Tokens, begin: float, end: float) -> Tokens:
    """Equal steps, as many for every leg: one compiled program."""
    return advance(made, tokens, float(begin), float(end), Fixed((end - begin) / STEPS))


def gaps(tokens: Tokens) -> np.ndarray:
    """Mean of 1 - <theta_i, theta_j> over pairs, without cancellation."""
    x = np.asarray(tokens.positions)
    theta = x / np.linalg.norm(x, axis=-1, keepdims=True)
    squares = np.sum((theta[..., :, None, :] - theta[..., None, :, :]) ** 2, axis=-1)
    n = x.shape[-2]
    return np.asarray(np.sum(squares, axis=(-1, -2)) / (2 * n * (n - 1)))


def radii(tokens: Tokens) -> np.ndarray:
    """Mean radius."""
    return np.asarray(np.mean(np.linalg.norm(np.asarray(tokens.positions), axis=-1), axis=-1))
