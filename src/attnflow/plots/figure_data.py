"""What all figures of a flow need: its clusters, its plateaus, the frames that are shown."""

import dataclasses
from typing import Any

import numpy as np

from attnflow import certify
from attnflow.errors import InvalidInput, MissingExtra
from attnflow.fields import Attention
from attnflow.flows import AbstractTrajectory, LongFlow
from attnflow.flows.longtime import Tree
from attnflow.observe import Plateau, plateaus
from attnflow.plots.style import COLOURS, PALETTE, colours
from attnflow.plots.times import TimeAxis, time_axis

MOST_FRAMES = 400
FEW = len(COLOURS)
"""Clusters that can be told apart in one figure: by colour, and as leaves of a tree."""
MANY, SHARE = 1000, 0.99
"""Clusters of at least so many tokens are those that hold this share of the mass, if all tokens percolate."""
SAME, SAMPLE = 0.01, 4000
"""Frames nearer than this share of the whole way look the same; of more tokens a part tells the way."""
BRANCHES = 7
"""Clusters that give the colours of a long flow without a plateau."""


@dataclasses.dataclass(frozen=True)
class Gathering:
    """The clusters of a long flow after so many merges."""

    merges: int
    log_time: float
    """When the last of these merges was; -inf if there was none."""
    names: np.ndarray
    """(cluster,) the first token of each."""
    labels: np.ndarray
    """(token,) the name of its cluster."""
    centres: np.ndarray
    masses: np.ndarray


