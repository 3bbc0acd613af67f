"""The page of the gallery: what it shows of a finished run, and which runs it passes over."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from attnflow.experiments import reproduce
from attnflow.plots.style import COLOURS
from tests.experiments.tiny import dying


@pytest.fixture
def write(tmp_path, attnflow):
    """Call `attnflow gallery` for what it wrote, an entry for each experiment, or for its refusal."""

    def call(runs="runs", *options, code=0):
        places = "--out", tmp_path / "docs" / "page.md", "--images", tmp_path / "docs" / "images" / "g"
        output, errors = attnflow("gallery", tmp_path / runs, *places, "--json", *options, code=code)
        return json.loads(output) if output else errors

    return call


def test_a_page_says_what_fresh_random_numbers_gave(log, write, tmp_path):
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    failed = [{"statement": "the mean is 0", "why": "level 1e-6"}]
    good, bad = {"claims": 2, "failed": []}, {"claims": 2, "failed": failed}
    for runs, words in (
        ({"1": good, "2": good}, r"With fresh random numbers (salts 1, 2) all 2 claims hold too."),
        ({"1": good, "2": bad}, r"(salts 1, 2) 1 of 2 × 2 claims fail: the mean is 0 (salt 2: level 1e-6)."),
        ({"1": bad, "2": bad}, r"(salts 1, 2) 2 of 2 × 2 claims fail: the mean is 0 (salts 1, 2: level 1e-6)."),
    ):
        (tmp_path / "record.json").write_text(json.dumps({"runs": {"tiny-mean": runs}}))
        write("runs", "--replications", tmp_path / "record.json")
        assert words in (tmp_path / "docs" / "page" / "tiny-mean.md").read_text()
    refusal = write("runs", "--replications", tmp_path / "missing.json", code=2)
    assert "missing.json' is no record of campaigns/replicate.py" in refusal


def test_pages_from_a_finished_run(log, write, tmp_path):
    run, claims = reproduce("tiny-mean", tmp_path / "runs" / "one")
    matrix = {"claims": ["the mean is #", "there are three"], "mutations": ["no noise", "twice"], "refused": {}}
    matrix["killed"] = [[True, False], [False, True]]
    (tmp_path / "record.json").write_text(json.dumps({"experiments": {"tiny-mean": matrix}}))
    (entry,) = write("runs", "--mutations", tmp_path / "record.json")
    assert entry == {"experiment": "tiny-mean", "run": str(run.path), "claims": 2, "failed": 0}
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
        f"| the mean is 0 |  | 0 | {claims[0].found} | five standard errors | holds |",
        "A: no noise; B: twice",
        "| the mean is # | × |  |",
        "`attnflow reproduce tiny-mean`",
        "[arXiv:2312.10794](https://arxiv.org/abs/2312.10794)",
        "[source](../../gallery/tiny_mean.py)",
        f" CPU s on {run.manifest()['processor']}, ",
        "[All experiments](../page.md)",
    ):
        assert words in page
    assert re.search(r"\n\d+ CPU s on \d+ cores, \w", page)
    picture = (tmp_path / "docs" / "images" / "g" / "tiny-mean.png").read_bytes()
    assert Image.open(io.BytesIO(picture)).format == "PNG"
    before = listed, page, picture
    write("runs", "--mutations", tmp_path / "record.json")
    after = [(tmp_path / "docs" / name).read_text() for name in ("page.md", "page/tiny-mean.md")]
    assert (*after, picture) == before, "the same runs give the same pages"
    assert write("runs/one") == [entry], "a run folder itself will do"


def test_pages_of_experiments_without_a_run_stay(log, write, tmp_path):
    (log.parent / "tiny_twin.py").write_text((log.parent / "tiny_mean.py").read_text())
    reproduce("tiny-mean", tmp_path / "first" / "one")
    reproduce("tiny-twin", tmp_path / "second" / "two")
    write("first")
    listed = (tmp_path / "docs" / "page.md").read_text()
    page = tmp_path / "docs" / "page" / "tiny-mean.md"
    before = page.read_text()
    (entry,) = write("second")
    assert entry["experiment"] == "tiny-twin"
    assert page.read_text() == before
    after = (tmp_path / "docs" / "page.md").read_text()
    assert "2 experiments, all 4 claims hold" in after
    assert next(line for line in listed.splitlines() if "tiny-mean" in line) in after.splitlines()
    (log.parent / "tiny_mean.py").unlink()
    write("second")
    assert "1 experiments, all 2 claims hold" in (tmp_path / "docs" / "page.md").read_text(), "it is gone"


def test_an_animation_stands_below_the_figure(log, write, tmp_path):
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
    write()
    page = (tmp_path / "docs" / "page" / "tiny-mean.md").read_text()
    assert "![tiny-mean in motion](../images/g/tiny-mean.gif)\n\n*Nothing moves.*" in page
    assert (tmp_path / "docs" / "images" / "g" / "tiny-mean.gif").read_bytes() == b"GIF89a"


def test_many_claims_are_folded(log, write, tmp_path):
    text = (log.parent / "tiny_mean.py").read_text()
    (log.parent / "tiny_mean.py").write_text(
        text.replace("    return [\n        Claim", "    return 9 * [\n        Claim")
    )
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    write()
    page = (tmp_path / "docs" / "page" / "tiny-mean.md").read_text()
    assert "<summary>12 more claims</summary>" in page
    assert page.index("the mean is 0") < page.index("<details>")


def test_which_runs_count(log, write, tmp_path):
    assert "is no folder" in write(code=6)
    reproduce("tiny-mean", tmp_path / "runs" / "quick", quick=True)
    assert "holds no finished experiment in its full version" in write(code=6)
    assert not (tmp_path / "docs").exists()
    with dying("break"), pytest.raises(ZeroDivisionError):
        reproduce("tiny-mean", tmp_path / "runs" / "broken")
    for name, created in (("a", "2030-01-02"), ("b", "2030-01-01")):
        run, _ = reproduce("tiny-mean", tmp_path / "runs" / name)
        run.update(created=created)
    assert [Path(entry["run"]).name for entry in write()] == ["a"], "the newest"
    (tmp_path / "runs" / "a" / "claims.json").write_text("[]")
    assert "was altered or truncated" in write(code=5)


def test_pictures_keep_their_colours(log, write, tmp_path):
    """Thin lines of the palette on white and a photograph beside them: every colour of a line survives."""
    pixels = np.full((400, 2000, 3), 255, np.uint8)
    lines = [tuple(bytes.fromhex(colour[1:])) for colour in COLOURS]
    for k, colour in enumerate(lines):
        pixels[10 + 6 * k : 13 + 6 * k, :1000] = colour
    pixels[100:, :] = np.random.default_rng(0).integers(0, 256, (300, 2000, 3))
    run, _ = reproduce("tiny-mean", tmp_path / "runs" / "one")
    figure = run.figures / "tiny-mean.png"
    Image.fromarray(pixels).save(figure)
    run.seal()
    write()
    made = Image.open(tmp_path / "docs" / "images" / "g" / "tiny-mean.png")
    assert made.size == (1400, 280)
    seen = np.asarray(made.convert("RGB")).astype(int)
    rows = [round((11 + 6 * k) * 0.7) for k in range(len(lines))]
    shown = [tuple(seen[row, 300]) for row in rows]
    assert len(set(shown)) == len(lines), "different lines have different colours"
    figure.write_bytes(b"no picture")
    run.seal()
    assert "tiny-mean.png' cannot be read (cannot identify" in write(code=5)


def test_a_table_is_not_broken_by_what_it_holds(log, write, tmp_path):
    text, words = (log.parent / "tiny_mean.py").read_text(), '"there are three", len(found) == 3, "3 parts", "counted"'
    assert words in text
    (log.parent / "tiny_mean.py").write_text(text.replace(words, r'"|x| < *y*_z", False, "[a](b)", "a\nreason"'))
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    write(code=1)
    rows = (tmp_path / "docs" / "page" / "tiny-mean.md").read_text().splitlines()
    assert r"| \|x\| \< \*y\*\_z |  | true | \[a\](b) | a reason | **fails** |" in rows


def test_the_command(log, tmp_path, attnflow):
    reproduce("tiny-mean", tmp_path / "runs" / "one")
    command = "gallery", tmp_path / "runs", "--out", tmp_path / "g.md", "--images", tmp_path / "i"
    assert json.loads(attnflow(*command, "--json")[0])[0]["claims"] == 2
    assert (tmp_path / "i" / "tiny-mean.png").exists()
    with dying("wrong"):
        reproduce("tiny-mean", tmp_path / "runs" / "two")
    attnflow(*command, code=1)
    assert "1 of 2 claims fail" in (tmp_path / "g.md").read_text()
    assert "**fails**" in (tmp_path / "g" / "tiny-mean.md").read_text()
