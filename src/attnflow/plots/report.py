"""Figures and the self-contained page of a run."""

import dataclasses
import functools
import html
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attnflow.control import Matching
from attnflow.decoders import Retrieval
from attnflow.describe import listed, nested
from attnflow.errors import InvalidInput
from attnflow.fields import Attention
from attnflow.flows import AbstractResult, AbstractTrajectory, Merges
from attnflow.interrupts import raise_if_interrupted
from attnflow.learn import Fitted
from attnflow.meanfield import CellFlow, DensityFlow, PlacedFlow, SphereBasis
from attnflow.plots.animation import live
from attnflow.plots.attention import draw_attention
from attnflow.plots.density import draw_decay, draw_density, draw_energies, draw_profiles, look
from attnflow.plots.energy import draw_energy_and_count
from attnflow.plots.figure_data import FigureData
from attnflow.plots.fit import draw_loss, draw_paths, draw_plane, in_plane
from attnflow.plots.matching import can_be_carried, draw_carried, draw_distances
from attnflow.plots.members import member_counts, member_name, member_table, summarise_members
from attnflow.plots.merges import draw_first, draw_medians, draw_survival, grouped
from attnflow.plots.observables import MOST, NUMBERS, draw_numbers, draw_observables, draw_rows, observed
from attnflow.plots.overlaps import SAMPLE, draw_overlaps
from attnflow.plots.page import as_page, as_svg, facts_table, save_figure, table, toml_block, with_caption
from attnflow.plots.placed import draw_placed, draw_places
from attnflow.plots.snapshots import draw_snapshots
from attnflow.plots.staircase import draw_staircase
from attnflow.plots.style import lay_out
from attnflow.plots.summary import plot, summarise
from attnflow.plots.times import written
from attnflow.plots.tree import draw_tree
from attnflow.random_layers import ConditionalDensity, GramPath
from attnflow.runs.files import writing
from attnflow.runs.folder import Run
from attnflow.runs.spec import spec_of

HEADLINE = {"beta": "β", "kappa": "κ", "n": "n", "dim": "d", "seed": "seed"}
"""Keys of a specification, and what the top of a page calls them."""
CAPTIONS = {
    "rows": "The numbers of every row; a thin line for each member of a batch.",
    "snapshots": "Tokens at chosen times, in the colours of their clusters on a crowded plateau.",
    "staircase": "Level against (log t)/β, with the limit β → ∞, and against the length of the path, which is finite. "
    "Right: how long each plateau lasts, with what two-body theory says of its closest pair, and the lower bound of "
    "arXiv:2410.06833 where its conditions hold.",
    "tree": "Who merged with whom, and when; branches as thick as clusters are heavy.",
    "series": "Energy (with the levels that theory gives) and number of clusters. Before condensation the groups are "
    "linked by chance and their number means nothing.",
    "overlaps": f"Share of pairs with a given overlap, through time. Of more than {SAMPLE} tokens the pairs of "
    f"{SAMPLE} are counted, the same in every frame, drawn with a fixed seed.",
    "attention": "Attention weights at the start and on the plateau that gives the colours, tokens sorted by cluster.",
    "numbers": "The numbers that were kept of every frame, against time; a thin line for each member of a batch.",
    "observables": "Observables against time; a thin line for each member of a batch.",
    "density": "The density relative to the uniform measure, on a logarithmic colour scale.",
    "profiles": "The density at times between which its energy changes by equal amounts.",
    "energies": "Energy, entropy relative to the uniform measure, and speed against time.",
    "decay": "The norm of the coefficients of every degree, as a share of the largest. The density is resolved while "
    "the last ones are below the dotted line.",
    "cells": "Energy, entropy against the uniform measure, and the share of mass in clusters narrower than a cell. The "
    "dashed line marks since when half of the mass is in such clusters: from there on cells are too wide.",
    "places": "How far every place is from the uniform measure, at some frames. Dots are nodes.",
    "placed": "The density at the last frame over place and angle, on a logarithmic colour scale.",
    "overlap": "The mean overlap of pairs of tokens, and what is missing to 1; replicas as thin lines, their mean as a "
    "thick one.",
    "labels": "The density of the first member where its labels are, at some frames, and the sizes of the first two "
    "Fourier coefficients, a line for each member. A layer that folds the circle ends the curves of the density.",
    "retrieval": "What the last token keeps of each place: means over prompts and bins, with twice their standard "
    "errors.",
    "first": "The share of systems in which no clusters have merged by time t. Dashed: theory, the fastest pair of the "
    "same starts as if it were alone. Shaded: intervals of 95 % (Greenwood).",
    "survival": "The share of systems that have not made a merge by time t (Kaplan–Meier). Shaded: intervals of 95 % "
    "at each time (Greenwood).",
    "medians": "Log time of every merge against the number of clusters that it leaves: median and quartiles over "
    "systems.",
    "loss": "The loss of every step, before that step.",
    "plane": "The points, and the probabilities of the classes over the plane as mixtures of their colours; lines are "
    "borders between classes, points with a dark rim are classified wrongly.",
    "paths": "Where the fitted flow takes some of the points, from small dots to large ones. Dashed: the border of the "
    "read-out at the end.",
    "carried": "Tokens before and after the schedule, a colour for each measure; crosses are the targets, pale is the "
    "far side of the sphere. Every measure is carried alone.",
    "distances": "W₂ of every measure from its target, before the schedule and after it, carried alone.",
}


