"""The checklist of a release: `make release-check`, or `python tools/release_check.py [--only 3.12]`.

Builds the sdist, and the wheel from it; compares what the wheel holds with the sources; reads its metadata; installs it
into a fresh environment for every Python from 3.11 to 3.13 that is on the path, as a user would, and runs the README's
snippet there; compares version, change log, citation and tag; checks the records of the campaigns, of which that of
`long` cases must be of the present source. Every line says yes or no; one no ends with status 1.
It needs the package index, and nothing beside Python and git.
"""

import argparse
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import readme

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")


def version() -> str:
    """The version that the package states."""
    return re.search(r'^__version__ = "(.+)"', _read("src/attnflow/__init__.py"), re.M)[1]  # type: ignore[index]


def changelog() -> str:
    """The newest entry is that of the version, with the day of its release."""
    first = re.search(r"^## (.*)$", _read("CHANGELOG.md"), re.M)
    heading = first[1] if first else ""
    _hold(heading.startswith(f"{version()} "), f"the newest entry is {heading!r}, the version {version()}")
    _hold(
        re.search(r"\d{4}-\d\d-\d\d", heading),
        f"the entry {heading!r} has no date: write `## {version()} (YYYY-MM-DD)`",
    )
    return heading


def citation() -> str:
    """CITATION.cff names the version."""
    named = re.search(r"^version: (.*)$", _read("CITATION.cff"), re.M)
    _hold(named and named[1] == version(), f"CITATION.cff names {named and named[1]}, the version is {version()}")
    return version()


def tree() -> str:
    """All that is built is committed."""
    left = _git("status", "--porcelain")
    _hold(not left, f"these files are not committed: {left}")
    return _git("rev-parse", "--short", "HEAD")


def tag() -> str:
    """The tag of the version is this commit, or is still to be set."""
    name = f"v{version()}"
    if not _git("tag", "--list", name):
        return f"not there yet; `git tag -a {name}` comes last"
    _hold(_git("rev-list", "-1", name) == _git("rev-parse", "HEAD"), f"the tag {name} is at another commit")
    return f"{name} is this commit"


