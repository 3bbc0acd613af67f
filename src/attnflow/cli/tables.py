"""Runs as tables for people."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from attnflow.errors import RunCorrupted
from attnflow.runs import Run
from attnflow.theory import Prediction

out = Console(highlight=False)


def print_run(run: Run) -> None:
    """Plateaus, cluster counts, energy, wall time and memory of one run."""
    facts = run.manifest()
    summary = facts.get("summary") or {}
    table = Table(title=f"{facts['name']}: plateaus", title_justify="left", title_style="bold")
    for column in ("clusters", "from t", "to t", "energy"):
        table.add_column(column, justify="right")
    for plateau in summary.get("plateaus", []):
        energy = "–" if plateau["energy"] is None else f"{round(plateau['energy'], 6) + 0.0:.6f}"
        table.add_row(str(plateau["clusters"]), f"{plateau['start']:.4g}", f"{plateau['end']:.4g}", energy)
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
        rows["clusters"] = f"{summary['clusters_at_end']} at t = {summary['final_time']:.4g}"
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
