"""Schedules: exact maps, densities, inverses, compositions, files and networks."""

import jax
import numpy as np
import pytest
from scipy.stats import norm

import attnflow as af
from attnflow import control
from attnflow.control import Schedule, chain, layers, units
from attnflow.errors import InvalidInput
from attnflow.fields import Affine, Drift, MeanAttention, ReluUnit

RNG = np.random.default_rng(1)


def random_units(count, d, budget, rng=RNG):
    w, a = rng.standard_normal((2, count, d))
    scale = budget / np.sum(np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1))
    return units(w * scale, a, rng.standard_normal(count))


@pytest.mark.slow
def test_layers_are_flows():
    """x + u (<a, x> + b)_+ is the time-1 flow of one unit: 1e-13 relative."""
    u, a, b = RNG.standard_normal((200, 4)), RNG.standard_normal((200, 4)), RNG.standard_normal(200)
    keep = np.sum(u * a, axis=1) > -0.95
    u, a, b = 0.5 * u[keep], a[keep], b[keep]
    x = RNG.standard_normal((100, 4))
    for k in range(len(u)):
        plain = x + np.maximum(x @ a[k] + b[k], 0)[:, None] * u[k]
        found, log_det = layers(u[k], a[k], b[k]).push(x)
        np.testing.assert_allclose(found, plain, atol=1e-13 * (1 + np.abs(plain).max()))
        np.testing.assert_allclose(np.exp(log_det), np.where(x @ a[k] + b[k] > 0, 1 + u[k] @ a[k], 1.0), rtol=1e-12)
    with pytest.raises(InvalidInput, match="folds space"):
        layers([[-2.0, 0]], [[1.0, 0]], 0.0)


def test_round_trips_and_budget():
    """1e-12 for budgets up to 100; the map is Lipschitz with the constant e^budget."""
    x = RNG.standard_normal((300, 3))
    for count, budget in ((100, 30.0), (2000, 100.0)):
        schedule = random_units(count, 3, budget)
        np.testing.assert_allclose(schedule.budget, budget, rtol=1e-12)
        end, log_det = schedule.push(x)
        back, other = schedule.inverse().push(end)
        assert np.abs(back - x).max() < 1e-12 * max(1, np.abs(end).max())
        np.testing.assert_allclose(other, -log_det, atol=1e-11)
        assert schedule.switches == count - 1
        assert len(schedule) == count
    tight = random_units(5, 3, 1.5)
    near = x + 1e-6 * RNG.standard_normal(x.shape)
    grown = np.linalg.norm(tight.push(near)[0] - tight.push(x)[0], axis=1) / np.linalg.norm(near - x, axis=1)
    assert grown.max() < np.exp(1.5) * (1 + 1e-6)
    assert grown.min() > np.exp(-1.5) * (1 - 1e-6)