@dataclasses.dataclass(frozen=True)
class Account:
    """The figures, numbers and texts of a report."""

    figures: dict[str, Any]
    """By name, `summary` among them."""
    summary: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Numbers for the manifest, as JSON can hold them."""
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    """For the table at the end of the page."""
    before: list[str] = dataclasses.field(default_factory=list)
    """HTML above the figures; texts in it are escaped, and scripts and styles in it have no effect."""
    after: list[str] = dataclasses.field(default_factory=list)
    """HTML below the figures, as above them."""
    player: str = ""
    """HTML of the animation, where there is one."""
    captions: dict[str, str] = dataclasses.field(default_factory=dict)
    """What a reader is told of a figure; those of the package have captions of their own."""


def draw_run(run: Run, result: Any, on_figure: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Draw all figures (PDF for print, one PNG, SVG in the page), write the report, and give back the summary.

    `result` is what carrying out work left: it says itself, by its work, what there is to draw. `on_figure` is called
    with the number of figures that are done and the number of all of them.
    """
    account, pictures = checked_account(result.account()), dict[str, str]()
    with writing(run.path):
        run.folder.make("figures")
        for done, (name, figure) in enumerate(account.figures.items()):
            raise_if_interrupted()
            if on_figure is not None:
                on_figure(done, len(account.figures))
            lay_out(figure)
            save_figure(run.folder, f"figures/{name}.pdf", figure)
            if name == "summary":
                save_figure(run.folder, "figures/summary.png", figure)
            else:
                pictures[name] = as_svg(figure)
        if on_figure is not None:
            on_figure(len(account.figures), len(account.figures))
        run.folder.write("report.html", _page(run, account, pictures).encode())
    return account.summary


def _page(run: Run, account: Account, pictures: dict[str, str]) -> str:
    manifest, spec = run.manifest(), spec_of(run)
    parts = [
        f"<p>{html.escape(spec.table['about'])}</p>",
        f"<p>{html.escape(headline(spec.table))}</p>",
        account.player,
        *account.before,
        "<h2>Figures</h2>",
        *(with_caption(svg, account.captions.get(name) or CAPTIONS.get(name, "")) for name, svg in pictures.items()),
        *account.after,
        facts_table(account.facts | {"precision": manifest["dtype"]}, manifest),
        toml_block("Specification", spec.to_toml()),
    ]
    return as_page(spec.name, "\n".join(parts))


