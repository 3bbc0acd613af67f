"""When the clusters of many systems merge: survival functions of log t, and quartiles by the clusters that are left."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.checks import instance
from attnflow.flows import Ending, Merges
from attnflow.observe import exit_distribution
from attnflow.plots.style import COLOURS, COLUMN, GREY, PAGE, blank, say, styled

LAST = 4
"""The last merges, whose distributions are drawn."""
GROUPS = 6
"""Groups of systems in one panel; of more, some."""
WIDE = 0.45
"""A confidence band wider than this on both sides says nothing and is left out."""
MANY = 20
"""More clusters than this are marked on a logarithmic axis."""
LETTERS = {"beta": "β", "kappa": "κ"}


@dataclasses.dataclass(frozen=True)
class Group:
    """Systems that differ by their seed alone."""

    name: str
    log_time: np.ndarray
    """(system, merge), infinite where a merge did not happen."""


def grouped(merges: Merges) -> list[Group]:
    """Systems by all batch dimensions but `seed`; one group where there is no other, or no seed."""
    instance("merges", merges, Merges, "what `merge_times` returned")
    times = merges.log_time.drop_vars("left", errors="ignore")
    dims = [str(d) for d in times.dims if d != "merge"]
    apart = [d for d in dims if d != "seed"] if "seed" in dims else []
    table = times.transpose(*apart, ..., "merge")
    found = []
    for index in np.ndindex(*(table.sizes[d] for d in apart)):
        at = dict(zip(apart, index, strict=True))
        labels = {d: times[d].values[k] if d in times.coords else k for d, k in at.items()}
        name = ", ".join(f"{LETTERS.get(d, d)} = {_text(label)}" for d, label in labels.items())
        found.append(Group(name, table.isel(at).values.reshape(-1, table.sizes["merge"])))
    return found


def draw_survival(merges: Merges) -> Any:
    """The share of systems that have not made each of the last merges by log t, with a confidence band of 95 %.

    Where systems differ by more than a seed, a panel per merge, for the last two, with a curve for each group.
    """
    groups = grouped(merges)
    if not _any(groups):
        return blank("no merge has been made")
    with styled() as figure:
        count = 1 if len(groups) == 1 else min(2, groups[0].log_time.shape[1])
        fig = figure.Figure(figsize=(PAGE if count == 2 else COLUMN * 1.25, 2.5))
        panels = np.ravel(fig.subplots(1, count, squeeze=False, sharey=True))
        end = _observed_until(merges)
        if len(groups) == 1:
            draw_last(panels[0], groups[0], end)
        else:
            for axes, left in zip(panels, (1, 2), strict=False):
                draw_groups(axes, groups, left, end)
        return fig


def draw_medians(merges: Merges) -> Any:
    """Median log time of every merge with its quartiles, against the clusters that it leaves."""
    groups = grouped(merges)
    if not _any(groups):
        return blank("no merge has been made")
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN * 1.25, 2.5))
        draw_quartiles(fig.subplots(), groups)
        return fig


def plot_merges(merges: Merges) -> Any:
    """Survival functions of the last merges, and the medians of all."""
    groups = grouped(merges)
    if not _any(groups):
        return blank("no merge has been made")
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.6))
        left, right = fig.subplots(1, 2)
        end = _observed_until(merges)
        if len(groups) == 1:
            draw_last(left, groups[0], end)
        else:
            draw_groups(left, groups, 1, end)
        draw_quartiles(right, groups)
        return fig


def summarise_merges(merges: Merges) -> dict[str, Any]:
    """The numbers of the closing table: of each of the last merges how many systems made it, and quartiles of log t.

    Quartiles are over all systems of a group; None where so many have not made the merge.
    """
    groups = grouped(merges)
    rows = []
    for group in groups:
        for left in range(min(LAST, group.log_time.shape[1]), 0, -1):
            exits = _exits(group, left)
            low, median, high = (_number(q) for q in exits.quantile([0.25, 0.5, 0.75]).value)
            rows.append(
                {
                    "group": group.name,
                    "left": left,
                    "made": exits.exits,
                    "of": exits.n,
                    "lower_quartile": low,
                    "median": median,
                    "upper_quartile": high,
                }
            )
    return {
        "kind": "merges",
        "systems": sum(len(group.log_time) for group in groups),
        "tokens": merges.log_time.sizes["merge"] + 1,
        "last_merges": rows,
    }


def draw_last(axes: Any, group: Group, end: float | None) -> None:
    """The last merges of one group; `end` is the log time until which all systems were followed."""
    for left in range(min(LAST, group.log_time.shape[1]), 0, -1):
        _survival(axes, _exits(group, left), _colour(left), f"{left + 1} → {left}", end)
    axes.set_ylabel("share of systems before the merge")
    _finish(axes, "merge of clusters")


def draw_groups(axes: Any, groups: list[Group], left: int, end: float | None) -> None:
    """One merge of several groups."""
    for group, colour in _coloured(groups):
        _survival(axes, _exits(group, left), colour, group.name, end)
    axes.set_ylabel("share of systems before the merge")
    _finish(axes, f"{left + 1} → {left} clusters")


def draw_quartiles(axes: Any, groups: list[Group]) -> None:
    """Medians with quartiles; a merge that too few systems have made has none."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    several = len(groups) > 1
    for group, colour in _coloured(groups):
        left = np.arange(group.log_time.shape[1], 0, -1)
        rows = np.stack([_exits(group, int(k)).quantile([0.25, 0.5, 0.75]).value for k in left])
        low, median, high = np.where(np.isfinite(rows), rows, np.nan).T
        axes.fill_between(left, low, high, color=colour, alpha=0.2, lw=0, label=None if several else "quartiles")
        axes.plot(left, median, "o-", ms=3, lw=1.0, color=colour, label=group.name if several else "median")
    n = groups[0].log_time.shape[1] + 1
    if n > MANY:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(1.15 * (n - 1), 0.87)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, min_n_ticks=1))
        axes.set_xlim(n - 0.5, 0.5)
    axes.set(xlabel="clusters left", ylabel=r"$\log t$ of the merge")
    axes.legend(loc="upper left")


