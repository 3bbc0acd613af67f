"""Carry out a sweep: plan it or find it in its folder, do what is missing, collect."""

import contextlib
import dataclasses
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnflow.checks import instance, shown, whole
from attnflow.errors import InvalidInput, RunError, RunExists
from attnflow.flows import AbstractWork
from attnflow.folders import Folder
from attnflow.parsing import parse_toml
from attnflow.runs import Spec
from attnflow.runs.claims import PATIENCE, Watch, content, owner_is_gone
from attnflow.runs.earlier import LAST_SWEEPS, counting_all_tokens
from attnflow.runs.files import require_writable
from attnflow.runs.plugins import Given, Plugins
from attnflow.sweeps.collection import collect, is_litter
from attnflow.sweeps.index import Index
from attnflow.sweeps.opened import Sweep
from attnflow.sweeps.plan import FOLDERS, Plan, arrange, is_of_a_sweep, make_folders, read_plan, same_sweep, write_plan
from attnflow.sweeps.ranges import Axis, axes_of, axis_of, checked, points, with_integers
from attnflow.sweeps.source import AbstractSource, FunctionSource, SpecSource, WorkSource, text_of
from attnflow.sweeps.unit import Record, carry_out, is_done
from attnflow.wording import fresh_path

PAUSE = 0.2
"""Seconds between two looks at units that other processes are doing."""
COLLECT_EVERY = 30.0
"""Seconds between two updates of the results while the sweep runs, at least."""
LITTER = 3600.0
"""Seconds after which a temporary file counts as left by a process that was killed."""
COLLECT_SHARE = 20.0
"""The same as a multiple of what the last update took."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    done: int
    """Tasks that are finished, here or elsewhere, failed ones among them."""
    of: int
    failed: int
    note: str = ""


OnProgress = Callable[[Progress], None] | None


def sweep(
    what: Any,
    over: Mapping[Any, Any] | Sequence[Axis] | None = None,
    folder: str | Path = "sweep",
    *,
    on: str = "here",
    set: Sequence[str] = (),
    plugins: Given = (),
    width: int | None = None,
    workers: int | None = None,
    configuration: str | Path | None = None,
    patience: float = PATIENCE,
    retry: bool = False,
    on_progress: OnProgress = None,
) -> Sweep:
    """Carry out `what` at all points of the axes `over`, in `folder`; what is done already is not done again.

    The same call again resumes a sweep that was interrupted. More values along an axis extend it: only new points are
    done. Several processes and machines may work on one folder at a time. A task that fails is a row with its error.

    Arguments:
        what: a specification (a TOML file, the name of a preset, or a `Spec`), a function of named parameters that
            returns numbers, arrays by name, a Dataset or work, or work itself, of which the axes are fields.
        over: values by key, `{"field.beta": "logspace(1,81,9)", "tokens.seed": range(64)}`: lists, ranges, arrays, or
            texts as on the command line, `"1,4,9"`, `"range(0,64,8)"`, `"linspace(1,81,9)"`, `"logspace(1,81,9)"`; the
            last is geometric from 1 to 81. A field that takes integers gets integers. Keys that vary together are a
            tuple, `{("field.beta", "solve.until"): [(1, 10), ...]}`. Left out, the table [sweep] of the specification.
        on: where: "here" is this process; "local" is a cluster of processes on this machine, "slurm" one of jobs,
            "tcp://HOST:PORT" a scheduler that is there. They need the extra `sweeps`.
        set: changes of the specification, as "solve.until=50".
        plugins: files that the specification needs.
        width: tasks that are done side by side, at most; left out, as many as the tokens and the tasks suggest. It is
            fixed when the sweep is made.
        workers: processes of "local", jobs of "slurm".
        configuration: a TOML file for "slurm".
        patience: seconds without a sign of life after which the work of another machine is taken over.
        retry: do the units of tasks that have failed again.
        on_progress: called with a `Progress` that says the number of points before anything starts, and whenever tasks
            have finished.

    Returns a `Sweep`, whose `dataset` has the swept keys as coordinates. Ctrl-C raises KeyboardInterrupt; what is
    finished is kept.
    """
    source, axes = described(what, over, set, plugins)
    return carry_out_sweep(
        source,
        axes,
        folder,
        on=on,
        width=width,
        workers=workers,
        configuration=configuration,
        patience=patience,
        retry=retry,
        on_progress=on_progress,
    )


def carry_out_sweep(
    source: AbstractSource,
    axes: Sequence[Axis],
    folder: str | Path,
    *,
    on: str = "here",
    width: int | None = None,
    workers: int | None = None,
    configuration: str | Path | None = None,
    patience: float = PATIENCE,
    retry: bool = False,
    on_progress: OnProgress = None,
) -> Sweep:
    """The same for a source and axes that are checked; arguments as for `sweep`."""
    path = fresh_path("folder", folder)
    if workers is not None:
        whole("workers", workers, 1, 100_000)
    if on != "here":
        from attnflow.sweeps.cluster import cluster_of

        cluster = cluster_of(on, workers, configuration)
    elif configuration is not None:
        raise InvalidInput("`configuration` is for 'slurm', and `on` is 'here'; leave it out.")
    if on_progress is not None:
        count = math.prod(map(len, axes))
        on_progress(Progress(0, count, 0, f"{count:,} point{'s' * (count > 1)}"))
    plan = planned(path, source, axes, width=width, workers=workers or cores(), on_progress=on_progress)
    tidy(path)
    if retry:
        forget_failed(path, plan)
    tally = Tally(path, plan, on_progress)
    if on == "here":
        in_this_process(tally, source, patience=patience)
    else:
        from attnflow.sweeps.cluster import on_cluster

        on_cluster(tally, source, cluster, patience=patience)
    collect(path, plan)
    return Sweep(path)


def forget_failed(folder: Path, plan: Plan) -> None:
    """Remove the shards in which a task has failed."""
    for unit in {unit for unit, _, _ in Index(folder, plan).errors()}:
        Folder(folder).remove(f"shards/{unit}.npz")


def tidy(folder: Path) -> None:
    """Make the folders inside of a sweep folder, and remove what killed processes and earlier versions left there."""
    make_folders(folder)
    entries = Folder(folder)
    for name in ("index.sqlite", "index.sqlite-journal"):
        entries.remove(name)
    for below in ("", *FOLDERS):
        for entry in entries.entries(below):
            name = f"{below}/{entry}".removeprefix("/")
            is_old = is_litter(entry) and entries.is_file(name) and time.time() - entries.changed(name) > LITTER
            seen = content(entries.inside(below), entry) if below == "claims" and entries.is_file(name) else None
            if is_old or (seen is not None and owner_is_gone(seen)):
                entries.remove(name)


def described(
    what: Any, over: Any, changes: Sequence[str] = (), plugins: Given = ()
) -> tuple[AbstractSource, tuple[Axis, ...]]:
    """The source and the axes of a sweep as a person gives them."""
    own: dict[str, Any] = {}
    source: AbstractSource
    if isinstance(what, Spec | str | Path):
        text, own, loaded = text_of(what, plugins, changes)
        source = SpecSource(text, loaded)
    elif changes or (plugins and not isinstance(plugins, Plugins)):
        raise InvalidInput("`set` and `plugins` are for specifications; give a function or work the values in `over`.")
    elif isinstance(what, AbstractWork):
        source = WorkSource(what)
    elif callable(what):
        source = FunctionSource(what)
    else:
        raise InvalidInput(f"`what` is {shown(what)}; give a specification, a function of named parameters, or work.")
    if isinstance(over, Sequence) and not isinstance(over, str):
        given = [axis_of(one) if isinstance(one, str) else instance("over", one, Axis, "axes") for one in over]
        keys = {key for axis in given for key in axis.keys}
        axes = checked([*axes_of(own), *given] if own and not keys & {*own} else given)
    else:
        axes = axes_of(own if over is None else over)
    source.check_axes(axes)
    first = next(points(axes))
    return source, with_integers(axes, lambda key: source.takes_integer(key, first))


def planned(
    folder: Path,
    source: AbstractSource,
    axes: Sequence[Axis],
    *,
    width: int | None = None,
    workers: int = 1,
    on_progress: OnProgress = None,
) -> Plan:
    """The plan of the folder, made or extended if need be; refused where the folder holds something else."""
    if width is not None:
        whole("width", width, 1, 4096)

    def report(done: int, of: int) -> None:
        if on_progress is not None and (done % 64 == 0 or done == of):
            on_progress(Progress(0, of, 0, f"checking point {done} of {of}"))

    source.check_axes(axes)
    while True:
        with contextlib.suppress(RunExists):  # another process was first; its plan is read
            return _found(folder, source, axes, width, workers, report)


def _found(
    folder: Path,
    source: AbstractSource,
    axes: Sequence[Axis],
    width: int | None,
    workers: int,
    report: Callable[[int, int], None],
) -> Plan:
    """The plan of the folder as it is now, made or extended."""
    if not (folder / "sweep.json").exists():
        require_writable(folder)
        if folder.exists() and any(not is_of_a_sweep(path) for path in folder.iterdir()):
            raise RunError(f"{str(folder)!r} is not empty and holds no sweep; choose another folder.")
        plan = arrange(source, axes, width=width, workers=workers, on_progress=report)
        write_plan(folder, plan)
        _keep_plugins(folder, source)
        return plan
    plan = read_plan(folder)
    if plan.format <= LAST_SWEEPS and plan.source["kind"] == "specification":
        table = parse_toml(plan.source["text"])
        if counting_all_tokens(table) != table:
            raise RunError(
                f"the sweep in {str(folder)!r} was made when `n` of clustered tokens counted those of each centre; its "
                "results can be read, and new points need another folder."
            )
    if width is not None and width != plan.width:
        raise RunError(f"the sweep in {str(folder)!r} has groups of at most {plan.width} tasks; leave `width` out.")
    if same_sweep(plan, source, axes, folder):
        return plan
    plan = arrange(source, axes, before=plan, on_progress=report)
    write_plan(folder, plan)
    return plan


def _keep_plugins(folder: Path, source: AbstractSource) -> None:
    if isinstance(source, SpecSource):
        source.plugins.keep(Folder(folder))


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Tally:
    """Counts what is done, tells it, and lets results grow now and then."""

    def __init__(self, folder: Path, plan: Plan, on_progress: OnProgress):
        self.folder, self.plan, self.on_progress = folder, plan, on_progress
        self.missing = {name: None for name in plan.units if not is_done(folder, name)}
        self.failed, self.collected, self.cost = 0, time.monotonic(), 0.0
        self.tell()

    @property
    def done(self) -> int:
        """Tasks that are finished."""
        return self.plan.count - sum(len(self.plan.units[name][1].names) for name in self.missing)

    def tell(self, note: str = "") -> None:
        """Say how far the sweep is."""
        if self.on_progress is not None:
            self.on_progress(Progress(self.done, self.plan.count, self.failed, note))

    def take(self, record: Record) -> None:
        """A unit is finished."""
        self.missing.pop(record["unit"], None)
        self.failed += record["errors"]
        self.tell()
        if time.monotonic() - self.collected > max(COLLECT_EVERY, COLLECT_SHARE * self.cost):
            began = time.monotonic()
            collect(self.folder, self.plan, wait=False)
            self.collected = time.monotonic()
            self.cost = self.collected - began


def in_this_process(tally: Tally, source: AbstractSource, *, patience: float = PATIENCE) -> None:
    """Do all that is missing, one unit after the other; units that others do are waited for."""
    folder, plan, watch = tally.folder, tally.plan, Watch(patience)
    while tally.missing:
        moved = False
        for unit in list(tally.missing):
            if not watch.is_free(Folder(folder, "claims"), unit) and not is_done(folder, unit):
                continue
            record = carry_out(folder, plan, source, unit)
            if record["status"] != "busy":
                tally.take(record)
                moved = True
        if tally.missing and not moved:
            tally.tell("waiting for other processes")
            time.sleep(PAUSE)