def headline(table: Mapping[str, Any]) -> str:
    """The numbers that a reader asks for first: β, n, d and the seed, as far as the specification has them."""
    found: dict[str, list[str]] = {}
    for key, value in nested(table).items():
        name = HEADLINE.get(key.rpartition(".")[2])
        if name is not None and isinstance(value, int | float | list) and not isinstance(value, bool):
            found.setdefault(name, []).append(listed(value))
    positions = table.get("tokens", {}).get("positions") if isinstance(table.get("tokens"), dict) else None
    if positions:
        found |= {"n": [str(len(positions))], "d": [str(np.shape(positions)[-1])]}
    return " · ".join(
        f"{name} = {', '.join(dict.fromkeys(found[name]))}" for name in HEADLINE.values() if name in found
    )


def checked_account(account: Any) -> Account:
    """What the `account` of a kind of work gave, if it is one that can be written."""
    if not isinstance(account, Account):
        raise InvalidInput(f"`account` gives a {type(account).__name__}; return attnflow.plots.Account(figures=...).")
    if "summary" not in account.figures:
        raise InvalidInput("`account` gives no figure called 'summary'; name one of its figures so.")
    try:
        json.dumps(account.summary, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the `summary` of an account is no JSON ({error}); use numbers, texts and lists.") from None
    return account


@functools.singledispatch
def account(result: Any) -> Account:
    """Figures, captions and numbers of a result; for a type of its own, what was observed and the last numbers."""
    if not isinstance(result, AbstractResult):
        raise InvalidInput(f"`result` is {type(result).__name__}; a run holds the result of work.")
    summary = summarise(result)
    figures = {"summary": plot(result), "rows": plot(result)}
    return Account(figures, summary, {"outcome": result.outcome.message} | summary)


@account.register
def _(flow: AbstractTrajectory) -> Account:
    facts = {"outcome": flow.outcome.message, "steps": _steps(flow.steps), "frames": flow.dataset.sizes["time"]}
    sizes = ", ".join(f"{d} × {flow.dataset.sizes[d]}" for d in flow.dims)
    if "positions" not in flow.dataset or not flow.dataset.sizes["time"]:
        before = ["<p>No positions were kept: there are no pictures of tokens, clusters and overlaps.</p>"]
        if flow.dims:
            before.append(f"<p>The run holds a batch ({sizes}).</p>")
        drawn = {"numbers": _without(flow)} if any(name in flow.dataset for name in NUMBERS) else {}
        more, words = _observables(flow)
        return Account({"summary": plot(flow)} | drawn | more, summarise(flow), facts, before + words)
    data = FigureData.of(flow)
    figures = {"summary": plot(data), "snapshots": draw_snapshots(data)}
    if data.tree is not None:
        figures |= {"staircase": draw_staircase(data), "tree": draw_tree(data)}
    figures["series"] = draw_energy_and_count(data)
    figures["overlaps"] = draw_overlaps(data)
    if isinstance(data.flow.field, Attention) and data.flow.field.heads is None:
        figures["attention"] = draw_attention(data)
    more, words = _observables(flow)
    summary = summarise(data) | summarise_members(flow)
    rows = [
        [
            p["clusters"],
            written(p["log_start"]),
            written(p["log_end"]),
            "–" if p["energy"] is None else format(round(p["energy"], 6) + 0.0, ".6f"),
        ]
        for p in summary["plateaus"]
    ]
    heads = ["clusters", "from t", "to t", "energy"]
    if any("log_proved" in p for p in summary["plateaus"]):
        heads.append("apart until t ≥")
        for row, p in zip(rows, summary["plateaus"], strict=True):
            row.append("–" if p["log_proved"] is None else written(p["log_proved"]))
    of, batch = "", []
    if flow.dims:
        of = f" of {member_name(summary['batch'])}"
        words_ = f"The run holds a batch ({sizes}). Figures and plateaus are{of}; observables are of all."
        counts = [f"{key}: {value}." for key, value in member_counts(summary["batch"]).items()]
        batch = [f"<p>{html.escape(' '.join([words_, *counts]))}</p>", table(*member_table(summary["batch"]))]
    after = [f"<h2>Plateaus{html.escape(of)}</h2>", table(heads, rows), *_proved(data)]
    return Account(figures | more, summary, facts, [*batch, *words], after, live(data))


@account.register
def _(flow: DensityFlow) -> Account:
    view = look(flow)
    figures = {"summary": plot(view), "density": draw_density(view)}
    if view.edges is not None:
        figures["profiles"] = draw_profiles(view)
    figures |= {"energies": draw_energies(view), "decay": draw_decay(view)}
    return _of_density(flow, figures, summarise(view), {"basis": f"{type(flow.basis).__name__}, {_size(flow)}"})


@account.register
def _(flow: CellFlow) -> Account:
    view = look(flow)
    figures = {"summary": plot(view), "density": draw_density(view), "profiles": draw_profiles(view)}
    figures["cells"] = draw_energies(view)
    kind = "belts" if flow.cells.zonal else "arcs"
    cells = f"{flow.cells.count} {kind} of S^{flow.cells.dim - 1}, {flow.cells.width:.3g} wide"
    return _of_density(flow, figures, summarise(view), {"cells": cells})


@account.register
def _(flow: PlacedFlow) -> Account:
    figures = {"summary": plot(flow), "places": draw_places(flow)}
    if not isinstance(flow.start.basis, SphereBasis):
        figures["placed"] = draw_placed(flow)
    figures["rows"] = draw_rows(flow)
    summary, more = summarise(flow), _observables(flow)
    places = f"{flow.start.places.size} nodes, breaks {', '.join(map(str, flow.start.places.breaks))}"
    steps = _steps(flow.steps)
    facts = {"outcome": flow.outcome.message, "steps": steps, "frames": summary["frames"], "places": places}
    return Account(figures | more[0], summary, facts, more[1])


@account.register
def _(path: GramPath) -> Account:
    summary = summarise(path)
    facts = {"outcome": path.outcome.message, "replicas": summary["replicas"], "frames": summary["frames"]}
    return Account({"summary": plot(path), "overlap": plot(path)}, summary, facts)


@account.register
def _(found: ConditionalDensity) -> Account:
    summary = summarise(found)
    facts = {"outcome": found.outcome.message, "labels": summary["labels"], "frames": summary["frames"]}
    facts["folded"] = f"{summary['folded']} of {summary['members']} members"
    return Account({"summary": plot(found), "labels": plot(found)}, summary, facts)


@account.register
def _(found: Retrieval) -> Account:
    facts = {"outcome": found.outcome.message, "tokens": f"{found.n} in R^{found.d}", "prompts": found.prompts}
    return Account({"summary": plot(found), "retrieval": plot(found)}, summarise(found), facts)


@account.register
def _(merges: Merges) -> Account:
    figures = {"summary": plot(merges), "first": draw_first(merges)}
    figures |= {"survival": draw_survival(merges), "medians": draw_medians(merges)}
    summary = summarise(merges)
    several = len(grouped(merges)) > 1
    columns = ("lower_quartile", "median", "upper_quartile")
    rows = [
        [row["group"]] * several
        + [f"{row['left'] + 1} → {row['left']}", f"{row['made']} of {row['of']}"]
        + ["–" if row[name] is None else f"{row[name]:.4g}" for name in columns]
        for row in summary["last_merges"]
    ]
    heads = ["systems"] * several + ["clusters", "made by", "lower quartile of ln t", "median", "upper quartile"]
    late = "<p>A merge that has not been made counts as later than its system was followed (Kaplan–Meier).</p>"
    unmade = not np.isfinite(merges.log_time.values).all()
    before = ["<h2>The last merges</h2>", table(heads, rows), late if unmade else ""]
    doubtful = int(merges.undetermined.sum())
    facts = {"outcome": merges.outcome.message, "systems": summary["systems"], "tokens": summary["tokens"]}
    if doubtful:
        facts["undetermined"] = f"{doubtful} merges depend on rounding"
    return Account(figures, summary, facts, before)


@account.register
def _(fitted: Fitted) -> Account:
    figures = {"summary": plot(fitted), "loss": draw_loss(fitted)}
    if in_plane(fitted):
        figures["plane"] = draw_plane(fitted)
    if fitted.work is not None:
        figures["paths"] = draw_paths(fitted)
    summary = summarise(fitted)
    rows = [
        ["loss", _written(summary["loss_at_start"]), _written(summary["loss_at_end"])],
        ["accuracy", _written(summary["accuracy_at_start"]), _written(summary["accuracy"])],
    ]
    facts = {"outcome": fitted.outcome.message, "steps": summary["steps"], "points": summary["points"]}
    before = ["<h2>The fit</h2>", table(["", "at the start", "at the end"], rows)]
    return Account(figures, summary, facts, before)


@account.register
def _(match: Matching) -> Account:
    figures = {"summary": plot(match)}
    if can_be_carried(match):
        figures["carried"] = draw_carried(match)
    figures["distances"] = draw_distances(match)
    summary = summarise(match)
    tries, varied = match.dataset, next(name for name in ("ratio", "boost") if name in match.dataset)
    rows = [
        [
            k + 1,
            f"{tries[varied].values[k]:.3g}",
            int(tries["elements"].values[k]),
            f"{tries['w2'].values[k].max():.3g}",
        ]
        for k in range(match.tries)
    ]
    before = ["<h2>Tries</h2>", table(["try", varied, "elements", "largest W₂"], rows)]
    return Account(figures, summary, {"outcome": match.outcome.message, "measures": summary["measures"]}, before)


def _proved(data: FigureData) -> list[str]:
    """A sentence on what is proved of the plateaus of a long flow, or what that takes."""
    if data.tree is None or not data.plateaus:
        return []
    if "log_proved" in data.stretches:
        return ["<p>Last column: proved for point masses where the clusters begin (comparison of caps).</p>"]
    return ["<p>With python-flint (<code>attnflow[certify]</code>) lower bounds of these times are proved.</p>"]


def _of_density(flow: Any, figures: dict[str, Any], summary: dict[str, Any], own: dict[str, Any]) -> Account:
    more, words = _observables(flow)
    facts = {"outcome": flow.outcome.message, "steps": _steps(flow.steps), "frames": summary["frames"]} | own
    rows = [
        [name, _written(summary[f"{name}_at_start"]), _written(summary[f"{name}_at_end"])]
        for name in ("energy", "entropy")
    ]
    end = "the end" if summary["time"] is None else f"t = {summary['time']:.6g}"
    before = ["<h2>The density</h2>", table(["", "at the start", f"at {end}"], rows), *words]
    return Account(figures | more, summary, facts, before)


def _observables(result: Any) -> tuple[dict[str, Any], list[str]]:
    """The figure of observables, if there are some, and what it leaves out."""
    names = observed(result)
    if not names:
        return {}, []
    words = f"<p>The figure of observables shows {MOST} of {len(names)}.</p>" if len(names) > MOST else ""
    return {"observables": draw_observables(result)}, [words]


def _without(flow: AbstractTrajectory) -> Any:
    """The numbers of a flow that kept no positions, without its observables, which have a figure of their own."""
    return draw_numbers(dataclasses.replace(flow, dataset=flow.dataset.drop_vars(observed(flow))))


def _size(flow: DensityFlow) -> str:
    return f"degree {flow.basis.degree}, on S^{flow.basis.dim - 1}"


def _steps(steps: dict[str, int]) -> str:
    return f"{steps['accepted']} accepted, {steps['rejected']} rejected"


def _written(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 12) + 0.0:.6g}"
