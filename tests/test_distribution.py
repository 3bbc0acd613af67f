"""The wheel and the sdist hold what they should, and nothing else."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UNWANTED = re.compile(
    r"__pycache__|\.pyc$|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.hypothesis|\.venv|\.zarr|(^|/)runs/[^/]*-20"
)


def test_the_addresses_agree():
    home = PROJECT["urls"]["Homepage"]
    assert f"repository-code: {home}\n" in (ROOT / "CITATION.cff").read_text()
    assert all(address.startswith(home) for address in PROJECT["urls"].values())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The names in the wheel and in the sdist, and the METADATA, built in an environment of their own."""
    path = tmp_path_factory.mktemp("distribution")
    subprocess.run([sys.executable, "-m", "venv", path / "venv"], check=True)
    python = path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "hatchling>=1.24"], check=True)
    subprocess.run([python, "-m", "hatchling", "build", "-d", path / "dist"], cwd=ROOT, check=True)
    (wheel,), (sdist,) = (path / "dist").glob("*.whl"), (path / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(archive.read(name).decode() for name in names if name.endswith("METADATA"))
    with tarfile.open(sdist) as archive:
        return names, [name.partition("/")[2] for name in archive.getnames()], metadata


def needed():
    """The files of both packages that are not caches, as the wheel names them."""
    files = (p for p in PACKAGES.rglob("*") if p.is_file())
    return {p.relative_to(PACKAGES).as_posix() for p in files if not UNWANTED.search(p.as_posix())}


@pytest.mark.long
def test_the_wheel_holds_the_package_alone(built):
    wheel, _, metadata = built
    assert "](docs/" not in metadata  # the README of a package index has absolute addresses
    assert "](https://github.com/attnflow/attnflow/blob/v" in metadata
    own = {name for name in wheel if ".dist-info/" not in name}
    assert own == needed()
    for ending in (
        "presets/million.toml",
        "references.bib",
        "staircase/derivation.md",
        "py.typed",
        "plots/player.js",
        "lab/page/index.html",
        "__init__.pyi",
    ):
        assert any(name.endswith(ending) for name in own), ending
    assert any(name.endswith("licenses/LICENSE") for name in wheel)
    for name, address in PROJECT["urls"].items():
        assert f"Project-URL: {name}, {address}" in metadata


@pytest.mark.slow
def test_the_sdist_holds_what_the_tests_need(built):
    _, sdist, _ = built
    held = set(sdist)
    assert {f"src/{name}" for name in needed()} <= held
    for name in (
        "LICENSE",
        "README.md",
        "CITATION.cff",
        "CHANGELOG.md",
        "Makefile",
        "requirements.lock",
        "pyproject.toml",
    ):
        assert name in held
    for folder in ("tests", "docs", "benchmarks", "campaigns"):
        assert any(name.startswith(f"{folder}/") for name in held)
    assert not [name for name in held if UNWANTED.search(name)]


def test_everything_that_is_not_python_is_known():
    """A new kind of file in the package is looked at: whether it belongs there, and gets into the wheel."""
    kinds = {Path(name).suffix or Path(name).name for name in needed()}
    assert kinds <= {".py", ".pyi", ".toml", ".bib", ".md", ".js", ".css", ".html", ".typed"}
