"""Clusters by angular connectivity: two tokens are linked when they are closer than a scale.

Labels are the connected components, found exactly. In low dimension points of one cell of side scale/sqrt(d) are
linked by construction, cells are compared through their balls, and only pairs of balls that neither surely touch nor
surely miss are looked into: O(n log n). In higher dimension a breadth-first search by blocks costs O(n^2 d).
"""

import dataclasses
import math
from typing import Any

import numpy as np

from attnflow.axes import Number
from attnflow.checks import number
from attnflow.errors import InvalidInput
from attnflow.spaces import Sphere
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
    """The connected components of tokens linked within `scale` (an angle on the sphere), one system."""
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
    sphere = isinstance(tokens.space, Sphere)
    if sphere and scale >= np.pi:
        component = np.zeros(tokens.n, dtype=np.int64)
    else:
        component = components(x, 2 * np.sin(scale / 2) if sphere else scale)
    return _describe(tokens, x, component, scale)


def components(x: np.ndarray, radius: float) -> np.ndarray:
    """Component numbers (0, 1, ...) of the graph that links points at Euclidean distance <= radius."""
    if len(x) > 512 and x.shape[1] <= LARGEST_CELL_DIMENSION:
        return _by_cells(x, radius)
    return _by_search(x, radius)


def _by_search(x: np.ndarray, radius: float, block: int = 512) -> np.ndarray:
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
            near = _squares(x[rest], x[now]).min(axis=1) <= radius**2
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


def _by_cells(x: np.ndarray, radius: float) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    side = radius / np.sqrt(x.shape[1])
    corner = np.floor((x - x.min(axis=0)) / side).astype(np.int64)
    code = np.ravel_multi_index(tuple(corner.T), tuple(corner.max(axis=0) + 1))
    _, cell, size = np.unique(code, return_inverse=True, return_counts=True)
    cells = len(size)
    centre = np.stack([np.bincount(cell, column, cells) for column in x.T], axis=1) / size[:, None]
    reach = np.zeros(cells)
    np.maximum.at(reach, cell, np.linalg.norm(x - centre[cell], axis=1))

    tree = cKDTree(centre)
    pairs = tree.query_pairs(radius + 2 * reach.max(), output_type="ndarray")
    apart = np.linalg.norm(centre[pairs[:, 0]] - centre[pairs[:, 1]], axis=1)
    slack = reach[pairs[:, 0]] + reach[pairs[:, 1]]

    def join(links: np.ndarray) -> np.ndarray:
        graph = coo_array((np.ones(len(links), bool), (links[:, 0], links[:, 1])), shape=(cells, cells))
        return connected_components(graph, directed=False)[1]

    sure = pairs[apart + slack <= radius]
    label = join(sure)
    open_ = (apart + slack > radius) & (apart - slack <= radius) & (label[pairs[:, 0]] != label[pairs[:, 1]])
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
            if _closer_than(members_a, members_b, radius):
                parent[rb] = ra
        label = np.unique([root(k) for k in label], return_inverse=True)[1]
    return label[cell]


def _closer_than(a: np.ndarray, b: np.ndarray, radius: float) -> bool:
    """Whether some point of `a` is within `radius` of some point of `b`."""
    from scipy.spatial import cKDTree

    if len(a) * len(b) <= 4096:
        return bool((_squares(a, b) <= radius**2).any())
    small, large = (a, b) if len(a) < len(b) else (b, a)
    found, _ = cKDTree(large).query(small, distance_upper_bound=np.nextafter(radius, np.inf))
    return bool(np.isfinite(found).any())


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
    flat = np.linalg.norm(centres, axis=1) < 1e-12  # a cluster that surrounds the origin: any member will do
    if flat.any():
        centres[flat] = [x[np.argmax(labels == k)] for k in np.flatnonzero(flat)]
    centres = np.asarray(tokens.space.retract(centres))
    radii = np.zeros(len(order))
    np.maximum.at(radii, labels, np.asarray(tokens.space.distance(x, centres[labels])))
    return Clusters(labels.astype(np.int32), centres, total[order], radii, float(scale))
