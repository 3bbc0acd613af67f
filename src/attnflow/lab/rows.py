"""How rows of saved variables become frames: tokens that move, or a density that spreads."""

import abc
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from attnflow import fields, spaces
from attnflow.axes import Along
from attnflow.errors import InvalidInput
from attnflow.lab.limits import Axes, check_tokens
from attnflow.lab.pictures import (
    DensityPainter,
    Painter,
    labels_of,
    ring_of_points,
    spiral_of_points,
    values_at,
)
from attnflow.tokens.labels import label_array

AROUND, OVER = 256, 2000
"""Points of a density on the circle and on the sphere."""
LATEST = 690.0
"""The largest log t: e^690 is about 10^300."""
FRAME_DIMS = {"time", "token", "dim", "cell", "harmonic", "degree", "order", "part"}
"""Dimensions of frames; of any other, which makes a batch, the first member is shown."""
Shapes = Mapping[str, Mapping[Any, int]]
"""Sizes of the dimensions of variables, by the name of the variable."""


class AbstractPicture(abc.ABC):
    """How rows become frames."""

    starts: ClassVar[tuple[str, ...]]
    """Parts of work of which the picture needs one."""

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the page is told before the first frame."""

    @abc.abstractmethod
    def frame(self, row: dict[str, np.ndarray]) -> bytes:
        """The frame of one row: its variables by name."""

    def look_as(self, before: "AbstractPicture") -> None:
        """Look at tokens from where the picture before it did, so that nothing jumps."""
        if isinstance(self, Moving) and isinstance(before, Moving):
            self.painter.eye, self.painter.widest = before.painter.eye, before.painter.widest


class Moving(AbstractPicture):
    """Tokens that move."""

    starts = ("tokens",)

    def __init__(self, work: Any, axes: Axes, shapes: Shapes):
        field, tokens = getattr(work, "field", None), work.tokens
        self.n, self.d = (shapes["positions"][dim] for dim in ("token", "dim"))
        flat = np.asarray(tokens.masses).reshape(-1, self.n)[0]
        self.masses = flat / flat.sum()
        self.place = np.asarray(tokens.place).reshape(-1, self.n)[0]
        self.labels = label_array(tokens.labels)
        self.painter = Painter(tokens.space, field, axes, self.d, _beta(field))
        self.theory = _model(work)

    def facts(self) -> dict[str, Any]:
        """Numbers of tokens and coordinates, masses and words."""
        labels = None if self.labels is None else self.labels.reshape(-1, self.n)[0]
        masses = None if np.ptp(self.masses) == 0 else [float(f"{one:.5g}") for one in self.masses]
        facts = {"n": self.n, "d": self.d, "shown": self.painter.eye.count, "space": str(self.painter.space)}
        return facts | {"labels": labels_of(labels), "masses": masses, "kind": "tokens", "theory": self.theory}

    def frame(self, row: dict[str, np.ndarray]) -> bytes:
        """Positions, with time and energy where they are known."""
        said = {"energy": float(row["energy"])} if "energy" in row else {}
        if float(row.get("log_time", 0)) > LATEST:
            raise InvalidInput("the next frame is later than t = 10^300, where the page ends; open it in Python.")
        return self.painter.frame(float(row["time"]), row["positions"], self.masses, self.place, **said)


class Spread(AbstractPicture):
    """A density on the circle or the sphere, by coefficients or by cells."""

    starts = ("density", "cells")

    def __init__(self, work: Any, axes: Axes, shapes: Shapes):
        self.work, self.cells = work, getattr(work, "cells", None)
        circle = work.cells.dim == 2 if self.cells is not None else work.density.basis.dim == 2
        zonal = self.cells.zonal if self.cells is not None else work.density.basis.named == "heights"
        if circle and not zonal:
            self.points = ring_of_points(AROUND) if self.cells is None else _on_circle(self.cells.centres)
        else:
            self.points = spiral_of_points(OVER)
        share = np.full(len(self.points), 1 / len(self.points))
        self.dim = work.cells.dim if self.cells is not None else work.density.basis.dim
        self.painter = DensityPainter(self.points, share, _beta(work.field), self.dim)

    def facts(self) -> dict[str, Any]:
        """The number of points of the picture."""
        n, drawn = self.points.shape
        facts = {"n": n, "d": self.dim, "shown": drawn, "space": f"S^{self.dim - 1}", "kind": "density"}
        return facts | {"labels": None, "masses": None}

    def frame(self, row: dict[str, np.ndarray]) -> bytes:
        """The density at the points of the picture."""
        if self.cells is not None:
            values = row["masses"] / self.cells.measure
            if self.cells.zonal:
                angles = np.arccos(np.clip(self.points[:, -1], -1, 1))
                values = values[np.clip(np.searchsorted(self.cells.edges, angles) - 1, 0, len(values) - 1)]
        else:
            values = values_at(self.work.density.moved(row["coefficients"]), self.points)
        said = {name: float(row[name]) for name in ("energy",) if name in row}
        return self.painter.frame(float(row["time"]), values, **said)


def _on_circle(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _beta(field: Any) -> float | None:
    """The inverse temperature of a field, of the first member of a batch; None where it has none."""
    beta = getattr(getattr(field, "kernel", field), "beta", None)
    try:
        found = np.ravel(np.asarray(beta.values if isinstance(beta, Along) else beta, float))
    except TypeError:  # no beta, or one that changes in time
        return None
    return float(found[0]) if found.size and np.isfinite(found[0]) else None


def _model(work: Any) -> str | None:
    """The model by which `theory` knows the flow, "SA" or "USA0"; None where its closed forms do not hold."""
    field: Any = getattr(work, "field", None)
    plain = isinstance(field, fields.Attention) and field.is_plain and isinstance(work.tokens.space, spaces.Sphere)
    if not plain or getattr(work, "noise", None) is not None or getattr(work, "layer_step", None) is not None:
        return None
    try:
        return field.model if field.model in ("SA", "USA0") else None
    except InvalidInput:
        return None


def picture_class(name: str, shapes: Shapes) -> type[Moving] | type[Spread]:
    """Find the picture that saved variables allow.

    Arguments:
        name: what the variables were saved by, for a refusal.
        shapes: the shapes of the variables that have frames.

    Raises:
        InvalidInput: if the lab cannot draw these variables, or there are too many tokens.
    """
    positions, masses, coefficients = (shapes.get(key, {}) for key in ("positions", "masses", "coefficients"))
    if {"time", "token", "dim"} <= positions.keys():
        check_tokens(math.prod(size for dim, size in positions.items() if dim == "token" or dim not in FRAME_DIMS))
        return Moving
    has_one_density = "time" in coefficients and coefficients.keys() <= FRAME_DIMS
    if has_one_density or {"time", "cell"} <= masses.keys():
        return Spread
    raise InvalidInput(
        f"{name} has no frames with positions of tokens or a density; the lab draws what solve, solve_long, evolve and "
        "evolve_cells save."
    )


def picture_of(name: str, work: Any, axes: Axes, shapes: Shapes) -> AbstractPicture:
    """The picture that draws the frames of work.

    Arguments:
        name: what the frames were saved by, for a refusal.
        work: the work that computes or computed the frames.
        axes: the coordinates of tokens that are drawn, as `checked_axes` gives them.
        shapes: the shapes of the variables that have frames.
    """
    kind = picture_class(name, shapes)
    if all(getattr(work, part, None) is None for part in kind.starts):
        raise InvalidInput(f"the start of {name} is made by a plugin, which the lab does not run; open it in Python.")
    return kind(work, axes, shapes)


def first_member(values: Any, dims: tuple[str, ...], k: int) -> np.ndarray:
    """Row k of a variable, of the first member of a batch."""
    return np.asarray(values[tuple(k if d == "time" else slice(None) if d in FRAME_DIMS else 0 for d in dims)])
