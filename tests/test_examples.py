"""Every script in examples/ runs, at a small size.

The convention: a script looks at the environment variable ATTNFLOW_SMALL, which makes it a matter of seconds; it has at
most 25 lines of code after its docstring (50 where a class is written), uses public names only, and saves its figure
into the current folder, under its own name. The site shows it as a tutorial (site/tutorials.py). All scripts run in this process, so that programs are compiled once.
"""

import contextlib
import re
import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.faults import environment
from tests.marks import graded

SCRIPTS = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_scripts():
    assert {"consensus_time", "first_merge", "own_experiment"} <= {script.stem for script in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_is_short_and_public(script):
    text = script.read_text()
    code = text.split('"""', 2)[2].strip().splitlines()
    defines = "class " in text
    assert sum(bool(line.strip()) and not line.startswith("#") for line in code) <= (50 if defines else 25)
    assert not re.search(r"\._[a-z]|import _", text)
    assert re.search(r"^import attnflow|^from attnflow import", text, re.MULTILINE)


@graded("script", SCRIPTS, ids=lambda script: script.stem, slow=1)
def test_a_script_runs_and_saves_its_figure(script, tmp_path):
    with contextlib.chdir(tmp_path), environment(ATTNFLOW_SMALL="1"), mpl.rc_context({"backend": "agg"}):
        runpy.run_path(str(script), run_name="__main__")
        mpl.pyplot.close("all")
    written = list(tmp_path.glob(f"{script.stem}.*"))
    assert len(written) == int(f"{script.stem}.png" in script.read_text())
    assert all(path.stat().st_size > 1000 for path in written)
