"""The merge tree of a long flow: who met whom, when and where; plateaus between merges, and how they are left."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.fields import Softmax
from attnflow.flows.longtime.method import log_faster
from attnflow.observe.clusters import cluster_scale
from attnflow.precision import full_precision
from attnflow.tokens.labels import COORDINATE

if TYPE_CHECKING:
    import xarray as xr

FACTOR = 2.0
"""A plateau lasts by this factor in time, or more."""
LARGEST = 600
"""Coordinates of clusters up to which every plateau gets its rate of escape."""


@dataclasses.dataclass(frozen=True)
class Tree:
    """Made of a trajectory of `LongTime` by `flow.tree`."""

    dataset: "xr.Dataset"
    field: Any

    @property
    def merges(self) -> "xr.Dataset":
        """One row per merge.

        log_time; first and second, the names of the two clusters (a cluster is called by its first token, so the
        merged one keeps the name `first`); their masses; the point where they met; growth (logarithm of the largest
        size of a perturbation of size 1), rounding (what an error of rounding size may have become), undetermined
        (whether that is more than 1e-2); bound (relative error of forces by all merges so far), error (estimate of the
        error of log_time: the bound, and the errors of all steps, grown like the perturbation); evaluations so far.
        """
        names = [str(name) for name in self.dataset.data_vars if str(name).startswith("merge_")]
        return self.dataset[names].rename({name: name.removeprefix("merge_") for name in names}).reset_coords(drop=True)

    @property
    def staircase(self) -> "xr.Dataset":
        """Every step: log_time, energy, level = 2 beta E0 = 1 + 2 beta energy, and arc, the length of the path so far.

        On a plateau of clusters of masses M_q the level is the sum of M_q^2, and arc (in the metric weighted by masses)
        has a finite end: it is the clock in which the flow takes a finite time. It counts from where clusters are
        followed (from the start for at most 512 tokens).
        """
        names = {f"stair_{name}": name for name in ("log_time", "energy", "arc")}
        found = self.dataset[list(names)].rename(names).reset_coords(drop=True)
        return found.assign(level=1 + 2 * float(self.field.beta) * found["energy"])

    def labels(self, merges: int) -> np.ndarray:
        """The name of the cluster of every token after so many merges."""
        label = np.arange(self.dataset.sizes["token"])
        table = self.merges
        for first, second in zip(table["first"].values[:merges], table["second"].values[:merges], strict=True):
            label[label == second] = first
        return label

    def members(self, merges: int) -> list[list[Any]]:
        """The tokens of each cluster after so many merges, largest mass first: labels of tokens, else their numbers."""
        own, masses = self.labels(merges), self.dataset["masses"].values
        names = self.dataset[COORDINATE].values.tolist() if COORDINATE in self.dataset else list(range(len(own)))
        heaviest = sorted(np.unique(own).tolist(), key=lambda name: -float(masses[own == name].sum()))
        return [[names[k] for k in np.flatnonzero(own == name)] for name in heaviest]

    def linkage(self) -> np.ndarray:
        """The tree as SciPy's linkage matrix, for `scipy.cluster.hierarchy`: heights are log(1 + t)."""
        n, table = self.dataset.sizes["token"], self.merges
        if table.sizes["merge"] != n - 1:
            raise InvalidInput(
                f"the flow ended with {n - table.sizes['merge']} clusters; a linkage needs one: follow it with "
                "until=math.inf."
            )
        node, size = np.arange(n), np.ones(n)
        rows = []
        for k in range(n - 1):
            p, q = int(table["first"][k]), int(table["second"][k])
            size[p] += size[q]
            height = np.logaddexp(0.0, float(table["log_time"][k]))
            rows.append([min(node[p], node[q]), max(node[p], node[q]), height, size[p]])
            node[p] = n + k
        return np.array(rows, dtype=float).reshape(-1, 4)

    def plateaus(self) -> "xr.Dataset":
        """Stretches between merges in which clusters linger, and how each is left.

        A stretch is a plateau when it lasts by a factor of 2 in time or more and no two clusters are within
        `cluster_scale(beta)` at its beginning. log_start, log_end; clusters; merges (made before it); level, the sum of
        squared masses; energy, measured at its beginning; angle of the nearest pair; log_rate, logarithm of the
        fastest growth of a perturbation, with which it is left (`escape` has the direction; NaN here where clusters
        have more than 600 coordinates together, for which it takes long).
        """
        import xarray as xr

        times = np.concatenate([[-np.inf], self.merges["log_time"].values])
        if times.size <= self.dataset.sizes["token"] - 1:  # not to consensus: the last stretch is cut
            times = np.append(times, float(self.dataset["log_time"][-1]))
        scale = cluster_scale(float(self.field.beta))
        rows = []
        for k in range(len(times) - 1):
            if not times[k + 1] - times[k] >= np.log(FACTOR):
                continue
            x, mass, frame = self._clusters(k)
            apart = np.linalg.norm(x[:, None] - x[None, :], axis=2) + 4 * np.eye(len(x))
            angle = 2 * np.arcsin(min(apart.min() / 2, 1.0))
            if angle <= scale:
                continue
            energy = float(self.dataset["energy"][frame])
            rate = self.escape(k)["log_rate"].item() if x.size <= LARGEST else np.nan
            rows.append((times[k], times[k + 1], len(x), k, float(np.sum(mass**2)), energy, angle, rate))
        names = ("log_start", "log_end", "clusters", "merges", "level", "energy", "angle", "log_rate")
        kinds = (float, float, int, int, float, float, float, float)
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        return xr.Dataset({n: (("plateau",), np.array(c, t)) for n, c, t in zip(names, columns, kinds, strict=True)})

    def escape(self, merges: int) -> "xr.Dataset":
        """How the clusters after so many merges are left: the unstable eigenvector of their linearised motion.

        log_rate, its eigenvalue on the clock of the field; direction (cluster, dim), of length 1 in the metric weighted
        by masses; centre and mass of clusters. The sign is such that the nearest pair approaches. For one pair at
        angle a the rate is M (beta sin^2 a - cos a) e^(-beta (1 - cos a)), M its mass (USA0).
        """
        import xarray as xr

        x, mass, _ = self._clusters(merges)
        if len(x) < 2:
            raise InvalidInput(f"after {merges} merges one cluster is left; it stays for ever.")
        rates, level = _linearised(float(self.field.beta), isinstance(self.field.normaliser, Softmax), x, mass)
        with full_precision():
            shift = -float(log_faster(self.field))
        values, vectors = np.linalg.eig(rates)
        best = int(np.argmax(values.real))
        direction = vectors[:, best].real.reshape(x.shape)
        direction /= np.sqrt(np.sum(mass[:, None] * direction**2))
        apart = np.linalg.norm(x[:, None] - x[None, :], axis=2) + 4 * np.eye(len(x))
        p, q = np.unravel_index(np.argmin(apart), apart.shape)
        if np.sum((direction[p] - direction[q]) * (x[p] - x[q])) > 0:
            direction = -direction
        fastest = values.real[best]
        return xr.Dataset(
            {
                "log_rate": ((), level - shift + np.log(fastest) if fastest > 0 else -np.inf),
                "direction": (("cluster", "dim"), direction),
                "centre": (("cluster", "dim"), x),
                "mass": (("cluster",), mass),
            }
        )

    def _clusters(self, merges: int) -> tuple[np.ndarray, np.ndarray, int]:
        """(centres, masses, frame) at the first frame after so many merges."""
        label = self.labels(merges)
        log_time = self.dataset["log_time"].values
        start = -np.inf if merges == 0 else float(self.merges["log_time"][merges - 1])
        frame = int(np.searchsorted(log_time, start))
        if frame == len(log_time):
            raise InvalidInput(f"there is no frame after {merges} merges; the flow ended before.")
        names = np.unique(label)
        mass = np.bincount(label, self.dataset["masses"].values)[names]
        return self.dataset["positions"].values[frame][names], mass, frame


