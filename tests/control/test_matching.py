"""One schedule for several measures on the sphere."""

import functools
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import attnflow as af
from attnflow.control import match_measures, shared_mass_bound
from attnflow.errors import FlowFailed, InvalidInput
from attnflow.transport import distance
from tests.control import plans
from tests.control.plans import NoPlan, Stage, merged, same_measure, subset
from tests.marks import graded
from tests.outside.exact import Rotation


def clouds(d, count, seed, n=60, spread=0.8):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        x = af.Sphere(d).sample(rng, 1) + spread * rng.standard_normal((n, d))
        found.append(af.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True)))
    return found


def atoms(d, count, each, seed, masses=None):
    rng = np.random.default_rng(1000 + seed)
    return [af.Tokens(af.Sphere(d).sample(rng, each), masses=masses) for _ in range(count)]


@functools.cache
def instance(d, count, each):
    inputs, targets = clouds(d, count, d, n=60), atoms(d, count, each, d)
    return inputs, targets, match_measures(inputs, targets)


@pytest.mark.parametrize(
    ("d", "count", "each"),
    [(3, 3, 1), pytest.param(3, 2, 4, marks=pytest.mark.slow), pytest.param(8, 3, 2, marks=pytest.mark.slow)],
)
def test_matching(d, count, each):
    """W_2 < 1e-3 for every measure, replayed alone by `solve` and by the solver that knows no closed forms."""
    inputs, targets, match = instance(d, count, each)
    assert match.w2.max() < 1e-3
    assert (match.w1 <= match.w2 + 1e-12).all()
    assert match.before.min() > 0.3
    for cloud, target in zip(inputs, targets, strict=True):
        flow = af.solve(
            match.schedule.field, cloud, match.schedule.duration, method=af.Exact(), save=2, keep=["positions"]
        )
        assert distance(flow.tokens(-1), target, order=2) < 1e-3
    assert match.schedule.counts["MeanAttention"] == 1
    assert match.amplification == 1.0
    assert "amplification" not in match.dataset


@pytest.mark.slow
def test_replay_by_a_solver():
    inputs, targets, match = instance(3, 3, 1)
    for cloud, target in zip(inputs, targets, strict=True):
        flow = af.solve(
            match.schedule.field,
            cloud,
            match.schedule.duration,
            method=af.Adaptive(1e-9, 1e-10),
            save=2,
            keep=["positions"],
        )
        assert distance(flow.tokens(-1), target, order=2) < 1e-3


@pytest.mark.long
def test_unequal_masses_and_layers():
    masses = np.array([0.2, 0.5, 0.3])
    match = match_measures(clouds(3, 2, 7), atoms(3, 2, 3, 7, masses))
    assert match.w2.max() < 1e-3
    network = match_measures(clouds(3, 2, 8), atoms(3, 2, 1, 8), layer=0.25)
    assert network.w2.max() < 1e-3
    assert network.layer == 0.25
    assert np.array_equal(network.schedule.durations, np.round(network.schedule.durations))


@pytest.mark.slow
def test_equal_means_need_a_gate():
    """Mean attention cannot separate them: one gated unit before it does. The first boost makes means unequal, too."""
    one, other = clouds(3, 2, 9, n=30)
    both = [np.concatenate([x.positions, -np.asarray(x.positions)]) for x in (one, other)]
    assert match_measures([af.Tokens(x) for x in both], atoms(3, 2, 1, 9)).w2.max() < 1e-3
    turn = np.diag([-1.0, -1.0, 1.0])  # about the mean
    near = np.asarray(one.positions) + 3 * np.eye(3)[2]
    near = np.concatenate([near, near @ turn])
    near = near / np.linalg.norm(near, axis=1, keepdims=True)
    quarter = near @ np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    start = Stage((near, quarter), (np.full(60, 1 / 60),) * 2)
    assert plans.spread(start)[1] < 1e-12
    stage, _, separation = plans.disentangle(start, 0.35, np.random.default_rng(0))
    assert separation > 1 / 0.35
    assert [type(field).__name__ for field, _ in stage.elements] == ["ReluUnit", "MeanAttention"]
    assert start.elements == ()
    assert np.array_equal(start.points, np.concatenate([near, quarter]))


@pytest.mark.parametrize("layer", [None, 0.01])
def test_an_element_of_a_file_moves_a_stage(layer):
    """Exactly, or in 60 layers of h = 0.01, each of which lengthens x by up to h^2/2 across the axis; none changes."""
    start = Stage(tuple(c.positions for c in clouds(3, 2, 0)), (np.full(60, 1 / 60),) * 2, layer)
    after = start.then(Rotation([0.0, 0.0, 2.0]), 0.3)
    c, s = np.cos(0.6), np.sin(0.6)
    np.testing.assert_allclose(
        after.points, start.points @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]), atol=1e-14 if layer is None else 3e-3
    )
    assert [duration for _, duration in after.elements] == [0.3 if layer is None else 60.0]
    with pytest.raises(ValueError, match="read-only"):
        after.clouds[0][0] = 0.0


