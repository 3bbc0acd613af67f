"""Odd environments: narrow terminals, encodings, devices that are not there, caches, Ctrl-C at any time."""

import io
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

import attnflow as af
from attnflow import cli
from attnflow.cli import console, progress
from attnflow.compilations import cache_compilations
from attnflow.errors import InvalidInput, RunError, RunExists, TooLarge
from attnflow.flows import Progress, Reached
from attnflow.flows.outcome import Pace
from tests.faults import environment
from tests.marks import graded

FIELD, TOKENS = af.Attention(2.0), af.uniform(af.Sphere(3), n=4)
INTERRUPTED_AT = """
import os, signal, sys
from attnflow.cli import main

class Finder:
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
main()
"""


def process(code, *arguments, **environment):
    """A process of its own: what the variables of an environment change, they change before anything is imported."""
    environ = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, env=environ | environment)


@graded(("name", "arguments"), [("typer", ["list"]), ("jax.numpy", ["run", "metastability"])], fast=1)
def test_ctrl_c_while_modules_are_imported(name, arguments):
    done = process(INTERRUPTED_AT.format(name=name), *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"interrupted.\n")


@pytest.mark.slow
def test_a_terminal_without_unicode_and_without_a_width():
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "0"}
    line = ["predict", "particles", "--beta", "9", "--d", "3", "--n", "64"]
    done = process("from attnflow.cli import main; main()", *line, **plain)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode("ascii").splitlines()
    assert len(lines) > 20
    assert any("growth rates" in line for line in lines)


def test_characters_that_cannot_be_shown_are_spelled(faults):
    spelled = {"β": "beta", "ü": "u", "–": "-", "−": "-", "·": "*", "⁵": "?", "ᵈ": "?", "∞": "?", "\u00a0": " "}
    assert {one: cli.spelled(one) for one in spelled} == spelled
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    before = faults.replace("standard output", stream)
    cli.show_what_can_be_shown()
    faults.replace("standard output", before)
    stream.write("β = ü")
    stream.flush()
    assert stream.buffer.getvalue() == "beta = ü".encode("latin-1")


def test_errors_that_are_no_refusals_become_sentences():
    refusals = {
        "cannot use 'a' (No space left on device)": OSError(28, "No space left on device", "a"),
        "the memory of this machine": MemoryError(),
        "kept": RunExists("kept"),
    }
    with environment(JAX_PLATFORMS="cpu"):
        assert all(words in str(console.refusal(error)) for words, error in refusals.items())
        assert console.refusal(RuntimeError("anything else")) is None


