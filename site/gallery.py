"""The gallery of the site: thumbnails of all experiments by subject, with a box that filters them.

Pages of experiments are those of docs/gallery, or are written anew from run folders (`--runs FOLDER`).
"""

import html
import re
from pathlib import Path

from PIL import Image

import mathml
from attnflow.experiments.gallery_page import write_gallery

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
        "lost-in-the-middle causal-clusters causal-correlations mask-invisible topic-switch long-context places"
    ),
    "Layers, norms and perceptrons": (
        "layer-norms perceptron-landscape euler-limit splitting-orders clustering-mitigated "
        "collapse-at-initialisation depth-scalings key-dimension skip-strength perceptron-holds-clusters"
    ),
    "Without layer norm": "hyperplanes vertices boolean-attention",
    "Control and learning": (
        "measure-to-measure circle-reordering map-and-density relative-entropy permutations-by-shears "
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
        write_gallery(runs, pages / "gallery.md", pages / "images" / "gallery")
    text = (pages / "gallery.md").read_text(encoding="utf-8")
    rows = {name: (statement, verdict) for name, statement, verdict in ROW.findall(text)}
    head = text.partition("\n|")[0].rstrip()
    named = set(" ".join(SUBJECTS.values()).split())
    groups = SUBJECTS | {MORE: " ".join(name for name in rows if name not in named)}
    parts = [head, "", FILTER]
    for subject, some in groups.items():
        cards = [card(name, *rows[name], pages) for name in some.split() if name in rows]
        if cards:
            parts += [f"## {subject}\n", '<div class="cards">', *cards, "</div>\n"]
    (pages / "gallery.md").write_text("\n".join(parts), encoding="utf-8")


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
    words = html.escape(mathml.letters(re.sub(r"\\(.)", r"\1", statement)))
    short = html.escape(re.split(r" \(|;", verdict)[0])
    inside = f"{picture}<b>{name}</b><span>{words}</span><i>{short}{moving}</i>"
    return f'<a class="card" href="gallery/{name}.html">{inside}</a>'