def pair(axis):
    return af.Tokens(np.stack([np.eye(3)[axis], -np.eye(3)[axis]]))


THREE = np.array([[0.539, 0.17, 0.825], [0.9224, -0.3612, 0.1369], [0.6957, 0.3784, -0.6106]])
E = np.eye(3)


@graded(
    ("inputs", "targets"),
    [
        # the first atom lies between the tokens that are left for the second one
        ([af.Tokens(af.Sphere(3).retract(THREE))], [af.Tokens(E[:2], masses=[1 / 3, 2 / 3])]),
        # equal inputs share a plan; coincident tokens are one, and so are coincident atoms
        ([af.Tokens(THREE[[0, 1, 1]] / np.linalg.norm(THREE[[0, 1, 1]], axis=1)[:, None])] * 2,
         [af.Tokens(E[[0, 1, 1]]), af.Tokens(E[[1, 0, 1]])]),
        # a mean that vanishes
        ([pair(0)], [af.Tokens(E[1:2])]),
        ([pair(0), pair(1)], [af.Tokens(E[1:2]), af.Tokens(E[2:])]),
    ],
    ids=["between", "equal", "antipodes", "two pairs"])  # fmt: skip
def test_easy_problems_are_solved(inputs, targets):
    """Each was refused once, with a sentence that was not true."""
    match = match_measures(inputs, targets)
    assert match.w2.max() < 1e-3
    assert match.tries == 1


@pytest.mark.slow
def test_masses_that_add_up():
    """Seven tokens, whose only division into these atoms is no cap: several pieces make an atom."""
    rng = np.random.default_rng(5)
    x, mass = af.Sphere(3).sample(rng, 7), rng.uniform(0.3, 1.0, 7)
    cap = np.argsort(-x[:, 0])
    chosen = np.isin(np.arange(7), cap[[0, 2, 4]])
    mass = mass / mass.sum()
    match = match_measures(
        [af.Tokens(x, masses=mass)], [af.Tokens(E[:2], masses=[mass[chosen].sum(), mass[~chosen].sum()])]
    )
    assert match.w2.max() < 1e-3
    near = af.Sphere(3).distance(match(af.Tokens(x, masses=mass)).positions, E[:1]) < 0.1
    assert np.array_equal(near, chosen)
    with pytest.raises(FlowFailed, match=r"add up to that of an atom, 0\.5: the nearest sum is off by 0\.0"):
        match_measures([af.Tokens(x, masses=mass)], [af.Tokens(E[:2])])


def test_subsets_against_all():
    rng = np.random.default_rng(6)
    for n, quota in ((1, 0.2), (5, 0.31), (11, 0.6)):
        mass = rng.dirichlet(np.ones(n))
        sums = [mass[list(one)].sum() for k in range(n + 1) for one in itertools.combinations(range(n), k)]
        found = mass[subset(mass, quota)].sum()
        assert abs(found - quota) <= min(abs(np.array(sums) - quota)) + 1e-15
    many = rng.dirichlet(np.ones(200))
    chosen = subset(many, 0.4)
    assert abs(many[chosen].sum() - 0.4) < 1e-6, "2^28 sums of masses of about 1/200 are 1e-9 apart"
    assert chosen[:40].all()
    assert not chosen[140:].any()


