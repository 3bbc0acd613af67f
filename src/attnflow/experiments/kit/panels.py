"""A figure of lettered panels, and the colours and marks of their curves."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from attnflow.plots.style import COLOURS, PAGE, panel, styled

MARKS = "osD^v<>p*hX"
"""Marks of curves, in the order of `COLOURS`."""
LINES = {"SA": "-", "USA0": "--"}
"""Styles of the lines of two models."""


class Panels(list[Any]):
    """The axes of a figure in reading order."""

    def __init__(self, figure: Any, axes: Iterable[Any]):
        super().__init__(axes)
        self.figure = figure


@contextlib.contextmanager
def panels(
    rows: int, columns: int, height: float, *titles: str, width: float = PAGE, **subplots: Any
) -> Iterator[Panels]:
    """A figure of `rows` x `columns` panels in the house look, with letters and titles in reading order.

    ```python
    with panels(1, 2, 2.8, "overlaps", "errors") as page:
        page[0].plot(times, overlaps)
    return page.figure
    ```

    Sizes are in inches; further arguments are those of `Figure.subplots`. A panel without a title has its letter only.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(width, height))
        page = Panels(fig, fig.subplots(rows, columns, squeeze=False, **subplots).flat)
        for axes, letter, title in zip(page, "abcdefghijkl", (*titles, *[""] * len(page)), strict=False):
            panel(axes, letter, title)
        yield page


def powers_of_two(axes: Any) -> None:
    """A logarithmic x axis that is marked at powers of 2, as plain numbers."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")


def looks(values: Iterable[Any]) -> Iterator[tuple[Any, str, str]]:
    """(value, colour, mark) of every value; after the last colour or mark they begin again."""
    for k, value in enumerate(values):
        yield value, COLOURS[k % len(COLOURS)], MARKS[k % len(MARKS)]
