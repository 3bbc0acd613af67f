"""A sweep: the flow at one of its points, and curves through that point along every axis."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.errors import AttnflowError, InvalidInput
from attnflow.flows.driver import Drive
from attnflow.lab.carried import Carried, shapes_of
from attnflow.lab.forms import KINDS, check_files
from attnflow.lab.frames import pack
from attnflow.lab.rows import FRAME_DIMS, picture_class, picture_of
from attnflow.lab.sources import AbstractSource
from attnflow.sweeps import Sweep, open_sweep
from attnflow.sweeps.source import SpecSource
from attnflow.wording import shown

CURVES, VALUES = 12, 2000
"""Variables with curves, and values of an axis that a curve has, at most."""

DULL = {"floor", "resolved"}
"""Variables that say how a flow was computed."""


class Swept(AbstractSource):
    """The flow at a point of a sweep: as it was kept, or carried out again; numbers alone where none can be drawn."""

    def __init__(self, path: Path, axes: Any, at: Any, cancel: Callable[[], bool]):
        super().__init__(path.name, axes)
        self.sweep, self.cancel = open_sweep(path), cancel
        self.at = checked_point(at, [len(axis) for axis in self.sweep.plan.axes])
        self.data = self.sweep.dataset
        place = dict(zip((axis.dim for axis in self.sweep.plan.axes), self.at, strict=True))
        self.row = self.data.isel(place)

    def stream(self, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """Frames of the flow at the point; the page is told the curves first.

        Of a point without a flow that can be drawn there is one frame without tokens.
        """
        about = {"sweep": self.facts()}
        is_kept = "positions" in self.row and bool(self.row["done"])
        try:
            work = self._work()
            if not is_kept:
                carried = Carried(work, self.name, self.axes, self.cancel)
                picture_class(self.name, shapes_of(Drive(carried.work.checked()).layout))
        except InvalidInput as reason:
            begun({"n": 0, "d": 3, "shown": 3, "space": "", "labels": None, "masses": None, "kind": "numbers"} | about)
            numbers = {"t": 0.0, "beta": None, "order": None, "condensed": False, "count": 0}
            give(pack(numbers, {"positions": np.zeros((0, 3), "<f4")}))
            return f"{reason} Its numbers are in the panel of the sweep."
        if is_kept:
            return self._kept(work, lambda facts: begun(facts | about), give)
        return "computed again: " + carried.stream(lambda facts: begun(facts | about), give)

    def _work(self) -> Any:
        """The work at the point, where the sweep is one of a specification that the lab would take from a client.

        Its words are looked at before anything is made of them: the folder may come from somebody else.
        """
        plan = self.sweep.plan
        if plan.source.get("kind") != "specification" or plan.source.get("plugins"):
            raise InvalidInput(f"{self.name} has no flows: it is a sweep of a function, or uses a plugin.")
        values = zip(plan.axes, self.at, strict=True)
        point = {key: value for axis, k in values for key, value in zip(axis.keys, axis.values[k], strict=True)}
        spec = SpecSource.from_facts(plan.source).spec(point)
        if spec.kind not in KINDS:
            picture_class(self.name, {})  # refuses what has no frames
        check_files(spec.table)
        return spec.work

    def _kept(self, work: Any, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """Frames that the sweep kept; rows that are empty belong to longer flows."""
        flow_names = [name for name, values in self.row.data_vars.items() if set(values.dims) <= FRAME_DIMS]
        rows = self.row[flow_names]
        tokens = work.tokens
        cut = rows.isel(token=slice(tokens.n), dim=slice(tokens.dim)).dropna("time", how="all", subset=["positions"])
        shapes = {str(name): values.sizes for name, values in cut.variables.items() if "time" in values.dims}
        picture = picture_of(self.name, work, self.axes, shapes)
        begun(picture.facts() | {"name": self.name, "frames": cut.sizes["time"]})
        frame_names = [name for name in ("positions", "energy") if name in shapes]
        for k in range(cut.sizes["time"]):
            row = cut[frame_names].isel(time=k).load()
            found = {str(name): np.asarray(values.values) for name, values in row.data_vars.items()}
            give(picture.frame(found | {"time": np.asarray(cut["time"].values[k])}))
        return "the last frame that the sweep kept."

    def facts(self) -> dict[str, Any]:
        """Axes with their values, the point, and for every variable its curve along each axis through the point."""
        axes = self.sweep.plan.axes
        named = [{"name": axis.dim, "values": axis.coordinate(axis.dim)[:VALUES].tolist()} for axis in axes]
        return {"name": self.name, "axes": named, "at": self.at, "curves": curves(self.sweep, self.data, self.at)}


def checked_point(at: Any, sizes: list[int]) -> list[int]:
    """The numbers of the values along the axes; the first ones where none are given."""
    if at in (None, []):
        return [0] * len(sizes)
    whole = isinstance(at, list) and len(at) == len(sizes) and all(type(one) is int for one in at)
    if not whole or not all(0 <= one < size for one, size in zip(at, sizes, strict=True)):
        raise InvalidInput(f"`at` is {shown(at)}; give a number below {sizes}, one for each axis of the sweep.")
    return list(at)


def curves(sweep: Sweep, data: Any, at: list[int]) -> dict[str, list[dict[str, Any]]]:
    """Variables that are single numbers, at the last time: values along each axis, means over seeds with errors."""
    dims = [axis.dim for axis in sweep.plan.axes]
    seeds = next((dim for dim in dims if dim.rpartition(".")[2] == "seed"), None)
    found: dict[str, list[dict[str, Any]]] = {}
    for name, values in data.data_vars.items():
        rest = [dim for dim in values.dims if dim not in dims]
        if name in DULL or values.dtype.kind != "f" or rest not in ([], ["time"]) or len(found) == CURVES:
            continue
        last = values.isel(time=-1) if rest else values
        found[str(name)] = [
            _curve(last, dict(zip(dims, at, strict=True)), dim, seeds) for dim in dims if dim in last.dims
        ]
    return {name: rows for name, rows in found.items() if rows}


def _curve(values: Any, at: dict[str, int], along: str, seeds: str | None) -> dict[str, Any]:
    others = {dim: k for dim, k in at.items() if dim != along and dim in values.dims}
    curve = {"along": along, "values": _plain(values.isel(others).values[:VALUES])}
    if seeds is None or seeds == along or seeds not in values.dims:
        return curve
    many = values.isel({dim: k for dim, k in others.items() if dim != seeds}).transpose(along, seeds).values[:VALUES]
    known = np.isfinite(many)
    count = np.maximum(known.sum(axis=1), 1)
    mean = np.where(known, many, 0).sum(axis=1) / count
    square = (np.where(known, many - mean[:, None], 0) ** 2).sum(axis=1) / np.maximum(count - 1, 1)
    error = np.sqrt(square / count)
    there = known.any(axis=1)
    return curve | {"mean": _plain(np.where(there, mean, np.nan)), "error": _plain(np.where(count > 1, error, np.nan))}


def _plain(values: np.ndarray) -> list[float | None]:
    """Numbers as JSON has them; None where there is none."""
    return [float(f"{one:.8g}") if np.isfinite(one) else None for one in np.asarray(values, float).tolist()]


def opened_sweep(path: Path, axes: Any, at: Any, cancel: Callable[[], bool]) -> AbstractSource:
    """The sweep in a folder; what cannot be read is refused in words."""
    try:
        return Swept(path, axes, at, cancel)
    except OSError as error:
        raise AttnflowError(f"{path.name} cannot be read ({error.strerror}).") from None
