"""The page of the gallery: what it shows of a finished run, and which runs it passes over."""

import io
import json

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from attnflow.cli.reproduce import gallery
from attnflow.errors import InvalidInput, RunCorrupted, RunError
from attnflow.experiments import reproduce
from attnflow.experiments.claim import Claim
from attnflow.experiments.gallery_page import _row, picture, write_gallery
from attnflow.experiments.mutation import Matrix
from attnflow.experiments.randomness import read_replications
from attnflow.plots.style import COLOURS
from attnflow.runs import Run
from attnflow.runs.environment import processor
from tests.experiments.tiny import install


@pytest.fixture
def log(tmp_path, monkeypatch):
    return install(tmp_path / "gallery", monkeypatch)


def write(tmp_path, runs="runs", matrices=None, replications=None):
    docs = tmp_path / "docs"
    return write_gallery(tmp_path / runs, docs / "page.md", docs / "images" / "g", matrices, replications)


def test_a_page_says_what_fresh_random_numbers_gave(log, tmp_path):
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    failed = [{"statement": "the mean is 0", "why": "level 1e-6"}]
    good, bad = {"claims": 2, "failed": []}, {"claims": 2, "failed": failed}
    for runs, words in (
        ({"1": good, "2": good}, r"With fresh random numbers (salts 1, 2) all 2 claims hold too."),
        ({"1": good, "2": bad}, r"(salts 1, 2) 1 of 2 × 2 claims fail: the mean is 0 (salt 2: level 1e-6)."),
        ({"1": bad, "2": bad}, r"(salts 1, 2) 2 of 2 × 2 claims fail: the mean is 0 (salts 1, 2: level 1e-6)."),
    ):
        (tmp_path / "record.json").write_text(json.dumps({"runs": {"tiny-mean": runs}}))
        write(tmp_path, replications=read_replications(tmp_path / "record.json"))
        assert words in (tmp_path / "docs" / "page" / "tiny-mean.md").read_text()
    with pytest.raises(InvalidInput, match="is no record of campaigns/replicate.py"):
        read_replications(tmp_path / "missing.json")


def test_pages_from_a_finished_run(log, tmp_path):
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    matrix = Matrix(("the mean is #", "there are three"), ("no noise", "twice"), ((True, False), (False, True)), {})
    (entry,) = write(tmp_path, matrices={"tiny-mean": matrix})
    assert entry.experiment.name == "tiny-mean"
    listed = (tmp_path / "docs" / "page.md").read_text()
    assert "1 experiments, all 2 claims hold" in listed
    assert "| [tiny-mean](page/tiny-mean.md) | The mean of a few numbers is what it is. | all 2 claims hold" in listed
    page = (tmp_path / "docs" / "page" / "tiny-mean.md").read_text()
    for words in (
        "# tiny-mean",
        "**The mean of a few numbers is what it is.**",
        "Shown: nothing of interest.",
        "![tiny-mean](../images/g/tiny-mean.png)",
        r"*The first part, a \< b.*",
        f"| the mean is 0 |  | 0 | {entry.claims[0].found} | five standard errors | holds |",
        "A: no noise; B: twice",
        "| the mean is # | × |  |",
        "`attnflow reproduce tiny-mean`",
        "[arXiv:2312.10794](https://arxiv.org/abs/2312.10794)",
        "[source](../../gallery/tiny_mean.py)",
        f"cores, {processor()}",
        "[All experiments](../page.md)",
    ):
        assert words in page
    picture = (tmp_path / "docs" / "images" / "g" / "tiny-mean.png").read_bytes()
    assert Image.open(io.BytesIO(picture)).format == "PNG"
    before = listed, page, picture
    write(tmp_path, matrices={"tiny-mean": matrix})
    after = [(tmp_path / "docs" / name).read_text() for name in ("page.md", "page/tiny-mean.md")]
    assert (*after, picture) == before, "the same runs give the same pages"
    assert write(tmp_path, "runs/one")[0].run.path.name == "one", "a run folder itself will do"


