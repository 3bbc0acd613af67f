"""When the clusters of many systems merge: survival functions of log t, the first merge beside theory, quartiles."""

import dataclasses
from typing import Any

import numpy as np

from attnflow.axes import members
from attnflow.checks import instance
from attnflow.fields import Attention, Softmax
from attnflow.flows import Merges
from attnflow.observe import Survival, survival
from attnflow.plots.style import COLOURS, COLUMN, GREY, INK, PAGE, blank, literal, say, styled
from attnflow.theory.merging import log_first_merge_time

LAST = 4
"""The last merges, whose distributions are drawn."""
GROUPS = 6
"""Groups of systems in one panel; of more, some."""
FEW = 3
"""Of fewer systems no confidence interval is drawn."""
MANY = 20
"""More clusters than this are marked on a logarithmic axis."""
LETTERS = {"beta": "β", "kappa": "κ"}


@dataclasses.dataclass(frozen=True)
class Group:
    """Systems that differ by their seed alone."""

    name: str
    log_time: np.ndarray
    """(system, merge), infinite where a merge did not happen."""
    followed: np.ndarray
    """(system,) the log time until which each was followed."""
    alone: np.ndarray | None
    """(system,) log time of the first merge, as if the fastest pair were alone; None where theory does not say."""

    def merge(self, left: int) -> Survival:
        """The distribution of the log time of the merge that leaves so many clusters."""
        return survival(self.log_time[:, -left], self.followed)


def grouped(merges: Merges) -> list[Group]:
    """Systems by all batch dimensions but `seed`; one group where there is no other, or no seed."""
    instance("merges", merges, Merges, "what `merge_times` returned")
    times = merges.log_time.drop_vars("left", errors="ignore")
    dims = [str(d) for d in times.dims if d != "merge"]
    apart = [d for d in dims if d != "seed"] if "seed" in dims else []
    table = times.transpose(*apart, ..., "merge")
    order = table.isel(merge=0, drop=True).dims
    followed, alone = merges.followed.transpose(*order), log_first_merges(merges)
    alone = None if alone is None else alone.transpose(*order)
    found = []
    for index in np.ndindex(*(table.sizes[d] for d in apart)):
        at = dict(zip(apart, index, strict=True))
        labels = {d: times[d].values[k] if d in times.coords else k for d, k in at.items()}
        name = ", ".join(f"{LETTERS.get(d, d)} = {_text(label)}" for d, label in labels.items())
        log_time = table.isel(at).values.reshape(-1, table.sizes["merge"])
        ends, theirs = np.ravel(followed.isel(at)), None if alone is None else np.ravel(alone.isel(at))
        found.append(Group(name, log_time, ends, theirs))
    return found


def log_first_merges(merges: Merges) -> Any:
    """`theory.merging.log_first_merge_time` of the start of every system, as `merges.followed` is; None if unknown.

    That needs the field and the tokens of the work, and beta above 0.
    """
    work = merges.work
    if work is None or work.field is None or work.tokens is None:
        return None
    systems = members(work.field, work.tokens)
    count = max(merges.followed.size, 1)
    beta = np.broadcast_to(np.asarray(systems.field.beta, float), (count,))
    if beta.min() <= 0:
        return None
    shape = (count, work.tokens.n)
    x = np.asarray(systems.measure.positions).reshape(*shape, -1)
    masses = np.broadcast_to(np.asarray(systems.measure.masses), shape)
    softmax = isinstance(work.field.normaliser, Softmax)
    clock = "SA" if softmax else work.field.normaliser.clock.name
    faster = {"USA": beta, "GRAD": beta + np.log(beta)}.get(clock, 0 * beta)
    found = []
    for k in range(count):
        chord = float(work.method.physics(Attention(float(beta[k])), np.inf, 1.0).angle)
        model, until = "SA" if softmax else "USA0", 2 * np.arcsin(chord / 2)
        found.append(log_first_merge_time(x[k], masses[k], float(beta[k]), model=model, until=until))
    return merges.followed.copy(data=(np.array(found) - faster).reshape(merges.followed.shape))


def draw_survival(merges: Merges) -> Any:
    """The share of systems that have not made each of the last merges by log t, with intervals of 95 %.

    Where systems differ by more than a seed, a panel per merge, for the last two, with a curve for each group.
    """
    groups = grouped(merges)
    if not _any(groups):
        return blank("no merge has been made")
    with styled() as figure:
        count = 1 if len(groups) == 1 else min(2, groups[0].log_time.shape[1])
        fig = figure.Figure(figsize=(PAGE if count == 2 else COLUMN * 1.25, 2.5))
        panels = np.ravel(fig.subplots(1, count, squeeze=False, sharey=True))
        if len(groups) == 1:
            draw_last(panels[0], groups[0])
        else:
            for axes, left in zip(panels, (1, 2), strict=False):
                draw_groups(axes, groups, left)
        return fig


