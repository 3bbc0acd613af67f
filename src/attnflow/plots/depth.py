"""A trained network through its depth, with its nulls: overlaps, temperatures of heads, alignment, sinks.

The functions take datasets of `attnflow.probe.compare(...)`, or of `measure`, which have no nulls to draw.
"""

from typing import Any

import numpy as np

from attnflow.intervals import mean_ends
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, literal, panel, say, styled

NETWORK = "network"
THEORY = {"iid tokens": (GREY, ":"), "equiangular": (INK, "--")}
"""Colours and lines of cases that are theory."""
SHADES = tuple(colour for colour in COLOURS if colour != "#F0E442")
"""Colours of lines; yellow is too light for thin ones."""
LINES = ("-", (0, (4, 1.5)), "-.", (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (6, 2)))
"""Lines of nulls, so that they can be told apart in greyscale."""
RESAMPLES = 400
BANDS = 4
"""Cases with a band, the network among them: more would hide each other."""
LEGEND = 5
"""Entries in one line of a legend."""
SHOWN_NULLS = 2
"""Null networks whose heads are drawn one by one."""


def draw_states(dataset: Any, *, kept: str = "without sinks") -> Any:
    """Mean overlap, overlap without the ten largest coordinates, and centred effective rank through depth.

    Bands, of the first cases alone, are 95 % bootstrap intervals over texts. What rises in panel (a) and not in (b) is
    a common direction of few coordinates; what a null does too is not due to training.
    """
    some = _cases(dataset).sel(kept=kept)
    panels = {
        "mean overlap": some["overlap"].sel(view="raw"),
        "without 10 largest coordinates": some["overlap"].sel(view="without top 10"),
    }
    if "effective_rank_centred" in some:
        panels["effective rank, centred"] = some["effective_rank_centred"]
    return _draw(panels, xlabel="state")


def draw_alignment(dataset: Any, *, kept: str = "without sinks") -> Any:
    """Alignment of updates with the velocity of theory, effective time of layers, and how much that explains.

    The update is the one by attention where that is known, else the one by the whole layer.
    """
    whole = _cases(dataset).sel(kept=kept)
    part = "attention" if np.isfinite(whole["alignment"].sel(part="attention")).any() else "layer"
    some = whole.sel(part=part).isel(layer=slice(0, -1))
    panels = {
        f"alignment of {part}": some["alignment"],
        "effective time of a layer": some["effective_time"],
        "$R^2$ of effective time": some["effective_time_r2"],
    }
    return _draw(panels, xlabel="layer", zero=True)


def draw_sinks(dataset: Any) -> Any:
    """Largest norm over median norm of the states, and the share of attention that sinks take, mean head."""
    some = _cases(dataset)
    panels = {"largest / median norm": (some["norm_largest"] / some["norm_median"]).sel(kept="all")}
    if "attention_to_sinks" in some:
        panels["attention to sinks"] = some["attention_to_sinks"].mean("head")
    return _draw(panels, xlabel="layer", logarithmic=("largest / median norm",))


def draw_cluster_counts(dataset: Any, *, kept: str = "without sinks") -> Any:
    """Clusters per token, the share of tokens in the largest cluster, and the share of texts that are condensed.

    Where (c) is below 1, tokens of some texts form chains, and the count says nothing about modes.
    """
    some = _cases(dataset).sel(kept=kept)
    panels = {
        "clusters per token": some["clusters_share"],
        "share in the largest cluster": some["largest_cluster"],
        "condensed texts": some["condensed"],
    }
    return _draw(panels, xlabel="state")


