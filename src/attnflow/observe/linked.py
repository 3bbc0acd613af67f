"""Connected components of points that are linked when they are close, found exactly.

In low dimension points of one cell of side length/sqrt(d) are linked by construction, cells are compared through their
balls, and only pairs of balls that neither surely touch nor surely miss are looked into: O(n log n). In higher
dimension a breadth-first search costs O(n^2 d), most of it in matrix products.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

LARGEST_CELL_DIMENSION = 4
FEW_COLUMNS = 8
"""Up to so many coordinates squares of distances are added up one by one; beyond, the Gram matrix decides first."""
KEPT_LINKS = 4096
"""Points whose links are kept as one matrix of booleans."""
BATCH = 1 << 14
"""Pairs of points in the first batch of doubtful cells; each later batch may have twice as many."""
LARGE = 4096
"""Pairs of points of two cells from which on a tree of the points decides."""


@dataclasses.dataclass(frozen=True)
class Links:
    """Which points are linked: those at most `sure` apart in R^d, and of those up to `possible` the ones of `asked`."""

    sure: float
    possible: float
    asked: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    """Of pairs (a_k, b_k); not needed where both lengths are the same."""

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(len(a), len(b)) whether two points are linked."""
        linked, possible = within(a, b, self.sure, self.possible)
        if self.asked is not None and self.possible > self.sure:
            i, j = np.nonzero(~linked & possible)
            linked[i, j] = self.asked(a[i], b[j])
        return linked

    def of(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(pairs,) whether a_k and b_k are linked."""
        squares = squares_of(a, b)
        linked = squares <= self.sure**2
        if self.asked is not None and self.possible > self.sure:
            (open_,) = np.nonzero(~linked & (squares <= self.possible**2))
            linked[open_] = self.asked(a[open_], b[open_])
        return linked

    def among(self, x: np.ndarray, block: int = 512) -> np.ndarray:
        """(n, n) whether two points of `x` are linked."""
        return np.concatenate([self.between(x[k : k + block], x) for k in range(0, len(x), block)])


def components(x: np.ndarray, links: Links | float) -> np.ndarray:
    """Component numbers (0, 1, ...) of the graph of `links`; a number links points at most that distance apart."""
    if not isinstance(links, Links):
        links = Links(links, links)
    if len(x) > 512 and x.shape[1] <= LARGEST_CELL_DIMENSION and links.sure > 0:
        return by_cells(x, links)
    return by_search(x, links)


def squares_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a_k - b_k|^2 of pairs of rows, from differences of coordinates: no cancellation for close points."""
    if a.shape[-1] > FEW_COLUMNS:
        away = a - b
        return np.asarray(np.einsum("...d,...d->...", away, away))
    total = np.zeros(np.broadcast_shapes(a.shape[:-1], b.shape[:-1]))
    for k in range(a.shape[-1]):
        total += (a[..., k] - b[..., k]) ** 2
    return total


def within(a: np.ndarray, b: np.ndarray, *lengths: float) -> list[np.ndarray]:
    """For each length, (len(a), len(b)) whether `squares_of` a pair is at most its square.

    In many dimensions |a|^2 + |b|^2 - 2 <a, b> decides, where it is farther from the square of the length than both
    formulas can err: a product of d terms is off by at most (d + 2) eps times the sum of their sizes, and each of the
    four terms here, and |a - b|^2 itself, is at most 2 (|a|^2 + |b|^2). All other pairs are looked at one by one.
    """
    if a.shape[1] <= FEW_COLUMNS:
        squares = squares_of(a[:, None], b[None])
        return [squares <= length**2 for length in lengths]
    sizes = np.einsum("id,id->i", a, a)[:, None] + np.einsum("id,id->i", b, b)[None]
    squares, slack = sizes - 2 * (a @ b.T), 4 * (a.shape[1] + 8) * np.finfo(float).eps * sizes
    sure = [np.abs(squares - length**2) > slack for length in lengths]
    i, j = np.nonzero(~np.logical_and.reduce(sure))  # not finite is open too
    for k in range(0, len(i), KEPT_LINKS):
        some = i[k : k + KEPT_LINKS], j[k : k + KEPT_LINKS]
        squares[some] = squares_of(a[some[0]], b[some[1]])
    return [squares <= length**2 for length in lengths]


def by_search(x: np.ndarray, links: Links, block: int = 512) -> np.ndarray:
    """Breadth-first search; each point is compared once with all that are still unlabelled."""
    labels = np.full(len(x), -1, dtype=np.int64)
    known = links.among(x) if len(x) <= KEPT_LINKS else None
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
            linked = links.between(x[now], x[rest]) if known is None else known[now][:, rest]
            near = rest[linked.any(axis=0)]
            labels[near] = count
            frontier = np.concatenate([frontier, near])
        count += 1
    return labels


def cells(x: np.ndarray, side: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cell of each point in a grid, and how many points each cell holds around which mean."""
    corner = np.floor((x - x.min(axis=0)) / side)
    code = np.zeros(len(x), np.int64)
    for column in corner.T:  # rows are told apart one coordinate at a time: there may be more cells than integers
        level = np.unique(column, return_inverse=True)[1]
        code = np.unique(code * (level.max() + 1) + level, return_inverse=True)[1]
    cell, size = code, np.bincount(code)
    centre = np.stack([np.bincount(cell, column, len(size)) for column in x.T], axis=1) / size[:, None]
    return cell, size, centre


def by_cells(x: np.ndarray, links: Links) -> np.ndarray:
    """Components through the cells of a grid."""
    from scipy.spatial import cKDTree

    cell, size, centre = cells(x, links.sure / np.sqrt(x.shape[1]))
    reach = np.zeros(len(size))
    np.maximum.at(reach, cell, np.linalg.norm(x - centre[cell], axis=1))
    pairs = cKDTree(centre).query_pairs(links.possible + 2 * reach.max(), output_type="ndarray")
    apart = np.linalg.norm(centre[pairs[:, 0]] - centre[pairs[:, 1]], axis=1)
    slack = reach[pairs[:, 0]] + reach[pairs[:, 1]]

    sure = apart + slack <= links.sure
    open_ = ~sure & (apart - slack <= links.possible)
    if links.asked is not None:  # about lone points all at once
        lone = open_ & (size[pairs] == 1).all(axis=1)
        sure[lone], open_ = links.asked(*np.moveaxis(centre[pairs[lone]], 1, 0)), open_ & ~lone
    label = _joined(np.arange(len(size)), pairs[sure])
    doubtful = pairs[open_][np.argsort(apart[open_] - slack[open_])]
    return _decided(x, cell, size, label, doubtful, links)[cell]


def _joined(label: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Labels after the labels of pairs of cells have become one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = int(label.max()) + 1
    graph = coo_array((np.ones(len(pairs), bool), (label[pairs[:, 0]], label[pairs[:, 1]])), shape=(count, count))
    return connected_components(graph, directed=False)[1][label]


def _decided(
    x: np.ndarray, cell: np.ndarray, size: np.ndarray, label: np.ndarray, doubtful: np.ndarray, links: Links
) -> np.ndarray:
    """Labels of cells after a closer look at doubtful pairs of them, nearest first.

    Pairs of small cells are decided in batches, and those that have got one label meanwhile are dropped. What is left
    are pairs of large cells, one by one.
    """
    order, start = np.argsort(cell, kind="stable"), np.concatenate([[0], np.cumsum(size)])
    sorted_ = x[order]
    work = size[doubtful].prod(axis=1)
    small, work = doubtful[work <= LARGE], work[work <= LARGE]
    batch = BATCH
    while len(small):
        apart = label[small[:, 0]] != label[small[:, 1]]
        small, work = small[apart], work[apart]
        some = max(1, int(np.searchsorted(np.cumsum(work), batch, side="right")))
        touch = _touching(sorted_, start, size, small[:some], work[:some], links)
        label, small, work, batch = _joined(label, small[:some][touch]), small[some:], work[some:], 2 * batch
    for a, b in doubtful[size[doubtful].prod(axis=1) > LARGE]:
        if label[a] != label[b] and _any_linked(
            sorted_[start[a] : start[a + 1]], sorted_[start[b] : start[b + 1]], links
        ):
            label[label == label[b]] = label[a]
    return np.unique(label, return_inverse=True)[1]


def _touching(
    x: np.ndarray, start: np.ndarray, size: np.ndarray, pairs: np.ndarray, work: np.ndarray, links: Links
) -> np.ndarray:
    """For each pair of cells whether a point of one is linked to a point of the other."""
    pair = np.repeat(np.arange(len(pairs)), work)
    number = np.arange(len(pair)) - np.repeat(np.cumsum(work) - work, work)
    i, j = np.divmod(number, size[pairs[pair, 1]])
    linked = links.of(x[start[pairs[pair, 0]] + i], x[start[pairs[pair, 1]] + j])
    return np.bincount(pair[linked], minlength=len(pairs)) > 0


def _any_linked(a: np.ndarray, b: np.ndarray, links: Links) -> bool:
    """Whether some point of `a` is linked to some point of `b`."""
    from scipy.spatial import cKDTree

    small, large = (a, b) if len(a) < len(b) else (b, a)
    found, _ = cKDTree(large).query(small, distance_upper_bound=np.nextafter(links.possible, np.inf))
    if (found <= links.sure).any():
        return True
    some, step = small[np.isfinite(found)], max(1, (1 << 20) // len(large))
    return any(links.between(some[k : k + step], large).any() for k in range(0, len(some), step))


def mass_around(x: np.ndarray, mass: np.ndarray, radius: float, block: int = 512) -> np.ndarray:
    """The mass within `radius` of each point; in low dimension that of the cells whose centres are within it."""
    if x.shape[1] > LARGEST_CELL_DIMENSION:
        near = (within(x[k : k + block], x, radius)[0] for k in range(0, len(x), block))
        return np.concatenate([rows @ mass for rows in near])
    from scipy.spatial import cKDTree

    cell, _, centre = cells(x, radius / (2 * np.sqrt(x.shape[1])))
    held = np.bincount(cell, mass)
    i, j = cKDTree(centre).query_pairs(radius, output_type="ndarray").T
    around = held + np.bincount(i, held[j], len(held)) + np.bincount(j, held[i], len(held))
    return around[cell]
