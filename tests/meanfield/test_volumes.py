"""Finite volumes against closed forms, theory, and what the scheme promises at every step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import integrate
from scipy.special import ive

import attnflow as af
from attnflow import meanfield as mf
from attnflow import theory
from attnflow.errors import InvalidInput
from attnflow.meanfield import as_model, cells_from_density, circle_cells, evolve_cells, zonal_cells
from attnflow.precision import full_precision
from tests.meanfield.schemes import make_scheme, volumes

USA0 = af.Unnormalised()
CIRCLE = mf.CircleBasis(24)


@jax.jit
def rate(scheme, masses):
    """The time derivative of the masses without noise."""
    flux, _ = volumes._flux(scheme, masses)
    return jnp.roll(flux, 1) - flux


@jax.jit
def stepped(scheme, masses, share):
    """One step of `share` of the longest one that the start allows: step, energies before and after."""
    tau = share / volumes._flux(scheme, masses)[1]
    moved = volumes.move(scheme, masses, tau)
    return tau, moved, volumes.energy(scheme, masses), volumes.energy(scheme, moved.masses)


heated = jax.jit(volumes.diffuse)
read = jax.jit(lambda scheme, masses: (volumes.velocity_potential(scheme, masses)[0], volumes.energy(scheme, masses)))


read_level = jax.jit(volumes.velocity_potential)


def two_bumps():
    return mf.mixture([1, 1], [mf.perturbed(CIRCLE, 4, 0.3), mf.von_mises_fisher(CIRCLE, 1.0, [1.0, 0.3])])


# what every step keeps


weights = arrays.arrays(
    np.float64, 64, elements=st.one_of(st.just(0.0), st.floats(0, 1), st.floats(-60, 0).map(lambda x: 10.0**x))
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(weights, st.floats(0, 60), st.booleans(), st.sampled_from([0.0, 0.3]), st.floats(0.1, 0.99))
def test_a_step_keeps_mass_sign_and_climbs(values, beta, softmax, kappa, share):
    assume(np.sum(values) > 0)
    masses = values / np.sum(values)
    field = af.Attention(beta) if softmax else af.Attention(beta, normaliser=USA0)
    with full_precision():
        scheme = make_scheme(field, circle_cells(64), kappa)
        tau, moved, before, after = jax.tree.map(np.asarray, stepped(scheme, jnp.asarray(masses), share))
    assume(tau * moved.limit <= 0.99)  # else the solver tries a shorter one
    assert np.min(moved.masses) >= 0
    # a sum of 64 numbers, changed by differences of fluxes; implicit steps are solved to rounding
    assert np.sum(moved.masses) == pytest.approx(1, abs=1e-14)
    if kappa == 0:
        # the energy is rounded like a transform of numbers of size 1
        assert after >= before - 4e-15 / max(beta, 1)


def test_the_longest_step_at_the_uniform_law():
    """Schur's test with even masses: 1/(3 R), R the mean of |cos|, 2/pi, for beta = 0, up to the width squared."""
    cells = circle_cells(64)
    with full_precision():
        scheme = make_scheme(af.Attention(0.0, normaliser=USA0), cells)
        tau = stepped(scheme, jnp.asarray(cells.measure), 0.5)[0]
    assert float(tau) == pytest.approx(0.5 * np.pi / 6, rel=cells.width**2)


def test_the_longest_step_of_softmax_is_shorter_by_what_it_divides_by():
    """At the uniform measure softmax divides the flux by K * mu = e^(-beta) I_0(beta), and so the longest step too."""
    cells, beta = circle_cells(64), 9.0
    with full_precision():
        steps = [
            float(stepped(make_scheme(af.Attention(beta, normaliser=rule), cells), jnp.asarray(cells.measure), 0.5)[0])
            for rule in (af.Softmax(), USA0)
        ]
    assert steps[1] / steps[0] == pytest.approx(1 / ive(0, beta), rel=1e-6)


def test_softmax_stays_finite_where_the_kernel_is_lost_in_rounding():
    """Opposite to all the mass K * mu is e^(-120); a Fourier transform gives rounding of either sign instead."""
    with full_precision():
        scheme = make_scheme(af.Attention(60.0), circle_cells(64))
        phi, level = (np.asarray(a) for a in read_level(scheme, jnp.asarray(np.eye(64)[3])))
    assert np.isfinite(phi).all()
    assert np.min(level) >= np.log(0.5e-12)
    assert -1 < np.max(level) <= 0


def test_the_error_of_a_step_is_of_order_three():
    """Order 3 less order 2; the next term is of the order of the step, here 1e-2."""
    cells = circle_cells(64)
    start = cells_from_density(cells, mf.von_mises_fisher(CIRCLE, 0.5, [1.0, 0.3]))
    with full_precision():
        scheme = make_scheme(af.Attention(1.0), cells)
        errors = [float(stepped(scheme, jnp.asarray(start), share)[1].error) for share in (0.1, 0.05)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3, abs=0.05)


