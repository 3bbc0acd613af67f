"""The checklist of a release (tools/release_check.py), with files made for it; and the pictures of docs/first.md."""

import importlib
import re
import sys
import zipfile

import pytest

from tests.site.sources import ROOT, module

pictures = module("pictures")


@pytest.fixture(scope="module")
def check():
    sys.path.insert(0, str(ROOT / "tools"))
    yield importlib.import_module("release_check")
    sys.path.remove(str(ROOT / "tools"))


@pytest.fixture
def files(check, monkeypatch):
    """Texts of the repository, which a test may change."""
    names = ("CHANGELOG.md", "CITATION.cff", "pyproject.toml", "README.md", "src/attnflow/__init__.py")
    found = {name: (ROOT / name).read_text() for name in names}
    monkeypatch.setattr(check, "_read", found.__getitem__)
    monkeypatch.setattr(check, "_git", lambda *words: "src/attnflow/__init__.py")
    return found


def test_the_change_log_needs_the_version_and_a_date(check, files):
    files["CHANGELOG.md"] = f"# Changes\n\n## {check.version()} (2026-11-18)\n"
    assert check.changelog() == f"{check.version()} (2026-11-18)"
    for heading in ("Unreleased", f"{check.version()} (soon)", "9.9.9 (2026-11-18)"):
        files["CHANGELOG.md"] = f"# Changes\n\n## {heading}\n"
        with pytest.raises(AssertionError):
            check.changelog()


def test_the_citation_names_the_version(check, files):
    assert check.citation() == check.version()
    files["CITATION.cff"] = files["CITATION.cff"].replace(check.version(), "9.9.9")
    with pytest.raises(AssertionError, match=r"9\.9\.9"):
        check.citation()


def wheel(folder, check, files, *, description, extra=""):
    """A wheel with one module and the metadata that hatchling would write."""
    project = check.tomllib.loads(files["pyproject.toml"])["project"]
    rows = {"Name": project["name"], "Version": check.version(), "License-Expression": project["license"]}
    rows |= {"Summary": project["description"], "Requires-Python": project["requires-python"]}
    rows |= {"Description-Content-Type": "text/markdown", "Requires-Dist": "jax"}
    lines = [f"{key}: {value}" for key, value in rows.items()]
    lines += [f"Provides-Extra: {name}" for name in project["optional-dependencies"]]
    with zipfile.ZipFile(folder / "a.whl", "w") as packed:
        packed.writestr("attnflow/__init__.py", "")
        packed.writestr("a.dist-info/METADATA", "\n".join([*lines, "", description]))
        packed.writestr("a.dist-info/licenses/LICENSE", "")
        if extra:
            packed.writestr(extra, "")
    return folder / "a.whl"


def test_metadata_and_contents_of_a_wheel(check, files, tmp_path):
    shown = check.readme.absolute(files["README.md"], check.version())
    whole = wheel(tmp_path, check, files, description=shown)
    assert check.contents(whole).startswith("1 files")
    assert check.metadata(whole) == f"attnflow {check.version()}, 1 requirements"
    with pytest.raises(AssertionError, match="hold in the repository alone"):
        check.metadata(wheel(tmp_path, check, files, description=files["README.md"]))
    with pytest.raises(AssertionError, match=r"left\.py"):
        check.contents(wheel(tmp_path, check, files, description=shown, extra="attnflow/left.py"))


def test_links_of_the_readme_hold_on_a_package_index(check):
    text = "![A](docs/a.png) and [b](docs/b.md#c), [here](#there), [x](https://arxiv.org)"
    assert check.readme.absolute(text, "1.2.3") == (
        "![A](https://raw.githubusercontent.com/attnflow/attnflow/v1.2.3/docs/a.png) and "
        "[b](https://github.com/attnflow/attnflow/blob/v1.2.3/docs/b.md#c), [here](#there), [x](https://arxiv.org)"
    )
    known = check.readme.relative((ROOT / "README.md").read_text())
    assert known
    assert all((ROOT / address.partition("#")[0]).exists() for address in known)


def test_five_pictures_and_one_animation_are_on_the_first_page():
    text = (ROOT / "docs" / "first.md").read_text()
    shown = re.findall(r"!\[[^\]]{20,}\]\(images/first/(\w+)\.\w+\)", text)  # with words for those who do not see them
    assert sorted(shown) == sorted([*pictures.PICTURES, "motion"])
    for name in shown:
        (file,) = (ROOT / "docs" / "images" / "first").glob(f"{name}.*")
        assert 2_000 < file.stat().st_size < 2_000_000


@pytest.mark.parametrize("name", ["tokens", "attention"])
def test_a_picture_is_drawn(name):
    figure = pictures.PICTURES[name]()
    assert len(figure.axes) == 2
    assert all(axes.get_lines() and axes.get_title() for axes in figure.axes)
