"""Runs as tables for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnflow.errors import RunError
from attnflow.runs.folder import Run
from attnflow.runs.recorded import resume_command

if TYPE_CHECKING:
    from attnflow.experiments import Claim, Experiment
    from attnflow.theory import Prediction

out = Console(highlight=False)


def print_run(run: Run) -> None:
    """What a run found, how it ended, wall time and memory; the claims of an experiment."""
    facts = run.facts()
    if "experiment" in facts:
        from attnflow.experiments import read_claims

        print_claims(run, read_claims(run))
        return
    summary = facts.get("summary") or {}
    rows = {"status": facts["status"]}
    if facts.get("outcome"):
        rows["outcome"] = facts["outcome"]["message"]
    rows |= _ROWS.get(summary.get("kind", ""), _other)(facts["name"], summary)
    if facts.get("steps"):
        rows["steps"] = ", ".join(f"{count} {kind}" for kind, count in facts["steps"].items())
    if facts["status"] != "finished":
        from attnflow.runs.arrays import reached

        rows["saved"] = f"up to {place}" if (place := reached(run.folder)) else "nothing yet"
    rows["wall time"] = f"{facts['wall_time']:.1f} s"
    if facts["peak_memory"]:
        rows["peak memory"] = f"{facts['peak_memory'] / 2**20:.0f} MiB"
    rows["folder"] = str(run.path)
    if facts["status"] == "finished":
        none = f"none; draw it with: attnflow report {run.path}"
        rows["report"] = str(run.report) if run.folder.is_file(run.report.name) else none
        if not run.folder.is_file(run.checkpoint.name):
            rows["checkpoint"] = "gone; the run can neither be extended nor drawn again"
    elif facts["status"] == "interrupted":
        rows["continue"] = resume_command(run.path, facts)
    _print_rows(rows)


def _print_rows(rows: dict[str, str]) -> None:
    grid = Table.grid(padding=(0, 2))
    for key, value in rows.items():
        grid.add_row(f"[bold]{key}[/bold]", escape(value))
    out.print(grid)


def _flow(name: str, summary: dict[str, Any]) -> dict[str, str]:
    """Of tokens: prints the plateaus; rows of clusters and energy."""
    from attnflow.plots.members import member_name
    from attnflow.plots.times import written

    if "plateaus" not in summary:
        out.print(f"[bold]{name}[/bold]")
        return _members(summary["batch"]) if "batch" in summary else {}
    batch = summary.get("batch")
    of = f" of {member_name(batch)}" if batch else ""
    table = Table()
    proved = any("log_proved" in plateau for plateau in summary["plateaus"])
    for column in ["clusters", "from t", "to t", "energy"] + ["apart until t ≥"] * proved:
        table.add_column(column, justify="right")
    for plateau in summary["plateaus"]:
        energy = "–" if plateau["energy"] is None else f"{round(plateau['energy'], 6) + 0.0:.6f}"
        between = [written(plateau[end]) for end in ("log_start", "log_end")]
        bound = plateau.get("log_proved")
        last = ["–" if bound is None else written(bound)] * proved
        table.add_row(str(plateau["clusters"]), *between, energy, *last)
    out.print(f"[bold]{name}: {'plateaus' if summary['plateaus'] else 'no plateau'}{escape(of)}[/bold]")
    if summary["plateaus"]:
        out.print(table)
    rows = _energy(summary)
    if "clusters_at_end" in summary:
        rows["clusters"] = f"{summary['clusters_at_end']} at t = {written(summary['log_final_time'])}"
    if not batch:
        return rows
    own = ", ".join(f"{key} {value}" for key, value in rows.items())
    return {"shown member": own} | _members(batch)


def _members(batch: dict[str, Any]) -> dict[str, str]:
    """Prints the table of all members of a batch; rows of what is counted."""
    from attnflow.plots.members import member_counts, member_table

    heads, rows = member_table(batch)
    table = Table()
    for k, head in enumerate(heads):
        table.add_column(head, justify="right" if k else "left")
    for row in rows:
        table.add_row(*row)
    if rows:
        out.print(table)
    return member_counts(batch)


def _energy(summary: dict[str, Any]) -> dict[str, str]:
    if summary.get("energy_at_end") is None:
        return {}
    return {"energy": f"{summary['energy_at_start']:.6f} at the start, {summary['energy_at_end']:.3e} at the end"}


def _density(name: str, summary: dict[str, Any]) -> dict[str, str]:
    out.print(f"[bold]{name}[/bold]: a density, {summary['frames']} frames to t = {summary['time']:.6g}")
    return _energy(summary) | {"resolution": f"tail {summary['tail']:.1e}, negative mass {summary['negative']:.1e}"}


def _cells(name: str, summary: dict[str, Any]) -> dict[str, str]:
    out.print(f"[bold]{name}[/bold]: masses of cells, {summary['frames']} frames to t = {summary['time']:.6g}")
    since = summary["concentrated_since"]
    narrow = f"{summary['narrow']:.3g} of the mass" + ("" if since is None else f", half of it since t = {since:.4g}")
    return _energy(summary) | {"narrow clusters": narrow}


def _merges(name: str, summary: dict[str, Any]) -> dict[str, str]:
    table = Table(title=f"{name}: last merges", title_justify="left", title_style="bold")
    for column in ("group", "left", "made", "ln t: quartile", "median", "quartile"):
        table.add_column(column, justify="right")
    for row in summary["last_merges"]:
        times = [
            "–" if row[key] is None else f"{row[key]:.4g}" for key in ("lower_quartile", "median", "upper_quartile")
        ]
        table.add_row(str(row["group"] or ""), str(row["left"]), f"{row['made']} of {row['of']}", *times)
    out.print(table)
    return {"systems": f"{summary['systems']} of {summary['tokens']} tokens"}


def _fit(name: str, summary: dict[str, Any]) -> dict[str, str]:
    out.print(f"[bold]{name}[/bold]: a fit, {summary['points']} points in {summary['classes']} classes")
    first, last = summary["loss_at_start"], summary["loss_at_end"]
    loss = {} if first is None else {"loss": f"{first:.4g} at the start, {last:.4g} at the end"}
    return loss | {"accuracy": f"{summary['accuracy']:.4f}, was {summary['accuracy_at_start']:.4f}"}


def _other(name: str, summary: dict[str, Any]) -> dict[str, str]:
    """Of a kind without a table of its own: its numbers as they are."""
    out.print(f"[bold]{name}[/bold]")
    return {key.replace("_", " "): _cell(value) for key, value in summary.items() if key != "kind"}


_ROWS = {"tokens": _flow, "density": _density, "cells": _cells, "merges": _merges, "fit": _fit}


def print_claims(run: Run, claims: list["Claim"]) -> None:
    """What an experiment claims, with verdicts, and where its folder is."""
    facts = run.facts()
    quick = ", quick version" if facts["quick"] else ""
    table = Table(title=f"{facts['name']}{quick}: claims", title_justify="left", title_style="bold", show_lines=True)
    table.add_column("claim, what is predicted and what was found", ratio=1)
    table.add_column("verdict", no_wrap=True)
    for claim in claims:
        verdict = "[green]holds[/green]" if claim.holds else "[bold red]fails[/bold red]"
        numbers = f"[dim]predicted[/dim] {escape(claim.expected)} [dim]· found[/dim] {escape(claim.found)}"
        table.add_row(f"{escape(claim.statement)}\n{numbers}", verdict)
    if claims:
        out.print(table)
    failed = sum(not claim.holds for claim in claims)
    rows = {"status": facts["status"]}
    if facts.get("message"):
        rows["message"] = facts["message"]
    if claims:
        rows["claims"] = f"{failed} of {len(claims)} fail" if failed else f"all {len(claims)} hold"
    if facts["status"] != "finished":
        from attnflow.runs.arrays import reached

        rows["saved"] = f"up to {place}" if (place := reached(run.folder)) else "nothing yet"
    rows["wall time"] = f"{facts['wall_time']:.1f} s"
    rows["folder"] = str(run.path)
    if facts["status"] == "finished":
        rows["report"] = str(run.report)
    elif facts["status"] != "running":
        rows["continue"] = resume_command(run.path, facts)
    _print_rows(rows)


def print_experiments(found: list["Experiment"]) -> None:
    """One line per experiment."""
    from attnflow.references import short

    for experiment in found:
        papers = f" [dim]({escape(', '.join(map(short, experiment.papers)))})[/dim]"
        out.print(f"[bold]{experiment.name}[/bold]  {escape(experiment.statement)}{papers}", soft_wrap=True)


def print_runs(found: list[Run], root: Path, *, filtered: bool = False) -> None:
    """One line per run."""
    if not found and filtered:
        out.print(f"no runs in {root} for which this holds.")
        return
    if not found:
        out.print(f"no runs in {root}; make one with: attnflow run metastability")
        return
    table = Table()
    for column in ("run", "status", "created", "wall time", "frames"):
        table.add_column(column)
    for run in found:
        facts = run_facts(run)
        if facts["status"] == "damaged":
            table.add_row(escape(str(run.path)), escape(f"damaged: {facts['message']}"), "", "", "")
            continue
        table.add_row(
            escape(str(run.path)),
            facts["status"],
            escape(facts["created"]),
            f"{facts['wall_time']:.1f} s",
            str(facts.get("frames", "")),
        )
    out.print(table)
    if any(run_facts(run).get("status") == "interrupted" for run in found):
        out.print("continue an interrupted run with: attnflow resume RUN")


def run_facts(run: Run) -> dict[str, Any]:
    """The facts of a run; of a damaged one, that it is damaged and why."""
    try:
        return run.facts()
    except RunError as error:
        return {"status": "damaged", "message": str(error)}


def print_comparison(folders: list[Path], differs: dict[str, list[Any]], found: dict[str, list[Any]]) -> None:
    """A column for each run: what differs in the specifications, then what was found."""
    table = Table(title_justify="left", title_style="bold", title="what differs, and what was found")
    for column in ("", *map(str, folders)):
        table.add_column(escape(column), overflow="fold", justify="left")
    for rows, last in ((differs, True), (found, False)):
        for k, (key, row) in enumerate(rows.items()):
            end = last and k == len(rows) - 1
            table.add_row(f"[bold]{escape(key)}[/bold]", *(escape(_cell(value)) for value in row), end_section=end)
    out.print(table)
    if not differs:
        out.print("the specifications are the same.")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_predictions(found: list["Prediction"]) -> None:
    """Predictions with their conditions and sources, one row each."""
    table = Table(show_lines=True)
    table.add_column("quantity", style="bold", max_width=16)
    table.add_column("prediction", ratio=1)
    table.add_column("conditions, source", ratio=1)
    for prediction in found:
        said = escape(prediction.statement)
        if isinstance(prediction.value, list):
            said += ": " + ", ".join(f"{value:.6f}" for value in prediction.value)
        table.add_row(
            prediction.quantity, said, f"{escape(prediction.conditions)} [dim]({escape(prediction.source)})[/dim]"
        )
    out.print(table)
