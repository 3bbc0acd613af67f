"""Cells of the circle and of the polar angle, and the kernel between them."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from scipy import special as sp

import attnflow as af
from attnflow import meanfield as mf
from attnflow.errors import InvalidInput
from attnflow.meanfield import cells_from_density, circle_cells, hand_over, zonal_cells
from attnflow.precision import full_precision
from tests.meanfield.schemes import _averaged, make_scheme
from tests.meanfield.test_volumes import rate

CIRCLE = mf.CircleBasis(24)


@pytest.mark.parametrize("d", [2, 3, 8, 64])
def test_measure_of_cells(d):
    cells = zonal_cells(d, 48)
    below = sp.betainc((d - 1) / 2, (d - 1) / 2, np.sin(cells.edges / 2) ** 2)
    # logarithms of size d lose d eps; the first cell needs no difference, so its relative error is that too
    np.testing.assert_allclose(cells.measure, np.diff(below), atol=1e-15 * d, rtol=0)
    assert cells.measure[0] == pytest.approx(below[1], rel=1e-14 * d)
    constant = sp.gammaln(d / 2) - sp.gammaln((d - 1) / 2) - np.log(np.pi) / 2
    np.testing.assert_allclose(cells.log_area[24], constant, atol=1e-15 * d)
    np.testing.assert_allclose(cells.centroids + cells.centroids[::-1], np.pi, rtol=1e-13)
    if d == 3:  # the distribution sin: its mean is that of sin - t cos between the edges
        t = cells.edges
        exact = np.diff(np.sin(t) - t * np.cos(t)) / -np.diff(np.cos(t))
        np.testing.assert_allclose(cells.centroids, exact, rtol=1e-11)  # differences of pi over 2e-3
    assert np.isfinite(zonal_cells(4096, 128).log_measure).all()


def test_masses_of_a_density():
    cells = circle_cells(16)
    masses = cells_from_density(cells, mf.von_mises_fisher(CIRCLE, 2.0, [1.0, 0.0]))
    for i in (0, 5):
        exact = integrate.quad(lambda t: np.exp(2 * np.cos(t)), *cells.edges[i : i + 2])[0] / (2 * np.pi * sp.i0(2))
        assert masses[i] == pytest.approx(exact, rel=1e-12)
    belts = zonal_cells(3, 16)  # 1 + s/2 on S^2, where s is uniform on [-1, 1]
    s = np.cos(belts.edges)
    exact = (s[:-1] - s[1:]) / 2 + (s[:-1] ** 2 - s[1:] ** 2) / 8
    np.testing.assert_allclose(cells_from_density(belts, mf.perturbed(mf.ZonalBasis(3, 4), 1, 0.5)), exact, rtol=1e-13)


@pytest.mark.parametrize(("d", "beta"), [(2, 0.5), (3, 9.0), (8, 30.0), (64, 9.0)])
def test_kernel_between_belts(d, beta):
    cells = zonal_cells(d, 48)
    averaged = np.exp(beta * _averaged(cells, beta))
    degree = mf.needed_degree(beta, d, 1e-14)
    basis = mf.ZonalBasis(d, degree)
    table = np.array([basis.evaluate(row, heights=np.cos(cells.centres)) for row in np.eye(degree + 1)])
    series = (table.T * np.asarray(mf.multipliers(beta, d, degree))) @ table  # Funk-Hecke
    i, j = np.indices(series.shape)
    far = np.abs(i - j) > 1
    # terms of the series are below the kernel's maximum 1, but its factors reach the sensitivity of the basis
    np.testing.assert_allclose(averaged[far], series[far], atol=1e-13)
    near = np.abs(i - j) <= 1  # moved by at most 2/3 of beta width^2/2
    np.testing.assert_allclose(averaged[near], series[near], atol=beta * cells.width**2 / 3)
    scheme = make_scheme(af.Attention(beta), cells)
    np.testing.assert_array_equal(scheme.kernel.table, scheme.kernel.table.T)
    with full_precision():
        assert np.max(np.abs(rate(scheme, jnp.asarray(cells.measure)))) < 1e-13  # the uniform measure stands still


@pytest.mark.parametrize("d", [2, 3, 5])
def test_tokens_of_cells(d):
    cells = zonal_cells(d, 12) if d > 2 else circle_cells(12)
    masses = np.arange(12.0) / 66
    tokens = hand_over(cells, masses, copies=2)
    assert np.sum(tokens.masses) == pytest.approx(1)
    heights = np.cos(cells.centres) @ masses
    at = tokens.positions[:, -1] if d > 2 else tokens.positions[:, 0]
    assert at @ tokens.masses == pytest.approx(heights, abs=1e-14)
    if d > 2:  # even about the axis: the moments across vanish
        across = tokens.positions[:, :-1]
        np.testing.assert_allclose(tokens.masses @ across, 0, atol=1e-14)
        second = (across.T * tokens.masses) @ across
        np.testing.assert_allclose(second, np.eye(d - 1) * (np.sin(cells.centres) ** 2 @ masses) / (d - 1), atol=1e-14)


def test_refused_cells():
    for dim, count in ((1, 32), (3, 7), (2.5, 32)):
        with pytest.raises(InvalidInput, match="give an integer from"):
            zonal_cells(dim, count)
    with pytest.raises(InvalidInput, match="these cells need ZonalBasis"):
        cells_from_density(zonal_cells(2, 16), mf.uniform(CIRCLE))
    with pytest.raises(InvalidInput, match="these cells need CircleBasis"):
        cells_from_density(circle_cells(16), mf.uniform(mf.ZonalBasis(2, 4)))
