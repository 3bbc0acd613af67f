import math

import jax
import numpy as np
import pytest
from scipy import special as sp

import attnflow as af
from attnflow import meanfield as mf
from attnflow import theory
from attnflow.errors import InvalidInput, TooLarge
from attnflow.precision import full_precision

EPS = np.finfo(np.float64).eps
BASES = {
    "circle": mf.CircleBasis(12),
    "sphere": mf.SphereBasis(10),
    "zonal 2": mf.ZonalBasis(2, 12),
    "zonal 7": mf.ZonalBasis(7, 9),
}
every = pytest.mark.parametrize("basis", BASES.values(), ids=BASES.keys())


def multiplicity(k, d):
    return math.comb(k + d - 1, d - 1) - (math.comb(k + d - 3, d - 1) if k > 1 else 0)


def some(basis, seed=0, top=None):
    """Random coefficients, up to degree `top`."""
    c = np.random.default_rng(seed).standard_normal(basis.mask.shape) * basis.mask
    return c if top is None else c * (basis.degrees <= top)


def scattered(basis, n=7, seed=3):
    """Random points."""
    return af.uniform(af.Sphere(basis.dim), n=n, seed=seed).positions


def rounding(basis):
    """Sums of as many terms as there are degrees, of the size of the harmonics: 16 roundings each."""
    return 16 * EPS * (basis.degree + 1) * np.max(basis.sensitivity)


@every
def test_analysis_undoes_synthesis_and_keeps_the_norm(basis):
    c = some(basis)
    values = basis.synthesis(c)
    assert values.dtype == np.float64
    np.testing.assert_allclose(basis.analysis(values), c, atol=rounding(basis))
    assert np.sum(basis.weights) == pytest.approx(1, abs=100 * EPS)
    # the grid integrates squares exactly: they have degree 2K, and it is exact to 3K
    assert np.sum(basis.weights * values**2) == pytest.approx(np.sum(c**2), rel=1e-12)
    assert np.sum(basis.weights * values) == pytest.approx(c.reshape(-1)[0], abs=rounding(basis))


@every
def test_values_on_the_grid_are_values_at_its_points(basis):
    c = some(basis, 1)
    points = {basis.named or "x": basis.points()}
    np.testing.assert_allclose(basis.evaluate(c, **points), basis.synthesis(c), atol=10 * rounding(basis))


@every
def test_atoms_are_the_adjoint_of_evaluation(basis):
    c, x = some(basis, 2), scattered(basis)
    m = np.linspace(1, 2, 7)
    assert np.sum(basis.atoms(x, m) * c) == pytest.approx(np.sum(m * basis.evaluate(c, x)), rel=1e-11)


@every
def test_addition_theorem(basis):
    """The squares of the harmonics of degree k add up to N(k, d) at every point, and sqrt(N) P_k(1) is the top."""
    point = np.eye(basis.dim)[-1] if isinstance(basis, mf.ZonalBasis) else scattered(basis, 1)
    squares = basis.atoms(point, [1.0]) ** 2
    for k in range(basis.degree + 1):
        assert np.sum(squares[basis.degrees == k]) == pytest.approx(multiplicity(k, basis.dim), rel=1e-12)
    whole = np.sqrt(theory.uniform.basis_size(basis.degree, basis.dim))
    assert np.max(basis.sensitivity) <= whole * (1 + 1e-12)


@every
def test_products_of_two_functions_are_not_aliased(basis):
    f, g = some(basis, 4), some(basis, 5)
    fine = basis.refined(2 * basis.degree)
    assert fine.degree == 2 * basis.degree
    product = fine.synthesis(basis.resized(f, fine.degree)) * fine.synthesis(basis.resized(g, fine.degree))
    exact = fine.resized(fine.analysis(product), basis.degree)
    here = basis.analysis(basis.synthesis(f) * basis.synthesis(g))
    np.testing.assert_allclose(here, exact, atol=10 * rounding(basis) * np.linalg.norm(f) * np.linalg.norm(g))


@every
def test_resizing_keeps_the_function(basis):
    c, x = some(basis, 6), scattered(basis)
    larger = basis.refined(basis.degree + 3)
    padded = basis.resized(c, larger.degree)
    np.testing.assert_allclose(larger.evaluate(padded, x), basis.evaluate(c, x), rtol=1e-12)
    np.testing.assert_array_equal(larger.resized(padded, basis.degree), c)


@every
def test_laplacian_of_an_exponential(basis):
    """Lap e^t = (1 - t^2 - (d-1) t) e^t for t = <x, a>; degrees above 9 of e^t are below 1e-8."""
    d = basis.dim
    a = np.eye(d)[-1]
    t = basis.points() @ a if d == 3 and basis.weights.ndim == 2 else basis.points()
    t = np.sin(t) if isinstance(basis, mf.CircleBasis) else t
    c = basis.analysis(np.exp(t))
    expected = basis.analysis((1 - t**2 - (d - 1) * t) * np.exp(t))
    low = basis.degrees <= 5  # coefficients that the cut and the grid leave exact to 1e-10
    np.testing.assert_allclose((basis.laplacian * c)[low], expected[low], atol=1e-9)


