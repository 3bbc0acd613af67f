"""The live bar of a running flow (time reached, steps per second, time left) or experiment (what it is doing)."""

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from attnflow.flows import Progress as Where


LONGEST = 1e7
"""Seconds, four months: an estimate beyond it says nothing."""


class Bar:
    """A bar over saved frames, so that logarithmic times move evenly; or over the share of an experiment."""

    def __init__(self, console: Console, name: str, where: str = "compiling"):
        self.bar = Progress(
            TextColumn("[bold]{task.description}[/bold]"),
            BarColumn(),
            TextColumn("{task.fields[where]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=False,
        )
        self.task = self.bar.add_task(name, total=1.0, where=where, left="")

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.bar.update(self.task, completed=1.0, left="")
        self.bar.stop()

    def say(self, what: str) -> None:
        """Show what is being done instead of how far it is."""
        self.bar.update(self.task, completed=1.0, where=what, left="")

    def at(self, text: str, share: float) -> None:
        """Move the bar of several pieces of work."""
        self.bar.update(self.task, completed=share, where=escape(text), left="")

    def experiment(self, where: "Where") -> None:
        """Move the bar of an experiment, whose time is the share that is done."""
        self.at(where.note, where.time)

    def update(self, where: "Where") -> None:
        """Move the bar."""
        left = f"at most {span(where.remaining)} left" if where.remaining < LONGEST else ""
        self.bar.update(
            self.task,
            completed=where.frames / where.of,
            where=where.note or f"t = {where.time:.4g} of {where.until:.4g} · {_pace(where.rate)}",
            left=left,
        )


def _pace(rate: float) -> str:
    """Steps per second, or seconds per step where that is the larger number."""
    return f"{rate:,.0f} steps/s" if rate >= 1 else f"{span(1 / rate)} a step" if rate > 0 else "first step"


def span(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