def draw_first(merges: Merges) -> Any:
    """The share of systems in which no clusters have merged by log t, with intervals of 95 %, beside theory (dashed).

    Theory is the fastest pair of the same starts, as if it were alone (`theory.merging.log_first_merge_time`).
    """
    groups = grouped(merges)
    if not _any(groups):
        return blank("no merge has been made")
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN * 1.25, 2.5))
        draw_first_merge(fig.subplots(), groups)
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
    """Survival functions of the first merge, beside theory, and of the last merges; medians of all."""
    groups = grouped(merges)
    if not _any(groups):
        return blank("no merge has been made")
    with styled() as figure:
        fig = figure.Figure(figsize=(1.4 * PAGE, 2.7))
        first, last, all_ = fig.subplots(1, 3)
        draw_first_merge(first, groups)
        if len(groups) == 1:
            draw_last(last, groups[0])
        else:
            draw_groups(last, groups, 1)
        draw_quartiles(all_, groups)
        return fig


def summarise_merges(merges: Merges) -> dict[str, Any]:
    """The numbers of the closing table: of each of the last merges how many systems made it, and quartiles of log t.

    Quartiles are over all systems of a group; None where so many have not made the merge.
    """
    groups = grouped(merges)
    rows = []
    for group in groups:
        for left in range(min(LAST, group.log_time.shape[1]), 0, -1):
            made = group.merge(left)
            low, median, high = (_number(q) for q in made.quantile([0.25, 0.5, 0.75]).value)
            rows.append(
                {
                    "group": group.name,
                    "left": left,
                    "made": made.n - made.censored,
                    "of": made.n,
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


def draw_last(axes: Any, group: Group) -> None:
    """The last merges of one group."""
    for left in range(min(LAST, group.log_time.shape[1]), 0, -1):
        _survival(axes, group.merge(left), _colour(left), f"{left + 1} → {left}")
    axes.set_ylabel("share of systems before the merge")
    _finish(axes, "merge of clusters")


def draw_groups(axes: Any, groups: list[Group], left: int) -> None:
    """One merge of several groups."""
    for group, colour in _coloured(groups):
        _survival(axes, group.merge(left), colour, literal(group.name))
    axes.set_ylabel("share of systems before the merge")
    _finish(axes, f"{left + 1} → {left} clusters")


def draw_first_merge(axes: Any, groups: list[Group]) -> None:
    """The first merge of each group, and dashed what theory says of the same starts."""
    n, several = groups[0].log_time.shape[1] + 1, len(groups) > 1
    for group, colour in _coloured(groups):
        _survival(axes, group.merge(n - 1), colour, literal(group.name) if several else "simulated")
    if axes.lines:
        for group, _ in _coloured(groups):
            _law(axes, group.alone, None if several else "pair alone")
        if several and groups[0].alone is not None:
            axes.plot([], [], color=INK, ls="--", lw=0.9, label="pair alone")
    axes.set_ylabel("share of systems before the merge")
    _finish(axes, f"first merge, {n} → {n - 1} clusters")


def draw_quartiles(axes: Any, groups: list[Group]) -> None:
    """Medians with quartiles; a merge that too few systems have made has none."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    several = len(groups) > 1
    for group, colour in _coloured(groups):
        left = np.arange(group.log_time.shape[1], 0, -1)
        rows = np.stack([group.merge(int(k)).quantile([0.25, 0.5, 0.75]).value for k in left])
        low, median, high = np.where(np.isfinite(rows), rows, np.nan).T
        axes.fill_between(left, low, high, color=colour, alpha=0.2, lw=0, label=None if several else "quartiles")
        axes.plot(left, median, "o-", ms=3, lw=1.0, color=colour, label=literal(group.name) if several else "median")
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


def _survival(axes: Any, made: Survival, colour: str, label: str) -> None:
    times = made.times
    if not len(times):
        return
    if made.censored and np.isfinite(made.end):
        times = np.unique(np.append(times, made.end))
    at = np.concatenate([[times[0] - max(0.05 * np.ptp(times), 0.2)], times])
    value, low, high = made(at)
    if made.n >= FEW:
        axes.fill_between(at, low, high, step="post", color=colour, alpha=0.16, lw=0)
    axes.step(at, value, where="post", color=colour, label=label)


def _law(axes: Any, alone: np.ndarray | None, label: str | None) -> None:
    if alone is None or not np.isfinite(alone).any():
        return
    times = np.sort(alone[np.isfinite(alone)])
    share = 1 - (np.arange(len(times)) + 1 + np.sum(np.isinf(alone))) / len(alone)
    low, high = axes.get_xlim()
    axes.step(times, share, where="post", color=INK, ls="--", lw=0.9, label=label, zorder=3)
    axes.set_xlim(min(low, times[0]), max(high, times[-1]))


def _finish(axes: Any, title: str) -> None:
    if not axes.lines:
        say(axes, "no system has made this merge")
        return
    axes.set(ylim=(0, 1.02), xlabel=r"$\log t$")
    axes.legend(
        title=title,
        loc="lower center",
        bbox_to_anchor=(0.5, 0.98),
        ncols=min(len(axes.get_legend_handles_labels()[1]), 3 if title.startswith("first") else 4),
        handlelength=1.2,
        columnspacing=1.2,
    )


def _coloured(groups: list[Group]) -> list[tuple[Group, str]]:
    some = [groups[k] for k in np.unique(np.linspace(0, len(groups) - 1, GROUPS).round().astype(int))]
    return list(zip(some, COLOURS, strict=False))


def _colour(left: int) -> str:
    return COLOURS[left - 1] if left <= len(COLOURS) else GREY


def _any(groups: list[Group]) -> bool:
    return any(np.isfinite(group.log_time).any() for group in groups)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float | np.number) else str(value)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
