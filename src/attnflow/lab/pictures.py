"""What the page shows of tokens at one time: three coordinates, clusters, overlaps, sizes of degrees, attention."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from attnflow import fields, masks, observe, spaces
from attnflow.errors import InvalidInput
from attnflow.lab.frames import pack
from attnflow.lab.limits import Axes
from attnflow.precision import full_precision
from attnflow.tokens import Tokens
from attnflow.wording import shown

COUNTED = 512
"""Tokens of which all overlaps are counted; of more tokens that many evenly chosen ones."""
BINS, DEGREES, ROWS, DESCRIBED = 40, 12, 64, 200
WITHOUT_BETA = 0.1
"""The linking distance where there is no beta."""


@dataclasses.dataclass
class Eye:
    """Three coordinates of many: chosen ones, or principal ones that follow the tokens without jumps."""

    chosen: tuple[int, ...] | None
    frame: np.ndarray | None = None
    """(d, 3) orthonormal columns."""

    @classmethod
    def looking(cls, axes: Axes, d: int) -> "Eye":
        """The eye that looks at tokens in d dimensions along `axes`; up to three dimensions are all drawn."""
        if axes is not None and max(axes) >= d:
            raise InvalidInput(f"`axes` is {shown(list(axes))}; give coordinates from 0 to {d - 1}, or principal.")
        return cls(tuple(range(d)) if d <= 3 else axes)

    @property
    def count(self) -> int:
        """How many coordinates are drawn."""
        return 3 if self.chosen is None else max(len(self.chosen), 2)

    def see(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """(n, 2 or 3) what is drawn."""
        if self.chosen is not None:
            seen = x[:, list(self.chosen)]
            return np.pad(seen, ((0, 0), (0, 1))) if seen.shape[1] == 1 else seen
        some = evenly(len(x), COUNTED)
        _, _, rows = np.linalg.svd(x[some] * np.sqrt(masses[some])[:, None], full_matrices=False)
        axes = rows[:3].T
        if axes.shape[1] < 3:  # fewer than three tokens: any orthonormal columns beside theirs
            axes = np.linalg.qr(np.hstack([axes, np.eye(len(axes))]))[0][:, :3]
        if self.frame is not None:  # the rotation of the new columns that comes closest to the old ones
            left, _, right = np.linalg.svd(axes.T @ self.frame)
            axes = axes @ left @ right
        self.frame = axes
        return x @ axes

    def project(self, x: np.ndarray) -> np.ndarray:
        """Other points as the last tokens were seen."""
        if self.chosen is None:
            return x @ self.frame
        seen = x[:, list(self.chosen)]
        return np.pad(seen, ((0, 0), (0, 1))) if seen.shape[1] == 1 else seen


def evenly(n: int, most: int) -> np.ndarray:
    """All numbers below n, or `most` evenly chosen ones."""
    count = min(n, most)
    return np.arange(count) * n // count


class Painter:
    """Makes frames of one system: it knows the space, the field, and how to look."""

    def __init__(self, space: Any, field: Any, axes: Axes, dim: int, beta: float | None):
        self.space, self.field, self.beta = space, field, beta
        self.eye = Eye.looking(axes, dim)
        self.spherical = isinstance(space, spaces.Sphere)
        self.linked = WITHOUT_BETA if beta is None or beta < 0 else observe.cluster_scale(beta)
        self.widest = 1.0

    def frame(self, t: float, x: np.ndarray, masses: np.ndarray, place: np.ndarray | None = None, **said: Any) -> bytes:
        """The frame of tokens x at the time t; `said` are numbers that go with it, such as the energy."""
        found = observe.clusters(Tokens(x, masses, space=self.space), scale=self.linked)
        seen = self.eye.see(x, masses)
        self.widest = max(self.widest, float(np.sqrt((x**2).sum(axis=1).max())))
        top = slice(0, DESCRIBED)
        some = evenly(len(x), COUNTED)
        wide = "<u2" if found.count < 2**16 else "<u4"
        arrays = {
            "positions": (seen / self.widest).astype("<f4"),
            "labels": found.labels.astype(wide),
            "radii": found.radii.astype("<f4"),
            "cluster_masses": found.masses.astype("<f4"),
            "centres": (self.eye.project(found.centres[top]) / self.widest).astype("<f4"),
        }
        if self.spherical:
            gram = np.clip(x[some] @ x[some].T, -1, 1)
            arrays |= {"overlaps": _histogram(gram), "modes": sizes_of_degrees(gram, masses[some], x.shape[1])}
        if isinstance(self.field, fields.Attention):
            arrays |= self._attention(t, x, masses, place, found.labels)
        order = float(np.linalg.norm(masses @ x))
        said = {"count": found.count, "condensed": found.condensed, "order": order, "scale": self.linked, **said}
        return pack({"t": t, "beta": self.beta, "width": self.widest, **said}, arrays)

    def _attention(self, t: float, x: Any, masses: Any, place: Any, labels: Any) -> dict[str, np.ndarray]:
        """Attention among a few tokens, each row relative to its largest weight; none where it has no single table."""
        by_cluster = isinstance(self.field.mask, masks.Everyone)
        order = np.argsort(labels, kind="stable") if by_cluster else np.arange(len(x))
        rows = order[evenly(len(x), ROWS)]
        places = None if place is None else place[rows]
        try:
            table = observe.attention_matrix(
                self.field, Tokens(x[rows], masses[rows], place=places, space=self.space), t
            )
        except InvalidInput:
            return {}
        table = np.asarray(table)
        table = table.reshape(-1, *table.shape[-2:])[0]
        most = table.max(axis=1, keepdims=True)
        return {"attention": np.round(255 * table / np.where(most > 0, most, 1)).astype("|u1")}


def _histogram(gram: np.ndarray) -> np.ndarray:
    upper = gram[np.triu_indices(len(gram), 1)]
    counts = np.histogram(upper, BINS, (-1, 1))[0]
    return (counts * BINS / (2 * max(len(upper), 1))).astype("<f4")


def sizes_of_degrees(gram: np.ndarray, masses: np.ndarray, d: int) -> np.ndarray:
    """The size of degrees 1, 2, ...: the root of sum_ij m_i m_j P_k(<x_i, x_j>), P_k zonal on S^(d-1), P_k(1) = 1.

    (k + d - 2) P_{k+1} = (2k + d - 2) u P_k - k P_{k-1}; it is 1 for a single point.
    """
    m = masses / masses.sum()
    before, now, found = np.ones_like(gram), gram, []
    for k in range(1, DEGREES + 1):
        found.append(math.sqrt(max(m @ now @ m, 0.0)))
        before, now = now, ((2 * k + d - 2) * gram * now - k * before) / (k + d - 2)
    return np.array(found, "<f4")


class DensityPainter:
    """Frames of a density on S^1 or S^2: points of a grid that stay where they are, with masses that change."""

    def __init__(self, points: np.ndarray, share: np.ndarray, beta: float | None, dim: int):
        self.points, self.share, self.beta, self.dim = points, share, beta, dim

    def frame(self, t: float, values: np.ndarray, **said: Any) -> bytes:
        """The frame of a density with these values at the points; `share` is the uniform mass of each."""
        masses = np.maximum(values, 0) * self.share
        masses = masses / masses.sum()
        # a zonal density in more dimensions is drawn by height; the mean of the picture is not its mean
        order = float(np.linalg.norm(masses @ self.points)) if self.dim == self.points.shape[1] else math.nan
        arrays = {"positions": self.points.astype("<f4"), "masses": masses.astype("<f4")}
        return pack({"t": t, "beta": self.beta, "order": order, "condensed": False, "count": 0, **said}, arrays)


def ring_of_points(count: int) -> np.ndarray:
    """Equispaced points of the circle."""
    angles = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def spiral_of_points(count: int) -> np.ndarray:
    """Points of S^2 that share its area evenly: heights in equal steps, each turned by the golden angle."""
    height = (2 * np.arange(count) + 1) / count - 1
    angle = np.pi * (3 - math.sqrt(5)) * np.arange(count)
    across = np.sqrt(1 - height**2)
    return np.stack([across * np.cos(angle), across * np.sin(angle), height], axis=1)


def values_at(density: Any, points: np.ndarray) -> np.ndarray:
    """A density at points of the picture: by height where it is zonal in any dimension."""
    with full_precision():
        if density.basis.named == "heights":
            return np.asarray(density(heights=points[:, -1]))
        return np.asarray(density(points))


def labels_of(names: Iterable[Any] | None) -> list[str] | None:
    """Words of tokens, short ones, for the page."""
    return None if names is None else [str(one)[:40] for one in names][:5000]
