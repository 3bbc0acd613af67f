"""Targets that are contracted to clouds of their own, and expanded again: the last step of arXiv:2411.04551."""

import numpy as np
import pytest

import attnflow as af
from attnflow.control import match_measures
from attnflow.errors import InvalidInput
from attnflow.fields import MeanAttention
from attnflow.runs import parse_spec
from tests.control.plans import NoPlan, SpherePlanner, Stage, amplification, clouds_apart, expansion
from tests.control.test_matching import E, atoms, circle_instance, clouds
from tests.runs.kinds import of


@pytest.mark.long
def test_three_stages():
    """A prototype had W_2 of 1e-8 to 5e-8 with 32 to 80 elements for two and three measures of 4 and 6 atoms."""
    inputs, targets = clouds(3, 2, 51), atoms(3, 2, 4, 51)
    match = match_measures(inputs, targets, tol=1e-7, expand=True)
    assert match.w2.max() < 5e-8
    assert 32 <= len(match.schedule) <= 80
    assert match.tries == 1
    counts = match.schedule.counts
    assert (counts["MeanAttention"], counts["ReluUnit"] > 8) == (2, True)
    # boosts and attention at the end are those that contract the targets, backwards: budgets bound the amplification
    last = match.schedule.budgets[-3:]
    assert 1 <= match.amplification <= np.exp(last.sum())
    assert match.amplification == match.dataset["amplification"].values[-1]
    field, duration = match.schedule[len(match.schedule) - 2]
    assert isinstance(field, MeanAttention)
    assert np.array_equal(field.value.value, -np.eye(3))
    assert duration > 0


@pytest.mark.long
def test_atoms_of_two_targets_side_by_side():
    """Four atoms each on one circle, 0.001 apart; an atom that both have; equal targets stay together."""
    turn = np.pi / 2 * np.arange(4)
    rings = [np.stack([np.cos(t), np.sin(t), 2 * np.ones(4)], axis=1) for t in (turn, turn + 0.002)]
    rings[1][3] = rings[0][3]
    targets = [af.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True)) for x in rings]
    inputs = clouds(3, 2, 50)
    start = Stage(tuple(one.positions for one in inputs), tuple(one.masses for one in inputs))
    plan = SpherePlanner(start, targets, 1e-3 / 16, expand=True).plan(0, np.random.default_rng(0))
    assert plan.amplification > 1
    for cloud, one in zip(plan.stage.clouds, targets, strict=True):
        near = af.Sphere(3).distance(cloud[:, None], one.positions[None])
        assert near.min(axis=1).max() < 1e-3 / 8
        assert np.bincount(near.argmin(axis=1)).tolist() == [15] * 4
    goals, back, _ = expansion(targets[:1] * 2, 0.35, np.random.default_rng(0))
    assert np.array_equal(goals[0].positions, goals[1].positions)
    assert not [field for field, _ in back if isinstance(field, MeanAttention)]


def test_what_contracts_is_taken_back():
    """Clouds of the targets go to the targets through the elements backwards, each measure under its own mean."""
    targets = atoms(3, 2, 4, 50, masses=[0.1, 0.2, 0.3, 0.4])
    goals, back, grows = expansion(targets, 0.35, np.random.default_rng(0))
    assert [goal.masses.tolist() for goal in goals] == [one.masses.tolist() for one in targets]
    stage = Stage(tuple(g.positions for g in goals), tuple(g.masses for g in goals))
    for field, duration in back:
        stage = stage.then(field, duration)
    for cloud, one in zip(stage.clouds, targets, strict=True):
        # rounding errors of the clouds, amplified
        np.testing.assert_allclose(cloud, one.positions, atol=1e-14 * grows * len(back))
    means = [np.mean(g.positions, axis=0) for g in goals]
    radius = max(np.linalg.norm(g.positions - m, axis=1).max() for g, m in zip(goals, means, strict=True))
    assert radius < np.linalg.norm(means[0] - means[1])


