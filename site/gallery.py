"""The gallery of the site: thumbnails of all experiments by subject, with a box that filters them.

Pages of experiments are those of docs/gallery, or are written anew from run folders (`--runs FOLDER`).
"""

import html
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from PIL import Image

import mathml
from attnflow.experiments.gallery_page import write_gallery
from attnflow.experiments.mutation import read_matrices
from attnflow.experiments.randomness import read_replications

RECORDS = Path(__file__).resolve().parent.parent / "campaigns" / "records"

SUBJECTS: dict[str, str] = {
    "Consensus and energy": (
        "consensus energy-ascent energy-dissipation saddles value-spectrum geodesics equiangular phase-diagram "
        "certified-equilibria mixed-values several-heads"
    ),
    "Clusters, plateaus and merges": (
        "metastability staircase two-clusters merge-times exit-times cluster-count kde-modes "
        "sphere-patterns distances-through-time changing-weights certified-plateaus"
    ),
    "Densities and many tokens": (
        "continuity-equation uniform-spectrum uniform-unstable many-modes zonal propagation-of-chaos "
        "noisy-transition common-noise general-interaction stability-of-measures independence"
    ),
    "Decoders and prompts": (
        "lost-in-the-middle causal-clusters causal-correlations mask-invisible topic-switch long-context places "
        "causal-rate"
    ),
    "Layers, norms and perceptrons": (
        "layer-norms perceptron-landscape euler-limit splitting-orders clustering-mitigated "
        "collapse-at-initialisation depth-scalings key-dimension skip-strength perceptron-holds-clusters "
        "homogenisation-rate"
    ),
    "Without layer norm": "hyperplanes vertices boolean-attention",
    "Control and learning": (
        "measure-to-measure circle-reordering map-and-density relative-entropy conditional-sampling "
        "permutations-by-shears "
        "interpolation-is-not-learning class-separation in-context-denoising training-finds-attention many-heads"
    ),
    "Text and trained networks": (
        "next-token bank prompt-invariances alignment trained-beta weight-sharing-iterated shuffled-text-collapses "
        "fresh-networks"
    ),
}
"""Subjects in the order of the page; experiments that none names come last, under `MORE`."""
MORE = "More"
ROW = re.compile(r"^\| \[([\w-]+)\]\(gallery/[\w-]+\.md\) \| (.*?) \| (.*?) \|$", re.M)
WIDTH = 360
FILTER = """<label class="filter">Filter <input type="search" placeholder="a word, such as merge" id="filter"></label>
"""


def write(pages: Path, runs: Path | None) -> None:
    """Replace the list of the gallery by thumbnails; with `runs` write its pages anew first."""
    if runs is not None:
        known = records("physics", read_matrices), records("replicate", read_replications)
        write_gallery(runs, pages / "gallery.md", pages / "images" / "gallery", *known)
    text = (pages / "gallery.md").read_text(encoding="utf-8")
    rows = {name: (statement, verdict) for name, statement, verdict in ROW.findall(text)}
    head = text.partition("\n|")[0].rstrip()
    named = set(" ".join(SUBJECTS.values()).split())
    groups = SUBJECTS | {MORE: " ".join(name for name in rows if name not in named)}
    parts = [head, "", FILTER]
    for subject, some in groups.items():
        names = [name for name in some.split() if name in rows]
        if names:
            cards = [card(name, *rows[name], pages) for name in names]
            parts += [f"## {subject}\n", '<div class="cards">', *cards, "</div>\n"]
            beside(names, subject, pages)
    (pages / "gallery.md").write_text("\n".join(parts), encoding="utf-8")
    for page in (pages / "gallery").glob("*.md"):
        page.write_text(displayed(page.read_text(encoding="utf-8")), encoding="utf-8")


def physics() -> list[str]:
    """Sentences about experiments whose claims have no present record of broken physics (campaigns/checks.py)."""
    sys.path.insert(0, str(RECORDS.parent))
    try:
        problems: list[str] = importlib.import_module("checks").physics()
    finally:
        sys.path.remove(str(RECORDS.parent))
    return problems


def displayed(text: str) -> str:
    """A page whose indented lines, the formulas of derivations, are formulas and no code."""

    def one(found: re.Match[str]) -> str:
        lines = (mathml.scripts(line.strip()) for line in found[1].splitlines())
        return "".join(f'<div class="plain">{re.sub("  +", "&emsp;", line)}</div>\n' for line in lines)

    fenced = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
    fenced[::2] = [re.sub(r"(?<=\n\n)((?: {4}\S.*\n)+)(?=\n)", one, part) for part in fenced[::2]]
    return "".join(fenced)


def records(campaign: str, read: Callable[[Path], Mapping[str, Any]]) -> dict[str, Any]:
    """What the records of a campaign say of each experiment; of several records the newest counts."""
    found: dict[str, Any] = {}
    for path in sorted(RECORDS.glob(f"{campaign}-*.json")):
        found |= read(path)
    return found


def beside(names: list[str], subject: str, pages: Path) -> None:
    """At the end of every page of a subject the way back, and to the other experiments of the subject."""
    for name in names:
        page = pages / "gallery" / f"{name}.md"
        if page.exists():
            others = ", ".join(f"[{other}]({other}.md)" for other in names if other != name)
            more = f" · {subject}: {others}" if others else ""
            text = page.read_text(encoding="utf-8").rstrip()
            page.write_text(f"{text}\n\n---\n\n[All experiments](../gallery.md){more}\n", encoding="utf-8")


def card(name: str, statement: str, verdict: str, pages: Path) -> str:
    """One experiment: thumbnail, name, statement, and how its claims fared."""
    figure = pages / "images" / "gallery" / f"{name}.png"
    small = pages / "images" / "thumbnails" / f"{name}.webp"
    picture = ""
    if figure.exists():
        small.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(figure) as whole:
            size = WIDTH, round(WIDTH * whole.height / whole.width)
            whole.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(small, quality=70)
        picture = (
            f'<img src="images/thumbnails/{name}.webp" alt="" width="{size[0]}" height="{size[1]}" loading="lazy">'
        )
    moving = " · animation" if figure.with_suffix(".gif").exists() else ""
    words = mathml.scripts(re.sub(r"\\(.)", r"\1", statement))
    short = html.escape(re.split(r" \(|;", verdict)[0])
    inside = f"{picture}<b>{name}</b><span>{words}</span><i>{short}{moving}</i>"
    return f'<a class="card" href="gallery/{name}.html">{inside}</a>'
