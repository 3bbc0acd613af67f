"""Exit times: the quick version holds, its theory agrees with others, and wrong starts, masses or beta are found out."""

import dataclasses
import math

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import exit_times
from attnflow.fields import Attention
from attnflow.spaces import Sphere
from attnflow.theory import limit_staircase, log_merge_time, meeting_point
from attnflow.tokens import Tokens, uniform

QUICK = exit_times.QUICK


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return exit_times.run(QUICK, Study(tmp_path_factory.mktemp("exit") / "parts"))


def failures(data, parameters=QUICK):
    return [claim.statement for claim in exit_times.claims(parameters, data) if not claim.holds]


@pytest.mark.slow
def test_the_quick_version_holds(quick):
    assert failures(quick) == []
    assert len(exit_times.claims(QUICK, quick)) == 4 + 1 + 2 * 4
    assert len(exit_times.draw(QUICK, quick).axes) == 4


@pytest.mark.slow
def test_a_merge_that_is_not_made_or_not_known_fails(quick):
    data = {name: part.copy(deep=True) for name, part in quick.items()}
    data["2-S2-USA0-25"]["log_time"][7] = np.inf
    data["8-S2-USA0-100"]["undetermined"][3, 2] = True
    found = failures(data)
    assert sum("merges not made, or changed by rounding" in words for words in found) == 2
    assert any("log T is that of the angle (worst of 32: seed 7)" in words for words in found)


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_the_staircase_of_far_clusters_is_pair_after_pair(model):
    """On the circle, by hand: 0 and 1 at 0.5, then theirs and 2; beta makes the third's pull e^(-50) of the first's."""
    beta, until, angles = 200.0, 1e-4, np.array([0.0, 0.5, 1.6])
    x, m = np.stack([np.cos(angles), np.sin(angles)], axis=1), np.array([0.2, 0.3, 0.5])
    found = exit_times.staircase(x, m, beta, model, until)
    first = float(log_merge_time(0.5, beta, (0.2, 0.3), until, model))
    left = 1.6 - float(meeting_point(0.5, beta, (0.2, 0.3), model))
    second = float(log_merge_time(left, beta, (0.5, 0.5), until, model))
    np.testing.assert_allclose(found.log_time, [first, np.logaddexp(first, second)], rtol=1e-12)
    gap = beta * (math.cos(0.5) - math.cos(1.1))
    # speeds differ by masses and sines, a factor of 10, the tide by 1 + beta, and a move by 2 beta
    assert 0 < found.doubt[0] < 20 * beta * math.exp(-gap)
    np.testing.assert_array_equal(np.maximum.accumulate(found.doubt), found.doubt)
    assert np.all(found.bound <= found.doubt * (1 + 1e-12))


def test_the_staircase_does_not_depend_on_names_and_has_the_limit():
    x, m = np.asarray(uniform(Sphere(3), n=8, seed=4).positions), np.full(8, 1 / 8)
    order = np.random.default_rng(0).permutation(8)
    one, other = (exit_times.staircase(y, m, 1e4, "USA0", 1e-6) for y in (x, x[order]))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    # log T = beta u - log(M beta sin^2) + ..., and at most 7 such times add up
    assert np.abs(one.log_time / 1e4 - limit_staircase(x, m, "USA0").s).max() < 3 * math.log(1e4) / 1e4


@pytest.mark.parametrize(("dim", "model"), [(2, "SA"), (3, "USA0")])
def test_the_law_of_pairs_is_that_of_their_angles(dim, model):
    log_times, shares = exit_times.pair_law(dim, 25.0, model, 1e-4)
    assert np.all(np.diff(log_times) > 0)
    angle = np.array([0.3, 1.0, np.pi / 2, 3.0])
    want = angle / np.pi if dim == 2 else (1 - np.cos(angle)) / 2
    found = np.interp(log_merge_time(angle, 25.0, (0.5, 0.5), 1e-4, model), log_times, shares)
    np.testing.assert_allclose(found, want, atol=1e-4)  # of the lines between points


def test_two_tokens_hold_and_a_wrong_beta_or_law_is_found_out(tmp_path, monkeypatch):
    """One part in a thousand is 0.02 of log T; pushed to one side, tokens meet as their angle says, but too early."""
    pairs = dataclasses.replace(QUICK, cases=())
    assert failures(exit_times.run(pairs, Study(tmp_path / "right")), pairs) == []
    with monkeypatch.context() as patch:
        patch.setattr(exit_times, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-3), **rest))
        found = failures(exit_times.run(pairs, Study(tmp_path / "beta")), pairs)
    assert any("log T is that of the angle" in one for one in found)
    monkeypatch.setattr(exit_times, "uniform", pushed)
    found = failures(exit_times.run(pairs, Study(tmp_path / "distribution")), pairs)
    assert any("Kolmogorov distance" in one for one in found)
    assert not any("log T is that of the angle" in one for one in found)


def pushed(space, *, n, seed):
    """To one side."""
    x = np.asarray(uniform(space, n=n, seed=seed).positions) + [1.0, 0.0, 0.0]
    return Tokens(x / np.linalg.norm(x, axis=-1, keepdims=True), dims=["seed"])


@pytest.mark.slow
def test_a_slightly_wrong_beta_is_found_out(quick, tmp_path, monkeypatch):
    """One part in a thousand is 0.02 of log T of two tokens, and 0.1 of the exit."""
    monkeypatch.setattr(exit_times, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-3), **rest))
    found = failures(exit_times.run(QUICK, Study(tmp_path / "parts")))
    for words in (
        "log T is that of the angle",
        "first merge, log T is a sum",
        "exit from two clusters, log T is a sum",
    ):
        assert any(words in one for one in found), words


@pytest.mark.slow
def test_unequal_masses_are_found_out(quick, tmp_path, monkeypatch):
    """The theory takes tokens of mass 1/n; a lighter one makes pairs slower."""

    def weighted(space, *, n, seed):
        positions = uniform(space, n=n, seed=seed).positions
        return Tokens(positions, np.broadcast_to(np.arange(1, n + 1), positions.shape[:-1]), dims=["seed"])

    monkeypatch.setattr(exit_times, "uniform", weighted)
    found = failures(exit_times.run(dataclasses.replace(QUICK, pairs=()), Study(tmp_path / "parts")))
    assert any("first merge, log T is a sum" in one for one in found)