def test_heat_from_one_cell():
    for cells in (circle_cells(64), zonal_cells(64, 64)):
        with full_precision():
            scheme = make_scheme(af.Attention(1.0), cells, 0.3)
            for tau in (1e-6, 1e-2, 1.0, 1e3):
                found = np.asarray(heated(scheme, np.eye(64)[20], tau))
                assert np.min(found) >= 0
                # each system is solved to rounding of its largest number
                largest = 1 + tau * 0.3 * np.max(scheme.right + scheme.left) / cells.width
                assert np.sum(found) == pytest.approx(1, abs=4 * np.finfo(float).eps * largest)
        # waves are left with the factor 2/(1 + z/2)^2 - 1/(1 + z), about -1/z, z = 300 k^2 or more; sum them
        np.testing.assert_allclose(found, cells.measure, atol=2 / 64 * np.pi**2 / 6 / 300)


@pytest.mark.parametrize("d", [2, 3])
def test_heat_equation(d):
    """Harmonics decay like e^{-kappa k (k+d-2) t}; width and step halved together divide the error by 4."""
    errors = []
    for count in (64, 128):
        cells = circle_cells(count) if d == 2 else zonal_cells(d, count)
        basis = mf.CircleBasis(3) if d == 2 else mf.ZonalBasis(d, 3)
        with full_precision():
            scheme = make_scheme(af.Attention(1.0), cells, 0.1)
            masses = cells_from_density(cells, mf.perturbed(basis, 3, 0.9))
            for _ in range(count // 4):
                masses = heated(scheme, masses, 2.0 / count)
        exact = cells_from_density(cells, mf.perturbed(basis, 3, 0.9 * np.exp(-0.1 * 3 * (d + 1) * 0.5)))
        errors.append(np.sum(np.abs(np.asarray(masses) - exact)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)  # the next terms are of order 4 and 3


def test_clocks_differ_by_their_factor():
    """Phi is e^beta, or beta e^beta, times that of USA0; with as much more noise the energy is the same."""
    cells, beta = circle_cells(64), 2.0
    masses = cells_from_density(cells, two_bumps())
    potential = af.Potential([[1.0, 0.5]], [0.2], [0.7], "tanh")
    with full_precision():

        def look(clock, factor):
            field = af.Attention(beta, normaliser=af.Unnormalised(clock))
            outer = af.Potential([[1.0, 0.5]], [0.2], [0.7 * factor], "tanh")
            scheme = make_scheme(field + outer, cells, 0.3 * factor)
            phi, energy = read(scheme, jnp.asarray(masses))
            return np.asarray(phi) / factor, float(energy)

        plain, energy = look("USA0", 1.0)
        for clock, factor in (("USA", np.exp(beta)), ("grad", beta * np.exp(beta))):
            phi, same = look(clock, factor)
            np.testing.assert_allclose(phi, plain, rtol=1e-14)
            assert same == pytest.approx(energy, rel=1e-13)
        alone = read(make_scheme(af.Attention(beta, normaliser=USA0), cells), jnp.asarray(masses))[0]
    x = np.stack([np.cos(cells.centres), np.sin(cells.centres)], axis=1)
    np.testing.assert_allclose(plain - np.asarray(alone), potential.potential(x), atol=1e-14)
    pairs = masses @ np.expm1(beta * (x @ x.T - 1)) @ masses / (2 * beta)
    rest = masses @ potential.potential(x) - 0.3 * masses @ np.log(masses / cells.measure)
    # neighbours meet at K moved by beta width^2/3, of which 3 of 64 pairs
    assert energy == pytest.approx(pairs + rest, abs=cells.width**2 / 6)


def test_the_limiter():
    """The mean of both slopes, at most twice the smaller, and 0 at extrema."""
    a = np.array([1.0, 1.0, -1.0, -5.0, 1.0, 0.0])
    b = np.array([2.0, 5.0, -2.0, -1.0, -1.0, 3.0])
    np.testing.assert_array_equal(jax.jit(volumes._limited)(a, b), [1.5, 2.0, -1.5, -2.0, 0.0, 0.0])


# accuracy


def poisson(cells, r):
    """Masses of (1 - r^2)/(1 - 2 r cos t + r^2): its distribution function is atan((1+r)/(1-r) tan(t/2))/pi."""
    turned = np.arctan((1 + r) / (1 - r) * np.tan(cells.edges / 2)) / np.pi
    return np.mod(np.diff(turned), 1.0)


@pytest.mark.slow
def test_second_order_while_smooth():
    """At beta = 0 the flow of the Poisson kernel is its family: r' = r (1 - r^2)/2, so r^2/(1 - r^2) grows like e^t.

    The error is c width^2 in L^1. At the two extrema, in a few cells, the limiter cuts slopes that are O(width), where
    the speed is O(width) too: that adds O(width^3). (From r = 0.4 on the same order comes later: 1.86, 1.93, 1.96.)
    """
    start, until = 0.2, 1.5
    odds = start**2 / (1 - start**2) * np.exp(until)
    errors = []
    for count in (128, 256):
        cells = circle_cells(count)
        flow = evolve_cells(af.Attention(0.0), cells, poisson(cells, start), until, save=af.saving.Evenly(1))
        errors.append(np.sum(np.abs(flow.masses.values[-1] - poisson(cells, np.sqrt(odds / (1 + odds))))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(("d", "k"), [(2, 3), (8, 3)])
def test_growth_rates(d, k):
    errors = []
    for count in (64, 128):
        cells = zonal_cells(d, count) if d > 2 else circle_cells(count)
        basis = mf.ZonalBasis(d, k) if d > 2 else mf.CircleBasis(k)
        wave = cells_from_density(cells, mf.perturbed(basis, k, 0.5)) - cells.measure
        scheme, size = make_scheme(af.Attention(9.0), cells), 1e-5
        with full_precision():
            up, down = (np.asarray(rate(scheme, jnp.asarray(cells.measure + s * size * wave))) for s in (1, -1))
        change = (up - down) / (2 * size)  # the even part cancels; what is left is of order size^2
        found = np.sum(change * wave / cells.measure) / np.sum(wave**2 / cells.measure)
        errors.append(abs(found / theory.uniform.growth_rates(9.0, d, k=k) - 1))
    # the error is c width^2 (1 + O((k + sqrt beta)^2 width^2)): 0.36 at the wider width on the circle, less elsewhere
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)
    assert errors[1] < 3e-3


@pytest.mark.slow
def test_zonal_on_the_circle():
    belts, arcs = zonal_cells(2, 64), circle_cells(128)
    basis = mf.ZonalBasis(2, 24)
    masses = cells_from_density(
        belts, mf.mixture([1, 1], [mf.von_mises_fisher(basis, 2.0), mf.perturbed(basis, 3, 0.5)])
    )
    settings = {"kappa": 0.05, "save": af.saving.Evenly(2)}
    half = evolve_cells(af.Attention(9.0), belts, masses, 3.0, **settings)
    full = evolve_cells(af.Attention(9.0), arcs, np.concatenate([masses, masses[::-1]]) / 2, 3.0, **settings)
    # the same scheme: what differs is rounding, which grows at rates of at most 1
    np.testing.assert_allclose(half.masses.values, 2 * full.masses.values[:, :64], atol=1e-12)
    np.testing.assert_allclose(half.energy.values, full.energy.values, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kappa", [0.0, 0.2])
@pytest.mark.parametrize("field", [af.Attention(4.0), af.Attention(4.0, normaliser=USA0)], ids=["SA", "USA0"])
def test_against_harmonics(field, kappa):
    """The same equation in Fourier modes, integrated by SciPy: errors of size c width^2."""
    basis = mf.CircleBasis(64)
    rho = mf.mixture([1, 2], [mf.perturbed(basis, 2, 0.5, -1), mf.von_mises_fisher(basis, 1.0, [1.0, 0.3])])
    with full_precision():
        model = as_model(field, kappa)
        change = eqx.filter_jit(lambda model, c: model.rate(basis, c) + model.diffusion(basis) * c)
        run = integrate.solve_ivp(
            lambda t, c: np.asarray(change(model, c)), (0, 1), np.asarray(rho.coefficients), rtol=1e-9, atol=1e-12
        )
    end = mf.Density(basis, run.y[:, -1])
    errors = []
    for count in (128, 256):
        cells = circle_cells(count)
        start = cells_from_density(cells, rho)
        flow = evolve_cells(field, cells, start, 1.0, kappa=kappa, tol=1e-5, save=af.saving.Evenly(1))
        errors.append(np.sum(np.abs(flow.masses.values[-1] - cells_from_density(cells, end))))
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(2, abs=0.15)


# clusters


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_two_clusters_merge(model):
    """Each of two clusters is within a cell of its place when theory says they are at the angle `near`."""
    cells, beta, near, j = circle_cells(128), 4.0, 0.3, 24
    field = af.Attention(beta) if model == "SA" else af.Attention(beta, normaliser=USA0)
    masses = np.zeros(128)
    masses[[0, j]] = 0.5
    until = float(theory.merging.merge_time(j * cells.width, beta, until=near, model=model))
    flow = evolve_cells(field, cells, masses, until, save=af.saving.Evenly(20))
    away = (np.mod(np.arange(128) - j / 2 + 64, 128) - 64) * cells.width
    right = np.where(away > 0, flow.masses.values[-1], 0.0)
    apart = 2 * np.sum(right * away) / np.sum(right)
    assert near - cells.width < apart < near + 2 * cells.width
    assert np.min(np.diff(flow.energy)) > 0
    assert flow.concentrated == 0


def test_survives_concentration():
    cells = circle_cells(128)
    seen = []
    start = cells_from_density(cells, two_bumps())
    flow = evolve_cells(af.Attention(9.0), cells, start, 50.0, save=af.saving.Evenly(100), on_progress=seen.append)
    last = flow.masses.values[-1]
    assert np.max(np.abs(np.sum(flow.masses.values, axis=1) - 1)) < 1e-13
    assert np.min(flow.masses.values) >= 0
    heavy = np.flatnonzero(last > 1e-6)
    runs = np.split(heavy, np.flatnonzero(np.diff(heavy) > 1) + 1)
    assert len(runs) == 4  # the four bumps of the start
    assert max(len(run) for run in runs) <= 2
    assert flow.dataset["narrow"].values[-1] > 0.999
    assert 0 < flow.concentrated < 20
    assert f"concentrated: clusters are narrower than a cell since t = {flow.concentrated:.4g}" in flow.outcome.message
    assert np.min(np.diff(flow.energy)) > -4e-15 / 9
    assert seen[-1].remaining == 0
    assert seen[-1].frames == seen[-1].of == 101
    # tokens meet at K, cells at K moved by at most beta width^2/3 near the diagonal, and E has the factor 1/(2 beta)
    assert float(af.observe.energy(flow.hand_over(), 9.0)) == pytest.approx(
        float(flow.energy[-1]), abs=cells.width**2 / 6
    )


@pytest.mark.slow
def test_a_potential_and_noise():
    """The stationary state is proportional to exp(Phi/kappa), and the free energy climbs to it."""
    field = af.Attention(1.0, normaliser=USA0) + af.Potential([[1.0, 0.5]], [0.2], [1.0], "tanh")
    cells, kappa = circle_cells(128), 0.8
    flow = evolve_cells(field, cells, cells.measure, 12.0, kappa=kappa, save=af.saving.Evenly(12))
    last = flow.masses.values[-1]
    with full_precision():
        phi = np.asarray(read(make_scheme(field, cells, kappa), jnp.asarray(last))[0])
    gibbs = np.exp(phi / kappa)
    # second order: the linear reconstruction errs by width^2 rho''/8 rho or less, |rho''/rho| and |v/kappa| are below 4
    np.testing.assert_allclose(last, gibbs / np.sum(gibbs), rtol=2 * cells.width**2)
    # steps move less than 1e-5 mass wrongly per time, by `tol`, and the potential Phi - kappa log rho varies by 4
    assert np.min(np.diff(flow.energy)) > -4e-5
    assert np.min(np.diff(flow.energy)[:4]) > 0


def test_one_compilation(faults):
    cells = circle_cells(128)
    start = cells_from_density(cells, two_bumps())
    evolve_cells(af.Attention(2.0), cells, start, 0.1, save=af.saving.Evenly(1))
    traced = []
    faults.replace("advection of cells", lambda *args: traced.append(args))
    for field in (af.Attention(5.0), af.Attention(0.0, normaliser=USA0)):
        evolve_cells(field, cells, start, 0.2, kappa=0.01, tol=1e-2, save=af.saving.Evenly(1))
    assert not traced


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masses": np.full(32, 1 / 31)}, "sum to 1.03"),
        ({"masses": np.where(np.arange(32) == 3, -0.5, 1.5 / 31)}, r"masses\[3\] is -0.5"),
        ({"masses": np.full(31, 1 / 31)}, "one mass per cell"),
        ({"masses": np.full(32, np.nan)}, "not finite"),
        ({"kappa": -0.1}, "`kappa` is -0.1"),
        ({"until": 0.0}, "`until` is 0.0"),
        ({"tol": 2.0}, "`tol` is 2.0"),
        ({"field": af.Attention(100.0)}, "at least 63"),
        ({"field": af.Attention(af.Along("beta", [1.0, 2.0]))}, "holds an Along"),
        ({"field": af.Attention(1.0) + af.Potential([[1.0, 0.5]], [0.2], [0.5]), "cells": zonal_cells(2, 32)}, "zonal"),
        ({"field": af.Attention(20.0), "cells": zonal_cells(100, 32)}, "at least 35"),
    ],
)
def test_refusals(change, message):
    given = {"field": af.Attention(1.0), "cells": circle_cells(32), "masses": np.full(32, 1 / 32), "until": 1.0}
    given |= change
    with pytest.raises(InvalidInput, match=message):
        evolve_cells(given.pop("field"), given.pop("cells"), given.pop("masses"), given.pop("until"), **given)
