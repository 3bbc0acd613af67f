"""One random layer acts on a pair of tokens among infinitely many uniform ones; cosines of random images."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ive

from attnflow.experiments import Salted, Study

ANGLE = 1e-4
"""Between nearby tokens."""
STEP = 1e-6
"""h = eta^2/H of the layer."""
BATCHES = 64
"""Batches whose means are kept; standard errors are those of their mean."""
IID = 0
"""Stands for d_k of a matrix of independent entries in place of Q^T K."""
Pair = tuple[np.ndarray, np.ndarray]
"""A vector and its difference from another, rows of (count, d)."""
Case = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    d: int = 8
    keys: tuple[int, ...] = (4, 5, 6, 7, 8, 10, 16, 64, IID)
    """d_k at zero temperature."""
    warm_keys: tuple[int, ...] = (4, 8)
    scales: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 11.0, 16.0, 22.0, 64.0, 256.0)
    """Logit scales b."""
    crossing: tuple[float, ...] = (8.0, 11.0, 16.0, 22.0)
    """Those between which b_c is sought at the first of `warm_keys`."""
    pairs: int = 600_000
    """For every d_k."""
    cosine_dims: tuple[int, ...] = (16, 32, 64)
    cosine_overlap: float = 0.7
    images: int = 300_000
    """Pairs of images for every dimension and kind of matrix."""
    cold_d: int = 32
    cold_overlaps: tuple[float, ...] = (0.3, 0.5, 0.7, 0.85)
    cold_pairs: int = 200_000
    """For every overlap."""


QUICK = Parameters(
    keys=(4, 5, 6, 7, 8, 16, IID),
    scales=(2.0, 8.0, 11.0, 16.0, 22.0, 64.0),
    pairs=100_000,
    cosine_dims=(16, 64),
    images=25_000,
    cold_overlaps=(0.5, 0.7),
    cold_pairs=30_000,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Pair exponents at zero and at finite temperature, cosines, drifts of cold pairs; means of batches."""
    makers = {"cold": zero_temperature, "warm": finite_temperature, "cosines": cosines, "drift": cold_drift}
    return study.parts({name: (make, parameters, study) for name, make in makers.items()})


