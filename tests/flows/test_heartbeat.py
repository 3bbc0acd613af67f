"""A sign of life: one line on a terminal, wiped at the end, and none where nobody watches."""

import io
import os
import sys
import threading
import time
import types
from unittest import mock

import pytest

import attnflow as af
from attnflow.flows.heartbeat import Heartbeat, is_wanted


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(faults):
    faults.replace("seconds before the heartbeat", 0.0)
    faults.replace("seconds between heartbeats", 0.01)
    with mock.patch.dict(os.environ, ATTNFLOW_PROGRESS="on"):
        yield shown_on(faults, Terminal())


def shown_on(faults, stream, **modules):
    """Let the heartbeat see these modules and write to this stream."""
    faults.replace("system of the heartbeat", types.SimpleNamespace(stderr=stream, modules=sys.modules | modules))
    return stream


def solve(**options):
    tokens = af.uniform(af.Sphere(3), n=8, seed=0)
    return af.solve(af.Attention(2.0), tokens, 1.0, save=3, method=af.Fixed(0.5), **options)


def test_a_terminal_sees_the_work_and_nothing_is_left_of_it(terminal):
    flow = solve()
    said = terminal.getvalue()
    assert said.startswith("\rattnflow: compiling, 0 s")
    assert "\n" not in said
    last = said.rsplit("\r", 2)
    assert last[1].strip() == last[2] == ""
    assert len(flow) == 4


def test_the_line_says_how_far_the_work_is(terminal):
    with Heartbeat() as beat:
        beat.update(af.flows.Progress(1.5, 40.0, 1, 2, 3, 0.1, 30.0, 1.0))
        time.sleep(0.1)
    assert "attnflow: t = 1.5 of 40, 0 s" in terminal.getvalue()


def test_a_notebook_shows_one_output_that_changes(terminal, faults):
    said = []

    class Handle:
        def display(self, data, raw):
            said.append(("display", data["text/plain"], raw))

        def update(self, data, raw):
            said.append(("update", data["text/plain"], raw))

    notebook = types.SimpleNamespace(get_ipython=object, DisplayHandle=Handle)
    faults.replace("modules of the heartbeat", types.SimpleNamespace(import_module=lambda name: notebook))
    shown_on(faults, terminal, ipykernel=notebook)
    with Heartbeat():
        time.sleep(0.1)
    assert said[0] == ("display", "attnflow: compiling, 0 s", True)
    assert said[1] == ("update", "attnflow: compiling, 0 s", True)
    assert said[-1] == ("update", "", True)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("why", ["no terminal", "turned off", "on_progress"])
def test_nobody_is_disturbed(why, terminal, faults):
    seen = []
    if why == "no terminal":
        terminal = shown_on(faults, io.StringIO())
    elif why == "turned off":
        os.environ["ATTNFLOW_PROGRESS"] = "off"
    assert is_wanted() == (why == "on_progress")
    solve(on_progress=seen.append) if why == "on_progress" else solve()
    assert terminal.getvalue() == ""
    assert bool(seen) == (why == "on_progress")


@pytest.mark.usefixtures("terminal")
def test_the_numbers_are_the_same():
    watched = solve()
    os.environ["ATTNFLOW_PROGRESS"] = "off"
    assert watched.dataset.identical(solve().dataset)


def test_a_terminal_that_is_gone_does_not_end_the_work(terminal):
    terminal.close()
    with Heartbeat() as beat:
        time.sleep(0.05)
    assert beat.done.is_set()


@pytest.mark.parametrize("stream", [None, object(), "closed"])
@pytest.mark.usefixtures("terminal")
def test_a_process_without_a_terminal(stream, faults):
    if stream == "closed":
        stream = io.StringIO()
        stream.close()
    shown_on(faults, stream)
    assert not is_wanted()
    solve()


def test_two_at_a_time_write_one_line(terminal):
    with Heartbeat() as first, Heartbeat() as second:
        time.sleep(0.05)
        assert first.writes
        assert not second.writes
    with Heartbeat() as third:
        assert third.writes


def test_a_terminal_that_blocks_does_not_hold_the_work_up(terminal):
    wait = threading.Event()
    terminal.write = lambda text: wait.wait(20)
    with Heartbeat():
        time.sleep(0.05)
    assert not wait.is_set()
    wait.set()
