import jax
import numpy as np
import pytest
from scipy import integrate, stats
from scipy import special as sp

import attnflow as af
from attnflow import meanfield as mf
from attnflow import theory
from attnflow.errors import InvalidInput

CIRCLE, SPHERE, ZONAL = mf.CircleBasis(24), mf.SphereBasis(16), mf.ZonalBasis(5, 18)
BASES = {"circle": CIRCLE, "sphere": SPHERE, "zonal": ZONAL}
every = pytest.mark.parametrize("basis", BASES.values(), ids=BASES.keys())
KAPPA = 3.0


def bessel(kappa, d):
    """a_0 = Gamma(d/2) (2/kappa)^nu e^{-kappa} I_nu and the mean overlap I_{nu+1}/I_nu, nu = d/2 - 1."""
    nu = d / 2 - 1
    return sp.gamma(d / 2) * (2 / kappa) ** nu * sp.ive(nu, kappa), sp.ive(nu + 1, kappa) / sp.ive(nu, kappa)


def left_out(basis):
    """The uniform error of the von Mises-Fisher density cut at the degree: sum_{k>K} N a_k / a_0."""
    return np.sum(theory.uniform.degree_weights(KAPPA, basis.dim, 80)[basis.degree + 1 :]) / bessel(KAPPA, basis.dim)[0]


def overlaps(basis, direction):
    """<x, direction> on the grid."""
    p = basis.points()
    if isinstance(basis, mf.CircleBasis):
        return np.cos(p) * direction[0] + np.sin(p) * direction[1]
    return p * direction[-1] if isinstance(basis, mf.ZonalBasis) else p @ direction


def tilted(basis):
    """A direction that the basis can hold."""
    vector = np.eye(basis.dim)[-1] if isinstance(basis, mf.ZonalBasis) else np.arange(1.0, basis.dim + 1)
    return vector / np.linalg.norm(vector)


@every
def test_von_mises_fisher(basis):
    direction = tilted(basis)
    rho = mf.von_mises_fisher(basis, KAPPA, 2 * direction)
    a0, overlap = bessel(KAPPA, basis.dim)
    cut = left_out(basis)
    np.testing.assert_allclose(rho.values, np.exp(KAPPA * (overlaps(basis, direction) - 1)) / a0, atol=cut + 1e-13)
    assert rho.mass == pytest.approx(1, abs=1e-14)
    assert rho.entropy == pytest.approx(KAPPA * (overlap - 1) - np.log(a0), abs=10 * cut + 1e-13)  # |log rho| < 10
    np.testing.assert_allclose(rho.moments.mean, overlap * direction, atol=1e-13)
    # E <x, mean>^2 = 1 - (d-1) A/kappa
    along = direction @ rho.moments.second @ direction
    assert along == pytest.approx(1 - (basis.dim - 1) * overlap / KAPPA, abs=1e-13)
    assert np.trace(rho.moments.second) == pytest.approx(1, abs=1e-13)
    assert 0 < rho.tail < 1e-5


@every
def test_formula_and_exact_coefficients_agree(basis):
    direction = tilted(basis)
    rho = mf.from_function(basis, lambda _: np.exp(KAPPA * overlaps(basis, direction)), normalise=True)
    exact = mf.von_mises_fisher(basis, KAPPA, direction)
    np.testing.assert_allclose(rho.coefficients, exact.coefficients, atol=2 * left_out(basis) + 1e-13)
    low = basis.degrees <= 5  # the grid is exact to degree 3K: what is aliased here is below rounding
    np.testing.assert_allclose(rho.coefficients[low], exact.coefficients[low], atol=1e-13)


