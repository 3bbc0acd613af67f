"""Distances of measures on the sphere, and what bounds them where no token feels another."""

from typing import Any

import numpy as np

from attnflow.checks import number
from attnflow.errors import InvalidInput
from attnflow.tokens import Tokens


def angles(x: Any, y: Any) -> np.ndarray:
    """Angles between the unit vectors x (n, d) and y (m, d), accurate when they are small."""
    x, y = np.atleast_2d(np.asarray(x, float)), np.atleast_2d(np.asarray(y, float))
    apart = np.linalg.norm(x[:, None] - y[None], axis=-1)
    together = np.linalg.norm(x[:, None] + y[None], axis=-1)
    return np.asarray(2 * np.arctan2(apart, together))


def wasserstein(tokens: Tokens, others: Tokens, p: float = 2) -> float:
    """W_p of two measures on the sphere for the geodesic distance, by linear programming (SciPy's HiGHS)."""
    from scipy.optimize import linprog
    from scipy.sparse import identity, kron, vstack

    for name, one in (("tokens", tokens), ("others", others)):
        if not isinstance(one, Tokens) or one.dims:
            raise InvalidInput(f"`{name}` is not one system of tokens; pick one with `member`.")
    if tokens.space != others.space:
        raise InvalidInput(f"the measures are on {tokens.space} and {others.space}; give measures on one space.")
    p = number("p", p, low=1)
    cost = angles(tokens.positions, others.positions) ** p
    left, right = np.asarray(tokens.masses, float), np.asarray(others.masses, float)
    if len(right) == 1 or len(left) == 1:
        return float(np.sum(cost * left[:, None] * right[None]) ** (1 / p))
    n, m = cost.shape
    rows = kron(identity(n), np.ones((1, m)), format="csr")
    columns = kron(np.ones((1, n)), identity(m), format="csr")[:-1]
    found = linprog(cost.ravel(), A_eq=vstack([rows, columns]), b_eq=np.concatenate([left, right[:-1]]), method="highs")
    if found.x is None:
        raise InvalidInput(f"no transport plan was found ({found.message}); give measures of equal mass.")
    return float(max(found.fun, 0.0) ** (1 / p))


def shared_mass_bound(inputs: list[Tokens], targets: list[Tokens]) -> float:
    """A lower bound of W_1 of the first pair plus W_1 of the second, for schedules in which no token feels another.

    What the two inputs have in common stays common, so W_1 + W_1' >= m_0 min distance of the targets' supports, with
    m_0 the mass at common positions (ours, with arXiv:2411.04551, whose theorem needs attention for this reason).
    """
    if len(inputs) != 2 or len(targets) != 2:
        raise InvalidInput("give two inputs and two targets.")
    same = angles(inputs[0].positions, inputs[1].positions) < 1e-12
    shared = np.minimum(np.asarray(inputs[0].masses)[:, None], np.asarray(inputs[1].masses)[None])
    return float(np.sum(shared * same) * angles(targets[0].positions, targets[1].positions).min())
