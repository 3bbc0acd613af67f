import numpy as np
import pytest
from scipy import special as sp

import attnflow as af
from attnflow import meanfield as mf
from attnflow import theory
from attnflow.errors import InvalidInput, TooLarge
from attnflow.meanfield import as_model, linearised, rotations, stability
from attnflow.meanfield.analysis.linearised import _sector_matrix, free_entries
from tests.marks import graded

SA = af.Attention(4.0)
USA0 = af.Attention(4.0, normaliser=af.Unnormalised())
CASES = {
    "circle": (mf.CircleBasis(20), SA, "SA"),
    "sphere": (mf.SphereBasis(8), USA0, "USA0"),
    "zonal": (mf.ZonalBasis(8, 12), SA, "SA"),
    "d=64": (mf.ZonalBasis(64, 10), USA0, "USA0"),
}


@graded(("basis", "field", "model"), CASES.values(), ids=CASES.keys(), fast=1)
def test_uniform_law(basis, field, model):
    """k (k+d-2) (a_k/(beta a_0) - kappa); rounding is eps times the largest rate, kappa 20^2, times a few."""
    kappa, d = 0.01, basis.dim
    found = linearised(field, mf.uniform(basis), kappa)
    k = found.degrees
    expected = theory.uniform.growth_rates(4.0, d, k=k, model=model) - kappa * k * (k + d - 2)
    np.testing.assert_allclose(found.matrix, np.diag(expected), atol=1e-12)
    np.testing.assert_allclose(found.spectrum, np.sort(expected)[::-1], atol=1e-12)
    assert (np.diff(found.growth) <= 0).all()
    # eigenfunctions are harmonics of one degree
    sizes = np.abs(found.eigenfunctions.reshape(len(k), -1)[:, free_entries(basis)])
    fastest = k[np.argmax(expected)]
    assert sizes[0, k != fastest].max() < 1e-10
    assert np.sum(sizes[0] ** 2) == pytest.approx(1)


