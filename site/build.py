"""Build the site: `make docs`, or `python site/build.py [--out build/site]`.

Pages are those of docs/ and those that are generated here: the reference of every public name, and the start page from
the README. Zensical turns them into HTML, in strict mode: a broken link ends the build. Nothing in the result asks
another machine for anything.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import reference

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md")
"""Pages at the root of the repository that the site shows."""
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def assemble(out: Path) -> Path:
    """The folder that Zensical reads: the pages of docs/, the reference, the start page and the settings."""
    pages = out / "docs"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    for name in (*BESIDE, "README.md"):
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](").replace('="docs/', '="')
        (pages / ("index.md" if name == "README.md" else name)).write_text(text, encoding="utf-8")
    for page in pages.rglob("*.md"):
        page.write_text(linked(page, pages), encoding="utf-8")
    (pages / "api").mkdir()
    for name, text in reference.pages().items():
        (pages / "api" / f"{name}.md").write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "site" / "style", pages / "style")
    settings = (ROOT / "site" / "zensical.toml").read_text(encoding="utf-8")
    rows = "\n".join(f'    {{ "{title}" = "api/{file}.md" }},' for file, (title, _) in reference.GROUPS.items())
    settings = settings.replace("SOURCES", str(ROOT / "src")).replace("REFERENCE", rows)
    (out / "zensical.toml").write_text(settings, encoding="utf-8")
    return out


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


def render(folder: Path) -> Path:
    """Run Zensical; its warnings are errors."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "site"), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=folder, env=environment, text=True)
    if done.returncode:
        raise SystemExit("the site has errors; see above.")
    return folder / "html"


def main() -> None:
    """Build the site into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    made = render(assemble(parser.parse_args().out))
    print(f"open {made / 'index.html'}")


if __name__ == "__main__":
    main()
