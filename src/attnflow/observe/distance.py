"""Wasserstein distance of order 1 between two measures, for the geodesic distance of their space."""

import numpy as np

from attnflow.errors import InvalidInput, MissingExtra, TooLarge
from attnflow.fields.argument_checks import checked_arguments
from attnflow.observe.observable import observable
from attnflow.spaces import Sphere, Torus
from attnflow.tokens import Measure, Tokens

LARGEST_PLAN = 4000


@observable
@checked_arguments
def distance(mu: Tokens | Measure, nu: Tokens | Measure, *, limit: int = LARGEST_PLAN) -> float:
    """W_1(mu, nu), exact: by sorting on the circle, by linear programming (POT) on other spaces.

    On the circle W_1 = min_c of the integral of |F - G - c| over the angle, the minimum being at a weighted median
    of F - G: O(n log n). Elsewhere it costs O(n^3), and more than `limit` tokens are refused.
    """
    if mu.space != nu.space:
        raise InvalidInput(f"`mu` lives on {mu.space} and `nu` on {nu.space}; they must share a space.")
    mu.single("mu")
    nu.single("nu")
    mu, nu = mu.member(), nu.member()  # without absent rows
    if isinstance(mu.space, Sphere | Torus) and mu.dim == 2:
        return _on_circle(mu, nu)
    if max(mu.n, nu.n) > limit:
        raise TooLarge(
            f"an exact plan between {mu.n} and {nu.n} tokens is over the limit of {limit}; "
            "thin the tokens or raise `limit` (time grows like n^3)."
        )
    try:
        import ot
    except ImportError:
        raise MissingExtra("distances off the circle need POT; install `attnflow[transport]`.") from None
    x, y = np.asarray(mu.positions), np.asarray(nu.positions)
    cost = np.asarray(mu.space.distance(x[:, None, :], y[None, :, :]))
    return float(ot.emd2(np.asarray(mu.masses), np.asarray(nu.masses), cost))


def _on_circle(mu: Tokens | Measure, nu: Tokens | Measure) -> float:
    angles = np.concatenate([_angles(mu), _angles(nu)])
    steps = np.concatenate([np.asarray(mu.masses), -np.asarray(nu.masses)])
    order = np.argsort(angles)
    angles, steps = angles[order], steps[order]
    gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
    height = np.cumsum(steps)  # F - G between this atom and the next
    by_height = np.argsort(height)
    weight = np.cumsum(gaps[by_height])
    median = height[by_height][np.searchsorted(weight, weight[-1] / 2)]
    return float(np.sum(gaps * np.abs(height - median)))


def _angles(tokens: Tokens | Measure) -> np.ndarray:
    x = np.asarray(tokens.positions)
    return np.mod(np.arctan2(x[:, 1], x[:, 0]), 2 * np.pi)
