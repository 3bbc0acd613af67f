"""The figure of an experiment in three formats, and its self-contained page."""

import html
import inspect
import io
from typing import Any

from attnflow.experiments.catalogue import Experiment
from attnflow.experiments.claim import Claim
from attnflow.experiments.settings import Settings
from attnflow.plots.style import styled
from attnflow.runs.folder import Run, write_atomically


def draw_report(run: Run, experiment: Experiment, settings: Settings, claims: list[Claim], figure: Any) -> None:
    """Write figures/NAME.pdf, figures/NAME.png and report.html; the docstring of `draw` becomes the caption."""
    run.figures.mkdir(exist_ok=True)
    stream = io.StringIO()
    with styled():
        figure.savefig(run.figures / f"{experiment.name}.pdf", metadata={"CreationDate": None})
        figure.set_layout_engine("none")  # laid out once is laid out for all formats
        figure.savefig(run.figures / f"{experiment.name}.png")
        figure.savefig(stream, format="svg", metadata={"Date": None})
    svg = stream.getvalue()
    write_atomically(run.report, _page(run, experiment, settings, claims, svg[svg.index("<svg") :]).encode())


def _page(run: Run, experiment: Experiment, settings: Settings, claims: list[Claim], svg: str) -> str:
    manifest = run.manifest()
    failed = sum(not claim.holds for claim in claims)
    rows = "".join(_row(claim) for claim in claims)
    facts = {
        "version": "quick" if settings.quick else "full",
        "papers": ", ".join(experiment.papers),
        "device": manifest["device"],
        "specification": manifest["spec_hash"][:16],
        "versions": ", ".join(f"{k} {v}" for k, v in manifest["versions"].items()),
    }
    return _TEMPLATE.format(
        title=html.escape(experiment.name),
        statement=html.escape(experiment.statement),
        about="".join(f"<p>{html.escape(p)}</p>" for p in experiment.about.split("\n\n") if p),
        verdict=f"All {len(claims)} claims hold." if not failed else f"{failed} of {len(claims)} claims fail.",
        rows=rows,
        figure=svg,
        caption=html.escape(inspect.getdoc(experiment.module().draw) or ""),
        facts="".join(f"<tr><th>{k}</th><td>{html.escape(str(v))}</td></tr>" for k, v in facts.items()),
        spec=html.escape(settings.to_toml()),
    )


def _row(claim: Claim) -> str:
    cells = (claim.statement, *claim.as_text(), claim.source)
    kind, word = ("holds", "holds") if claim.holds else ("fails", "fails")
    return "<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + f'<td class="{kind}">{word}</td></tr>'


_TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} · attnflow</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ margin-bottom: 0; }} h2 {{ margin-top: 2.2rem; font-size: 1.15rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
td, th {{ padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e4e4e4; }}
figure {{ margin: 1.5rem 0; }} figure svg {{ max-width: 100%; height: auto; }}
figcaption {{ color: #555; font-size: .9rem; max-width: 46rem; }}
pre {{ background: #f6f6f4; padding: 1rem; overflow-x: auto; font-size: .85rem; }}
p {{ max-width: 46rem; }} .statement {{ font-size: 1.1rem; }}
.holds {{ color: #00694d; }} .fails {{ color: #b3261e; font-weight: bold; }}
</style></head><body>
<h1>{title}</h1><p class="statement">{statement}</p>
{about}
<h2>Claims</h2><p>{verdict}</p>
<table><tr><th>claim</th><th>predicted</th><th>measured</th><th>tolerance</th><th>where it comes from</th><th></th></tr>
{rows}</table>
<figure>{figure}<figcaption>{caption}</figcaption></figure>
<h2>The run</h2><table>{facts}</table>
<h2>Parameters</h2><pre>{spec}</pre>
</body></html>
"""
