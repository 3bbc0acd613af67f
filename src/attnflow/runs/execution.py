"""Carry out a specification in a run folder, from the start, from where it was left, or beyond its end."""

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnflow.checks import instance
from attnflow.errors import AttnflowError, FlowFailed, RunError
from attnflow.flows import Progress
from attnflow.flows.driver import Driven
from attnflow.flows.outcome import Ending, Outcome
from attnflow.flows.sink import AbstractSink, Checkpoint, Layout, Tables
from attnflow.runs.folder import Run, require_space
from attnflow.runs.plugins import Given, joined
from attnflow.runs.spec import Spec
from attnflow.runs.store import ZarrSink, open_arrays, read_checkpoint

Draw = Callable[[Run, Any], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Watch:
    """How a person follows a run; the same for `execute`, `resume` and `extend`."""

    draw: Draw | None = None
    on_progress: Callable[[Progress], None] | None = None
    cancel: Callable[[], bool] | None = None


def execute(
    spec: Spec,
    path: str | Path,
    *,
    plugins: Given = (),
    draw: Draw | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> tuple[Run, Any]:
    """Make the folder `path` and run `spec` in it.

    The result is what `solve`, `evolve`, ... return. `draw(run, result)` makes figures and a report and gives back a
    summary for the manifest; it comes before the folder is sealed, so a finished folder is always whole. `plugins` are
    files beside those that `spec` was loaded with; the manifest records the hash of each, and the folder keeps its
    text.
    """
    instance("spec", spec, Spec, "a specification, such as load_spec('mine.toml')")
    spec = dataclasses.replace(spec, plugins=joined(spec.plugins, plugins))
    arguments = check_spec(spec, path)
    run = Run.create(path, spec, kind=spec.kind.name, **spec.plugins.facts())
    with run.lock():
        return run, _complete(run, spec, arguments, Watch(draw, on_progress, cancel))


def check_spec(spec: Spec, path: str | Path | None = None) -> dict[str, Any]:
    """Refuse a specification that cannot be carried out: everything up to the first step is done, and nothing saved.

    `path` is where its arrays would have to find room. Returns the arguments of the function that does the work.
    """
    arguments = spec.build()
    with contextlib.suppress(_Accepted):
        spec.kind.function(**arguments, sink=_Nowhere(path))
    return arguments


class _Accepted(Exception):
    pass


class _Nowhere(AbstractSink):
    """Takes nothing."""

    keeps_partial = False

    def __init__(self, path: str | Path | None):
        self.path = path

    def begin(self, layout: Layout) -> None:
        if self.path is not None:
            above = Path(self.path).absolute().parents
            require_space(next((folder for folder in above if folder.is_dir()), Path.cwd()), layout.size)
        raise _Accepted

    def load(self, state: Any) -> Checkpoint | None:
        raise NotImplementedError

    def commit(self, start: dict[str, int], rows: Tables, checkpoint: Checkpoint) -> None:
        raise NotImplementedError

    def end(self, checkpoint: Checkpoint, static: dict[str, Any], attributes: dict[str, Any], complete: bool) -> Any:
        raise NotImplementedError


def resume(
    path: str | Path,
    *,
    plugins: Given = (),
    draw: Draw | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> tuple[Run, Any]:
    """Continue a run from its last checkpoint; a finished one is only opened.

    `plugins` are the files that the run was made with; one that is missing or has changed is refused, before any of
    them is executed and before anything is written.
    """
    run = Run.open(path)
    with run.lock():
        run.settle()
        if run.manifest()["status"] == "finished":
            return run, open_run(run.path, plugins=plugins)
        spec = run.spec(plugins)
        return run, _complete(run, spec, spec.build(), Watch(draw, on_progress, cancel))


def extend(
    path: str | Path,
    until: float,
    *,
    save: int | None = None,
    plugins: Given = (),
    draw: Draw | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> tuple[Run, Any]:
    """Continue a finished run to the later time `until` (a fit: to more steps).

    The folder then holds the longer run, bit by bit as one run with all save times would have made it; its
    specification says so. `save` is the number of new intervals between frames; left out, the spacing stays.
    """
    run = Run.open(path)
    with run.lock():
        run.settle()
        manifest = run.manifest()
        if manifest["status"] != "finished":
            raise RunError(f"{str(path)!r} is not finished; continue it with `attnflow resume {path}` first.")
        ending, message = manifest["outcome"]["ending"], manifest["outcome"]["message"]
        if ending != Ending.FINISHED.value:
            raise RunError(f"{str(path)!r} has ended: {message.removesuffix('.')}; it does not go on from there.")
        longer = run.spec(plugins).extended(until, save)
        arguments = check_spec(longer)
        run.verify()
        if not run.checkpoint.exists():
            raise RunError(f"{str(path)!r} has no checkpoint to go on from; run its spec.toml again, to {until:g}.")
        run.become(longer)
        return run, _complete(run, longer, arguments, Watch(draw, on_progress, cancel))


def redraw(
    path: str | Path,
    *,
    plugins: Given = (),
    draw: Draw | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> tuple[Run, Any]:
    """Draw the figures and the report of a finished run again; its arrays stay as they are."""
    run = Run.open(path)
    with run.lock():
        run.settle()
        if run.manifest()["status"] != "finished":
            raise RunError(f"{str(path)!r} is not finished; continue it with `attnflow resume {path}` first.")
        spec = run.spec(plugins)
        run.verify()
        if not run.checkpoint.exists():
            raise RunError(f"{str(path)!r} has lost its checkpoint; run its spec.toml again to get figures.")
        run.update(status="interrupted", checksums={})  # whatever happens now, `resume` completes it
        return run, _complete(run, spec, spec.build(), Watch(draw, on_progress, cancel))


def open_run(path: str | Path, *, plugins: Given = ()) -> Any:
    """What a run folder holds, loaded as it is used: a `Trajectory`, `LongFlow`, `DensityFlow`, ...

    An unfinished run gives the frames that it has. A run that was made with plugins opens without them: what only they
    can make (a field, a start) is then None.
    """
    run = Run.open(path)
    manifest = run.manifest()
    spec = run.spec(plugins) if plugins or not manifest.get("plugins") else run.spec_as_written()
    found = manifest.get("outcome") or {"ending": "interrupted", "message": "the run is not finished."}
    outcome = Outcome(Ending(found["ending"]), found["message"])
    dataset = open_arrays(run.arrays)
    dataset = dataset.isel({dim: slice(0, count) for dim, count in _rows(run).items() if dim in dataset.dims})
    driven = Driven(dataset, outcome, manifest.get("steps", {}), Checkpoint(None, {}, {}, {}, None), None)
    return spec.kind.opened(driven, spec.parts(lenient=True), spec.keys(lenient=True))


def _facts(run: Run) -> dict[str, Any]:
    return read_checkpoint(run.checkpoint)[0] if run.checkpoint.exists() else {}


def _rows(run: Run) -> dict[str, int]:
    """Rows of every table that are on disk."""
    return _facts(run).get("committed", {})


def _complete(run: Run, spec: Spec, arguments: dict[str, Any], watch: Watch) -> Any:
    began, manifest = time.perf_counter(), run.manifest()
    before = run.wall_time(manifest)
    spec.plugins.keep(run.path)
    run.update(status="running", began=time.time(), wall_time=before)
    status: dict[str, Any] = {"status": "interrupted"}
    kind = spec.kind

    def finish() -> None:
        run.update(wall_time=before + time.perf_counter() - began, began=None, peak_memory=peak_memory(), **status)

    try:
        sink = ZarrSink(run.arrays, run.checkpoint)
        result = kind.function(**arguments, sink=sink, on_progress=watch.on_progress, cancel=watch.cancel, check=False)
        outcome = kind.outcome(result)
        status = {
            "status": "drawing" if outcome.complete else outcome.ending.value,
            "outcome": {"ending": outcome.ending.value, "message": outcome.message},
            "frames": kind.dataset(result).sizes.get(kind.rows, 0),
            "steps": _facts(run).get("steps", {}),
        }
        if outcome.ending is Ending.FAILED:
            raise FlowFailed(outcome.message, result)
        if outcome.complete:
            with spec.plugins.active():  # for those who read the specification again
                status["summary"] = watch.draw(run, result) if watch.draw else {}
    except BaseException as error:
        if isinstance(error, AttnflowError):
            status |= {"status": "failed", "message": str(error)}
        with contextlib.suppress(RunError):  # the first error is the one to report
            finish()
        raise
    finish()
    if outcome.complete:
        run.seal()
    return result


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes; 0 where the system does not tell (Windows)."""
    with contextlib.suppress(OSError):  # getrusage would count what the parent process held when it started this one
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