@every
@pytest.mark.parametrize("kappa", [-2.0, 2.0])
def test_watson(basis, kappa):
    d, direction = basis.dim, tilted(basis)
    rho = mf.watson(basis, kappa, direction)

    def weight(t):  # at the angle t to the axis
        return np.exp(kappa * np.cos(t) ** 2) * np.sin(t) ** (d - 2)

    total = integrate.quad(weight, 0, np.pi)[0]
    along = integrate.quad(lambda t: np.cos(t) ** 2 * weight(t), 0, np.pi)[0] / total
    assert direction @ rho.moments.second @ direction == pytest.approx(along, abs=1e-10)  # of quad
    np.testing.assert_allclose(rho.moments.mean, 0, atol=1e-14)
    poles = rho(np.stack([direction, -direction]))
    uniform = integrate.quad(lambda t: np.sin(t) ** (d - 2), 0, np.pi)[0]
    # what the cut leaves out at the poles, from the coefficients of twelve more degrees
    larger = mf.ZonalBasis(d, basis.degree + 12)
    beyond = np.abs(mf.watson(larger, kappa).coefficients) * (larger.degrees > basis.degree)
    np.testing.assert_allclose(
        poles, np.exp(kappa) * uniform / total, atol=2 * larger.evaluate(beyond, heights=1.0) + 1e-12
    )


@every
def test_a_density_is_read_at_points_of_the_sphere(basis):
    """1 + t/2 with t = <x, e>, e the first axis on the circle and the last one else; also by name, and with places."""
    rho = mf.perturbed(basis, 1, 0.5)
    x = np.concatenate([np.eye(basis.dim), -np.eye(basis.dim)]).reshape(2, basis.dim, basis.dim)
    t = x[..., 0 if basis is CIRCLE else -1]
    placed = mf.placed(mf.Places(nodes=2), rho)
    ways = [rho(x), placed(0.3, x)]
    if basis is not SPHERE:
        named = {"angles": np.arctan2(x[..., 1], x[..., 0])} if basis is CIRCLE else {"heights": t}
        ways += [rho(**named), placed(0.3, **named)]
    for found in ways:
        np.testing.assert_allclose(found, 1 + t / 2, atol=16 * np.finfo(float).eps)  # sums of two terms of size 1


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@every
def test_points_of_another_space_are_refused(basis, number):
    rho = mf.uniform(basis)
    with pytest.raises(InvalidInput, match=rf"`x` has shape .*unit vectors of R\^{basis.dim}"):
        rho(np.eye(number if number != basis.dim else 7))


@every
def test_uniform_and_mixtures(basis):
    one = mf.uniform(basis)
    np.testing.assert_allclose(one.values, 1, atol=1e-14)
    assert one.entropy == pytest.approx(0, abs=1e-13)
    assert one.lowest == pytest.approx(1, abs=1e-14)
    assert one.tail == 0
    peak = mf.von_mises_fisher(basis, KAPPA)
    mixed = mf.mixture([1, 3], [one, peak])
    np.testing.assert_allclose(mixed.coefficients, 0.25 * one.coefficients + 0.75 * peak.coefficients, atol=1e-15)
    with pytest.raises(InvalidInput, match=r"densities\[1\] has another basis"):
        mf.mixture([1, 1], [one, mf.uniform(mf.ZonalBasis(4, 3))])


@pytest.mark.parametrize(
    ("basis", "degree", "order"),
    [(CIRCLE, 3, 0), (CIRCLE, 4, -1), (SPHERE, 5, 0), (SPHERE, 6, 4), (SPHERE, 7, -2), (ZONAL, 3, 0)],
)
def test_perturbations_have_sup_norm_one(basis, degree, order):
    h = basis.harmonic(degree, order)
    assert np.count_nonzero(h) == 1
    assert basis.degrees[np.nonzero(h)] == degree
    fine = mf.SphereBasis(degree, 300).latitudes if basis is SPHERE else None
    if basis is SPHERE:
        r, phi = np.sqrt(1 - fine**2), np.pi / (2 * max(abs(order), 1)) * (order < 0)
        x = np.stack([r * np.cos(phi), r * np.sin(phi), fine], axis=1)
        points = {"x": np.concatenate([x, np.eye(3)[-1:]])}
    elif basis is CIRCLE:
        points = {"angles": np.linspace(0, 2 * np.pi, 2401)}
    else:
        points = {"heights": np.linspace(-1, 1, 2001)}
    top = np.max(np.abs(basis.evaluate(h, **points)))
    # a maximum between points at most 0.011 apart: f'' is at most degree (degree + 1)
    assert 1 - degree * (degree + 1) * 0.011**2 / 8 <= top <= 1 + 1e-12
    rho = mf.perturbed(basis, degree, 0.5, order)
    assert 0.5 - 1e-12 <= rho.lowest < 1
    with pytest.raises(InvalidInput, match="amplitude.*1.5"):
        mf.perturbed(basis, degree, 1.5, order)


