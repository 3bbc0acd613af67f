"""Jacobians and Hessians against finite differences and closed forms; equilibria and their indices."""

import numpy as np
import pytest

import attnflow as af
from attnflow import stability, theory
from attnflow.errors import InvalidInput, TooLarge
from attnflow.spaces import Ellipsoid
from tests.marks import graded

USA0 = af.Unnormalised()


def weighted(n=6, d=3, seed=0):
    return af.Tokens(af.uniform(af.Sphere(d), n=n, seed=seed).positions, np.random.default_rng(seed).random(n) + 0.2)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_frames_are_orthonormal_and_tangent(d):
    tokens = af.from_array(np.vstack([af.uniform(af.Sphere(d), n=20).positions, np.eye(d), -np.eye(d)]))
    frames = stability.tangent_bases(tokens)
    np.testing.assert_allclose(
        frames @ np.swapaxes(frames, 1, 2), np.broadcast_to(np.eye(d - 1), (20 + 2 * d, d - 1, d - 1)), atol=1e-14
    )
    assert np.abs(np.einsum("nad,nd->na", frames, tokens.positions)).max() < 1e-15


@graded(
    "field",
    [af.Attention(3.0), af.Attention(3.0, normaliser=USA0), af.Attention(2.0, value=np.diag([1.0, -0.5, 0.3]))],
    slow=2,
)
def test_jacobian_agrees_with_finite_differences(field):
    """Central differences of the velocity along geodesics, projected: error h^2 and eps/h."""
    tokens = weighted()
    matrix, frames, h = stability.jacobian(field, tokens), stability.tangent_bases(tokens), 1e-5
    for k in range(len(matrix)):
        i, a = divmod(k, 2)
        direction = np.zeros((6, 3))
        direction[i] = frames[i, a]

        def at(s, direction=direction):
            x = tokens.space.retract(tokens.positions + s * direction)
            return field.velocity(tokens.moved(x), at=x)

        numeric = np.einsum("nad,nd->na", frames, (at(h) - at(-h)) / (2 * h)).ravel()
        np.testing.assert_allclose(matrix[:, k], numeric, atol=1e-9)


def test_energy_hessian_is_the_jacobian_of_usa0_in_the_metric_of_the_masses():
    """Two code paths: second derivatives of the energy, first derivatives of the field; at any point, critical or not."""
    tokens, beta = weighted(), 4.0
    root = np.repeat(np.sqrt(tokens.masses), 2)
    similar = root[:, None] * stability.jacobian(af.Attention(beta, normaliser=USA0), tokens) / root[None, :]
    np.testing.assert_allclose(stability.energy_hessian(tokens, beta), similar, atol=1e-14)
    np.testing.assert_allclose(similar, similar.T, atol=1e-14)


def test_energy_hessian_where_tokens_coincide():
    """At consensus d - 1 rotations are neutral and everything else contracts at the rate 1, whatever beta is."""
    point = np.array([0.6, 0.0, 0.8])
    rates = np.linalg.eigvalsh(stability.energy_hessian(af.Tokens(np.tile(point, (4, 1))), 3.0))
    np.testing.assert_allclose(rates, [-1.0] * 6 + [0.0] * 2, atol=1e-13)


def test_hessian_agrees_with_second_differences_along_geodesics():
    tokens, beta, h = weighted(), 4.0, 1e-4
    hessian, frames = stability.energy_hessian(tokens, beta), stability.tangent_bases(tokens)
    rng = np.random.default_rng(1)
    for _ in range(3):
        v = rng.standard_normal(12)
        ambient = np.einsum("na,nad->nd", v.reshape(6, 2), frames) / np.sqrt(tokens.masses)[:, None]
        speed = np.linalg.norm(ambient, axis=1, keepdims=True)

        def along(s, ambient=ambient, speed=speed):
            return float(
                af.observe.energy(
                    tokens.moved(np.cos(s * speed) * tokens.positions + np.sin(s * speed) * ambient / speed), beta
                )
            )

        # fourth-order stencil: error h^4 times the sixth derivative, and eps/h^2 = 1e-8
        second = (-along(2 * h) + 16 * along(h) - 30 * along(0) + 16 * along(-h) - along(-2 * h)) / (12 * h * h)
        assert abs(second - v @ hessian @ v) < 2e-7 * np.abs(hessian).max() * (v @ v)