def _linearised(beta: float, softmax: bool, x: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, float]:
    """The covariant derivative of the clusters' velocities (SA or USA0) divided by e^L, and L = -beta min u.

    With w_qp = M_p e^(-beta u_qp), N_q = sum_p w_qp P_q x_p and tangent shifts a_p: dN_q = sum_p w_qp (P_q a_p -
    <x_q, x_p> a_q + beta (<x_q, a_p> + <x_p, a_q>) P_q x_p); softmax divides by D_q = M_q + sum_p w_qp.
    """
    k, d = x.shape
    apart = x[None, :, :] - x[:, None, :]
    u = 0.5 * np.sum(apart**2, axis=2)
    others = ~np.eye(k, dtype=bool)
    level = -beta * u[others].min()
    weight = np.exp(np.where(others, -beta * u - level, -np.inf)) * mass[None, :]
    pull = apart + u[:, :, None] * x[:, None, :]  # P_q x_p
    tangent = np.eye(d) - x[:, :, None] * x[:, None, :]
    steep = np.einsum("qp,qpa,qb->qapb", beta * weight, pull, x)
    moved = np.einsum("qp,qab->qapb", weight, tangent) + steep
    own = np.einsum("qp,qpa,qpb->qab", beta * weight, pull, pull)
    own -= np.sum(weight * (1 - u), axis=1)[:, None, None] * tangent
    moved[np.arange(k), :, np.arange(k), :] += own
    if softmax:
        total = mass + np.exp(level) * weight.sum(axis=1)
        force = np.einsum("qp,qpa->qa", weight, pull) / total[:, None]
        slope = np.einsum("qp,qb->qpb", beta * weight, x)
        slope[np.arange(k), np.arange(k)] += np.einsum("qp,qpb->qb", beta * weight, pull)
        moved = moved / total[:, None, None, None]
        moved -= np.exp(level) * np.einsum("qa,qpb->qapb", force / total[:, None], slope)
    moved = np.einsum("qapb,pbc->qapc", moved, tangent)
    return moved.reshape(k * d, k * d), level
