"""Optimal plans between two discrete measures for any cost, by linear programming."""

import itertools

import numpy as np

from attnflow.errors import InvalidInput, NotAccurate, TooLarge

LARGEST = 4000
"""Root of the number of pairs that POT's network simplex takes; for n against n tokens its time grows like n^3."""
LARGEST_WITHOUT_POT = 300
"""The same without POT: SciPy's HiGHS has one unknown a pair."""
MOST_EXCHANGES = 50
"""Exchanges of pairs for every row and column; a start that is right to 1e-7 needs a few in all."""


def plan(cost: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The (n, m) matrix of masses that are carried at the least total cost; rows sum to a, columns to b."""
    a, b = a / a.sum(), b / b.sum()
    if min(cost.shape) == 1:
        return np.asarray(a[:, None] * b[None])
    try:
        import ot
    except ImportError:
        return _by_highs(cost, a, b)
    return np.asarray(ot.emd(a, b, np.ascontiguousarray(cost), numItermax=10**7))


def require_feasible(n: int, m: int, limit: int | None) -> None:
    """Refuse a plan that would take too long, before its cost is computed."""
    most = limit or (LARGEST if _has_pot() else LARGEST_WITHOUT_POT)
    if min(n, m) > 1 and n * m > most**2:
        more = "" if _has_pot() else " With POT, `pip install attnflow[transport]`, the limit is 4,000."
        raise TooLarge(
            f"an exact plan between {n} and {m} tokens is over the limit of {most}² pairs; thin the "
            f"tokens, use `sliced_distance`, or raise `limit`.{more}"
        )


def _has_pot() -> bool:
    import importlib.util

    return importlib.util.find_spec("ot") is not None


def _by_highs(cost: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    from scipy.optimize import linear_sum_assignment, linprog
    from scipy.sparse import identity, kron, vstack

    n, m = cost.shape
    if n == m and np.ptp(a) == np.ptp(b) == 0.0:  # of equal masses some optimal plan is an assignment
        mass = np.zeros((n, m))
        mass[linear_sum_assignment(cost)] = 1 / n
        return mass
    rows = kron(identity(n), np.ones((1, m)), format="csr")
    columns = kron(np.ones((1, n)), identity(m), format="csr")[:-1]
    solution = linprog(cost.ravel(), A_eq=vstack([rows, columns]), b_eq=np.concatenate([a, b[:-1]]), method="highs")
    if solution.x is None:
        raise InvalidInput(f"no transport plan was found ({solution.message}); give measures without extreme masses.")
    return _vertex(cost, a, b, solution.x.reshape(n, m))


def _vertex(cost: np.ndarray, a: np.ndarray, b: np.ndarray, near: np.ndarray) -> np.ndarray:
    """An optimal plan to rounding, by the simplex method on trees, from a plan `near` that is right to 1e-7.

    A tree joins all rows and columns by the largest masses of `near`. Filled from its leaves, every pair with as
    much as its row and its column have left, it is a plan whose marginals are exact. Then pairs that are cheaper than
    the path between their ends enter, one by one: few, as the start is nearly optimal.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    (n, m), scale = cost.shape, float(cost.max())
    left = np.concatenate([side.astype(np.longdouble) / side.astype(np.longdouble).sum() for side in (a, b)])
    mass, rank = np.zeros((n, m), dtype=np.longdouble), 2.0 - near / max(float(near.max()), 1e-300)

    def tree_of(preference: np.ndarray) -> tuple[np.ndarray, dict[int, int]]:
        """The pairs of the tree of the least sum of a positive `preference`, and each node's parent, root first."""
        i, j = np.nonzero(preference)
        graph = minimum_spanning_tree(coo_array((preference[i, j], (i, n + j)), shape=(n + m, n + m)).tocsr()).tocoo()
        pairs = np.zeros((n, m), dtype=bool)
        pairs[graph.row, graph.col - n] = True
        return pairs, _parents(pairs)

    def pair(node: int, other: int) -> tuple[int, int]:
        return (node, other - n) if node < n else (other, node - n)

    def carry(i: int, j: int) -> None:
        moved = min(left[i], left[n + j])
        mass[i, j] += moved
        left[[i, n + j]] -= moved

    for node, parent in reversed(tree_of(rank)[1].items()):
        carry(*pair(node, parent))
    while left[:n].max() > 0 and left[n:].max() > 0:  # what `near` has wrong goes where it is cheap
        rows, columns = np.flatnonzero(left[:n] > 0), np.flatnonzero(left[n:] > 0)
        row, column = divmod(int(np.argmin(cost[np.ix_(rows, columns)])), len(columns))
        carry(int(rows[row]), int(columns[column]))
    pairs, parents = tree_of(np.where(mass > 0, 0.5, rank))
    for _ in range(MOST_EXCHANGES * (n + m)):
        prices = np.zeros(n + m, dtype=np.longdouble)
        for node, parent in parents.items():
            prices[node] = cost[pair(node, parent)] - prices[parent]
        excess = cost - prices[:n, None] - prices[n:]
        i, j = divmod(int(np.argmin(excess)), m)
        if excess[i, j] >= -4 * np.finfo(float).eps * scale:
            return np.asarray(mass, dtype=np.float64)
        path = _path(parents, i, n + j)
        steps = [pair(*ends) for ends in itertools.pairwise(path)]
        leaving = min(steps[::2], key=lambda step: mass[step])
        moved = mass[leaving]
        for k, step in enumerate([(i, j), *steps]):
            mass[step] += moved if k % 2 == 0 else -moved
        pairs[i, j], pairs[leaving] = True, False
        parents = _parents(pairs)
    raise NotAccurate(
        "an optimal plan is not exact to rounding; install POT, or give measures without equal distances."
    )


def _parents(pairs: np.ndarray) -> dict[int, int]:
    """The parent of every node of a tree of rows and columns but the root, row 0; parents come first."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    i, j = np.nonzero(pairs)
    graph = coo_array((np.ones(len(i)), (i, len(pairs) + j)), shape=(sum(pairs.shape),) * 2).tocsr()
    order, before = breadth_first_order(graph, 0, directed=False)
    return {int(node): int(before[node]) for node in order[1:]}


def _path(parents: dict[int, int], start: int, end: int) -> list[int]:
    """The nodes from `start` to `end` in a tree."""
    up, down = [start], [end]
    while up[-1] in parents:
        up.append(parents[up[-1]])
    while down[-1] not in up:
        down.append(parents[down[-1]])
    return up[: up.index(down[-1])] + down[::-1]
