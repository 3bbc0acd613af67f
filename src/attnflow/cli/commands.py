"""`attnflow`: the commands, with what they print and how they end.

Exit codes: 0 done · 1 a claim fails · 2 wrong arguments or specification · 3 the flow failed · 4 the run folder exists
or is in use · 5 a run is damaged · 6 the disk or a file cannot be used · 130 interrupted (resume it).
"""

import json
import logging
import sys
import tomllib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from attnflow import __version__, errors
from attnflow.cli import complete, console
from attnflow.cli.animate import animate
from attnflow.cli.check import check
from attnflow.cli.cite import cite
from attnflow.cli.compare import compare
from attnflow.cli.console import (
    Folder,
    Json,
    NoFigures,
    Plugin,
    exit_code,
    refusal,
    say,
    say_error,
)
from attnflow.cli.kinds import kinds
from attnflow.cli.lab import lab
from attnflow.cli.perform import perform
from attnflow.cli.predict import predict
from attnflow.cli.probe import probe
from attnflow.cli.reproduce import experiments, follow, gallery, leave, print_found, reproduce
from attnflow.cli.sweep import show_sweep, sweep
from attnflow.cli.text import text
from attnflow.wording import fresh_path, shown

app = console.Commands(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    help="Transformers as flows of measures: simulate, look, and compare with theory.\n\n"
    "Example: [bold]attnflow run metastability[/bold]",
    epilog="Exit codes: 0 done · 1 a claim fails · 2 wrong arguments or specification · 3 the flow failed · 4 the run "
    "folder exists or is in use · 5 a run is damaged · 6 the disk or a file cannot be used · 130 interrupted "
    "(resume it).",
)


