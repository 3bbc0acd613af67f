"""Points of the plane in two interleaved classes, which no straight line separates."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from attnflow.checks import generator, number, shown
from attnflow.errors import InvalidInput
from attnflow.feasible import length

TURN = 1.5 * np.pi
"""Angle that an arm of the spirals turns through."""


def interleaved_classes(
    n: int, kind: str = "spirals", *, seed: int = 0, noise: float = 0.02
) -> tuple[Float[np.ndarray, "n 2"], Int[np.ndarray, " n"]]:
    """`n` points of the plane and their classes, 0 and 1 by turns; along each curve s is uniform in (0, 1).

    * "spirals": +-r (cos a, sin a) with r = 0.15 + 0.85 s and a = 1.5 pi s. Unrolling them is a flow of the plane.
    * "moons": two half circles that reach into each other. Also a flow of the plane.
    * "circles": radii 1 and 1/2, one around the other. No flow of the plane brings them to two sides of a line, for it
      carries the inside of a closed curve to the inside (a finite sample it can, by a slit between two points); with a
      third dimension (`padded`) it is easy.

    `noise` is the standard deviation of a Gaussian added to every coordinate.
    """
    length("n", n, 2, 4)
    if not isinstance(kind, str) or kind not in _CURVES:
        raise InvalidInput(f"`kind` is {shown(kind)}; use one of {', '.join(map(repr, _CURVES))}.")
    number("noise", noise, low=0.0)
    rng = generator(seed)
    labels = np.arange(n) % 2
    curve = _CURVES[kind](rng.uniform(size=n), labels)
    return curve + noise * rng.standard_normal((n, 2)), labels


def _polar(radius: np.ndarray, angle: np.ndarray) -> np.ndarray:
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def _spirals(s: np.ndarray, label: np.ndarray) -> np.ndarray:
    return _polar(0.15 + 0.85 * s, TURN * s + np.pi * label)


def _moons(s: np.ndarray, label: np.ndarray) -> np.ndarray:
    # (cos a, sin a) and (1 - cos a, 1/2 - sin a), about their common centre
    side = 1.0 - 2.0 * label
    return side[:, None] * (_polar(np.ones_like(s), np.pi * s) - np.array([0.5, 0.25]))


def _circles(s: np.ndarray, label: np.ndarray) -> np.ndarray:
    return _polar(1.0 - 0.5 * label, 2 * np.pi * s)


_CURVES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "spirals": _spirals,
    "moons": _moons,
    "circles": _circles,
}