def test_heat_estimate_on_the_circle_is_a_sum_of_wrapped_gaussians():
    tokens = af.uniform(af.Sphere(2), n=9, seed=1)
    theta, h, at = CIRCLE.variable(tokens.positions), 0.35, np.linspace(0, 6, 11)
    rho = mf.from_tokens(CIRCLE, tokens, h)
    gaps = at[:, None, None] - theta[:, None] + 2 * np.pi * np.arange(-3, 4)
    direct = np.sum(np.exp(-(gaps**2) / (2 * h * h)), axis=(1, 2)) / 9 * np.sqrt(2 * np.pi) / h
    # the cut leaves 2 exp(-(25 h)^2/2) = 5e-17
    np.testing.assert_allclose(rho(angles=at), direct, atol=1e-13)


@every
def test_heat_estimate_shrinks_moments(basis):
    tokens = af.Tokens(af.uniform(af.Sphere(basis.dim), n=40, seed=2).positions, np.arange(1.0, 41))
    rho = mf.from_tokens(basis, tokens, 0.6)
    mean = np.exp(-(basis.dim - 1) * 0.18) * tokens.masses @ tokens.positions
    if basis is ZONAL:
        mean = mean * np.eye(5)[-1]
    np.testing.assert_allclose(rho.moments.mean, mean, atol=1e-13)
    default = mf.from_tokens(basis, tokens)
    size = 1 / np.sum(tokens.masses**2)
    spread = np.sqrt((1 - np.sum((tokens.masses @ tokens.positions) ** 2)) / (basis.dim - 1))
    h = spread * (4 / ((basis.dim + 1) * size)) ** (1 / (basis.dim + 3))
    np.testing.assert_allclose(default.coefficients, mf.from_tokens(basis, tokens, h).coefficients, rtol=1e-12)


