import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate

from attnflow.meanfield.harmonics import exponential

EPS = np.finfo(np.float64).eps
START, STIFF = np.array([0.5, 0.3, 0.7, 0.2]), np.array([-9.0, -4.0, -1.0, 0.0])


def coupled(c, np=np):
    return np.roll(c, 1) * c - 0.3 * np.roll(c, -1) ** 2 + 0.1


def traced(c):
    return coupled(c, jnp)


@eqx.filter_jit
def fixed_steps(c, linear, h, count):
    def one(_, carry):
        c, slope, _ = carry
        tried = exponential.step(traced, linear, c, slope, h)
        return tried.c, tried.slope, tried.error

    return jax.lax.fori_loop(0, count, one, (c, traced(c), c))


def test_the_tableau_is_that_of_diffrax():
    import diffrax

    tableau = diffrax.Dopri5.tableau
    np.testing.assert_array_equal(exponential.NODES[1:], tableau.c)
    for row, theirs in zip(exponential.TABLEAU[1:], tableau.a_lower, strict=True):
        np.testing.assert_array_equal(row[: len(theirs)], theirs)
        assert not row[len(theirs) :].any()
    # Diffrax takes another member of the family of embedded orders 4, whose weights of the error are all 2/3 of these
    np.testing.assert_allclose(exponential.ERROR, 1.5 * tableau.b_error, atol=EPS)
    np.testing.assert_allclose(exponential.ERROR, -integrate.RK45.E, atol=EPS)

    c, h = START, 0.1
    for _ in range(3):
        stages = [coupled(c)]
        for row in tableau.a_lower:
            stages.append(coupled(c + h * np.asarray(row) @ stages))
        c = c + h * tableau.b_sol @ stages
    with jax.enable_x64(True):
        ours, *_ = fixed_steps(jnp.asarray(START), jnp.zeros(4), jnp.asarray(h), jnp.asarray(3))
    np.testing.assert_allclose(ours, c, atol=32 * EPS)


def test_order_five_and_an_embedded_order_four():
    with jax.enable_x64(True):
        exact = integrate.solve_ivp(
            lambda t, c: STIFF * c + coupled(c), (0, 1), START, method="DOP853", rtol=1e-13, atol=1e-14
        ).y[:, -1]
        runs = [
            fixed_steps(jnp.asarray(START), jnp.asarray(STIFF), jnp.asarray(1 / n), jnp.asarray(n))
            for n in (20, 40, 80)
        ]
    errors = np.array([np.linalg.norm(np.asarray(run[0]) - exact) for run in runs])
    estimates = np.array([np.linalg.norm(np.asarray(run[2])) for run in runs])
    # the next term of the expansion changes the observed order by O(h), here under 0.3
    np.testing.assert_allclose(np.log2(errors[:-1] / errors[1:]), 5, atol=0.3)
    np.testing.assert_allclose(np.log2(estimates[:-1] / estimates[1:]), 5, atol=0.3)


def test_slices_do_not_matter_and_targets_are_met():
    @eqx.filter_jit
    def go(state, target, limit):
        tolerance = {"rtol": jnp.asarray(1e-9), "atol": jnp.asarray(1e-12)}
        return exponential.advance(traced, jnp.asarray(STIFF), state, target, limit, **tolerance)

    with jax.enable_x64(True):
        start, target = exponential.begin(jnp.asarray(START)), jnp.asarray(0.7)
        whole = go(start, target, jnp.asarray(10_000))
        assert whole.t == 0.7
        pieces = start
        while pieces.t < target:
            pieces = go(pieces, target, jnp.asarray(1))
        assert eqx.tree_equal(whole, pieces)
        error = whole.c - fixed_steps(start.c, jnp.asarray(STIFF), jnp.asarray(0.7 / 500), jnp.asarray(500))[0]
    assert np.linalg.norm(error) < 1e-9 * int(whole.accepted)  # at most the tolerance a step, and the flow contracts
    assert int(whole.accepted) < 100
