"""`attnflow reproduce`, `attnflow experiments` and `attnflow gallery`."""

import contextlib
import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from attnflow import errors
from attnflow.cli import INTERRUPTED, complete, console
from attnflow.cli.console import (
    CLAIM_FAILS,
    Json,
    exit_code,
    leave_interrupted,
    refusal,
    say,
    say_error,
    stoppable,
)
from attnflow.cli.progress import Bar
from attnflow.runs.files import require_writable
from attnflow.wording import fresh_path


@dataclasses.dataclass(frozen=True)
class Found:
    """How one experiment of a command ended: with claims, or with an error."""

    name: str
    run: Any = None
    claims: Sequence[Any] = ()
    error: Exception | None = None

    @property
    def failed(self) -> int:
        """Number of claims that fail."""
        return sum(not claim.holds for claim in self.claims)


def experiments(json_: Json = False) -> None:
    """List the experiments: published results and consequences, each with its statement."""
    from attnflow import experiments as room
    from attnflow.cli.tables import print_experiments

    found = [room.find(name) for name in room.names()]
    if json_:
        rows = [{"name": e.name, "statement": e.statement, "papers": list(e.papers)} for e in found]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        print_experiments(found)


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Experiments (`attnflow experiments` lists them), or Python files with experiments of your own.",
            metavar="NAME|FILE.py...",
            autocompletion=complete.experiments,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every experiment; go on after failures.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="The small versions, for a first look.")] = False,
    salt: Annotated[
        int,
        typer.Option(
            help="Seed for fresh random numbers; with --all, experiments without random numbers are left out.", min=0
        ),
    ] = 0,
    jobs: Annotated[
        int, typer.Option(help="Experiments at a time, each in a process of its own; at most one a core.", min=1)
    ] = 1,
    on: Annotated[
        str | None,
        typer.Option(
            help="Workers that make parts of each experiment beside this process: `local` (processes on this machine), "
            "`slurm`, or the address of a Dask scheduler. Needs the extra `sweeps`.",
            metavar="local|slurm|tcp://HOST:PORT",
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes or jobs of --on.", min=1)] = None,
    configuration: Annotated[
        Path | None, typer.Option(help="A TOML file with the settings of the jobs of --on slurm.", metavar="FILE.toml")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The run folder; with several experiments DIR/NAME. Default runs/NAME-DATE-TIME.", metavar="DIR"
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Carry out experiments and say which of their claims hold; exit with 1 if one does not.

    Example: attnflow reproduce staircase --quick --salt 7; attnflow reproduce exit-times --on local
    """
    console.use_compilation_cache()
    from attnflow import experiments as room

    chosen = _chosen(names or [], all_, room.names())
    if all_ and salt:  # which by name would be refused
        from attnflow.experiments.randomness import draws_random_numbers

        unsalted = [name for name, experiment in chosen.items() if not draws_random_numbers(experiment)]
        chosen = {name: experiment for name, experiment in chosen.items() if name not in unsalted}
        if unsalted:
            say.print(f"left out, as they draw no random numbers: {', '.join(unsalted)}.", soft_wrap=True, markup=False)
    out = fresh_path("--out", out) if out else None
    several = all_ or len(chosen) > 1
    found: list[Found] = []
    require_writable(out or Path("runs"))
    jobs = min(jobs, os.cpu_count() or 1)
    helped = _helped(on, workers, configuration, jobs)
    if jobs > 1 and several:
        options = ["--quick"] * quick + (["--salt", str(salt)] if salt else [])
        folder = out or Path("runs") / f"experiments-{datetime.now():%Y%m%d-%H%M%S}"
        _side_by_side([(given, e.name, folder / e.name, options) for given, e in chosen.items()], jobs, found, json_)
        return
    experiments = list(chosen.values())
    for k, experiment in enumerate(experiments):
        name = experiment.name
        default = Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
        where = default if out is None else out / name if several else out
        rest = [f"not begun: {', '.join(e.name for e in experiments[k + 1 :])}."] if experiments[k + 1 :] else []

        def start(on_progress: Callable[[Any], None], experiment: Any = experiment, where: Path = where) -> Any:
            with helped(where, experiment):
                return room.reproduce(experiment, where, quick=quick, salt=salt, on_progress=on_progress)

        try:
            found.append(follow(start, where, name, *rest))
        except Exception as error:
            if not several:
                raise
            known = refusal(error)
            if known is None:
                traceback.print_exception(error)
            else:
                say_error(known)
            found.append(Found(name, error=known or error))
        if not json_:
            print_found(found[-1:], json_)
    if json_:
        print_found(found, json_)
    elif several:
        _print_summary(found)
    leave(found)


def _helped(on: str | None, workers: int | None, configuration: Path | None, jobs: int) -> Callable[..., Any]:
    """A block in which the workers of --on help with the experiment in a folder; refused before any work."""
    if on in (None, "here"):
        if workers is not None or configuration is not None:
            raise errors.InvalidInput("--workers and --configuration need --on, say --on local.")
        return lambda where, experiment: contextlib.nullcontext()
    if jobs > 1:
        raise errors.InvalidInput("--jobs and --on exclude each other: workers of --on share one experiment.")
    from attnflow.cli.jobs import assist
    from attnflow.sweeps.assistants import assistants
    from attnflow.sweeps.cluster import cluster_of, processes

    if on == "local" and workers is None:
        workers = max(1, processes() - 1)  # this process is at work too
    cluster = cluster_of(str(on), workers, configuration)

    def block(where: Path, experiment: Any) -> Any:
        files = [one.source.place for one in experiment.plugins.loaded]
        return assistants(cluster, assist, str(where.resolve()), files)

    return block


def gallery(
    runs: Annotated[Path, typer.Argument(help="The folder that holds the runs of experiments.", metavar="RUNS")],
    out: Annotated[Path, typer.Option(help="The page.", metavar="FILE")] = Path("docs/gallery.md"),
    images: Annotated[Path, typer.Option(help="Where its pictures go.", metavar="DIR")] = Path("docs/images/gallery"),
    mutations: Annotated[
        Path | None,
        typer.Option(help="The record of campaigns/physics.py: which mutations claims notice.", metavar="FILE"),
    ] = None,
    replications: Annotated[
        Path | None,
        typer.Option(help="The record of campaigns/replicate.py: claims with fresh random numbers.", metavar="FILE"),
    ] = None,
    json_: Json = False,
) -> None:
    """Write the pages of the gallery from finished experiments (full versions); exit with 1 if a claim fails."""
    from attnflow.experiments.gallery_page import to_json, write_gallery
    from attnflow.experiments.mutation import read_matrices
    from attnflow.experiments.randomness import read_replications

    entries = write_gallery(
        runs,
        out,
        images,
        read_matrices(mutations) if mutations else None,
        read_replications(replications) if replications else None,
    )
    if json_:
        print(to_json(entries))
    else:
        say.print(f"wrote {out} with {len(entries)} experiments.", soft_wrap=True, markup=False)
    if any(not claim.holds for entry in entries for claim in entry.claims):
        sys.exit(CLAIM_FAILS)


def follow(start: Callable[..., Any], where: Path, name: str, *more: str) -> Found:
    """Carry out one experiment with a progress bar; Ctrl-C ends the process and prints how to resume."""
    with stoppable():
        try:
            with Bar(say, name, "beginning") as bar:
                run, claims = start(on_progress=bar.experiment)
        except KeyboardInterrupt:
            leave_interrupted(where, *more)
    return Found(name, run, claims)


def print_found(found: list[Found], json_: bool) -> None:
    """Print tables of claims, or one JSON list."""
    from attnflow.cli.tables import print_claims

    if json_:
        print(json.dumps([_entries(one) for one in found], indent=2))
        return
    for one in found:
        if one.error is None:
            print_claims(one.run, list(one.claims))


def leave(found: list[Found]) -> None:
    """End with the exit code of the first error, with 1 if a claim fails, or not at all."""
    for one in found:
        if one.error is not None:
            sys.exit(exit_code(one.error) if isinstance(one.error, errors.AttnflowError) else CLAIM_FAILS)
    if any(one.failed for one in found):
        sys.exit(CLAIM_FAILS)


def _side_by_side(work: list[tuple[str, str, Path, list[str]]], jobs: int, found: list[Found], json_: bool) -> None:
    from attnflow import experiments as room
    from attnflow.cli.jobs import in_processes

    names = {given: name for given, name, _, _ in work}
    with stoppable(), Bar(say, "experiments", f"{jobs} at a time") as bar:

        def ended(given: str, run: Any, error: Exception | None) -> None:
            name = names[given]
            found.append(Found(name, error=error) if error else Found(name, run, room.read_claims(run)))
            bar.at(f"{name} ended", len(found) / len(work))

        try:
            in_processes([(given, where, options) for given, _, where, options in work], jobs, ended)
        except KeyboardInterrupt:
            done = {one.name for one in found}
            rest = [str(where) for _, name, where, _ in work if name not in done and (where / "manifest.json").exists()]
            say.print(
                f"interrupted; continue with: {'; '.join(f'attnflow resume {where}' for where in rest)}",
                soft_wrap=True,
                markup=False,
            )
            sys.exit(INTERRUPTED)
    for one in found:
        if one.error is not None and not json_:
            say_error(one.error)
    print_found(found, json_)
    if not json_:
        _print_summary(found)
    leave(found)


def _chosen(names: list[str], all_: bool, known: list[str]) -> dict[str, Any]:
    """The experiments by their arguments, each looked up before any work: an unknown name or a bad file is refused."""
    from attnflow import experiments as room

    if all_ == bool(names):
        raise errors.InvalidInput(
            f"`reproduce` needs names of experiments or --all, not both; known are {', '.join(known)}."
        )
    return {name: room.look_up(name) for name in (known if all_ else dict.fromkeys(names))}


def _entries(one: Found) -> dict[str, Any]:
    if one.error is not None:
        return {"experiment": one.name, "status": "failed", "message": str(one.error)}
    return {"run": str(one.run.path), **one.run.manifest(), "claims": [claim.to_json() for claim in one.claims]}


def _print_summary(found: list[Found]) -> None:
    from attnflow.cli.tables import out

    total, failed = sum(len(one.claims) for one in found), sum(one.failed for one in found)
    good = [one for one in found if one.error is None and not one.failed]
    bad = [one.name for one in found if one.failed]
    broken = [one.name for one in found if one.error is not None]
    text = f"{len(good)} of {len(found)} experiments hold ({total - failed} of {total} claims)"
    text += f"; a claim fails in {', '.join(bad)}" if bad else ""
    text += f"; could not be carried out: {', '.join(broken)}" if broken else ""
    out.print(text + ".", soft_wrap=True)
    used = {one.name: one.run.manifest()["cpu_time"] for one in found if one.run is not None}
    if used:
        longest = max(used, key=lambda name: used[name])
        out.print(f"CPU time {sum(used.values()):.0f} s, at most {used[longest]:.0f} s an experiment ({longest}).")
