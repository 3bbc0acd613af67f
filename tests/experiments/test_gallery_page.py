"""The page of the gallery: what it shows of a finished run, and which runs it passes over."""

import io
import json

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from attnflow.cli.reproduce import gallery
from attnflow.errors import RunCorrupted, RunError
from attnflow.experiments import reproduce
from attnflow.experiments.claim import Claim
from attnflow.experiments.gallery_page import LARGEST_IMAGE, _row, thumbnail, write_gallery
from attnflow.runs import Run
from tests.experiments.tiny import SOURCE, install


@pytest.fixture
def log(tmp_path, monkeypatch):
    return install(tmp_path / "gallery", monkeypatch)


def write(tmp_path, runs="runs"):
    return write_gallery(tmp_path / runs, tmp_path / "docs" / "page.md", tmp_path / "docs" / "images" / "g")


def test_a_page_from_a_finished_run(log, tmp_path):
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    (entry,) = write(tmp_path)
    assert entry.experiment.name == "tiny-mean"
    page = (tmp_path / "docs" / "page.md").read_text()
    claim = entry.claims[0]
    row = f"| the mean is 0 | {claim.as_text()[0]} | {claim.as_text()[1]} | {claim.as_text()[2]} | five standard errors"
    lines = len(SOURCE.splitlines())
    for words in (
        "1 experiments, all 2 claims hold",
        "## tiny-mean",
        "The mean of a few numbers is what it is.",
        "![tiny-mean](images/g/tiny-mean.png)",
        row,
        "`attnflow reproduce tiny-mean`",
        "[arXiv:0000.00000](https://arxiv.org/abs/0000.00000)",
        f"[tiny_mean.py](../gallery/tiny_mean.py), {lines} lines",
    ):
        assert words in page
    picture = (tmp_path / "docs" / "images" / "g" / "tiny-mean.png").read_bytes()
    assert len(picture) <= LARGEST_IMAGE
    assert Image.open(io.BytesIO(picture)).format == "PNG"
    before = page, picture
    write(tmp_path)
    assert ((tmp_path / "docs" / "page.md").read_text(), picture) == before, "the same runs give the same page"
    assert write(tmp_path, "runs/one")[0].run.path.name == "one", "a run folder itself will do"


def test_which_runs_count(log, tmp_path, monkeypatch):
    with pytest.raises(RunError, match="is no folder"):
        write(tmp_path)
    reproduce("tiny-mean", tmp_path / "runs" / "quick", quick=True)
    with pytest.raises(RunError, match="holds no finished experiment in its full version"):
        write(tmp_path)
    assert not (tmp_path / "docs").exists()
    monkeypatch.setenv("TINY", "break")
    with pytest.raises(ZeroDivisionError):
        reproduce("tiny-mean", tmp_path / "runs" / "broken")
    monkeypatch.delenv("TINY")
    for name, created in (("a", "2030-01-02"), ("b", "2030-01-01")):
        run, _ = reproduce("tiny-mean", tmp_path / "runs" / name)
        Run(run.path).update(created=created)
    assert [entry.run.path.name for entry in write(tmp_path)] == ["a"], "the newest"
    (tmp_path / "runs" / "a" / "claims.json").write_text("[]")
    with pytest.raises(RunCorrupted):
        write(tmp_path)


def test_figures_shrink_until_they_fit(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (1000, 320, 3)).astype(np.uint8)
    smooth = np.broadcast_to(np.linspace(0, 255, 1400).astype(np.uint8)[None, :, None], (470, 1400, 3))
    for name, pixels in (("noise", noise), ("smooth", smooth)):
        Image.fromarray(np.ascontiguousarray(pixels)).save(tmp_path / f"{name}.png")
    small = Image.open(io.BytesIO(thumbnail(tmp_path / "smooth.png")))
    assert small.size == (1000, 336)
    with pytest.raises(RunError, match="cannot be made smaller"):
        thumbnail(tmp_path / "noise.png")
    Image.fromarray(noise[:300, :300]).save(tmp_path / "little.png")
    assert len(thumbnail(tmp_path / "little.png")) <= LARGEST_IMAGE
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(RunCorrupted, match="cannot be read"):
        thumbnail(tmp_path / "bad.png")


def test_a_table_is_not_broken_by_what_it_holds():
    row = _row(Claim.true("|x| < *y*_z", False, "[a](b)", "a\nsource"))
    assert row == r"| \|x\| \< \*y\*\_z | true | \[a\](b) | – | a source | **fails** |"


def test_the_command(log, tmp_path, monkeypatch):
    app = typer.Typer()
    app.command()(gallery)
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    where = ["--out", str(tmp_path / "g.md"), "--images", str(tmp_path / "i")]
    done = CliRunner().invoke(app, [str(tmp_path / "runs"), *where, "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)[0]["claims"] == 2
    assert (tmp_path / "i" / "tiny-mean.png").exists()
    monkeypatch.setenv("TINY", "wrong")
    reproduce("tiny-mean", tmp_path / "runs" / "two")
    done = CliRunner().invoke(app, [str(tmp_path / "runs"), *where])
    assert done.exit_code == 1
    assert "1 of 2 claims fail" in (tmp_path / "g.md").read_text()
    assert "**fails**" in (tmp_path / "g.md").read_text()
