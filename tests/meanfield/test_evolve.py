import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

import attnflow as af
from attnflow import meanfield as mf
from attnflow import theory
from attnflow.errors import FlowFailed, InvalidInput
from attnflow.flows import Ending
from attnflow.meanfield import as_model, evolve
from tests.conftest import rotation
from tests.marks import graded

SA, USA0 = af.Attention, lambda beta: af.Attention(beta, normaliser=af.Unnormalised())
CIRCLE, SPHERE, ZONAL = mf.CircleBasis(40), mf.SphereBasis(20), mf.ZonalBasis(8, 40)
AXIAL = {2: mf.ZonalBasis(2, 40), 3: mf.ZonalBasis(3, 20), 4: mf.ZonalBasis(4, 16), 8: ZONAL, 64: mf.ZonalBasis(64, 16)}
TIGHT = {"rtol": 1e-12, "atol": 1e-13}
EPS = np.finfo(np.float64).eps


def two_bumps(basis, turn=None):
    """A smooth distribution without symmetry, turned by an orthogonal matrix."""
    means = np.eye(basis.dim)[:2] + [0.2, 0.5, 0.4][: basis.dim]
    means = means if turn is None else means @ turn.T
    return mf.mixture([1, 2], [mf.von_mises_fisher(basis, k, m) for k, m in zip((0.5, 1.0), means, strict=True)])


def drift(flow, rtol=1e-10, atol=1e-12):
    """How much the errors of all steps can change the energy: its gradient has norm at most that of rho (a_k <= 1)."""
    size = np.max(np.linalg.norm(flow.dataset["coefficients"].values.reshape(flow.time.size, -1), axis=1))
    return flow.steps["accepted"] * (atol + rtol * size) * size


# exact solutions


def poisson(basis, a, axis):
    """The uniform measure under the Moebius map that takes 0 to a: ((1 - |a|^2)/|x - a|^2)^{d-1}."""
    x = basis.points()
    if isinstance(basis, mf.CircleBasis):
        x = np.stack([np.cos(x), np.sin(x)], axis=-1)
    s = x if isinstance(basis, mf.ZonalBasis) else x @ axis
    return ((1 - a**2) / (1 - 2 * a * s + a**2)) ** (basis.dim - 1)


def mean_overlap(a, d):
    """The mean of a Poisson kernel along its axis, by Gauss quadrature."""
    basis = AXIAL[d]
    return np.sum(basis.weights * basis.nodes * poisson(basis, a, None))


@graded(
    ("basis", "axis", "kind"),
    [(CIRCLE, [0.6, 0.8], SA), (CIRCLE, [0.6, -0.8], USA0), (SPHERE, [0.48, 0.6, 0.64], SA), (ZONAL, None, SA)],
    ids=["circle", "circle USA0", "sphere", "zonal"],
    slow=1,
)
def test_infinite_temperature_moves_uniform_laws_by_moebius_maps(basis, axis, kind):
    """beta = 0: x' = P_x m with m the mean, a conformal flow; a' = (1 - a^2) m(a)/2, on the circle m = a."""
    d, until, first = basis.dim, 1.0, 0.15
    if d == 2:
        odds = first**2 / (1 - first**2) * np.exp(until)  # d(a^2)/dt = a^2 (1 - a^2)
        last = np.sqrt(odds / (1 + odds))
    else:
        last = integrate.solve_ivp(
            lambda t, a: (1 - a**2) / 2 * mean_overlap(a[0], d), (0, until), [first], rtol=1e-12, atol=1e-13
        ).y[0, -1]
    start = mf.from_function(basis, lambda _: poisson(basis, first, axis), normalise=True)
    flow = evolve(kind(0.0), start, until, save=2, **TIGHT)
    found, exact = flow.density().values, poisson(basis, last, axis)
    # the cut: coefficients of the kernel fall like a^k; errors of the steps: 1e-12 each, and they grow at most e^{dt/2}
    cut = np.max(np.abs(np.asarray(basis.synthesis(basis.analysis(exact))) - exact) / basis.sensitivity)
    assert cut < 1e-9
    error = np.sqrt(np.sum(basis.weights * (found - exact) ** 2))
    assert error < 1e-10 + 10 * cut
    assert flow.energy[-1] == pytest.approx((mean_overlap(last, d) ** 2 - 1) / 2, abs=1e-10)