def test_measures_without_repetition():
    x = np.concatenate([E, E[1:2]])
    once = merged(af.Tokens(x, masses=[0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_array_equal(once.positions, E)
    np.testing.assert_allclose(once.masses, [0.1, 0.6, 0.3])
    assert same_measure(af.Tokens(x, masses=[0.1, 0.2, 0.3, 0.4]), af.Tokens(E[::-1], masses=[0.3, 0.6, 0.1]))
    assert not same_measure(af.Tokens(x), af.Tokens(E))


def test_no_free_point(faults):
    faults.replace("free point of a sphere", lambda points, rng: (np.eye(3)[0], 1e-4))
    with pytest.raises(InvalidInput, match="no free point"):
        match_measures(clouds(3, 2, 0), atoms(3, 2, 1, 0))


def test_shared_targets():
    """Two measures with one target end there together."""
    target = atoms(3, 1, 1, 11)[0]
    assert match_measures(clouds(3, 2, 11), [target, target]).w2.max() < 1e-3


def circle_instance(seed, count):
    rng = np.random.default_rng(seed)

    def at(angle):
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    inputs = [af.Tokens(at(rng.uniform(0, 2 * np.pi) + 0.7 * rng.standard_normal(40))) for _ in range(count)]
    return inputs, [af.Tokens(at(rng.uniform(0, 2 * np.pi, 1))) for _ in range(count)]


@pytest.mark.slow
def test_circle():
    inputs, targets = circle_instance(4, 4)
    match = match_measures(inputs, targets)
    assert match.w2.max() < 1e-3
    assert match.attention > 0


@pytest.mark.slow
def test_no_attention_no_separation():
    """Without attention what two measures share stays together: the bound binds for the same gates."""
    rng = np.random.default_rng(12)
    shared = af.Sphere(3).sample(rng, 30)
    inputs = [af.Tokens(np.concatenate([shared, af.Sphere(3).sample(rng, 30)])) for _ in range(2)]
    targets = [af.Tokens(np.eye(1, 3)), af.Tokens(-np.eye(1, 3))]
    bound = shared_mass_bound(inputs, targets)
    np.testing.assert_allclose(bound, np.pi / 2, rtol=1e-12)
    match = match_measures(inputs, targets)
    assert match.w1.sum() < 1e-2 * bound
    elements = [match.schedule[k] for k in range(len(match.schedule))]
    blind = af.control.Schedule(af.Sphere(3), [e for e in elements if type(e[0]).__name__ != "MeanAttention"])
    assert sum(distance(blind(i), o, order=1) for i, o in zip(inputs, targets, strict=True)) >= bound


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: match_measures(clouds(3, 1, 0) * 2, atoms(3, 2, 1, 0)), "no schedule separates"),
        (lambda: match_measures(clouds(3, 2, 0), atoms(3, 1, 1, 0)), "as many of both"),
        (lambda: match_measures([], []), "at least one"),
        (lambda: match_measures(clouds(3, 1, 0), atoms(4, 1, 1, 0)), r"give all on one Sphere\(d\)"),
        (lambda: match_measures([af.Tokens(np.eye(2), space=af.Euclidean(2))], atoms(2, 1, 1, 0)), "Sphere"),
        (lambda: match_measures(clouds(2, 1, 0), atoms(2, 1, 2, 0)), "on the circle a target is one atom"),
        (lambda: match_measures(clouds(3, 1, 0, n=7), atoms(3, 1, 2, 0)), r"at 7 points of equal mass.*\(0.5, 0.5\)"),
        (lambda: match_measures([af.Tokens(E[[0, 0, 0, 0]])], [af.Tokens(E[1:])]), "at 1 point, which cannot be"),
        (lambda: match_measures([np.eye(3)], atoms(3, 1, 1, 0)), "a list of Tokens"),
        (lambda: match_measures(clouds(3, 1, 0), atoms(3, 1, 1, 0), tol=1.0), "`tol`"),
        (lambda: match_measures([af.uniform(af.Sphere(3), n=5, seed=0)] , [af.uniform(af.Sphere(3), n=1)], layer=5.0), "`layer`"),
    ],
)  # fmt: skip
def test_refusals(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_hops_are_long_against_the_whole_piece(faults):
    """What a path is told is the largest distance of a token of the piece from where the path begins."""
    sizes = []
    faults.replace("path of a piece", lambda *arguments: sizes.append(arguments[-2]))
    x = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.96, 0.28, 0.0]])
    with pytest.raises(NoPlan):
        plans.carry(SimpleNamespace(points=x), np.arange(3), x[0], -x[0], np.zeros(3, bool), None, 0.1)
    assert sizes == pytest.approx([np.arccos(0.8)] * 3)


@pytest.mark.slow
def test_a_quarter_of_many_tokens_comes_off_in_one_cut():
    """The cap that divides a cloud also cuts it, however narrow its border among 800 tokens; the gate takes no other."""
    tokens = clouds(3, 1, 5, n=800, spread=0.3)[0]
    stage = Stage((np.asarray(tokens.positions),), (np.asarray(tokens.masses),))
    none, tol = np.zeros((0, 3)), 1e-4
    caps = plans.caps_beside(stage.points, np.random.default_rng(0))
    wanted, off, cap = plans.divide(stage.points, stage.masses[0], 0.25, caps, none)
    assert len(wanted) == 200
    assert off < 1e-12
    moved, piece, _ = plans.cut(stage, np.sort(wanted), cap[None], tol)
    assert np.array_equal(piece, np.sort(wanted))
    still = np.setdiff1d(np.arange(800), wanted)
    assert np.abs(moved.points[still] - stage.points[still]).max() < 1e-9 + tol
