"""Common noise: the martingale holds and Heun's boosts are found out; tokens and waves of the start by hand."""

import dataclasses

import numpy as np
import pytest

from attnflow.random_layers import PoissonKernel
from attnflow_gallery import common_noise
from attnflow_gallery.common_noise import compare, simulate
from tests.experiments.mutants import mutation

QUICK = common_noise.QUICK


def order():
    """The claims about E log|w|^2 and E|w|^2."""
    part = simulate.order(QUICK)
    return compare._logarithm(QUICK, part), compare._order(QUICK, part)


@pytest.mark.slow
def test_the_logarithm_of_the_order_is_a_martingale_and_boosts_of_heun_are_found_out():
    assert [claim.holds for claim in order()] == [True, True]
    with mutation(common_noise, "boosts of Heun: amplitudes from inside the step").applied():
        assert [claim.holds for claim in order()] == [False, False]


@pytest.mark.slow
def test_points_keep_their_masses_and_layers_do_not():
    few = dataclasses.replace(QUICK, paths=2, points=16)
    assert compare._kernel(simulate.kernel(few)).holds
    with mutation(common_noise, "points follow layers in place of boosts").applied():
        assert not compare._kernel(simulate.kernel(few)).holds


def test_waves_of_the_start_are_orthonormal_in_the_measure_of_the_kernel():
    """Trapezoidal rule, whose error falls like w^256; the kernel is that of the library."""
    angle, w = 2 * np.pi * np.arange(256) / 256, 0.5
    rho = simulate.nudged(angle, w, 1, False, 0.0)
    np.testing.assert_allclose(
        rho, PoissonKernel((w, 0.0)).density(np.stack([np.cos(angle), np.sin(angle)], 1)), rtol=1e-13
    )
    waves = [simulate.nudged(angle, w, k, turned, 1.0) / rho - 1 for k in (1, 2, 3) for turned in (False, True)]
    np.testing.assert_allclose(np.mean(rho * np.array(waves), axis=1), 0, atol=1e-13)
    np.testing.assert_allclose(np.array(waves) * rho @ np.transpose(waves) / 256, np.eye(6), atol=1e-13)


def test_tokens_are_drawn_from_the_kernel():
    """c_1 = w and c_2 = w^2: means of unit vectors, 5 standard errors."""
    drawn = simulate.iid(500, QUICK)
    z = drawn[..., 0] + 1j * drawn[..., 1]
    for k in (1, 2):
        assert abs(np.mean(z**k) - 0.5**k) < 5 / np.sqrt(z.size)


def test_errors_by_leaving_one_out_are_those_of_a_mean():
    rows = np.random.default_rng(0).standard_normal((50, 2))
    found, error = compare.jackknife(rows, lambda mean: mean)
    np.testing.assert_allclose(found, rows.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(error, rows.std(axis=0, ddof=1) / np.sqrt(50), rtol=1e-12)


def test_the_decay_of_one_token_to_second_order():
    """E<N(x + sqrt(h) V x), x> on the circle by quadrature: log rho is the exponent to O(h^3)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    for h in (0.04, 0.02):
        along, across = 1 + np.sqrt(h / 2) * nodes[:, None], np.sqrt(h / 2) * nodes
        mass = weights[:, None] * weights / np.sum(weights) ** 2
        rho = np.sum(mass * along / np.hypot(along, across))
        assert np.log(rho) == pytest.approx(np.log(float(compare.average(np.array(h), 2, h))), abs=h**3)


def test_other_heads_are_all_others_of_the_block():
    values = np.arange(2 * simulate.BLOCK)
    for head, rest in zip(values, simulate.others(values), strict=True):
        block = head // simulate.BLOCK * simulate.BLOCK + np.arange(simulate.BLOCK)
        assert sorted([head, *rest]) == list(block)


@pytest.mark.long
def test_heads_matter():
    """Tokens with other heads, and other heads that are the same, are found out."""
    names = ("tokens have other heads than the density", "the other heads are the same")
    few = dataclasses.replace(QUICK, waves=3, heads=256, sizes=(64,))

    def holds(data):
        return [compare._same(few, data).holds, compare._other(few, data).holds]

    right = {"density": simulate.density(few)} | {f"tokens-{n}": simulate.tokens(n, few) for n in few.sizes}
    assert holds(right) == [True, True]
    with mutation(common_noise, names[0]).applied():
        assert not holds(right | {f"tokens-{n}": simulate.tokens(n, few) for n in few.sizes})[0]
    with mutation(common_noise, names[1]).applied():
        assert holds(right | {"density": simulate.density(few)}) == [True, False]
    right["tokens-64"]["mean"][5, 1] = np.nan
    assert holds(right) == [False, False]
