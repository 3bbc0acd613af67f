"""An experiment in a file of the user's: the same folder, the same claims, and a file that is checked."""

import hashlib
import json
import signal

import pytest

import attnflow as af
from attnflow import experiments
from attnflow.errors import InvalidInput, RunCorrupted, RunError
from attnflow.experiments import look_up, read_claims, reproduce, resume
from attnflow.runs import Run
from tests.experiments.test_execute import results
from tests.experiments.tiny import BARE, SOURCE, dying


def everything(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file() and f.name != ".lock"}


def broken(mine, way="break"):
    """A study that died in its third part."""
    with dying(way), pytest.raises((ZeroDivisionError, KeyboardInterrupt)):
        reproduce(mine, "run", quick=True)
    return mine.parent / "run"


def test_a_file_leaves_the_folder_of_an_experiment(mine):
    run, claims = reproduce(mine, "run", quick=True)
    assert [claim.holds for claim in claims] == [True, True]
    manifest = run.manifest()
    assert manifest["status"] == "finished"
    assert manifest["experiment"] == manifest["name"] == "my-mean"
    digest = hashlib.sha256(SOURCE.encode()).hexdigest()
    assert manifest["plugins"] == [{"file": "my_mean.py", "path": str(mine), "sha256": digest}]
    assert (run.path / "plugin-my_mean.py").read_text() == SOURCE
    run.verify()
    page = run.report.read_text()
    assert "The mean of a few numbers is what it is." in page
    assert f"my_mean.py (SHA-256 {digest[:16]})" in page
    assert (run.path / "figures" / "my-mean.png").exists()
    assert "my-mean" not in experiments.names()


def test_names_texts_and_paths_are_told_apart(mine):
    assert look_up("my_mean.py").name == look_up(mine).name == look_up("./my_mean.py").name == "my-mean"
    (mine.parent / "two-clusters").write_text("")
    assert not look_up("two-clusters").plugins.loaded, "a name of the package is one, whatever lies in the folder"
    with pytest.raises(InvalidInput, match="there is no experiment 'my-mean'"):
        look_up("my-mean")
    (mine.parent / "notes").write_text("")
    with pytest.raises(InvalidInput, match="'notes' is no plugin; give a Python file"):
        look_up("notes")


def test_parameters_of_ones_own(mine):
    found = look_up(mine)
    run, claims = reproduce(found, "run", parameters=found.module().Parameters(size=50, shift=3.0))
    assert not claims[0].holds
    assert run.manifest()["summary"] == {"claims": 2, "failed": 1}
    with pytest.raises(InvalidInput, match="cannot be kept as TOML"):
        reproduce(found, "other", parameters=found.module().Parameters(levels=[1.0]))
    assert not (mine.parent / "other").exists()


def test_resuming_needs_the_file(mine):
    whole, _ = reproduce(mine, "whole", quick=True)
    path = broken(mine)
    before = everything(path)
    with pytest.raises(RunError, match=r"made with the file 'my_mean.py', which is not given.*--plugin .*my_mean\.py"):
        resume(path)
    assert everything(path) == before
    (mine.parent / "log.txt").write_text("")
    run, _ = resume(path, plugins=[mine])
    assert (mine.parent / "log.txt").read_text() == "c", "parts that were there are not made again"
    assert results(run.path) == results(whole.path)
    run.verify()


def test_a_changed_file_is_refused(mine):
    path = broken(mine)
    before = everything(path)
    mine.write_text("raise AssertionError('never executed')\n")
    with pytest.raises(RunError, match="is not the file that"):
        resume(path, plugins=[mine])
    other = mine.parent / "other.py"
    other.write_text(SOURCE)
    assert everything(path) == before
    run, _ = resume(path, plugins=[other])  # the content counts, not what the file is called
    assert run.manifest()["experiment"] == "my-mean"
    assert (run.path / "figures" / "my-mean.png").exists()


@pytest.mark.parametrize("way", ["swallow", "stumble"])
def test_ctrl_c_is_heard_as_ever(way, mine):
    handler = signal.getsignal(signal.SIGINT)
    path = broken(mine, way)
    assert signal.getsignal(signal.SIGINT) is handler
    assert Run.open(path).manifest()["status"] == "interrupted"
    assert not (path / "parts" / "c.npz").exists()
    run, _ = resume(path, plugins=[mine])
    assert run.manifest()["status"] == "finished"