@pytest.mark.parametrize("basis", [BASES["circle"], BASES["sphere"]], ids=["circle", "sphere"])
def test_funk_hecke(basis):
    """The integral of e^{beta (<x,y> - 1)} f(y), by brute force, has the coefficients a_k f_k."""
    fine = basis.refined(4 * basis.degree) if basis.dim == 2 else basis.refined(22)
    beta, x = 2.0, af.uniform(af.Sphere(basis.dim), n=4, seed=8).positions
    f = some(basis, 7, top=6)
    y = fine.points() if basis.dim == 3 else np.stack([np.cos(fine.points()), np.sin(fine.points())], axis=-1)
    distribution = fine.weights * fine.synthesis(basis.resized(f, fine.degree))
    brute = np.exp(beta * (x @ y.reshape(-1, basis.dim).T - 1)) @ distribution.reshape(-1)
    a = mf.multipliers(beta, basis.dim, 30)
    np.testing.assert_allclose(basis.evaluate(a[basis.degrees] * f, x), brute, atol=1e-13)


def test_harmonics_of_the_sphere_are_those_of_scipy():
    basis = BASES["sphere"]
    x = scattered(basis, 5)
    z, phi = x[:, 2], np.arctan2(x[:, 1], x[:, 0])
    for k, m in [(0, 0), (1, 0), (1, 1), (4, 2), (10, 0), (10, 7), (9, 9)]:
        size = np.sqrt((2 - (m == 0)) * (2 * k + 1) * math.factorial(k - m) / math.factorial(k + m))
        plain = (-1) ** m * size * sp.lpmv(m, k, z)  # lpmv has the Condon-Shortley sign
        for part, turn in enumerate([np.cos(m * phi), np.sin(m * phi)][: 1 + (m > 0)]):
            c = np.zeros(basis.mask.shape)
            c[part, m, k] = 1.0
            np.testing.assert_allclose(basis.evaluate(c, x), plain * turn, atol=1e-12)


@pytest.mark.parametrize("d", [3, 8, 64])
def test_zonal_harmonics_are_gegenbauer_polynomials(d):
    s = np.linspace(-1, 1, 9)
    basis = mf.ZonalBasis(d, 20)
    for k in (1, 2, 9, 20):
        plain = sp.eval_gegenbauer(k, d / 2 - 1, s) / sp.eval_gegenbauer(k, d / 2 - 1, 1.0)
        # P_k through its harmonic of sup norm 1: of size 1 at the poles, recurrences of 20 steps
        np.testing.assert_allclose(basis.evaluate(basis.harmonic(k), heights=s), plain, atol=1e-12)


@pytest.mark.parametrize(("d", "degree"), [(2, 300), (3, 300), (64, 512)])
def test_large_zonal_bases_are_orthonormal(d, degree):
    basis = mf.ZonalBasis(d, degree)
    table = np.asarray(basis.table)
    gram = (table * basis.weights) @ table.T
    # nodes are good to EPS, and phi_k' is at most about degree^2 phi_k where the weights are smallest
    np.testing.assert_allclose(gram, np.eye(degree + 1), atol=degree**2 * EPS)


def test_a_large_sphere_is_accurate():
    basis = mf.SphereBasis(128)
    c = some(basis)
    np.testing.assert_allclose(basis.analysis(basis.synthesis(c)), c, atol=rounding(basis))


@pytest.mark.parametrize("basis", [BASES["circle"], BASES["sphere"]], ids=["circle", "sphere"])
def test_transforms_can_be_differentiated_and_mapped(basis):
    c = some(basis, 9)

    def half_norm(c):
        return 0.5 * jax.numpy.sum(basis.weights * basis.synthesis(c) ** 2)

    # Parseval: the gradient of half the squared norm is the function itself
    np.testing.assert_allclose(af.in_float64(jax.grad(half_norm))(c), c, atol=rounding(basis))
    batch = af.in_float64(jax.vmap(basis.analysis))(np.stack([basis.synthesis(c), 2 * basis.synthesis(c)]))
    np.testing.assert_allclose(batch[1], 2 * c, atol=2 * rounding(basis))


@pytest.mark.parametrize("d", [2, 3, 64])
def test_multipliers_agree_with_theory(d):
    counts = np.array([multiplicity(k, d) for k in range(31)], dtype=np.float64)
    for beta in (0.0, 1e-3, 9.0, 1e4):
        a = mf.multipliers(beta, d, 30)
        # sums of logarithms: 30 of them, each below 800, hence 30 * 800 roundings at worst
        np.testing.assert_allclose(
            a * counts, theory.uniform.degree_weights(beta, d, 31), rtol=30 * 800 * EPS, atol=1e-300
        )


