"""Runs as tables for people."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnflow.errors import RunCorrupted
from attnflow.experiments import Claim, Experiment, read_claims
from attnflow.runs import Run
from attnflow.runs.recorded import resume_command
from attnflow.theory import Prediction

out = Console(highlight=False)


def print_run(run: Run) -> None:
    """What a run found, how it ended, wall time and memory; the claims of an experiment."""
    facts = run.manifest()
    if "experiment" in facts:
        print_claims(run, read_claims(run))
        return
    summary = facts.get("summary") or {}
    rows = {"status": facts["status"]}
    if facts.get("outcome"):
        rows["outcome"] = facts["outcome"]["message"]
    rows |= _ROWS.get(summary.get("kind", ""), _flow)(facts["name"], summary)
    if facts.get("steps"):
        rows["steps"] = ", ".join(f"{count} {kind}" for kind, count in facts["steps"].items())
    rows["wall time"] = f"{facts['wall_time']:.1f} s"
    rows["peak memory"] = f"{facts['peak_memory'] / 2**20:.0f} MiB"
    rows["folder"] = str(run.path)
    if run.report.exists():
        rows["report"] = str(run.report)
    if facts["status"] not in ("finished", "failed"):
        rows["continue"] = resume_command(run.path, facts)
    _print_rows(rows)


def _print_rows(rows: dict[str, str]) -> None:
    grid = Table.grid(padding=(0, 2))
    for key, value in rows.items():
        grid.add_row(f"[bold]{key}[/bold]", escape(value))
    out.print(grid)


def _flow(name: str, summary: dict[str, Any]) -> dict[str, str]:
    """Of tokens: prints the plateaus; rows of clusters and energy."""
    from attnflow.plots.times import is_long, symbol, written

    if "plateaus" not in summary:
        out.print(f"[bold]{name}[/bold]")
        return {}
    ends = [(plateau["log_start"], plateau["log_end"]) for plateau in summary["plateaus"]]
    long = is_long([*sum(ends, ()), summary.get("log_final_time")])
    table = Table(title=f"{name}: plateaus", title_justify="left", title_style="bold")
    for column in ("clusters", f"from {symbol(long)}", f"to {symbol(long)}", "energy"):
        table.add_column(column, justify="right")
    for plateau in summary["plateaus"]:
        energy = "–" if plateau["energy"] is None else f"{round(plateau['energy'], 6) + 0.0:.6f}"
        between = [written(plateau[end], long) for end in ("log_start", "log_end")]
        table.add_row(str(plateau["clusters"]), *between, energy)
    out.print(table if summary["plateaus"] else f"[bold]{name}[/bold]: no plateau")
    rows = _energy(summary)
    if "clusters_at_end" in summary:
        final = written(summary["log_final_time"], long)
        rows["clusters"] = f"{summary['clusters_at_end']} at {symbol(long)} = {final}"
    return rows


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
    for column in ("group", "left", "made", "log t: quartile", "median", "quartile"):
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


_ROWS = {"density": _density, "cells": _cells, "merges": _merges, "fit": _fit}


def print_claims(run: Run, claims: list[Claim]) -> None:
    """What an experiment claims, with verdicts, and where its folder is."""
    facts = run.manifest()
    quick = ", quick version" if facts["quick"] else ""
    table = Table(title=f"{facts['name']}{quick}: claims", title_justify="left", title_style="bold")
    table.add_column("claim", ratio=3)
    for column in ("predicted", "measured", "tolerance"):
        table.add_column(column, justify="right", overflow="fold")
    table.add_column("where it comes from", ratio=2)
    table.add_column("verdict", no_wrap=True)
    for claim in claims:
        verdict = "[green]holds[/green]" if claim.holds else "[bold red]fails[/bold red]"
        table.add_row(escape(claim.statement), *map(escape, claim.as_text()), escape(claim.source), verdict)
    if claims:
        out.print(table)
    failed = sum(not claim.holds for claim in claims)
    rows = {"status": facts["status"]}
    if facts.get("message"):
        rows["message"] = facts["message"]
    if claims:
        rows["claims"] = f"{failed} of {len(claims)} fail" if failed else f"all {len(claims)} hold"
    rows["wall time"] = f"{facts['wall_time']:.1f} s"
    rows["folder"] = str(run.path)
    if facts["status"] == "finished":
        rows["report"] = str(run.report)
    else:
        rows["continue"] = resume_command(run.path, facts)
    _print_rows(rows)


def print_experiments(found: list[Experiment]) -> None:
    """One line per experiment."""
    for experiment in found:
        papers = f" [dim]({escape(', '.join(experiment.papers))})[/dim]"
        out.print(f"[bold]{experiment.name}[/bold]  {escape(experiment.statement)}{papers}", soft_wrap=True)


def print_runs(found: list[Run], root: Path) -> None:
    """One line per run."""
    if not found:
        out.print(f"no runs in {root}; make one with: attnflow run metastability")
        return
    table = Table()
    for column in ("run", "status", "created", "wall time", "frames"):
        table.add_column(column)
    for run in found:
        try:
            facts = run.manifest()
        except RunCorrupted:
            table.add_row(str(run.path), "damaged", "", "", "")
            continue
        table.add_row(
            str(run.path),
            facts["status"],
            facts["created"],
            f"{facts['wall_time']:.1f} s",
            str(facts.get("frames", "")),
        )
    out.print(table)


def print_predictions(found: list[Prediction]) -> None:
    """Predictions with their conditions, one block each."""
    for prediction in found:
        out.print(f"[bold]{prediction.quantity}[/bold]: {prediction.statement}", soft_wrap=True)
        if isinstance(prediction.value, list):
            out.print("  " + "  ".join(f"{value:.6f}" for value in prediction.value), soft_wrap=True)
        out.print(f"  [dim]conditions: {prediction.conditions} ({prediction.source})[/dim]", soft_wrap=True)