def records() -> str:
    """The records of the campaigns say what the project claims (campaigns/checks.py)."""
    command = [sys.executable, str(ROOT / "campaigns" / "checks.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    _hold(not done.returncode, f"`make records` fails:\n{done.stdout}{done.stderr}".rstrip())
    return f"{len(done.stdout.splitlines())} checks"


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel made from its contents alone."""
    python = _environment(sys.executable, folder / "builder", "hatchling")
    _run([python, "-m", "hatchling", "build", "-t", "sdist", "-d", folder / "dist"], ROOT)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    _run([python, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"], source)
    (wheel,) = (folder / "dist").glob("*.whl")
    return sdist, wheel


def contents(wheel: Path) -> str:
    """The wheel holds every file of the two packages that git knows, and nothing else."""
    with zipfile.ZipFile(wheel) as packed:
        inside = {name for name in packed.namelist() if ".dist-info/" not in name}
    known = {name.removeprefix("src/") for name in _git("ls-files", "src").splitlines()}
    _hold(inside == known, f"missing: {sorted(known - inside)[:5]}; too many: {sorted(inside - known)[:5]}")
    return f"{len(inside)} files, {wheel.stat().st_size / 1e6:.1f} MB"


def metadata(wheel: Path) -> str:
    """What the package index shows is what pyproject.toml says."""
    with zipfile.ZipFile(wheel) as packed:
        (path,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        found = email.message_from_bytes(packed.read(path))
        licence = any(name.endswith("licenses/LICENSE") for name in packed.namelist())
    project = tomllib.loads(_read("pyproject.toml"))["project"]
    said = {"Name": project["name"], "Version": version(), "License-Expression": project["license"]}
    said |= {"Summary": project["description"], "Description-Content-Type": "text/markdown"}
    for key, value in said.items():
        _hold(found[key] == value, f"{key} is {found[key]!r}, not {value!r}")
    _hold(licence, "the wheel lacks LICENSE")
    _hold(
        set(found["Requires-Python"].split(",")) == set(project["requires-python"].split(",")),
        "Requires-Python differs",
    )
    _hold(set(found.get_all("Provides-Extra")) == set(project["optional-dependencies"]), "extras differ")
    shown = str(found.get_payload() or "")
    _hold("# attnflow" in shown, "the description is not the README")
    left = readme.relative(shown)
    _hold(not left, f"the description has addresses that hold in the repository alone: {left}")
    return f"{found['Name']} {found['Version']}, {len(found.get_all('Requires-Dist'))} requirements"


def installed(python: str, wheel: Path, folder: Path) -> str:
    """The README's snippet runs in a fresh environment of one Python, away from the sources."""
    own = _environment(python, folder / f"python{Path(python).name}", str(wheel))
    (lines,) = re.findall(r"```python\n(.*?)```", _read("README.md"), flags=re.S)
    there = folder / f"work{Path(python).name}"
    there.mkdir()
    _run([own, "-c", lines], there)
    for name in ("flow.pdf", "flow.html"):
        _hold((there / name).exists(), f"the snippet leaves no {name}")
    said = _run([own, "-m", "attnflow", "--version"], there).strip()
    _hold(version() in said, f"`attnflow --version` says {said!r}")
    return _run(
        [own, "-c", "import sys, jax; print(sys.version.split()[0] + ', JAX ' + jax.__version__)"], there
    ).strip()


def pythons(only: str | None) -> list[str]:
    """The interpreters from 3.11 to 3.13 that are on the path and start."""
    names = [shutil.which(f"python{one}") for one in PYTHONS if only in (None, one)]
    return [name for name in names if name and not subprocess.run([name, "-V"], capture_output=True).returncode]


def interpreters(found: list[str], only: str | None) -> str:
    """Every Python that the package supports is here."""
    wanted = [only] if only else PYTHONS
    _hold(len(found) == len(wanted), f"{len(found)} of Python {', '.join(wanted)} on the path: {', '.join(found)}")
    return ", ".join(found)


def _environment(python: str, folder: Path, *packages: str) -> Path:
    if python == sys.executable:
        venv.create(folder, with_pip=True)
    else:
        _run([python, "-m", "venv", folder], ROOT)
    own = folder / "bin" / "python"
    _run([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], folder)
    return own


def _run(command: list[object], folder: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([str(word) for word in command], cwd=folder, env=clean, capture_output=True, text=True)
    _hold(not done.returncode, f"`{' '.join(map(str, command))[:120]}` fails: {done.stderr.strip()[-600:]}")
    return done.stdout


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _hold(condition: object, otherwise: str) -> None:
    if not condition:
        raise AssertionError(otherwise)


def main() -> None:
    """Go through the checklist; say yes or no line by line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PYTHONS, help="one Python instead of all that are found")
    only = parser.parse_args().only
    failed = []

    def line(name: str, check: Callable[[], str]) -> None:
        try:
            print(f"yes  {name}: {check()}", flush=True)
        except AssertionError as error:
            failed.append(name)
            print(f"NO   {name}: {error}", flush=True)

    for check in (tree, changelog, citation, tag, records):
        line(check.__name__, check)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made: list[Path] = []
        line("build", lambda: made.extend(build(folder)) or " and ".join(path.name for path in made))  # type: ignore[func-returns-value]
        if made:
            line("contents", lambda: contents(made[1]))
            line("metadata", lambda: metadata(made[1]))
            found = pythons(only)
            line("interpreters", lambda: interpreters(found, only))
            for one in found:
                line(f"README on {Path(one).name}", lambda one=one: installed(one, made[1], folder))
    if failed:
        raise SystemExit(f"not ready: {', '.join(failed)}")


if __name__ == "__main__":
    main()
