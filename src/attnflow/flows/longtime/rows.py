"""What a long flow records: frames, merges and every step."""

import math
from typing import Any, NamedTuple

import numpy as np

from attnflow.flows.longtime import integrator
from attnflow.flows.observables import Views
from attnflow.flows.stepper import Rows

PLATEAU = math.log(2.0)
"""A stretch between merges that lasts so long in log t gets a frame at its beginning."""
EARLY = 30.0
"""Frames are evenly spaced in log t up to here, and further apart in proportion to log t beyond."""
UNDETERMINED = 1e-2
"""A perturbation of rounding size that has grown beyond this may have changed what happened."""
FLOAT, INT, BOOL = np.dtype(np.float64), np.dtype(np.int64), np.dtype(bool)
MERGE: dict[str, tuple[tuple[str, ...], np.dtype]] = {
    "log_time": ((), FLOAT),
    "first": ((), INT),
    "second": ((), INT),
    "growth": ((), FLOAT),
    "rounding": ((), FLOAT),
    "undetermined": ((), BOOL),
    "bound": ((), FLOAT),
    "error": ((), FLOAT),
    "evaluations": ((), INT),
    "masses": (("side",), FLOAT),
    "point": (("dim",), FLOAT),
}


class Row(NamedTuple):
    """The tokens after one step or merge."""

    log_time: Any
    energy: Any
    log_speed: Any
    positions: Any
    """NaN where there is no row."""


class Long(NamedTuple):
    """The state: tokens while there are too many of them, then clusters."""

    x: Any
    """Tokens that are moved together before clusters are followed."""
    t: Any
    """Their time, on the clock of SA or USA0."""
    clusters: integrator.ClusterState
    """In no slots until they are followed."""
    names: Any
    """(slot,) a cluster is called by the number of its first token."""
    label: Any
    """(token,) the name of the cluster of every token."""
    bound: Any
    """Relative error of forces by all merges so far, at most."""
    rows: Any
    """Steps and merges so far, and the start."""
    merged: Any
    last: Row
    """The last row."""
    pending: Row
    """A frame that is kept unless another one at the same time replaces it."""
    candidate: Row
    """The row after the last merge: a frame, if a plateau follows."""
    mark: Any
    """The log t at which the next frame is due."""


class Collected:
    """The rows of a slice, as they come."""

    def __init__(self, measure: Any, frames: int, late: float):
        self.measure, self.per_early, self.late = measure, frames, late
        self.frames: list[Row] = []
        self.merges: list[dict[str, Any]] = []
        self.stairs: list[tuple[float, float, float]] = []

    def merge(self, *, growth: float, **columns: Any) -> None:
        """Two clusters have become one."""
        with np.errstate(over="ignore"):
            rounding = float(np.exp(np.log(np.finfo(float).eps) + growth))
        self.merges.append(columns | {"growth": growth, "rounding": rounding, "undetermined": rounding > UNDETERMINED})

    def row(self, state: Long, row: Row, arc: float, *, met: bool = False, due: bool = False) -> Long:
        """Take a row; frames are kept where they are due, where a mark is passed and where plateaus begin."""
        log_time = float(row.log_time)
        self.stairs.append((log_time, float(row.energy), arc))
        due = due or log_time >= float(state.mark)
        pending, candidate = state.pending, state.candidate
        if _is_row(pending) and log_time > float(pending.log_time):
            self.frames.append(pending)
            pending = _none(pending)
        if _is_row(candidate) and log_time - float(candidate.log_time) >= PLATEAU:
            self.frames.append(candidate)
            candidate = _none(candidate)
        mark = state.mark
        if due:
            pending, candidate = row, _none(row)
            mark = np.asarray(log_time + self._spacing(log_time))
        elif met:
            candidate = row
        return state._replace(rows=state.rows + 1, last=row, pending=pending, candidate=candidate, mark=mark)

    def last(self, state: Long) -> Long:
        """The last row is a frame."""
        if _is_row(state.pending) and float(state.last.log_time) > float(state.pending.log_time):
            self.frames.append(state.pending)
        self.frames.append(state.last)
        none = _none(state.last)
        return state._replace(pending=none, candidate=none)

    def _spacing(self, log_time: float) -> float:
        """How far in log t the next frame is: on the clock of SA or USA0, so that frames are the same on all clocks."""
        if math.isinf(log_time):
            return 0.0
        return 2 * (EARLY + 8) / self.per_early * max(1.0, (log_time + self.late) / EARLY)

    def rows(self) -> Rows | None:
        """What was collected; None if that is nothing."""
        if not (self.frames or self.merges or self.stairs):
            return None
        frames, (n, dim) = self.frames, (self.measure.masses.shape[0], self.measure.space.dim)
        log_time = np.array([float(row.log_time) for row in frames])
        log_speed = np.array([float(row.log_speed) for row in frames])
        positions = np.array([row.positions for row in frames]).reshape(-1, n, dim)
        with np.errstate(over="ignore"):
            time, speed = np.exp(log_time), np.exp(log_speed)
        mean = np.einsum("n,tnd->td", self.measure.masses, positions)
        made: dict[str, dict[str, np.ndarray]] = {
            "time": {
                "time": time,
                "log_time": log_time,
                "speed": speed,
                "log_speed": log_speed,
                "floor": np.zeros(len(frames)),
                "spread": np.linalg.norm(positions - mean[:, None], axis=2).max(axis=1, initial=0.0),
                "energy": np.array([float(row.energy) for row in frames]),
                "resolved": np.ones(len(frames), bool),
                "positions": positions,
            },
            "merge": {
                f"merge_{name}": np.array([m[name] for m in self.merges], dtype).reshape(
                    len(self.merges), *({"side": 2, "dim": dim}[d] for d in dims)
                )
                for name, (dims, dtype) in MERGE.items()
            },
            "step": {
                f"stair_{name}": np.array([stair[k] for stair in self.stairs], FLOAT)
                for k, name in enumerate(("log_time", "energy", "arc"))
            },
        }
        return Rows(made, views(self.measure, positions, time) if frames else None)


def _is_row(row: Row) -> bool:
    return not np.isnan(np.asarray(row.positions).flat[0])


def _none(row: Row) -> Row:
    return Row(np.asarray(-np.inf), np.zeros(()), np.zeros(()), np.full_like(row.positions, np.nan))


def views(measure: Any, positions: np.ndarray, times: np.ndarray) -> Views:
    """Frames of one system, as observables see them."""
    import jax

    fixed = jax.tree.map(lambda leaf: np.asarray(leaf)[None], measure)
    return Views(np.asarray(times)[None], np.asarray(positions)[None], fixed, _moved)


def _moved(x: Any, measure: Any) -> Any:
    return measure.moved(x)
