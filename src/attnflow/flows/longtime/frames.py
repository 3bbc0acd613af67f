"""From the rows of a follower to a trajectory: frames, merges, the staircase."""

import math
import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from attnflow.errors import FlowFailed, InvalidInput
from attnflow.flows.longtime import integrator
from attnflow.flows.longtime.follow import Follower, Row
from attnflow.flows.longtime.method import LongTime
from attnflow.flows.outcome import Ending, Outcome, Progress
from attnflow.flows.sink import AbstractSink, Checkpoint, Layout
from attnflow.flows.trajectory import Trajectory
from attnflow.interrupts import interruptible
from attnflow.tokens import Tokens

UNDETERMINED = 1e-2
"""A perturbation of rounding size that has grown beyond this may have changed what happened."""
LATE = 64
"""Merges, counted from the end, after which a frame is kept."""


def follow(
    field: Any,
    tokens: Tokens,
    until: float,
    method: LongTime,
    sink: AbstractSink,
    on_progress: Callable[[Progress], None] | None,
    check: bool,
) -> Trajectory:
    """`solve` with the method `LongTime`; `until` may be infinite."""
    if tokens.dims or any(type(leaf).__name__ == "Along" for leaf in (field.beta,)):
        raise InvalidInput("LongTime follows one system; for a batch, `merge_times` gives all merges at once.")
    follower = Follower(method, field, tokens, math.log(until))
    began = clock.perf_counter()
    outcome = None
    try:
        with interruptible():
            for log_time in follower:
                if on_progress is not None:
                    on_progress(_progress(follower, log_time, until, clock.perf_counter() - began))
    except KeyboardInterrupt:
        outcome = Outcome(Ending.INTERRUPTED, "interrupted; the frames made so far are kept.")
    trajectory = _trajectory(follower, sink, outcome or _ending(follower, until))
    if check and not trajectory.outcome.ok:
        raise FlowFailed(trajectory.outcome.message, trajectory)
    return trajectory


def _progress(follower: Follower, log_time: float, until: float, elapsed: float) -> Progress:
    merged, of = len(follower.merges), max(follower.tokens.n - 1, 1)
    return Progress(
        math.exp(log_time) if log_time < 700 else math.inf, until, merged, of, len(follower.rows), elapsed,
        len(follower.rows) / max(elapsed, 1e-9), math.nan,
        f"log t = {log_time:.6g} · {follower.tokens.n - merged} clusters",
    )  # fmt: skip


def _ending(follower: Follower, until: float) -> Outcome:
    end = follower.rows[-1].log_time
    if len(follower.merges) == follower.tokens.n - 1:
        return Outcome(Ending.STOPPED, f"consensus at log t = {end:.9g}.")
    assert follower.state is not None
    if bool(follower.state.frozen):
        return Outcome(
            Ending.FROZEN,
            f"frozen at log t = {end:.9g} with {follower.tokens.n - len(follower.merges)} clusters: the forces cancel "
            "to the last bit. They stand at a symmetric equilibrium.",
        )
    if bool(integrator.has_failed(follower.state)):
        return Outcome(
            Ending.FAILED, f"integration failed at log t = {end:.9g}: steps below rounding. Use a larger `tol`."
        )
    return Outcome(Ending.FINISHED, f"reached t = {until:g}.")


def _trajectory(follower: Follower, sink: AbstractSink, outcome: Outcome) -> Trajectory:
    keep = outcome.complete or sink.keeps_partial
    rows = _chosen(follower)
    log_time = np.array([row.log_time for row in rows])
    with np.errstate(over="ignore"):
        times, speed = np.exp(log_time), np.exp(np.array([row.log_speed for row in rows]))
    masses = np.asarray(follower.tokens.masses)
    positions = np.stack([row.positions() for row in rows])
    mean = np.einsum("n,tnd->td", masses, positions)
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "positions": (("time", "token", "dim"), positions),
        "log_time": (("time",), log_time),
        "speed": (("time",), speed),
        "log_speed": (("time",), np.array([row.log_speed for row in rows])),
        "floor": (("time",), np.zeros(len(rows))),
        "spread": (("time",), np.linalg.norm(positions - mean[:, None], axis=2).max(axis=1)),
        "energy": (("time",), np.array([row.energy for row in rows])),
        "resolved": (("time",), np.ones(len(rows), bool)),
    }
    static = {"masses": (("token",), masses), "place": (("token",), np.asarray(follower.tokens.place))}
    layout = Layout(
        times, {}, {name: (dims, values.dtype) for name, (dims, values) in variables.items()},
        {"token": follower.tokens.n, "dim": follower.tokens.dim}, static | _merges(follower) | _stairs(follower),
        len(rows),
    )  # fmt: skip
    merged = len(follower.merges)
    steps = {
        "accepted": len(follower.rows) - 1 - merged,
        "rejected": int(follower.state.rejected) if follower.state is not None else 0,
    }
    counts = np.array(list(steps.values()))
    if sink.begin(layout) is None and keep:  # else the same frames are there already, whole
        done = Checkpoint(len(rows), positions[-1], np.zeros(()), counts, outcome)
        sink.commit(0, {name: values for name, (_, values) in variables.items()}, done)
    attributes = {"outcome": outcome.ending.value, "message": outcome.message, **steps}
    dataset = sink.end(len(rows) if keep else 0, attributes, outcome.complete)
    return Trajectory(dataset, follower.field, follower.tokens.space, outcome, steps)


def _chosen(follower: Follower) -> list[Row]:
    """Rows for the frames: evenly spread in log t, the first, the last, and those after the last merges."""
    log_time = np.array([row.log_time for row in follower.rows])
    finite = log_time[np.isfinite(log_time)]
    if len(finite) == 0:
        return follower.rows[:1]
    even = np.searchsorted(log_time, np.linspace(finite[0], finite[-1], follower.method.frames))
    late = np.flatnonzero(np.isin(log_time, [merge.log_time for merge in follower.merges[-LATE:]]))
    last = len(log_time) - 1
    chosen = np.unique(np.concatenate([[0], np.clip(even, 1, last), late, [last]]))
    keep = np.append(log_time[chosen[1:]] > log_time[chosen[:-1]], True)  # of several at one time the last
    return [follower.rows[k] for k in chosen[keep]]


def _merges(follower: Follower) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    merges = follower.merges
    growth = np.array([m.growth for m in merges])
    bound = np.array([m.bound for m in merges])
    with np.errstate(over="ignore"):
        rounding = np.exp(np.log(np.finfo(float).eps) + growth)
    columns = {
        "log_time": np.array([m.log_time for m in merges]),
        "first": np.array([m.first for m in merges], int),
        "second": np.array([m.second for m in merges], int),
        "growth": growth,
        "rounding": rounding,
        "undetermined": rounding > UNDETERMINED,
        "bound": bound,
        "error": bound + np.array([m.error for m in merges]),
        "evaluations": np.array([m.evaluations for m in merges], int),
    }
    found = {f"merge_{name}": (("merge",), values) for name, values in columns.items()}
    masses, points = np.array([m.masses for m in merges]), np.array([m.point for m in merges])
    return found | {
        "merge_masses": (("merge", "side"), masses.reshape(-1, 2)),
        "merge_point": (("merge", "dim"), points.reshape(-1, follower.tokens.dim)),
    }


def _stairs(follower: Follower) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    rows = follower.rows
    return {
        "stair_log_time": (("step",), np.array([row.log_time for row in rows])),
        "stair_energy": (("step",), np.array([row.energy for row in rows])),
        "stair_arc": (("step",), np.array([row.arc for row in rows])),
    }
