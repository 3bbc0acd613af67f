"""Ctrl-C, cancellation and errors in one process, for every kind of run."""

import threading

import pytest

from attnflow.errors import RunError
from attnflow.flows import InMemory
from attnflow.runs import execute, open_run, parse_spec, resume
from tests.marks import graded
from tests.runs.failing import is_checkpoint, writes_failing
from tests.runs.kinds import KINDS, TEXTS, after, carried_out, in_memory, is_the_run, of, press, same

WAYS = {
    "Ctrl-C": lambda calls: {"on_progress": after(calls, press)},
    "cancel": lambda calls: {"cancel": after(calls, lambda: True)},
}


def is_interrupted(kind, part):
    assert part.outcome.ending.value == "interrupted"
    whole = in_memory(kind).dataset
    rows = of(kind).work.rows
    if rows != "merge":
        assert part.dataset.sizes[rows] <= whole.sizes[rows]


@pytest.mark.parametrize("way", WAYS)
@graded("kind", KINDS, fast=2)
def test_an_interrupted_flow_keeps_what_was_done_and_goes_on_bit_for_bit(kind, way):
    part = carried_out(of(kind).work, **WAYS[way](2))
    is_interrupted(kind, part)
    whole = part.continued()
    same(whole.dataset, in_memory(kind).dataset)
    assert whole.outcome == in_memory(kind).outcome


@pytest.mark.parametrize("way", WAYS)
@graded("kind", KINDS, slow=1)
def test_an_interrupted_run_keeps_what_was_done_and_resumes_bit_for_bit(kind, way, uninterrupted, tmp_path):
    run, part = execute(of(kind), tmp_path / "run", **WAYS[way](2))
    is_interrupted(kind, part)
    assert run.manifest()["status"] == "interrupted"
    open_run(run.path)
    resume(run.path)
    is_the_run(run.path, uninterrupted(kind))


@graded("error", [KeyboardInterrupt, OSError(28, "No space left on device")], ids=["Ctrl-C", "full"], slow=1)
@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_the_middle_of_a_commit_loses_no_run(kind, error, uninterrupted, tmp_path):
    with writes_failing(error, is_checkpoint, call=2):  # rows are written, the checkpoint after them is not
        if isinstance(error, OSError):
            with pytest.raises(RunError, match="No space left"):
                execute(of(kind), tmp_path / "run")
        else:
            run, part = execute(of(kind), tmp_path / "run")
            is_interrupted(kind, part)
            if of(kind).work.rows != "merge":  # as many rows as are committed, not those of which some are missing
                assert part.dataset.sizes == open_run(run.path).dataset.sizes
    resume(tmp_path / "run")
    is_the_run(tmp_path / "run", uninterrupted(kind))


class Cut(InMemory):
    """A sink that Ctrl-C cuts in its second commit, whose rows are kept or not."""

    def __init__(self, kept):
        super().__init__()
        self.kept, self.commits = kept, 0

    def commit(self, start, rows, checkpoint):
        self.commits += 1
        if self.kept or self.commits != 2:
            super().commit(start, rows, checkpoint)
        if self.commits == 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kept", [False, True])
@graded("kind", KINDS)
def test_ctrl_c_in_the_middle_of_a_commit_in_memory_goes_on_bit_for_bit(kind, kept):
    part = carried_out(of(kind).work, sink=Cut(kept))
    is_interrupted(kind, part)
    same(part.continued().dataset, in_memory(kind).dataset)


@graded("kind", KINDS)
def test_ctrl_c_after_the_last_step_comes_too_late(kind, uninterrupted, tmp_path):
    """A flow that has ended stays ended: it is not continued from after its stop."""
    calls = []
    carried_out(of(kind).work, on_progress=calls.append)
    run, _ = execute(of(kind), tmp_path / "run", on_progress=after(len(calls), press))
    resume(run.path)
    is_the_run(run.path, uninterrupted(kind))


@pytest.mark.slow
def test_ctrl_c_at_the_stop_of_a_flow_does_not_undo_it(tmp_path):
    text = TEXTS["solve"].replace("[1.0, 9.0]", "1.0").replace("chunk = 3", "chunk = 6")
    _, whole = execute(parse_spec(text), tmp_path / "whole")
    assert whole.outcome.ending.value == "stopped"

    def late(progress):
        if progress.frames:
            raise KeyboardInterrupt

    run, flow = execute(parse_spec(text), tmp_path / "run", on_progress=late)
    assert flow.outcome.ending.value in ("stopped", "interrupted")
    resume(run.path)
    is_the_run(run.path, tmp_path / "whole")


def test_cancel_works_in_another_thread():
    found = []
    worker = threading.Thread(target=lambda: found.append(carried_out(of("solve").work, cancel=after(2, lambda: True))))
    worker.start()
    worker.join()
    assert found[0].outcome.ending.value == "interrupted"
    same(found[0].continued().dataset, in_memory("solve").dataset)
