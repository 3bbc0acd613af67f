"""The search of `match_measures` as work: tries, interruption, folders, failure."""

import types

import jax
import numpy as np
import pytest

import attnflow as af
from attnflow.control import Matching, load, match_measures, save, search
from attnflow.errors import FlowFailed, InvalidInput
from attnflow.flows import Ending
from attnflow.runs import execute, open_run, parse_spec, resume
from tests.control.plans import NoPlan
from tests.control.test_matching import atoms, clouds
from tests.marks import graded
from tests.runs.kinds import after, carried_out, of, press, same


def bits(schedule):
    leaves, tree = jax.tree.flatten(schedule.field)
    return str(tree), [(leaf.dtype, leaf.shape, leaf.tobytes()) for leaf in (*leaves, schedule.durations)]


@pytest.mark.long
def test_a_folder_gives_the_same_schedule_as_memory(tmp_path):
    """Interrupted after the second of three tries, resumed, opened; and written to a file, as any schedule."""
    spec, seen = of("match_measures"), []
    whole = match_measures(spec.work.inputs, spec.work.targets, on_progress=seen.append)
    assert [where.note.partition(" · ")[0] for where in seen] == [f"try {k} of at most 8" for k in (1, 2, 3)]
    assert whole.outcome.message.startswith(f"found a schedule of {len(whole.schedule)} elements in try 3, W_2 = ")
    assert whole.dataset["elements"].values.tolist() == [0, 0, len(whole.schedule)]
    assert whole.dataset["ratio"].values.tolist() == [0.35, 0.35, 0.15]
    run, part = execute(spec, tmp_path / "run", on_progress=after(2, press))
    assert (part.outcome.ending, part.tries) == (Ending.INTERRUPTED, 2)
    assert np.isnan([*part.w1, *part.w2, *part.before, part.attention, part.separation]).all()
    with pytest.raises(InvalidInput, match="there is no schedule: interrupted"):
        part(spec.work.inputs[0])
    resume(run.path)
    found = open_run(run.path)
    assert bits(found.schedule) == bits(whole.schedule) == bits(load(save(whole.schedule, tmp_path / "plan")))
    assert (found.tries, found.steps, found.attention) == (3, {"tries": 3}, whole.attention)
    for name in ("w1", "w2", "before"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    end = found(spec.work.inputs[0])
    np.testing.assert_array_equal(end.positions, whole(spec.work.inputs[0]).positions)
    same(found.dataset.load(), whole.dataset)


@graded("calls", [3, 30, 60])
def test_a_try_that_is_cut_short_is_made_again(calls):
    """`cancel` is asked within a try, too."""
    work = of("match_measures").work
    part = carried_out(work, cancel=after(calls, lambda: True))
    assert (part.outcome.ending, part.tries < 3) == (Ending.INTERRUPTED, True)
    same(part.continued().dataset, carried_out(work).dataset)


def test_a_search_without_success_says_what_it_reached(tmp_path, faults):
    faults.fail("plan on the sphere", NoPlan("no path"))
    spec = of("match_measures")
    words = r"no schedule was found in 8 tries \(last: no path\); give tokens"
    with pytest.raises(FlowFailed, match=words) as caught:
        match_measures(spec.work.inputs, spec.work.targets)
    failed = caught.value.trajectory
    assert isinstance(failed, Matching)
    assert (failed.tries, failed.is_found) == (8, False)
    assert np.isnan(failed.dataset["w2"]).all()
    with pytest.raises(InvalidInput, match="there is no schedule: no schedule was found"):
        failed.schedule  # noqa: B018
    with pytest.raises(InvalidInput, match="has ended: no schedule"):
        failed.continued()
    for again in (lambda: execute(spec, tmp_path / "run"), lambda: resume(tmp_path / "run")):
        with pytest.raises(FlowFailed, match=words):
            again()
    assert open_run(tmp_path / "run").tries == 8


def test_random_numbers_go_on_from_their_words():
    rng = np.random.default_rng(5)
    rng.integers(0, 10, 3, np.int32)  # leaves half a word
    again = search._generator(search._words(rng))
    np.testing.assert_array_equal(again.integers(0, 10, 5, np.int32), rng.integers(0, 10, 5, np.int32))
    np.testing.assert_array_equal(again.standard_normal(5), rng.standard_normal(5))


@pytest.mark.slow
def test_a_replay_by_layers_that_is_interrupted_counts_for_nothing(faults):
    cut = types.SimpleNamespace(outcome=types.SimpleNamespace(ending=Ending.INTERRUPTED))
    faults.replace("replay of a schedule", lambda *_, **__: cut)
    match = match_measures(clouds(3, 2, 8), atoms(3, 2, 1, 8), layer=0.25)
    assert (match.outcome.ending, match.tries) == (Ending.INTERRUPTED, 0)


def test_lists_of_tokens_in_a_specification():
    spec = of("match_measures")
    assert [len(spec.table[name]) for name in ("inputs", "targets")] == [2, 2]
    assert spec.table["match_measures"] == {"tol": 1e-3, "seed": 0, "expand": False}
    assert isinstance(spec.work, af.control.MatchMeasures)
    tighter = parse_spec(spec.to_toml(), ["match_measures.layer=0.25"])
    assert tighter.work.layer == 0.25


@pytest.mark.long
def test_the_report(tmp_path):
    run, found = execute(of("match_measures"), tmp_path / "run", draw=af.plots.draw_run)
    assert {path.stem for path in run.figures.glob("*.pdf")} == {"summary", "carried", "distances"}
    summary = run.manifest()["summary"]
    assert summary == {
        "kind": "matching", "measures": 2, "tries": 3, "elements": len(found.schedule),
        "w2_before": found.before.max(), "w2_at_end": found.w2.max(), "attention": found.attention,
    }  # fmt: skip
    page = run.report.read_text(encoding="utf-8")
    assert "Every measure is carried alone" in page
    assert "<h2>Tries</h2>" in page
    part = carried_out(of("match_measures").work, cancel=after(1, lambda: True))
    assert set(part.account().figures) == {"summary", "distances"}
    circle = [af.uniform(af.Sphere(2), n=n, seed=3) for n in (8, 1)]
    assert set(match_measures(circle[:1], circle[1:]).account().figures) == {"summary", "carried", "distances"}
