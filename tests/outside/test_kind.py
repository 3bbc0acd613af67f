"""A kind of run from one file (`tests/outside/kind.py`): everything that a kind of the package can do."""

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, RunError
from attnflow.flows import Drive
from attnflow.runs import Run, ensure, execute, extend, load_spec, open_run, parse_spec, resume
from tests.runs.kinds import arrays, carried_out, same

FILE = Path(__file__).parent / "kind.py"
SPEC = """
[tokens]
name = "uniform"
n = 8
seed = 3
space = { name = "sphere", dim = 3 }
[gossip]
meetings = 24
share = 0.9
observe = { wide = { name = "widest" }, order = { name = "order-parameter" } }
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "gossip.toml").write_text(SPEC)
    return load_spec(tmp_path / "gossip.toml", plugins=[FILE])


def attnflow(*arguments, cwd, **more):
    command = [sys.executable, "-m", "attnflow", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=os.environ | more, check=False)


def test_its_fields_are_the_keys_and_its_result_is_the_same_from_memory_and_from_a_folder(spec, tmp_path):
    assert spec.table["gossip"]["every"] == 4
    assert spec.table["gossip"]["share"] == 0.9
    run, talk = execute(spec, tmp_path / "run")
    same(talk.dataset, carried_out(spec.work).dataset)
    same(open_run(run.path, plugins=[FILE]).dataset, talk.dataset)
    assert talk.dataset.sizes["time"] == 7
    x = np.asarray(spec.work.tokens.positions)  # the start, in plain NumPy
    np.testing.assert_allclose(talk.dataset["wide"][0], 1 - (x @ x.T).min(), rtol=1e-14)
    np.testing.assert_allclose(talk.dataset["order"][0], np.linalg.norm(x.mean(axis=0)), rtol=1e-14)
    with pytest.raises(RunError, match=r"'kind\.py', which is not given"):
        resume(run.path)


def test_it_goes_on_bit_for_bit(spec, tmp_path):
    longer = load_spec(tmp_path / "gossip.toml", ["gossip.meetings=40"], plugins=[FILE])
    whole = carried_out(longer.work)
    same(carried_out(spec.work).continued(40).dataset, whole.dataset)
    run, _ = execute(spec, tmp_path / "run")
    extend(run.path, 40, plugins=[FILE])
    same(arrays(run.path), whole.dataset)
    with pytest.raises(InvalidInput, match="`meetings` is 30, but the work goes to 40 already"):
        extend(run.path, 30, plugins=[FILE])


@pytest.mark.slow
def test_the_command_line_executes_reports_resumes_after_a_kill_and_extends_it(spec, tmp_path):
    done = attnflow("run", "gossip.toml", "--plugin", FILE, "--out", "whole", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "spread" in done.stdout
    report = (tmp_path / "whole" / "report.html").read_text()
    assert "The largest distance from the mean." in report
    command = [sys.executable, "-m", "attnflow", "run", "gossip.toml", "--plugin", str(FILE), "--out", "cut"]
    slow = os.environ | {"GOSSIP_SLEEP": "0.3"}
    child = subprocess.Popen(command, cwd=tmp_path, env=slow, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (tmp_path / "cut" / "checkpoint").exists() and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert Run.open(tmp_path / "cut").facts()["status"] == "interrupted"
    assert attnflow("resume", "cut", "--plugin", FILE, cwd=tmp_path).returncode == 0
    same(arrays(tmp_path / "cut"), arrays(tmp_path / "whole"))
    assert attnflow("extend", "cut", "--until", "40", "--plugin", FILE, cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "cut" / "manifest.json").read_text())["steps"] == {"meetings": 40}


@pytest.mark.long
def test_work_and_specifications_travel_with_the_text_of_the_file(spec, tmp_path):
    for value in (spec, spec.work, spec.work.checked()):
        content = pickle.dumps(value)
        assert b"def checked" in content, "the text travels"
        (tmp_path / "sent.pickle").write_bytes(content)
        code = """