def _survival(axes: Any, exits: Any, colour: str, label: str, end: float | None) -> None:
    times = np.unique(exits.log_times[: exits.exits])
    if end is not None:
        times = np.unique(np.append(times, end)) if exits.exits < exits.n else times
    if not len(times):
        return
    at = np.concatenate([[times[0] - max(0.05 * np.ptp(times), 0.2)], times])
    value, low, high = exits.survival(at)
    if exits.band < WIDE:
        axes.fill_between(at, low, high, step="post", color=colour, alpha=0.16, lw=0)
    axes.step(at, value, where="post", color=colour, label=label)


def _observed_until(merges: Merges) -> float | None:
    """A log time until which every system was followed; unknown where the work was interrupted."""
    times = merges.log_time.values
    seen = times[np.isfinite(times)]
    return float(seen.max()) if len(seen) and merges.outcome.ending is Ending.FINISHED else None


def _finish(axes: Any, title: str) -> None:
    if not axes.lines:
        say(axes, "no system has made this merge")
        return
    axes.set(ylim=(0, 1.02), xlabel=r"$\log t$")
    axes.legend(
        title=title,
        loc="lower center",
        bbox_to_anchor=(0.5, 0.98),
        ncols=min(len(axes.lines), 4),
        handlelength=1.2,
        columnspacing=1.2,
    )


def _coloured(groups: list[Group]) -> list[tuple[Group, str]]:
    some = [groups[k] for k in np.unique(np.linspace(0, len(groups) - 1, GROUPS).round().astype(int))]
    return list(zip(some, COLOURS, strict=False))


def _colour(left: int) -> str:
    return COLOURS[left - 1] if left <= len(COLOURS) else GREY


def _exits(group: Group, left: int) -> Any:
    return exit_distribution(group.log_time[:, -left])


def _any(groups: list[Group]) -> bool:
    return any(np.isfinite(group.log_time).any() for group in groups)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float | np.number) else str(value)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
