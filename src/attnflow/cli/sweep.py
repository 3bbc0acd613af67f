"""`attnflow sweep`: a specification at all points of named axes, and what came of it."""

import json
import math
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from attnflow import errors
from attnflow.cli import complete, console
from attnflow.cli.console import INTERRUPTED, Json, Plugin, save_figure, say
from attnflow.wording import bytes_shown, shown

LOOKS = ("status", "collect", "show")
"""What can be asked of a sweep folder."""
MOST_ERRORS = 10
"""Errors that are printed."""
FAILED = 3


def sweep(
    what: Annotated[
        str,
        typer.Argument(
            help="A TOML file, or the name of a preset; or `status`, `collect` or `show` of a sweep folder.",
            metavar="SPEC.toml|PRESET|status|collect|show",
            autocompletion=complete.specifications,
        ),
    ],
    folder: Annotated[Path | None, typer.Argument(help="The folder to look at.", metavar="[DIR]")] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            help="An axis: a list 1,4,9, whole numbers range(0,64) or range(0,64,8) as in Python, 9 values "
            "linspace(1,81,9), or 9 values logspace(1,81,9), geometric from 1 to 81; brackets need quotes in a shell. "
            "May be given again; the sweep is over all combinations.",
            metavar="PART.KEY=VALUES",
        ),
    ] = None,
    zip_: Annotated[
        list[str] | None,
        typer.Option("--zip", help="An axis that varies together with all others of --zip.", metavar="PART.KEY=VALUES"),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change an entry of the specification.", metavar="PART.KEY=VALUE")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The sweep folder; default sweeps/NAME.", metavar="DIR")] = None,
    on: Annotated[
        str | None,
        typer.Option(
            help="Where: `local` (processes on this machine; the default with the extra `sweeps`), `slurm`, the "
            "address of a Dask scheduler, or `here` (this process; the default without the extra).",
            metavar="local|slurm|tcp://HOST:PORT|here",
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes or jobs; default one for each core.")] = None,
    width: Annotated[int | None, typer.Option(help="Tasks that are done side by side, at most.")] = None,
    configuration: Annotated[
        Path | None, typer.Option(help="A TOML file with the settings of the jobs of --on slurm.", metavar="FILE.toml")
    ] = None,
    plugin: Plugin = None,
    retry: Annotated[bool, typer.Option("--retry", help="Do the groups of failed tasks again.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check all points and say what the sweep will take; nothing is written.")
    ] = False,
    plot: Annotated[str | None, typer.Option(help="Draw this variable afterwards.", metavar="VARIABLE")] = None,
    mean: Annotated[
        str | None, typer.Option(help="Average the figure over this axis, with error bars.", metavar="PART.KEY")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            help="Where the figure looks along another dimension, at the nearest label: time=50; default the last. "
            "May be given again.",
            metavar="DIM=LABEL",
        ),
    ] = None,
    along: Annotated[str | None, typer.Option(help="The axis along which lines go.", metavar="PART.KEY")] = None,
    heat: Annotated[bool, typer.Option("--heat", help="Draw a heat map of two axes.")] = False,
    figure: Annotated[Path | None, typer.Option(help="Where the figure goes.", metavar="FILE.pdf")] = None,
    json_: Json = False,
) -> None:
    """Carry out a specification at all points of axes; the same command again resumes or extends the sweep.

    `attnflow sweep status DIR` counts tasks, `collect DIR` brings results.zarr up to date, `show DIR` prints axes,
    results and errors.
    """
    if what in LOOKS:
        if folder is None:
            raise errors.InvalidInput(f"`attnflow sweep {what}` needs a sweep folder, say sweeps/mine.")
        show_sweep(what, folder, json_)
        _draw(folder, plot, mean, at, along, heat, figure)
        return
    if folder is not None:
        raise errors.InvalidInput(f"{str(folder)!r} is one argument too many; name the folder with --out {folder}.")
    if plot is None and (figure is not None or mean is not None or at or along is not None or heat):
        raise errors.InvalidInput("--figure, --mean, --at, --along and --heat need --plot VARIABLE.")
    _labels(at)
    console.use_compilation_cache()
    from attnflow.sweeps.execution import described
    from attnflow.sweeps.ranges import axis_of, zipped

    axes = [axis_of(one) for one in over or ()]
    axes += [zipped([axis_of(one) for one in zip_])] if zip_ else []
    source, found = described(what, axes or None, set_ or (), plugin or ())
    count = math.prod(map(len, found))
    axes_shown = " × ".join(f"{axis.dim} ({len(axis)})" for axis in found)
    say.print(f"{count:,} point{'s' * (count > 1)}: {axes_shown}", markup=False, soft_wrap=True)
    if dry_run:
        _estimate(source, found, width, workers, json_)
        return
    where = out or Path("sweeps") / Path(what).stem
    _carry_out(
        source,
        found,
        where,
        json_,
        on=on or _usual(),
        workers=workers,
        width=width,
        configuration=configuration,
        retry=retry,
    )
    _draw(where, plot, mean, at, along, heat, figure)
    if _failures(where):
        sys.exit(FAILED)


