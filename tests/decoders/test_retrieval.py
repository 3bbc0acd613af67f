"""Retrieval profiles: control variates have the means that are claimed for them, and the closure of theory is met."""

import numpy as np
import pytest
from scipy import linalg
from scipy import special as sp

import attnflow as af
from attnflow.decoders import RetrievalProfile, retrieval, retrieval_profile, uniform_prompts
from attnflow.errors import InvalidInput
from tests.marks import graded

N = 24


def closure(n, rate, until, slope, dilution=0.0):
    """n times the last row of exp(a t W), W_ik = e^{-slope (i-k)}/(sum over k < i + dilution)."""
    back = np.subtract.outer(np.arange(n), np.arange(n))
    seen = np.where(back > 0, np.exp(-slope * np.maximum(back, 0)), 0.0)
    weights = seen / np.maximum(seen.sum(axis=1, keepdims=True) + dilution, 1e-300)
    return n * linalg.expm(rate * until * weights)[-1, :-1]


@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_legendre_polynomials_and_their_slopes(d, degree):
    s = np.linspace(-0.99, 0.99, 41)
    assert retrieval.legendre(degree, d, np.ones(1)) == pytest.approx(1.0, abs=1e-14)
    h = 1e-5  # central differences: h^2 P'''/6 with P''' < 1e4, and eps/h
    slope = (retrieval.legendre(degree, d, s + h) - retrieval.legendre(degree, d, s - h)) / (2 * h)
    np.testing.assert_allclose(retrieval.legendre_slope(degree, d, s), slope, rtol=0, atol=1e-6)
    nodes, weights = sp.roots_gegenbauer(40, d / 2 - 1) if d > 2 else sp.roots_chebyt(40)
    assert abs(weights @ retrieval.legendre(degree, d, nodes)) < 1e-13  # orthogonal to constants


@pytest.mark.parametrize("mask", [af.Causal(), af.Causal(slope=0.3), af.Window(3)])
def test_weights_of_a_mask_sum_to_one(mask):
    assert retrieval._weights(af.Attention(1.0, mask=mask), np.arange(8)).sum() == pytest.approx(1.0, rel=1e-14)


def test_prompts_are_followed_in_batches(monkeypatch):
    """As many as have `PAIRS` pairs of tokens together, at least 4; 12 prompts are three batches of 4."""
    monkeypatch.setattr(retrieval, "PAIRS", 4 * 8**2)
    done = []
    field = af.Attention(1.0, mask=af.Causal())
    found = retrieval_profile(field, n=8, until=0.1, prompts=12, bins=2, on_progress=done.append)
    assert found.prompts == 12
    assert [(at.time, at.until, at.frames) for at in done] == [(4, 12, 4), (8, 12, 8), (12, 12, 12)]


@graded(
    ("field", "d", "degree"),
    [
        (af.Attention(1.0, mask=af.Causal(slope=1 / N)), 2, 1),
        (af.Attention(2.0, mask=af.Causal(), normaliser=af.Unnormalised("grad")), 3, 2),
        (af.Attention(3.0, mask=af.Window(7)), 4, 1),
    ],
    fast=1,
)
def test_control_variates_have_mean_zero(field, d, degree):
    """To 4.5 standard errors, for 8 bins and 2 variates each: level 1e-4."""
    start = uniform_prompts(N, d, 20_000, 11)
    edges = np.linspace(0, 1, 9)
    with np.errstate(all="raise", under="ignore"):
        found = retrieval._columns(field, start, np.asarray(start.positions)[:, -1], degree, retrieval._bins(N, edges))
    controls = found[:, 1:].reshape(len(found), -1)
    error = controls.std(axis=0) / np.sqrt(len(controls))
    assert (error[8:] > 0).any()
    assert (np.abs(controls.mean(axis=0)) <= 4.5 * error).all()


def test_the_mean_of_the_first_order_is_the_rate_of_theory():
    """E[e^{beta q} (1 - q^2) P_k'(q)] = a_k of the clock USA = k (k + d - 2) lambda_k/beta; here beta = 4, d = 3."""
    for degree, rate in zip((1, 2, 3), (2.56071919, 4.47210077, 4.18406324), strict=True):
        found = retrieval._mean_pull(af.kernels.Exponential(4.0), degree, 3) * np.exp(4)  # the profile is 1 at q = 1
        assert found == pytest.approx(rate, rel=5e-8)


