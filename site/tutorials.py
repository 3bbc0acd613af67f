"""Tutorials: the scripts of examples/ as pages, with what they print and draw.

A script is a notebook kept as text: its docstring is the introduction, `# %% [markdown]` begins prose and `# %%` code,
as in Jupytext and editors. The build runs every script at full size, in a process of its own, and keeps the results
until the script or the package changes; the suite runs the same scripts small (tests/test_examples.py).
"""

import ast
import contextlib
import functools
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
PICTURES = (".png", ".svg", ".gif")
TUTORIALS: dict[str, tuple[str, tuple[str, ...]]] = {
    "consensus-time": ("When do all tokens agree?", ("consensus_time.py",)),
    "word-vectors": ("Which of my words end together?", ("word_vectors.py",)),
    "first-merge": ("How long does a plateau last?", ("first_merge.py",)),
    "density-and-tokens": ("Do many tokens move as a density?", ("density_and_tokens.py",)),
    "decoder": ("Who leads a cluster of a decoder?", ("decoder.py",)),
    "prompt-middle": ("What does a decoder forget of a prompt?", ("prompt_middle.py",)),
    "steer-measures": ("Can one network steer several measures?", ("steer_measures.py",)),
    "own-kernel": ("How do I use a kernel of my own?", ("own_kernel.py", "own_kernel.toml", "kill_and_resume.py")),
    "own-experiment": ("How do I check a claim of my own?", ("own_experiment.py",)),
    "own-sweep": ("How do I sweep parameters, here or on a cluster?", ("own_sweep.py",)),
    "own-network": ("Does my own network do what theory says?", ("own_network.py",)),
}
"""Page, question, and the scripts that answer it, in the order of the menu."""


@dataclass(frozen=True)
class Cell:
    """Prose or code of a script."""

    kind: str
    text: str


def cells(source: str) -> list[Cell]:
    """The cells of a script: its docstring, then what `# %%` divides."""
    tree = ast.parse(source)
    words, rest = ast.get_docstring(tree), source
    found = []
    if words is not None:
        found.append(Cell("prose", words))
        rest = "\n".join(source.splitlines()[tree.body[0].end_lineno :])
    for piece in re.split(r"^(?=# %%)", rest, flags=re.M):
        head, _, body = piece.partition("\n") if piece.startswith("# %%") else ("", "", piece)
        if "[markdown]" in head:
            found.append(Cell("prose", re.sub(r"^# ?", "", body, flags=re.M).strip()))
        elif body.strip():
            found.append(Cell("code", body.strip()))
    return found


def execute(script: Path, folder: Path) -> None:
    """Run the cells of a script in `folder`; leave results.json: what each cell printed, and the pictures it made."""
    names = {"__name__": "__main__", "__file__": str(script)}
    os.chdir(folder)
    results: list[dict[str, Any]] = []
    wall, cpu = time.perf_counter(), os.times()
    for cell in cells(script.read_text(encoding="utf-8")):
        before, printed = _pictures(folder), io.StringIO()
        if cell.kind == "code":
            with contextlib.redirect_stdout(printed):
                exec(compile(cell.text, script.name, "exec"), names)
        results.append({"printed": printed.getvalue(), "pictures": sorted(_pictures(folder) - before)})
    spent = sum(os.times()[:4]) - sum(cpu[:4])
    facts = {"wall": time.perf_counter() - wall, "cpu": spent, "cores": os.cpu_count(), "processor": _processor()}
    (folder / "results.json").write_text(json.dumps({"cells": results} | facts), encoding="utf-8")


def _pictures(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix in PICTURES}


def _processor() -> str:
    with contextlib.suppress(OSError):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        if found:
            return found[1]
    return platform.processor() or platform.machine()


