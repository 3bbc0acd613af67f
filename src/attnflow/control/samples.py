"""Densities from samples alone, without gradients: ridge maps, one direction after another."""

from typing import Any

import numpy as np

from attnflow.checks import generator, reals, shown, whole
from attnflow.control.line import along
from attnflow.control.schedule import Schedule, chain
from attnflow.errors import InvalidInput

FEWEST = 8
"""Samples beyond the outer nodes of a map."""
LARGEST = 1e100
"""Of a coordinate: squares of distances stay within doubles."""


def match_samples(samples: Any, *, steps: int, cells: int = 12, candidates: int = 64, seed: int = 0) -> Schedule:
    """A schedule of ReLU units in R^d that carries the normal density to one like that of `samples`, (sample, d).

    It is found backwards, from the samples to the normal density. A step takes the direction a, of the axes and
    `candidates` random ones, along which the samples are farthest from normal in W_2, and applies the monotone
    piecewise linear map of <a, x> that sends their quantiles to `cells` + 1 equally spaced nodes. In the tails the map
    keeps the mean excess. An exact map of <a, x> takes KL(p_a || N(0, 1)) off the divergence of the samples from
    normal, p_a their density along a (ours). The schedule has steps (cells + 3) units.

    It is greedy: samples whose projections all look normal are left as they are, though the density is another, so the
    divergence stops falling. `schedule.log_density(points, log_base)` is the density, and `schedule.push` of normal
    points samples it.
    """
    from scipy.stats import norm

    x = sampled(samples)
    count, n, d = whole("steps", steps, 1, 10**5), *x.shape
    cells, rng = whole("cells", cells, 2, 10**4), generator(seed)
    others = whole("candidates", candidates, 0, 10**5)
    scores = norm.ppf((np.arange(n) + 0.5) / n)
    edge = float(norm.isf(FEWEST / n))
    nodes = np.linspace(-edge, edge, cells + 1)
    levels, excess = norm.cdf(nodes), float(norm.pdf(edge) / norm.sf(edge) - edge)
    parts: list[Schedule] = []
    for _ in range(count):
        tried = rng.standard_normal((others, d))
        tried = np.concatenate([np.eye(d), tried / np.linalg.norm(tried, axis=1, keepdims=True)])
        lines = np.sort(x @ tried.T, axis=0)
        best = int(np.argmax(np.mean((lines - scores[:, None]) ** 2, axis=0)))
        line, a = lines[:, best], tried[best]
        sources = np.quantile(line, levels, method="hazen")
        if not (np.diff(sources) > 0).all():
            raise InvalidInput("`samples` repeat values along a direction, so that they have no density; give others.")
        below, above = sources[0] - line[line < sources[0]].mean(), line[line > sources[-1]].mean() - sources[-1]
        part = along(sources, nodes, (excess / float(below), excess / float(above)), a)
        x = part.push(x)[0]
        parts.append(part)
    return chain(parts).inverse()


def sampled(samples: Any) -> np.ndarray:
    """The samples (sample, d), which are refused where they are few or have no density."""
    x = reals(samples)
    if x is None:
        raise InvalidInput(f"`samples` is {shown(samples)}; give real numbers (samples, d).")
    if x.ndim != 2 or x.shape[1] == 0 or not (np.abs(x) <= LARGEST).all():
        raise InvalidInput(f"`samples` has shape {x.shape}; give numbers (samples, d) within ±{LARGEST:g}.")
    if len(x) < 4 * FEWEST:
        raise InvalidInput(f"`samples` has {len(x)} rows; give at least {4 * FEWEST}.")
    if np.linalg.matrix_rank(x - x.mean(axis=0)) < x.shape[1]:
        raise InvalidInput(f"`samples` lie in a subspace of R^{x.shape[1]}, so that they have no density; give others.")
    return x