import pickle, sys
from attnflow.flows import Drive
found = pickle.load(open("sent.pickle", "rb"))
work = getattr(found, "work", found)
print(repr(float(Drive(work.checked()).run().dataset["spread"][-1])))
"""
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) == float(carried_out(spec.work).dataset["spread"][-1])


def test_ensure_opens_resumes_or_executes(spec, tmp_path):
    calls = []

    def counted(progress):
        calls.append(progress)
        if len(calls) == 3:
            raise KeyboardInterrupt

    run, part = ensure(spec, tmp_path / "root", on_progress=counted)
    assert part.outcome.ending.value == "interrupted"
    assert run.path.name == spec.hash[:16]
    for _ in range(2):
        again, whole = ensure(spec, tmp_path / "root", on_progress=calls.append)
        assert again.path == run.path
        same(whole.dataset, carried_out(spec.work).dataset)
    assert len(calls) == 7, "rows that are there are not made again"


TEXT = FILE.read_text()


def plugin(tmp_path, old, new):
    assert old in TEXT
    path = tmp_path / "changed.py"
    path.write_text(TEXT.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('@af.register("kind", "gossip")', '@af.register("kind", "solve")', "has the kind 'solve' already"),
        ("frozen=True)\nclass Gossip", "eq=True)\nclass Gossip", "is not frozen"),
        ("(AbstractWork)", "", "derives from AbstractWork"),
        ("    def result(self, driven):", "    def finished(self, driven):", "has no result"),
        ("    share: float = 1.0", "    name: float = 1.0", "has a field 'name'"),
        ('"meetings"\n\n', '"until"\n\n', "ends at 'until', which is none of its fields"),
    ],
)
def test_what_cannot_be_a_kind_is_refused_when_the_file_is_loaded(tmp_path, old, new, words):
    with pytest.raises(InvalidInput, match=words):
        parse_spec(SPEC, plugins=[plugin(tmp_path, old, new)])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "        return Talk(driven.dataset, driven.outcome",
            "        where = driven.dataset.assign(memory=driven.checkpoint is not None)\n"
            "        return Talk(where, driven.outcome",
            "another result from its folder than from memory",
        ),
        ("        return Talk(", "        return dict(dataset=(", "must return an AbstractResult"),
    ],
)
def test_a_result_that_a_folder_does_not_give_is_refused(tmp_path, old, new, words):
    changed = plugin(tmp_path, old, new)
    if "dict(" in new:
        changed.write_text(changed.read_text().replace("driven.checkpoint, self)", "driven.checkpoint, self))"))
    (tmp_path / "gossip.toml").write_text(SPEC)
    with pytest.raises(InvalidInput, match=words):
        execute(load_spec(tmp_path / "gossip.toml", plugins=[changed]), tmp_path / "run")
    assert Run.open(tmp_path / "run").manifest()["status"] == "failed"


def test_work_that_cannot_travel_is_refused_before_it_begins(spec, tmp_path):
    tokens = af.uniform(af.Sphere(3), n=8, seed=3)
    with pytest.raises(InvalidInput, match="the field 'observe' of this work cannot be sent"):
        pickle.dumps(type(spec.work)(tokens, 8, observe={"a": lambda t, mu: mu.positions[0, 0]}))
    bad = plugin(tmp_path, "def moved(x, mu)", "del Gossip\n\n\ndef moved(x, mu)")  # not found by its name any more
    with pytest.raises(InvalidInput, match="the class Gossip of this work cannot be sent to another process"):
        execute(load_spec(tmp_path / "gossip.toml", plugins=[bad]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_builds_checks_and_makes_its_stepper_once(tmp_path, monkeypatch):
    (tmp_path / "gossip.toml").write_text(SPEC)
    counted = dict.fromkeys(("checked", "stepper"), 0)
    spec = load_spec(tmp_path / "gossip.toml", plugins=[FILE])
    kind = type(spec.work)
    made = []
    for name in counted:
        original = getattr(kind, name)

        def wrapped(self, name=name, original=original):
            counted[name] += 1
            made.append(self)
            return original(self)

        monkeypatch.setattr(kind, name, wrapped)
    execute(spec, tmp_path / "run")
    assert counted == {"checked": 1, "stepper": 1}
    assert made[0] is spec.work, "the work of the specification is not built again"


def test_the_generic_report_draws_the_rows(spec, tmp_path):
    talk = dataclasses.replace(carried_out(spec.work), work=None)
    account = talk.account()
    assert account.summary["spread_at_end"] == pytest.approx(float(talk.dataset["spread"][-1]))
    assert len(account.figures["rows"].axes) == 3  # spread and two observables
    assert Drive(spec.work.checked()).layout.most == {"time": 7}
