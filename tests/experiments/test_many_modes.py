"""How many modes: the core holds, a wrong kernel is found out; counting by hand; Bessel functions agree."""

import dataclasses

import numpy as np
import pytest
from scipy.special import ive

from attnflow.experiments import Study
from attnflow_gallery import many_modes
from attnflow_gallery.many_modes import compare, simulate
from tests.experiments.mutants import mutation

QUICK = many_modes.QUICK


@pytest.mark.slow
def test_the_core_holds_and_a_kernel_that_is_slightly_narrow_is_found_out(tmp_path):
    """Modes at t = 0, from 4000 draws without a flow, which see 3 % of beta; and along few flows, from larger noise."""
    core = dataclasses.replace(QUICK, exponents=(2.0, 12.0), runs=4)
    data = many_modes.run(core, Study(tmp_path / "parts"))
    assert [claim.holds for claim in many_modes.claims(core, data)[1:3]] == [True, True]
    with mutation(many_modes, "smoothing kernel: beta 3 % larger").applied():
        wrong = many_modes.claims(core, data | {"draws": simulate.drawn(core)})
    assert [claim.holds for claim in wrong[1:3]] == [False, True]


def test_counting_by_hand():
    """cos(3 theta) has three modes, and keeps them with a little of cos(5 theta); the kernel decides between them."""
    rows = np.zeros((3, 21))
    rows[:, 0], rows[:, 3] = 1.0, 1.0
    rows[1, 15], rows[2, 5] = 0.01, 1e4
    assert simulate.count_modes(rows, 2.0, 10, 512).tolist() == [3, 3, 5]


def test_the_kernel_on_the_grid_has_bessel_functions_as_harmonics():
    # sums of 8 x 192 terms of size 1, in relation to I_0
    for beta in (2.0, 100.0):
        expected = ive(np.arange(1, 193), beta) / ive(0, beta)
        np.testing.assert_allclose(simulate.kernel(beta, 192), expected, atol=1e-14)


@pytest.mark.slow
def test_white_noise_is_what_tokens_have():
    """Coefficients of variance eps^2 = 1/n, degrees beyond the kernel left out."""
    for tokens in (False, True):
        starts = [simulate.start(QUICK, 0.01, seed, tokens) for seed in range(20)]
        rows = np.array([start.coefficients for start in starts])
        some = rows[:, (starts[0].basis.degrees > 0) & (starts[0].basis.degrees <= simulate.noise_degree(QUICK.beta))]
        # standard error of a variance
        assert np.mean(some**2) * 1e4 == pytest.approx(1, abs=4 * np.sqrt(2 / some.size))
        assert np.count_nonzero(rows[0]) == 1 + some.shape[1]


@pytest.mark.slow
def test_the_linear_phase_is_that_of_bessel_functions(tmp_path):
    """From the smallest noise every coefficient grows by e^(lambda_k t); read off the root mean square at its end."""
    few = dataclasses.replace(QUICK, runs=3)
    data = many_modes.run(few, Study(tmp_path / "parts"))
    part, most, beta = data[f"eps{max(few.exponents):g}"], max(few.exponents), few.beta
    at = int(compare.linear_times(part)[-1])
    k = np.arange(1, simulate.noise_degree(beta) + 1)
    start = simulate.start(few, 10**-most, simulate.FIRST_SEED, False).coefficients
    cosines, sines = start[1:][: len(k)], start[few.degree + 1 :][: len(k)]
    growth = np.exp(k**2 * ive(k, beta) / (beta * ive(0, beta)) * float(part["time"][at]))
    expected = np.sqrt(np.sum((cosines**2 + sines**2) * growth**2))
    # square of the size reached; steps of 1 with (lambda h)^5/3600 of the logarithm of the growth
    assert float(part["size"][0, at]) == pytest.approx(expected, rel=compare.LINEAR**2 + 0.01)
    assert len(many_modes.draw(few, data).axes) == 3