def test_samples_of_the_sphere_follow_their_law():
    """<x, mean> of a von Mises-Fisher distribution on S^2 has the distribution function (e^{kappa(t-1)} - e^{-2 kappa}) / ..."""
    direction = np.array([2.0, -1.0, 2.0]) / 3
    rho = mf.von_mises_fisher(SPHERE, KAPPA, direction)
    x = mf.sample(rho, 2000, seed=4).positions
    level = np.expm1(KAPPA * (x @ direction + 1)) / np.expm1(2 * KAPPA)
    assert stats.kstest(level, "uniform").pvalue > 1e-3  # a fixed seed: fails once in a thousand seeds
    across = np.arctan2(x @ np.array([1.0, 2, 0]) / np.sqrt(5), x @ np.cross(direction, [1, 2, 0]) / np.sqrt(5))
    assert stats.kstest(across / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-3
    assert np.array_equal(x, mf.sample(rho, 2000, seed=4).positions)
    assert not np.array_equal(x, mf.sample(rho, 2000, seed=5).positions)


def test_samples_of_circle_and_zonal_densities_follow_their_law():
    x = mf.sample(mf.von_mises_fisher(CIRCLE, KAPPA, [1.0, 0.0]), 2000, seed=6).positions
    assert stats.kstest(np.arctan2(x[:, 1], x[:, 0]), stats.vonmises(KAPPA).cdf).pvalue > 1e-3
    other = af.tokens.von_mises_fisher(af.Sphere(5), n=4000, concentration=KAPPA, seed=7).positions
    x = mf.sample(mf.von_mises_fisher(ZONAL, KAPPA), 2000, seed=8).positions
    for k in (-1, 0):
        assert stats.ks_2samp(x[:, k], other[:, k]).pvalue > 1e-3


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_quiet_zonal_tokens_have_equal_masses_between_them(dim):
    basis = mf.ZonalBasis(dim, 18)
    n, rho = 64, mf.von_mises_fisher(basis, KAPPA)
    x = mf.quiet(rho, n).positions
    assert np.max(np.abs(np.linalg.norm(x, axis=1) - 1)) < 1e-14
    _, overlap = bessel(KAPPA, dim)
    # equal-mass quantiles are the midpoint rule for <x, e>, which takes values in [-1, 1]: error at most 2/(2n)
    assert abs(np.mean(x[:, -1]) - overlap) <= 1 / n
    share = np.sort([_share(s, dim) for s in x[:, -1]])
    expected = (np.arange(n) + 0.5) / n
    if dim == 2:  # once around: the levels |2 u - 1|, each twice
        expected = np.sort(np.abs(2 * expected - 1))
    np.testing.assert_allclose(share, expected, atol=left_out(basis) + 1e-9)  # the cut, and quad


def _share(s, d):
    """The mass of the von Mises-Fisher distribution above s = <x, e>."""
    a0, _ = bessel(KAPPA, d)
    constant = sp.gamma(d / 2) / sp.gamma((d - 1) / 2) / np.sqrt(np.pi)
    return integrate.quad(
        lambda t: np.exp(KAPPA * (np.cos(t) - 1)) / a0 * constant * np.sin(t) ** (d - 2),
        0,
        np.arccos(np.clip(s, -1, 1)),
    )[0]


def test_quiet_circle_tokens_are_quantiles():
    rho = mf.mixture([1, 2], [mf.von_mises_fisher(CIRCLE, 6.0, [1.0, 0.3]), mf.von_mises_fisher(CIRCLE, 2.0)])
    theta = np.sort(np.mod(CIRCLE.variable(mf.quiet(rho, 9).positions), 2 * np.pi))
    for i, end in enumerate(theta):
        assert integrate.quad(lambda t: rho(angles=t), 0, end)[0] / (2 * np.pi) == pytest.approx(
            (i + 0.5) / 9, abs=1e-9
        )  # of quad
    shifted = mf.quiet(rho, 9, seed=3).positions
    assert np.array_equal(shifted, mf.quiet(rho, 9, seed=3).positions)
    assert not np.allclose(shifted, mf.quiet(rho, 9).positions)


def test_quiet_tokens_beat_independent_ones_on_the_sphere():
    n, rho = 500, mf.von_mises_fisher(SPHERE, KAPPA, [1.0, 2.0, -1.0])
    for seed in (None, 0):
        error = np.linalg.norm(mf.quiet(rho, n, seed=seed).positions.mean(axis=0) - rho.moments.mean)
        independent = np.sqrt((1 - np.sum(rho.moments.mean**2)) / n)  # the root mean square error of n iid tokens
        assert error < independent / 5


@pytest.mark.parametrize(
    "basis",
    [CIRCLE, SPHERE, mf.ZonalBasis(2, 9), mf.ZonalBasis(3, 9), ZONAL],
    ids=["circle", "sphere", "zonal 2", "zonal 3", "zonal 5"],
)
def test_the_grid_as_tokens_has_the_moments_of_the_density(basis):
    c = mf.perturbed(basis, 1, 0.6).coefficients + mf.perturbed(basis, 3, 0.3).coefficients
    c = c + mf.perturbed(basis, 2, 0.5).coefficients - 2 * mf.uniform(basis).coefficients
    rho = mf.Density(basis, c, tol=1.0)
    rho = mf.mixture([1, 2], [rho, mf.uniform(basis)])  # lifted above 0
    assert rho.lowest > 0
    tokens = mf.quadrature(rho)
    x, m = tokens.positions, tokens.masses
    np.testing.assert_allclose(m @ x, rho.moments.mean, atol=1e-14)
    np.testing.assert_allclose((x.T * m) @ x, rho.moments.second, atol=1e-14)
    np.testing.assert_allclose(mf.empirical(basis, tokens), c / 3 + 2 / 3 * mf.uniform(basis).coefficients, atol=1e-12)


def test_tail_sees_what_the_basis_cannot_hold():
    tails = [mf.von_mises_fisher(CIRCLE, kappa).tail for kappa in (1.0, 5.0, 10.0)]
    assert tails[0] < tails[1] < tails[2]
    k = 22  # the first degree above nine tenths of 24; c_k = a_k/a_0 times harmonics of size at most sqrt2
    assert tails[1] <= np.sqrt(2) * sp.ive(k, 5.0) / sp.ive(0, 5.0) <= 2 * tails[1]


def test_densities_inside_compiled_code():
    rho = mf.von_mises_fisher(CIRCLE, KAPPA)

    def entropy(c):
        return mf.Density(CIRCLE, c).entropy + rho.moved(c).mass

    # the derivative of entropy along sigma-mean-zero h is the integral of h log rho
    slope = af.in_float64(jax.jit(jax.grad(entropy)))(rho.coefficients)
    exact = CIRCLE.analysis(np.log(rho.values) + 1)
    np.testing.assert_allclose(slope, exact + np.eye(49)[0], atol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mf.Density(CIRCLE, np.zeros(49)), "mass 0.*divide"),
        (lambda: mf.Density(CIRCLE, np.ones(3)), r"shape \(3,\)"),
        (lambda: mf.Density(CIRCLE, np.full(49, np.nan)), "not finite"),
        (lambda: mf.Density(SPHERE, np.ones((2, 17, 17))), "mask"),
        (lambda: mf.Density(CIRCLE, np.eye(49)[0] + 2 * CIRCLE.harmonic(3)), "is -0.9.*raise the degree 24"),
        (lambda: mf.von_mises_fisher(CIRCLE, 2000.0), "not negative"),
        (lambda: mf.von_mises_fisher(SPHERE, 1.0, [1.0, 0.0]), "direction of R.3"),
        (lambda: mf.von_mises_fisher(ZONAL, 1.0, np.eye(5)[0]), "off the axis"),
        (lambda: mf.watson(CIRCLE, np.inf), "concentration"),
        (lambda: mf.from_function(CIRCLE, lambda t: 2 + np.cos(t)), "mass 2.*normalise=True"),
        (lambda: mf.from_function(CIRCLE, lambda t: 1 + 2 * np.cos(t)), "`function` is -"),
        (lambda: mf.from_function(CIRCLE, lambda t: t[:3]), r"shape \(3,\)"),
        (
            lambda: mf.from_tokens(SPHERE, af.uniform(af.Sphere(3), n=5), 0.02),
            "bandwidth.*0.02, too small for degree 16",
        ),
        (lambda: mf.from_tokens(SPHERE, af.from_array(np.eye(3)[:1])), "stand at one point"),
        (lambda: mf.from_tokens(SPHERE, af.uniform(af.Sphere(2), n=5)), "live in R.2"),
        (lambda: mf.from_tokens(CIRCLE, af.uniform(af.Sphere(2), n=5, seed=[1, 2])), "batch dimensions"),
        (lambda: mf.mixture([1.0, -1.0], 2 * [mf.uniform(CIRCLE)]), "weights"),
        (lambda: mf.perturbed(CIRCLE, 0, 0.1), "degree.*0"),
        (lambda: mf.uniform(CIRCLE)([[1.0, 1.0]]), "norm 1.41421, not 1; divide"),
        (lambda: mf.uniform(ZONAL)(np.zeros(5)), "norm 0, not 1"),
        (lambda: mf.uniform(CIRCLE)(0.3), r"shape \(\); give unit vectors of R\^2"),
        (lambda: mf.uniform(CIRCLE)([[np.nan, 1.0]]), "`x` is .*give unit vectors"),
        (lambda: mf.uniform(CIRCLE)(), "neither of `x` and `angles`"),
        (lambda: mf.uniform(CIRCLE)([[1.0, 0.0]], angles=0.0), "both of `x` and `angles`"),
        (lambda: mf.uniform(SPHERE)(), "`x` is missing"),
        (lambda: mf.uniform(SPHERE)(angles=0.0), "`angles` are for a `CircleBasis` only; give `x`, unit"),
        (lambda: mf.uniform(CIRCLE)(heights=0.0), "`heights` are .* a `ZonalBasis` only.*or `angles` by name"),
        (lambda: mf.uniform(ZONAL)(heights=1.5), "outside"),
        (lambda: CIRCLE.atoms([0.3, 0.4, 0.5], np.ones(3)), r"shape \(3,\)"),
        (lambda: mf.from_function(CIRCLE, lambda x: 1 + 0.5 * x[..., 0]), r"shape \(\) on a grid"),
        (lambda: mf.sample(mf.uniform(CIRCLE), 0), "`n` is 0"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mf.uniform(16), "`basis` is 16; give a CircleBasis"),
        (lambda: mf.sample(1, 5), "`density` is 1; give a Density"),
        (lambda: mf.sample(mf.uniform(CIRCLE), 5, -1), "`seed` is -1; give an integer of at least 0"),
        (lambda: mf.quiet(mf.uniform(CIRCLE), 5, 1.5), "`seed` is 1.5"),
        (lambda: mf.von_mises_fisher(CIRCLE, -1.0), "`concentration` is -1.0; give a number in \[0, 1e\+10\]"),
        (lambda: mf.von_mises_fisher(CIRCLE, "x"), "`concentration` is 'x'; give a real number"),
        (lambda: mf.perturbed(CIRCLE, -1, 0.1), "`degree` is -1; give a positive integer"),
        (lambda: mf.perturbed(CIRCLE, 1, True), "`amplitude` is True; give a real number"),
        (lambda: mf.from_function(CIRCLE, 3), "`function` is 3"),
        (lambda: mf.from_function(CIRCLE, lambda x: 1j + x), "a density is real"),
        (lambda: mf.from_function(CIRCLE, lambda x: 2 + 0 * x, tol=np.nan), "`tol` is nan"),
        (lambda: mf.mixture([1, 1], [1, 2]), r"`densities\[0\]` is 1; give a Density"),
        (lambda: mf.needed_degree(5.0, 1), "`d` is 1; give an integer from 2 to 1000000"),
        (lambda: mf.Density(CIRCLE, "x"), "`coefficients` are not real numbers"),
        (lambda: mf.cells_from_density(mf.circle_cells(8), 1), "`density` is 1"),
        (lambda: mf.evolve_cells(af.Attention(1.0), CIRCLE, np.ones(8), 1.0), "`cells` is CircleBasis"),
        (lambda: mf.evolve_cells(af.Attention(1.0), mf.circle_cells(8), "x", 1.0), "`masses` is str; give numbers"),
        (lambda: mf.linearised(af.Attention(1.0), 1), "`density` is 1"),
        (
            lambda: mf.stationary(af.Attention(1.0), 0.0, mf.uniform(CIRCLE)),
            "`kappa` is 0.0; give a finite number above",
        ),
        (lambda: mf.stationary(af.Attention(1.0), 0.1, 1), "`start` is 1"),
        (lambda: mf.stationary(af.Attention(af.Along("b", [1.0])), 0.1, mf.uniform(CIRCLE)), "holds an Along"),
        (lambda: mf.fluctuations(af.Attention(1.0), mf.uniform(CIRCLE), [np.nan]), "times .*not finite"),
        (lambda: mf.uniform(CIRCLE).distance_from(1), "`tokens` is 1"),
        (lambda: mf.expected_distance("x"), "`flow` is 'x'"),
        (lambda: mf.quadrature_error(mf.uniform(CIRCLE), 0), "`grid` is 0"),
        (lambda: mf.bifurcation(af.Attention(1.0), 2, amplitude=0.0), "`amplitude` is 0.0"),
        (lambda: mf.branch(af.Attention(1.0), 0.1, mf.uniform(CIRCLE), within=[1.0]), "give two increasing numbers"),
    ],
)
def test_wrong_kinds_are_refused_in_one_sentence(call, words):
    with pytest.raises(InvalidInput, match=words) as refusal:
        call()
    assert "\n" not in str(refusal.value)
