"""Retrieval profiles: control variates have the means that are claimed for them, and the closure of theory is met."""

import numpy as np
import pytest
from scipy import linalg
from scipy import special as sp

import attnflow as af
from attnflow.decoders import RetrievalProfile, retrieval_profile, uniform_prompts
from attnflow.errors import InvalidInput
from tests.marks import graded

N = 24


def closure(n, rate, until, slope, dilution=0.0):
    """n times the last row of exp(a t W), W_ik = e^{-slope (i-k)}/(sum over k < i + dilution)."""
    back = np.subtract.outer(np.arange(n), np.arange(n))
    seen = np.where(back > 0, np.exp(-slope * np.maximum(back, 0)), 0.0)
    weights = seen / np.maximum(seen.sum(axis=1, keepdims=True) + dilution, 1e-300)
    return n * linalg.expm(rate * until * weights)[-1, :-1]


POLYNOMIALS = {
    1: lambda s, d: (s, np.ones_like(s)),
    2: lambda s, d: ((d * s**2 - 1) / (d - 1), 2 * d * s / (d - 1)),
    3: lambda s, d: (((d + 2) * s**3 - 3 * s) / (d - 1), (3 * (d + 2) * s**2 - 3) / (d - 1)),
}
"""degree -> P_k(s) in dimension d with P_k(1) = 1, and its slope."""


def mean_of_first_order(beta, d, degree):
    """E[e^{beta (q - 1)} (1 - q^2) P_k'(q)] for the overlap q of independent uniform tokens."""
    nodes, weights = sp.roots_gegenbauer(40, d / 2 - 1) if d > 2 else sp.roots_chebyt(40)
    values = np.exp(beta * (nodes - 1)) * (1 - nodes**2) * POLYNOMIALS[degree](nodes, d)[1]
    return weights @ values / weights.sum()


def control_variates(mask, weights, beta, d, degree, mean):
    """Control variates of the 7 earlier tokens of 8 prompts: from a profile with one token in a bin, and by hand."""
    bins, start = np.arange(8) / 8, uniform_prompts(8, d, 8, (0, 8, d, 0)).positions
    found = retrieval_profile(af.Attention(beta, mask=mask), n=8, until=0.1, d=d, degree=degree, prompts=8, bins=bins)
    x, last = start[:, :-1], start[:, -1]
    q = np.einsum("pjd,pd->pj", x, last)
    value, slope = POLYNOMIALS[degree](q, d)
    drive = np.einsum("pj,pjd->pd", weights * np.exp(beta * (q - 1)), x)
    drive -= np.sum(drive * last, axis=1, keepdims=True) * last
    first_order = slope * np.einsum("pd,pjd->pj", drive, x) - weights * mean
    return found.dataset["columns"].values[:, 1:], 8 * np.stack([value, first_order], axis=1)


@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_legendre_polynomials_and_their_slopes(d, degree):
    """They make the control variates: P_k of the overlap, and the first order in time."""
    mean = mean_of_first_order(1.0, d, degree)
    found, expected = control_variates(af.Causal(), np.full(7, 1 / 7), 1.0, d, degree, mean)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("mask", "heard"),
    [(af.Causal(), np.ones(7)), (af.Causal(slope=0.3), np.exp(0.3 * np.arange(7))), (af.Window(3), np.arange(7) > 4)],
)
def test_weights_of_a_mask_sum_to_one(mask, heard):
    """The last token hears the earlier ones of its window."""
    mean = mean_of_first_order(2.0, 3, 2)
    found, expected = control_variates(mask, heard / heard.sum(), 2.0, 3, 2, mean)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_prompts_are_followed_in_batches(faults):
    """As many as have `PAIRS` pairs of tokens together, at least 4; 12 prompts are three batches of 4."""
    faults.replace("pairs of a batch of prompts", 4 * 8**2)
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
    slow=1,
)
def test_control_variates_have_mean_zero(field, d, degree):
    """To 4.5 standard errors, for 8 bins and 2 variates each: level 1e-4."""
    with np.errstate(all="raise", under="ignore"):
        found = retrieval_profile(field, n=N, until=0.1, d=d, degree=degree, prompts=20_000, seed=11)
    controls = found.dataset["columns"].values[:, 1:].reshape(20_000, -1)
    error = controls.std(axis=0) / np.sqrt(len(controls))
    assert (error[8:] > 0).any()
    assert (np.abs(controls.mean(axis=0)) <= 4.5 * error).all()


def test_the_mean_of_the_first_order_is_the_rate_of_theory():
    """E[e^{beta q} (1 - q^2) P_k'(q)] = a_k of the clock USA = k (k + d - 2) lambda_k/beta; here beta = 4, d = 3."""
    for degree, rate in zip((1, 2, 3), (2.56071919, 4.47210077, 4.18406324), strict=True):
        found, expected = control_variates(af.Causal(), np.full(7, 1 / 7), 4.0, 3, degree, rate * np.exp(-4))
        np.testing.assert_allclose(found, expected, atol=5e-8 * rate * np.exp(-4))  # eight digits, times n w = 8/7


@pytest.mark.long
def test_it_agrees_with_the_closure_and_with_the_plain_average():
    """USA on the circle at a t = 0.28: next order of the closure is below 1 % of it here; 4 bins at 4 standard errors."""
    field = af.Attention(1.0, mask=af.Causal(slope=1 / N, strict=True), normaliser=af.Unnormalised("USA"))
    found = retrieval_profile(field, n=N, until=0.5, prompts=4000, bins=[0.25, 0.5, 0.75, 1.0], seed=3)
    plain = retrieval_profile(field, n=N, until=0.5, prompts=4000, bins=[0.25, 0.5, 0.75, 1.0], seed=3, controls=False)
    np.testing.assert_array_equal(plain.standard_error, found.plain_error)
    assert (found.standard_error < plain.standard_error / 10).all()
    assert (np.abs(found.mean - plain.mean) < 4 * plain.standard_error).all()
    row = closure(N, sp.iv(1, 1.0), 0.5, 1 / N)
    want = [row[6:12].mean(), row[12:18].mean(), row[18:].mean()]  # of tokens 7 to 23
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
