"""Clusters by connectivity: two tokens are linked when their distance on the space is at most a scale.

Labels are the connected components, found exactly. In low dimension points of one cell of side scale/sqrt(d) are
linked by construction, cells are compared through their balls, and only pairs of balls that neither surely touch nor
surely miss are looked into: O(n log n). In higher dimension a breadth-first search by blocks costs O(n^2 d). Chords in
R^d decide where they can (`space.chords`), the distance on the space elsewhere.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Number
from attnflow.checks import number
from attnflow.errors import InvalidInput
from attnflow.precision import double
from attnflow.spaces import AbstractSpace
from attnflow.tokens import Measure, Tokens

LARGEST_CELL_DIMENSION = 4
WIDEST = 0.5  # radians: at beta < 4 the kernel is so wide that a larger scale would call everything one cluster


@dataclasses.dataclass(frozen=True)
class Clusters:
    """The clusters of one system, largest mass first."""

    labels: np.ndarray
    """(n,) number of the cluster of each token, -1 for absent rows."""
    centres: np.ndarray
    """(count, d) mass centres, on the space."""
    masses: np.ndarray
    """(count,) total masses."""
    radii: np.ndarray
    """(count,) distance from the centre to the farthest token."""
    scale: float
    """The linking distance."""

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.masses)

    @property
    def condensed(self) -> bool:
        """Whether every cluster is smaller than the linking distance.

        Before condensation it is not: iid tokens percolate into one chain, and the count says nothing about modes.
        """
        return bool(self.radii.max() <= self.scale)


def cluster_scale(beta: Number) -> float:
    """The linking angle for inverse temperature beta: beta^(-1/2), the range of the pair force, at most 0.5.

    Closer than about beta^(-1/2) a pair contracts its relative disturbances (arXiv:2410.06833). A negative beta repels,
    has no such range and is refused.
    """
    beta = number("beta", beta)
    if beta < 0:
        raise InvalidInput(
            f"`beta` is {beta:g}, where tokens repel each other; give at least 0, or choose an angle as `scale`."
        )
    return min(WIDEST, 1.0 / math.sqrt(beta)) if beta > 0 else WIDEST


def clusters(tokens: Tokens | Measure, *, scale: float) -> Clusters:
    """The connected components of tokens linked within the distance `scale` (an angle on the sphere), one system."""
    tokens.single()
    scale = number("scale", scale)
    if not scale > 0:
        raise InvalidInput(f"`scale` is {scale}; give a positive angle, say `cluster_scale(beta)`.")
    if tokens.present is not None:
        there = np.asarray(tokens.present)
        own = Measure(tokens.positions[there], tokens.masses[there], place=tokens.place[there], space=tokens.space)
        found, labels = clusters(own, scale=scale), np.full(tokens.n, -1, np.int32)
        labels[there] = found.labels
        return dataclasses.replace(found, labels=labels)
    x = np.asarray(tokens.positions, dtype=np.float64)
    links = _Links(*tokens.space.chords(scale), lambda a, b: _filled_up(_distances, tokens.space, a, b) <= scale)
    return _describe(tokens, x, _components(x, links), scale)


def components(x: np.ndarray, radius: float) -> np.ndarray:
    """Component numbers (0, 1, ...) of the graph that links points at Euclidean distance <= radius."""
    return _components(x, _Links(radius, radius))


@dataclasses.dataclass(frozen=True)
class _Links:
    """Which points are linked: those at most `sure` apart in R^d, and of those up to `possible` the ones of `asked`."""

    sure: float
    possible: float
    asked: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    """Of pairs (a_k, b_k); not needed where both lengths are the same."""

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(len(a), len(b)) whether two points are linked."""
        squares = _squares(a, b)
        linked = squares <= self.sure**2
        if self.asked is not None and self.possible > self.sure:
            i, j = np.nonzero(~linked & (squares <= self.possible**2))
            linked[i, j] = self.asked(a[i], b[j])
        return linked


def _filled_up(function: Callable[..., Any], space: AbstractSpace, *rows: np.ndarray) -> np.ndarray:
    """What `function` makes of rows, filled up to a power of two: few sizes are compiled."""
    count = len(rows[0])
    if not count:
        return np.zeros(0)
    pad = [(0, (1 << (count - 1).bit_length()) - count), (0, 0)]
    return np.asarray(double(function)(space, *(np.pad(a, pad, "edge") for a in rows)))[:count]


@eqx.filter_jit
def _distances(space: AbstractSpace, a: Any, b: Any) -> Any:
    return space.distance(jnp.asarray(a), jnp.asarray(b))


@eqx.filter_jit
def _retracted(space: AbstractSpace, x: Any) -> Any:
    return space.retract(jnp.asarray(x))


def _components(x: np.ndarray, links: _Links) -> np.ndarray:
    if len(x) > 512 and x.shape[1] <= LARGEST_CELL_DIMENSION and links.sure > 0:
        return _by_cells(x, links)
    return _by_search(x, links)


