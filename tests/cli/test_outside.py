"""`--plugin` and `reproduce ./mine.py` on the command line: what is said, with which exit code, and what is left alone."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attnflow.experiments import look_up
from attnflow.runs import execute, load_spec, spec_of
from tests.experiments.tiny import SOURCE
from tests.faults import environment
from tests.runs.failing import stopping_after

PAGE = Path(__file__).parent.parent.parent / "docs" / "extending.md"
FILES = dict(re.findall(r"```(?:python|toml)\n(?=# (\S+)\n)(.*?)```", PAGE.read_text(), flags=re.S))
"""The files of the page: name -> text."""


@pytest.fixture(autouse=True)
def here(tmp_path):
    """A working folder with the files of the page and an experiment that can die."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "mine.py").write_text(SOURCE)
    with contextlib.chdir(tmp_path), environment(TINY_LOG=str(tmp_path / "log.txt"), TINY=None):
        yield tmp_path


def everything(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file() and f.name != ".lock"}


def begun(here):
    """A run of wind.toml that died after its first chunk."""
    with stopping_after(1, KeyboardInterrupt):
        execute(load_spec("wind.toml", plugins=["wind.py"]), "runs/wind")
    return here / "runs" / "wind"


def test_the_files_of_the_page_keep_the_contract(here):
    assert set(FILES) == {"wind.py", "wind.toml", "follow_the_leader.py"}
    found = look_up("follow_the_leader.py")
    assert found.statement == "With a causal mask the first token rests and the second one follows it."
    assert found.papers == ("arXiv:2411.04990",)
    spec = load_spec("wind.toml", plugins=["wind.py"])
    made = spec.work
    made.field.check(made.tokens)
    assert list(made.observe) == ["height", "order"]


@pytest.mark.slow
def test_a_run_with_a_plugin(attnflow, here, faults):
    _, err = attnflow("run", "wind.toml", code=2)
    assert "`field.parts[0].mask.name` is 'neighbours' (if it comes from a plugin, give --plugin FILE)" in err
    assert not (here / "runs").exists()
    path = begun(here)
    before = everything(path)
    _, err = attnflow("resume", "runs/wind", code=6)
    assert "made with the file 'wind.py', which is not given" in err
    assert "attnflow resume runs/wind --plugin wind.py" in err
    (here / "wind.py").rename(here / "aside.py")
    assert "interrupted" in attnflow("list")[0]
    assert "interrupted" in attnflow("show", "runs/wind")[0]
    assert json.loads(attnflow("show", "runs/wind", "--json")[0])["plugins"][0]["file"] == "wind.py"
    _, err = attnflow("resume", "runs/wind", "--plugin", "wind.py", code=2)
    assert "cannot read 'wind.py' (No such file or directory)" in err
    (here / "wind.py").write_text(FILES["wind.py"] + "\n# later\n")
    _, err = attnflow("resume", "runs/wind", "--plugin", "wind.py", code=6)
    assert "'wind.py' is not the file that 'runs/wind' was made with" in err
    assert everything(path) == before
    drawn = []
    faults.replace(
        "draw a run with its report", lambda run, flow, on_figure=None: drawn.append(spec_of(run).name) or {}
    )
    attnflow("resume", "runs/wind", "--plugin", "aside.py")
    assert drawn == ["wind"]
    (here / "aside.py").unlink()
    assert "finished" in attnflow("show", "runs/wind")[0]
    assert "finished already" in attnflow("resume", "runs/wind")[1]


def test_bad_plugins_are_one_sentence(attnflow, here):
    (here / "bad.py").write_text("import attnflow as af\naf.register('mask', 'neighbours')(af.Causal)\n1 / 0\n")
    _, err = attnflow("run", "wind.toml", "--plugin", "wind.py", "--plugin", "bad.py", "--out", "run", code=2)
    assert "error: 'bad.py' cannot be loaded (line 3: ZeroDivisionError: division by zero); correct the file" in err
    (here / "bad.py").write_text("import attnflow as af\naf.register('mask', 'neighbours')(af.Causal)\n")
    _, err = attnflow("run", "wind.toml", "--plugin", "wind.py", "--plugin", "bad.py", "--out", "run", code=2)
    assert "'wind.py' and 'bad.py' both register the mask 'neighbours'" in err
    assert not (here / "run").exists()
    for command in ("run", "resume"):
        assert "--plugin" in attnflow(command, "--help")[0]


def test_an_experiment_of_a_file(attnflow, here):
    out, _ = attnflow("reproduce", "./mine.py", "--quick", "--out", "runs/one")
    assert "mine, quick version: claims" in out
    assert "all 2 hold" in out
    (here / "mine.py").unlink()
    assert "the mean is 0" in attnflow("show", "runs/one")[0]
    assert "finished" in attnflow("list")[0]
    assert "finished already" in attnflow("resume", "runs/one")[1]
    _, err = attnflow("reproduce", "./mine.py", "--out", "runs/two", code=2)
    assert "cannot read 'mine.py' (No such file or directory)" in err
    (here / "mine.py").write_text(SOURCE.replace("def claims", "def statements"))
    _, err = attnflow("reproduce", "two-clusters", "./mine.py", "--quick", "--out", "runs/two", code=2)
    assert "'mine.py' has no `claims`; define claims(parameters, data)" in err
    assert not (here / "runs" / "two").exists(), "a bad file is refused before any work"


def test_the_default_folder_is_named_after_the_file(attnflow, here):
    attnflow("reproduce", "mine.py", "--quick", code=1, TINY="wrong")
    (run,) = json.loads(attnflow("list", "--json")[0])
    assert run["run"].startswith("runs/mine-2")


@pytest.mark.long
def test_ctrl_c_says_how_to_resume_with_the_file(attnflow, here):
    done = subprocess.run(
        [sys.executable, "-c", "from attnflow.cli import main; main()", "reproduce", "./mine.py", "--quick", "--out", "run"],
        cwd=here, capture_output=True, text=True,
        env=os.environ | {"TINY": "swallow", "XDG_CACHE_HOME": str(here / "cache")},
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "Continue with: attnflow resume run --plugin mine.py\n" in done.stderr
    shown, _ = attnflow("show", "run")
    assert "interrupted" in shown
    assert "attnflow resume run --plugin mine.py" in shown
    _, err = attnflow("resume", "run", code=6)
    assert "made with the file 'mine.py', which is not given" in err
    out, _ = attnflow("resume", "run", "--plugin", "./mine.py")
    assert "all 2 hold" in out
    assert (here / "log.txt").read_text() == "abcc"


@pytest.mark.long
def test_the_files_of_the_page_run(here):
    """As a reader would type it: processes of their own."""

    def command(*arguments):
        done = subprocess.run(
            [sys.executable, "-c", "from attnflow.cli import main; main()", *arguments],
            cwd=here, capture_output=True, text=True, env=os.environ | {"XDG_CACHE_HOME": str(here / "cache")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    text = command("reproduce", "./follow_the_leader.py", "--quick", "--out", "runs/first")
    assert "all 3 hold" in text
    assert "all 3 hold" in command("reproduce", "./follow_the_leader.py", "--out", "runs/full")
    command("run", "wind.toml", "--plugin", "wind.py", "--out", "runs/wind")
    assert (here / "runs" / "wind" / "report.html").is_file()
    (lines,) = [b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S) if not b.startswith("# ")]
    subprocess.run([sys.executable, "-c", lines], cwd=here, check=True)
    assert (here / "runs" / "breeze" / "spec.toml").is_file()
