"""The figure of an experiment in three formats, and its self-contained page."""

import html
import inspect
import tempfile
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput
from attnflow.experiments.catalogue import Experiment
from attnflow.experiments.claim import Claim
from attnflow.experiments.settings import Settings
from attnflow.plots.page import as_page, as_svg, facts_table, save_figure, toml_block, with_caption
from attnflow.plots.style import lay_out, styled
from attnflow.references import reference
from attnflow.runs.folder import Run


def draw_report(run: Run, experiment: Experiment, settings: Settings, claims: list[Claim], figure: Any) -> None:
    """Write figures/NAME.pdf, figures/NAME.png and report.html; the docstring of `draw` becomes the caption."""
    run.folder.make("figures")
    with styled():
        lay_out(figure)
        for kind in ("pdf", "png"):
            save_figure(run.folder, f"figures/{experiment.name}.{kind}", figure)
        svg = as_svg(figure)
    run.folder.write("report.html", _page(run, experiment, settings, claims, svg).encode())


def draw_motion(run: Run, name: str, motion: Any) -> None:
    """Write figures/NAME.gif.

    Arguments:
        run: the run folder.
        name: name of the experiment.
        motion: a `Film`, an `Animation`, or another object whose `save(path)` writes a GIF.
    """
    with tempfile.TemporaryDirectory() as folder:  # the folder of the run may be somebody else's
        motion.save(Path(folder) / f"{name}.gif")
        run.folder.write(f"figures/{name}.gif", (Path(folder) / f"{name}.gif").read_bytes())


def _page(run: Run, experiment: Experiment, settings: Settings, claims: list[Claim], svg: str) -> str:
    failed = sum(not claim.holds for claim in claims)
    verdict = f"All {len(claims)} claims hold." if not failed else f"{failed} of {len(claims)} claims fail."
    heads = ("claim", "whose", "predicted", "found", "tolerance from", "")
    facts = {"version": "quick" if settings.quick else "full", "papers": "; ".join(map(_paper, experiment.papers))}
    parts = [
        f'<p class="statement">{html.escape(experiment.statement)}</p>',
        *(f"<p>{html.escape(p)}</p>" for p in experiment.about.split("\n\n") if p),
        with_caption(svg, inspect.getdoc(experiment.module().draw) or ""),
        f"<h2>Claims</h2><p>{verdict}</p>",
        f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>",
        *(_row(claim) for claim in claims),
        "</table>",
        facts_table(facts, run.manifest()),
        toml_block("Parameters", settings.to_toml()),
    ]
    return as_page(experiment.name, "\n".join(parts))


def _paper(key: str) -> str:
    """A line of the bibliography; what a file outside the package names in its own way stays."""
    try:
        return reference(key)
    except InvalidInput:
        return key


def _row(claim: Claim) -> str:
    cells = (
        claim.statement,
        str(claim.origin or ""),
        claim.expected,
        claim.found,
        " ".join(filter(None, (claim.reason, f"({claim.detail})" * bool(claim.detail)))),
    )
    kind, word = ("holds", "holds") if claim.holds else ("fails", "fails")
    return "<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + f'<td class="{kind}">{word}</td></tr>'