def carry_out() -> None:
    """Run the command that the process was called with; refusals are one sentence and an exit code."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # a cache of fonts that cannot be kept is no news
    try:
        app(prog_name="attnflow")
    except Exception as error:
        if (found := refusal(error)) is None:
            raise
        say_error(found)
        sys.exit(exit_code(found))


def _version(value: bool) -> None:
    if value:
        print(f"attnflow {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool | None, typer.Option("--version", help="Print the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: attnflow run metastability --set field.beta=9 --set tokens.seed=3 --out runs/first")
def run(
    spec: Annotated[
        str | None,
        typer.Argument(
            help="A TOML file, or the name of a preset.",
            metavar="SPEC.toml|PRESET",
            autocompletion=complete.specifications,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change an entry of the specification.", metavar="PART.KEY=VALUE")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run folder; default runs/NAME-DATE-TIME.", metavar="DIR")
    ] = None,
    from_url: Annotated[
        str | None, typer.Option(help="An address of the lab instead of a specification.", metavar="URL")
    ] = None,
    plugin: Plugin = None,
    no_figures: NoFigures = False,
    json_: Json = False,
) -> None:
    """Carry out a specification and leave a run folder with arrays, figures and a report."""
    console.use_compilation_cache()
    from attnflow import runs

    if (spec is None) == (from_url is None):
        raise errors.InvalidInput("`run` takes one specification: a TOML file, a preset, or --from-url URL.")
    if spec is not None:
        loaded = runs.load_spec(spec, set_ or (), plugin or ())
    else:
        from attnflow.lab import spec_of_address

        loaded = spec_of_address(str(from_url), set_ or (), plugin or ())
    where = fresh_path("--out", out) if out else Path("runs") / f"{loaded.name}-{datetime.now():%Y%m%d-%H%M%S}"
    perform(lambda **extra: runs.execute(loaded, where, **extra), where, loaded.name, json_, not no_figures)


@app.command(epilog="Example: attnflow resume runs/metastability-20260101-120000")
def resume(folder: Folder, plugin: Plugin = None, no_figures: NoFigures = False, json_: Json = False) -> None:
    """Continue a run that was interrupted or killed, from its last complete chunk or part."""
    console.use_compilation_cache()
    from attnflow import runs

    manifest = runs.Run.open(folder).manifest()
    if manifest["status"] == "finished":
        say.print(f"{folder} is finished already.")
        show(folder, json_)
        return
    if "experiment" in manifest:
        from attnflow.experiments import resume as resume_experiment

        def again(on_progress: Callable[[Any], None]) -> Any:
            return resume_experiment(folder, plugins=plugin or (), on_progress=on_progress)

        found = follow(again, folder, manifest["name"])
        print_found([found], json_)
        leave([found])
        return
    perform(
        lambda **extra: runs.resume(folder, plugins=plugin or (), **extra), folder, folder.name, json_, not no_figures
    )


@app.command(epilog="Example: attnflow extend runs/metastability-20260101-120000 --until 5000")
def extend(
    folder: Folder,
    until: Annotated[float, typer.Option(help="The later time to go to; steps of a fit.")],
    save: Annotated[
        int | None, typer.Option(help="New intervals between frames; left out, the spacing stays.", metavar="N")
    ] = None,
    plugin: Plugin = None,
    no_figures: NoFigures = False,
    json_: Json = False,
) -> None:
    """Continue a finished run to a later time, as one longer run would have gone on."""
    console.use_compilation_cache()
    from attnflow import runs

    if "experiment" in runs.Run.open(folder).manifest():
        raise errors.RunError(f"{str(folder)!r} holds an experiment, which has no later time; reproduce it again.")

    def start(**extra: Any) -> Any:
        return runs.extend(folder, until, save=save, plugins=plugin or (), **extra)

    perform(start, folder, folder.name, json_, not no_figures)


@app.command(epilog="Example: attnflow report runs/metastability-20260101-120000")
def report(folder: Folder, plugin: Plugin = None, json_: Json = False) -> None:
    """Draw the figures and the report of a finished run, as after `run --no-figures`."""
    console.use_compilation_cache()
    from attnflow import runs

    perform(lambda **extra: runs.redraw(folder, plugins=plugin or (), **extra), folder, folder.name, json_)


@app.command(epilog="Example: attnflow show runs/metastability-20260101-120000 --json")
def show(folder: Folder, json_: Json = False) -> None:
    """Print what a run did, after checking its files against their checksums, or how far a sweep is and its axes."""
    if (folder / "sweep.json").is_file() and not (folder / "manifest.json").exists():
        show_sweep("show", folder, json_)
        return
    from attnflow import runs
    from attnflow.cli.tables import print_run

    found = runs.Run.open(folder)
    found.verify()
    if json_:
        facts = found.facts()
        if "experiment" in facts:
            from attnflow.experiments import read_claims

            facts["claims"] = [claim.to_json() for claim in read_claims(found)]
        print(json.dumps({"run": str(folder), **facts}, indent=2))
    else:
        print_run(found)


@app.command("list", epilog="Example: attnflow list --where status=finished --where 'field.beta>=4'")
def list_(
    root: Annotated[Path, typer.Option(help="The folder that holds the runs.", metavar="DIR")] = Path("runs"),
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="List only runs for which this holds: an entry of the specification or of the manifest, and one of "
            "= != < <= > >=. May be given again.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """List the runs below a folder."""
    from attnflow import runs
    from attnflow.cli.tables import print_runs, run_facts

    if not root.is_dir() and root != Path("runs"):
        raise errors.RunError(f"there is no folder {shown(str(root))}; give the one that holds the runs.")
    found = runs.list_runs(root, where or ())
    if json_:
        print(json.dumps([{"run": str(run.path), **run_facts(run)} for run in found], indent=2))
    else:
        print_runs(found, root, filtered=bool(where))


@app.command(epilog="Example: attnflow presets metastability > mine.toml && attnflow run mine.toml")
def presets(
    name: Annotated[
        str | None, typer.Argument(help="Print this preset as TOML.", metavar="NAME", autocompletion=complete.presets)
    ] = None,
    json_: Json = False,
) -> None:
    """List the specifications that come with attnflow, or print one to start from."""
    from attnflow import runs

    if name is not None:
        spec = runs.parse_spec(runs.preset_text(name)) if json_ else None
        print(json.dumps(spec.table, indent=2) if spec else runs.preset_text(name), end="\n" if json_ else "")
        return
    known = {n: tomllib.loads(runs.preset_text(n))["about"] for n in runs.preset_names()}
    if json_:
        print(json.dumps(known, indent=2))
        return
    for preset, about in known.items():
        Console(highlight=False).print(f"[bold]{preset}[/bold]  {about}")


app.add_typer(predict, name="predict")
app.add_typer(probe, name="probe")
app.command(epilog="Example: attnflow animate runs/metastability-20260101-120000 --out metastability.gif")(animate)
app.command(epilog="Example: attnflow compare runs/cold runs/warm --figure both.pdf")(compare)
app.command(epilog="Example: attnflow reproduce two-clusters --quick --out runs/first")(reproduce)
app.command(epilog="Example: attnflow experiments --json")(experiments)
app.command(
    epilog="Example: attnflow sweep mine.toml --over 'field.beta=logspace(1,81,9)' --over 'tokens.seed=range(0,64)'",
    words={"folder": "--out"},
)(sweep)
app.command(epilog="Example: attnflow cite staircase > references.bib")(cite)
app.command(epilog="Example: attnflow check cube.json", words={"certificate": "CERTIFICATE.json"})(check)
app.command(epilog="Example: attnflow kinds solve")(kinds)
app.command(epilog="Example: attnflow lab --export lab.html", words={"runs": "RUN"})(lab)
app.command(
    epilog='Example: attnflow text "Need a new paper on AI" --beta 4 --until 8 --figure text.pdf',
    words={"text": "TEXT", "which": "--network", "size": "--sinusoids"},
)(text)
app.command(epilog="Example: attnflow gallery runs --out docs/gallery.md --images docs/images/gallery")(gallery)