def test_attention_against_characteristics():
    """Quadrature tokens in NumPy: masses stay, so integrals of smooth functions are exponentially accurate."""
    beta, until = 9.0, 1.0
    fine = mf.CircleBasis(100)
    tokens = mf.quadrature(two_bumps(fine))
    angles, masses = fine.variable(tokens.positions), tokens.masses

    def velocity(t, theta):
        gap = theta[None, :] - theta[:, None]
        weights = masses * np.exp(beta * (np.cos(gap) - 1))
        return np.sum(weights * np.sin(gap), axis=1) / np.sum(weights, axis=1)

    ends = integrate.solve_ivp(velocity, (0, until), angles, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    flow = evolve(SA(beta), two_bumps(CIRCLE), until, save=2, **TIGHT)
    low = CIRCLE.degrees <= 10
    exact = CIRCLE.atoms(theory.landscape.circle_points(ends), masses)
    np.testing.assert_allclose(flow.density().coefficients[low], exact[low], atol=1e-10)
    assert flow.dataset["tail"][-1] < 1e-10


def test_pure_diffusion_is_exact():
    """beta = 0 and mean 0: no drift, and every coefficient decays as exp(-kappa k^2 t), in as few steps as frames."""
    start = mf.Density(CIRCLE, mf.uniform(CIRCLE).coefficients + 0.3 * CIRCLE.harmonic(2) + 0.2 * CIRCLE.harmonic(30))
    flow = evolve(SA(0.0), start, 1.0, kappa=0.7, save=[0.25, 1.0])
    exact = start.coefficients * np.exp(CIRCLE.laplacian * 0.7 * flow.time.values[:, None])
    np.testing.assert_allclose(flow.dataset["coefficients"], exact, atol=50 * EPS)  # 3 steps of 6 factors
    np.testing.assert_array_equal(flow.time, [0, 0.25, 1])
    np.testing.assert_allclose(
        flow.dataset["speed"], np.linalg.norm(0.7 * CIRCLE.laplacian * exact, axis=1), rtol=1e-12
    )
    assert flow.steps["accepted"] < 10


# linear growth


rate = eqx.filter_jit(lambda model, basis, c: model.rate(basis, c))


@eqx.filter_jit
def linear_rates(model, basis, c):
    """The derivative of the rate in the direction of all coefficients at once, and diffusion."""
    return jax.jvp(lambda c: model.rate(basis, c), (c,), (jnp.ones_like(c),))[1] + model.diffusion(basis)


@graded("d", [2, 3, 8], fast=1)
def test_growth_rates(d):
    """The derivative at the uniform measure is diagonal, so one direction shows every rate."""
    basis, beta, kappa = AXIAL[d], 9.0, 0.01
    c = mf.uniform(basis).coefficients
    for kind, name in ((SA, "SA"), (USA0, "USA0"))[: 2 if d == 8 else 1]:
        with jax.enable_x64(True):
            model = as_model(kind(beta), kappa)
            found = np.asarray(linear_rates(model, basis, c))
        rates = theory.uniform.growth_rates(beta, d, k=basis.degrees, model=name) + kappa * basis.laplacian
        np.testing.assert_allclose(found, rates, atol=1e-8 * np.max(np.abs(rates)))


def test_growth_along_the_flow():
    """Pairs 1 +- amplitude cos(4 theta): their difference grows as exp(lambda t) up to amplitude^2."""
    beta, until, size = 9.0, 2.0, 1e-4
    ends = [
        evolve(SA(beta), mf.perturbed(CIRCLE, 4, sign * size), until, save=1, **TIGHT).density() for sign in (1, -1)
    ]
    growth = (ends[0].coefficients - ends[1].coefficients)[4] / (2 * size * CIRCLE.harmonic(4)[4])
    expected = np.exp(theory.uniform.growth_rates(beta, 2, k=4) * until)
    # the cubic term is (size growth)^2, times at most 4^4; the steps err by 1e-12/size
    assert growth == pytest.approx(expected, rel=256 * (size * expected) ** 2)


# one equation in all bases


@graded("full", [CIRCLE, SPHERE], ids=["circle", "sphere"])
def test_zonal_densities_move_as_in_the_full_basis(full):
    zonal, axis = AXIAL[full.dim], np.eye(full.dim)[-1]
    s = np.linspace(-0.9, 0.9, 7)
    x = np.stack([np.sqrt(1 - s**2), *[0 * s] * (full.dim - 2), s], axis=-1)
    with jax.enable_x64(True):
        model = as_model(SA(5.0))
        one, two = (rate(model, b, mf.von_mises_fisher(b, 2.0, axis).coefficients) for b in (full, zonal))
    # rounding: Laplacian times sums of the size of the harmonics
    atol = 64 * EPS * np.max(-full.laplacian) * np.max(full.sensitivity)
    np.testing.assert_allclose(full.evaluate(one, x), zonal.evaluate(two, heights=s), atol=atol)


def test_rotated_densities_have_rotated_flows():
    turn = rotation(3, seed=4)
    x = af.uniform(af.Sphere(3), n=40, seed=1).positions
    one = evolve(SA(3.0), two_bumps(SPHERE), 0.5, kappa=0.02, save=1, **TIGHT).density()
    two = evolve(SA(3.0), two_bumps(SPHERE, turn), 0.5, kappa=0.02, save=1, **TIGHT).density()
    # spaces of one degree are invariant, so only steps and rounding differ
    np.testing.assert_allclose(two(x @ turn.T), one(x), atol=1e-10)


# what a flow keeps and climbs


def test_energy_never_falls_and_mass_stays():
    flow = evolve(SA(9.0), two_bumps(CIRCLE), 1.5, save=30)
    assert flow.outcome.ending is Ending.FINISHED
    assert (flow.dataset["mass"] == flow.dataset["mass"][0]).all()
    assert np.min(np.diff(flow.energy)) > -drift(flow)
    assert flow.energy[-1] > flow.energy[0] + 1e-4
    free = evolve(USA0(9.0), two_bumps(CIRCLE), 1.5, kappa=0.2, save=30)
    assert np.min(np.diff(free.free_energy)) > -drift(free)
    assert free.free_energy[-1] > free.free_energy[0] + 1e-3
    assert np.min(np.diff(free.energy)) < 0  # diffusion wins here, so the entropy is needed
    with pytest.raises(InvalidInput, match="softmax"):
        _ = flow.free_energy


def test_the_uniform_law_stays():
    flow = evolve(SA(9.0), mf.uniform(CIRCLE), 3.0, save=3)
    np.testing.assert_allclose(flow.values, 1, atol=1e-12)
    assert flow.steps["accepted"] < 10
    assert flow.dataset["speed"][0] < 1e-12


# losing resolution, and going on with tokens


@pytest.fixture(scope="module")
def lost():
    return evolve(SA(9.0), two_bumps(CIRCLE), 50.0, check=False)


def test_resolution_loss_is_reported(lost):
    last = float(lost.time[-1])
    assert lost.outcome.ending is Ending.FAILED
    assert 1 < last < 10
    assert f"resolved until t = {last:.6g} of 50" in lost.outcome.message
    assert "coefficients next to degree 40 exceed 1e-06" in lost.outcome.message
    assert "hand_over()" in lost.outcome.message
    assert lost.dataset["tail"][-1] == pytest.approx(lost.density().tail, rel=1e-12)
    assert 1e-8 < lost.dataset["tail"][-1] <= 1e-6
    with pytest.raises(FlowFailed, match="resolved until") as failure:
        evolve(SA(9.0), two_bumps(CIRCLE), 50.0)
    np.testing.assert_array_equal(failure.value.trajectory.time, lost.time)
    stricter = evolve(SA(9.0), two_bumps(CIRCLE), 50.0, resolution=1e-9, check=False)
    assert 0.5 < stricter.time[-1] < last


def test_patterns_do_not_hide_from_the_monitor():
    """Six equal bumps have the degrees 6, ..., 36, 42: none in the last tenth of 40."""
    start = mf.perturbed(CIRCLE, 6, 0.5)
    flow = evolve(SA(30.0), start, 50.0, check=False)
    end = np.abs(flow.density().coefficients)
    assert np.max(end[37:41]) < 1e-12
    assert 1e-7 < end[36] / np.max(end) == flow.density().tail == flow.dataset["tail"][-1] <= 1e-6
    assert "coefficients next to degree 40" in flow.outcome.message


def test_negative_values_are_reported():
    start = mf.Density(CIRCLE, mf.uniform(CIRCLE).coefficients + 1.05 * CIRCLE.harmonic(1), tol=0.1)
    flow = evolve(SA(9.0), start, 5.0, check=False)
    assert "resolved until t = 0 of 5" in flow.outcome.message
    assert "negative part exceeds 1e-06" in flow.outcome.message


def test_the_time_of_the_loss_does_not_depend_on_the_steps(lost):
    """Steps that lead to a loss are shortened: its time is known to a thousandth, and to the errors of the steps.

    These are at most 1e-6 each, some 50 of them, and grow by less than e^4 (theory.uniform.growth_rates(9, 2) < 0.72).
    """
    careless = evolve(SA(9.0), two_bumps(CIRCLE), 50.0, rtol=1e-6, save=1, check=False)
    assert careless.steps["accepted"] < lost.steps["accepted"] / 2
    assert careless.time[-1] == pytest.approx(float(lost.time[-1]), rel=2e-3)


def test_tokens_take_over(lost):
    tokens = lost.hand_over()
    last = lost.density()
    lowered = float(lost.dataset["negative"][-1])  # mass that is not given to tokens, and the rescaling for it
    np.testing.assert_allclose(
        mf.empirical(CIRCLE, tokens), last.coefficients, atol=2 * np.sqrt(2) * lowered + 100 * EPS
    )
    x, m = tokens.positions, tokens.masses
    energy = m @ np.expm1(9.0 * (x @ x.T - 1)) @ m / 18
    assert lost.energy[-1] == pytest.approx(energy, abs=(4 * lowered + 100 * EPS) / 18)
    equal = lost.hand_over(500)
    assert equal.n == 500
    np.testing.assert_allclose(equal.masses, 1 / 500)
    np.testing.assert_allclose(equal.masses @ equal.positions, last.moments.mean, atol=1 / 500)


# the call


def test_progress_and_interruption():
    seen = []

    def stop(progress):
        seen.append(progress)
        if progress.frames == 3:
            raise KeyboardInterrupt

    flow = evolve(SA(9.0), two_bumps(CIRCLE), 1.0, save=4, on_progress=stop)
    assert flow.outcome.ending is Ending.INTERRUPTED
    np.testing.assert_array_equal(flow.time, [0, 0.25, 0.5])
    assert (seen[-1].time, seen[-1].until, seen[-1].of) == (0.5, 1.0, 5)
    assert [p.steps for p in seen] == sorted(p.steps for p in seen)


def test_frames_are_labelled():
    flow = evolve(SA(3.0), two_bumps(SPHERE), 0.1, save=np.array([0.0, 0.05, 0.1]))
    assert flow.dataset["coefficients"].dims == ("time", "part", "order", "degree")
    assert flow.values.shape == (3, SPHERE.grid, SPHERE.longitudes)
    np.testing.assert_allclose(flow.density(0).coefficients, two_bumps(SPHERE).coefficients)
    circle = evolve(SA(3.0), two_bumps(CIRCLE), 0.1, save=af.saving.Evenly(2))
    np.testing.assert_array_equal(circle.dataset["degree"], CIRCLE.degrees)
    np.testing.assert_allclose(circle.time, [0, 0.05, 0.1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"until": 0.0}, "`until` is 0.0"),
        ({"until": np.inf}, "`until` is inf"),
        ({"kappa": -0.1}, "`kappa` is -0.1"),
        ({"kappa": np.nan}, "`kappa` is nan"),
        ({"rtol": 0.0}, "`rtol` is 0.0"),
        ({"atol": -1.0}, "`atol` is -1.0"),
        ({"resolution": 2.0}, "`resolution` is 2.0"),
        ({"save": 0}, "`count` is 0"),
        ({"save": []}, "give increasing positive times"),
        ({"until": True}, "`until` is True; give a real number"),
        ({"field": af.Attention(9.0, value=np.eye(2))}, "matrices or an encoding"),
        ({"field": af.Attention(9.0, normaliser=af.Hardmax())}, "the normaliser Hardmax"),
        ({"field": af.Attention(9.0) + af.Attention(1.0)}, "2 attentions"),
        ({"field": af.Attention(9.0) + af.Potential([[1.0, 0.0]], [-0.2], [0.5])}, "use a smooth activation"),
        ({"save": [0.5, 0.2]}, "increasing"),
        ({"save": [0.5]}, "make them equal"),
        ({"density": "uniform"}, "`density` is 'uniform'"),
        ({"field": 9.0}, "`field` is 9.0"),
        ({"field": af.Attention(900.0)}, r"degree 40, but the kernel of beta = 900 on S\^1 needs 1\d\d "),
        ({"field": af.Attention(9.0, mask=af.Causal())}, "`field` has the mask Causal"),
        ({"field": af.Attention(af.Along("beta", [1.0, 2.0]))}, "holds an Along"),
        ({"density": mf.perturbed(CIRCLE, 40, 0.5)}, r"tail of 0.35 in degree 40.*refined\(80\)"),
        ({"density": mf.uniform(ZONAL), "field": "potential"}, "Potential, which is not zonal"),
        ({"field": "potential"}, "directions"),
    ],
)
def test_refusals(change, message):
    call = {"field": af.Attention(9.0), "density": mf.uniform(CIRCLE), "until": 1.0} | change
    if call["field"] == "potential":
        call["field"] = af.Attention(1.0) + af.Potential(np.eye(8), np.zeros(8), np.ones(8), "tanh")
    field, density, until = (call.pop(name) for name in ("field", "density", "until"))
    with pytest.raises(InvalidInput, match=message):
        evolve(field, density, until, **call)