def test_circle_against_dense_matrices():
    """-(rho (Phi'[h])' + h Phi')' + kappa h'' by the trapezium rule and the FFT, at a density that is not stationary.

    Both are exact up to what is beyond degree 40, which is below 1e-13, times degree^2.
    """
    basis, kappa, beta, n = mf.CircleBasis(40), 0.1, 4.0, 256
    density = mf.mixture([0.7, 0.3], [mf.von_mises_fisher(basis, 2.0), mf.von_mises_fisher(basis, 1.5, [1.0, 0.3])])
    theta = 2 * np.pi * np.arange(n) / n
    rho, h = density(angles=theta), np.exp(np.sin(theta + 0.4))
    h -= h.mean()
    kernel = np.exp(beta * (np.cos(theta[:, None] - theta) - 1)) / n

    def slope(f):
        return np.fft.irfft(1j * np.arange(n // 2 + 1) * np.fft.rfft(f), n)

    z = kernel @ rho
    expected = -slope(rho * slope(kernel @ h / (beta * z)) + h * slope(np.log(z) / beta)) + kappa * slope(slope(h))
    found = linearised(SA, density, kappa)
    waves = np.fft.rfft(h) / n
    c = np.sqrt(2) * np.concatenate([waves.real[1:41], -waves.imag[1:41]])
    np.testing.assert_allclose(
        basis.evaluate(np.concatenate([[0], found.matrix @ c]), angles=theta),
        expected,
        atol=1e-10 * np.abs(expected).max(),
    )
    # the first eigenfunctions solve the eigenvalue equation, also on the grid; 1e-10 for eigenvectors of the last ones
    first = found.eigenfunctions[:5, 1:]
    np.testing.assert_allclose(found.matrix @ first.T, first.T * found.spectrum[:5], atol=1e-10)
    assert found.values(2).shape == (2, basis.grid)
    np.testing.assert_allclose(found.values(1)[0].real, basis.synthesis(found.eigenfunctions[0].real), atol=1e-14)


def test_sectors_make_up_the_sphere():
    """On S^2 the operator at a zonal density is that of its sectors: order 0 once, the others twice."""
    sphere, zonal = mf.SphereBasis(8), mf.ZonalBasis(3, 8)
    whole = linearised(USA0, mf.von_mises_fisher(sphere, 1.0), 0.1)
    parts = [linearised(USA0, mf.von_mises_fisher(zonal, 1.0), 0.1, sector=m) for m in range(8)]
    np.testing.assert_array_equal(parts[3].degrees, np.arange(3, 9))
    every = np.sort(np.concatenate([np.repeat(part.growth, 1 + (part.sector > 0)) for part in parts]))[::-1]
    # the spectrum is that of a matrix of norm 10; orders up to 7 of degree 8 are there, the two of order 8 are the last
    np.testing.assert_allclose(every[:40], whole.growth[:40], atol=1e-10)
    assert stability(USA0, mf.von_mises_fisher(sphere, 1.0), 0.1).unstable == 0
    # the same matrix from derivatives of the equation and from products of matrices
    product = _sector_matrix(as_model(USA0, 0.1), mf.von_mises_fisher(zonal, 1.0), 0)[0]
    np.testing.assert_allclose(parts[0].matrix, product, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("field", [SA, af.Attention(4.0, normaliser=af.Unnormalised("USA"))], ids=["SA", "USA"])
def test_sectors_of_softmax_and_of_other_clocks(field):
    """Sector 0 by products of matrices and by derivatives; both cut rho/Z after degree 24, where 1e-13 is left.

    On the circle sectors 0 and 1 are the even and the odd perturbations, so `stability` counts as in the full basis.
    """
    zonal, circle = mf.ZonalBasis(2, 24), mf.CircleBasis(24)
    distribution = mf.von_mises_fisher(zonal, 1.0)
    found = linearised(field, distribution, 0.1)
    product = _sector_matrix(as_model(field, 0.1), distribution, 0)[0]
    scale = np.abs(found.matrix).max()
    np.testing.assert_allclose(found.matrix[:12, :12], product[:12, :12], atol=1e-11 * scale)
    odd = linearised(field, distribution, 0.1, sector=1)
    whole = linearised(field, mf.von_mises_fisher(circle, 1.0, [1.0, 0.0]), 0.1)
    both = np.sort(np.concatenate([found.growth, odd.growth]))[::-1]
    np.testing.assert_allclose(both[:12], whole.growth[:12], atol=1e-10 * scale)


def test_rotations_of_a_zonal_density_are_left_out():
    """As in the full basis: the rotation is mostly of degree 8, and degree 1 stays unstable, even and odd."""
    bases = mf.ZonalBasis(2, 24), mf.CircleBasis(24)
    distributions = [mf.mixture([1, 1], [mf.perturbed(basis, k, 0.3) for k in (1, 8)]) for basis in bases]
    one, two = (stability(af.Attention(1.0), distribution, 0.2) for distribution in distributions)
    assert one.unstable == two.unstable == 2
    assert one.growth == pytest.approx(two.growth, abs=1e-10)


@pytest.mark.slow
def test_a_potential_holds_rotations():
    """With a potential nothing is left out: the growth is that of the whole operator."""
    basis = mf.CircleBasis(20)
    field = SA + af.Potential([[1.0, 0.5]], [0.2], [1.5], "tanh")
    distribution = mf.von_mises_fisher(basis, 1.0, [1.0, 0.3])
    found, whole = stability(field, distribution, 0.3), linearised(field, distribution, 0.3)
    assert found.growth == pytest.approx(whole.growth[0], abs=1e-10)
    assert found.unstable == np.sum(whole.growth > found.tolerance)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_stability_counts_harmonics(d):
    """At the uniform measure degree k is unstable, N(k, d) times, where lambda_k > kappa k (k+d-2)."""
    kappa, k = 0.05, np.arange(1, 15)
    rates = theory.uniform.growth_rates(9.0, d, k=k) - kappa * k * (k + d - 2)
    found = stability(af.Attention(9.0), mf.uniform(mf.ZonalBasis(d, 14)), kappa)
    assert found.unstable == np.sum(theory.uniform.multiplicity(k, d)[rates > 0]) > d
    assert found.growth == pytest.approx(rates.max(), abs=1e-12)
    assert not found.stable


def test_rotations():
    """Central differences of a rotated von Mises-Fisher distribution; their error is h^2/6 times a third derivative below 10."""
    h, sphere, x = 1e-5, mf.SphereBasis(8), np.array([2.0, 3.0, 6.0]) / 7
    moved = rotations(sphere, mf.von_mises_fisher(sphere, 1.0, x).coefficients)
    for axis, turned in zip(np.eye(3), moved, strict=True):
        v = h * np.cross(axis, x)
        pair = [mf.von_mises_fisher(sphere, 1.0, y).coefficients.reshape(-1) for y in (x + v, x - v)]
        np.testing.assert_allclose(turned, (pair[0] - pair[1])[free_entries(sphere)] / (2 * h), atol=1e-9)
    circle = mf.CircleBasis(10)
    c = mf.von_mises_fisher(circle, 1.0, [1.0, 2.0]).coefficients
    theta = np.linspace(0, 6, 7)
    along = circle.evaluate(c, angles=theta + h) - circle.evaluate(c, angles=theta - h)
    np.testing.assert_allclose(
        circle.evaluate(np.append(0, rotations(circle, c)[0]), angles=theta), along / (2 * h), atol=1e-9
    )
    assert rotations(mf.ZonalBasis(3, 4), np.ones(5)).shape == (0, 4)


def test_another_degree():
    basis = mf.ZonalBasis(3, 8)
    found = linearised(USA0, mf.uniform(basis), 0.0, 7, sector=2)
    np.testing.assert_allclose(
        found.growth, np.sort(theory.uniform.growth_rates(4.0, 3, k=np.arange(2, 8), model="USA0"))[::-1], atol=1e-13
    )


@pytest.mark.slow
def test_refusals():
    uniform = mf.uniform(mf.CircleBasis(8))
    with pytest.raises(InvalidInput, match="`basis` has degree 8, but the kernel of beta = 100 on S\\^1 needs 26"):
        linearised(af.Attention(100.0), uniform)
    with pytest.raises(InvalidInput, match="only a ZonalBasis has sectors"):
        linearised(SA, uniform, sector=1)
    with pytest.raises(InvalidInput, match="sectors 0 to 1"):
        linearised(SA, mf.uniform(mf.ZonalBasis(2, 6)), sector=2)
    with pytest.raises(InvalidInput, match="`kappa` is -1"):
        linearised(SA, uniform, -1.0)
    with pytest.raises(InvalidInput, match="Q = K = V = I"):
        linearised(af.Attention(1.0, value=-np.eye(2)), uniform)
    with pytest.raises(TooLarge, match="smaller `degree`"):
        linearised(SA, mf.uniform(mf.CircleBasis(2100)))
    with pytest.raises(InvalidInput, match="degrees above it may be unstable"):
        stability(SA, mf.uniform(mf.ZonalBasis(3, 6)), 1e-6)
    # on the circle degree k grows without end if kappa is below a_k/beta, e^beta times that on the clock USA
    usa, last = af.Attention(4.0, normaliser=af.Unnormalised("USA")), np.exp(4.0) * sp.ive(8, 4.0) / 4
    with pytest.raises(InvalidInput, match="degrees above it may be unstable"):
        stability(usa, uniform, 0.99 * last)
    assert not stability(usa, uniform, 1.01 * last).stable


def test_eigenfunctions_are_drawn():
    from attnflow.plots import draw_eigenfunctions

    operator = linearised(af.Attention(2.0), mf.perturbed(mf.CircleBasis(12), 1, 0.2))
    left, right = draw_eigenfunctions(operator, count=3).axes
    assert len(right.lines) == 3
    np.testing.assert_array_equal(left.lines[1].get_ydata(), operator.growth)
