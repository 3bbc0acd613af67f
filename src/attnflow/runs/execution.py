"""Carry out a specification in a run folder, from the start, from where it was left, or beyond its end."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnflow.checks import instance
from attnflow.errors import FlowFailed, InvalidInput, RunCorrupted, RunError
from attnflow.flows import AbstractResult, AbstractWork, Control, Drive, Driven, Ending, Outcome, Progress
from attnflow.interrupts import interruptible
from attnflow.precision import full_precision
from attnflow.runs.arrays import open_arrays, read_checkpoint, require_digests
from attnflow.runs.described import Described
from attnflow.runs.files import CHECKPOINT, require_space, require_writable
from attnflow.runs.folder import Run
from attnflow.runs.lifecycle import attempt
from attnflow.runs.plugins import Given, Plugins, joined
from attnflow.runs.registry import REGISTRY
from attnflow.runs.spec import Spec, spec_of
from attnflow.runs.store import ZarrSink
from attnflow.wording import shown

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
    if plugins:
        spec = dataclasses.replace(spec, plugins=joined(spec.plugins, plugins))
    drive = check_spec(spec, path)
    with Run.creating(path, spec, kind=spec.kind, **spec.plugins.facts()) as run:
        return run, _complete(run, spec.kind, spec.plugins, drive, Watch(draw, on_progress, cancel))


def check_spec(spec: Spec, path: str | Path | None = None) -> Drive:
    """Refuse a specification that cannot be carried out: everything up to the first step is done, and nothing saved.

    `path` is where its arrays would have to find room. Returns the checked work, ready to be carried out.
    """
    if path is not None:
        require_writable(Path(path))
    with spec.plugins.active():
        return _ready(spec.work, path)


def ensure(
    work: Spec | AbstractWork,
    root: str | Path,
    *,
    draw: Draw | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> tuple[Run, Any]:
    """The run of `work` below the folder `root`: opened, resumed or executed, as it is needed.

    `work` is work that was made in Python, such as `flows.Solve(field, tokens, 10.0)`, or a specification. Its hash
    names the folder: the same work, from whatever process, is done once.
    """
    instance("work", work, Spec | AbstractWork, "work such as Solve(field, tokens, 10.0), or a specification")
    settings = work if isinstance(work, Spec) else Described(work)
    path, watch = Path(root) / settings.hash[:16], Watch(draw, on_progress, cancel)
    there = (path / "manifest.json").exists()
    if isinstance(work, Spec):
        again = {"draw": draw, "on_progress": on_progress, "cancel": cancel}
        return resume(path, plugins=work.plugins, **again) if there else execute(work, path, **again)  # type: ignore[arg-type]
    drive = None if there else _ready(work, path)
    with Run.open(path).lock() if there else Run.creating(path, settings) as run:
        manifest = run.manifest()
        if manifest["status"] == "finished":
            return run, _opened(run, work, _outcome(manifest), manifest.get("steps", {}))
        return run, _complete(run, settings.name, Plugins(), drive or _ready(work, path), watch)


def _ready(work: AbstractWork, path: str | Path | None) -> Drive:
    """Checked work, ready to be carried out; refused where its arrays find no room."""
    if type(work) not in REGISTRY["kind"].values():
        work.__reduce__()  # refuses what cannot travel to another process
    drive = Drive(work.checked())
    if path is not None:
        require_space(Path(path), drive.layout.size)
    return drive


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
        spec = spec_of(run, plugins)
        return run, _complete(run, spec.kind, spec.plugins, check_spec(spec), Watch(draw, on_progress, cancel))


def extend(
    path: str | Path,
    until: Any,
    *,
    save: int | None = None,
    plugins: Given = (),
    draw: Draw | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> tuple[Run, Any]:
    """Continue a finished run to the later time `until` (a fit: to more steps; a comparison: with more texts).

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
        longer = spec_of(run, plugins).extended(until, save)
        drive = check_spec(longer)
        run.verify()
        if not run.folder.is_file(CHECKPOINT):
            raise RunError(f"{str(path)!r} has no checkpoint to go on from; run its spec.toml again, to a later end.")
        run.become(longer)
        return run, _complete(run, longer.kind, longer.plugins, drive, Watch(draw, on_progress, cancel))


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
        spec = spec_of(run, plugins)
        run.verify()
        if not run.folder.is_file(CHECKPOINT):
            raise RunError(f"{str(path)!r} has lost its checkpoint; run its spec.toml again to get figures.")
        run.update(status="interrupted", checksums={})  # whatever happens now, `resume` completes it
        return run, _complete(run, spec.kind, spec.plugins, check_spec(spec), Watch(draw, on_progress, cancel))