def test_softmax_where_its_weights_are_lost_in_rounding():
    """K * mu is e^-40 at the antipode of the mass, where rho/(K * mu) is noise; tokens of the grid say what is right.

    Far from the mass the field is off, by rounding in K * mu; there is next to no mass.
    """
    start = mf.von_mises_fisher(CIRCLE, 20.0, [1.0, 0.0])
    flow = evolve(SA(20.0), start, 0.2, save=1)
    assert flow.steps["accepted"] < 100
    tokens = mf.quadrature(start)
    moved = af.advance(SA(20.0), tokens, 0.0, 0.2, af.Fixed(np.asarray(0.01)))
    mean = np.asarray(tokens.masses) @ np.asarray(moved.positions)
    np.testing.assert_allclose(flow.density().moments.mean, mean, atol=1e-8)  # the steps of both: 0.01^4, and 1e-10


@pytest.mark.slow
def test_the_error_falls_exponentially_with_the_degree():
    """Poisson kernels have coefficients a^k: so has the error, up to a power of k."""
    odds = 0.2**2 / (1 - 0.2**2) * np.e
    last, errors = np.sqrt(odds / (1 + odds)), []
    degrees = np.array([10, 20])
    for degree in degrees:
        basis = mf.CircleBasis(int(degree))
        start = mf.from_function(basis, lambda _, b=basis: poisson(b, 0.2, [1.0, 0.0]), normalise=True)
        end = evolve(SA(0.0), start, 1.0, save=1, resolution=1e-2, **TIGHT).density()
        errors.append(np.sqrt(np.mean((end.values - poisson(basis, last, [1.0, 0.0])) ** 2)))
    slopes = np.diff(np.log(errors)) / np.diff(degrees)
    np.testing.assert_allclose(slopes, np.log(last), atol=0.15)


