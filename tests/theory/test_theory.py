"""Closed forms against printed values and against mpmath."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnflow as af
from attnflow import special, theory


@pytest.mark.parametrize(
    ("beta", "d", "rates"),
    [
        (0.5, 2, [0.484999, 0.240012, 0.044770, 0.004959, 0.000387, 0.000023]),
        (9, 2, [0.104743, 0.351339, 0.591351, 0.704497, 0.664173, 0.522442]),
        (100, 2, [0.009950, 0.039204, 0.086021, 0.147641, 0.220491, 0.300440]),
        (1, 3, [0.626071, 0.365365, 0.102775, 0.018843, 0.002552, 0.000273]),
        (20, 3, [0.095000, 0.257250, 0.441375, 0.600031, 0.698416, 0.722285]),
    ],
)
def test_growth_rate_tables(beta, d, rates):
    np.testing.assert_allclose(theory.uniform.growth_rates(beta, d, k=np.arange(1, 7)), rates, atol=6e-7)


def test_growth_rates_of_usa_and_limits():
    np.testing.assert_allclose(
        theory.uniform.growth_rates(5.0, 2, k=[1, 2, 3, 4], model="USA"),
        [4.86713, 14.0045, 18.5961, 16.3464],
        rtol=1e-5,
    )
    np.testing.assert_allclose(theory.uniform.growth_rates(0.0, 5, k=[0, 1, 2]), [0, 4 / 5, 0], atol=1e-15)
    every = theory.uniform.growth_rates(100.0, 3)
    assert np.argmax(every) + 1 == 14
    assert abs(theory.uniform.growth_rates(1e4, 64).max() - 2 / np.e) < 1e-2
    assert np.argmax(theory.uniform.growth_rates(1e4, 64)) + 1 == 114


@given(beta=st.floats(1e-3, 1e3), d=st.sampled_from([2, 3, 4, 17, 300]), k=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_growth_rates_agree_with_mpmath(beta, d, k):
    nu = mp.mpf(d) / 2 - 1
    with mp.workdps(30):
        exact = k * (k + d - 2) * mp.besseli(k + nu, beta) / (beta * mp.besseli(nu, beta))
    assert abs(theory.uniform.growth_rates(beta, d, k=k) / float(exact) - 1) < 1e-12 if exact > 1e-250 else True


@given(
    x=st.floats(1e-2, 1e4) | st.floats(1e-290, 1e-2),
    order=st.sampled_from([0.0, 0.5, 1.0, 7.5, 20.0, 31.0, 150.0, 2047.0]),
)
@settings(max_examples=60, deadline=None)
def test_log_bessel_agrees_with_mpmath(x, order):
    with mp.workdps(30):
        exact = float(mp.log(mp.besseli(order, x)) - x)
    assert abs(special.log_scaled_bessel(order, x) - exact) < 1e-12 * max(1.0, abs(exact))


@pytest.mark.parametrize(
    ("n", "beta", "t", "model", "value"),
    [
        (2, 1, 1, "SA", 0.5791953369),
        (8, 0, 1, "SA", 0.4440219049),
        (8, 2, 2, "SA", 0.6598737095),
        (32, 5, 5, "SA", 0.2379517099),
        (32, 9, 100, "SA", 0.04599542858),
        (128, 4, 2, "SA", 0.122054324),
        (2, 1, 1, "USA0", 0.4259317134),
        (8, 1, 2, "USA0", 0.3622153255),
        (32, 1, 5, "USA0", 0.7994825811),
    ],
)
def test_equiangular_overlaps(n, beta, t, model, value):
    assert abs(theory.uniform.equiangular_overlap(t, beta, n, model=model) - value) < 1e-9


def test_equiangular_clocks_shapes_and_limits():
    assert theory.uniform.equiangular_overlap(np.exp(-3.0), 3.0, 4, model="USA") == pytest.approx(
        theory.uniform.equiangular_overlap(1.0, 3.0, 4, model="USA0"), abs=1e-10
    )
    grid = theory.uniform.equiangular_overlap(np.array([[2.0, 0.0], [1.0, 3.0]]), 0.0, 8)
    t = np.array([[2.0, 0.0], [1.0, 3.0]])
    np.testing.assert_allclose(grid, np.expm1(2 * t) / (np.exp(2 * t) + 7), atol=1e-10)
    assert theory.uniform.equiangular_overlap(5.0, 2.0, 3, overlap0=-0.5) == pytest.approx(-0.5, abs=1e-12)


@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("beta", [0.5, 9.0])
def test_energy_of_the_uniform_law(d, beta):
    """Against iid tokens: a U-statistic plus the diagonal, n pairs of which are equal."""
    n, seeds = 400, 12
    values = [
        2 * beta * af.observe.energy(af.uniform(af.Sphere(d), n=n, seed=s), beta) * n / (n - 1) for s in range(seeds)
    ]  # removes the diagonal, where the integrand vanishes
    predicted = 2 * beta * theory.landscape.energy_of_uniform(beta, d)
    assert abs(np.mean(values) - predicted) < 5 * np.std(values) / np.sqrt(seeds)


def test_energy_of_clusters_is_the_height_of_plateaus():
    tokens = af.tokens.clustered(af.Sphere(3), centres=np.eye(3), n=12, masses=[0.5, 0.3, 0.2])
    # the clusters are orthogonal: the missing terms are of order e^(-beta)
    assert abs(af.observe.energy(tokens, 30.0) - theory.landscape.energy_of_clusters([0.5, 0.3, 0.2], 30.0)) < np.exp(
        -30.0
    )
    assert theory.landscape.largest_energy0(4.0) == 0.125
    assert theory.landscape.energy_of_clusters([1.0], 4.0) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.uniform.growth_rates(-1.0, 3),
        lambda: theory.uniform.growth_rates(np.nan, 3),
        lambda: theory.uniform.growth_rates(1.0, 1),
        lambda: theory.uniform.growth_rates(1.0, 3, k=-2),
        lambda: theory.uniform.growth_rates(1.0, 3, model="SB"),
        lambda: theory.uniform.equiangular_overlap(1.0, 1.0, 1),
        lambda: theory.uniform.equiangular_overlap(-1.0, 1.0, 4),
        lambda: theory.uniform.equiangular_overlap(1.0, 1.0, 4, overlap0=1.0),
        lambda: theory.landscape.energy_of_uniform(0.0, 3),
        lambda: theory.landscape.largest_energy0(-1.0),
    ],
)
def test_out_of_range_is_refused(call):
    with pytest.raises(ValueError, match="is"):
        call()
