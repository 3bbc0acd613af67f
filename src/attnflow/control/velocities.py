"""Densities from samples alone, without gradients: velocities fitted by random ReLU units, in slabs of time."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.checks import ABOVE_ZERO, generator, number, whole
from attnflow.control.samples import FEWEST, sampled
from attnflow.control.schedule import Schedule, chain, units
from attnflow.control.splitting import split
from attnflow.errors import InvalidInput

ROWS = 8192
"""Of features held in memory at a time."""


@dataclasses.dataclass(frozen=True)
class VelocityMatch:
    """A schedule that carries the normal density to one like that of samples, and how well."""

    schedule: Schedule
    residuals: np.ndarray
    """(slabs,) the share of the mean square velocity that is left; crossing paths leave some, whatever the units."""
    held_out: int
    """Samples that were not used for the fit."""
    log_density: float
    """The mean of the log-density at them. KL(p || made) is about -(entropy of p) - log_density; nan without them."""
    gain: float
    """By how much it exceeds that of the normal density with mean and covariance of the others, ..."""
    gain_error: float
    """... with its standard error: so much of the divergence did the units take off."""


def match_velocities(
    samples: Any,
    *,
    units: int = 64,
    slabs: int = 4,
    ridge: float = 1e-4,
    draws: int = 4,
    batch: int = 256,
    held_out: float = 0.2,
    seed: int = 0,
) -> VelocityMatch:
    """A schedule of ReLU units in R^d that carries the normal density to one like that of `samples`, (sample, d).

    Flow matching without gradients (arXiv:2302.00482 has the method, with trained fields; random units are ours). The
    samples get mean 0 and covariance I. Normal points z are paired with them, `draws` points each, by the least sum of
    squared distances within a `batch`, and go straight from z to the sample x in the time 1. In each of `slabs` slabs
    of time the mean velocity x - z of the paths at a point is fitted by sum_j w_j (<a_j, .> + b_j)_+ + w_0: a_j are
    random directions and b_j put the kinks through paths, and the weights w minimise the mean square error plus `ridge`
    times the mean square of a unit times |w|^2. Strang's splitting runs these units there and back: 2 slabs (units
    + 1) units of the schedule, and few more give it mean and covariance of the samples.

    The fit sees velocities and not densities. More units and slabs lower the divergence as long as samples are many;
    with few, or with a small `ridge`, units are large and one splitting step is rough. A share `held_out` of the
    samples is set aside, and the exact log-density at them says how good the schedule is. Samples may repeat.
    `schedule.log_density(points, log_base)` is the density, and `schedule.push` of normal points samples it.
    """
    x = sampled(samples)
    width, count = whole("units", units, 1, 10**5), whole("slabs", slabs, 1, 10**4)
    share, ridge = number("held_out", held_out, low=0.0, high=0.5), number("ridge", ridge, low=ABOVE_ZERO)
    rng = generator(seed)
    x, aside = rng.permutation(x), int(share * len(x))
    if len(x) - aside < 4 * FEWEST:
        raise InvalidInput(
            f"`held_out` is {share:g}, which leaves {len(x) - aside} of {len(x)} samples; give samples enough to leave "
            f"{4 * FEWEST}, or a smaller share."
        )
    fresh, (whitened, carry) = x[:aside], _whitened(sampled(x[aside:]))
    starts, ends = _paired(whitened, whole("draws", draws, 1, 10**4), whole("batch", batch, 1, 10**4), rng)
    fits = [_fitted(starts, ends, k / count, 1 / count, width, ridge, rng) for k in range(count)]
    parts = [split(w, a, b, 2 * len(a), duration=1 / count) for w, a, b, _ in fits]
    schedule = chain([*parts, carry])
    made = schedule.log_density(fresh, _log_normal)
    over = made - carry.log_density(fresh, _log_normal)
    error = float(over.std(ddof=1) / np.sqrt(aside)) if aside > 1 else float("nan")
    mean, gain = (float(v.mean()) if aside else float("nan") for v in (made, over))
    return VelocityMatch(schedule, np.array([left for *_, left in fits]), aside, mean, gain, error)


def _log_normal(x: np.ndarray) -> np.ndarray:
    return np.asarray(-np.sum(x**2, axis=1) / 2 - x.shape[1] * np.log(2 * np.pi) / 2)


def _whitened(x: np.ndarray) -> tuple[np.ndarray, Schedule]:
    """Points with mean 0 and covariance I, and the schedule that carries them to x: C^(1/2) y + m."""
    mean, d = x.mean(axis=0), x.shape[1]
    _, scale, axes = np.linalg.svd((x - mean) / np.sqrt(len(x)), full_matrices=False)
    whitened = (x - mean) @ axes.T / scale @ axes
    # first what is at most 1 along all axes, which lets no error grow; then one factor for all coordinates
    logs = np.concatenate([np.log(scale / scale[0]), np.full(d, np.log(scale[0]))])
    lines = np.concatenate([axes, np.eye(d)])
    # a unit that shrinks by e^(-k) loses e^k times a rounding error, so k is at most 1
    counts = np.ceil(np.abs(logs)).astype(int)
    which = np.repeat(np.arange(2 * d), counts)
    sides = np.stack([lines[which], -lines[which]], axis=1).reshape(-1, d)
    sizes = np.repeat(logs / np.maximum(counts, 1), 2 * counts)[:, None]
    bias = np.append(np.zeros(len(sides)), 1.0)
    return whitened, units(np.append(sizes * sides, mean[None], 0), np.append(sides, np.zeros((1, d)), 0), bias)


def _paired(x: np.ndarray, draws: int, batch: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Normal points and samples, paired by optimal transport within batches."""
    from scipy.optimize import linear_sum_assignment

    starts, ends = [], []
    for _ in range(draws):
        order, z = rng.permutation(len(x)), rng.standard_normal(x.shape)
        for k in range(0, len(x), batch):
            goals, points = x[order[k : k + batch]], z[k : k + batch]
            # |x - z|^2 up to what no pairing changes
            ends.append(goals[linear_sum_assignment(-points @ goals.T)[1]])
            starts.append(points)
    return np.concatenate(starts), np.concatenate(ends)


def _fitted(
    starts: np.ndarray, ends: np.ndarray, begin: float, length: float, width: int, ridge: float, rng: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(w, a, b) of random units and a constant for a slab of time, and the share of the mean square that is left."""
    from scipy.linalg import solve

    n, d = starts.shape
    velocity = ends - starts
    at = starts + (begin + length * rng.uniform(size=(n, 1))) * velocity
    a = rng.standard_normal((width, d))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b = -np.sum(a * at[rng.integers(0, n, width)], axis=1)
    a, b = np.concatenate([a, np.zeros((1, d))]), np.append(b, 1.0)
    squares, moments = np.zeros((width + 1, width + 1)), np.zeros((width + 1, d))
    for k in range(0, n, ROWS):
        features = np.maximum(at[k : k + ROWS] @ a.T + b, 0.0)
        squares += features.T @ features
        moments += features.T @ velocity[k : k + ROWS]
    w = solve(squares + ridge * np.trace(squares) / len(squares) * np.eye(len(squares)), moments, assume_a="pos")
    # |v - F w|^2 = |v|^2 - 2 <w, F^T v> + <w, F^T F w>
    total = float(np.sum(velocity**2))
    left = total - 2 * float(np.sum(w * moments)) + float(np.sum(w * (squares @ w)))
    return w, a, b, max(left, 0.0) / total