@functools.cache
def _package() -> str:
    """A hash of the sources of the package."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "src" / "attnflow").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def results(script: Path, kept: Path) -> tuple[Path, dict[str, Any]]:
    """The folder and the results of a script: kept ones, or those of a run now."""
    near = b"".join(path.read_bytes() for path in sorted(EXAMPLES.iterdir()) if path.suffix == ".toml")
    key = hashlib.sha256(script.read_bytes() + near + _package().encode()).hexdigest()[:16]
    folder = kept / f"{script.stem}-{key}"
    if not (folder / "results.json").exists():
        print(f"running {script.name}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        own = {name: value for name, value in os.environ.items() if name != "ATTNFLOW_SMALL"}
        own |= {"MPLBACKEND": "agg", "ATTNFLOW_PROGRESS": "off"}
        subprocess.run([sys.executable, __file__, str(script), str(folder)], check=True, env=own)
    return folder, json.loads((folder / "results.json").read_text(encoding="utf-8"))


@functools.cache
def answers() -> dict[str, str]:
    """The end of each page: what the reader takes from it, and where to go on (site/answers.md)."""
    _, *rest = re.split(r"^## (.+)$", (ROOT / "site" / "answers.md").read_text(encoding="utf-8"), flags=re.M)
    return {name: text.strip() for name, text in zip(rest[::2], rest[1::2], strict=True)}


def page(name: str, where: Path, kept: Path | None) -> str:
    """One tutorial as Markdown; its pictures, script and notebook go into `where`. Without `kept` nothing runs."""
    title, files = TUTORIALS[name]
    parts, notes, notebook = [f"# {title}\n"], [], []
    for file in files:
        source = EXAMPLES / file
        shutil.copy(source, where / file)
        if source.suffix != ".py":
            parts.append(f'```toml title="{file}"\n{source.read_text(encoding="utf-8").strip()}\n```\n')
            continue
        folder, found = (None, None) if kept is None else results(source, kept)
        own = cells(source.read_text(encoding="utf-8"))
        notebook += own
        for k, cell in enumerate(own):
            parts.append(f"{cell.text}\n" if cell.kind == "prose" else f'```python title="{file}"\n{cell.text}\n```\n')
            if found is not None and folder is not None:
                parts += _shown(found["cells"][k], folder, where, title)
        if found is not None:
            notes.append(f"`{file}` took {found['wall']:.0f} s ({found['cpu']:.0f} s of CPU time)")
            machine = f"{found['cores']} cores, {found['processor']}"
    (where / f"{name}.ipynb").write_text(_notebook(title, notebook), encoding="utf-8")
    links = ", ".join(f"[{file}]({file})" for file in files)
    ran = f" When this page was made, {' and '.join(notes)} on {machine}." if notes else ""
    parts.append(f"## Answer\n\n{answers()[name]}\n")
    parts.append(f"---\n\nFiles: {links}, [as a notebook]({name}.ipynb).{ran} [All tutorials](index.md)\n")
    return "\n".join(parts)


def _shown(result: dict[str, Any], folder: Path, where: Path, title: str) -> list[str]:
    found = [f"```text\n{result['printed'].strip()}\n```\n"] if result["printed"].strip() else []
    for name in result["pictures"]:
        shutil.copy(folder / name, where / name)
        found.append(f"![Figure: {title}]({name})\n")
    return found


def _notebook(title: str, own: list[Cell]) -> str:
    """The same as a Jupyter notebook, without results."""
    rows: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": f"# {title}", "id": "title"}]
    for k, cell in enumerate(own):
        rest = {"metadata": {}, "source": cell.text, "id": f"cell-{k}"}
        code = {"cell_type": "code", "execution_count": None, "outputs": []}
        rows.append(({"cell_type": "markdown"} if cell.kind == "prose" else code) | rest)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": rows, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def write(where: Path, kept: Path | None) -> None:
    """All tutorials and their list."""
    where.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, (title, files) in TUTORIALS.items():
        (where / f"{name}.md").write_text(page(name, where, kept), encoding="utf-8")
        first = cells((EXAMPLES / files[-1]).read_text(encoding="utf-8"))[0].text.partition("\n\n")[0]
        rows.append(f"| [{title}]({name}.md) | {' '.join(first.split())} |")
    head = "Each page is one question, from start to figure. Every script is a notebook kept as text, in `examples/`."
    table = ["| question | what is done |", "|---|---|", *rows]
    (where / "index.md").write_text("\n".join(["# Tutorials\n", f"{head}\n", *table, ""]), encoding="utf-8")


if __name__ == "__main__":
    execute(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