def test_a_device_that_is_not_there(tmp_path):
    line = ["run", "metastability", "--out", str(tmp_path / "run")]
    done = process("from attnflow.cli import main; main()", *line, JAX_PLATFORMS="cuda", COLUMNS="200")
    said = done.stderr.decode().splitlines()[-1]
    assert said.startswith("error: the environment has JAX_PLATFORMS='cuda', and JAX finds no such device here;")
    assert done.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("variable", ["JAX_COMPILATION_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_cache_that_cannot_be_written_is_one_sentence(variable, tmp_path, faults):
    (tmp_path / "file").touch()
    changed, stream = {}, io.StringIO()
    faults.replace("change a setting of JAX", changed.__setitem__)
    faults.replace("messages of commands", Console(file=stream, width=80))
    folders = {"JAX_COMPILATION_CACHE_DIR": None, variable: str(tmp_path / "file" / "x")}
    with environment(EQX_ON_ERROR="nan", **folders):
        with pytest.raises(RunError, match=r"compiled programs are not kept, because '.*file/x.* cannot be written to"):
            cache_compilations()
        console.use_compilation_cache()
    assert changed == {"jax_compilation_cache_dir": None}
    assert stream.getvalue().startswith("note: compiled programs are not kept")


def test_work_takes_ctrl_c_and_the_rest_of_a_command_does_not():
    before = signal.signal(signal.SIGINT, cli.leave_at_once)
    try:
        with pytest.raises(KeyboardInterrupt), console.stoppable():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is cli.leave_at_once
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup leaves it
        with console.stoppable():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def bar(figures):
    """A bar with what it shows."""
    made = progress.Bar(Console(file=io.StringIO()), "mine", figures=figures)
    return made, made.bar.tasks[0]


def test_the_clock_of_a_bar_goes_on_while_figures_are_drawn():
    made, task = bar(figures=True)
    made.update(Progress(2.0, 2.0, 2, 2, 7, 1.0, 7.0, 0.0))
    assert task.completed == progress.FLOW
    for done, words in enumerate(("figure 1 of 2", "figure 2 of 2", "report")):
        made.figure(done, 2)
        assert task.fields["where"] == words
        assert not task.finished  # Rich stops the clock of what is finished
    made.at("all of an experiment", 1.0)
    assert not task.finished
    with made:
        pass
    assert task.finished


@pytest.mark.parametrize(
    ("rate", "words"),
    [(0.0, "first step"), (0.02, "50 s a step"), (0.5, "2 s a step"), (3.0, "3 steps/s"), (4321.0, "4,321 steps/s")],
)
def test_a_bar_tells_no_rate_that_says_nothing(rate, words):
    made, task = bar(figures=False)
    made.update(Progress(1.0, 2.0, 1, 2, 7, 1.0, rate, 60.0))
    assert task.fields["where"] == f"t = 1 of 2 · {words}"


@pytest.mark.parametrize(
    ("remaining", "words"),
    [
        (float("nan"), ""),
        (float("inf"), "more than 116 days left"),
        (1e300, "more than 116 days left"),
        (60.0, "about 60 s left, then figures"),
    ],
)
def test_how_long_it_takes_is_said_in_few_digits(remaining, words):
    made, task = bar(figures=True)
    made.update(Progress(1.0, 2.0, 1, 2, 7, 1.0, 7.0, remaining))
    assert task.fields["left"] == words


def test_the_first_slice_gives_an_estimate_and_later_ones_forget_it(faults):
    now = SimpleNamespace(perf_counter=lambda: now.time, time=100.0)
    faults.replace("clock of progress", now)
    pace = Pace(10.0, 5, Reached(2.0, 1, 0))  # a run that goes on from t = 2
    found = []
    for seconds, t in ((20.0, 4.0), (21.0, 5.0), (22.0, 6.0), (23.0, 10.0)):
        now.time = 100.0 + seconds
        found.append(pace.progress(Reached(t, 2, 9)).remaining)
    # at first 6 units of time at 10 s each, with compilation; then 5 and 4 of them at 1 s each
    assert found == pytest.approx([60.0, 5.0, 4.0, 0.0], rel=1e-12)
    rows = Pace(float("inf"), 4, Reached(0.0, 0, 0, share=0.0))
    now.time += 3.0
    assert rows.progress(Reached(1e200, 1, 9, share=0.25)).remaining == pytest.approx(9.0, rel=1e-12)


def test_a_flow_tells_how_long_it_takes_after_its_first_slice():
    seen = []
    af.solve(FIELD, TOKENS, 1.0, save=4, on_progress=seen.append)
    assert seen[0].remaining >= 0


@pytest.mark.parametrize("given", [1e16, 1e300])
def test_a_time_that_no_clock_reaches_is_refused(given):
    with pytest.raises(TooLarge, match=r"`until` is .* use solve_long"):
        af.solve(FIELD, TOKENS, given)
    with pytest.raises(TooLarge, match=r"use solve_long"):
        af.meanfield.evolve(FIELD, af.meanfield.uniform(af.meanfield.CircleBasis(4)), given)
    # the next check
    with environment(ATTNFLOW_LIMITS="off"), pytest.raises(InvalidInput, match="the last saved time"):
        af.solve(FIELD, TOKENS, given, save=[1.0])


def test_a_flow_without_frames_says_why():
    flow = af.solve(FIELD, TOKENS, 1.0, cancel=lambda: True)
    assert flow.outcome.message == "cancelled before anything was saved."
    with pytest.raises(IndexError, match="it was cancelled before anything was saved"):
        flow.tokens()