@pytest.mark.slow
def test_it_agrees_with_the_closure_and_with_the_plain_average():
    """USA on the circle at a t = 0.28: next order of the closure is below 1 % of it here; 4 bins at 4 standard errors."""
    field = af.Attention(1.0, mask=af.Causal(slope=1 / N, strict=True), normaliser=af.Unnormalised("USA"))
    found = retrieval_profile(field, n=N, until=0.5, prompts=4000, bins=[0.25, 0.5, 0.75, 1.0], seed=3)
    plain = retrieval_profile(field, n=N, until=0.5, prompts=4000, bins=[0.25, 0.5, 0.75, 1.0], seed=3, controls=False)
    np.testing.assert_array_equal(plain.standard_error, found.plain_error)
    assert (found.standard_error < plain.standard_error / 10).all()
    assert (np.abs(found.mean - plain.mean) < 4 * plain.standard_error).all()
    row = closure(N, sp.iv(1, 1.0), 0.5, 1 / N)
    want = [row[g - 1].mean() for g in retrieval._bins(N, found.edges)]
    off = np.abs(found.mean - want)
    assert (off < 4 * found.standard_error + 0.02 * np.abs(want)).all(), (found.mean, want, found.standard_error)
    other = closure(N, sp.iv(1, 1.0), 0.5, 0.0)  # without the slope the last bin is 20 % lower
    assert np.abs(found.mean[-1] - other[-6:].mean()) > 6 * found.standard_error[-1]


def test_bins_and_progress():
    seen = []
    found = retrieval_profile(
        af.Attention(1.0, mask=af.Causal()), n=8, until=0.1, prompts=16, bins=2, on_progress=seen.append
    )
    assert found.prompts >= 16
    assert seen[-1].note == "prompt 16 of 16"
    np.testing.assert_allclose(found.place, [2.5 / 8, 6 / 8])
    assert "2 bins of 8 tokens" in repr(found)


def test_more_prompts_are_those_of_one_call():
    field = af.Attention(1.0, mask=af.Causal())
    given = {"n": 6, "until": 0.2, "bins": 2}
    whole = retrieval_profile(field, prompts=24, batch=8, **given)
    part = retrieval_profile(field, prompts=8, **given)  # one batch
    assert part.work.batch == 8
    more = part.continued(20)
    assert more.prompts == 24
    for name in ("mean", "standard_error", "plain_error"):
        np.testing.assert_array_equal(getattr(more, name), getattr(whole, name))
    with pytest.raises(InvalidInput, match="`batch` is not given"):
        RetrievalProfile(field, 6, 0.2).longer(10_000)


def test_an_interrupted_profile_has_the_estimates_so_far():
    field, calls = af.Attention(1.0, mask=af.Causal()), []
    given = {"n": 6, "until": 0.2, "bins": 2, "batch": 8}
    part = retrieval_profile(field, prompts=40, cancel=lambda: len(calls) > 1, on_progress=calls.append, **given)
    assert part.outcome.ending.value == "interrupted"
    assert part.prompts in (16, 24)
    np.testing.assert_array_equal(part.mean, retrieval_profile(field, prompts=part.prompts, **given).mean)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n": 1}, "`n` is 1"),
        ({"bins": 40}, "use fewer bins"),
        ({"bins": [0.5, 0.2]}, "increasing from 0 to 1"),
        ({"bins": "many"}, "number of bins"),
        ({"until": 0.0}, "`until` is 0"),
        ({"prompts": 3}, "`prompts` is 3"),
        ({"batch": 0, "bins": 2}, "`batch` is 0"),
        ({"batch": 10**13, "bins": 2}, "prompts of 8 tokens"),
        ({"field": af.Attention(af.Along("beta", [1.0, 2.0]))}, "one system"),
        ({"field": 3}, "`field` is"),
    ],
)
def test_refusals(wrong, words):
    given = {"field": af.Attention(1.0, mask=af.Causal()), "n": 8, "until": 0.1, **wrong}
    with pytest.raises(InvalidInput, match=words):
        retrieval_profile(given.pop("field"), **given)
