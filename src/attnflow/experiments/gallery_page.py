"""The pages of the gallery, written from finished experiments: one page each, and one that lists them."""

import collections
import dataclasses
import inspect
import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from attnflow.errors import MissingExtra, RunCorrupted, RunError
from attnflow.experiments.catalogue import Experiment, find, names
from attnflow.experiments.claim import Claim
from attnflow.experiments.execute import read_claims
from attnflow.experiments.mutation import Matrix
from attnflow.experiments.randomness import Replication
from attnflow.folders import write_file
from attnflow.references import linked
from attnflow.runs.files import writing
from attnflow.runs.folder import Run
from attnflow.runs.listing import list_runs

WIDTH = 1400
"""Pixels of a figure on its page, at most."""
SHOWN = 6
"""Claims that a page shows at first; the rest is folded."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One finished experiment of the gallery."""

    experiment: Experiment
    run: Run
    claims: list[Claim]
    matrix: Matrix | None = None
    replication: Replication | None = None

    @property
    def figure(self) -> Path:
        """The figure as the experiment left it."""
        return self.run.figures / f"{self.experiment.name}.png"

    @property
    def motion(self) -> Path:
        """The animation, if the experiment has one."""
        return self.figure.with_suffix(".gif")

    @property
    def verdict(self) -> str:
        """How many claims there are, of which kind, whether they hold, and how likely chance alone fails one."""
        count, failed = len(self.claims), sum(not claim.holds for claim in self.claims)
        kinds = collections.Counter(claim.origin.kind.value for claim in self.claims if claim.origin)
        used = max((claim.used for claim in self.claims if claim.used is not None), default=None)
        words = f"{failed} of {count} claims fail" if failed else f"all {count} claims hold"
        words += f" ({', '.join(f'{number} {kind}' for kind, number in kinds.items())})" if kinds else ""
        if level := sum(claim.level for claim in self.claims):
            words += f"; if all are true, chance fails one with probability {level:.1e} at most"
        return words + (f"; the tightest uses {100 * used:.3g} % of what it allows" if used is not None else "")


def write_gallery(
    folder: str | Path,
    page: str | Path,
    images: str | Path,
    matrices: Mapping[str, Matrix] | None = None,
    replications: Mapping[str, Replication] | None = None,
) -> list[Entry]:
    """Write the list `page` (Markdown), a page per experiment into the folder beside it, pictures into `images`.

    With page = docs/gallery.md the pages of experiments are docs/gallery/NAME.md. Full versions with salt 0 only: a
    quick, unfinished or failed run is passed over, and of several runs of one experiment the newest counts. Every file
    of a run is checked against its checksum first. Experiments of the package without such a run keep the page and the
    line that they have. Returns what is written, claims that fail included.

    Arguments:
        matrices: which mutations make which claims fail, by experiment; printed where given.
        replications: what became of the claims with fresh random numbers, by experiment; printed where given.

    Raises `RunError` when no run can be used, or a file cannot be written.
    """
    page, images = Path(page), Path(images)
    entries = finished(folder, matrices or {}, replications or {})
    if not entries:
        raise RunError(
            f"{str(folder)!r} holds no finished experiment in its full version; run `attnflow reproduce --all --out "
            f"{folder}` first."
        )
    pictures = {entry.experiment.name: _published_figure(entry) for entry in entries}
    own = page.with_suffix("")
    with writing(page.parent), writing(images):
        images.mkdir(parents=True, exist_ok=True)
        own.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            name = entry.experiment.name
            write_file(images / f"{name}.png", pictures[name])
            if entry.motion.exists():
                write_file(images / f"{name}.gif", entry.run.folder.read(f"figures/{name}.gif"))
            write_file(own / f"{name}.md", _page(entry, own, images).encode())
        write_file(page, _list(entries, page).encode())
    return entries


def finished(
    folder: str | Path, matrices: Mapping[str, Matrix], replications: Mapping[str, Replication]
) -> list[Entry]:
    """The newest finished full run of every experiment, in the order of names."""
    if not Path(folder).is_dir():
        raise RunError(f"{str(folder)!r} is no folder; give one that holds runs of experiments.")
    here = [Run(Path(folder))] if (Path(folder) / "manifest.json").exists() else []
    known = set(names())
    found: dict[str, Entry] = {}
    for run in [*here, *list_runs(folder)]:  # oldest first
        try:
            manifest = run.manifest()
        except RunCorrupted:
            continue
        name = manifest.get("experiment")
        if name in known and "plugins" not in manifest and manifest["status"] == "finished":
            if manifest["quick"] or manifest.get("salt"):
                continue
            run.verify()
            found[name] = Entry(find(name), run, read_claims(run), matrices.get(name), replications.get(name))
    return [found[name] for name in sorted(found)]