def test_multipliers_are_bessel_functions():
    k = np.arange(31)
    np.testing.assert_allclose(mf.multipliers(7.0, 2, 30), sp.ive(k, 7.0), rtol=1e-12)
    np.testing.assert_allclose(mf.multipliers(7.0, 3, 30), np.sqrt(np.pi / 14) * sp.ive(k + 0.5, 7.0), rtol=1e-12)


def test_derivatives_of_multipliers():
    k, betas = np.arange(4), np.array([0.0, 3.0])
    slopes = af.in_float64(jax.jit(jax.vmap(jax.jacfwd(lambda b: mf.multipliers(b, 2, 3)))))(betas)
    exact = [np.exp(-b) * sp.ivp(k, b) - sp.ive(k, b) for b in betas]
    np.testing.assert_allclose(slopes, exact, atol=1e-14)
    # on S^2 the second derivative at beta = 0 is the multiplier of (t - 1)^2 = 4/3 - 2 t + (2/3) P_2(t)
    second = af.in_float64(jax.jit(jax.jacrev(jax.jacfwd(lambda b: mf.multipliers(b, 3, 3)))))(0.0)
    np.testing.assert_allclose(second, [4 / 3, -2 / 3, 2 / 15, 0], atol=1e-14)


def test_the_degree_that_a_kernel_needs():
    for d, beta, tolerance in [(2, 100.0, 1e-10), (3, 10.0, 1e-6), (64, 1e4, 1e-10), (2, 0.0, 1e-3)]:
        assert mf.needed_degree(beta, d, tolerance) == theory.uniform.truncation_degree(tolerance, beta, d)
    mf.check_degree(mf.CircleBasis(66), 100.0)
    with pytest.raises(InvalidInput, match="degree 65.*beta = 100.*needs 66.*refined"):
        mf.check_degree(mf.CircleBasis(65), 100.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mf.CircleBasis(0), "degree.*is 0"),
        (lambda: mf.CircleBasis(8, 16), "grid.*at least 17"),
        (lambda: mf.ZonalBasis(1, 4), "dim.*from 2 to"),
        (lambda: mf.ZonalBasis(3, 4, 4), "grid.*at least 5"),
        (lambda: mf.ZonalBasis(10**6, 400), "leave float range"),
        (lambda: mf.SphereBasis(True), "degree"),
        (lambda: BASES["zonal 7"].evaluate(np.ones(10), heights=2.0), "outside"),
        (lambda: BASES["sphere"].evaluate(np.zeros((2, 11, 11)), [1.0, 1, 0]), "norm 1.41421, not 1"),
        (lambda: BASES["sphere"].harmonic(3, 4), "order"),
        (lambda: BASES["circle"].harmonic(13), "above the 12"),
        (lambda: BASES["zonal 7"].harmonic(3, 1), "order 0"),
        (lambda: mf.multipliers(-1.0, 2, 4), "beta.*is -1"),
        (lambda: mf.multipliers(np.nan, 2, 4), "beta.*nan"),
        (lambda: mf.multipliers(1.0, 1, 4), "`d` is 1"),
        (lambda: mf.needed_degree(1.0, 2, 0.0), "tol"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_tables_that_do_not_fit_are_refused():
    with pytest.raises(TooLarge, match=r"degree.*2000.*GB"):
        mf.SphereBasis(2000)


@pytest.mark.parametrize(
    "basis",
    [mf.CircleBasis(8), mf.SphereBasis(6), mf.ZonalBasis(2, 6), mf.ZonalBasis(3, 6), mf.ZonalBasis(64, 6)],
    ids=["circle", "sphere", "zonal 2", "zonal 3", "zonal 64"],
)
def test_gradients_and_their_adjoint(basis):
    """-div grad f = -Lap f, and -2 div(f grad g) = -Lap(f g) - f Lap g + g Lap f, to rounding."""
    rng = np.random.default_rng(0)
    c, e = (np.where(basis.mask, rng.standard_normal(basis.mask.shape), 0.0) for _ in range(2))
    with full_precision():
        f, g, bent_f, bent_g = (
            np.asarray(basis.synthesis(one)) for one in (c, e, basis.laplacian * c, basis.laplacian * e)
        )
        around, slope = np.asarray(basis.inflow(basis.gradient(c))), np.asarray(basis.gradient(e))
        product = np.asarray(basis.inflow(f[None] * slope))
        exact = -0.5 * (basis.laplacian * basis.analysis(f * g) + basis.analysis(f * bent_g - g * bent_f))
    # sums of squares of all harmonics bound what rounding is multiplied by; some tens of operations
    size = 64 * np.finfo(float).eps * float(np.max(np.abs(basis.laplacian)))
    assert np.abs(around + basis.laplacian * c).max() <= size * np.abs(c).max() * basis.mask.sum()
    assert np.abs(product - exact).max() <= size * np.sum(basis.weights * (f**2 + g**2)) * basis.mask.sum()
    assert slope.shape == (1 if basis.dim == 2 or isinstance(basis, mf.ZonalBasis) else 2, *np.shape(f))
