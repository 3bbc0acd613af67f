"""Figures and the self-contained page of a run."""

import html
from typing import Any

from attnflow.fields import Attention
from attnflow.flows import AbstractTrajectory
from attnflow.plots.attention import draw_attention
from attnflow.plots.interactive import interactive
from attnflow.plots.overlaps import draw_overlaps
from attnflow.plots.page import as_page, as_svg, facts_table, toml_block, with_caption
from attnflow.plots.series import draw_series
from attnflow.plots.snapshots import draw_snapshots
from attnflow.plots.staircase import draw_staircase
from attnflow.plots.story import Story, tell
from attnflow.plots.summary import plot, summarise
from attnflow.plots.times import is_long, symbol, written
from attnflow.plots.tree import draw_tree
from attnflow.runs.folder import Run, write_atomically, writing

CAPTIONS = {
    "snapshots": "Tokens at chosen times, in the colours of their clusters on a crowded plateau.",
    "staircase": "Level against (log t)/β, with the limit β → ∞, and against the length of the path, which is finite. "
    "Right: how long each plateau lasts, with what two-body theory says of its closest pair, and the lower bound of "
    "arXiv:2410.06833 where its conditions hold.",
    "tree": "Who merged with whom, and when; branches as thick as clusters are heavy.",
    "series": "Energy (with the levels that theory gives) and number of clusters. Before condensation the groups are "
    "linked by chance and their number means nothing.",
    "overlaps": "Share of pairs with a given overlap, through time.",
    "attention": "Attention weights at the start and on the plateau that gives the colours, tokens sorted by cluster.",
}


def draw_run(run: Run, flow: AbstractTrajectory) -> dict[str, Any]:
    """Draw all figures (PDF for print, one PNG, SVG in the page), write the report, and give back the summary."""
    story = tell(flow)
    figures = {"summary": plot(story), "snapshots": draw_snapshots(story)}
    if story.tree is not None:
        figures |= {"staircase": draw_staircase(story), "tree": draw_tree(story)}
    figures["series"] = draw_series(story)
    figures["overlaps"] = draw_overlaps(story)
    if isinstance(story.flow.field, Attention):
        figures["attention"] = draw_attention(story)
    summary = summarise(story)
    with writing(run.path):
        run.figures.mkdir(exist_ok=True)
        for name, figure in figures.items():
            figure.savefig(run.figures / f"{name}.pdf", metadata={"CreationDate": None})
            figure.set_layout_engine("none")  # laid out once is laid out for all formats
        figures["summary"].savefig(run.figures / "summary.png")
        page = _page(
            run, flow, story, {name: as_svg(figure) for name, figure in figures.items() if name != "summary"}, summary
        )
        write_atomically(run.report, page.encode())
    return summary


def _page(run: Run, flow: AbstractTrajectory, story: Story, pictures: dict[str, str], summary: dict[str, Any]) -> str:
    manifest, spec = run.manifest(), run.spec()
    live = interactive(story).to_html(full_html=False, include_plotlyjs=True, auto_play=False)
    sizes = ", ".join(f"{d} × {flow.dataset.sizes[d]}" for d in flow.dims)
    batch = f"<p>The run holds a batch ({sizes}); the figures show its first member.</p>" if flow.dims else ""
    long = is_long(p[end] for p in summary["plateaus"] for end in ("log_start", "log_end"))
    rows = "".join(
        f"<tr><td>{p['clusters']}</td><td>{written(p['log_start'], long)}</td><td>{written(p['log_end'], long)}</td>"
        f"<td>{'–' if p['energy'] is None else format(round(p['energy'], 6) + 0.0, '.6f')}</td></tr>"
        for p in summary["plateaus"]
    )
    facts = {
        "outcome": flow.outcome.message,
        "steps": f"{flow.steps['accepted']} accepted, {flow.steps['rejected']} rejected",
        "frames": flow.dataset.sizes["time"],
        "precision": manifest["dtype"],
    }
    t, none = symbol(long), '<tr><td colspan="4">none</td></tr>'
    parts = [
        f"<p>{html.escape(spec.table['about'])}</p>",
        live,
        batch,
        "<h2>Plateaus</h2>",
        f"<table><tr><th>clusters</th><th>from {t}</th><th>to {t}</th><th>energy</th></tr>{rows or none}</table>",
        "<h2>Figures</h2>",
        *(with_caption(svg, CAPTIONS[name]) for name, svg in pictures.items()),
        facts_table(facts, manifest),
        toml_block("Specification", spec.to_toml()),
    ]
    return as_page(spec.name, "\n".join(parts))
