"""One ReLU unit at a time: a wide field as a schedule of its units."""

from typing import Any

import numpy as np

from attnflow.checks import generator, number, shown, whole
from attnflow.control.schedule import Schedule, units
from attnflow.errors import InvalidInput

ORDERS = ("strang", "reshuffled", "trotter", "maurey")


def split(
    outer: Any, inner: Any, bias: Any, elements: int, *, order: str = "strang", duration: float = 1.0, seed: int = 0
) -> Schedule:
    """A schedule of about `elements` units for the flow of v(x) = sum_j w_j (<a_j, x> + b_j)_+ over `duration`.

    - "maurey": independent draws of j with probabilities p_j ~ |w_j| |a_j|, each run as w_j/p_j. The map converges
      like elements^(-1/2), with a constant that depends on sum |w_j| |a_j| and not on the number of units
      (arXiv:2602.08606, after Maurey and Barron); the only order for fewer elements than units.
    - "trotter": all units in turn, again and again: order 1 in the map.
    - "reshuffled": the same, in a random order each time: order 3/2 as measured.
    - "strang": there and back, half of the time each: order 2.

    The log-determinant is piecewise constant, and no order tried is better there than 1. The last three round
    `elements` to full blocks of n, or 2n, units.

    `outer` w (n, d), or (slabs, n, d) for weights that are constant in slabs of time of equal length; `inner` a
    (n, d), `bias` b (n,).
    """
    w, a, b = (np.asarray(value, float) for value in (outer, inner, bias))
    if a.ndim != 2 or b.shape != a.shape[:1] or w.shape[-2:] != a.shape or w.ndim not in (2, 3):
        raise InvalidInput(
            f"`outer`, `inner` and `bias` have shapes {w.shape}, {a.shape} and {b.shape}; give (n, d), (n, d) and (n,)."
        )
    if order not in ORDERS:
        raise InvalidInput(f"`order` is {shown(order)}; give one of {', '.join(ORDERS)}.")
    slabs = w.reshape(-1, *a.shape)
    count = max(whole("elements", elements, 1, 10**8) // len(slabs), 1)
    time, rng = number("duration", duration, low=1e-300) / len(slabs), generator(seed)
    found = [_slab(one, a, b, count, order, time, rng) for one in slabs]
    outer, which, times = (np.concatenate(part) for part in zip(*found, strict=True))
    return units(outer, a[which], b[which], times)


def _slab(
    w: np.ndarray, a: np.ndarray, b: np.ndarray, count: int, order: str, time: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(outer, which unit, durations) of all elements."""
    n = len(w)
    if order == "maurey":
        size = np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1)
        if not size.sum() > 0:
            raise InvalidInput("`outer` or `inner` vanishes, so that the field is constant; use Drift.")
        share = size / size.sum()
        which = rng.choice(n, size=count, p=share)
        return w[which] / share[which, None], which, np.full(count, time / count)
    if order == "strang":
        blocks = max(count // (2 * n), 1)
        which = np.tile(np.concatenate([np.arange(n), np.arange(n)[::-1]]), blocks)
    elif order == "trotter":
        blocks = max(count // n, 1)
        which = np.tile(np.arange(n), blocks)
    else:
        blocks = max(count // n, 1)
        which = np.concatenate([rng.permutation(n) for _ in range(blocks)])
    return w[which], which, np.full(len(which), time * n / len(which))
