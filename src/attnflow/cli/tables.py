"""Runs as tables for people."""

from pathlib import Path

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
    """Plateaus, cluster counts, energy, wall time and memory of one run; the claims of an experiment."""
    facts = run.manifest()
    if "experiment" in facts:
        print_claims(run, read_claims(run))
        return
    from attnflow.plots.times import is_long, symbol, written

    summary = facts.get("summary") or {}
    table = Table(title=f"{facts['name']}: plateaus", title_justify="left", title_style="bold")
    ends = [(plateau["log_start"], plateau["log_end"]) for plateau in summary.get("plateaus", [])]
    long = is_long([*sum(ends, ()), summary.get("log_final_time")])
    for column in ("clusters", f"from {symbol(long)}", f"to {symbol(long)}", "energy"):
        table.add_column(column, justify="right")
    for plateau in summary.get("plateaus", []):
        energy = "–" if plateau["energy"] is None else f"{round(plateau['energy'], 6) + 0.0:.6f}"
        between = [written(plateau[end], long) for end in ("log_start", "log_end")]
        table.add_row(str(plateau["clusters"]), *between, energy)
    if summary.get("plateaus"):
        out.print(table)
    else:
        out.print(f"[bold]{facts['name']}[/bold]: no plateau")
    rows = {"status": facts["status"]}
    if "outcome" in facts:
        rows["outcome"] = facts["outcome"]["message"]
    if summary.get("energy_at_end") is not None:
        rows["energy"] = f"{summary['energy_at_start']:.6f} at the start, {summary['energy_at_end']:.3e} at the end"
    if "clusters_at_end" in summary:
        rows["clusters"] = (
            f"{summary['clusters_at_end']} at {symbol(long)} = {written(summary['log_final_time'], long)}"
        )
    if "steps" in facts:
        rows["steps"] = f"{facts['steps']['accepted']} accepted, {facts['steps']['rejected']} rejected"
    rows["wall time"] = f"{facts['wall_time']:.1f} s"
    rows["peak memory"] = f"{facts['peak_memory'] / 2**20:.0f} MiB"
    rows["folder"] = str(run.path)
    if run.report.exists():
        rows["report"] = str(run.report)
    grid = Table.grid(padding=(0, 2))
    for key, value in rows.items():
        grid.add_row(f"[bold]{key}[/bold]", value)
    out.print(grid)


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
        rows["message"] = escape(facts["message"])
    if claims:
        rows["claims"] = f"{failed} of {len(claims)} fail" if failed else f"all {len(claims)} hold"
    rows["wall time"] = f"{facts['wall_time']:.1f} s"
    rows["folder"] = escape(str(run.path))
    if facts["status"] == "finished":
        rows["report"] = escape(str(run.report))
    else:
        rows["continue"] = escape(resume_command(run.path, facts))
    grid = Table.grid(padding=(0, 2))
    for key, value in rows.items():
        grid.add_row(f"[bold]{key}[/bold]", value)
    out.print(grid)


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


def print_forecast(found: list[Prediction]) -> None:
    """Predictions with their conditions, one block each."""
    for prediction in found:
        out.print(f"[bold]{prediction.quantity}[/bold]: {prediction.statement}", soft_wrap=True)
        if isinstance(prediction.value, list):
            out.print("  " + "  ".join(f"{value:.6f}" for value in prediction.value), soft_wrap=True)
        out.print(f"  [dim]conditions: {prediction.conditions} ({prediction.source})[/dim]", soft_wrap=True)
