"""`attnflow reproduce` and its company on a tiny experiment; interruption in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

from tests.experiments.tiny import SOURCE, command, install


@pytest.fixture(autouse=True)
def log(tmp_path, monkeypatch):
    return install(tmp_path / "gallery", monkeypatch)


def add(log, name, old="", new=""):
    """A second experiment beside the tiny one."""
    (log.parent / f"{name}.py").write_text(SOURCE.replace(old, new) if old else SOURCE)


def test_claims_are_printed_and_the_folder_is_an_ordinary_run(attnflow):
    out, _ = attnflow("reproduce", "tiny-mean", "--quick", "--out", "runs/one")
    for words in ("the mean is 0", "predicted", "off by", "holds", "all 2 hold", "report"):
        assert words in out
    assert "fails" not in out
    shown, _ = attnflow("show", "runs/one")
    assert "the mean is 0" in shown
    manifest = json.loads(attnflow("show", "runs/one", "--json")[0])
    assert manifest["experiment"] == "tiny-mean"
    assert [claim["holds"] for claim in manifest["claims"]] == [True, True]
    assert "finished" in attnflow("list")[0]
    out, err = attnflow("resume", "runs/one")
    assert "finished already" in err
    assert "the mean is 0" in out
    attnflow("reproduce", "tiny-mean", "--out", "runs/one", code=4)


@pytest.mark.slow
def test_a_claim_that_fails_is_exit_code_one(attnflow):
    out, _ = attnflow("reproduce", "tiny-mean", "--quick", code=1, TINY="wrong")
    assert "fails" in out
    assert "1 of 2 fail" in out
    found = json.loads(attnflow("list", "--json")[0])
    assert found[0]["run"].startswith("runs/tiny-mean-2")
    assert found[0]["status"] == "finished"
    again = ["tiny-mean", "--quick", "--json", "--out", "runs/b"]
    rows = json.loads(attnflow("reproduce", *again, code=1, TINY="wrong")[0])
    assert rows[0]["run"] == "runs/b"
    assert [claim["holds"] for claim in rows[0]["claims"]] == [False, True]


@pytest.mark.slow
def test_all_goes_on_after_failures(attnflow, log):
    add(log, "a_bad_mean", "worst + wrong", "worst + 10")
    add(log, "broken_mean", "def make(index, name):", "def make(index, name):\n        raise RuntimeError('lost')")
    out, err = attnflow("reproduce", "--all", "--quick", "--out", "every", code=1)
    assert "RuntimeError: lost" in err
    assert "1 of 3 experiments hold (3 of 4 claims); a claim fails in a-bad-mean" in out
    assert "could not be carried out: broken-mean." in out
    status = {run["name"]: run["status"] for run in json.loads(attnflow("list", "--root", "every", "--json")[0])}
    assert status == {"a-bad-mean": "finished", "broken-mean": "failed", "tiny-mean": "finished"}
    (log.parent / "broken_mean.py").unlink()
    # folders that exist are errors of their own, each named, and no reason to stop
    rows, err = attnflow("reproduce", "a-bad-mean", "tiny-mean", "--quick", "--json", "--out", "every", code=4)
    assert [row["status"] for row in json.loads(rows)] == ["failed", "failed"]
    assert err.count("exists already") == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tiny-maen"], "did you mean 'tiny-mean'"),
        (["tiny-mean", "nothing-like-it"], "known are tiny-mean"),
        ([], "needs names of experiments or --all"),
        (["tiny-mean", "--all"], "not both"),
    ],
)
def test_wrong_arguments(attnflow, log, tmp_path, arguments, words):
    _, err = attnflow("reproduce", *arguments, code=2)
    assert words in err
    assert log.read_text() == ""
    assert not (tmp_path / "runs").exists()


def test_the_list_of_experiments(attnflow):
    out, _ = attnflow("experiments")
    assert "tiny-mean  The mean of a few numbers is what it is. (arXiv:2312.10794)" in out
    assert json.loads(attnflow("experiments", "--json")[0]) == [
        {
            "name": "tiny-mean",
            "statement": "The mean of a few numbers is what it is.",
            "papers": ["geshkovski2025perspective"],
        }
    ]
    for name in ("reproduce", "experiments"):
        assert "Example:" in attnflow(name, "--help")[0]
    assert "1 a claim fails" in " ".join(attnflow("--help")[0].split())


@pytest.mark.long
def test_ctrl_c_says_how_to_resume(attnflow, log, tmp_path):
    add(log, "zeroth_mean")
    code = command(log.parent, "from attnflow.cli import main; main()")
    done = subprocess.run(
        [sys.executable, "-c", code, "reproduce", "tiny-mean", "zeroth-mean", "--quick", "--out", "both"],
        cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"TINY": "swallow", "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "attnflow resume both/tiny-mean\n" in done.stderr
    assert "not begun: zeroth-mean" in done.stderr
    assert log.read_text() == "abc"
    shown, _ = attnflow("show", "both/tiny-mean")
    assert "interrupted" in shown
    assert "attnflow resume both/tiny-mean" in shown
    out, _ = attnflow("resume", "both/tiny-mean")
    assert "all 2 hold" in out
    assert log.read_text() == "abcc"


def test_resuming_tells_of_claims_that_fail(attnflow):
    with pytest.raises(ZeroDivisionError):
        attnflow("reproduce", "tiny-mean", "--quick", "--out", "runs/one", TINY="break")
    assert "ZeroDivisionError: broken" in attnflow("show", "runs/one")[0]
    (facts,) = json.loads(attnflow("resume", "runs/one", "--json", code=1, TINY="wrong")[0])
    assert facts["summary"] == {"claims": 2, "failed": 1}


@pytest.mark.long
def test_experiments_in_processes_of_their_own(attnflow, log, tmp_path):
    """Two files at a time, one of whose claims fails; the summary counts both."""
    (tmp_path / "good_mean.py").write_text(SOURCE)
    (tmp_path / "bad_mean.py").write_text(SOURCE.replace("worst + wrong", "worst + 10"))
    out, _ = attnflow("reproduce", "good_mean.py", "bad_mean.py", "--jobs", "2", "--quick", "--out", "both", code=1)
    assert "1 of 2 experiments hold (3 of 4 claims); a claim fails in bad-mean" in " ".join(out.split())
    assert "CPU time" in out
    assert json.loads((tmp_path / "both" / "good-mean" / "manifest.json").read_text())["status"] == "finished"


@pytest.mark.slow
def test_a_salt(attnflow, log):
    (log.parent / "tiny_mean.py").write_text(
        SOURCE.replace("from attnflow.experiments import Claim", "from attnflow.experiments import Claim, Salted")
        .replace("class Parameters:", "class Parameters(Salted):")
        .replace("np.random.default_rng([parameters.seed, index])", "parameters.rng(parameters.seed, index)")
        .replace("seed: int = 3", "seed: int = 3")
    )
    drawn = []
    for salt in ("0", "7", "7"):
        attnflow("reproduce", "tiny-mean", "--salt", salt, "--out", f"runs/{len(drawn)}")
        drawn.append(json.loads((log.parents[1] / f"runs/{len(drawn)}/claims.json").read_text())[0]["measured"])
    assert drawn[0] != drawn[1] == drawn[2]
    assert json.loads(attnflow("show", "runs/1", "--json")[0])["salt"] == 7
    (log.parent / "zeroth_mean.py").write_text(SOURCE)  # draws no random numbers that a salt changes
    out, err = attnflow("reproduce", "--all", "--salt", "7", "--quick", "--out", "runs/all")
    assert "left out, as they draw no random numbers: zeroth-mean." in err
    assert "1 of 1 experiments hold" in out


def test_a_salt_that_nothing_uses_is_refused(attnflow):
    _, err = attnflow("reproduce", "tiny-mean", "--salt", "7", code=2)
    assert "derive from attnflow.experiments.Salted" in err
