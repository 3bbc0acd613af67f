"""Retrieval profiles of causal prompts: by derivatives of the flow, by plain averages, and long after the formula ends.

The derivative of the last token in the start of token j is of order 1/N, and integration by parts turns correlations
into means of it without any error (derivation.md). Standard errors are ten times smaller than those of
`retrieval_profile`, for the same prompts.
"""

import dataclasses
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import special as sp

from attnflow import in_float64
from attnflow.decoders import retrieval_profile
from attnflow.experiments import Salted, Study
from attnflow.fields import AbstractField, Attention, Unnormalised
from attnflow.flows import Fixed, advance, solve
from attnflow.masks import Causal
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Ends of the bins of sources, as shares of the prompt."""
BLOCK = 2**17
"""Pairs of tokens in the prompts that are followed together."""
CENTRES = 4
"""Tokens at the beginning whose overlaps with all others are control variates."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """Sizes of the gallery; unnormalised attention on the clock grad of the paper unless said otherwise."""

    beta: float = 1.0
    slopes: tuple[float, ...] = (0.0, 1.0, 2.0)
    """ALiBi slopes per token times N."""
    sizes: tuple[int, int] = (64, 128)
    """Numbers of tokens N; the second is twice the first."""
    prompts: tuple[int, int] = (2048, 1536)
    time: float = 1.0
    late: float = 3.0
    """Past the threshold of recency at the slope 1."""
    late_prompts: int = 2048
    vocabulary: int = 8
    softmax_prompts: int = 1024
    sphere_prompts: int = 512
    plain_prompts: int = 3000
    """Of `retrieval_profile`."""
    plain_dims: tuple[int, ...] = (2, 8)
    ends: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 30.0)
    """Times at which the sum over all sources is read."""
    end_prompts: int = 1536
    expected_steps: float = 34.0
    """Standard errors by which each bin is expected to lie above the next, at the slope 0."""
    expected_heights: float = 17.0
    """Standard errors by which each bin is expected to lie above that of the predicted minimum."""
    expected_soft: float = 13.0
    """Standard errors by which the soft profile is expected to rise, in each comparison."""
    expected_leads: float = 22.0
    """Standard errors by which late sources are expected to lead before the threshold, and to trail after it."""
    expected_fall: float = 10.5
    """Standard errors by which the sum over all sources is expected to fall from t = 3 to 8."""


QUICK = Parameters(
    sizes=(32, 64),
    prompts=(1536, 896),
    late_prompts=1536,
    softmax_prompts=256,
    sphere_prompts=256,
    plain_prompts=512,
    ends=(1.0, 3.0, 8.0, 30.0),
    end_prompts=1024,
    expected_steps=13.5,
    expected_heights=7.5,
    expected_soft=10.5,
    expected_leads=9.5,
    expected_fall=8.0,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Profiles for every number of tokens, late ones, other models and dimensions, and the sums over all sources."""
    makers: dict[str, Any] = {
        f"profile-{n}": (profiles, parameters, n, prompts)
        for n, prompts in zip(parameters.sizes, parameters.prompts, strict=True)
    }
    time = parameters.time
    makers |= {
        "late": (one_profile, parameters, 2, parameters.late_prompts, parameters.late),
        "softmax": (one_profile, parameters, 3, parameters.softmax_prompts, time, "SA"),
        "sphere": (one_profile, parameters, 4, parameters.sphere_prompts, time, "USA", 3),
        "plain": (plain_profiles, parameters),
        "end": (sums, parameters),
    }
    return study.parts(makers)


def attention(beta: float, slope: float, n: int, clock: str = "grad") -> Attention:
    """Causal attention of n tokens with the ALiBi slope slope/n; SA sees the token itself too, others do not."""
    if clock == "SA":
        return Attention(beta, mask=Causal(slope=slope / n))
    return Attention(beta, normaliser=Unnormalised(clock), mask=Causal(slope=slope / n, strict=True))


def drawn(rng: np.random.Generator, prompts: int, n: int, d: int) -> np.ndarray:
    """Independent prompts of n iid uniform tokens on S^(d-1)."""
    found = rng.standard_normal((prompts, n, d))
    return np.asarray(found / np.linalg.norm(found, axis=-1, keepdims=True))


