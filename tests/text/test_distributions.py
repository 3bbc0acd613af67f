"""Next-token laws: against closed forms, plain NumPy and the decomposition of the entropy."""

import jax
import numpy as np
import pytest
from scipy import special as sp

import attnflow as af
from attnflow.errors import InvalidInput
from tests.marks import graded

ROUNDING = 1e-12
"""Sums of at most 600 terms of size 1, each rounded to 1e-16, and logits of size 40: 40 * 600 * 1e-16 is below it."""
READOUTS = {"mixture": af.text.Mixture(), "kernel": af.text.KernelSum(), "last": af.text.LastToken()}


def plain(x, masses, words, beta, name):
    """The three read-outs as their definitions say, without logarithms."""
    weights = np.exp(beta * x @ words.T)
    laws = weights / weights.sum(axis=1, keepdims=True)
    if name == "mixture":
        return masses @ laws
    return masses @ weights / (masses @ weights).sum() if name == "kernel" else laws[-1]


@graded("name", READOUTS)
def test_read_outs_are_what_they_say(name):
    rng = np.random.default_rng(0)
    tokens = af.Tokens(af.uniform(af.Sphere(3), n=40, seed=1).positions, rng.random(40))
    words = rng.standard_normal((300, 3))
    law = af.text.next_token_distribution(tokens, words, beta=3.0, readout=READOUTS[name])
    assert law.probabilities == pytest.approx(plain(tokens.positions, tokens.masses, words, 3.0, name), rel=ROUNDING)
    assert law.entropy == pytest.approx(sp.entr(law.probabilities).sum(), rel=ROUNDING)
    assert law.weights.sum() == pytest.approx(1.0, rel=ROUNDING)
    rows = [af.text.next_token_distribution(af.Tokens(row[None]), words, beta=3.0) for row in tokens.positions[:3]]
    again = sum(w * row.probabilities for w, row in zip(law.weights, rows, strict=False))
    logits = af.text.distribution_of_logits(3.0 * tokens.positions @ words.T, tokens.masses, readout=READOUTS[name])
    assert logits.probabilities == pytest.approx(law.probabilities, rel=ROUNDING)
    assert (again <= law.probabilities * (1 + ROUNDING)).all()


@pytest.mark.parametrize(("beta", "first", "information"), [(1.0, 0.5924234, 0.0937612), (3.0, 0.6810297, 0.4352259)])
def test_two_orthogonal_words(beta, first, information):
    """p_1 = M s + (1 - M)(1 - s), s = 1/(1 + e^(-beta)); seven digits of a derivation on paper."""
    law = af.text.next_token_distribution(af.Tokens(np.eye(2), [0.7, 0.3]), np.eye(2), beta=beta)
    assert law.probabilities[0] == pytest.approx(first, abs=5.1e-8)
    assert law.information == pytest.approx(information, abs=5.1e-8)


def test_limits():
    words = af.uniform(af.Sphere(3), n=12, seed=2).positions
    prompt = af.Tokens(words[[0, 0, 3, 7]])
    cold = af.text.next_token_distribution(prompt, words, beta=4000.0)
    assert cold.probabilities[[0, 3, 7]] == pytest.approx([0.5, 0.25, 0.25], abs=ROUNDING)  # the words of the prompt
    assert cold.alternatives == pytest.approx(np.exp(sp.entr([0.5, 0.25, 0.25]).sum()), rel=1e-10)
    hot = af.text.next_token_distribution(prompt, words, beta=0.0)
    assert hot.entropy == pytest.approx(np.log(12), rel=ROUNDING)
    together = af.text.next_token_distribution(af.Tokens(words[[5, 5, 5, 5]]), words, beta=9.0)
    assert together.alternatives == pytest.approx(1.0, abs=ROUNDING)


@pytest.mark.slow
def test_absent_rows_and_batches_change_nothing():
    words = np.random.default_rng(3).standard_normal((300, 3))
    parts = [af.uniform(af.Sphere(3), n=n, seed=n) for n in (12, 40)]
    batch = af.stack("text", [0, 1], parts)
    for readout in READOUTS.values():
        both = af.text.next_token_distribution(batch, words, beta=3.0, readout=readout)
        for k, part in enumerate(parts):
            alone = af.text.next_token_distribution(part, words, beta=3.0, readout=readout)
            assert both.probabilities[k] == pytest.approx(alone.probabilities, rel=ROUNDING)
            assert both.information[k] == pytest.approx(alone.information, abs=ROUNDING)


def test_tokens_without_mass_have_no_part():
    """The first block of tokens has no mass, and log Z of all others is about -1000: no sum may underflow."""
    words = np.tile([1.0, 0.0, 0.0], (7, 1)) + 0.1 * np.eye(7, 3)
    away = af.Tokens(np.tile([-1.0, 0.0, 0.0], (40, 1)), [0.0] * 33 + [1.0] * 7)
    law = af.text.next_token_distribution(away, words, beta=1000.0, readout=af.text.KernelSum())
    assert law.probabilities.sum() == pytest.approx(1.0, rel=ROUNDING)
    assert law.information == pytest.approx(0.0, abs=1e-9)  # logits of 1000 are rounded at 1e-13


@pytest.mark.slow
def test_alternatives_inside_a_flow():
    words = np.eye(3)
    tokens = af.Tokens(np.eye(3))
    observe = {"a": af.text.alternatives.of(words=words, beta=30.0)}
    flow = af.solve(af.Attention(1.0), tokens, 8.0, save=4, observe=observe)
    assert flow.dataset["a"].values[0] == pytest.approx(3.0, rel=1e-6)  # e^-30 is 1e-13
    assert (np.diff(flow.dataset["a"].values) <= 0).all()
    assert flow.dataset["a"].values[-1] < 1.1


def test_refusals():
    tokens = af.Tokens(np.eye(3))
    with pytest.raises(InvalidInput, match=r"`words` has shape \(2, 4\); give one row of 3 numbers for each word"):
        af.text.next_token_distribution(tokens, np.ones((2, 4)))
    with pytest.raises(InvalidInput, match=r"`words` has shape \(0, 3\); give one row"):
        af.text.next_token_distribution(tokens, np.ones((0, 3)))
    with pytest.raises(InvalidInput, match="`words` has an entry that is not finite"):
        af.text.next_token_distribution(tokens, np.full((2, 3), np.nan))
    with pytest.raises(InvalidInput, match="`readout` is 'mixture'"):
        af.text.next_token_distribution(tokens, np.eye(3), readout="mixture")
    with pytest.raises(InvalidInput, match="`logits` is"):
        af.text.distribution_of_logits([1.0, 2.0])
    with pytest.raises(InvalidInput, match="`masses` has shape"):
        af.text.distribution_of_logits(np.ones((2, 3)), [1.0])


def test_the_logarithm_of_the_number_of_alternatives_has_a_derivative():
    def loss(beta):
        return af.text.alternatives(af.Measure(np.eye(2), np.array([0.7, 0.3])), np.eye(2), beta=beta)

    step = 1e-5
    slope = (loss(1.0 + step) - loss(1.0 - step)) / (2 * step)
    assert af.in_float64(jax.grad(loss))(1.0) == pytest.approx(slope, rel=1e-8)  # step^2, times third derivatives
