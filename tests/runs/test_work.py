"""Work as a value: made once, sent anywhere, and the same for every kind."""

import dataclasses
import pickle

import numpy as np
import pytest

from attnflow.errors import InvalidInput, RunCorrupted, RunError
from attnflow.fields import Attention, Total
from attnflow.flows import AbstractResult, AbstractWork
from attnflow.flows.observables import content_of
from attnflow.masks import Causal
from attnflow.runs import Run, ensure, execute, extend, open_run, parse_spec, resume, spec_of
from tests.marks import graded
from tests.runs.kinds import KINDS, TEXTS, carried_out, in_memory, of, same
from tests.words import REGISTRY


def test_every_kind_has_a_specification_here():
    assert set(KINDS) == set(REGISTRY["kind"])


@pytest.mark.parametrize("kind", KINDS)
def test_work_pickles_and_stays_what_it_is(kind):
    for work in (of(kind).work, of(kind).work.checked()):
        again = pickle.loads(pickle.dumps(work))
        assert type(again) is type(work)
        content = pickle.dumps(again)  # of the first copy: the original may share objects between its fields
        assert pickle.dumps(pickle.loads(content)) == content
    sent = pickle.loads(pickle.dumps(of(kind)))
    assert sent == of(kind)
    assert sent.hash == of(kind).hash


@graded("kind", KINDS)
def test_results_have_one_form(kind):
    result = in_memory(kind)
    assert isinstance(result, AbstractResult)
    assert isinstance(result.work, AbstractWork)
    assert result.outcome.complete
    assert all(isinstance(count, int) for count in result.steps.values())
    assert "summary" in result.account().figures


def test_what_was_sent_gives_the_same_bits():
    same(carried_out(pickle.loads(pickle.dumps(of("evolve_cells").work))).dataset, in_memory("evolve_cells").dataset)


@pytest.mark.slow
def test_a_run_is_built_prepared_and_set_up_once(tmp_path, faults):
    """Also a run that is resumed or extended; at a million tokens each of these takes seconds."""
    points = ("make a part of a specification", "prepare a field", "set up flowing tokens")
    built, prepared, set_up = map(faults.calls, points)
    text = TEXTS["solve"].replace("[1.0, 9.0]", "9.0").split("stop =")[0]
    parse_spec(text)
    parts = len(built)  # tables, those within tables included
    run, _ = execute(parse_spec(text), tmp_path / "run")
    assert (len(built), len(prepared), len(set_up)) == (2 * parts, 1, 1)
    extend(run.path, 9.0)
    assert len(prepared) == len(set_up) == 2
    assert len(built) == 4 * parts, "the old specification and the longer one"


@pytest.mark.slow
def test_ensure_makes_a_run_once(tmp_path):
    first, flow = ensure(of("solve"), tmp_path)
    stamp = (first.path / "manifest.json").read_bytes()
    again, opened = ensure(of("solve"), tmp_path)
    assert again.path == first.path
    assert (again.path / "manifest.json").read_bytes() == stamp
    same(opened.dataset, flow.dataset)
    other, _ = ensure(parse_spec(TEXTS["solve"], ["tokens.seed=1"]), tmp_path)
    assert other.path != first.path


def test_work_that_was_made_in_python_is_done_once(tmp_path):
    """By whatever process: its hash is that of what it is made of, functions included."""
    calls, work = [], of("solve").work
    with pytest.raises(InvalidInput, match="`work` is 'solve'"):
        ensure("solve", tmp_path)

    def stop(progress):
        calls.append(progress)
        if len(calls) == 2:
            raise KeyboardInterrupt

    run, part = ensure(work, tmp_path, on_progress=stop)
    assert part.outcome.ending.value == "interrupted"
    for again in (pickle.loads(pickle.dumps(work)), of("solve").work):
        found, flow = ensure(again, tmp_path, on_progress=calls.append)
        assert found.path == run.path
        same(flow.dataset, in_memory("solve").dataset)
    found.verify()
    assert [p.time for p in calls] == sorted(p.time for p in calls), "nothing is done twice"
    changed = dataclasses.replace(work, observe={"x": lambda t, mu: mu.positions[0, 0]})
    other = dataclasses.replace(work, observe={"x": lambda t, mu: mu.positions[0, 1]})
    paths = {ensure(observed, tmp_path, cancel=lambda: True)[0].path for observed in (changed, other)}
    assert len(paths | {run.path}) == 3
    for act in (open_run, resume, lambda path: extend(path, 9.0)):
        with pytest.raises(RunError, match=r"made in Python; open or continue it with runs.ensure"):
            act(run.path)


class Opaque:
    """Neither a dataclass nor a module of Equinox."""

    def __init__(self, number):
        self.number = number


def test_different_values_have_different_hashes():
    """Also values that a concatenation of their words, or one look at a repeated object, would mix up."""
    field, pair = Attention(2.0), (1, 2)
    families = [
        [(1, 23), (12, 3), (123,), ((1, 2), 3), (1, (2, 3))],
        [(pair, pair), (pair,), (pair, (2, 1)), {"a": pair, "b": pair}, {"a": pair}],
        [Total((field, field)), Total((field,)), field, Attention(2.0, mask=Causal())],
        [Opaque(1), Opaque(2)],
        [np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.float32), np.array([0.0, -0.0])],
    ]
    for family in families:
        assert len({content_of(value) for value in family}) == len(family)
    assert content_of(Opaque(1)) == content_of(Opaque(1))


def test_a_folder_of_an_older_version_is_read(tmp_path):
    """It may lack keys that have a default now; its hash is that of its own text."""
    run, flow = execute(of("evolve"), tmp_path / "run")
    lines = (run.path / "spec.toml").read_text().splitlines(keepends=True)
    (run.path / "spec.toml").write_text("".join(line for line in lines if not line.startswith("resolution")))
    run.update(spec_hash=run._hash(run.manifest()))
    assert spec_of(run).hash != run.manifest()["spec_hash"]
    same(open_run(run.path).dataset, flow.dataset)
    assert Run.open(run.path).manifest()["status"] == "finished"
    resume(run.path)
    (run.path / "spec.toml").write_text("".join(lines).replace("kappa = 0.05", "kappa = 0.06"))
    with pytest.raises(RunCorrupted, match="changed after the run began"):
        open_run(run.path)
