"""Tokens and densities on the circle under random layers: same and other heads, infinite temperature, uniform start."""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.flows import Layers, advance, solve
from attnflow.random_layers import PoissonKernel, conditional_density, poisson_path, random_attention
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

BLOCK = 32
"""Head streams that are compared with one another."""
NUDGE = 1e-4
"""Size of the waves on the density by which the linearised layers are found."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated. Times are canonical, tau = eta^2 L/H with H = 1; h = eta^2 is the time of a layer."""

    order: float = 0.25
    """u_0 = |w_0|^2 of the Poisson kernel from which tokens are drawn, and where infinite temperature starts."""
    b: float = 2.0
    """The logit scale of tokens and density."""
    sizes: tuple[int, ...] = (64, 128, 256)
    heads: int = 4096
    """Head streams; each has its own tokens. Other heads are those of the same block of `BLOCK` streams."""
    tau: float = 0.5
    h: float = 0.05
    labels: int = 64
    waves: int = 6
    """Waves of the start that the linearised layers carry."""
    paths: int = 8
    """Of Poisson kernels whose points are carried along."""
    points: int = 128
    replicas: int = 40_000
    """Of the order parameter."""
    order_times: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    boost: float = 0.02
    """Time of one boost."""
    leave_steps: tuple[float, ...] = (0.02, 0.01, 0.005)
    leave_tau: float = 0.08
    """Layers are compared with the Poisson kernel after this time and after twice of it."""
    leave_heads: int = 24_000
    uniform_b: tuple[float, ...] = (1.0, 4.0)
    uniform_tau: float = 0.04
    uniform_heads: int = 8000
    uniform_h: float = 0.004
    long_tau: float = 4.0
    """How long a uniform start is followed."""
    long_heads: int = 32
    dims: tuple[int, ...] = (2, 8)
    mean_times: tuple[float, ...] = (0.4, 1.0, 2.0)
    mean_h: float = 0.04
    tokens: int = 8000
    """Single tokens, each with its own heads."""