def _published_figure(entry: Entry) -> bytes:
    """Read the figure of an experiment in the folder of its run, which refuses links, and reduce it for the page."""
    try:
        with entry.run.folder.open(f"figures/{entry.figure.name}") as stream:
            return picture(stream)
    except OSError as error:
        raise RunCorrupted(f"{str(entry.figure)!r} cannot be read ({error}); run the experiment again.") from None


def picture(figure: BinaryIO) -> bytes:
    """A figure as a PNG of at most WIDTH pixels, with a palette of 256 colours that keeps those of every line.

    Raises `OSError` if it is no PNG.
    """
    try:
        from PIL import Image  # comes with Matplotlib
    except ImportError:
        raise MissingExtra("the gallery needs Pillow; install it with `pip install pillow`.") from None
    with Image.open(figure, formats=["PNG"]) as file:
        made = file.convert("RGB")
    if made.width > WIDTH:
        made = made.resize((WIDTH, max(1, round(made.height * WIDTH / made.width))), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    # an octree keeps rare colours; median cut spends its palette on common ones and merges the colours of lines
    made.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        stream, format="PNG", optimize=True
    )
    return stream.getvalue()


def _list(entries: list[Entry], page: Path) -> str:
    own = page.with_suffix("")
    rows = _kept(page) | {entry.experiment.name: _line(entry, own.name) for entry in entries}
    seconds = sum(_seconds(own / f"{name}.md") for name in rows)
    counts = np.array([_counted(row) for row in rows.values()])
    claims, failed = np.sum(counts, axis=0)
    verdict = f"all {claims} claims hold" if not failed else f"{failed} of {claims} claims fail"
    chance = sum(float(level) for row in rows.values() for level in re.findall(r"probability ([\d.e-]+) at most", row))
    lines = [
        "# Gallery",
        "",
        f"Published results and consequences of them, each made runnable: {len(rows)} experiments, {verdict}. If "
        f"every claim is true, chance fails one of them with probability {chance:.1e} at most. Every "
        "claim says whose statement it is: *published* (a paper states it), *reported* (a paper states it, of which "
        "only the abstract, a summary or the authors' code was read), *consequence* (derived on the page of the "
        "experiment), *observed* (seen here, derived nowhere) or *numerics* (one program against another), and where "
        "its tolerance comes from. Pages are "
        f"written by `attnflow gallery` from finished runs, which took {seconds / 60:.0f} CPU minutes.",
        "",
        "| experiment | statement | claims |",
        "|---|---|---|",
        *(rows[name] for name in sorted(rows)),
    ]
    return "\n".join(lines) + "\n"


def _line(entry: Entry, own: str) -> str:
    name = entry.experiment.name
    return f"| [{name}]({own}/{name}.md) | {_plain(entry.experiment.statement)} | {entry.verdict} |"


def _kept(page: Path) -> dict[str, str]:
    """The lines of an earlier list, by experiment, as far as the package still has the experiment and its page."""
    if not page.exists():
        return {}
    rows = {name: row for row, name in re.findall(r"(?m)^(\| \[([\w-]+)\]\(.*)$", page.read_text(encoding="utf-8"))}
    own = page.with_suffix("")
    return {name: row for name, row in rows.items() if name in names() and (own / f"{name}.md").exists()}


def _counted(row: str) -> tuple[int, int]:
    """How many claims a line of the list speaks of, and how many of them fail."""
    failed, every, hold = re.findall(r"(?:(\d+) of (\d+) claims fail|all (\d+) claims hold)", row)[-1]
    return int(every or hold), int(failed or 0)


def _seconds(page: Path) -> int:
    """The CPU seconds that the page of an experiment names."""
    return int(re.findall(r"(?m)^(\d+) CPU s on ", page.read_text(encoding="utf-8"))[-1])


