"""Comparisons: numbers of a network beside those of its nulls, with intervals over texts."""

import dataclasses
import functools
import html
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from attnflow.checks import whole
from attnflow.errors import InvalidInput, NoSuchItem
from attnflow.flows import AbstractResult, Outcome
from attnflow.intervals import mean_ends
from attnflow.probe.quantities import quantities

INTERVAL = (0.025, 0.975)
"""Ends of bootstrap intervals, as shares."""
LEVEL = 0.05
"""The probability that a case which does not differ from the network gets a star."""
ALL_SIGNS = 12
"""Differences of which all signs are tried; of more, so many random ones."""
ROUNDING = 1e-5
"""Relative difference that activations in float32 have by rounding alone."""
NETWORK = "network"
DRAWN = ("permuted", "init")
"""Null networks that are random."""
THEORY = ("iid tokens", "equiangular")
"""Cases that are theory. The others, apart from the network, are nulls."""


class Cell(NamedTuple):
    """The mean over texts with its interval; `apart` says whether the network differs from this case."""

    mean: float
    low: float
    high: float
    apart: bool | None
    """Whether the paired differences over texts are not 0 (`differs`); None where there are none."""

    def __str__(self) -> str:
        half = (self.high - self.low) / 2
        if not np.isfinite(self.mean):
            return "–"
        text = f"{self.mean:.3g}" + (f" ±{half:.1g}" if np.isfinite(half) else "")
        return text + ("*" if self.apart else "")


