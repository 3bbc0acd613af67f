"""What a figure tells of a flow: its clusters, its plateaus, the frames worth showing."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.fields import Attention
from attnflow.flows import Trajectory
from attnflow.observe import Plateau, plateaus
from attnflow.spaces import Euclidean

MOST_FRAMES = 400


@dataclasses.dataclass(frozen=True)
class Story:
    """One system of a flow, thinned, with what was read off it once for all figures."""

    flow: Trajectory
    clusters: Any
    plateaus: list[Plateau]
    labels: np.ndarray
    """Cluster number of each token at the plateau with the most clusters: the colours of all figures."""

    @property
    def times(self) -> np.ndarray:
        """Saved times."""
        return self.flow.time.values

    @property
    def beta(self) -> float | None:
        """Inverse temperature, for attention with Q = K = V = I, of which theory knows the levels."""
        field = self.flow.field
        return float(field.beta) if isinstance(field, Attention) and field.is_plain else None

    def frame_at(self, time: float) -> int:
        """The saved frame nearest to `time`."""
        return int(np.argmin(np.abs(self.times - time)))

    def moments(self) -> list[int]:
        """Frames that tell the story: start, condensation, the most crowded and the longest plateau, end."""
        last = len(self.times) - 1
        lasting = [p for p in self.plateaus if _is_told(p, self.flow) and p.start > 0]
        if not lasting:
            return sorted({0, last // 8, last // 3, last})
        crowded = max(lasting, key=lambda p: p.clusters)
        longest = max(lasting, key=lambda p: p.end / p.start)
        middles = {self.frame_at(np.sqrt(p.start * p.end)) for p in (crowded, longest)}
        return sorted({0, self.frame_at(lasting[0].start / 3), last} | middles)


def tell(flow: Trajectory) -> Story:
    """Look at the first member of `flow`, at MOST_FRAMES frames at most."""
    one = flow.member(**dict.fromkeys(flow.dims, 0)).thinned(MOST_FRAMES)
    one = dataclasses.replace(one, dataset=one.dataset.load())
    found = _grouped(one)
    energy = one.dataset["energy"].values if "energy" in one.dataset else np.full(len(one.time), np.nan)
    count, condensed = found["count"].values, found["condensed"].values
    list_ = plateaus(one.time.values, count, condensed, energy)
    several = [p for p in list_ if _is_told(p, one)]
    if several:
        best = max(several, key=lambda p: p.clusters)
        at = int(np.argmin(np.abs(one.time.values - np.sqrt(best.start * best.end))))
    else:
        at = -1
    return Story(one, found, list_, found["label"].values[at])


def _grouped(one: Trajectory) -> Any:
    """Clusters at the scale of beta where there is one; else within a tenth of the size of the cloud of tokens."""
    if isinstance(one.space, Euclidean):
        size = (one.positions**2).sum("dim").mean("token") ** 0.5
        shown = one.dataset.assign(positions=one.positions / size.where(size > 0, 1.0))
        return dataclasses.replace(one, dataset=shown).clusters(scale=0.1)
    try:
        scale = one.scale()
    except InvalidInput:
        scale = 0.1
    return one.clusters(scale=scale)


def _is_told(plateau: Plateau, flow: Trajectory) -> bool:
    """Whether a plateau is one of clusters: more than one, and not mostly lone tokens that have not met yet."""
    return 1 < plateau.clusters <= max(flow.dataset.sizes["token"] // 3, 8)