@pytest.mark.parametrize(
    ("n", "rates"), [(6, [6.775527500, 19.970983308, 26.397649564]), (8, [5.796281014, 17.903400463, 27.513888885])]
)
def test_ring_eigenvalues_are_the_printed_ones(n, rates):
    """USA at beta = 5: modes 1, 2, 3; each but the last (n even) comes twice."""
    found = stability.spectrum(af.Attention(5.0, normaliser=af.Unnormalised("USA")), af.tokens.ring(af.Sphere(2), n=n))
    for rate in rates:
        assert np.min(np.abs(found.eigenvalues - rate)) < 1e-8


def test_ring_eigenvalues_agree_with_theory():
    for model, normaliser in (("SA", af.Softmax()), ("USA0", USA0)):
        found = np.sort(
            stability.spectrum(
                af.Attention(9.0, normaliser=normaliser), af.tokens.ring(af.Sphere(2), n=7)
            ).eigenvalues.real
        )
        predicted = theory.landscape.ring_growth_rates(9.0, 7, k=np.arange(7), model=model)
        np.testing.assert_allclose(found, np.sort(predicted), atol=1e-10)


@pytest.mark.parametrize("normaliser", [af.Softmax(), USA0])
def test_consensus_contracts_at_rate_one(normaliser):
    tokens = af.Tokens(np.tile([[0.6, 0.0, 0.8]], (5, 1)), [1, 2, 3, 4, 5])
    found = stability.spectrum(af.Attention(7.0, normaliser=normaliser), tokens)
    np.testing.assert_allclose(np.sort(found.eigenvalues.real), [-1] * 8 + [0] * 2, atol=1e-13)
    assert found.nullity == 2  # rotations
    assert not found.unstable


def test_what_is_no_larger_than_the_tolerance_is_neutral():
    found = stability.Spectrum(np.array([0.5, 0.0, -0.5, -1.0]), np.zeros((4, 2, 3)), 0.5)
    assert (found.index, found.nullity) == (0, 3)


def test_antipodal_clusters_grow_at_the_closed_form_rate():
    """Two masses at angle pi, USA0: theta' = -M e^(-beta u) sin(theta), so pi - theta grows at M e^(-2 beta)."""
    beta = 2.0
    tokens = af.Tokens([[1.0, 0, 0], [-1.0, 0, 0]], [0.3, 0.7])
    found = stability.spectrum(af.Attention(beta, normaliser=USA0), tokens)
    np.testing.assert_allclose(found.eigenvalues[:2].real, np.exp(-2 * beta), rtol=1e-12)
    assert found.index == 2
    assert found.nullity == 2


@pytest.mark.parametrize("beta", [-0.72, -0.6])
def test_the_three_ring_changes_stability_at_minus_two_thirds(beta):
    found = stability.spectrum(af.Attention(beta, normaliser=af.Unnormalised("USA")), af.tokens.ring(af.Sphere(2), n=3))
    transverse = (1 / 2 + 3 * beta / 4) * np.exp(-beta / 2)
    assert np.sum(np.abs(found.eigenvalues - transverse) < 1e-13) == 2
    assert found.unstable == (beta > -2 / 3)


def test_leading_eigenpairs_without_a_matrix():
    tokens = af.uniform(af.Sphere(3), n=60, seed=2)
    field = af.Attention(9.0)
    whole, some = stability.spectrum(field, tokens), stability.leading_eigenpairs(field, tokens, count=4)
    np.testing.assert_allclose(np.sort(some.eigenvalues.real), np.sort(whole.eigenvalues.real[:4]), atol=1e-9)
    apply = stability.jacobian_operator(field, tokens)
    v = some.vectors[0]
    image = apply(v.real) + 1j * apply(v.imag)
    np.testing.assert_allclose(image, some.eigenvalues[0] * v, atol=1e-8)