def test_a_finished_folder_opens_without_the_file(mine, attnflow):
    run, claims = reproduce(mine, "runs/one", quick=True)
    mine.unlink()
    assert resume(run.path)[1] == claims
    assert read_claims(Run.open(run.path)) == claims
    _, errors = attnflow("gallery", "runs", code=6)
    assert "'runs' holds no finished experiment in its full version" in errors, "the gallery shows the package's own"


def test_a_gallery_run_takes_no_plugin(mine, tmp_path):
    (tmp_path / "run").mkdir()
    facts = BARE | {"status": "failed", "experiment": "two-clusters", "name": "two-clusters", "quick": True}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(facts))
    with pytest.raises(RunError, match=r"made without the file .*my_mean.py'; leave it out"):
        resume(tmp_path / "run", plugins=[mine])


def test_settings_are_still_checked(mine):
    path = broken(mine)
    text = (path / "spec.toml").read_text()
    (path / "spec.toml").write_text(text.replace("size = 100", "size = 99"))
    with pytest.raises(RunCorrupted, match="changed after the run began"):
        resume(path, plugins=[mine])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (SOURCE, "def f(:\n", r"cannot be loaded \(line 1: SyntaxError"),
        ("import dataclasses", "import dataclasses\nimport nothing_like_it", r"ModuleNotFoundError: No module named"),
        (SOURCE[: SOURCE.index("import dataclasses")], "", r"has no docstring; begin it with one"),
        ("PAPERS =", "OTHERS =", r"has no `PAPERS`; define a tuple of references"),
        ('PAPERS = ("geshkovski2025perspective",)', "PAPERS = 3", r"`PAPERS` of .* is 3; give a tuple"),
        ("class Parameters:", "class Other:", r"cannot be loaded \(line \d+: NameError"),
        ("QUICK = Parameters(size=100)", "", r"has no `QUICK`; define the Parameters of the small version"),
        ("QUICK = Parameters(size=100)", "QUICK = 3", r"`QUICK` of .* is 3; give the Parameters of the small version"),
        ("def run(", "def go(", r"has no `run`; define run\(parameters, study\)"),
        ("def claims(", "def statements(", r"has no `claims`; define claims\(parameters, data\)"),
        ("def draw(", "def picture(", r"has no `draw`; define draw\(parameters, data\)"),
        ("    size: int = 1000", "    size: int", r"`Parameters\(\)` of .* fails \(TypeError"),
        ("seed: int = 3", "seed: object = None", r"cannot be kept as TOML; use numbers, texts"),
    ],
)
def test_bad_files_are_one_sentence_before_any_folder(mine, old, new, words):
    assert old in SOURCE
    mine.write_text(SOURCE.replace(old, new, 1))
    with pytest.raises(InvalidInput, match=words) as told:
        reproduce(mine, "run", quick=True)
    assert "\n" not in str(told.value)
    assert not (mine.parent / "run").exists()


def test_other_things_that_are_no_experiment(mine):
    with pytest.raises(InvalidInput, match=r"cannot read 'nowhere.py' \(No such file"):
        reproduce("nowhere.py", "run")
    mine.write_text(SOURCE.replace("@dataclasses.dataclass(frozen=True)\n", "").replace("Parameters(size=100)", "3"))
    with pytest.raises(InvalidInput, match=r"`Parameters` of .* is <class .*; make it a frozen dataclass"):
        reproduce(mine, "run")
    mine.write_text(SOURCE + "\nclaims = 3\n")
    with pytest.raises(InvalidInput, match=r"`claims` of .* is 3; define claims"):
        reproduce(mine, "run")
    mine.rename(mine.with_name("two_clusters.py"))
    with pytest.raises(InvalidInput, match="called like the experiment 'two-clusters' of the package; rename"):
        reproduce(mine.with_name("two_clusters.py"), "run")
    assert not (mine.parent / "run").exists()


def test_words_of_the_file_are_known_inside_its_study(mine):
    """An experiment may register a field and read specifications that use it."""
    extra = "import attnflow as af\n\n\naf.register('mask', 'neighbours')(lambda reach=1: af.Window(reach + 1))\n"
    look = "    from attnflow.runs.plugins import words\n    assert 'neighbours' in words('mask')\n    way ="
    mine.write_text(SOURCE.replace("PAPERS =", f"{extra}PAPERS =").replace("    way =", look))
    _, claims = reproduce(mine, "run", quick=True)
    assert all(claim.holds for claim in claims)


def test_the_public_names():
    assert af.experiments.Study is experiments.Study
    assert af.experiments.Claim is experiments.Claim