def draw_head_betas(dataset: Any) -> Any:
    """Fitted inverse temperature of every head, and the share of the variance of log-attention that it explains.

    Points are means over texts; large ones belong to the network, small ones to null networks; lines are median heads.
    Tokens that have collapsed have no cosines to fit, and slopes of any size: the axis is that of the network.
    """
    some = _cases(dataset)
    nulls = [case for case in _names(some) if case not in (NETWORK, "shuffled tokens", *THEORY)][:SHOWN_NULLS]
    shown = [case for case in (NETWORK, *nulls) if case in _names(some)]
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.6))
        left, right = fig.subplots(1, 2)
        for axes, name, label in ((left, "beta", r"fitted $\beta$"), (right, "beta_r2", "$R^2$ of the fit")):
            for k, case in enumerate(shown):
                colour, line = _looks(some)[case]
                values = some[name].sel(case=case).mean("text").transpose("layer", "head").values
                layer = np.repeat(some["layer"].values, values.shape[1])
                shift = (k - (len(shown) - 1) / 2) * 0.22
                size = 9 if case == NETWORK else 4
                axes.scatter(layer + shift, values.ravel(), s=size, color=colour, lw=0, alpha=0.7)
                known = np.isfinite(values).all(axis=1)
                middle = np.median(values[known], axis=1)
                axes.plot(some["layer"].values[known] + shift, middle, color=colour, ls=line, label=literal(case))
            axes.set(xlabel="layer", ylabel=label)
        left.axhline(0, color=GREY, lw=0.6)
        own = some["beta"].sel(case=shown[0]).mean("text")
        low, high = min(float(own.min()), 0.0), max(float(own.max()), 0.0)
        left.set_ylim(low - 0.25 * (high - low) - 0.1, high + 0.1 * (high - low) + 0.1)
        right.set_ylim(bottom=0)
        panel(left, "a", "heads and their median")
        panel(right, "b", "what the fit explains")
        right.legend(loc="best")
        return fig


def _draw(panels: dict[str, Any], *, xlabel: str, zero: bool = False, logarithmic: tuple[str, ...] = ()) -> Any:
    """Panels side by side, one line a case with its band over texts; one legend below them."""
    with styled() as figure:
        looks = _looks(next(iter(panels.values())))
        rows = -(-len(looks) // LEGEND)
        fig = figure.Figure(figsize=(PAGE, 2.6 + 0.15 * rows))
        many = np.atleast_1d(fig.subplots(1, len(panels)))
        lines: dict[str, Any] = {}
        for letter, axes, (name, values) in zip("abc", many, panels.items(), strict=False):
            for number, (case, (colour, line)) in enumerate(looks.items()):
                table = values.sel(case=case).transpose("text", "layer").values
                known = np.isfinite(table).any(axis=0)
                if not known.any():
                    continue
                at, middle = values["layer"].values[known], np.nanmean(table[:, known], axis=0)
                width = 2.0 if case == NETWORK else 1.0
                (lines[case],) = axes.plot(at, middle, color=colour, ls=line, lw=width, zorder=3 if width > 1 else 2)
                if len(table) > 1 and case not in THEORY and number < BANDS:
                    axes.fill_between(at, *_band(table[:, known]), color=colour, alpha=0.18, lw=0)
            if not _any(values):
                say(axes, "not known")
            if zero and "R^2" not in name:
                axes.axhline(0, color=GREY, lw=0.6, zorder=1)
            if name in logarithmic and np.nanmax(values) > 5 * np.nanmin(values):
                axes.set_yscale("log")
            axes.set(xlabel=xlabel)
            panel(axes, letter, name)
        fig.legend(
            lines.values(),
            map(literal, lines),
            loc="outside lower center",
            ncols=-(-len(lines) // rows),
            handlelength=2.4,
        )
        return fig


def _cases(dataset: Any) -> Any:
    return dataset if "case" in dataset.dims else dataset.expand_dims(case=[NETWORK])


def _looks(values: Any) -> dict[str, tuple[str, Any]]:
    """Colour and line of every case: the same in all figures of one comparison."""
    own = [case for case in _names(values) if case not in THEORY]
    nulls = {case: (SHADES[k % len(SHADES)], LINES[k % len(LINES)]) for k, case in enumerate(own)}
    return {case: THEORY[case] if case in THEORY else nulls[case] for case in _names(values)}


def _names(values: Any) -> list[str]:
    return [str(case) for case in values["case"].values]


def _any(values: Any) -> bool:
    return bool(np.isfinite(values.values).any())


def _band(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % bootstrap interval of the mean over texts, at every layer."""
    filled = np.where(np.isfinite(table), table, np.nanmean(table, axis=0))
    low, high = mean_ends(filled, (0.025, 0.975), resamples=RESAMPLES, seed=0)
    return low, high
