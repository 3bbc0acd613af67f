"""What flows of tokens leave: labelled frames, the outcome, and the observables read off them."""

import abc
import dataclasses
import sys
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from attnflow import sketches
from attnflow.axes import is_along
from attnflow.checks import shown, whole
from attnflow.describe import brief
from attnflow.errors import InvalidInput, NoSuchItem
from attnflow.flows.outcome import Ending, Outcome
from attnflow.flows.result import AbstractResult
from attnflow.observe.clusters import Clusters, cluster_scale, clusters
from attnflow.observe.pairs import overlap_histogram
from attnflow.spaces import AbstractSpace, Sphere
from attnflow.tokens import Measure, Tokens
from attnflow.tokens.labels import COORDINATE
from attnflow.wording import time_shown

if TYPE_CHECKING:
    import xarray as xr

    from attnflow.fields import AbstractField

T = TypeVar("T", bound="AbstractTrajectory")


@dataclasses.dataclass(frozen=True, repr=False)
class AbstractTrajectory(AbstractResult):
    """Frames of tokens as an xarray Dataset with dimensions (batch..., time, token, dim)."""

    dataset: "xr.Dataset"
    """positions, speed, floor, resolved, spread and, where it is defined, energy; masses and places."""
    field: "AbstractField"
    space: AbstractSpace
    outcome: Outcome
    steps: dict[str, int]
    """Accepted and rejected steps, over all members."""
    checkpoint: Any = dataclasses.field(default=None, repr=False)
    """From where `continued` goes on."""
    work: Any = dataclasses.field(default=None, repr=False)
    """The work that made the flow."""

    @property
    def time(self) -> "xr.DataArray":
        """Saved times."""
        return self.dataset["time"]

    @property
    @abc.abstractmethod
    def log_time(self) -> "xr.DataArray":
        """Natural logarithm of the saved times."""

    @property
    def positions(self) -> "xr.DataArray":
        """(batch..., time, token, dim)."""
        if "positions" not in self.dataset:
            raise InvalidInput("this flow kept no positions; make it with keep=('positions', ...).")
        return self.dataset["positions"]

    @property
    def energy(self) -> "xr.DataArray":
        """The energy that the flow climbs, at every saved time (`total_energy`).

        For Attention alone it is the renormalised energy: at most 0, and 0 at consensus.
        """
        if "energy" not in self.dataset and self.work is not None and "energy" not in self.work.keep:
            raise InvalidInput("this flow kept no energy; make it with keep=('energy', ...).")
        if "energy" not in self.dataset:
            raise InvalidInput(
                f"{type(self.field).__name__} on {self.space} has no energy here; it is defined on a sphere for "
                "Attention with Q = K = V = I, and for its sum with a Potential when it is Unnormalised()."
            )
        return self.dataset["energy"]

    @property
    def resolved(self) -> "xr.DataArray":
        """Whether the largest speed of a frame stands above round-off."""
        return self.dataset["resolved"]

    @property
    def labels(self) -> np.ndarray | None:
        """The labels of the tokens, (token,) or (batch..., token); None where they have none.

        `scipy.cluster.hierarchy.dendrogram(flow.tree.linkage(), labels=flow.labels)` draws a tree of words.
        """
        return self.dataset[COORDINATE].values if COORDINATE in self.dataset.coords else None

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the batch dimensions."""
        return tuple(str(d) for d in self.dataset["masses"].dims[:-1])

    def __len__(self) -> int:
        """Number of saved frames."""
        return self.dataset.sizes["time"]

    @overload
    def __getitem__(self, at: int) -> Tokens: ...
    @overload
    def __getitem__(self: T, at: slice) -> T: ...
    def __getitem__(self: T, at: int | slice) -> Tokens | T:
        """The tokens of a frame, `flow[-1]`, or a flow of some of the frames, `flow[::10]`."""
        if isinstance(at, slice):
            if at.step is not None and not (isinstance(at.step, int) and at.step > 0):
                raise InvalidInput(f"the step of the slice is {shown(at.step)}; frames go forwards, give one above 0.")
            return dataclasses.replace(
                self, dataset=self._cut(at), outcome=self._outcome_of(at), checkpoint=None, work=None
            )
        frame = whole("at", at, -sys.maxsize)
        if not -len(self) <= frame < len(self):
            raise NoSuchItem(f"frame {at} was asked for; the flow has {len(self)}, counted from 0.")
        return self.tokens(frame)

    def _cut(self, at: slice) -> Any:
        """The dataset of some of the frames."""
        return self.dataset.isel(time=at)

    def _outcome_of(self, at: slice) -> Outcome:
        """The outcome of the flow, or INTERRUPTED if later frames were cut off."""
        if len(self) and len(self) - 1 in range(*at.indices(len(self))):
            return self.outcome
        return Outcome(Ending.INTERRUPTED, f"these are frames of a longer flow, which ended so: {self.outcome.message}")

    def _facts(self) -> dict[str, str]:
        """What the flow is, in a few words."""
        sizes, last = self.dataset.sizes, ""
        if len(self):
            time, log_time = float(self.time[-1]), float(self.log_time[-1])
            last = f" to t = {time:.6g}" if np.isfinite(time) else f" to t = {time_shown(log_time, 6)}"
        batch = {"members": " × ".join(f"{sizes[d]} {d}" for d in self.dims)} if self.dims else {}
        return {
            "frames": f"{len(self)}{last}",
            "tokens": f"{sizes['token']} on {self.space}",
            **batch,
            "field": brief(self.field),
            "outcome": self.outcome.message,
            "saved": " ".join(str(name) for name in self.dataset.data_vars),
        }

    def _sketches(self) -> list[str]:
        """The last frame and the energy, of a batch those of its first member."""
        first = dict.fromkeys(self.dims, 0)
        found = []
        if len(self) and "positions" in self.dataset:
            last = self.dataset.isel({"time": -1, **first})
            unit = isinstance(self.space, Sphere)
            found.append(sketches.points(last["positions"].values, last["masses"].values, unit=unit))
        if "energy" in self.dataset:
            energy = self.dataset["energy"].isel({d: 0 for d in self.dims if d in self.dataset["energy"].dims})
            log_time = self.log_time.isel({d: 0 for d in self.dims if d in self.log_time.dims})
            found.append(sketches.curve(log_time.values, energy.values, "energy against log t"))
        return found

    def tokens(self, at: int = -1, **index: int) -> Tokens:
        """The tokens of frame number `at`: of one member, `flow.tokens(-1, seed=0)`, or of the whole batch."""
        self.positions  # noqa: B018 (refuses where none were kept)
        if self.space is None:
            raise InvalidInput("the space of this run comes from a plugin; open it with open_run(path, plugins=[...]).")
        if not len(self):
            raise NoSuchItem(f"the flow has no frame: it was {self.outcome.message}")
        sizes = {"at": self.dataset.sizes["time"]} | {name: self.dataset.sizes[name] for name in self.dims}
        for name, k in {"at": at, **index}.items():
            if name not in sizes:
                raise InvalidInput(f"`tokens` got {name!r}; the batch dimensions of this flow are {tuple(self.dims)}.")
            whole(name, k, -sizes[name], sizes[name] - 1)
        frame = self.dataset.isel({"time": at, **index})
        left = [d for d in self.dims if d not in index]
        return Tokens(
            frame["positions"].values,
            frame["masses"].values,
            space=self.space,
            place=frame["place"].values,
            present=frame["present"].values if "present" in frame else None,
            dims=left,
            coordinates=[self.dataset[d].values.tolist() for d in left],
            labels=frame[COORDINATE].values if COORDINATE in frame.coords else None,
            dtype=frame["positions"].dtype,
        )

    def scale(self, **index: int) -> float:
        """The linking distance of clusters for one member, the range beta^(-1/2) of the kernel: `cluster_scale(beta)`.

        On a compact space with its distance from R^d (`is_riemannian`), where e^(beta <x, y>) has that range; for the
        kernel `Gaussian` also on R^d.
        """
        import jax

        from attnflow.kernels import AbstractKernel, Exponential, Gaussian

        nodes = jax.tree.leaves(self.field, is_leaf=lambda node: isinstance(node, AbstractKernel))
        kernels = [node for node in nodes if isinstance(node, AbstractKernel)]
        compact, kernel = np.isfinite(self.space.volume), kernels[0] if len(kernels) == 1 else None
        known = isinstance(kernel, Gaussian) or (compact and isinstance(kernel, Exponential))
        if not (known and self.space.is_riemannian):
            raise InvalidInput(f"`scale` is not given, and {self._no_scale(kernels)}; give an angle or a distance.")
        assert isinstance(kernel, Exponential | Gaussian)
        beta = kernel.beta.values[index[kernel.beta.dim]] if is_along(kernel.beta) else kernel.beta
        return cluster_scale(float(beta)) if compact or not beta > 0 else float(beta) ** -0.5

    def _no_scale(self, kernels: list[Any]) -> str:
        """Why the linking distance of clusters does not follow from the field."""
        if self.field is None:
            return "the field of this run, which a plugin makes, is not known here"
        if len(kernels) != 1:
            return f"{type(self.field).__name__} has {len(kernels) or 'no'} kernels, so no single beta"
        return f"the kernel {type(kernels[0]).__name__} on {self.space} has no range beta^(-1/2)"

    def clusters(self, *, scale: float | np.ndarray | None = None, share: float = 1.0) -> "xr.Dataset":
        """Clusters at every saved time: `count`, `condensed`, `label` of tokens; their `mass`, `centre` and `leader`.

        Tokens are linked within `scale`, one number or one for each frame, by default `cluster_scale(beta)`. The leader
        is the token with the least place, whom the others of its cluster follow under a causal mask. Unused slots hold
        mass 0, NaN centres and the leader -1. Where `condensed` is false the tokens still percolate and the count is
        not a number of clusters. With `share` < 1 frames that percolate are grouped without the loneliest tokens, up to
        a mass of 1 - share, whose label is -1; where that leaves condensed clusters, they are given (and `share` of the
        frame is less than 1).
        """
        import xarray as xr

        batch = tuple(self.dataset.sizes[d] for d in self.dims)
        frames = self.dataset.sizes["time"]
        found = {}
        for member in np.ndindex(*batch):
            index = dict(zip(self.dims, member, strict=True))
            linking = np.broadcast_to(self.scale(**index) if scale is None else scale, frames)
            if not frames:
                continue
            mu = self.tokens(0, **index).measure
            for k in range(frames):
                frame = mu.moved(self.positions.isel({"time": k, **index}).values)
                found[(*member, k)] = _clusters(frame, linking[k], share)
        slots = max((c.count for c, _ in found.values()), default=0)
        shape = (*batch, frames)
        n, d = self.dataset.sizes["token"], self.dataset.sizes["dim"]
        count, condensed = np.zeros(shape, int), np.zeros(shape, bool)
        label = np.zeros((*shape, n), np.int32)
        mass, centre = np.zeros((*shape, slots)), np.full((*shape, slots, d), np.nan)
        leader = np.full((*shape, slots), -1)
        held = np.ones(shape)
        for where, (c, held[where]) in found.items():
            count[where], condensed[where], label[where] = c.count, c.condensed, c.labels
            mass[where][: c.count], centre[where][: c.count] = c.masses, c.centres
            leader[where][: c.count] = c.leaders
        dims = (*self.dims, "time")
        return xr.Dataset(
            {
                "count": (dims, count),
                "condensed": (dims, condensed),
                "share": (dims, held),
                "label": ((*dims, "token"), label),
                "mass": ((*dims, "cluster"), mass),
                "leader": ((*dims, "cluster"), leader),
                "centre": ((*dims, "cluster", "dim"), centre),
            },
            {name: self.dataset[name] for name in (*dims, COORDINATE) if name in self.dataset},
        )

    def thinned(self: T, frames: int) -> T:
        """At most `frames` of the saved frames, evenly picked, the first and the last among them."""
        total = self.dataset.sizes["time"]
        pick = np.unique(np.linspace(0, total - 1, min(frames, total)).round().astype(int))
        return dataclasses.replace(self, dataset=self.dataset.isel(time=pick))

    def member(self: T, **index: int) -> T:
        """One system of a batch, by integer index; parameters along these dimensions are picked too.

        Absent rows are left out.
        """
        import jax

        def pick(node: Any) -> Any:
            return node.values[index[node.dim]] if is_along(node) else node

        if set(index) != set(self.dims):
            raise InvalidInput(f"`member` got {sorted(index)}; name each of the batch dimensions {self.dims}.")
        field = jax.tree.map(pick, self.field, is_leaf=is_along)
        picked = self.dataset.isel(index)
        if "present" in picked:
            picked = picked.isel(token=np.flatnonzero(picked["present"].values)).drop_vars("present")
        return dataclasses.replace(self, dataset=picked, field=field)

    def overlap_histogram(self, *, bins: int = 100) -> "xr.DataArray":
        """Density of <x_i, x_j> over pairs at every saved time, one system; dimensions (time, overlap)."""
        import xarray as xr

        rows, edges = [], np.linspace(-1, 1, bins + 1)
        for k in range(self.dataset.sizes["time"]):
            rows.append(overlap_histogram(self.tokens(k), bins=bins)[0])
        middle = (edges[1:] + edges[:-1]) / 2
        return xr.DataArray(
            np.reshape(rows, (-1, bins)), {"time": self.time.values, "overlap": middle}, ("time", "overlap")
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Trajectory(AbstractTrajectory):
    """What `solve` returns."""

    @property
    def log_time(self) -> "xr.DataArray":
        with np.errstate(divide="ignore"):
            return self.time.copy(data=np.log(self.time.values)).rename("log_time")

    @property
    def stopped_at(self) -> "xr.DataArray":
        """The time at which a stop condition held, for every member of a batch; NaN where none did."""
        if "stopped_at" not in self.dataset:
            raise InvalidInput("this flow had no stop conditions; give some in solve(..., stop=...).")
        return self.dataset["stopped_at"]


def _clusters(tokens: Measure, scale: float, share: float) -> tuple[Clusters, float]:
    """The clusters of a frame, and the share of mass that they hold for sure; less than 1 only where that helps."""
    found = clusters(tokens, scale=scale)
    if share == 1 or found.condensed:
        return found, 1.0
    fewer = clusters(tokens, scale=scale, share=share)
    return (fewer, share) if fewer.condensed else (found, 1.0)