@dataclasses.dataclass(frozen=True)
class Row:
    """One number of the network, and of every null and theory that has it."""

    quantity: str
    cells: Mapping[str, Cell]

    def __post_init__(self) -> None:
        if not any(np.isfinite(cell.mean) for case, cell in self.cells.items() if is_null(case)):
            raise InvalidInput(f"{self.quantity!r} has no null; a number without its null is not shown.")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Comparison(AbstractResult):
    """The numbers of a network beside those of its nulls; `str` and notebooks show a table."""

    dataset: Any
    """All measures, dims case, text, layer and so on; the first case is the network."""
    outcome: Outcome
    steps: Any
    checkpoint: Any = None
    work: Any = None

    @property
    def kept(self) -> str:
        """Whether sinks are among the tokens of the table."""
        return str(self.work.kept)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The lines of the table."""
        return self._made[0]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Quantities that no null has, and that are therefore not shown."""
        return self._made[1]

    @functools.cached_property
    def _made(self) -> tuple[tuple[Row, ...], tuple[str, ...]]:
        return make_rows(self.dataset, self.kept, self.work.resamples, self.work.seed)

    @property
    def cases(self) -> tuple[str, ...]:
        """The network, its nulls and theory."""
        return tuple(str(case) for case in self.dataset["case"].values)

    def figures(self) -> dict[str, Any]:
        """Matplotlib figures by name: overlaps through depth, beta of heads, alignment, sinks, clusters."""
        import attnflow

        plots = attnflow.plots
        drawn = {
            "overlap": (plots.draw_states, "overlap"),
            "beta": (plots.draw_head_betas, "beta"),
            "alignment": (plots.draw_alignment, "alignment"),
            "sinks": (plots.draw_sinks, "norm_median"),
            "clusters": (plots.draw_cluster_counts, "clusters"),
        }
        return {name: draw(self.dataset) for name, (draw, needed) in drawn.items() if needed in self.dataset}

    def __str__(self) -> str:
        cases, names = self.cases, [row.quantity for row in self.rows]
        table = [["", *cases]] + [
            [name, *(str(row.cells[case]) for case in cases)] for name, row in zip(names, self.rows, strict=True)
        ]
        widths = [max(len(line[k]) for line in table) for k in range(len(cases) + 1)]
        lines = [
            "  ".join(
                cell.ljust(width) if not k else cell.rjust(width) for k, (cell, width) in enumerate(parts)
            ).rstrip()
            for parts in ([*zip(line, widths, strict=True)] for line in table)
        ]
        return "\n".join([*lines, *self.remarks()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(case)}</th>" for case in self.cases)
        body = "".join(
            f"<tr><th style='text-align:left'>{html.escape(row.quantity)}</th>"
            + "".join(f"<td>{html.escape(with_interval(row.cells[case]))}</td>" for case in self.cases)
            + "</tr>"
            for row in self.rows
        )
        notes = "".join(f"<p>{html.escape(one)}</p>" for one in self.remarks())
        return f"<table><tr><th></th>{head}</tr>{body}</table>{notes}"

    def words(self, text: int) -> tuple[str, ...]:
        """The words of a text; "" where they are not known."""
        self._there("text", text, "text")
        count = int(self.dataset["tokens"].sel(case=NETWORK).values[text])
        return tuple(_read(row) for row in self.dataset["word"].values[text, :count])

    def clusters(self, text: int, state: int = -1) -> list[list[str]]:
        """The words in every cluster of a text, largest first; `state` counts the states of `shown` in the dataset."""
        self._there("state", state, "shown")
        names, labels = self.words(text), self.dataset["cluster"].values[text, state]
        found = range(int(labels.max(initial=-1)) + 1)
        return [[name for name, label in zip(names, labels, strict=False) if label == number] for number in found]

    def _there(self, name: str, number: int, dim: str) -> None:
        count = int(self.dataset.sizes[dim])
        if not -count <= whole(name, number, -count) < count:
            raise NoSuchItem(f"`{name}` is {number}; there are {count}, numbered from 0.")

    def remarks(self) -> list[str]:
        """What a reader of the table needs to know."""
        texts = self.dataset.sizes["text"]
        found = [
            f"Means over {texts} text{'s' if texts != 1 else ''}, {self.kept}; ± is half the 95 % bootstrap interval "
            "over texts; * marks cases from which the network differs (sign-flip test over texts, 5 %, one by one)."
        ]
        if texts == 1:
            found.append("One text has no interval: say nothing about other texts.")
        elif 2 ** (1 - texts) > LEVEL:
            found.append("Fewer than 6 texts can show no difference.")
        if drawn := [case for case in DRAWN if case in self.cases]:
            found.append(f"One draw of {' and of '.join(drawn)}: another seed may differ by more than texts do.")
        if texts and not self.rows:
            found.append("The table shows none of the numbers that were measured; they are in `dataset`.")
        if self.left_out:
            found.append(f"Left out, because no null has them: {', '.join(self.left_out)}.")
        return found + [f"Note: {one}" for one in self.dataset.attrs.get("notes", [])]


def _read(letters: np.ndarray) -> str:
    return bytes(letters[letters > 0].tolist()).decode(errors="replace")


def is_null(case: str) -> bool:
    """Whether a case is a null: neither the network nor theory."""
    return case != NETWORK and case not in THEORY


def make_rows(dataset: Any, kept: str, resamples: int, seed: int) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """The rows of a table, and the quantities that no null has."""
    rows, left_out = [], []
    if not dataset.sizes["text"]:  # interrupted in the first text
        return (), ()
    cases = [str(case) for case in dataset["case"].values]
    for name, values in quantities(dataset, kept).items():
        table = values.transpose("case", "text").values
        cells = {case: _cell(table[k], None if not k else table[0], resamples, seed) for k, case in enumerate(cases)}
        try:
            rows.append(Row(name, cells))
        except InvalidInput:
            left_out.append(name)
    return tuple(rows), tuple(left_out)


def differs(away: np.ndarray) -> bool:
    """Whether differences, one a text, are not 0 in the mean: the sign-flip test at the level 5 %.

    If a difference is as likely as its opposite, all signs are equally likely, and the mean is among the outer 5 % of
    those of all signs in at most 5 % of cases, for any number of texts. Five texts or fewer can never show it.
    """
    count = len(away)
    if count <= ALL_SIGNS:
        signs = 1 - 2 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
    else:
        drawn = np.random.default_rng(0).integers(0, 2, (2**ALL_SIGNS - 1, count))
        signs = np.concatenate([np.ones((1, count), int), 1 - 2 * drawn])
    means = np.abs(signs @ away)
    return bool(np.mean(means >= means[0] * (1 - 1e-9)) <= LEVEL)


def _cell(values: np.ndarray, network: np.ndarray | None, resamples: int, seed: int) -> Cell:
    """Mean and interval over texts, and whether the network differs from it, text by text."""
    nothing = float("nan")
    known = np.isfinite(values)
    if not known.any():
        return Cell(nothing, nothing, nothing, None)
    if known.sum() < 2:
        return Cell(float(np.nanmean(values)), nothing, nothing, None)
    low, high = map(float, mean_ends(values[known], INTERVAL, resamples=resamples, seed=[seed, 1]))
    if network is None or not np.isfinite(network - values).any():
        return Cell(float(np.nanmean(values)), low, high, None)
    away = (network - values)[np.isfinite(network - values)]
    away = np.where(np.abs(away) > ROUNDING * np.nanmax(np.abs(values)), away, 0.0)
    return Cell(float(np.nanmean(values)), low, high, differs(away))


def with_interval(cell: Cell) -> str:
    """A mean with its interval in brackets, and a star where it differs from every null."""
    if not np.isfinite(cell.mean):
        return "–"
    interval = f" [{cell.low:.3g}, {cell.high:.3g}]" if np.isfinite(cell.low) else ""
    return f"{cell.mean:.3g}{interval}{'*' if cell.apart else ''}"
