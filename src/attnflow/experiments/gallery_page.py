"""The page of the gallery, written from finished experiments: figures made small, statements, claims, commands."""

import dataclasses
import io
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnflow.errors import MissingExtra, RunCorrupted, RunError
from attnflow.experiments.catalogue import Experiment, find, names
from attnflow.experiments.claim import Claim
from attnflow.experiments.execute import read_claims
from attnflow.runs.folder import Run, list_runs, write_atomically, writing

LARGEST_IMAGE = 60_000
"""Bytes of a figure on the page."""
WIDTHS = (1000, 800, 640, 512, 400, 320)
"""Pixels; the first that is small enough is taken."""
SHADES = (64, 32)
"""Colours of the palette."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One finished experiment of the page."""

    experiment: Experiment
    run: Run
    claims: list[Claim]
    quick: bool

    @property
    def figure(self) -> Path:
        """The figure as the experiment left it."""
        return self.run.figures / f"{self.experiment.name}.png"


def write_gallery(folder: str | Path, page: str | Path, images: str | Path) -> list[Entry]:
    """Write `page` (Markdown) and its pictures into `images` from the experiments in and directly below `folder`.

    Full versions only: a quick, unfinished or failed run is passed over, and of several runs of one experiment the
    newest counts. Every file of a run is checked against its checksum first. Experiments come in the order of their
    names. Returns what the page shows, claims that fail included.

    Raises `RunError` when no run can be used, or a file cannot be written.
    """
    page, images = Path(page), Path(images)
    entries = finished(folder)
    if not entries:
        raise RunError(
            f"{str(folder)!r} holds no finished experiment in its full version; run `attnflow reproduce --all --out "
            f"{folder}` first."
        )
    pictures = {entry.experiment.name: thumbnail(entry.figure) for entry in entries}
    with writing(page.parent), writing(images):
        images.mkdir(parents=True, exist_ok=True)
        page.parent.mkdir(parents=True, exist_ok=True)
        for name, content in pictures.items():
            write_atomically(images / f"{name}.png", content)
        write_atomically(page, page_text(entries, page, images).encode())
    return entries


def finished(folder: str | Path) -> list[Entry]:
    """The newest finished full run of every experiment, in the order of names."""
    if not Path(folder).is_dir():
        raise RunError(f"{str(folder)!r} is no folder; give one that holds runs of experiments.")
    here = [Run(Path(folder))] if (Path(folder) / "manifest.json").exists() else []
    known = set(names())
    found: dict[str, Entry] = {}
    for run in [*here, *list_runs(folder)]:  # oldest first
        manifest = run.manifest()
        name = manifest.get("experiment")
        if name in known and "plugins" not in manifest and manifest["status"] == "finished" and not manifest["quick"]:
            run.verify()
            found[name] = Entry(find(name), run, read_claims(run), manifest["quick"])
    return [found[name] for name in sorted(found)]


def thumbnail(figure: Path) -> bytes:
    """The figure as a PNG of at most LARGEST_IMAGE bytes: with a palette, and as wide as that allows."""
    try:
        from PIL import Image  # comes with Matplotlib
    except ImportError:
        raise MissingExtra("the gallery page needs Pillow; install it with `pip install pillow`.") from None
    try:
        with Image.open(figure) as file:
            picture = file.convert("RGB")
    except OSError as error:
        raise RunCorrupted(f"{str(figure)!r} cannot be read ({error}); run the experiment again.") from None
    for width in sorted({min(width, picture.width) for width in WIDTHS}, reverse=True):
        height = max(1, round(picture.height * width / picture.width))
        small = picture.resize((width, height), Image.Resampling.LANCZOS)
        for shades in SHADES:
            stream = io.BytesIO()
            flat = small.quantize(shades, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
            flat.save(stream, format="PNG", optimize=True)
            if len(stream.getvalue()) <= LARGEST_IMAGE:
                return stream.getvalue()
    raise RunError(f"{str(figure)!r} cannot be made smaller than {LARGEST_IMAGE} bytes; simplify the figure.")


def page_text(entries: Iterable[Entry], page: Path, images: Path) -> str:
    """The Markdown of the page."""
    entries = list(entries)
    claims = [claim for entry in entries for claim in entry.claims]
    failed = sum(not claim.holds for claim in claims)
    verdict = f"all {len(claims)} claims hold" if not failed else f"{failed} of {len(claims)} claims fail"
    lines = [
        "# Gallery",
        "",
        f"Published results, each made runnable by one module: {len(entries)} experiments, {verdict}. This page is "
        "written by `attnflow gallery` from finished runs; numbers are those of the runs.",
        "",
        *(f"* [{entry.experiment.name}](#{entry.experiment.name}): {_plain(entry.experiment.statement)}"
          for entry in entries),
        "",
    ]  # fmt: skip
    for entry in entries:
        lines += _section(entry, page, images)
    return "\n".join(lines).rstrip() + "\n"


def _section(entry: Entry, page: Path, images: Path) -> list[str]:
    experiment = entry.experiment
    source = Path(experiment.module().__file__)
    link = _relative(source, page.parent)
    count = len(source.read_text(encoding="utf-8").splitlines())
    picture = _relative(images / f"{experiment.name}.png", page.parent)
    manifest = entry.run.manifest()
    return [
        f"## {experiment.name}",
        "",
        _plain(experiment.statement),
        "",
        f"![{experiment.name}]({picture})",
        "",
        "| claim | predicted | measured | tolerance | where it comes from | verdict |",
        "|---|---|---|---|---|---|",
        *(_row(claim) for claim in entry.claims),
        "",
        f"`attnflow reproduce {experiment.name}` · {_papers(experiment.papers)} · "
        f"[{source.name}]({link}), {count} lines · attnflow {manifest['versions']['attnflow']}",
        "",
    ]


def _row(claim: Claim) -> str:
    cells = (claim.statement, *claim.as_text(), claim.source, "holds" if claim.holds else "**fails**")
    return "| " + " | ".join(_plain(cell) if k < 5 else cell for k, cell in enumerate(cells)) + " |"


def _plain(text: str) -> str:
    """Text that Markdown leaves alone, in one line."""
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", " ".join(text.split()))


def _papers(papers: Iterable[str]) -> str:
    return ", ".join(
        f"[{paper}](https://arxiv.org/abs/{paper.removeprefix('arXiv:')})" if paper.startswith("arXiv:") else paper
        for paper in papers
    )


def _relative(path: Path, base: Path) -> str:
    return Path(os.path.relpath(path.resolve(), base.resolve())).as_posix()


def to_json(entries: Iterable[Entry]) -> str:
    """What the page shows, for machines."""
    rows: list[dict[str, Any]] = [
        {
            "experiment": entry.experiment.name,
            "run": str(entry.run.path),
            "claims": len(entry.claims),
            "failed": sum(not claim.holds for claim in entry.claims),
        }
        for entry in entries
    ]
    return json.dumps(rows, indent=2)
