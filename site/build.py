"""Build the site: `make docs`, or `python site/build.py [--out build/site]`.

Pages are those of docs/ and those that are generated here: the start page from the README, tutorials from the scripts
of examples/, thumbnails of the gallery, the lab as one page, and the reference of every public name. Zensical turns
them into HTML, in strict mode: a broken link ends the build. Nothing in the result asks another machine for anything.

The build refuses a gallery with a claim that no broken physics is recorded to make fail, for its present program
(campaigns/checks.py). `--stale` names such claims and builds all the same; `--draft` does not look, and runs no
tutorial either. `--only tokens flows` makes these pages of the reference alone; `--runs FOLDER` writes the pages of
the gallery from run folders.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import font
import gallery
import links
import reference
import tutorials
from attnflow.errors import RunError
from attnflow.lab import single_file

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE")
"""Files at the root of the repository that the site shows."""
KEPT = ROOT / "build" / "tutorials"
"""Where results of tutorials are kept."""
DOORS = """
[Read this first](first.md){ .md-button .md-button--primary } [Tutorials](tutorials/index.md){ .md-button }
[Gallery](gallery.md){ .md-button } [Open the lab](play.md){ .md-button }
"""
PLAY = """---
hide: [navigation, toc]
---

# Open the lab

Drag β while tokens move; this page computes everything. [Alone in a window](lab-page.html) · [What the panels
show](lab.md)

<iframe class="lab" src="lab-page.html" title="The lab: tokens on the sphere and panels with theory"></iframe>
"""
STATEMENTS = """---
hide: [navigation, toc]
---

# All statements

What the pages of theory derive, where the code has it, and what shows it.

| page | statement | function | experiment | test | whose |
|---|---|---|---|---|---|
"""
LIST = re.compile(r"(?m)^(?!(?:[*-]|\d+\.) |[\s|])(.+\n)(?=(?:[*-]|1\.) )")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def assemble(out: Path, *, draft: bool = False, only: Sequence[str] = (), runs: Path | None = None) -> Path:
    """The folder that Zensical reads: pages, pictures and settings; the arguments are those of the command."""
    pages = out / "docs"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    for name in (*BESIDE, "README.md"):
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](").replace('="docs/', '="')
        _write(pages / ("index.md" if name == "README.md" else name), text)
    first, _, rest = (pages / "index.md").read_text(encoding="utf-8").partition("\n![")
    _write(pages / "index.md", f"{first}{DOORS}\n![{rest}")
    _write(pages / "theory" / "statements.md", statements(pages / "theory"))
    gallery.write(pages, runs)
    for page in pages.rglob("*.md"):  # a code host reads Markdown within <details>, Zensical if it is told to
        text = apart(linked(page, pages).replace("<details>", "<details markdown>"))
        page.write_text(text, encoding="utf-8")
    tutorials.write(pages / "tutorials", None if draft else KEPT)
    _write(pages / "play.md", PLAY)
    _write(pages / "lab-page.html", single_file())
    written = reference.pages(only)
    for name, text in written.items():
        _write(pages / "api" / f"{name}.md", text)
    shutil.copytree(ROOT / "site" / "style", pages / "style")
    font.write(pages / "style" / "formulas.woff")
    settings = (ROOT / "site" / "zensical.toml").read_text(encoding="utf-8")
    shown = {file: title for file, (title, _) in reference.GROUPS.items() if file in written}
    settings = settings.replace("SOURCES", str(ROOT / "src"))
    settings = settings.replace("REFERENCE", _menu({f"api/{file}": title for file, title in shown.items()}))
    lessons = {f"tutorials/{name}": title for name, (title, _) in tutorials.TUTORIALS.items()}
    _write(out / "zensical.toml", settings.replace("TUTORIALS", _menu(lessons)))
    return out


def statements(folder: Path) -> str:
    """All rows of the tables at the end of the pages of theory, in one table."""
    rows = []
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        table = text.partition("| statement | function | experiment | test | whose |\n|---|---|---|---|---|\n")[2]
        rows += [f"| [{title}]({page.name}) {row}" for row in table.splitlines() if row.startswith("|")]
    return STATEMENTS + "\n".join([*rows, ""])


def _menu(rows: dict[str, str]) -> str:
    return "\n".join(f'    {{ "{title}" = "{file}.md" }},' for file, title in rows.items())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def linked(page: Path, pages: Path) -> str:
    """The text of a page; links to files that the site does not show become plain words."""

    def one(found: re.Match[str]) -> str:
        words, target, anchor = found.group(1), found.group(2), found.group(3) or ""
        there = (page.parent / target).resolve()
        if there.is_relative_to(pages.resolve()):
            return found.group(0)
        if there.name in BESIDE:
            return f"[{words}]({os.path.relpath(pages / there.name, page.parent)}{anchor})"
        return words

    return LINK.sub(one, page.read_text(encoding="utf-8"))


def apart(text: str) -> str:
    """An empty line between a paragraph and the list after it, which Python-Markdown needs and a code host does not."""
    fenced = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
    fenced[::2] = [LIST.sub(r"\1\n", part) for part in fenced[::2]]
    return "".join(fenced)


def render(folder: Path) -> Path:
    """Run Zensical; its warnings are errors, and so are links that lead nowhere."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "site"), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=folder, env=environment, text=True)
    found = links.broken(folder / "html")
    if done.returncode or found:
        raise SystemExit("\n".join(["the site has errors:", *found, "see above." if done.returncode else ""]))
    return folder / "html"


def main() -> None:
    """Build the site into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--draft", action="store_true", help="run no tutorial, check no record")
    parser.add_argument("--stale", action="store_true", help="build although records of broken physics are stale")
    parser.add_argument("--only", nargs="*", default=(), metavar="PAGE", help="pages of the reference (default: all)")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="runs of experiments, for the gallery")
    given = parser.parse_args()
    if given.draft:
        print("draft: no tutorial is run, and records of broken physics are not checked")
    elif problems := gallery.physics():
        lines = "\n".join(["the gallery lacks records of broken physics:", *problems])
        if not given.stale:
            raise SystemExit(f"{lines}\n`make docs STALE=--stale` builds a preview without them.")
        print(lines)
    try:
        made = render(assemble(given.out, draft=given.draft, only=given.only, runs=given.runs))
    except RunError as error:  # of `--runs`
        raise SystemExit(str(error)) from None
    print(f"open {made / 'index.html'}")


if __name__ == "__main__":
    main()
