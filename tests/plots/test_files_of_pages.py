"""Figures, reports and animations are written into their folder: links that somebody put there lead nowhere."""

import shutil

import pytest

import attnflow as af
from attnflow import plots
from attnflow.errors import RunCorrupted
from attnflow.experiments import reproduce, resume
from attnflow.experiments.report import draw_motion
from attnflow.runs import Run, execute, load_spec
from tests.cli.test_cli import attnflow
from tests.experiments.tiny import install

SPEC = """
name = "short"
field = { name = "attention", beta = 9.0 }
tokens = { name = "uniform", n = 6, seed = 0, space = { name = "sphere", dim = 3 } }
solve = { until = 1.0, save = { name = "evenly", count = 2 }, method = { name = "fixed", step = 0.25 } }
"""
SHORT = ("--seconds", "2", "--fps", "2", "--width", "300")


@pytest.fixture
def outside(tmp_path):
    """A file and a folder that nothing may touch; checked at the end."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_bytes(b"mine")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert (folder / "file").read_bytes() == b"mine"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A finished run without figures."""
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "short.toml").write_text(SPEC)
    return execute(load_spec(folder / "short.toml"), folder / "run")[0].path


@pytest.fixture
def run(drawn, tmp_path):
    """A copy of the run."""
    return shutil.copytree(drawn, tmp_path / "run")


@pytest.mark.long
def test_report_leaves_what_links_lead_to(run, outside):
    (run / "figures").mkdir(exist_ok=True)
    for name in ("report.html.tmp", "report.html", "figures/summary.png", "figures/snapshots.pdf"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(outside / "file")
    attnflow("report", "run", cwd=run.parent, check=0)
    assert (run / "report.html").read_text().startswith("<!doctype html>")
    for name in ("report.html", "figures/summary.png", "figures/snapshots.pdf"):
        assert not (run / name).is_symlink()
    assert (run / "figures/summary.png").read_bytes()[1:4] == b"PNG"


def test_a_linked_folder_of_figures_is_refused(run, outside):
    (run / "figures").symlink_to(outside)
    refused = attnflow("report", "run", cwd=run.parent)
    assert refused.returncode
    assert "is a link" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("kind", ["html", "gif"])
def test_animate_leaves_what_links_lead_to(kind, run, outside):
    for name in (f".a.partial.{kind}", f"a.{kind}"):
        (run.parent / name).symlink_to(outside / "file")
    attnflow("animate", "run", "--out", f"a.{kind}", *SHORT, cwd=run.parent, check=0)
    assert not (run.parent / f"a.{kind}").is_symlink()
    assert (run.parent / f"a.{kind}").stat().st_size > 1000


def test_the_film_of_an_experiment_leaves_what_links_lead_to(run, outside):
    (run / "figures").mkdir(exist_ok=True)
    (run / "figures" / "a.gif").symlink_to(outside / "file")
    flow = af.runs.open_run(run)
    draw_motion(Run(run), "a", plots.animate(flow, seconds=2.0, fps=2, width=300))
    assert (run / "figures" / "a.gif").read_bytes()[:3] == b"GIF"
    assert sorted(path.name for path in (run / "figures").iterdir() if path.suffix == ".gif") == ["a.gif"]


def test_an_experiment_leaves_what_links_lead_to(tmp_path, monkeypatch, outside):
    install(tmp_path / "gallery", monkeypatch)
    monkeypatch.setenv("TINY", "break")
    with pytest.raises(ZeroDivisionError):
        reproduce("tiny-mean", tmp_path / "run", quick=True)
    monkeypatch.delenv("TINY")
    for name in ("report.html", "report.html.tmp"):
        (tmp_path / "run" / name).symlink_to(outside / "file")
    (tmp_path / "run" / "figures").symlink_to(outside)
    with pytest.raises(RunCorrupted, match="is a link"):
        resume(tmp_path / "run")
    (tmp_path / "run" / "figures").unlink()
    run, _ = resume(tmp_path / "run")
    assert not run.report.is_symlink()
    assert (run.figures / "tiny-mean.pdf").read_bytes()[:4] == b"%PDF"


def test_a_figure_that_a_person_names_replaces_a_link(run, outside):
    (run.parent / "a.pdf").symlink_to(outside / "file")
    attnflow(
        "predict", "particles", "--beta", "9", "--d", "3", "--n", "64", "--figure", "a.pdf", cwd=run.parent, check=0
    )
    assert (run.parent / "a.pdf").read_bytes()[:4] == b"%PDF"
    assert not (run.parent / "a.pdf").is_symlink()
