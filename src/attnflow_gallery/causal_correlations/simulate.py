"""Causal prompts of iid uniform tokens: retrieval profiles, pairs, one-token moments, and the noise of the mean."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.decoders import retrieval_profile, uniform_prompts
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import averaged, reduced
from attnflow.fields import Attention, Unnormalised
from attnflow.flows import Fixed, advance, solve
from attnflow.masks import Causal, Everyone

CASES = {"circle-1": (2, "grad", 1, 1.0), "circle-2": (2, "grad", 2, 0.6), "sphere-1": (3, "USA", 1, 0.75)}
"""Dimension, clock, degree and time, at beta = 1."""
EDGES = (0.125, 0.5, 1.0)
"""Bins of the source j/N in fits over N."""
FINE = (0.03125, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
"""Bins of the source in the figure of one profile and for softmax."""
QUARTERS = ((3, 1), (3, 2))
"""Pairs of quarters of the prompt whose tokens are compared at one time."""
STEP = 0.34
"""Of the Runge-Kutta method; rates are below 1, so that it errs by less than (rate step)^5/120, 4e-5, a step."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    beta: float = 1.0
    slope: float = 1.0
    """ALiBi slope per prompt, lambda."""
    sizes: tuple[int, ...] = (16, 32, 64)
    prompts: tuple[int, ...] = (32768, 49152, 40960)
    """Of retrieval profiles, by size."""
    pair_prompts: tuple[int, ...] = (8192, 16384, 16384)
    """Of pairs at one time and of one-token moments, by size."""
    profile_size: int = 64
    profile_prompts: int = 8192
    softmax_size: int = 32
    softmax_prompts: int = 32768
    noise_size: int = 1024
    noise_prompts: int = 512
    noise_times: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    expected_coefficient: float = 10.0
    """Standard errors by which the mean coefficient of 1/N is expected to lie below 0."""