def _carry_out(source: Any, axes: Any, where: Path, json_: bool, **how: Any) -> None:
    """Run with a progress bar, then print what came of it."""
    from attnflow.cli.progress import Bar
    from attnflow.sweeps.execution import Progress, carry_out_sweep

    with Bar(say, where.name, "planning") as bar:

        def show(at: Progress) -> None:
            if at.note.endswith((" point", " points")):  # said before the bar
                return
            failed = f", {at.failed} failed" if at.failed else ""
            note = at.note if at.note.startswith("checking") else f"{at.done} of {at.of} tasks{failed}"
            share = 0.0 if at.note.startswith("checking") else at.done / max(at.of, 1)
            bar.at(f"{note} · {at.note}" if at.note and at.note != note else note, share)

        try:
            carry_out_sweep(source, axes, where, on_progress=show, **how)
        except KeyboardInterrupt:
            bar.bar.stop()
            again = shlex.join(["attnflow", *sys.argv[1:]])
            say.print(f"interrupted; what is finished is kept. Continue with: {again}", soft_wrap=True, markup=False)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
    show_sweep("show", where, json_)


def _usual() -> str:
    """Where a sweep is carried out if nothing is said."""
    import importlib.util

    from attnflow.sweeps.execution import cores

    if importlib.util.find_spec("distributed") is not None:
        return "local" if cores() > 1 else "here"
    say.print(
        "One process does the sweep. The extra adds workers on all cores, SLURM jobs and Dask clusters: "
        "pip install 'attnflow[sweeps]'.",
        soft_wrap=True,
        markup=False,
    )
    return "here"


def _failures(where: Path) -> int:
    from attnflow.sweeps import open_sweep

    return open_sweep(where).status.failed


def show_sweep(what: str, folder: Path, json_: bool) -> None:
    """Print how far a sweep is and over which axes it goes; with `show` also results and failures."""
    from attnflow.sweeps import open_sweep
    from attnflow.sweeps.ranges import at

    found = open_sweep(folder)
    status = found.status
    facts: dict[str, Any] = {
        "sweep": str(folder),
        "tasks": status.of,
        "done": status.done,
        "failed": status.failed,
        "missing": status.missing,
    }
    facts["axes"] = {axis.dim: len(axis) for axis in found.plan.axes}
    wrong = [] if what == "collect" else found.errors
    facts["errors"] = [{"point": point, "error": error} for point, error in wrong]
    if what != "status":
        data = found.dataset
        facts["variables"] = {str(name): list(map(str, array.dims)) for name, array in data.data_vars.items()}
    if json_:
        print(json.dumps(facts, indent=2))
        return
    table = Table(show_header=False, box=None)
    table.add_row("tasks", f"{status.done} of {status.of} done, {status.failed} failed, {status.missing} missing")
    table.add_row("axes", " × ".join(f"{dim} ({size})" for dim, size in facts["axes"].items()))
    for name, dims in facts.get("variables", {}).items():
        table.add_row(name, ", ".join(dims))
    if what != "status":
        table.add_row("results", f"{folder / 'results.zarr'}")
    say.print(table)
    for point, error in wrong[:MOST_ERRORS]:
        say.print(f"failed at {at(point)}: {error}", markup=False, soft_wrap=True)
    if len(wrong) > MOST_ERRORS:
        say.print(f"and {len(wrong) - MOST_ERRORS} more; `attnflow sweep show {folder} --json` has all.", markup=False)


def _labels(at: list[str] | None) -> dict[str, Any]:
    """`time=50` as {"time": 50.0}."""
    labels: dict[str, Any] = {}
    for text in at or ():
        dim, equals, label = text.partition("=")
        if not equals or not dim or not label:
            raise errors.InvalidInput(f"`--at` is {shown(text)}; give a dimension and a label, such as time=50.")
        try:
            labels[dim] = float(label)
        except ValueError:
            labels[dim] = label
    return labels


def _draw(
    folder: Path,
    plot: str | None,
    mean: str | None,
    at: list[str] | None,
    along: str | None,
    heat: bool,
    figure: Path | None,
) -> None:
    if plot is None:
        return
    from attnflow.sweeps import open_sweep

    with console.in_words_of_options({"over": "--mean", "x": "--along", "heat": "--heat", "at": "--at"}):
        drawn = open_sweep(folder).plot(plot, over=mean, x=along, at=_labels(at), heat=heat)
    where = figure or folder / f"{plot}.pdf"
    save_figure(drawn, where)
    say.print(f"figure in {where}", markup=False, soft_wrap=True)


def _estimate(source: Any, axes: Any, width: int | None, workers: int | None, json_: bool) -> None:
    import dataclasses

    from attnflow.cli.progress import span
    from attnflow.sweeps.estimate import estimate
    from attnflow.sweeps.execution import cores

    found = estimate(source, axes, width=width, workers=workers or cores())
    if json_:
        print(json.dumps(dataclasses.asdict(found), indent=2))
        return
    say.print(
        f"{found.tasks} tasks in {found.units} groups of up to {found.width}; a group of {found.pilot} was measured.\n"
        f"time    about {span(found.seconds)} with one process, {span(found.seconds / (workers or cores()))} with "
        f"{workers or cores()}\nmemory  {bytes_shown(found.memory)} for each process\n"
        f"disk    {bytes_shown(found.disk)}",
        markup=False,
        soft_wrap=True,
    )
