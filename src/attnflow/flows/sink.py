"""Where frames go. A sink that keeps checkpoints can be resumed from the last committed chunk."""

import abc
import dataclasses
from typing import Any

import numpy as np

from attnflow.flows.outcome import Outcome


@dataclasses.dataclass(frozen=True)
class Layout:
    """What a flow is going to save."""

    times: np.ndarray
    dims: dict[str, np.ndarray]
    variables: dict[str, tuple[tuple[str, ...], np.dtype]]
    """name -> (dimensions after the batch, dtype); "time" comes first of them."""
    sizes: dict[str, int]
    static: dict[str, tuple[tuple[str, ...], np.ndarray]]
    """Variables without time: masses, places."""
    chunk: int

    def shape(self, name: str, frames: int) -> tuple[int, ...]:
        """Shape of `frames` frames of a variable, batch dimensions first."""
        sizes = self.sizes | {"time": frames}
        return (*(len(c) for c in self.dims.values()), *(sizes[d] for d in self.variables[name][0]))


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Everything that the rest of a flow depends on, at the end of a chunk."""

    frames: int
    """Frames committed so far."""
    positions: np.ndarray
    memory: np.ndarray
    """What the method carries from chunk to chunk, one number per member (the step size of `Adaptive`)."""
    steps: np.ndarray
    """(accepted, rejected) step counts so far."""
    outcome: Outcome | None
    """The ending, when the flow ended within the committed frames."""


class AbstractSink(abc.ABC):
    """Receives frames in chunks."""

    keeps_partial: bool
    """Whether an interrupted chunk is worth keeping (not where whole chunks are what a resumed run repeats)."""

    @abc.abstractmethod
    def begin(self, layout: Layout) -> Checkpoint | None:
        """Prepare to receive; a checkpoint means: go on from there."""

    @abc.abstractmethod
    def commit(self, start: int, frames: dict[str, np.ndarray], checkpoint: Checkpoint) -> None:
        """Keep the frames numbered from `start` on, then the checkpoint behind them."""

    @abc.abstractmethod
    def end(self, frames: int, attributes: dict[str, Any], complete: bool) -> Any:
        """The first `frames` frames as an xarray Dataset; `complete` says that no more will come."""


class InMemory(AbstractSink):
    """Keeps all frames as NumPy arrays."""

    keeps_partial = True

    def begin(self, layout: Layout) -> Checkpoint | None:
        self.layout = layout
        self.parts: dict[str, list[np.ndarray]] = {name: [] for name in layout.variables}
        return None

    def commit(self, start: int, frames: dict[str, np.ndarray], checkpoint: Checkpoint) -> None:
        for name, values in frames.items():
            self.parts[name].append(values)

    def end(self, frames: int, attributes: dict[str, Any], complete: bool) -> Any:
        import xarray as xr

        layout = self.layout
        batch = tuple(layout.dims)
        variables: dict[str, Any] = {}
        for name, (dims, dtype) in layout.variables.items():
            axis = len(batch)
            values = (
                np.concatenate(self.parts[name], axis=axis)
                if self.parts[name]
                else np.empty(layout.shape(name, 0), dtype)
            )
            variables[name] = ((*batch, *dims), values.take(range(frames), axis=axis))
        variables |= dict(layout.static.items())
        coordinates = {"time": layout.times[:frames]} | dict(layout.dims)
        return xr.Dataset(variables, coordinates, attributes)
