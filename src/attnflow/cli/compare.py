"""`attnflow compare`: what differs between runs, and how each of them ended."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from attnflow import errors
from attnflow.cli import complete
from attnflow.cli.console import Json, Plugin, figure_file, save_figure

HEADINGS = {
    "status": "status",
    "frames": "frames",
    "energy_at_start": "energy at the start",
    "energy_at_end": "energy at the end",
    "clusters_at_end": "clusters at the end",
    "plateaus": "plateaus",
    "log_final_time": "ln t at the end",
    "loss_at_start": "loss at the start",
    "loss_at_end": "loss at the end",
    "wall_time": "wall time, s",
}
"""What is called by another name in the table."""
HIDDEN = {"kind", "name", "about"}
LONGEST = 60
"""Characters of a name in the legend."""


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Two run folders or more.", metavar="RUN RUN...", autocompletion=complete.run_folders),
    ],
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw energies, overlaps and cluster counts of all into this file.", metavar="FILE"),
    ] = None,
    plugin: Plugin = None,
    json_: Json = False,
) -> None:
    """Print what differs between the specifications of runs and what each of them found."""
    from attnflow import runs
    from attnflow.cli.tables import print_comparison
    from attnflow.describe import differences, named, nested

    if len(folders) < 2:
        raise errors.InvalidInput(f"`compare` got the run {str(folders[0])!r} alone; give two folders or more.")
    figure_file(figure)
    found = [runs.Run.open(folder) for folder in folders]
    for run in found:
        run.verify()
        if "experiment" in (facts := run.manifest()):
            raise errors.RunError(
                f"{str(run.path)!r} holds the experiment {facts['experiment']!r}; compare takes runs of specifications."
            )
    tables = [nested(run.table()) for run in found]
    differs = {key: row for key, row in differences(tables).items() if key not in HIDDEN}
    ended = [_numbers(run.facts()) for run in found]
    numbers = {key: [one.get(key) for one in ended] for key in dict.fromkeys(key for one in ended for key in one)}
    if figure is not None:
        _draw(figure, dict(zip(_names(named(differs, len(found)), folders), folders, strict=True)), plugin or [])
    if json_:
        print(json.dumps({"runs": list(map(str, folders)), "differs": differs, "found": numbers}, indent=2))
    else:
        print_comparison(
            folders, differs, {HEADINGS.get(key, key.replace("_", " ")): row for key, row in numbers.items()}
        )


def _numbers(facts: dict[str, Any]) -> dict[str, Any]:
    """How a run ended, in single numbers and words."""
    summary = facts.get("summary") or {}
    own = {key: value for key, value in summary.items() if isinstance(value, int | float | str) and key not in HIDDEN}
    if "plateaus" in summary:
        own["plateaus"] = len(summary["plateaus"])
    frames = {"frames": facts["frames"]} if "frames" in facts else {}
    return {"status": facts["status"]} | frames | own | {"wall_time": round(facts["wall_time"], 1)}


def _names(names: list[str], folders: list[Path]) -> list[str]:
    """What differs, where that tells the runs apart in few words; else the folders."""
    apart = all(len(name) <= LONGEST and not name.endswith(")") for name in names)
    return names if apart else [str(folder) for folder in folders]


def _draw(figure: Path, folders: dict[str, Path], plugins: list[Path]) -> None:
    from attnflow import runs
    from attnflow.plots import plot

    drawn = plot({name: runs.open_run(folder, plugins=plugins) for name, folder in folders.items()})
    save_figure(drawn, figure)