def test_blocks_of_points_agree():
    schedule = random_units(20, 2, 3.0)
    x = RNG.standard_normal((5000, 2))
    whole, parts = schedule.push(x)[0], [schedule.push(x[k : k + 1700])[0] for k in range(0, 5000, 1700)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert schedule.push(np.zeros((0, 2)))[0].shape == (0, 2)


def test_density():
    """The new density integrates to 1, and its log-determinant is the slope of the map."""
    schedule = random_units(12, 2, 4.0)
    grid = np.linspace(-30, 30, 1201)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    density = np.exp(schedule.log_density(points, lambda x: norm.logpdf(x).sum(axis=1)))
    # the density jumps along lines, so the rule is of first order
    assert abs(density.sum() * (grid[1] - grid[0]) ** 2 - 1) < 5e-3


MIXED = [
    (Drift(RNG.standard_normal(4)), 0.7),
    (MeanAttention(RNG.standard_normal((4, 4))), 1.2),
    (ReluUnit(RNG.standard_normal(4), RNG.standard_normal(4), 0.3), 1.5),
    (Affine(0.5 * RNG.standard_normal((4, 4))), 0.5),
]
"""Four, so that twice as many still have the program of eight."""


@pytest.mark.long
def test_mixed_schedules_are_fields():
    """`push`, `solve` by Exact and Adaptive, and flow maps agree; inverses and compositions are those of maps."""
    space = af.Sphere(4)
    schedule, tokens = Schedule(space, MIXED), af.uniform(space, n=12, seed=3)
    points = af.uniform(space, n=5, seed=4).positions
    end = schedule(tokens)
    for method in (af.Exact(), af.Adaptive(1e-11, 1e-13)):
        flow = af.solve(schedule.field, tokens, schedule.duration, method=method, keep=["positions"])
        np.testing.assert_allclose(flow.positions.values[-1], end.positions, atol=1e-9)
    there, log_det = schedule.push(points, mu=tokens)
    phi = af.flow_map(schedule.field, tokens, schedule.duration, method=af.Exact())
    for one, other in zip(phi.push(points), (there, log_det), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    back, change = schedule.inverse().push(there, mu=end)
    np.testing.assert_allclose(back, points, atol=1e-12)
    np.testing.assert_allclose(change, -log_det, atol=1e-11)
    twice = schedule.then(schedule)
    assert twice.counts == {name: 2 * count for name, count in schedule.counts.items()}
    np.testing.assert_allclose(twice(tokens).positions, schedule(end).positions, atol=1e-14)
    np.testing.assert_allclose((schedule @ schedule.inverse())(end).positions, end.positions, atol=1e-12)
    assert [type(chain([schedule, schedule])[k][0]) for k in (0, 5)] == [Drift, MeanAttention]
    assert schedule[-1][1] == 0.5
    assert schedule.budget > 0


@pytest.mark.long
def test_softmax_attention_by_the_solver():
    space = af.Sphere(3)
    schedule = Schedule(space, [(Drift([0.3, 0, 1.0]), 0.5), (af.Attention(2.0), 0.8), (Drift([0.0, 1, 0]), 0.2)])
    tokens, points = af.uniform(space, n=4, seed=0), af.uniform(space, n=3, seed=1).positions
    end = schedule(tokens)
    flow = af.solve(schedule.field, tokens, schedule.duration, method=af.Adaptive(1e-11, 1e-13), keep=["positions"])
    np.testing.assert_allclose(flow.positions.values[-1], end.positions, atol=1e-9)
    there, log_det = schedule.push(points, mu=tokens)
    back, change = schedule.inverse().push(there, mu=end)
    np.testing.assert_allclose(back, points, atol=1e-8)
    np.testing.assert_allclose(change, -log_det, atol=1e-8)
    assert np.isnan(schedule.budget)


@pytest.mark.slow
def test_networks_and_weights(tmp_path):
    """A network of attnflow, a list of weights in NumPy, and a file: all are the same map."""
    schedule = random_units(40, 3, 5.0).then(Schedule(af.Euclidean(3), [(Drift([1.0, 2, 3]), 0.5)]))
    x = RNG.standard_normal((8, 3))
    end = schedule.push(x)[0]
    network = control.to_layers(schedule)
    tokens = af.Tokens(x, space=af.Euclidean(3))
    flow = af.solve(network.field, tokens, network.until, method=network.method, save=2, keep=["positions"])
    np.testing.assert_allclose(flow.positions.values[-1], end, atol=1e-13)
    y = x.copy()
    for inner, bias, outer in control.to_weights(schedule):
        y = y + np.maximum(y @ inner.T + bias, 0) @ outer.T
    np.testing.assert_allclose(y, end, atol=1e-13)
    path = control.save(schedule, tmp_path / "plan")
    assert path.name == "plan.npz"
    assert np.array_equal(control.load(path).push(x)[0], end)
    mixed, sphere = Schedule(af.Sphere(4), MIXED), af.uniform(af.Sphere(4), n=12)
    loaded = control.load(control.save(mixed, tmp_path / "mixed.npz"))
    assert np.array_equal(loaded(sphere).positions, mixed(sphere).positions)
    with pytest.raises(InvalidInput, match="no network"):
        control.to_layers(mixed)
    with pytest.raises(InvalidInput, match="there is no file"):
        control.load(tmp_path / "other.npz")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match="is no file of a schedule"):
        control.load(tmp_path / "bad.npz")
    with pytest.raises(InvalidInput, match="no residual layer"):
        control.to_layers(Schedule(af.Euclidean(2), [(Affine(np.eye(2)), 1.0)]))
    with pytest.raises(InvalidInput, match="cannot be written"):
        control.save(Schedule(af.Sphere(3), [(af.Attention(1.0), 1.0)]), tmp_path / "soft")


def test_linear_maps_are_pairs_of_layers():
    """(u, a, 0), (-u, -a, 0) is I + u a^T."""
    u, a = 0.3 * RNG.standard_normal((2, 4))
    x = RNG.standard_normal((30, 4))
    end, log_det = layers([u, -u], [a, -a], [0.0, 0.0]).push(x)
    np.testing.assert_allclose(end, x @ (np.eye(4) + np.outer(u, a)).T, atol=1e-14)
    np.testing.assert_allclose(log_det, np.log(1 + u @ a), atol=1e-14)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Schedule(af.Euclidean(2), []), "`elements` is empty"),
        (lambda: Schedule(af.Euclidean(2), [3]), "pairs"),
        (lambda: Schedule(af.Euclidean(2), [(Drift([1.0, 0, 0]), 1.0)]), "`vector` of Drift"),
        (lambda: Schedule(af.Euclidean(2), [(Drift([1.0, 0]), -1.0)]), "above 0"),
        (lambda: random_units(3, 2, 1.0).push(np.zeros(2)), r"give \(points, 2\)"),
        (lambda: Schedule(af.Sphere(3), [(MeanAttention(), 1.0)]).push(np.eye(3)), "`mu` is left out"),
        (lambda: random_units(3, 2, 1.0).then(random_units(3, 3, 1.0)), "one space"),
        (lambda: Schedule(af.Sphere(3), [(MeanAttention(), 1.0)]).inverse(), "give MeanAttention its `value`"),
        (lambda: Schedule(af.Sphere(3), [(MeanAttention(), 1.0)])(af.uniform(af.Sphere(2), n=3)), "acts on"),
        (lambda: units(np.ones((3, 2)), np.ones((3, 3)), 0.0), r"\(elements, d\)"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_user_flags_are_left_alone():
    assert not jax.config.read("jax_enable_x64")