@dataclasses.dataclass(frozen=True)
class FigureData:
    """One system of a flow, thinned, with its clusters and plateaus, computed once for all figures."""

    flow: AbstractTrajectory
    clusters: Any
    plateaus: list[Plateau]
    labels: np.ndarray
    """Cluster number of each token on one plateau, the heaviest first: the colours of all figures."""
    shown: int
    """The frame that shows this plateau; the last one where there is none."""
    axis: TimeAxis
    tree: Tree | None = None
    """Merges, where the flow is one of `solve_long`."""
    stretches: Any = None
    """The plateaus of the tree, as a table; with log_proved where python-flint is installed."""
    leaves: Gathering | None = None
    """The clusters that the colours name, where there is a tree."""

    @classmethod
    def of(cls, flow: "AbstractTrajectory | FigureData") -> "FigureData":
        """The data of the first member of `flow`, at most MOST_FRAMES frames of it."""
        if isinstance(flow, FigureData):
            return flow
        one = flow.member(**dict.fromkeys(flow.dims, 0))
        if isinstance(one, LongFlow):
            return _of_long(dataclasses.replace(one, dataset=one.dataset.load()))
        one = one.thinned(MOST_FRAMES)
        one = dataclasses.replace(one, dataset=one.dataset.load())
        found = grouped(one)
        energy = one.dataset["energy"].values if "energy" in one.dataset else np.full(len(one.time), np.nan)
        list_ = plateaus(one.time.values, found["count"].values, found["condensed"].values, energy)
        best = _colouring([p for p in list_ if _has_clusters(p, one)])
        shown = len(one.time) - 1 if best is None else _frame_at(one.log_time.values, _middle(best))
        label = found["label"].values[shown]
        labels = np.where(label < 0, max(len(PALETTE), label.max() + 1), label)  # stragglers are grey
        return cls(one, found, list_, labels, shown, time_axis(one))

    @property
    def names(self) -> list[str] | None:
        """The labels of the tokens, where they have some."""
        own = self.flow.labels
        return None if own is None else own.tolist()

    @property
    def log_time(self) -> np.ndarray:
        """Natural logarithm of the saved times, -inf at the start."""
        return self.flow.log_time.values

    @property
    def beta(self) -> float | None:
        """Inverse temperature, for attention with Q = K = V = I, of which theory knows the levels."""
        field = self.flow.field
        return float(field.beta) if isinstance(field, Attention) and field.is_plain else None

    @property
    def curve(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Log times and energies, of a long flow at every step, else at the frames; None without an energy."""
        if self.tree is not None:
            stairs = self.tree.staircase
            log_time, energy = stairs["log_time"].values, stairs["energy"].values
            return np.append(log_time, self.axis.last), np.append(energy, energy[-1])
        return (self.log_time, self.flow.energy.values) if "energy" in self.flow.dataset else None

    @property
    def height(self) -> tuple[str, np.ndarray] | None:
        """The name and the values, frame by frame, of what climbs or falls: energy, else speed, else spread."""
        kept = (name for name in ("energy", "speed", "spread") if name in self.flow.dataset)
        name = next(kept, None)
        return None if name is None else (name, self.flow.dataset[name].values)

    @property
    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Log times and numbers of clusters, NaN where tokens percolate; of a long flow at its merges."""
        if self.tree is not None:
            merges, n = self.tree.merges["log_time"].values, self.flow.dataset.sizes["token"]
            left = n - np.append(np.arange(len(merges) + 1), len(merges))
            return np.concatenate([[-np.inf], merges, [self.axis.last]]), left.astype(float)
        counted = self.clusters["count"].values.astype(float)
        return self.log_time, np.where(self.clusters["condensed"].values, counted, np.nan)

    @property
    def count(self) -> int:
        """Clusters at the end."""
        if self.tree is not None:
            return self.flow.dataset.sizes["token"] - self.tree.merges.sizes["merge"]
        return int(self.clusters["count"].values[-1])

    def frame_at(self, log_time: float) -> int:
        """The last saved frame that is not after this time."""
        return _frame_at(self.log_time, log_time)

    def frame_on(self, plateau: Plateau) -> int:
        """The frame that shows a plateau: the first of a long flow, else one in the middle."""
        if self.tree is not None:
            return _frame_from(self.log_time, plateau.log_start)
        return self.frame_at(_middle(plateau))

    def masses_on(self, plateau: Plateau) -> np.ndarray:
        """Masses of the clusters on a plateau."""
        if self.tree is not None:
            return self.gathered(int(self.stretches["merges"][self.plateaus.index(plateau)])).masses
        return self.clusters["mass"].values[self.frame_on(plateau)]

    def colour(self, tokens: np.ndarray) -> str:
        """The colour that most of the mass of these tokens has."""
        masses = self.flow.dataset["masses"].values[tokens]
        return colours(np.argmax(np.bincount(self.labels[tokens], masses), keepdims=True))[0]

    def moments(self) -> list[int]:
        """The frames to show: start, condensation, the first, a middle and the last plateau, end.

        Frames that the tokens of the frame before have hardly left are dropped. Where none is left between start and
        end, those at which tokens have gone a quarter, a half and three quarters of their way.
        """
        way = self._way()
        lasting = [p for p in self.plateaus if _has_clusters(p, self.flow) and self.frame_on(p) > 0]
        some = (
            [lasting[k] for k in np.unique(np.linspace(0, len(lasting) - 1, 3).round().astype(int))] if lasting else []
        )
        found = _apart(way, {self._condensing(p) for p in some[:1]} | {self.frame_on(p) for p in some})
        if not found:
            found = _apart(way, {int(np.searchsorted(way, share * way[-1])) for share in (0.25, 0.5, 0.75)})
        return sorted({0, *found, len(way) - 1})

    def _way(self) -> np.ndarray:
        """How far the tokens have gone at every frame: the length of their path, their masses as weights."""
        step = max(1, len(self.labels) // SAMPLE)
        x, masses = self.flow.positions.values[:, ::step], self.flow.dataset["masses"].values[::step]
        moved = np.sqrt(np.sum(np.diff(x, axis=0) ** 2, axis=2) @ (masses / masses.sum()))
        return np.concatenate([[0.0], np.cumsum(moved)])

    def _condensing(self, first: Plateau) -> int:
        """The frame half way in energy to the first plateau; the first frame where tokens linger from the start on."""
        if any(self.frame_on(p) == 0 for p in self.plateaus):
            return 0
        if "energy" not in self.flow.dataset:
            return self.frame_at(first.log_start - float(np.log(3)))
        energy = self.flow.energy.values[: self.frame_on(first) + 1]
        return int(np.argmin(np.abs(energy - (energy[0] + energy[-1]) / 2)))

    def gathered(self, merges: int) -> Gathering:
        """The clusters after so many merges of the tree."""
        assert self.tree is not None
        return _gathered(self.flow, self.tree, merges)


def _of_long(one: LongFlow) -> FigureData:
    """The data of a flow of `solve_long`, whose tree knows the merges: nothing is counted on frames."""
    tree = one.tree
    try:
        table = certify.plateaus(one)
    except MissingExtra:
        table = tree.plateaus()
    columns = (table[name].values.tolist() for name in ("log_start", "log_end", "clusters", "energy"))
    list_ = [Plateau(*row) for row in zip(*columns, strict=True)]
    best = _colouring([p for p in list_ if _has_clusters(p, one)])
    if best is None:
        made = min(tree.merges.sizes["merge"], one.dataset.sizes["token"] - 1)
        merges = min(max(one.dataset.sizes["token"] - BRANCHES, 0), made)
    else:
        merges = int(table["merges"][list_.index(best)])
    leaves = _gathered(one, tree, merges)
    rank = np.argsort(np.argsort(-leaves.masses, kind="stable"))
    labels = rank[np.searchsorted(leaves.names, leaves.labels)]
    shown = _frame_from(one.log_time.values, leaves.log_time)
    return FigureData(one, grouped(one), list_, labels, shown, time_axis(one), tree, table, leaves)


def _gathered(flow: AbstractTrajectory, tree: Tree, merges: int) -> Gathering:
    labels = tree.labels(merges)
    log_time = -np.inf if merges == 0 else float(tree.merges["log_time"][merges - 1])
    names = np.unique(labels)
    masses = np.bincount(labels, flow.dataset["masses"].values)[names]
    frame = _frame_from(flow.log_time.values, log_time)
    return Gathering(merges, log_time, names, labels, flow.positions.values[frame][names], masses)


def grouped(one: AbstractTrajectory) -> Any:
    """Clusters at the scale of beta where there is one; else within a tenth of the size of the cloud of tokens.

    Of MANY tokens or more those that hold SHARE of the mass, where a few stragglers would link them all.
    """
    share = SHARE if one.dataset.sizes["token"] >= MANY and not isinstance(one, LongFlow) else 1.0
    if not np.isfinite(one.tokens(0).space.volume):
        size = (one.positions**2).sum("dim").mean("token").values ** 0.5
        return one.clusters(scale=0.1 * np.where(size > 0, size, 1.0), share=share)
    try:
        scale = one.scale()
    except InvalidInput:
        scale = 0.1
    return one.clusters(scale=scale, share=share)


def _apart(way: np.ndarray, frames: set[int]) -> list[int]:
    """The frames that look neither like the start nor like the end nor like the one before."""
    kept = [0]
    for frame in sorted(frames):
        if min(way[frame] - way[kept[-1]], way[-1] - way[frame]) > SAME * way[-1]:
            kept.append(frame)
    return kept[1:]


def _has_clusters(plateau: Plateau, flow: AbstractTrajectory) -> bool:
    """Whether a plateau is one of clusters: more than one, and not mostly lone tokens that have not met yet."""
    return 1 < plateau.clusters <= max(flow.dataset.sizes["token"] // 3, 8)


def _colouring(candidates: list[Plateau]) -> Plateau | None:
    """The plateau with the most clusters that can still be told apart, else with the fewest."""
    few = [p for p in candidates if p.clusters <= FEW]
    return max(few, key=lambda p: p.clusters) if few else min(candidates, key=lambda p: p.clusters, default=None)


def _middle(plateau: Plateau) -> float:
    """Log of a time on the plateau."""
    if np.isfinite(plateau.log_start):
        return (plateau.log_start + plateau.log_end) / 2
    return plateau.log_end - float(np.log(2))


def _frame_at(log_times: np.ndarray, log_time: float) -> int:
    """The last frame that is not after a time."""
    return max(int(np.searchsorted(log_times, log_time, side="right")) - 1, 0)


def _frame_from(log_times: np.ndarray, log_time: float) -> int:
    """The first frame that is not before a time."""
    return min(int(np.searchsorted(log_times, log_time)), len(log_times) - 1)