@pytest.mark.parametrize("time", [2.0, 4.0, 6.0])
def test_how_much_an_error_grows(time):
    """Two tokens at the angles +-a of their mean: tan a falls like e^(-t), so sin a' = e^t (cos a'/cos a) sin a.

    The worst errors lie across the plane, with opposite signs: they grow like sin a. Random ones come within a half.
    """
    tan = 0.8
    low = np.arctan(np.exp(-time) * tan)
    start = Stage((np.array([[np.sin(low), 0, np.cos(low)], [-np.sin(low), 0, np.cos(low)]]),), (np.full(2, 0.5),))
    back = [(MeanAttention(-np.eye(3)), time)]
    stage = start.then(*back[0])
    np.testing.assert_allclose(stage.points[0, 0] / stage.points[0, 2], tan, rtol=1e-11)
    worst = np.sin(np.arctan(tan)) / np.sin(low)
    found = amplification(start, back, np.random.default_rng(0))
    assert 0.5 * worst < found < worst * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("expand", [False, True])
def test_single_tokens_change_places(expand):
    """Clouds have no radius, by which their separation would be divided; with `expand` both stages are the same."""
    one, other = (af.Tokens(E[k : k + 1]) for k in (0, 1))
    start = Stage((one.positions, other.positions), (np.ones(1),) * 2)
    plan = SpherePlanner(start, [other, one], 1e-4, expand).plan(0, np.random.default_rng(0))
    np.testing.assert_allclose(plan.stage.points, E[[1, 0]], atol=2e-4)  # the angle, and half of it for the expansion
    assert 1e6 < plan.separation < np.inf
    assert (plan.amplification == 1.0) or expand
    assert clouds_apart(Stage((E[:1],), (np.ones(1),)), 0.35, np.random.default_rng(0))[1:] == (0.0, np.inf)


def test_too_much_amplification():
    """The seventh ratio asks for attention that multiplies errors by more than 1e-12/16 can bear."""
    targets = atoms(3, 2, 4, 50)
    start = Stage(tuple(one.positions for one in targets), tuple(one.masses for one in targets))
    with pytest.raises(NoPlan, match="the expansion multiplies errors by") as caught:
        SpherePlanner(start, targets, 1e-12 / 16, expand=True).plan(6, np.random.default_rng(0))
    assert caught.value.advice == "give a larger `tol`, or leave `expand` out"


def test_gates_arrive_closer_by_the_amplification(faults):
    """Without amplification, as for errors that shrink, they arrive within the tolerance that was asked for."""
    targets, seen = atoms(3, 2, 4, 50), []

    def deliver(stage, goals, tol, *_):
        seen.append((goals, tol))
        return stage

    faults.replace("delivery of tokens by gates", deliver)
    start = Stage(tuple(one.positions for one in targets), tuple(one.masses for one in targets))
    for grows in (50.0, 1.0):
        faults.replace("amplification of an expansion", lambda *_, grows=grows: (targets[::-1], [], grows))
        plan = SpherePlanner(start, targets, 1e-4, expand=True).plan(0, np.random.default_rng(0))
        assert plan.amplification == grows
    assert [tol for _, tol in seen] == [1e-4 / 50, 1e-4]
    assert seen[0][0] == targets[::-1]


def test_in_a_specification():
    spec = of("match_measures")
    assert spec.work.expand is False
    assert parse_spec(spec.to_toml(), ["match_measures.expand=true"]).work.expand is True


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: match_measures(clouds(3, 2, 0), atoms(3, 2, 1, 0), expand=1), "`expand` is 1; give True or False"),
        (lambda: match_measures(clouds(3, 2, 0), atoms(3, 2, 1, 0), layer=0.25, expand=True), "and `layer` is 0.25"),
        (lambda: match_measures(*circle_instance(4, 2), expand=True), "`expand` is True on the circle"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