QUICK = Parameters(
    heads=512,
    sizes=(64, 256),
    waves=4,
    labels=32,
    paths=4,
    points=64,
    replicas=8000,
    order_times=(1.0,),
    leave_steps=(0.02, 0.01),
    leave_heads=4000,
    uniform_b=(4.0,),
    uniform_heads=3000,
    uniform_h=0.008,
    long_heads=8,
    long_tau=2.0,
    dims=(2,),
    mean_times=(1.0,),
    tokens=4000,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """All parts; they do not depend on one another."""
    return study.parts(
        {name: (make, parameters) for name, make in (("density", density), ("kernel", kernel), ("order", order))}
        | {f"tokens-{n}": (tokens, n, parameters) for n in parameters.sizes}
        | {f"leave-{h:g}": (leave, h, parameters) for h in parameters.leave_steps}
        | {f"uniform-{b:g}": (uniform, b, parameters) for b in parameters.uniform_b}
        | {"long": (long, parameters)}
        | {f"single-{d}": (single, d, parameters) for d in parameters.dims}
    )


def streams(parameters: Parameters, first: int, count: int) -> Along:
    """Seeds of head streams."""
    return Along("seed", parameters.seeds(range(first, first + count)))


def token_streams(parameters: Parameters) -> Along:
    """The head streams of the tokens: those of the density."""
    return streams(parameters, 0, parameters.heads)


def ends(tau: float, h: float) -> tuple[float, float]:
    """(step, until) for `Layers`: eta = sqrt(h), and tau/h layers of length eta."""
    step = float(np.sqrt(h))
    return step, step * round(tau / h)


def wave(angle: np.ndarray, w: float) -> np.ndarray:
    """e^(i beta), where e^(i angle) is beta moved by the Moebius map (z + w)/(1 + w z), which takes 0 to w."""
    z = np.exp(1j * angle)
    return np.asarray((z - w) / (1 - w * z))


def nudged(angle: np.ndarray, w: float, degree: int, turned: bool, size: float) -> np.ndarray:
    """The Poisson kernel of w times 1 + size sqrt(2) cos(degree beta), or the sine: orthonormal in its measure."""
    rho = (1 - w**2) / np.abs(np.exp(1j * angle) - w) ** 2
    waves = wave(angle, w) ** degree
    return np.asarray(rho * (1 + size * np.sqrt(2) * (waves.imag if turned else waves.real)))


def density(parameters: Parameters) -> xr.Dataset:
    """c_1 of the density given each head stream, c_1 given the others of its block, and how waves change c_1."""
    step, until = ends(parameters.tau, parameters.h)
    field = random_attention(2, parameters.b, step=step, seed=streams(parameters, 0, parameters.heads))
    w = float(np.sqrt(parameters.order))

    def first(degree: int, turned: bool, size: float) -> np.ndarray:
        start = functools.partial(nudged, w=w, degree=degree, turned=turned, size=size)
        return conditional_density(field, start, until, step=step, labels=parameters.labels).fourier(1)[:, -1, 1]

    base = first(1, False, 0.0)
    power = [
        sum(np.abs((first(degree, turned, NUDGE) - base) / NUDGE) ** 2 for turned in (False, True))
        for degree in range(1, parameters.waves + 1)
    ]
    return xr.Dataset(
        {
            "mean": (("seed", "part"), _parts(base)),
            "other": (("seed", "another", "part"), _parts(others(base))),
            "power": (("wave", "seed"), np.array(power)),
        }
    )


def others(values: np.ndarray) -> np.ndarray:
    """(seed, BLOCK - 1) the same for the other head streams of the block, which are independent of this one."""
    blocks = values.reshape(-1, BLOCK)
    return np.stack([np.roll(blocks, k, axis=1).ravel() for k in range(1, BLOCK)], axis=1)


def tokens(n: int, parameters: Parameters) -> xr.Dataset:
    """The mean of n iid tokens of each head stream."""
    step, until = ends(parameters.tau, parameters.h)
    field = random_attention(2, parameters.b, step=step, seed=token_streams(parameters))
    start = Tokens(iid(n, parameters), dims=("seed",), space=Sphere(2))
    moved = np.asarray(advance(field, start, 0.0, until, Layers(step)).positions)
    return xr.Dataset({"mean": (("seed", "part"), moved.mean(axis=1))})


def iid(n: int, parameters: Parameters) -> np.ndarray:
    """(seed, n, 2) iid tokens of the Poisson kernel."""
    angle = parameters.rng(1, n).uniform(0, 2 * np.pi, (parameters.heads, n))
    return _parts(wave(angle, -float(np.sqrt(parameters.order))))


def kernel(parameters: Parameters) -> xr.Dataset:
    """Points that divide the start into equal masses, carried by the noise, and their Poisson kernel."""
    w, count = float(np.sqrt(parameters.order)), parameters.points
    start = _parts(wave(2 * np.pi * (np.arange(count) + 0.5) / count, -w))
    until = parameters.order_times[-1]
    seed, paths = parameters.seed(1), parameters.paths
    path = poisson_path((w, 0.0), until, parameters.boost, seed=seed, replicas=paths, save=4, points=start)
    assert path.points is not None
    return xr.Dataset(
        {
            "w": (("path", "frame", "part"), path.w),
            "gap": (("path", "frame"), path.gap),
            "points": (("path", "frame", "point", "part"), path.points),
        },
        {"tau": ("frame", path.tau)},
        {"boosts": round(until / parameters.boost)},
    )


def order(parameters: Parameters) -> xr.Dataset:
    """u = |w|^2 along independent paths."""
    times, w = (0.0, *parameters.order_times), float(np.sqrt(parameters.order))
    seed, paths = parameters.seed(2), parameters.replicas
    path = poisson_path((w, 0.0), times[-1], parameters.boost, seed=seed, replicas=paths, save=times)
    return xr.Dataset({"u": (("path", "tau"), np.sum(path.w**2, axis=-1))}, {"tau": path.tau})


def leave(h: float, parameters: Parameters) -> xr.Dataset:
    """c_1 and c_2 of densities that start as Poisson kernels, after layers of time h at infinite temperature."""
    step, until = ends(2 * parameters.leave_tau, h)
    seeds = streams(parameters, 100_000 + round(1e6 * h), parameters.leave_heads)
    start = PoissonKernel((float(np.sqrt(parameters.order)), 0.0))
    path = conditional_density(hot(step, seeds), start, until, step=step, labels=32, save=2)
    return xr.Dataset({"modes": (("seed", "frame", "mode", "part"), _parts(path.fourier(2)[..., 1:]))})


def hot(step: float, seeds: Along) -> Any:
    """Random layers at infinite temperature."""
    return random_attention(2, 0.0, step=step, seed=seeds)


def uniform(b: float, parameters: Parameters) -> xr.Dataset:
    """|c_2|^2 of densities that start uniform, after a short time and after twice of it."""
    step, until = ends(2 * parameters.uniform_tau, parameters.uniform_h)
    field = random_attention(2, b, step=step, seed=streams(parameters, 200_000, parameters.uniform_heads))
    modes = conditional_density(field, flat, until, step=step, labels=32, save=2).fourier(2)[:, 1:, 2]
    return xr.Dataset({"power": (("seed", "frame"), np.abs(modes) ** 2)})


def long(parameters: Parameters) -> xr.Dataset:
    """Modes 1 to 4 of densities that start uniform, over a long time."""
    step, until = ends(parameters.long_tau, 0.02)
    seeds = streams(parameters, 300_000, parameters.long_heads)
    field = random_attention(2, max(parameters.uniform_b), step=step, seed=seeds)
    path = conditional_density(field, flat, until, step=step, labels=64, save=20)
    modes = np.abs(path.fourier(4)[..., 1:])
    return xr.Dataset({"size": (("seed", "tau", "mode"), modes)}, {"tau": step * path.times, "mode": np.arange(1, 5)})


def flat(angle: np.ndarray) -> np.ndarray:
    """The uniform density."""
    return np.ones_like(angle)


def single(d: int, parameters: Parameters) -> xr.Dataset:
    """<x(tau), x(0)> of single tokens, each with its own heads."""
    step, until = ends(parameters.mean_times[-1], parameters.mean_h)
    times = [ends(tau, parameters.mean_h)[1] for tau in (0.0, *parameters.mean_times)]
    field = random_attention(d, 1.0, step=step, seed=streams(parameters, 400_000, parameters.tokens))
    flow = solve(field, Tokens(np.eye(d)[:1], space=Sphere(d)), until, method=Layers(step), save=times)
    found = flow.positions.transpose("seed", "time", ...).values[:, 1:, 0, 0]
    return xr.Dataset({"overlap": (("seed", "tau"), found)}, {"tau": np.array(parameters.mean_times)})


def _parts(z: np.ndarray) -> np.ndarray:
    """Real and imaginary part as a last axis."""
    return np.stack([z.real, z.imag], axis=-1)