def _page(entry: Entry, folder: Path, images: Path) -> str:
    experiment, manifest = entry.experiment, entry.run.manifest()
    source = Path(experiment.module().__file__)
    source = source.parent if source.name == "__init__.py" else source
    caption = " ".join((inspect.getdoc(experiment.module().draw) or "").split())
    derivation = source / "derivation.md"
    lines = [
        f"# {experiment.name}",
        "",
        f"**{_plain(experiment.statement)}**",
        "",
        f"![{experiment.name}]({_relative(images / f'{experiment.name}.png', folder)})",
        "",
        f"*{_plain(caption)}*",
        "",
        *_motion(entry, folder, images),
        *(line for paragraph in experiment.about.split("\n\n") for line in (_paragraph(paragraph), "")),
        "## Claims",
        "",
        f"{entry.verdict[0].upper()}{entry.verdict[1:]}. {_plain(str(entry.replication or ''))}".strip(),
        "",
        *_table(entry.claims[:SHOWN]),
        *(
            _folded(f"{len(entry.claims) - SHOWN} more claims", _table(entry.claims[SHOWN:]))
            if entry.claims[SHOWN:]
            else []
        ),
    ]
    if derivation.is_dir() or derivation.exists():
        lines += ["## Derivations", "", derivation.read_text(encoding="utf-8").strip(), ""]
    if entry.matrix is not None:
        lines += _matrix(entry.matrix)
    lines += [
        "## Run it",
        "",
        f"`attnflow reproduce {experiment.name}` · [source]({_relative(source, folder)}) · "
        f"`attnflow cite {experiment.name}`",
        "",
        _facts(manifest),
        "",
        *(f"* {linked(paper)}" for paper in experiment.papers),
        "",
        f"[All experiments](../{folder.name}.md)",
    ]
    return "\n".join(lines).rstrip() + "\n"


def _motion(entry: Entry, folder: Path, images: Path) -> list[str]:
    if not entry.motion.exists():
        return []
    caption = " ".join((inspect.getdoc(entry.experiment.module().motion) or "").split())
    path = _relative(images / f"{entry.experiment.name}.gif", folder)
    return [f"![{entry.experiment.name} in motion]({path})", "", f"*{_plain(caption)}*", ""]


def _facts(manifest: Mapping[str, Any]) -> str:
    versions = manifest["versions"]
    commit = f", commit {manifest['commit'][:12]}" if manifest.get("commit") else ""
    commit += f", sources {manifest['sources']}" if "sources" in manifest else ""
    machine = manifest.get("processor", manifest["platform"])
    return (
        f"{manifest['cpu_time']:.0f} CPU s on {machine}, {manifest['created'][:10]}, "
        f"attnflow {versions['attnflow']}{commit}, JAX {versions['jax']}, Python {versions['python']}."
    )


def _table(claims: Iterable[Claim]) -> list[str]:
    head = ["| claim | whose | predicted | found | tolerance from | |", "|---|---|---|---|---|---|"]
    return [*head, *map(_row, claims), ""]


def _row(claim: Claim) -> str:
    found = claim.found + (f" ({claim.detail})" if claim.detail and claim.detail != claim.found else "")
    origin = str(claim.origin or "")
    cells = (claim.statement, origin, claim.expected, found, claim.reason)
    return "| " + " | ".join(map(_plain, cells)) + (" | holds |" if claim.holds else " | **fails** |")


def _matrix(matrix: Matrix) -> list[str]:
    """Which change of the simulation makes which claim fail, as a folded table."""
    letters = [chr(ord("A") + k) for k in range(len(matrix.mutations))]
    rows = [
        f"| {_plain(claim)} | " + " | ".join("×" if killed else "" for killed in row) + " |"
        for claim, row in zip(matrix.claims, matrix.killed, strict=True)
    ]
    words = "; ".join(f"{letter}: {_plain(name)}" for letter, name in zip(letters, matrix.mutations, strict=True))
    return [
        "## What would be noticed",
        "",
        "The simulation is changed, run again (quick version) and compared with the same predictions; × marks claims "
        f"that then fail. {words}.",
        "",
        *_folded(
            f"{len(matrix.claims)} kinds of claims, {len(letters)} mutations",
            [f"| claim | {' | '.join(letters)} |", "|---|" + "---|" * len(letters), *rows, ""],
        ),
    ]


def _folded(summary: str, lines: list[str]) -> list[str]:
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "</details>", ""]


def _paragraph(text: str) -> str:
    """A paragraph in one line; lines that begin with * stay a list."""
    items = re.split(r"\n(?=\* )", text)
    return "\n".join(f"* {_plain(one[2:])}" if one.startswith("* ") else _plain(one) for one in items)


def _plain(text: str) -> str:
    """Text that Markdown leaves alone, in one line."""
    signs = " ".join(text.split()).replace(">=", "≥").replace("<=", "≤")
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", signs)


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
