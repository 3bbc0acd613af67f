"""Carry out a specification in a run folder, from the start or from where it was left."""

import contextlib
import dataclasses
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnflow.errors import AttnflowError, FlowFailed
from attnflow.flows import Progress, Trajectory, solve
from attnflow.flows.outcome import Ending, Outcome
from attnflow.runs.folder import Run
from attnflow.runs.observables import check_observables, write_observables
from attnflow.runs.plugins import Given, joined
from attnflow.runs.spec import Spec
from attnflow.runs.store import ZarrSink, open_arrays

Draw = Callable[[Run, Trajectory], dict[str, Any]]


def execute(
    spec: Spec,
    path: str | Path,
    *,
    plugins: Given = (),
    draw: Draw | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> tuple[Run, Trajectory]:
    """Make the folder `path` and run `spec` in it.

    `draw(run, trajectory)` makes figures and a report and gives back a summary for the manifest; it comes before the
    folder is sealed, so a finished folder is always whole. `plugins` are files beside those that `spec` was loaded
    with; the manifest records the hash of each, and the folder keeps its text.
    """
    spec = dataclasses.replace(spec, plugins=joined(spec.plugins, plugins))
    check_observables(spec)
    run = Run.create(path, spec, **spec.plugins.facts())
    with run.lock():
        return run, _carry_on(run, spec, draw, on_progress)


def resume(
    path: str | Path,
    *,
    plugins: Given = (),
    draw: Draw | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> tuple[Run, Trajectory]:
    """Continue a run from its last complete chunk; a finished one is only opened.

    `plugins` are the files that the run was made with; one that is missing or has changed is refused, before any of
    them is executed and before anything is written.
    """
    run = Run.open(path)
    with run.lock():
        if run.manifest()["status"] == "finished":
            return run, trajectory(run, plugins)
        return run, _carry_on(run, run.spec(plugins), draw, on_progress)


def trajectory(run: Run, plugins: Given = ()) -> Trajectory:
    """The frames of a run as a Trajectory, loaded as they are used."""
    made = run.spec(plugins).build()
    manifest = run.manifest()
    dataset = open_arrays(run.arrays)
    outcome = manifest.get("outcome") or {"ending": "interrupted", "message": "the run is not finished."}
    frames = manifest.get("frames", 0)
    return Trajectory(
        dataset.isel(time=slice(0, frames)),
        made["field"],
        made["tokens"].space,
        Outcome(Ending(outcome["ending"]), outcome["message"]),
        manifest.get("steps", {}),
    )


def _carry_on(run: Run, spec: Spec, draw: Draw | None, on_progress: Callable[[Progress], None] | None) -> Trajectory:
    began, before = time.perf_counter(), run.manifest()["wall_time"]
    spec.plugins.keep(run.path)
    run.update(status="running")
    status: dict[str, Any] = {"status": "interrupted"}
    try:
        flow = solve(**spec.build(), sink=ZarrSink(run.arrays, run.checkpoint), on_progress=on_progress, check=False)
        status = {
            "status": "drawing" if flow.outcome.complete else flow.outcome.ending.value,
            "outcome": {"ending": flow.outcome.ending.value, "message": flow.outcome.message},
            "steps": flow.steps,
            "frames": flow.dataset.sizes["time"],
        }
        if flow.outcome.ending is Ending.FAILED:
            raise FlowFailed(flow.outcome.message, flow)
        if flow.outcome.complete:
            write_observables(spec, flow, run.path)
            with spec.plugins.active():  # for those who read the specification again
                status["summary"] = draw(run, flow) if draw else {}
    except AttnflowError as error:
        status["status"] = "failed"
        status["message"] = str(error)
        raise
    finally:
        with contextlib.suppress(OSError):  # a full disk has been reported already
            run.update(wall_time=before + time.perf_counter() - began, peak_memory=peak_memory(), **status)
    if flow.outcome.complete:
        run.checkpoint.unlink(missing_ok=True)
        run.seal()
    return flow


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent process held when it started this one
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