def profiles(parameters: Parameters, n: int, prompts: int) -> xr.Dataset:
    """(slope, prompt, bin): what each prompt says of the profile of degree 1, and of the soft profile, at `time`."""
    first, soft = [], []
    for slope in parameters.slopes:
        start = drawn(parameters.rng(n, 10 + round(100 * slope)), prompts, n, 2)
        weights = soft_weights(parameters.vocabulary)
        found = kept(attention(parameters.beta, slope, n), start, parameters.time, slope, weights)
        first.append(found[0])
        soft.append(found[1])
    dims = ("slope", "prompt", "bin")
    return xr.Dataset({"first": (dims, np.array(first)), "soft": (dims, np.array(soft))})


def one_profile(
    parameters: Parameters, label: int, prompts: int, until: float, clock: str = "grad", d: int = 2
) -> xr.Dataset:
    """(prompt, bin): what each prompt says of the profile of degree 1 at the slope 1 and the first N."""
    n = parameters.sizes[0]
    start = drawn(parameters.rng(n, label), prompts, n, d)
    found = kept(attention(parameters.beta, 1.0, n, clock), start, until, 1.0)
    return xr.Dataset({"first": (("prompt", "bin"), found[0])})


def plain_profiles(parameters: Parameters) -> xr.Dataset:
    """(dim, bin): `retrieval_profile` at the slope 1, means and standard errors."""
    n = parameters.sizes[0]
    field = attention(parameters.beta, 1.0, n, "USA")
    same: Any = {"n": n, "until": parameters.time, "bins": EDGES, "prompts": parameters.plain_prompts}
    rows = [
        retrieval_profile(field, d=d, seed=parameters.seed(k), method=Fixed(0.25), **same)
        for k, d in enumerate(parameters.plain_dims)
    ]
    mean, error = (np.array([getattr(row, name) for row in rows]) for name in ("mean", "standard_error"))
    prompts = "dim", np.array([row.prompts for row in rows])
    return xr.Dataset({"mean": (("dim", "bin"), mean), "error": (("dim", "bin"), error), "prompts": prompts})


def groups(n: int) -> list[np.ndarray]:
    """The tokens j - 1, for j = 1, ..., n - 1, of every bin."""
    at = np.arange(1, n) / n
    pairs = itertools.pairwise(EDGES)
    return [np.flatnonzero((at > low + 1e-12) & (at <= high + 1e-12)) for low, high in pairs]


def soft_weights(vocabulary: int) -> np.ndarray:
    """e^(-pi^2 k^2/(2 M^2)) for k = 1, 2, ...: the wrapped Gaussian of width pi/M around a codeword."""
    return np.asarray(np.exp(-((np.pi * np.arange(1, 3 * vocabulary) / vocabulary) ** 2) / 2))


