"""Optimal plans between two discrete measures for any cost, by linear programming."""

import numpy as np

from attnflow.errors import InvalidInput, TooLarge

LARGEST = 4000
"""Root of the number of pairs that POT's network simplex takes; for n against n tokens its time grows like n^3."""
LARGEST_WITHOUT_POT = 300
"""The same without POT: SciPy's HiGHS has one unknown a pair."""


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
    from scipy.optimize import linprog
    from scipy.sparse import identity, kron, vstack

    n, m = cost.shape
    rows = kron(identity(n), np.ones((1, m)), format="csr")
    columns = kron(np.ones((1, n)), identity(m), format="csr")[:-1]
    found = linprog(cost.ravel(), A_eq=vstack([rows, columns]), b_eq=np.concatenate([a, b[:-1]]), method="highs")
    if found.x is None:
        raise InvalidInput(f"no transport plan was found ({found.message}); give measures without extreme masses.")
    return np.asarray(found.x.reshape(n, m))