def batched(parameters: Parameters, study: Study, total: int, cases: dict[int, Case]) -> np.ndarray:
    """(case, BATCHES, ...): means that `one(rng, count, *arguments)` gives of independent batches, case by case.

    Cases are `(one, *arguments)`, by a number that fixes their random numbers.
    """
    rows = []
    for label, (one, *arguments) in study.along(cases.items()):
        study.progress(one.__name__, 0.0)
        count = max(total // BATCHES, 2)
        rows.append([one(parameters.rng(label, k), count, *arguments) for k in range(BATCHES)])
    return np.array(rows)


def applied(numbers: np.ndarray, pair: Pair) -> Pair:
    """The images of a pair under a Gaussian matrix, whose two columns that matter are `numbers` (2, count, rows).

    The first vector becomes its length times the first column; what of the second is across it meets the other column.
    """
    first, apart = pair
    size = np.linalg.norm(first, axis=1, keepdims=True)
    along = np.sum(first * apart, axis=1, keepdims=True) / size
    across = np.linalg.norm(apart - along * first / size, axis=1, keepdims=True)
    return size * numbers[0], along * numbers[0] + across * numbers[1]


def gaussian(rng: np.random.Generator, pair: Pair, rows: int) -> Pair:
    """The images of a pair under a matrix with `rows` rows of independent standard normal entries."""
    return applied(rng.standard_normal((2, len(pair[0]), rows)), pair)


def keyed(rng: np.random.Generator, pair: Pair, keys: int) -> tuple[Pair, np.ndarray]:
    """`gaussian` with `keys` rows, the length of the first image drawn with keys - 2 degrees; and weights.

    The density of chi^2_k is u/(k-2) times the density of chi^2_(k-2), so that means with these weights are right.
    """
    first, apart = gaussian(rng, pair, keys)
    # the first vector is of length 1; what of the second image is along the first one scales with it
    old = np.linalg.norm(first, axis=1, keepdims=True)
    square = rng.chisquare(keys - 2, size=old.shape)
    share = np.sum(pair[0] * pair[1], axis=1, keepdims=True)
    other = np.sqrt(square) / old
    return (other * first, apart + (other - 1) * share * first), square[:, 0] / (keys - 2)


def scored(rng: np.random.Generator, pair: Pair, keys: int, d: int) -> tuple[Pair, np.ndarray]:
    """A x and A y for A = Q^T K over sqrt(d_k), or for A of independent entries; weights of the pairs."""
    if keys == IID:
        return gaussian(rng, pair, d), np.ones(len(pair[0]))
    inner, weights = keyed(rng, pair, keys)
    first, apart = gaussian(rng, inner, d)
    return (first / np.sqrt(keys), apart / np.sqrt(keys)), weights


def softmax_mean(images: Pair, scale: float) -> Pair:
    """m(x) and m(y) - m(x) among uniform tokens: r(b |Ax|) Ax/|Ax|, r = I_(d/2)/I_(d/2-1), which is 1 at b = inf."""
    first, second = images[0], images[0] + images[1]
    one, other = (_direction(a, scale) for a in (first, second))
    return one, other - one


def _direction(a: np.ndarray, scale: float) -> np.ndarray:
    size = np.linalg.norm(a, axis=1, keepdims=True)
    return a / size if scale == np.inf else a / size * ratio(a.shape[1], scale * size)


def ratio(d: int, kappa: np.ndarray) -> np.ndarray:
    """I_(d/2)/I_(d/2-1), the length of the mean of a von Mises-Fisher density."""
    return np.asarray(ive(d / 2, kappa) / ive(d / 2 - 1, kappa))


def values(numbers: np.ndarray, means: Pair) -> Pair:
    """V m(x) and V (m(y) - m(x)): one matrix V, with entries of variance 1/d, for both tokens."""
    first, apart = applied(numbers, means)
    d = means[0].shape[1]
    return first / np.sqrt(d), apart / np.sqrt(d)


def tokens(overlap: float, count: int, d: int) -> Pair:
    """Two tokens with this overlap, in the plane of the first two axes."""
    return _at(np.arccos(overlap), count, d)


def _at(angle: float, count: int, d: int) -> Pair:
    x, apart = np.zeros((2, count, d))
    x[:, 0] = 1.0
    apart[:, 0], apart[:, 1] = -2 * np.sin(angle / 2) ** 2, np.sin(angle)
    return x, apart


def layer(pair: Pair, pushes: Pair, size: float) -> np.ndarray:
    """1 - R after the layer x <- N(x + size V m)."""
    x = pair[0] + size * pushes[0]
    y = x + pair[1] + size * pushes[1]
    x, y = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (x, y))
    return np.asarray(np.sum((x - y) ** 2, axis=1) / 2)


def both(pair: Pair, pushes: Pair) -> tuple[np.ndarray, np.ndarray]:
    """1 - R after the layers with V and with -V, whose mean has no noise of order sqrt(h)."""
    return layer(pair, pushes, np.sqrt(STEP)), layer(pair, pushes, -np.sqrt(STEP))


def exponent(rng: np.random.Generator, count: int, d: int, keys: int, scales: tuple[float, ...]) -> list[float]:
    """The drift of log(1 - R) of nearby tokens for every logit scale; the same matrices for all of them."""
    pair = _at(ANGLE, count, d)
    before = np.log(layer(pair, pair, 0.0))
    images, weights = scored(rng, pair, keys, d)
    numbers, found = rng.standard_normal((2, count, d)), []
    for scale in scales:
        one, other = both(pair, values(numbers, softmax_mean(images, scale)))
        found.append(float(np.mean(weights * ((np.log(one) + np.log(other)) / 2 - before)) / STEP))
    return found


