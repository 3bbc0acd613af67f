"""Fitted velocities: a bent density, pairs, weights, what scales and shifts do, degenerate samples, refusals."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from attnflow.control import match_velocities
from attnflow.control.velocities import _fitted, _log_normal, _paired, _whitened
from attnflow.errors import InvalidInput
from tests.control.test_samples import banana, log_normal

SMALL = {"units": 15, "slabs": 2, "draws": 2}
"""2 * 2 * 16 units and those of the linear map: with 80 points one program for every d."""


@pytest.mark.slow
def test_a_bent_density():
    """KL of fresh samples is below that of a prototype, 0.044 with 512 units; the best normal density has log(1.98)/2.

    For that density the divergence is log(1.98)/2 - gain: both are means of independent samples.
    """
    made = match_velocities(banana(4000, 1))
    assert 2 * 4 * 65 < len(made.schedule) < 2 * 4 * 65 + 10
    assert made.held_out == 800
    fresh = banana(4000, 2)
    ratio = norm.logpdf(fresh[:, 0]) + norm.logpdf(fresh[:, 1] - 0.7 * (fresh[:, 0] ** 2 - 1))
    ratio = ratio - made.schedule.log_density(fresh, log_normal)
    assert 0 < ratio.mean() < 0.044
    assert np.log(1.98) / 2 - made.gain == pytest.approx(ratio.mean(), abs=4 * made.gain_error)
    # the mean log-density is minus entropy and divergence; its deviation is that of two squares of normal numbers, 1
    assert -norm.entropy() * 2 - made.log_density == pytest.approx(ratio.mean(), abs=4 / np.sqrt(800))
    x, y = made.schedule.push(np.random.default_rng(3).standard_normal((4000, 2)))[0].T
    for values, expected in ((y, 0.0), (y**2, 1.98), (x**2 * y, 1.4)):
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(1600)  # of 3200 samples and 4000 points


def test_more_units_and_slabs_leave_less():
    """The share that is left falls with units; crossing paths leave some of it however many there are."""
    few, many = (match_velocities(banana(2000, 1), units=k, slabs=2, draws=1) for k in (3, 31))
    assert (many.residuals < few.residuals).all()
    assert (many.residuals > 0.1).all()
    assert many.gain > few.gain


def test_pairs_on_the_line_keep_their_order():
    """In one batch the optimal pairing of numbers is the increasing one; in d dimensions no swap of two lowers it."""
    rng = np.random.default_rng(0)
    starts, ends = _paired(rng.standard_normal((50, 1)), 1, 50, rng)
    assert np.array_equal(np.argsort(starts[:, 0]), np.argsort(ends[:, 0]))
    starts, ends = _paired(rng.standard_normal((60, 3)), 2, 30, rng)
    assert starts.shape == ends.shape == (120, 3)
    for block in np.split(np.arange(120), 4):
        cost = np.sum((starts[block, None] - ends[None, block]) ** 2, axis=-1)
        straight = np.diag(cost)
        assert (cost + cost.T >= straight[:, None] + straight - 1e-12).all()


def test_weights_against_least_squares():
    """The ridge regression as one least-squares problem with rows sqrt(ridge s) I, s the mean square of a unit."""
    rng = np.random.default_rng(1)
    starts = rng.standard_normal((200, 2))
    ends = starts + np.array([1.0, -2.0]) * np.abs(starts[:, :1])
    w, a, b, left = _fitted(starts, ends, 0.5, 0.25, 7, 1e-3, np.random.default_rng(2))
    velocity = ends - starts
    at = starts + (0.5 + 0.25 * np.random.default_rng(2).uniform(size=(200, 1))) * velocity
    features = np.maximum(at @ a.T + b, 0.0)
    extra = np.sqrt(1e-3 * np.mean(np.sum(features**2, axis=0))) * np.eye(8)
    wanted = np.linalg.lstsq(np.concatenate([features, extra]), np.concatenate([velocity, np.zeros((8, 2))]))[0]
    np.testing.assert_allclose(w, wanted, atol=1e-10)
    assert left == pytest.approx(np.sum((velocity - features @ w) ** 2) / np.sum(velocity**2), abs=1e-12)
    assert np.array_equal(a[-1], [0.0, 0.0])
    assert np.allclose(np.linalg.norm(a[:-1], axis=1), 1.0)
    # every kink runs through a path
    assert all(np.abs(at @ one + bias).min() < 1e-12 for one, bias in zip(a[:-1], b[:-1], strict=True))


def test_velocities_of_a_translation():
    """They are constant, and the constant takes all but the ridge."""
    starts = np.random.default_rng(1).standard_normal((200, 2))
    w, a, b, left = _fitted(starts, starts + [1.0, -2.0], 0.5, 0.25, 7, 1e-10, np.random.default_rng(2))
    np.testing.assert_allclose(np.maximum(starts @ a.T + b, 0) @ w, np.tile([1.0, -2.0], (200, 1)), atol=1e-6)
    assert left < 1e-9


@pytest.mark.parametrize("sizes", [(1.0,), (1.0, 1e-6), (1e90, 1e85)])
def test_points_of_mean_zero_and_covariance_one(sizes):
    d = len(sizes)
    turn = np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))[0]
    x = (np.random.default_rng(0).standard_normal((80, d)) * sizes + 3 * np.max(sizes)) @ turn
    y, carry = _whitened(x)
    np.testing.assert_allclose(y.mean(axis=0), 0.0, atol=1e-9)  # the mean, 3 deviations and more, has lost 1e6 eps
    np.testing.assert_allclose(y.T @ y / 80, np.eye(d), atol=1e-8)
    end, log_det = carry.push(y)
    np.testing.assert_allclose(end, x, rtol=0, atol=1e-12 * np.abs(x).max())
    covariance = np.cov((x / np.max(sizes)).T, bias=True).reshape(d, d)
    np.testing.assert_allclose(
        log_det, np.linalg.slogdet(covariance)[1] / 2 + d * np.log(np.max(sizes)), rtol=0, atol=1e-3
    )


@pytest.mark.slow
@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.floats(-60, 60), st.floats(-100, 100), st.integers(0, 3))
def test_scales_and_shifts(power, shift, seed):
    """Samples s x + c get the density of x, moved: the weights solve a system of condition 16/ridge, below 2e5."""
    x, scale = banana(400, seed), 2.0**power
    one, other = (match_velocities(points, **SMALL) for points in (x, scale * (x + shift)))
    np.testing.assert_allclose(other.residuals, one.residuals, atol=1e-8)
    assert other.gain == pytest.approx(one.gain, abs=1e-6)
    assert other.log_density == pytest.approx(one.log_density - 2 * np.log(scale), abs=1e-6)


NUMBERS = np.random.default_rng(4).standard_normal((400, 2))
FAMILIES = {
    "d = 1": NUMBERS[:, :1] ** 3,
    "repeated": np.repeat(NUMBERS[:40], 10, axis=0),
    "rounded": np.round(NUMBERS),
    "two atoms on the line": np.repeat([[-1.0], [1.0]], 200, axis=0),
    "nearly collinear": NUMBERS * [1.0, 1e-10],
    "far away": NUMBERS + 1e9,
    "an outlier": np.concatenate([NUMBERS[:399], [[1e6, 0.0]]]),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_degenerate_families(family):
    """All that is given back is finite, in float64, also where there is no density."""
    made = match_velocities(FAMILIES[family], **SMALL)
    assert made.held_out == 80
    assert np.isfinite([made.log_density, made.gain, made.gain_error, made.schedule.budget]).all()
    assert ((made.residuals >= 0) & (made.residuals < 1)).all()
    ends, log_det = made.schedule.push(np.random.default_rng(5).standard_normal((80, FAMILIES[family].shape[1])))
    assert np.isfinite(ends).all()
    assert np.isfinite(log_det).all()
    assert ends.dtype == log_det.dtype == np.float64


def test_fewer_samples_than_units():
    """The ridge keeps the system regular; what is set aside says that nothing was learnt."""
    made = match_velocities(NUMBERS[:64], units=40, slabs=1, draws=1, held_out=0.5)
    assert made.held_out == 32
    assert np.isfinite([made.log_density, made.gain]).all()
    assert (made.residuals < 1).all()


def test_nothing_set_aside():
    made = match_velocities(NUMBERS, held_out=0, **SMALL)
    assert made.held_out == 0
    assert np.isnan([made.log_density, made.gain, made.gain_error]).all()
    assert np.array_equal(made.residuals, match_velocities(NUMBERS, held_out=0, **SMALL).residuals)
    assert not np.array_equal(made.residuals, match_velocities(NUMBERS, held_out=0, seed=1, **SMALL).residuals)


def test_the_normal_density():
    x = np.random.default_rng(0).standard_normal((5, 3))
    np.testing.assert_allclose(_log_normal(x), log_normal(x), rtol=1e-14)


@pytest.mark.parametrize(
    ("samples", "options", "words"),
    [
        (np.zeros(40), {}, r"has shape \(40,\)"),
        ("many", {}, "`samples` is 'many'; give real numbers"),
        (NUMBERS + 1j, {}, "give real numbers"),
        (np.where(np.eye(40, 2) == 1, np.nan, 0.0), {}, "within"),
        (NUMBERS[:8], {}, "at least 32"),
        (NUMBERS[:40], {"held_out": 0.3}, "`held_out` is 0.3, which leaves 28 of 40 samples"),
        (np.outer(np.arange(40.0), [1.0, 1.0]), {}, r"in a subspace of R\^2"),
        (np.eye(400, 1, k=-133), {"held_out": 0.5}, r"in a subspace of R\^1"),
        (NUMBERS, {"units": 0}, "`units` is 0"),
        (NUMBERS, {"slabs": 1.5}, "`slabs` is 1.5"),
        (NUMBERS, {"ridge": 0.0}, "`ridge` is 0.0"),
        (NUMBERS, {"held_out": 0.9}, "`held_out` is 0.9"),
        (NUMBERS, {"batch": 0}, "`batch` is 0"),
        (NUMBERS, {"draws": True}, "`draws` is True"),
        (NUMBERS, {"seed": -1}, "`seed` is -1"),
    ],
)
def test_refusals(samples, options, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        match_velocities(samples, **options)
    assert "\n" not in str(caught.value)