QUICK = Parameters(
    sizes=(8, 16, 32),
    prompts=(16384, 16384, 12288),
    pair_prompts=(4096, 4096, 4096),
    profile_size=32,
    profile_prompts=1024,
    softmax_prompts=8192,
    noise_size=512,
    noise_prompts=128,
    noise_times=(1.0, 2.0),
    expected_coefficient=10.0,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Profiles by case and size, the profile of the figure, softmax, tokens at one time, and noise."""
    sizes = list(zip(parameters.sizes, parameters.prompts, strict=True))
    one = [(parameters.profile_size, parameters.profile_prompts)]
    makers: dict[str, Any] = {name: (profiles, parameters, name, sizes, EDGES) for name in CASES}
    makers |= {"profile": (profiles, parameters, "circle-1", one, FINE[2:])}
    makers |= {"softmax": (softmax, parameters), "pairs": (pairs, parameters)}
    return study.parts(makers | {mask: (noise, parameters, mask) for mask in MASKS})


def strict_field(parameters: Parameters, clock: str, n: int) -> Attention:
    """Unnormalised causal attention with ALiBi in which a token hears earlier ones alone."""
    mask = Causal(slope=parameters.slope / n, strict=True)
    return Attention(parameters.beta, normaliser=Unnormalised(clock), mask=mask)


def profiles(parameters: Parameters, name: str, sizes: list[tuple[int, int]], edges: tuple[float, ...]) -> xr.Dataset:
    """N E P_k(<x_N(t), x_j(0)>) by bins of j, for every size."""
    d, clock, degree, until = CASES[name]
    label = list(CASES).index(name) + 10 * len(edges)
    same: Any = {"until": until, "d": d, "degree": degree, "bins": edges, "seed": parameters.seed(label)}
    rows = [
        retrieval_profile(strict_field(parameters, clock, n), n=n, prompts=count, method=Fixed(STEP), **same)
        for n, count in sizes
    ]
    mean, error = (np.array([getattr(row, name) for row in rows]) for name in ("mean", "standard_error"))
    found = {"mean": (("size", "bin"), mean), "error": (("size", "bin"), error)}
    return xr.Dataset(found | {"prompts": ("size", [row.prompts for row in rows])}, {"size": [n for n, _ in sizes]})


def softmax(parameters: Parameters) -> xr.Dataset:
    """The same for softmax over k <= i on S^2, without a slope, at time 1."""
    n = parameters.softmax_size
    same: Any = {"n": n, "d": 3, "prompts": parameters.softmax_prompts, "bins": FINE, "seed": parameters.seed(5)}
    row = retrieval_profile(Attention(parameters.beta, mask=Causal()), until=1.0, method=Fixed(STEP), **same)
    found = {"mean": ("bin", row.mean), "error": ("bin", row.standard_error), "prompts": row.prompts}
    return xr.Dataset(found, coords={"size": n})


def pairs(parameters: Parameters) -> xr.Dataset:
    """N E<x_i(t), x_j(t)> between quarters of the prompt, and one-token moments (place, moment); the circle, t = 1.

    Moments are x, y, x^2 - 1/2 and xy: all of mean 0 for a uniform token.
    """
    rows, moments = [], []
    for n, count in zip(parameters.sizes, parameters.pair_prompts, strict=True):
        start = uniform_prompts(n, 2, count, (parameters.seed(6), n))
        end = np.asarray(advance(strict_field(parameters, "grad", n), start, 0.0, 1.0, Fixed(STEP)).positions)
        part = [end[:, quarter(n, k)].mean(axis=1) for k in range(4)]
        value = n * np.stack([np.sum(part[a] * part[b], axis=-1) for a, b in QUARTERS], axis=1)
        rows.append(averaged(reduced(value, overlaps(np.asarray(start.positions), np.linspace(0, n, 9)))))
        x, y = end[..., 0], end[..., 1]
        one, error = averaged(np.stack([x, y, x**2 - 0.5, x * y], axis=-1))
        moments.append(one / error)
    mean, error = np.array(rows).swapaxes(0, 1)
    found = {"mean": (("size", "pair"), mean), "error": (("size", "pair"), error)}
    students = ("token", "moment"), np.concatenate(moments)
    return xr.Dataset(found | {"student": students}, {"size": list(parameters.sizes)})


def quarter(n: int, k: int) -> slice:
    """The tokens of a quarter of the prompt."""
    return slice(k * n // 4, (k + 1) * n // 4)


def noise(parameters: Parameters, mask: str) -> xr.Dataset:
    """N E|F|^2 for the mean F of N tokens under softmax on the circle, at every time."""
    n, count = parameters.noise_size, parameters.noise_prompts
    start = uniform_prompts(n, 2, count, (parameters.seed(7), n))
    field = Attention(parameters.beta, mask=MASKS[mask]())
    # blocks of places that halve towards the beginning, whose tokens matter most
    controls = overlaps(np.asarray(start.positions), n * np.append(0.0, 2.0 ** np.arange(-5, 1)))
    times, watch = list(parameters.noise_times), {"square": lambda mu: n * (mu.positions.mean(axis=0) ** 2).sum()}
    flow = solve(field, start, times[-1], save=times, method=Fixed(2 * STEP), tol=1e-6, keep=(), observe=watch)
    mean, error = averaged(reduced(flow.dataset["square"].values[:, 1:], controls))
    return xr.Dataset({"mean": ("time", mean), "error": ("time", error)}, {"time": times})


MASKS = {"masked": lambda: Causal(), "unmasked": lambda: Everyone()}


def overlaps(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """<S_a, S_b>/N for the sums S of iid uniform tokens over blocks of places, less its mean: (prompt, pair of blocks).

    The mean is 0 for two blocks, and the share of the tokens for one.
    """
    ends = np.unique(np.round(edges).astype(int))
    sums = np.add.reduceat(x, ends[:-1], axis=1) / np.sqrt(x.shape[1])
    products = np.einsum("pad,pbd->pab", sums, sums) - np.diag(np.diff(ends) / x.shape[1])
    rows, columns = np.triu_indices(len(ends) - 1)
    return products[:, rows, columns]