def zero_temperature(parameters: Parameters, study: Study) -> xr.Dataset:
    """Pair exponents (d_k, batch) at b = inf."""
    cases = {100 + k: (exponent, parameters.d, keys, (np.inf,)) for k, keys in enumerate(parameters.keys)}
    rows = batched(parameters, study, parameters.pairs, cases)[..., 0]
    return xr.Dataset({"exponent": (("keys", "batch"), rows)}, {"keys": list(parameters.keys)})


def finite_temperature(parameters: Parameters, study: Study) -> xr.Dataset:
    """Pair exponents (d_k, batch, b)."""
    cases = {200 + k: (exponent, parameters.d, keys, parameters.scales) for k, keys in enumerate(parameters.warm_keys)}
    rows = batched(parameters, study, parameters.pairs, cases)
    labels = {"keys": list(parameters.warm_keys), "scale": list(parameters.scales)}
    return xr.Dataset({"exponent": (("keys", "batch", "scale"), rows)}, labels)


def images(pair: Pair, outer: Any, inner: Any) -> Pair:
    """A x and A (y - x) for A = Q^T K from the numbers of K (`inner`) and Q^T (`outer`); without `inner` one matrix."""
    return applied(outer, pair if inner is None else applied(inner, pair))


def related(*columns: np.ndarray | None) -> Iterator[tuple[Any, ...]]:
    """The two columns of each matrix in both orders, and the second one with both signs.

    These are four matrices with the same distribution, between which all that is linear in the fluctuations of lengths
    and angles cancels.
    """
    for order in (1, -1):
        for sign in (1.0, -1.0):
            signs = np.array([1.0, sign])[:, None, None]
            yield tuple(None if one is None else signs * one[::order] for one in columns)


def cosine(rng: np.random.Generator, count: int, d: int, overlap: float, keys: int) -> float:
    """Mean cosine of Ax and Ay."""
    pair = tokens(overlap, count, d)
    inner = None if keys == IID else rng.standard_normal((2, count, keys))
    found = []
    for matrices in related(rng.standard_normal((2, count, d)), inner):
        first, apart = images(pair, *matrices)
        second = first + apart
        size = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        found.append(float(np.mean(np.sum(first * second, axis=1) / size)))
    return float(np.mean(found))


def cosines(parameters: Parameters, study: Study) -> xr.Dataset:
    """Mean cosines (kind, d, batch) for A = Q^T K with d_k = d, and for A of independent entries."""
    dims, r = parameters.cosine_dims, parameters.cosine_overlap
    cases = {300 + k: (cosine, d, r, d) for k, d in enumerate(dims)}
    cases |= {310 + k: (cosine, d, r, IID) for k, d in enumerate(dims)}
    rows = batched(parameters, study, parameters.images, cases).reshape(2, len(dims), BATCHES)
    return xr.Dataset({"cosine": (("kind", "d", "batch"), rows)}, {"kind": ["product", "iid"], "d": list(dims)})


def drift(rng: np.random.Generator, count: int, d: int, overlap: float) -> float:
    """The drift of R of two tokens at zero temperature, A = Q^T K with d_k = d."""
    pair = tokens(overlap, count, d)
    before, found = layer(pair, pair, 0.0), []
    for outer, inner, numbers in related(*rng.standard_normal((3, 2, count, d))):
        one, other = both(pair, values(numbers, softmax_mean(images(pair, outer, inner), np.inf)))
        found.append(float(np.mean(before - (one + other) / 2) / STEP))
    return float(np.mean(found))


def cold_drift(parameters: Parameters, study: Study) -> xr.Dataset:
    """Drifts (overlap, batch)."""
    cases = {400 + k: (drift, parameters.cold_d, overlap) for k, overlap in enumerate(parameters.cold_overlaps)}
    rows = batched(parameters, study, parameters.cold_pairs, cases)
    return xr.Dataset({"drift": (("overlap", "batch"), rows)}, {"overlap": list(parameters.cold_overlaps)})
