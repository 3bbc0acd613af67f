"""The report of a comparison: the table with its nulls, figures through depth, and clusters with the words in them."""

import html
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnflow.probe.comparison import NETWORK, Cell, Comparison, with_interval

SHOWN_TEXTS = 3
"""Texts whose clusters are written out."""
SHOWN_CLUSTERS = 8
SHOWN_WORDS = 16
SUMMARY = (
    "β, median head over layers",
    "R² of β over layers",
    "alignment of attention over layers",
    "R² of one ODE over layers",
)
"""Quantities of the closing table."""
CAPTIONS = {
    "overlap": "Overlaps and centred rank through depth, mean over texts. Bands are 95 % bootstrap intervals over "
    "texts. What rises in (a) and not in (b) is a common direction of few coordinates; what a null does too is not due "
    "to training.",
    "beta": "Fitted inverse temperature β of every head, and its R². Where R² is near 0 the slope says nothing, and of "
    "collapsed tokens it has any size.",
    "alignment": "Alignment of updates with the velocity of attention with Q = K = V = I, the effective time of "
    "layers, and the share of the updates that it explains.",
    "sinks": "Largest norm over median norm, and the share of attention that sinks take.",
    "clusters": "Clusters of tokens. Where (c) is below 1, tokens of some texts form chains, and the counts in (a) say "
    "nothing about modes.",
}


def account(found: Comparison) -> Any:
    """An `attnflow.plots.Account` of a comparison."""
    import attnflow

    plots = attnflow.plots
    figures: dict[str, Any] = found.figures() if found.dataset.sizes["text"] else {}
    summary = found.figures()[next(iter(figures))] if figures else plots.style.blank("nothing that has a figure")
    heads = ["", *found.cases]
    rows = [[row.quantity, *(with_interval(row.cells[case]) for case in found.cases)] for row in found.rows]
    return plots.Account(
        {"summary": summary, **figures},
        _numbers(found),
        {"network": found.dataset.attrs.get("network", ""), "texts": str(found.dataset.sizes["text"])},
        after=[
            *_words(found),
            "<h2>Beside its nulls</h2>",
            f'<div class="wide">{plots.page.table(heads, rows)}</div>',
            *(f"<p>{html.escape(remark)}</p>" for remark in found.remarks()),
        ],
        captions=CAPTIONS,
    )


def _numbers(found: Comparison) -> dict[str, Any]:
    """For the manifest and the closing table: some numbers of the network, each with those of the other cases."""
    last = found.dataset.sizes.get("layer", 1) - 1
    wanted = (f"overlap at state {last}", f"clusters per token at state {last}", *SUMMARY)
    rows = {row.quantity: row.cells for row in found.rows}
    return {
        "kind": "probe",
        "network": str(found.dataset.attrs.get("network", "")),
        "texts": int(found.dataset.sizes["text"]),
        **{name: _beside(rows[name]) for name in wanted if name in rows},
    }


def _beside(cells: Mapping[str, Cell]) -> str:
    others = ", ".join(f"{case} {cell.mean:.3g}" for case, cell in cells.items() if case != NETWORK and _is(cell))
    return f"{cells[NETWORK].mean:.3g} ({others})"


def _is(cell: Cell) -> bool:
    return bool(np.isfinite(cell.mean))


def _words(found: Comparison) -> list[str]:
    """The clusters of the first texts with the words in them, at some states."""
    if "clusters" not in found.dataset or not found.dataset.sizes["text"]:
        return []
    parts = [
        "<h2>Clusters and their words</h2>",
        f"<p>Tokens linked at cosines above {found.dataset.attrs['link']:g}, without sinks; clusters of one token are "
        "left out. A cluster of equal words at state 0 is the embedding, not attention.</p>",
    ]
    for text in range(min(SHOWN_TEXTS, found.dataset.sizes["text"])):
        parts.append(f"<h3>Text {text + 1}</h3><table><tr><th>state</th><th>clusters</th></tr>")
        for number, state in enumerate(found.dataset["shown"].values):
            many = [one for one in found.clusters(text, number) if len(one) > 1]
            flag = found.dataset["condensed"].sel(case=NETWORK, kept="without sinks").values[text, int(state)]
            said = "; ".join(_listed(one) for one in many[:SHOWN_CLUSTERS]) or "none"
            more = f"; and {len(many) - SHOWN_CLUSTERS} more" if len(many) > SHOWN_CLUSTERS else ""
            chain = "" if flag == 1 else " <i>(chains: not condensed)</i>"
            parts.append(f"<tr><td>{int(state)}</td><td>{said}{more}{chain}</td></tr>")
        parts.append("</table>")
    return parts


def _listed(words: list[str]) -> str:
    shown = " ".join(html.escape(one.strip() or "␣") for one in words[:SHOWN_WORDS])
    return f"<b>{len(words)}</b> {shown}" + (" …" if len(words) > SHOWN_WORDS else "")
