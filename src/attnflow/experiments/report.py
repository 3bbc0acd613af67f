"""The figure of an experiment in three formats, and its self-contained page."""

import html
import inspect
from typing import Any

from attnflow.errors import InvalidInput
from attnflow.experiments.catalogue import Experiment
from attnflow.experiments.claim import Claim
from attnflow.experiments.settings import Settings
from attnflow.plots.page import as_page, as_svg, facts_table, toml_block, with_caption
from attnflow.plots.style import lay_out, styled
from attnflow.references import reference
from attnflow.runs.files import write_atomically
from attnflow.runs.folder import Run


def draw_report(run: Run, experiment: Experiment, settings: Settings, claims: list[Claim], figure: Any) -> None:
    """Write figures/NAME.pdf, figures/NAME.png and report.html; the docstring of `draw` becomes the caption."""
    run.figures.mkdir(exist_ok=True)
    with styled():
        lay_out(figure)
        figure.savefig(run.figures / f"{experiment.name}.pdf", metadata={"CreationDate": None})
        figure.savefig(run.figures / f"{experiment.name}.png")
        svg = as_svg(figure)
    write_atomically(run.report, _page(run, experiment, settings, claims, svg).encode())


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
