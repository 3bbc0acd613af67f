"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.control import units
from attnflow.experiments import Mutation, altered
from attnflow_gallery.splitting_orders import simulate


def late(original: Any) -> Any:
    """Every element runs 1 % too long."""

    def pushed(field: Any, x: Any, count: int, order: str, seed: int) -> Any:
        extra = 1.0 if count > 8192 else 1.01
        w, a, b = field
        return list(simulate.split(w, a, b, count, order=order, seed=seed, duration=extra).push(x))

    return pushed


def unweighted(original: Any) -> Any:
    """Draws keep w_j, so that probable units count too much."""

    def pushed(field: Any, x: Any, count: int, order: str, seed: int) -> Any:
        if order != "maurey":
            return original(field, x, count, order, seed)
        w, a, b = field
        made = simulate.split(w, a, b, count, order=order, seed=seed)
        inner = np.asarray(made.field.kinds[0].inner.value)  # type: ignore[attr-defined]
        which = np.array([int(np.argmin(np.sum((a - one) ** 2, axis=1))) for one in inner])
        return list(units(w[which] * len(w), inner, b[which], made.durations).push(x))

    return pushed


def more_in_high_dimension(original: Any) -> Any:
    """sum |w||a| grows with the dimension."""

    def wide(parameters: Any, d: int, number: int) -> Any:
        w, a, b = original(parameters, d, number)
        return w * (d / 2) ** 0.5, a, b

    return wide


def smooth(original: Any) -> Any:
    """Log-determinants are replaced by a smooth function of the end point."""

    def pushed(field: Any, x: Any, count: int, order: str, seed: int) -> Any:
        end, _ = original(field, x, count, order, seed)
        return [end, np.sin(end).sum(axis=1)]

    return pushed


def in_turn(order: str) -> str:
    """Units one after the other where they would be drawn."""
    return "trotter" if order == "maurey" else order


MUTATIONS = (
    Mutation("1 % more time", simulate, "pushed", late),
    Mutation("draws without the weights 1/p", simulate, "pushed", unweighted),
    Mutation("units in turn in place of draws", simulate, "split", altered("order", in_turn)),
    Mutation("sum |w||a| grows with d", simulate, "wide", more_in_high_dimension),
    Mutation("log-determinants without steps", simulate, "pushed", smooth),
)
