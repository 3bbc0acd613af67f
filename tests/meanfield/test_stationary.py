import equinox as eqx
import numpy as np
import pytest
from scipy import special as sp
from scipy.optimize import brentq

import attnflow as af
from attnflow import meanfield as mf
from attnflow import theory
from attnflow.errors import InvalidInput
from attnflow.meanfield import as_model, bifurcation, branch, free_energy, linearised, rotations, stability, stationary
from attnflow.meanfield.harmonics.evolve import _kernel, _read
from attnflow.precision import full_precision
from attnflow.theory.uniform import critical_noise

EVEN = mf.ZonalBasis(2, 32)


def usa0(beta):
    return af.Attention(beta, normaliser=af.Unnormalised())


@pytest.mark.slow
@pytest.mark.parametrize(("basis", "field"), [(EVEN, usa0(0.0)), (mf.ZonalBasis(3, 24), af.Attention(0.0))])
def test_von_mises_fisher_at_beta_zero(basis, field):
    """At beta = 0 (XY and Heisenberg models) the state is von Mises-Fisher with m = I_{d/2}/I_{d/2-1}(m/kappa)."""
    d, kappa = basis.dim, 0.6 / basis.dim

    def overlap(x):
        return sp.ive(d / 2, x) / sp.ive(d / 2 - 1, x)

    assert overlap(3.0) == pytest.approx(1 / np.tanh(3.0) - 1 / 3.0 if d == 3 else sp.i1(3.0) / sp.i0(3.0))  # Langevin
    m = brentq(lambda m: overlap(m / kappa) - m, 0.1, 1, xtol=1e-15)
    found = stationary(field, kappa, mf.von_mises_fisher(basis, 4.0))
    expected = mf.von_mises_fisher(basis, m / kappa)
    # brentq stops at 1e-15; the condition of the equation, 1/(1 - overlap'/kappa), is below 3
    np.testing.assert_allclose(found.density.coefficients, expected.coefficients, atol=1e-12)
    assert found.residual < 1e-13
    assert critical_noise(0.0, d) == critical_noise(0.0, d, model="USA0") == pytest.approx(1 / d, rel=1e-15)
    # E = (m^2 - 1)/2, S = m^2/kappa - log int e^{m s/kappa}
    partition = sp.gamma(d / 2) * (2 * kappa / m) ** (d / 2 - 1) * sp.iv(d / 2 - 1, m / kappa)
    free = (m**2 - 1) / 2 - m**2 + kappa * np.log(partition)
    assert free_energy(field, found.density, kappa) == pytest.approx(free, abs=1e-12)
    assert stability(field, found.density, kappa).stable


@pytest.mark.parametrize("d", [2, 3, 8, 64])
@pytest.mark.parametrize(("softmax", "model"), [(True, "SA"), (False, "USA0")])
def test_critical_noise(d, softmax, model):
    """The maximum over degrees of lambda_k/(k (k+d-2)), which degree 1 attains although degree 4 grows faster."""
    k = np.arange(1, 40)
    thresholds = critical_noise(9.0, d, k=k, model=model)
    assert np.argmax(thresholds) == 0
    np.testing.assert_allclose(
        thresholds * k * (k + d - 2), theory.uniform.growth_rates(9.0, d, k=k, model=model), rtol=1e-14
    )
    by_bessel = sp.ive(d / 2, 9.0) / (9 * sp.ive(d / 2 - 1, 9.0))
    level = sp.gamma(d / 2) * (2 / 9.0) ** (d / 2 - 1) * sp.ive(d / 2 - 1, 9.0)
    assert critical_noise(9.0, d, model=model) == pytest.approx(by_bessel * (1 if softmax else level), rel=1e-12)


def landau(beta, softmax):
    """kappa''(0)/2 on the circle by hand, s = sqrt2 times the first cosine coefficient: expand to third order."""
    a = sp.ive([0, 1, 2], beta)
    if not softmax:
        p1, p2 = a[1:] / beta  # kappa/p1 = 1 + x^2 (p2/(p1 - p2) - 1)/2, x = the exponent's coefficient = s/sqrt2
        return p1 * (p2 / (p1 - p2) - 1) / 2 / 2
    t1, t2 = a[1:] / a[0]
    g, q = 1 / t1, t2 / t1  # (1 + 2x cos + ...)^g: 1/t1 = g + x^2 g (g-1) ((g-1) q/(1-q) - (g+2))/2, x = t1 s/sqrt2
    return t1**2 / (beta * g**2) * g * (g - 1) * ((g - 1) * q / (1 - q) - (g + 2)) / 2 / 2