@pytest.mark.slow
def test_tokens_continue_the_flow(lost):
    """The energy of tokens goes on where that of the density ended, with the same slope."""
    tokens = lost.hand_over()
    flow = af.solve(SA(9.0), tokens, until=0.1, save=af.saving.Evenly(2))
    assert flow.energy[0] == pytest.approx(float(lost.energy[-1]), abs=1e-9)
    finer = evolve(SA(9.0), two_bumps(mf.CircleBasis(80)), float(lost.time[-1]) + 0.1, save=1)
    assert flow.energy[-1] == pytest.approx(float(finer.energy[-1]), abs=1e-6)


@pytest.mark.long
def test_tokens_climb_the_same_potential():
    """The mean of a density is that of the tokens of its grid, which go their own way by the sum over pairs.

    A grid of more than twice the degree integrates what is smooth up to what the last degrees hold, and the steps of
    both add no more than their tolerance each.
    """
    basis, directions = SPHERE, np.array([[1.0, 0.5, -0.7], [-0.3, 0.8, 0.4]])
    field, flat = (SA(2.0) + af.Potential(directions, [0.2, -0.1], [u, 0.6 * u], "tanh") for u in (0.8, 0.0))
    start = two_bumps(basis)
    flow = evolve(field, start, 0.4, save=1)
    tokens = mf.quadrature(start)
    moved = af.solve(field, tokens, 0.4, save=af.saving.Evenly(1), method=af.Adaptive(rtol=1e-10, atol=1e-12))
    mean = np.asarray(tokens.masses) @ moved.dataset["positions"].values[-1]
    tail = float(flow.dataset["tail"].max())
    steps = 1e-9 * (flow.steps["accepted"] + moved.steps["accepted"])
    np.testing.assert_allclose(flow.density().moments.mean, mean, atol=tail + steps)
    assert tail + steps < 1e-6
    assert np.linalg.norm(evolve(flat, start, 0.4, save=1).density().moments.mean - mean) > 0.01  # it matters


@pytest.mark.slow
def test_potentials_are_climbed():
    """The energy with a potential is that of the tokens handed over, and never falls."""
    field = USA0(4.0) + af.Potential([[1.0, 0.5]], [0.2], [0.8], "tanh")
    flow = evolve(field, two_bumps(CIRCLE), 1.0, save=20)
    assert np.min(np.diff(flow.energy)) > -2 * drift(flow)  # the gradient of the energy has norm at most |rho| + |U|
    assert flow.energy[-1] > flow.energy[0] + 1e-2
    np.testing.assert_array_equal(flow.energy, flow.free_energy)
    assert flow.energy[-1] == pytest.approx(float(af.observe.total_energy(field, flow.hand_over())), abs=1e-12)
