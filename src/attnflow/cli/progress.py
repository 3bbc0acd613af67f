"""The live bar of a flow (time reached, steps per second, time left, then figures) or experiment (what it is doing)."""

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from attnflow.flows import Progress as Where


LONGEST = 1e7
"""Seconds, four months: of an estimate beyond it the number says nothing."""
FLOW = 0.75
"""The share of the bar that is for the flow where figures follow."""
ALMOST = 0.99
"""How far the bar goes before the end: Rich stops the clock of a bar that is full."""


class Bar:
    """A bar over saved frames, so that logarithmic times move evenly; or over the share of an experiment.

    With `figures` they have a share of the bar too. The clock goes on to the end.
    """

    def __init__(self, console: Console, name: str, where: str = "compiling", *, figures: bool = False):
        self.figures = figures
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
        self.stop()

    def stop(self) -> None:
        """Leave the bar as it is."""
        self.bar.stop()

    def at(self, text: str, share: float, left: str = "") -> None:
        """Move the bar: what is being done, the share that is done, and how long the rest takes."""
        self.bar.update(self.task, completed=min(share, ALMOST), where=escape(text), left=left)

    def drawing(self) -> None:
        """Move the bar of a flow to what follows it."""
        self.at("drawing figures" if self.figures else "reading off numbers", FLOW if self.figures else 1.0)

    def figure(self, done: int, of: int) -> None:
        """Move the bar of a flow through its figures."""
        self.at(f"figure {done + 1} of {of}" if done < of else "report", FLOW + (1 - FLOW) * done / of)

    def experiment(self, where: "Where") -> None:
        """Move the bar of an experiment, whose time is the share that is done."""
        self.at(where.note, where.time)

    def update(self, where: "Where") -> None:
        """Move the bar."""
        text = where.note or f"t = {where.time:.4g} of {where.until:.4g} · {_pace(where.rate)}"
        self.at(text, (FLOW if self.figures else 1.0) * where.frames / where.of, self._left(where))

    def _left(self, where: "Where") -> str:
        """How long the flow will still take at the pace of the last steps, and what follows."""
        if where.remaining != where.remaining:
            return ""
        if where.remaining >= LONGEST:
            return f"more than {LONGEST / 86400:.0f} days left"
        return f"about {span(where.remaining)} left" + ", then figures" * self.figures


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