@pytest.mark.parametrize(
    ("beta", "softmax", "kind"),
    [(1.0, False, "supercritical"), (4.0, False, "subcritical"), (4.0, True, "supercritical")],
)
def test_bifurcation(beta, softmax, kind):
    found = bifurcation(af.Attention(beta) if softmax else usa0(beta), 2)
    assert found.kappa == pytest.approx(critical_noise(beta, 2, model="SA" if softmax else "USA0"), rel=1e-14)
    assert abs(found.eigenvalue) < 1e-14
    assert abs(found.slope) < 1e-10  # the two signs are images under a rotation: rounding over the amplitude
    assert found.curvature == pytest.approx(landau(beta, softmax), rel=1e-4)  # amplitude^4 and its constant
    assert found.kind == kind


def test_bifurcation_on_the_sphere():
    """Degree 2 on S^2 leaves transcritically: s = x + x^2 T/2 with x = p_2 s/kappa, T = int phi_2^3 = 2 sqrt5/7.

    So kappa'(0) = p_2 T/2, all of it e^beta larger on the clock USA. Extrapolation errs by amplitude^4.
    """
    beta, clock = 2.0, np.exp(2.0)
    found = bifurcation(af.Attention(beta, normaliser=af.Unnormalised("USA")), 3, 2)
    onset = critical_noise(beta, 3, k=2, model="USA")
    assert found.kappa == pytest.approx(onset, rel=1e-14)
    assert abs(found.eigenvalue) < 1e-12 * clock
    assert found.slope == pytest.approx(onset * np.sqrt(5) / 7, rel=1e-4)
    assert found.kind == "transcritical"


@eqx.filter_jit
def read_density(model, basis, c):
    """What `evolve` reads off coefficients."""
    return _read(model, basis, _kernel(model, basis), c, c)


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "clock"), [(2.0, "USA"), (2.0, None), (5e-4, "USA0"), (1e-7, "USA0")])
def test_free_energy_is_that_of_the_pairs(beta, clock):
    """Sums over the grid, which is exact for them; also as `evolve` reads it. (e^t - 1)/beta has no cancellation."""
    basis, kappa, potential = mf.CircleBasis(24), 0.3, af.Potential([[1.0, 0.5]], [0.2], [0.8], "tanh")
    head = af.Attention(beta) if clock is None else af.Attention(beta, normaliser=af.Unnormalised(clock))
    density = mf.mixture([1, 2], [mf.von_mises_fisher(basis, 1.0), mf.perturbed(basis, 2, 0.5)])
    tokens = mf.quadrature(density)
    x, m = tokens.positions, tokens.masses
    factor = np.exp(beta) if clock == "USA" else 1.0
    pairs = m @ np.expm1(beta * (x @ x.T - 1)) @ m / (2 * beta)
    outer, entropy = m @ potential.potential(x), m @ np.log(density.values)
    field = head + potential
    # (a_0 - 1)/beta is off by rounding over beta, at most 5e-13; by beta^2 where the series is used
    assert free_energy(field, density, kappa) == pytest.approx(factor * pairs + outer - kappa * entropy, abs=1e-12)
    with full_precision():
        model, c = as_model(field, kappa), np.asarray(density.coefficients)
        read = read_density(model, basis, c)
    assert float(read["energy"]) == pytest.approx(pairs + outer, abs=1e-12)
    assert float(read["entropy"]) == pytest.approx(entropy, abs=1e-13)
    if clock is not None:
        assert float(read["free_energy"]) == pytest.approx(factor * pairs + outer - kappa * entropy, abs=1e-12)


def test_branch_through_a_fold():
    """Unnormalised attention at beta = 4 on the circle: the ordered states end at a fold above kappa_c."""
    field, onset = usa0(4.0), critical_noise(4.0, 2, model="USA0")
    start = stationary(field, onset, mf.von_mises_fisher(EVEN, 10.0)).density
    found = branch(field, onset, start, within=(0.9 * onset, 2 * onset), step=0.2)
    kappa, turn = found.kappa.values, int(np.argmax(found.kappa.values))
    assert found.attrs["ended"] == "the branch reached the uniform measure"
    assert found.fold.values.sum() == 1
    assert found.fold.values[turn]
    assert kappa[turn] > 1.05 * onset
    assert kappa[-1] == pytest.approx(onset, rel=2e-3)
    # stable above the fold, one unstable direction below it
    assert (found.unstable.values[:turn] == 0).all()
    assert (found.unstable.values[turn + 1 : -1] == 1).all()
    assert (np.diff(found.order) < 0).all()
    # critical points of F: dF = -S dkappa, trapezium rule with an error of third order in the steps
    steps = np.diff(kappa)
    slopes = -(found.entropy.values[1:] + found.entropy.values[:-1]) / 2
    change = np.diff(found.free_energy.values)
    assert np.abs(change - slopes * steps).max() < 0.05 * np.abs(change).max()
    assert found.residual.max() < 1e-11
    assert found.coefficients.shape == (len(kappa), 33)