def _by_search(x: np.ndarray, links: _Links, block: int = 512) -> np.ndarray:
    """Breadth-first search; each point is compared once with all that are still unlabelled."""
    labels = np.full(len(x), -1, dtype=np.int64)
    count = 0
    for seed in range(len(x)):
        if labels[seed] >= 0:
            continue
        labels[seed] = count
        frontier = np.array([seed])
        while len(frontier):
            rest = np.flatnonzero(labels < 0)
            if not len(rest):
                break
            now, frontier = frontier[:block], frontier[block:]
            near = links.between(x[rest], x[now]).any(axis=1)
            labels[rest[near]] = count
            frontier = np.concatenate([frontier, rest[near]])
        count += 1
    return labels


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a_i - b_j|^2 without cancellation for close points."""
    total = np.zeros((len(a), len(b)))
    for k in range(a.shape[1]):
        total += (a[:, k, None] - b[None, :, k]) ** 2
    return total


def _by_cells(x: np.ndarray, links: _Links) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    side = links.sure / np.sqrt(x.shape[1])
    corner = np.floor((x - x.min(axis=0)) / side).astype(np.int64)
    code = np.ravel_multi_index(tuple(corner.T), tuple(corner.max(axis=0) + 1))
    _, cell, size = np.unique(code, return_inverse=True, return_counts=True)
    cells = len(size)
    centre = np.stack([np.bincount(cell, column, cells) for column in x.T], axis=1) / size[:, None]
    reach = np.zeros(cells)
    np.maximum.at(reach, cell, np.linalg.norm(x - centre[cell], axis=1))

    tree = cKDTree(centre)
    pairs = tree.query_pairs(links.possible + 2 * reach.max(), output_type="ndarray")
    apart = np.linalg.norm(centre[pairs[:, 0]] - centre[pairs[:, 1]], axis=1)
    slack = reach[pairs[:, 0]] + reach[pairs[:, 1]]

    def join(links: np.ndarray) -> np.ndarray:
        graph = coo_array((np.ones(len(links), bool), (links[:, 0], links[:, 1])), shape=(cells, cells))
        return connected_components(graph, directed=False)[1]

    sure = apart + slack <= links.sure
    open_ = ~sure & (apart - slack <= links.possible)
    if links.asked is not None:  # about lone points all at once
        lone = open_ & (size[pairs] == 1).all(axis=1)
        sure[lone], open_ = links.asked(*np.moveaxis(centre[pairs[lone]], 1, 0)), open_ & ~lone
    label = join(pairs[sure])
    open_ &= label[pairs[:, 0]] != label[pairs[:, 1]]
    if open_.any():
        order = np.argsort(cell, kind="stable")
        start = np.concatenate([[0], np.cumsum(size)])
        parent = np.arange(label.max() + 1)

        def root(k: int | np.integer) -> int | np.integer:
            while parent[k] != k:
                parent[k] = parent[parent[k]]
                k = parent[k]
            return k

        doubtful = pairs[open_][np.argsort(apart[open_] - slack[open_])]
        for a, b in doubtful:
            ra, rb = root(label[a]), root(label[b])
            if ra == rb:
                continue
            members_a = x[order[start[a] : start[a + 1]]]
            members_b = x[order[start[b] : start[b + 1]]]
            if _any_linked(members_a, members_b, links):
                parent[rb] = ra
        label = np.unique([root(k) for k in label], return_inverse=True)[1]
    return label[cell]


def _any_linked(a: np.ndarray, b: np.ndarray, links: _Links) -> bool:
    """Whether some point of `a` is linked to some point of `b`."""
    from scipy.spatial import cKDTree

    if len(a) * len(b) <= 4096:
        return bool(links.between(a, b).any())
    small, large = (a, b) if len(a) < len(b) else (b, a)
    found, _ = cKDTree(large).query(small, distance_upper_bound=np.nextafter(links.possible, np.inf))
    if (found <= links.sure).any():
        return True
    some, step = small[np.isfinite(found)], max(1, (1 << 20) // len(large))
    return any(links.between(some[k : k + step], large).any() for k in range(0, len(some), step))


def _describe(tokens: Tokens | Measure, x: np.ndarray, component: np.ndarray, scale: float) -> Clusters:
    mass = np.asarray(tokens.masses, dtype=np.float64)
    total = np.bincount(component, mass)
    order = np.argsort(-total, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    labels = rank[component]
    weight = np.where(total[component] > 0, mass, 1.0)  # clusters of test particles get their plain mean
    sums = np.stack([np.bincount(labels, weight * column) for column in x.T], axis=1)
    centres: Any = sums / np.bincount(labels, weight)[:, None]
    member = x[np.unique(labels, return_index=True)[1]]
    nudged = _filled_up(_retracted, tokens.space, centres + 1e-12 * member)
    centres = _filled_up(_retracted, tokens.space, centres)
    # where the mean has no nearest point, as in a cluster that surrounds the origin, any member will do
    centres = np.where(np.linalg.norm(centres - nudged, axis=1, keepdims=True) < 0.1, centres, nudged)
    radii = np.zeros(len(order))
    np.maximum.at(radii, labels, _filled_up(_distances, tokens.space, x, centres[labels]))
    return Clusters(labels.astype(np.int32), centres, total[order], radii, float(scale))
