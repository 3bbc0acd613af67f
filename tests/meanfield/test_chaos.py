"""Distances between tokens and densities, and noise in the linearised flow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ive

from attnflow import theory
from attnflow.errors import InvalidInput
from attnflow.fields import Attention, Potential, Unnormalised
from attnflow.meanfield import (
    CircleBasis,
    Density,
    Fluctuations,
    SphereBasis,
    ZonalBasis,
    as_model,
    carried_noise,
    expected_distance,
    expected_observable,
    fluctuations,
    from_function,
    linearised_distance,
    observable_distance,
    perturbed,
    quadrature,
    quadrature_error,
    quiet,
    sample,
    uniform,
)
from attnflow.meanfield.analysis.chaos import _response, _spread, _velocity
from attnflow.precision import full_precision
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens
from attnflow.transport import distance

BASIS = CircleBasis(24)
TIMES = [0.0, 0.7]
BETA = 2.0
STARTS = 80


def ring(angles, masses=None):
    return Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1), masses, space=Sphere(2))


def even(n, distribution=None):
    theta = 2 * np.pi * np.arange(n) / n
    return ring(theta, None if distribution is None else distribution(angles=theta))


def tilted():
    return from_function(BASIS, lambda a: 1 + 0.4 * np.cos(a) + 0.2 * np.sin(2 * a))


@pytest.fixture(scope="module", params=["SA", "USA0"])
def field(request):
    return Attention(BETA) if request.param == "SA" else Attention(BETA, normaliser=Unnormalised())


@pytest.fixture(scope="module")
def at_uniform(field):
    return fluctuations(field, uniform(BASIS), TIMES, starts=even(STARTS))


@pytest.fixture(scope="module")
def at_tilted(field):
    return fluctuations(field, tilted(), TIMES, starts=even(STARTS, tilted()))


def rate(field, k):
    """k^2 a_k/beta on the circle, over a_0 for softmax."""
    return k**2 * ive(k, BETA) / BETA / (ive(0, BETA) if "Softmax" in type(field.normaliser).__name__ else 1.0)


def test_distance_to_the_uniform_law():
    """n even tokens: pi/(2n), one token: the mean distance pi/2; D is linear between tokens, so to rounding."""
    for n in (1, 2, 7):
        assert distance(even(n), uniform(BASIS)) == pytest.approx(np.pi / (2 * n), rel=1e-12)


def test_masses_count():
    """Antipodes p, 1-p: D rises and falls by 1/2 over each half, centred on one c; quarter turns by hand at p = 1."""
    one = distance(ring(np.array([0.3, 2.0]), [1.0, 0.0]), uniform(BASIS))
    assert one == pytest.approx(np.pi / 2, rel=1e-12)
    twice = distance(ring(np.array([0.3, 0.3, 2.0])), tilted())
    assert twice == pytest.approx(distance(ring(np.array([0.3, 2.0]), [2, 1]), tilted()), rel=1e-12)


def test_distance_agrees_with_the_one_between_tokens():
    """n quiet tokens are pi/(2n) from the density, and W_1 obeys the triangle inequality."""
    tokens, many = sample(tilted(), 60, 3), quiet(tilted(), 20000)
    found = distance(tokens, tilted())
    assert distance(many, tilted()) == pytest.approx(np.pi / 40000, rel=1e-3)
    assert abs(found - distance(tokens, many)) <= 1.001 * np.pi / 40000


def test_distance_turns_with_the_circle():
    angles = np.array([0.1, 1.0, 4.0, 6.2])
    turned = from_function(BASIS, lambda a: 1 + 0.4 * np.cos(a - 1) + 0.2 * np.sin(2 * a - 2))
    error = quadrature_error(tilted()) + quadrature_error(turned)
    assert abs(distance(ring(angles), tilted()) - distance(ring(angles + 1), turned)) <= error


def test_the_quadrature_error_is_bounded_and_of_order_2():
    tokens = sample(tilted(), 5, 1)
    fine = distance(tokens, tilted())
    missed = [abs(tilted().distance_from(tokens, grid=g) - fine) for g in (60, 120, 240)]
    assert all(m <= quadrature_error(tilted(), g) for m, g in zip(missed, (60, 120, 240), strict=True))
    assert quadrature_error(tilted(), 60) / quadrature_error(tilted(), 120) == pytest.approx(4, rel=0.05)


def test_one_token_by_observables():
    """The coefficients of a point are those of the kernel: sum of (2k+1)/(k (k+1)) on S^2, of 2/k^2 on the circle."""
    k = np.arange(1, 6)
    x = Tokens(np.array([[0.6, 0.0, 0.8]]))
    found = observable_distance(x, uniform(SphereBasis(3)), 5)
    assert found == pytest.approx(np.sqrt(np.sum((2 * k + 1) / (k * (k + 1)))), rel=1e-12)
    found = observable_distance(even(1), uniform(BASIS), 5)
    assert found == pytest.approx(np.sqrt(np.sum(2 / k**2)), rel=1e-12)


@pytest.mark.slow
def test_noise_at_the_uniform_law_grows_by_the_spectrum(field, at_uniform):
    """Nothing moves, and a unit mass at a becomes sum e^(lambda_k t) Y_k(a) Y_k; steps of relative error 1e-8."""
    np.testing.assert_allclose(at_uniform.moved[-1], at_uniform.starts.positions, atol=1e-12)
    seen = at_uniform.responses[-1]
    bare = np.stack(
        [BASIS.atoms(x, [1.0]) for x in theory.landscape.circle_points(2 * np.pi * np.arange(STARTS) / STARTS)]
    )
    growth = np.expm1(rate(field, np.maximum(BASIS.degrees, 1)) * TIMES[-1])
    np.testing.assert_allclose(seen[:, 1:], (bare * growth)[:, 1:], atol=1e-6)


def test_observables_at_the_uniform_law(field, at_uniform):
    k = np.arange(1, 5)
    for t, found in zip(TIMES, expected_observable(at_uniform, 4), strict=True):
        exact = np.sqrt(np.sum(2 / k**2 * np.exp(2 * rate(field, k) * t)))
        assert found == pytest.approx(exact, rel=1e-6)


def test_carried_noise_at_the_uniform_law(field, at_uniform):
    """Every harmonic of the noise has variance 1 and grows, without moving: sum_k 2 (e^(lambda_k t) - 1)^2."""
    k = np.arange(1, BASIS.degree + 1)
    exact = [np.sqrt(np.sum(2 * np.expm1(rate(field, k) * t) ** 2)) for t in TIMES]
    np.testing.assert_allclose(carried_noise(at_uniform), exact, rtol=1e-6)


@pytest.fixture(scope="module")
def two_starts():
    """Masses 1/4 at the angle 0 and 3/4 at a quarter turn; the first is answered by sqrt2 cos. rho = 1 + cos/2."""
    distribution = from_function(BASIS, lambda a: 1 + 0.5 * np.cos(a))
    starts = ring(np.array([0.0, np.pi / 2]), [0.25, 0.75])
    responses = np.stack([np.eye(2 * BASIS.degree + 1)[1], np.zeros(2 * BASIS.degree + 1)])
    return Fluctuations(
        distribution, np.zeros(1), distribution.coefficients[None], starts, starts.positions[None], responses[None]
    )


def test_carried_noise_is_a_variance_over_the_density(two_starts):
    """p (1-p) int 2 cos^2/(1 + e cos) = 2 p (1-p) (1/sqrt(1 - e^2) - 1)/e^2; the grid leaves 0.27^75."""
    exact = 2 * 3 / 16 * (1 / np.sqrt(0.75) - 1) / 0.25
    assert carried_noise(two_starts)[0] == pytest.approx(np.sqrt(exact), rel=1e-12)


def test_an_observable_has_the_variance_of_two_values(two_starts):
    """p (1-p) times squared differences: (1 + sqrt2, -sqrt2) in degree 1, (2 sqrt2, 0) in degree 2, over k^2."""
    exact = 3 / 16 * ((1 + np.sqrt(2)) ** 2 + 2 + 8 / 4)
    assert expected_observable(two_starts, 2)[0] == pytest.approx(np.sqrt(exact), rel=1e-12)


def test_clocks_and_potentials_drive_noise():
    """As tokens of the grid do; a unit mass at x is answered at the uniform measure by k^2 a_k/beta Y_k(x), e^beta faster."""
    field, x = Attention(BETA, normaliser=Unnormalised("USA")), np.array([0.6, -0.8])
    both = field + Potential([[1.0, 0.5]], [0.2], [0.8], "tanh")
    with full_precision():
        angles = jnp.asarray(BASIS.points())
        grid = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)
        found = jax.jit(lambda c, x: _velocity(as_model(both), BASIS, grid, c)(x))(tilted().coefficients, x)
        answer = jax.jit(lambda c, x: _response(as_model(field), BASIS, grid, c)(x))(uniform(BASIS).coefficients, x)
    # a sum over the same grid: rounding of terms below e^beta
    np.testing.assert_allclose(found, both.velocity(quadrature(tilted()), at=x[None])[0], atol=1e-13)
    k = BASIS.degrees
    exact = np.exp(BETA) * k**2 * ive(k, BETA) / BETA * BASIS.atoms(x, [1.0])
    np.testing.assert_allclose(answer, exact, atol=1e-11)  # rounding times 24^2


def test_the_spread_is_about_the_median():
    """Lengths count: of 5, 1, 2 with lengths 1, 1, 3 the median is 2, of 5, 1, 2 with 1, 4, 2 it is 1."""
    assert _spread(np.array([[5.0, 1.0, 2.0]]), np.array([1.0, 1.0, 3.0])) == [4.0]
    assert _spread(np.array([[5.0, 1.0, 2.0]]), np.array([1.0, 4.0, 2.0])) == [6.0]


@pytest.mark.slow
def test_observables_at_the_uniform_law_of_the_sphere():
    """(2k+1)/(k (k+1)) e^(2 lambda_k t), lambda_k = k (k+1) I_(k+1/2)/(beta I_(1/2)); rings of 4 and 5 latitudes."""
    starts = quadrature(uniform(ZonalBasis(3, 3)))
    flow = fluctuations(Attention(1.0), uniform(SphereBasis(9)), TIMES, starts=starts)
    k = np.arange(1, 4)
    growth = np.exp(2 * k * (k + 1) * ive(k + 0.5, 1.0) / ive(0.5, 1.0) * TIMES[-1])
    exact = [np.sqrt(np.sum((2 * k + 1) / (k * (k + 1)) * g)) for g in (1.0, growth)]
    np.testing.assert_allclose(expected_observable(flow, 3), exact, rtol=1e-6)


def test_a_smooth_perturbation_is_carried_as_the_equation_has_it(field, at_tilted):
    """Against a central difference of nonlinear flows: of order size^2 = 1e-6; steps are off by 1e-10 |state|/size, 3e-6."""
    size, theta = 1e-3, 2 * np.pi * np.arange(STARTS) / STARTS
    bump = np.cos(theta) + np.sin(3 * theta)
    weights = bump / STARTS
    bare = np.sum(
        [w * BASIS.atoms(x, [1.0]) for w, x in zip(weights, at_tilted.moved[-1], strict=True)],
        axis=0,
    )
    found = bare + np.tensordot(weights, at_tilted.responses[-1], 1)
    shape = np.asarray(BASIS.harmonic(1) + BASIS.harmonic(3, -3))
    starts = at_tilted.starts  # the same program serves
    distributions = [Density(BASIS, tilted().coefficients + s * size * shape) for s in (1, -1)]
    ends = [
        fluctuations(field, distribution, TIMES, starts=starts, rtol=1e-10).coefficients[-1]
        for distribution in distributions
    ]
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * size), atol=3e-6)


def test_the_linearised_distance_is_linear_in_the_noise(field, at_tilted):
    """At time 0 it is W_1 itself; quiet tokens, whose noise is a sawtooth that nothing feels, stay at pi/(2n)."""
    tokens = quiet(tilted(), 300)
    found = linearised_distance(at_tilted, tokens)
    assert found[0] == distance(tokens, tilted())
    np.testing.assert_allclose(found, np.pi / 600, rtol=1e-4)


@pytest.mark.slow
def test_the_expected_distance_is_the_mean_of_linearised_distances(field, at_tilted):
    """Two routes: Gaussian fields, and iid tokens (whose mean differs by the order 1/n)."""
    expected = expected_distance(at_tilted, samples=1000, cells=128)
    rows = np.sqrt(200) * np.array(
        [linearised_distance(at_tilted, sample(tilted(), 200, s), grid=256) for s in range(100)]
    )
    error = np.hypot(expected.error, rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))
    # cells of 1/128 leave out the bridge within, of variance 1/(6 128) against some 1/12: below 1 %
    assert (np.abs(rows.mean(axis=0) - expected.mean) <= 3 * error + 0.01 * expected.mean).all()
    np.testing.assert_allclose(
        rows.std(axis=0, ddof=1), expected.deviation, rtol=0.3
    )  # 4 standard errors of 1/sqrt(200)


def test_refusals():
    distribution = tilted()
    with pytest.raises(InvalidInput, match="CircleBasis"):
        distance(even(3), uniform(SphereBasis(2)))
    with pytest.raises(InvalidInput, match="one system on the circle"):
        distance(Tokens(np.eye(3)), distribution)
    with pytest.raises(InvalidInput, match="`grid` is 20"):
        distribution.distance_from(even(3), grid=20)
    with pytest.raises(InvalidInput, match="increasing"):
        fluctuations(Attention(BETA), distribution, [1.0, 1.0])
    with pytest.raises(InvalidInput, match="above 0"):
        fluctuations(Attention(0.0), distribution, [1.0])
    with pytest.raises(InvalidInput, match="no axis"):
        fluctuations(Attention(BETA), perturbed(ZonalBasis(3, 8), 1, 0.5), [1.0])


def test_uneven_starts_and_lost_densities_are_refused():
    flow = fluctuations(Attention(BETA), tilted(), [0.0], starts=ring(np.array([0.1, 2.0, 4.0])))
    with pytest.raises(InvalidInput, match="even angles"):
        expected_distance(flow)
    with pytest.raises(InvalidInput, match="above the 3"):
        expected_observable(fluctuations(Attention(1e-3), uniform(CircleBasis(3)), [0.0], starts=even(9)), 4)
    with pytest.raises(InvalidInput, match="refined\\(48\\)"):
        fluctuations(Attention(BETA), tilted(), [0.7], starts=even(STARTS, tilted()), resolution=1e-13)