def open_run(path: str | Path, *, plugins: Given = ()) -> Any:
    """What a run folder holds, loaded as it is used: a `Trajectory`, `LongFlow`, `DensityFlow`, ...

    An unfinished run gives the frames that it has. A run that was made with plugins opens without them: what only they
    can make (a field, a start) is then None.
    """
    run = Run.open(path)
    manifest = run.manifest()
    known = plugins or not manifest.get("plugins") or manifest.get("kind") not in REGISTRY["kind"]
    work = spec_of(run, plugins).work if known else Spec(run.table()).work_as_known()
    return _opened(run, work, _outcome(manifest), manifest.get("steps", {}))


def _outcome(manifest: dict[str, Any]) -> Outcome:
    """How a run ended, as its manifest says."""
    facts = manifest.get("outcome") or {"ending": "interrupted", "message": "the run is not finished."}
    try:
        return Outcome(Ending(facts["ending"]), facts["message"])
    except (ValueError, KeyError, TypeError):
        raise RunCorrupted(f"the manifest has the outcome {shown(facts)}; run the spec.toml again.") from None


def _opened(run: Run, work: Any, outcome: Outcome, steps: dict[str, int]) -> Any:
    """The result of `work` from the rows that are on disk."""
    manifest = run.manifest()
    is_finished = manifest["status"] == "finished"
    facts, checksums = _facts(run), manifest.get("checksums") if is_finished else None
    rows = facts.get("committed", None if is_finished else {work.rows: 0})
    dataset, tables = open_arrays(run.folder, checksums, rows)
    if not is_finished and facts:
        require_digests(dataset, tables, facts["commits"] if tables else [])
    with full_precision():
        return work.result(Driven(dataset, outcome, steps))


def _facts(run: Run) -> dict[str, Any]:
    """What the checkpoint says; that of a finished run must be the one that was sealed."""
    if not run.folder.is_file(CHECKPOINT):
        return {}
    manifest = run.manifest()
    expected = (manifest.get("checksums") or {}).get(CHECKPOINT) if manifest["status"] == "finished" else None
    if expected is not None and run.folder.checksum(CHECKPOINT) != expected:
        raise RunCorrupted(f"{CHECKPOINT!r} of {str(run.path)!r} was altered or truncated; run its spec.toml again.")
    return read_checkpoint(run.folder)[0]


def _complete(run: Run, kind: str, plugins: Plugins, drive: Drive, watch: Watch) -> Any:
    """Carry the work to its end in the folder, draw, and seal."""
    with attempt(run, plugins) as status:
        control = Control(ZarrSink(run.folder), watch.on_progress, watch.cancel, check=False)
        result = drive.run(control)
        if not isinstance(result, AbstractResult):
            raise InvalidInput(
                f"the kind {kind!r} gives a {type(result).__name__}; its `result` must return an AbstractResult."
            )
        outcome = result.outcome
        status |= {
            "status": "drawing" if outcome.complete else outcome.ending.value,
            "outcome": {"ending": outcome.ending.value, "message": outcome.message},
            "frames": result.dataset.sizes.get(drive.work.rows, 0),
            "steps": _facts(run).get("steps", {}),
        }
        if outcome.ending is Ending.FAILED:
            raise FlowFailed(outcome.message, result)
        if outcome.complete:
            if type(drive.work) not in REGISTRY["kind"].values():
                _same_from_folder(run, kind, drive, result)
            # the plugins are for those who read the specification again
            with plugins.active(), interruptible(watch.cancel):
                status["summary"] = watch.draw(run, result) if watch.draw else {}
    if outcome.complete:
        run.seal()
    return result


def _same_from_folder(run: Run, kind: str, drive: Drive, result: Any) -> None:
    """Refuse a kind from outside whose result is another one when its folder is opened."""
    again = _opened(run, drive.work, result.outcome, _facts(run).get("steps", {}))
    if type(again) is not type(result) or not again.dataset.identical(result.dataset):
        raise InvalidInput(
            f"the kind {kind!r} gives another result from its folder than from memory; let `result(driven)` use "
            "nothing but the fields of the work and `driven`."
        )