@pytest.mark.slow
@pytest.mark.optimised
@pytest.mark.long
def test_leading_eigenpairs_at_ten_thousand_tokens():
    """A ring of 10,000: the most unstable pair is cos and sin of k_max theta, at lambda_kmax."""
    found = stability.leading_eigenpairs(af.Attention(9.0), af.tokens.ring(af.Sphere(2), n=10_000), count=2, tol=1e-9)
    np.testing.assert_allclose(found.eigenvalues.real, theory.uniform.growth_rates(9.0, 2, k=4), atol=1e-7)


@pytest.mark.slow
def test_equilibria_of_four_tokens_are_strict_saddles_but_consensus():
    found = stability.find_equilibria(n=4, d=3, beta=1.0, starts=60)
    assert found[-1].is_consensus
    assert not found[-1].is_strict_saddle
    assert len(found) >= 3
    energies = [float(af.observe.energy(e.tokens, 1.0)) for e in found]
    assert energies == sorted(energies)
    for e in found[:-1]:
        assert e.residual < 1e-11
        assert e.is_strict_saddle
    # the regular simplex is among them, the lowest
    np.testing.assert_allclose(np.sort(af.observe.overlaps(found[0].tokens)[np.triu_indices(4, 1)]), -1 / 3, atol=1e-6)


def test_newton_is_damped_where_its_step_overshoots():
    """From this start some steps do not lower the speeds; without stronger damping it would give up."""
    equilibrium = stability.find_equilibrium(af.Attention(9.0), af.uniform(af.Sphere(3), n=12, seed=4))
    assert equilibrium is not None
    assert equilibrium.residual <= 1e-12


def test_continuation_follows_the_ring():
    ring = af.tokens.ring(af.Sphere(2), n=5, jitter=1e-3, seed=1)
    betas = np.linspace(0.5, 5.0, 5)
    path = list(stability.continue_equilibrium(lambda b: af.Attention(b), ring, betas))
    assert len(path) == 5
    for beta, e in zip(betas, path, strict=True):
        gaps = np.diff(np.sort(np.arctan2(*e.tokens.positions.T)))
        np.testing.assert_allclose(gaps, 2 * np.pi / 5, atol=1e-9)
        assert e.spectrum.eigenvalues[0].real == pytest.approx(
            theory.landscape.ring_growth_rates(beta, 5).max(), abs=1e-9
        )


def test_refusals():
    batch = af.uniform(af.Sphere(3), n=4, seed=[0, 1])
    with pytest.raises(InvalidInput, match="batch dimensions"):
        stability.jacobian(af.Attention(1.0), batch)
    with pytest.raises(TooLarge, match="leading_eigenpairs"):
        stability.jacobian(af.Attention(1.0), af.uniform(af.Sphere(3), n=3001))
    with pytest.raises(InvalidInput, match="mass zero"):
        stability.energy_hessian(af.Tokens(np.eye(3), [1, 1, 0]), 1.0)
    for space in (af.Euclidean(3), Ellipsoid([1.0, 1.0, 1.0])):
        with pytest.raises(InvalidInput, match="E0 is not defined; give tokens on Sphere\\(3\\)"):
            stability.energy_hessian(af.Tokens(np.eye(3), space=space), 1.0)
    with pytest.raises(InvalidInput, match="batch dimensions"):
        stability.energy_hessian(batch, 1.0)
    with pytest.raises(InvalidInput, match="`field` has batch dimensions \\('beta',\\)"):
        stability.jacobian(af.Attention(af.Along("beta", [1.0, 2.0])), batch.member(seed=0))
    with pytest.raises(InvalidInput, match="`count` is 0"):
        stability.leading_eigenpairs(af.Attention(1.0), af.uniform(af.Sphere(3), n=9), count=0)
    with pytest.raises(InvalidInput, match="at least two tokens"):
        stability.find_equilibria(n=1, d=3, beta=1.0)