def test_pages_of_experiments_without_a_run_stay(log, tmp_path):
    (log.parent / "tiny_twin.py").write_text((log.parent / "tiny_mean.py").read_text())
    reproduce("tiny-mean", tmp_path / "first" / "one")
    reproduce("tiny-twin", tmp_path / "second" / "two")
    write(tmp_path, "first")
    listed = (tmp_path / "docs" / "page.md").read_text()
    page = tmp_path / "docs" / "page" / "tiny-mean.md"
    before = page.read_text()
    (entry,) = write(tmp_path, "second")
    assert entry.experiment.name == "tiny-twin"
    assert page.read_text() == before
    after = (tmp_path / "docs" / "page.md").read_text()
    assert "2 experiments, all 4 claims hold" in after
    assert next(line for line in listed.splitlines() if "tiny-mean" in line) in after.splitlines()
    (log.parent / "tiny_mean.py").unlink()
    write(tmp_path, "second")
    assert "1 experiments, all 2 claims hold" in (tmp_path / "docs" / "page.md").read_text(), "it is gone"


def test_an_animation_stands_below_the_figure(log, tmp_path):
    moving = """

class Still:
    def save(self, path):
        path.write_bytes(b"GIF89a")


def motion(parameters):
    '''Nothing moves.'''
    return Still()
"""
    text = (log.parent / "tiny_mean.py").read_text()
    (log.parent / "tiny_mean.py").write_text(text + moving)
    reproduce("tiny-mean", tmp_path / "runs" / "quick", quick=True)
    assert not (tmp_path / "runs" / "quick" / "figures" / "tiny-mean.gif").exists()
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    write(tmp_path)
    page = (tmp_path / "docs" / "page" / "tiny-mean.md").read_text()
    assert "![tiny-mean in motion](../images/g/tiny-mean.gif)\n\n*Nothing moves.*" in page
    assert (tmp_path / "docs" / "images" / "g" / "tiny-mean.gif").read_bytes() == b"GIF89a"


def test_many_claims_are_folded(log, tmp_path, monkeypatch):
    text = (log.parent / "tiny_mean.py").read_text()
    (log.parent / "tiny_mean.py").write_text(
        text.replace("    return [\n        Claim", "    return 9 * [\n        Claim")
    )
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    write(tmp_path)
    page = (tmp_path / "docs" / "page" / "tiny-mean.md").read_text()
    assert "<summary>12 more claims</summary>" in page
    assert page.index("the mean is 0") < page.index("<details>")


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


def test_pictures_keep_their_colours(tmp_path):
    """Thin lines of the palette on white and a photograph beside them: every colour of a line survives."""
    pixels = np.full((400, 2000, 3), 255, np.uint8)
    lines = [tuple(bytes.fromhex(colour[1:])) for colour in COLOURS]
    for k, colour in enumerate(lines):
        pixels[10 + 6 * k : 13 + 6 * k, :1000] = colour
    pixels[100:, :] = np.random.default_rng(0).integers(0, 256, (300, 2000, 3))
    Image.fromarray(pixels).save(tmp_path / "big.png")
    made = Image.open(io.BytesIO(picture(io.BytesIO((tmp_path / "big.png").read_bytes()))))
    assert made.size == (1400, 280)
    seen = np.asarray(made.convert("RGB")).astype(int)
    rows = [round((11 + 6 * k) * 0.7) for k in range(len(lines))]
    shown = [tuple(seen[row, 300]) for row in rows]
    assert len(set(shown)) == len(lines), "different lines have different colours"
    with pytest.raises(OSError, match="cannot identify"):
        picture(io.BytesIO(b"no picture"))


def test_a_table_is_not_broken_by_what_it_holds():
    row = _row(Claim.true("|x| < *y*_z", False, "[a](b)", "a\nreason"))
    assert row == r"| \|x\| \< \*y\*\_z |  | true | \[a\](b) | a reason | **fails** |"


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
    assert "**fails**" in (tmp_path / "g" / "tiny-mean.md").read_text()
