"""Where frames come from: a finished run, the states of a trained network; `carried` and `swept` have two more."""

import abc
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attnflow import probe, runs
from attnflow.errors import AttnflowError, InvalidInput
from attnflow.folders import Folder
from attnflow.lab.forms import check_files
from attnflow.lab.limits import check_tokens, checked_axes, is_single
from attnflow.lab.pictures import Painter, labels_of
from attnflow.lab.rows import FRAME_DIMS, picture_class, picture_of
from attnflow.parsing import parse_json
from attnflow.reading import LARGEST_TEXT
from attnflow.spaces import Sphere
from attnflow.wording import shown

STREAMS = (".npz", ".safetensors")


class AbstractSource(abc.ABC):
    """Frames one after the other; `begun` is told first."""

    def __init__(self, name: str, axes: Any):
        self.name, self.axes = name, checked_axes(axes)

    @abc.abstractmethod
    def stream(self, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """Give all frames, each when it may be given; how it ended, in words."""


class Finished(AbstractSource):
    """A run folder."""

    def __init__(self, path: Path, axes: Any):
        super().__init__(path.name, axes)
        check_files(runs.Run.open(path).table())
        self.result = runs.open_run(path)

    def stream(self, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """The frames of the folder, read as they are given."""
        data = self.result.dataset
        shapes = {str(name): values.sizes for name, values in data.variables.items() if "time" in values.dims}
        picture = picture_of(self.name, self.result.work, self.axes, shapes)
        begun(picture.facts() | {"name": self.name, "frames": data.sizes["time"]})
        names = shapes.keys() & {"positions", "energy", "log_time", "masses", "coefficients"}
        for k in range(data.sizes["time"]):
            row = data[list(names)].isel(time=k).load()
            found = {str(name): _first(values) for name, values in row.data_vars.items()}
            give(picture.frame(found | {"time": np.asarray(data["time"].values[k])}))
        return str(data.attrs.get("message", "the last frame of the run."))


def _first(values: Any) -> np.ndarray:
    return np.asarray(values.isel({dim: 0 for dim in values.dims if dim not in FRAME_DIMS}).values)


class Layers(AbstractSource):
    """The states of a trained network, layer by layer: the first text of a stream."""

    def __init__(self, path: Path, axes: Any):
        super().__init__(path.name, axes)
        self.stream_ = probe.open_stream(path).text(0)
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
    """What can be opened, by name: runs, sweeps and streams directly in the chosen folder, or the chosen one."""
    if root is None:
        return {}
    if is_single(root):
        return {root.name: root}
    found = [run.path for run in runs.list_runs(root)] + sorted(file.parent for file in root.glob("*/sweep.json"))
    found += [file for file in sorted(root.iterdir()) if file.suffix in STREAMS and file.is_file()]
    return {path.name: path for path in found if path.resolve().is_relative_to(root.resolve())}


def why_not_drawn(path: Path) -> str:
    """The reason why the lab cannot draw what `listed` found at a path, in a sentence; empty if it can.

    Only manifests and the descriptions of arrays are read, so that a long list costs little.
    """
    if not (path / "manifest.json").is_file():
        return ""
    try:
        run = runs.Run.open(path)
        check_files(run.table())
        if "kind" not in run.manifest():
            runs.spec_of(run)  # refuses experiments, and work that was made in Python
        picture_class(path.name, _shapes_on_disk(run.folder.inside(run.arrays.name)))
    except AttnflowError as error:
        return str(error)
    except Exception as error:  # a folder that somebody damaged on purpose hides no other
        return f"{path.name} cannot be read ({type(error).__name__}: {error})."
    return ""


def _shapes_on_disk(arrays: Folder) -> dict[str, dict[str, int]]:
    """Shapes of the variables that a picture may need, as the metadata of a Zarr store says them."""
    shapes = {}
    for name in ("positions", "masses", "coefficients"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            metadata = parse_json(arrays.read(f"{name}/zarr.json", LARGEST_TEXT))
            shapes[name] = dict(zip(metadata["dimension_names"], metadata["shape"], strict=True))
    return shapes


def chosen(name: Any, root: Path | None) -> Path:
    """The path of what a client names: one of those that are listed, without links, pipes and devices inside."""
    known = listed(root)
    if not isinstance(name, str) or name not in known:
        raise InvalidInput(f"`run` is {shown(name)}; open one of {', '.join(known) or 'none: `attnflow lab RUN`'}.")
    path = known[name]
    if path.is_dir():
        Folder(path).names()  # refuses links, pipes and devices
    return path


def opened(path: Path, axes: Any) -> AbstractSource:
    """The run or stream at a path."""
    try:
        return (Layers if path.suffix in STREAMS else Finished)(path, axes)
    except OSError as error:
        raise AttnflowError(f"{path.name} cannot be read ({error.strerror}).") from None
