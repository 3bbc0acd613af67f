"""Where frames come from: work that is carried out, a finished run, the states of a trained network."""

import abc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from attnflow import meanfield, probe, runs
from attnflow.axes import Along
from attnflow.errors import AttnflowError, InvalidInput
from attnflow.flows.driver import Control, Drive
from attnflow.flows.sink import AbstractSink, Checkpoint, Layout, Tables
from attnflow.flows.work import AbstractWork
from attnflow.interrupts import raise_if_interrupted
from attnflow.lab.limits import check_table, check_tokens
from attnflow.lab.pictures import (
    DensityPainter,
    Painter,
    labels_of,
    ring_of_points,
    spiral_of_points,
    values_at,
)
from attnflow.spaces import Sphere
from attnflow.tokens.labels import label_array
from attnflow.wording import shown

AROUND, OVER = 256, 2000
"""Points of a density on the circle and on the sphere."""
LATEST = 690.0
"""The largest log t: e^690 is about 10^300."""
STREAMS = (".npz", ".safetensors")
OWN = {"time", "token", "dim", "cell", "harmonic", "degree", "order", "part"}
"""Dimensions of one frame; of others, which make a batch, the first member is shown."""


class AbstractPicture(abc.ABC):
    """How rows become frames."""

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the page is told before the first frame."""

    @abc.abstractmethod
    def frame(self, row: dict[str, np.ndarray]) -> bytes:
        """The frame of one row: its variables by name."""


class Moving(AbstractPicture):
    """Tokens that move."""

    def __init__(self, work: Any, axes: Any, sizes: dict[str, int]):
        field, tokens = getattr(work, "field", None), work.tokens
        check_tokens(
            sizes["token"] * int(np.prod([size for name, size in sizes.items() if name not in OWN | {"side"}]))
        )
        self.members = int(np.prod([size for name, size in sizes.items() if name not in OWN | {"side", "merge"}]))
        self.n, self.d = sizes["token"], sizes["dim"]
        flat = np.asarray(tokens.masses).reshape(-1, self.n)[0]
        self.masses = flat / flat.sum()
        self.place = np.asarray(tokens.place).reshape(-1, self.n)[0]
        self.labels = label_array(tokens.labels)
        self.painter = Painter(tokens.space, field, axes, self.d, _beta(field))

    def facts(self) -> dict[str, Any]:
        """Numbers of tokens and coordinates, masses and words."""
        labels = None if self.labels is None else self.labels.reshape(-1, self.n)[0]
        masses = None if np.ptp(self.masses) == 0 else [float(f"{one:.5g}") for one in self.masses]
        facts = {"n": self.n, "d": self.d, "shown": self.painter.eye.count, "space": str(self.painter.space)}
        return facts | {"labels": labels_of(labels), "masses": masses, "kind": "tokens"}

    def frame(self, row: dict[str, np.ndarray]) -> bytes:
        """Positions, with time and energy where they are known."""
        said = {"energy": float(row["energy"])} if "energy" in row else {}
        if float(row.get("log_time", 0)) > LATEST:
            raise InvalidInput("the next frame is later than t = 10^300, where the page ends; open it in Python.")
        return self.painter.frame(float(row["time"]), row["positions"], self.masses, self.place, **said)


class Spread(AbstractPicture):
    """A density on the circle or the sphere, by coefficients or by cells."""

    def __init__(self, work: Any):
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


def picture_of(work: Any, names: set[str], axes: Any, sizes: dict[str, int]) -> AbstractPicture:
    """How frames with these variables are drawn."""
    if "positions" in names and getattr(work, "tokens", None) is not None:
        return Moving(work, axes, sizes)
    if "masses" in names and isinstance(getattr(work, "cells", None), meanfield.Cells):
        return Spread(work)
    if "coefficients" in names and isinstance(getattr(work, "density", None), meanfield.Density):
        return Spread(work)
    raise InvalidInput(f"the lab has no picture of {type(work).__name__}; its frames hold {', '.join(sorted(names))}.")


def first_member(values: Any, dims: tuple[str, ...], k: int) -> np.ndarray:
    """Row k of a variable, of the first member of a batch."""
    return np.asarray(values[tuple(k if d == "time" else slice(None) if d in OWN else 0 for d in dims)])


class AbstractSource(abc.ABC):
    """Frames one after the other; `begun` is told first."""

    @abc.abstractmethod
    def stream(self, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """Give all frames, each when it may be given; how it ended, in words."""


class Carried(AbstractSource):
    """Work that is carried out, frame by frame."""

    def __init__(self, table: Any, axes: Any, cancel: Callable[[], bool]):
        spec = runs.parse_spec(tomli_w.dumps(check_table(table)))
        self.work, self.axes, self.cancel, self.name = spec.work, axes, cancel, spec.name
        if (tokens := getattr(self.work, "tokens", None)) is not None:
            check_tokens(int(np.prod(np.shape(tokens.positions)[:-1])))

    def stream(self, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """Rows go through a sink that waits until a frame may be given, so that nothing is computed far ahead."""
        sink = _Giving(self.work, self.axes, begun, give, self.name)
        try:
            Drive(self.work.checked()).run(Control(sink, cancel=self.cancel, on_progress=lambda _: None, check=False))
        except _Over as over:
            return str(over)
        raise AssertionError("a sink that gives frames ends by _Over")


class _Over(Exception):
    """The end of work of which no result is kept."""


class _Giving(AbstractSink):
    """Gives frames away and keeps nothing."""

    keeps_partial = True

    def __init__(self, work: AbstractWork, axes: Any, begun: Any, give: Any, name: str):
        self.work, self.axes, self.begun, self.give, self.name = work, axes, begun, give, name

    def begin(self, layout: Layout) -> None:
        self.layout = layout
        if "time" not in layout.tables:
            raise InvalidInput(f"the lab has no picture of {type(self.work).__name__}, which has no frames.")
        self.picture = picture_of(self.work, set(layout.tables["time"]), self.axes, layout.sizes)
        frames = layout.most["time"] if layout.exact else None
        self.begun(self.picture.facts() | {"name": self.name, "frames": frames})

    def load(self, state: Any) -> Checkpoint | None:
        return None

    def commit(self, start: dict[str, int], rows: Tables, checkpoint: Checkpoint) -> None:
        table = rows.get("time", {})
        if not table:
            return
        dims = {name: self.layout.tables["time"][name].dims for name in table}
        for k in range(len(table["time"])):
            raise_if_interrupted()
            self.give(self.picture.frame({name: first_member(v, dims[name], k) for name, v in table.items()}))

    def end(self, checkpoint: Checkpoint, static: dict[str, Any], attributes: dict[str, Any], complete: bool) -> Any:
        raise _Over(attributes["message"])


class Finished(AbstractSource):
    """A run folder."""

    def __init__(self, path: Path, axes: Any):
        self.result, self.axes, self.name = runs.open_run(path), axes, path.name

    def stream(self, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """The frames of the folder, read as they are given."""
        data = self.result.dataset
        rows = {str(name) for name, values in data.variables.items() if "time" in values.dims}
        picture = picture_of(
            self.result.work, rows, self.axes, {str(k): v for k, v in data.sizes.items() if k != "time"}
        )
        begun(picture.facts() | {"name": self.name, "frames": data.sizes["time"]})
        wanted = rows & {"time", "positions", "energy", "log_time", "masses", "coefficients"}
        for k in range(data.sizes["time"]):
            row = data[[name for name in wanted if name != "time"]].isel(time=k).load()
            found = {str(name): _first(values) for name, values in row.data_vars.items()}
            give(picture.frame(found | {"time": np.asarray(data["time"].values[k])}))
        return str(data.attrs.get("message", "the last frame of the run."))


def _first(values: Any) -> np.ndarray:
    return np.asarray(values.isel({dim: 0 for dim in values.dims if dim not in OWN}).values)


class Layers(AbstractSource):
    """The states of a trained network, layer by layer: the first text of a stream."""

    def __init__(self, path: Path, axes: Any):
        self.stream_ = probe.open_stream(path).text(0)
        self.axes, self.name = axes, path.name
        check_tokens(self.stream_.lengths[0])

    def stream(self, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """A frame for each state: state 0 enters the first layer."""
        tokens = self.stream_.tokens()
        x = np.asarray(tokens.positions)
        n, d = x.shape[-2:]
        labels = self.stream_.labels
        painter = Painter(Sphere(d), None, self.axes, d, None)
        facts = {
            "n": n,
            "d": d,
            "shown": painter.eye.count,
            "space": f"Sphere(dim={d})",
            "masses": None,
            "kind": "layers",
        }
        begun(facts | {"labels": labels_of(None if labels is None else labels[0]), "name": self.name, "frames": len(x)})
        for layer, states in enumerate(x):
            give(painter.frame(float(layer), states, np.full(n, 1 / n)))
        return f"the last of {len(x)} states."


def listed(root: Path | None) -> dict[str, Path]:
    """What can be opened, by name: run folders and streams directly in the chosen folder, or the chosen one."""
    if root is None:
        return {}
    if root.is_file() or (root / "manifest.json").is_file():
        return {root.name: root}
    inside = root.resolve()
    found = [run.path for run in runs.list_runs(root)] + [f for f in sorted(root.iterdir()) if f.suffix in STREAMS]
    return {path.name: path for path in found if path.resolve().is_relative_to(inside)}


def opened(name: Any, root: Path | None, axes: Any) -> AbstractSource:
    """The source of this name, one of those that are listed."""
    known = listed(root)
    if not isinstance(name, str) or name not in known:
        raise InvalidInput(f"`run` is {shown(name)}; open one of {', '.join(known) or 'none: `attnflow lab RUN`'}.")
    try:
        return (Layers if known[name].suffix in STREAMS else Finished)(known[name], axes)
    except OSError as error:
        raise AttnflowError(f"{name} cannot be read ({error.strerror}).") from None