def kept(
    field: Attention, start: np.ndarray, until: float, slope: float, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(prompt, bin): N tr(D_j x_N)/(d - 1), whose mean is N E<x_N(t), x_j(0)>; on the circle the soft profile too.

    Less the regression on the first order in time, of mean 0, with coefficients of the other half of the prompts.
    """
    prompts, n, d = start.shape
    block = max(4, BLOCK // n**2)
    pieces = [derivatives(field, start[begin : begin + block], until) for begin in range(0, prompts, block)]
    end, pull = np.concatenate([one for one, _ in pieces]), np.concatenate([one for _, one in pieces], axis=1)
    q = np.einsum("pd,pjd->pj", end, start)
    if d == 2:
        turn = np.einsum("pjd,pjd->pj", pull[0], _quarter(start))
        first, soft = turn * q, turn * _cosines(q, np.ones(1) if weights is None else weights)
    else:
        own = np.einsum("apjd,pjd->pja", pull, start)
        first = (np.einsum("apja->pj", pull) - np.einsum("pja,pja->pj", own, start)) / (d - 1)
        soft = first
    known = n * binned(first_order(float(np.asarray(field.beta)), start, slope))
    return _reduced(n * binned(first), known), _reduced(n * binned(soft), known)


def binned(rows: np.ndarray) -> np.ndarray:
    """Means over the sources of every bin, (prompt, bin)."""
    return np.stack([rows[:, some].mean(axis=1) for some in groups(rows.shape[1])], axis=1)


@in_float64
def derivatives(field: AbstractField, start: np.ndarray, until: float) -> tuple[Any, Any]:
    """The last tokens x_N(until), and the derivatives of their components in the starts: (component, prompt, j, d).

    On the circle the one component is that along the quarter turn of x_N.
    """
    tokens = Tokens(start, space=Sphere(start.shape[-1]), dims=("prompt",))
    return _derivatives(field.prepare(tokens, flowing=True), tokens, float(until))


@eqx.filter_jit
def _derivatives(field: AbstractField, tokens: Tokens, until: float) -> tuple[Any, Any]:
    def last(x: Any) -> Any:
        return advance(field, tokens.moved(x), 0.0, until, Fixed(0.25)).positions[:, -1]

    end, back = jax.vjp(last, jnp.asarray(tokens.positions))
    d = end.shape[-1]
    along = _quarter(end)[None] if d == 2 else jnp.broadcast_to(jnp.eye(d)[:, None], (d, *end.shape))
    return end, jnp.stack([back(one)[0] for one in along])


def _quarter(x: Any) -> Any:
    """Vectors of the plane after a quarter turn."""
    stack = jnp.stack if isinstance(x, jax.Array) else np.stack
    return stack([-x[..., 1], x[..., 0]], axis=-1)


def _cosines(q: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sum over k >= 1 of weights[k-1] cos(k angle), q the cosine of the angle."""
    return np.asarray(np.polynomial.chebyshev.chebval(q, np.append(0.0, weights)))


def first_order(beta: float, start: np.ndarray, slope: float) -> np.ndarray:
    """(prompt, j): the first order in time of the derivative, up to a factor, less its mean.

    w_j e^(beta q) ((d - 2 + q^2) - beta q (1 - q^2)) with q = <x_N(0), x_j(0)>.
    """
    _, n, d = start.shape
    nodes, masses = sp.roots_chebyt(100) if d == 2 else sp.roots_gegenbauer(100, d / 2 - 1)

    def pull(q: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(beta * q) * ((d - 2 + q**2) - beta * q * (1 - q**2)))

    weight = np.exp(-slope * np.arange(n, 0, -1) / n)
    mean = masses @ pull(nodes) / np.sum(masses)
    return np.asarray(weight / np.mean(weight) / n * (pull(np.einsum("pd,pjd->pj", start[:, -1], start)) - mean))


def _reduced(value: np.ndarray, *controls: np.ndarray) -> np.ndarray:
    """`value` less its regression on controls of mean 0, column by column, coefficients from the other half."""
    found, half = value.copy(), np.arange(len(value)) % 2 == 0
    for column in range(value.shape[1]):
        z = np.stack([one[:, column] for one in controls], axis=1)
        for own in (half, ~half):
            fit = np.linalg.lstsq(z[~own] - z[~own].mean(axis=0), value[~own, column] - value[~own, column].mean())
            found[own, column] -= z[own] @ fit[0]
    return found


def sums(parameters: Parameters) -> xr.Dataset:
    """(prompt, time): sums over the sources j < N of <x_N(t), x_j(0)>, and of the soft overlap, at the slope 1.

    Less the regression on overlaps at the start of the last token and of the first few with all others, of mean 0.
    """
    n, times = parameters.sizes[0], np.array(parameters.ends)
    start = drawn(parameters.rng(n, 5), parameters.end_prompts, n, 2)
    tokens, watch = Tokens(start, space=Sphere(2), dims=("prompt",)), {"last": lambda mu: mu.positions[-1]}
    field, method = attention(parameters.beta, 1.0, n), Fixed(0.25)
    flow = solve(field, tokens, times[-1], save=times, method=method, keep=(), observe=watch)
    last = flow.dataset["last"].transpose("time", "prompt", ...).values[1:]
    sources = start[:, :-1]
    pairs = [(start[:, -1], sources), *((start[:, k], np.delete(sources, k, axis=1)) for k in range(CENTRES))]
    found = {}
    for name, weights in (("first", np.ones(1)), ("soft", soft_weights(parameters.vocabulary))):
        rows = np.stack([_summed(x, sources, weights) for x in last], axis=1)
        controls = [np.repeat(_summed(*pair, weights)[:, None], len(times), axis=1) for pair in pairs]
        found[name] = ("prompt", "time"), _reduced(rows, *controls)
    return xr.Dataset(found, {"time": times})


def _summed(x: np.ndarray, sources: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """For every prompt the sum over sources of their overlaps with x, weighted by degree."""
    return np.asarray(np.sum(_cosines(np.einsum("pd,pjd->pj", x, sources), weights), axis=1))
