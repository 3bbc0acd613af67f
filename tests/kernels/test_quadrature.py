"""Expansions by quadrature: their numbers and their stated errors, at degrees far beyond those of the kernel."""

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import attnflow as af
from attnflow.kernels import AbstractZonal, Polynomial, by_quadrature
from attnflow.kernels.polynomials import angles_and_nodes, legendre
from attnflow.special import degree_weights
from attnflow.sums import Circle, Tiled
from tests.marks import graded

EPS = np.finfo(float).eps
POWERS, OFFSETS = (1, 2, 3, 5), np.array([0.0, 0.5, 1.0])


class Steep(AbstractZonal):
    """`Exponential(beta)` without its closed forms."""

    beta: float = eqx.field(converter=np.asarray)
    is_signed = False

    def profile(self, s):
        return jnp.asarray(self.beta, s.dtype) * (s - 1)


@pytest.mark.parametrize("d", [2, 3, 9])
def test_polynomials_are_right_to_the_last_digit(d):
    """Against mpmath at 40 digits, at the nodes nearest to 1, in the middle and nearest to -1."""
    last, count = 300, 1209
    theta, nodes = angles_and_nodes(count)
    some = np.array([0, 1, 300, 604, count - 2, count - 1])
    with mp.workdps(40):
        exact = [mp.cos((2 * int(i) + 1) * mp.pi / (2 * count)) for i in some]
        rows = [[mp.mpf(1)] * len(some), exact]
        for k in range(1, last):
            rows.append(
                [((2 * k + d - 2) * s * b - k * a) / (k + d - 2) for s, a, b in zip(exact, *rows[-2:], strict=True)]
            )
        table = np.array(rows, dtype=object).astype(float)
    found = legendre(d, last, nodes)
    np.testing.assert_allclose(theta, (np.arange(count) + 0.5) * np.pi / count, rtol=4 * EPS)
    # one rounding: the table of mpmath is rounded too; 0 at the middle node for odd degrees
    np.testing.assert_allclose(found[:, some], table, rtol=EPS, atol=1e-32)


@graded("degree", [16, 48, 64, 128, 256, 512], fast=1)
def test_nothing_is_left_beyond_a_polynomial(degree):
    """Coefficients beyond the power, which are 0, are smaller than the noise; none is found beyond the last degree."""

    @eqx.filter_jit
    def expand():
        return [jax.vmap(lambda a, power=power: Polynomial(power, a).expansion(2, degree))(OFFSETS) for power in POWERS]

    with jax.enable_x64(True):
        made = jax.tree.map(np.asarray, expand())
    for power, found in zip(POWERS, made, strict=True):
        assert (found.rest == 0).all()
        assert (np.abs(found.p[:, power + 1 :]).sum(axis=1) <= found.noise).all()
        np.testing.assert_allclose(np.exp(found.scale) * found.p.sum(axis=1), 1, atol=np.max(found.noise))
        assert (found.noise < 1.3 * (degree + 1) * (4 + 4 * power) * EPS).all()  # |K| <= 1, |K'| <= power, mean |cos|


def test_a_kernel_with_all_the_degrees_that_are_tried_first_needs_no_more():
    """cos^32, whose last coefficient is 2^-31 = 5e-10: its noise is that of 33 coefficients, half of that of 65."""
    kernel = Polynomial(32, 0.0)
    with jax.enable_x64(True):
        noise = float(kernel.expansion(2, 32).noise)
    assert kernel.needed_degree(2, 1e-11) == (32, pytest.approx(noise, rel=1e-10, abs=0.0))


@pytest.mark.slow
@pytest.mark.parametrize(("d", "degree"), [(2, 512), (3, 256), (5, 256)])
def test_the_noise_bounds_the_errors_of_a_steep_kernel(d, degree):
    """The closed form has p_k by quotients of Bessel functions. Rounding <x, y> by half a unit changes K by beta/2."""

    @eqx.filter_jit
    def expand(beta):
        return by_quadrature(lambda s: beta * s - beta, False, d, degree)

    for beta in (3.0, 100.0, 3000.0):
        with jax.enable_x64(True):
            found = jax.tree.map(np.asarray, expand(jnp.asarray(beta)))
        exact = degree_weights(beta, d, degree + 1)
        assert np.abs(found.p - exact[: degree + 1]).sum() < found.noise < 1e-9
        rest = exact[degree + 1 :].sum()  # the quadrature looks 64 degrees farther
        assert rest - exact[degree + 65 :].sum() - 64 * found.noise <= found.rest <= rest + 64 * found.noise


@graded(
    ("kernel", "normaliser", "degree"),
    [(Polynomial(3, 0.5), af.Unnormalised(), 256), (Steep(1000.0), af.Softmax(), 256)],
    ids=["polynomial", "steep"],
    slow=1,
)
def test_velocities_by_many_degrees_are_those_of_tiles(kernel, normaliser, degree):
    tokens = af.uniform(af.Sphere(2), n=200, seed=1)
    tol = 1e-11 if kernel.is_signed else 1e-7
    made = af.Attention(kernel=kernel, normaliser=normaliser, sum=Circle(tol, degree))
    plain = af.Attention(kernel=kernel, normaliser=normaliser, sum=Tiled())
    needed, _ = kernel.needed_degree(2, 0.25 * tol / 200)
    assert needed == 3 if kernel.is_signed else needed > 100
    np.testing.assert_allclose(made.velocity(tokens), plain.velocity(tokens), atol=tol)
