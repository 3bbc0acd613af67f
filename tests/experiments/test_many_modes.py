"""How many modes: the quick version holds; counting by hand; wrong kernels and distributions are found out."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from attnflow import theory
from attnflow.experiments import Study
from attnflow.experiments.gallery import many_modes


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return many_modes.run(many_modes.QUICK, Study(tmp_path_factory.mktemp("modes") / "parts"))


def failed(data):
    return [claim.statement for claim in many_modes.claims(many_modes.QUICK, data) if not claim.holds]


def test_few_seeds_of_the_smallest_noise_and_a_wrong_law(tmp_path, monkeypatch):
    """From 1e-40: M(t) modes while it is linear and k_max clusters at the end; not for a kernel of half the width."""
    few = dataclasses.replace(many_modes.QUICK, exponents=(40.0,), tokens=0, seeds=6)
    data = many_modes.run(few, Study(tmp_path / "parts"))

    def verdicts(data):
        found = many_modes.claims(few, data)[:2]  # the others compare two sizes of the noise
        assert ["M(t)" in found[0].statement, "k_max" in found[1].statement] == [True, True]
        return [claim.holds for claim in found]

    assert verdicts(data) == [True, True]
    part = data["eps40"]
    assert verdicts({"eps40": part.assign(final=part["final"] - 1)}) == [True, False]
    right = theory.linear_modes
    monkeypatch.setattr(many_modes.theory, "linear_modes", lambda t, beta: right(t, 2 * beta))
    assert not verdicts(data)[0]


@pytest.mark.slow
def test_the_quick_version_holds(quick):
    assert failed(quick) == []
    assert len(many_modes.claims(many_modes.QUICK, quick)) == 3 + 3
    assert len(many_modes.draw(many_modes.QUICK, quick).axes) == 3


def test_counting_by_hand():
    """cos(3 theta) has three modes, and keeps them with a little of cos(5 theta); the kernel decides between them."""
    rows = np.zeros((3, 21))
    rows[:, 0], rows[:, 3] = 1.0, 1.0
    rows[1, 15], rows[2, 5] = 0.01, 1e4
    beta = 2.0
    assert many_modes.count_modes(rows, beta, 10, 512).tolist() == [3, 3, 5]
    multipliers = np.cumprod(many_modes._quotients(beta, 10))
    np.testing.assert_allclose(multipliers, ive(np.arange(1, 11), beta) / ive(0, beta), rtol=1e-12)


@pytest.mark.slow
def test_white_noise_is_what_tokens_have():
    """Coefficients of variance eps^2 = 1/n, degrees beyond the kernel left out."""
    for tokens in (False, True):
        starts = [many_modes.start(many_modes.QUICK, 0.01, seed, tokens) for seed in range(20)]
        rows = np.array([start.coefficients for start in starts])
        some = rows[:, (starts[0].basis.degrees > 0) & (starts[0].basis.degrees <= many_modes.noise_degree(20.0))]
        # standard error of a variance from 20 * 56 numbers: sqrt(2/1120) = 0.042
        assert np.mean(some**2) * 1e4 == pytest.approx(1, abs=4 * 0.042)
        assert np.count_nonzero(rows[0]) == 1 + some.shape[1]


@pytest.mark.slow
def test_the_linear_phase_is_that_of_bessel_functions(quick):
    """From 1e-40 every coefficient grows by e^(lambda_k t); read off the root mean square at its end."""
    part = quick["eps40"]
    at = int(many_modes.linear_times(part)[-1])
    k = np.arange(1, many_modes.noise_degree(20.0) + 1)
    start = many_modes.start(many_modes.QUICK, 1e-40, many_modes.QUICK.first_seed, False).coefficients
    cosines, sines = start[1:][: len(k)], start[many_modes.QUICK.degree + 1 :][: len(k)]
    growth = np.exp(k**2 * ive(k, 20.0) / (20 * ive(0, 20.0)) * float(part["time"][at]))
    expected = np.sqrt(np.sum((cosines**2 + sines**2) * growth**2))
    # square of the size reached; steps of 1 with (lambda h)^5/3600 of the logarithm of the growth, 92
    assert float(part["size"][0, at]) == pytest.approx(expected, rel=many_modes.LINEAR**2 + 0.01)


@pytest.mark.slow
def test_wrong_laws_are_found_out(quick, monkeypatch):
    """A count as of tokens that never moved, and a kernel of half the width."""
    right = theory.linear_modes
    monkeypatch.setattr(many_modes.theory, "linear_modes", lambda t, beta: right(t, 2 * beta))
    assert len([words for words in failed(quick) if "M(t)" in words]) >= 2
    monkeypatch.setattr(many_modes.theory, "linear_modes", right)
    monkeypatch.setattr(many_modes.theory, "dominant_degree", lambda beta, d: 7)
    assert any("k_max" in words for words in failed(quick))