def test_branch_in_beta():
    """The branch in beta from the XY model ends where Newton's method ends; on S^2 for softmax."""
    basis, kappa = mf.ZonalBasis(3, 24), 0.2
    start = stationary(af.Attention(0.0), kappa, mf.von_mises_fisher(basis, 4.0)).density
    found = branch(af.Attention(0.0), kappa, start, along="beta", within=(0.0, 1.0), step=0.3)
    assert found.attrs["ended"] == "`within` was left at 1"
    assert found.beta.values[0] == 0
    assert found.beta.values[-1] == 1
    density = mf.Density(basis, found.coefficients.values[-1])
    again = stationary(af.Attention(1.0), kappa, density).density
    np.testing.assert_allclose(density.coefficients, again.coefficients, atol=1e-11)
    # rho is proportional to (K * mu)^{1/(beta kappa)}, by quadrature with the kernel averaged about the axis
    s, w = np.polynomial.legendre.leggauss(60)
    kernel = np.exp(s[:, None] * s - 1) * sp.i0(np.sqrt((1 - s**2)[:, None] * (1 - s**2)))
    power = (kernel @ (w / 2 * density(heights=s))) ** (1 / kappa)
    np.testing.assert_allclose(density(heights=s), power / np.sum(w / 2 * power), atol=1e-8)  # the tail of the density
    assert (found.unstable.values == 0).all()


def test_uniform_law_is_a_branch():
    """It loses stability at kappa_c in the three harmonics of degree 1."""
    basis, onset = mf.ZonalBasis(3, 24), critical_noise(1.0, 3)
    found = branch(af.Attention(1.0), 0.4, mf.uniform(basis), within=(0.25, 0.4), towards=-1, step=0.3)
    np.testing.assert_array_equal(found.unstable, np.where(found.kappa > onset, 0, 3))
    np.testing.assert_allclose(found.growth, 2 * (onset - found.kappa), atol=1e-12)
    assert found.attrs["ended"] == "`within` was left at 0.25"


def test_circle_with_rotations():
    """Off the axis the state is the even one, rotated; its rotation is a null vector and no instability."""
    basis, field, kappa = mf.CircleBasis(24), usa0(1.0), 0.12
    found = stationary(field, kappa, mf.von_mises_fisher(basis, 3.0, [1.0, 2.0])).density
    even = stationary(field, kappa, mf.von_mises_fisher(EVEN, 3.0)).density
    angle = np.arctan2(*np.asarray(found.moments.mean)[::-1])
    theta = np.linspace(0, 3, 9)
    np.testing.assert_allclose(found(angles=theta + angle), even(heights=np.cos(theta)), atol=1e-9)  # tails: 1e-10
    operator = linearised(field, found, kappa)
    null = rotations(basis, found.coefficients)[0]
    assert np.abs(operator.matrix @ null).max() < 1e-8 * np.abs(null).max()
    assert operator.growth[0] == pytest.approx(0, abs=1e-8)
    here, there = stability(field, found, kappa), stability(field, even, kappa)
    assert here.unstable == there.unstable == 0
    assert here.growth == pytest.approx(operator.growth[1], abs=1e-8)
    assert here.growth == pytest.approx(there.growth, abs=1e-8)


def test_refusals():
    start = mf.von_mises_fisher(EVEN, 2.0)
    for kappa in (0.0, -1.0):
        with pytest.raises(InvalidInput, match="`kappa` is"):
            stationary(usa0(1.0), kappa, start)
    with pytest.raises(InvalidInput, match="Q = K = V = I"):
        stationary(af.Attention(1.0, mask=af.Causal()), 0.1, start)
    with pytest.raises(InvalidInput, match=r"too few for exp\(Phi/kappa\).*refined\(64\)"):
        stationary(usa0(0.0), 0.01, mf.von_mises_fisher(EVEN, 80.0, tol=1.0))
    for wrong, words in (
        ({"along": "time", "within": (0.1, 1)}, "'kappa' or 'beta'"),
        ({"within": (0.0, 1.0)}, "increasing finite numbers"),
        ({"within": (0.5, 1.0)}, "starts at 0.2"),
        ({"within": (0.1, 1.0), "step": 0.0}, "a step in"),
    ):
        with pytest.raises(InvalidInput, match=words):
            branch(usa0(1.0), 0.2, start, **wrong)


def test_relaxation_finds_the_stable_state():
    """Newton's method from 1 + cos/2 at half the critical noise ends in the unstable uniform measure; the map does not."""
    field, basis = af.Attention(2.0), mf.ZonalBasis(2, 32)
    kappa, start = 0.5 * critical_noise(2.0, 2), mf.perturbed(basis, 1, 0.5)
    straight, relaxed = (stationary(field, kappa, start, relax=n).density for n in (0, 30))
    assert float(np.linalg.norm(straight.moments.mean)) < 1e-9
    assert not mf.stability(field, straight, kappa).stable
    assert float(np.linalg.norm(relaxed.moments.mean)) > 0.5
    assert mf.stability(field, relaxed, kappa).stable
