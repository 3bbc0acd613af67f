"""Prompts of unequal length in one batch: every member goes as it would alone, and absent rows decide nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.kernels import Exponential
from attnflow.observe import interaction_energy, total_energy
from attnflow.sums import Circle, Tiled
from tests.kit import frames
from tests.marks import graded

EPS = np.finfo(float).eps
SIZES = (4, 12, 4)


def prompts(d=3, space=None):
    drawn = [af.uniform(af.Sphere(d), n=n, seed=k) for k, n in enumerate(SIZES)]
    drawn[1] = af.Tokens(drawn[1].positions, np.arange(1, 13), place=np.linspace(0, 10, 12)[::-1])
    return [t if space is None else af.Tokens(t.positions, t.masses, space=space, place=t.place) for t in drawn]


def batch(systems):
    return af.stack("prompt", range(len(SIZES)), systems)


FIELDS = {
    "causal": af.Attention(3.0, mask=af.Causal(0.2)),
    "ngpt": af.norms.Ngpt(af.Attention(2.0, encoding=af.encodings.Sinusoidal(0.5))),
    "sum": af.Attention(2.0, normaliser=af.Unnormalised()) + af.Potential(np.eye(3), np.zeros(3), np.ones(3), "tanh"),
}


@graded("name", ["causal", *(pytest.param(n, marks=pytest.mark.slow) for n in ("ngpt", "sum"))], slow=1)
def test_members_go_as_they_would_alone(name):
    """Positions, speeds, spreads and energies to rounding, and the same steps.

    (The first step of nGPT is so short that its error estimate, and with it all steps that follow, is rounding: then
    steps are the same except for one a member, and flows agree to what steps of slightly other lengths are off by.)
    """
    field, systems = FIELDS[name], prompts()
    together = af.solve(field, batch(systems), 2.0, save=4)
    steps = np.zeros(2, int)
    for k, alone in enumerate(systems):
        one, flow = together.member(prompt=k), af.solve(field, alone, 2.0, save=4)
        steps += list(flow.steps.values())
        assert one.dataset.sizes["token"] == alone.n
        for variable in flow.dataset:
            want = flow.dataset[variable].values
            # sums in another order: a few dozen steps of 13 evaluations, each off by rounding, in flows that part
            # like e^(beta t) at most
            tolerance = 40 * 13 * 20 * EPS * np.exp(2.0) if want.dtype.kind == "f" else 0
            tolerance *= 10 if name == "ngpt" else 1
            np.testing.assert_allclose(one.dataset[variable].values, want, atol=tolerance, err_msg=str(variable))
    assert np.abs(list(together.steps.values()) - steps).max() <= (3 if name == "ngpt" else 0)


OWN, COMMON = (af.Brownian(0.1, common, 3) for common in (False, True))


@graded(
    ("method", "noise"),
    [
        pytest.param(af.Layers(0.1), None, id="None-Layers"),
        pytest.param(af.Alternate(0.1), None, id="None-Alternate"),
        pytest.param(af.Fixed(0.1), OWN, id="own-Fixed"),
        pytest.param(af.Layers(0.1), COMMON, id="common-Layers", marks=pytest.mark.slow),
        pytest.param(af.Heun(0.25), OWN, id="own-Heun", marks=pytest.mark.slow),
    ],
    slow=1,
)
def test_other_methods_and_noise(method, noise):
    field, systems = FIELDS["sum"], prompts()
    together = frames(field, batch(systems), 1.0, method=method, noise=noise, save=2)
    for k, alone in enumerate(systems):
        flow = frames(field, alone, 1.0, method=method, noise=noise, save=2)
        np.testing.assert_allclose(together[k, :, : alone.n], flow, atol=1e4 * EPS)
    rows = together[0, :, SIZES[0] :]
    np.testing.assert_allclose(rows, rows[:1].repeat(3, axis=0), atol=40 * EPS)  # absent rows stay


@pytest.mark.slow
def test_layers_of_mix_and_rescaled_flows():
    for field in (
        af.norms.Mix(af.Attention(2.0), 0.25),
        af.Rescaled(af.Attention(1.0, value=np.diag([1.0, 0.5, -0.2]))),
    ):
        systems = prompts(space=af.Euclidean(3))
        together = af.advance(field, batch(systems), 0.0, 0.5, af.Layers(0.1))
        for k, alone in enumerate(systems):
            want = af.advance(field, alone, 0.0, 0.5, af.Layers(0.1)).positions
            np.testing.assert_allclose(together.member(prompt=k).positions, want, atol=1e4 * EPS)


@pytest.mark.slow
def test_sinkhorn_iterates_as_often_as_alone():
    """Its tolerance is 1e-4, so that another number of iterations would show."""
    field = af.Attention(2.0, normaliser=af.Sinkhorn(1e-4))
    systems = prompts()
    found = field.velocity(batch(systems))
    for k, alone in enumerate(systems):
        np.testing.assert_allclose(found[k, : alone.n], field.velocity(alone), atol=100 * EPS)


@pytest.mark.long
def test_an_absent_row_is_not_a_test_particle():
    """Mass 0 rules series out, and a neighbour list; an absent row does not, also under a causal mask."""
    n = 3000
    whole = af.uniform(af.Sphere(2), n=n)
    x = np.concatenate([whole.positions, whole.positions[-1:]])
    masses = np.append(np.ones(n), 0.0)
    test_particle = af.Tokens(x, masses)
    absent = af.Tokens(x, present=np.arange(n + 1) < n)
    for mask in (af.masks.Everyone(), af.Causal(0.01)):
        field = af.Attention(6.0, mask=mask)
        assert isinstance(field.prepare(test_particle, flowing=True).sum, Tiled)
        chosen = field.prepare(absent, flowing=True).sum
        alone = field.prepare(whole, flowing=True).sum
        assert isinstance(chosen, Circle)
        assert jax.tree.all(jax.tree.map(np.array_equal, chosen, alone))
        made = af.Attention(6.0, mask=mask, sum=chosen)
        found = made.velocity(absent)
        np.testing.assert_allclose(found[:n], made.velocity(whole), atol=1e-12)
        assert (found[n:] == 0).all()
        error = np.asarray(made.error(absent))
        assert error[n] == 0
        np.testing.assert_allclose(error[:n], made.error(whole), rtol=1e-6)
        both = af.stack("prompt", [0, 1], [whole, af.uniform(af.Sphere(2), n=n - 9, seed=1)])
        assert isinstance(field.prepare(both, flowing=True).sum, Circle)
    for sum_ in (af.sums.Cutoff(1e-6), Tiled(bounded=True)):
        af.Attention(6.0, sum=sum_).check(absent)
        with pytest.raises(InvalidInput, match="holds 0"):
            af.Attention(6.0, sum=sum_).check(test_particle)


@pytest.mark.slow
def test_what_absent_rows_see_is_not_looked_at():
    """A guarded series is trusted although the absent row stays where no token is any more."""
    angle = np.append(0.01 * np.random.default_rng(0).standard_normal(40), np.pi)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    there = np.arange(41) < 40
    tokens = af.Tokens(x, present=there)
    mu = tokens.measure.moved(x)  # not a copy of a token, as after a flow
    series = Circle(1e-10, 96)
    found = af.Attention(50.0, sum=series).velocity(mu)
    exact = af.Attention(50.0).velocity(tokens)
    assert np.abs(found - exact).max() <= 1e-10
    assert (found[40] == 0).all()
    from attnflow.masks import Causal, Everyone
    from attnflow.sums import Moments, Weights

    @af.in_float64
    @jax.jit
    def answers():
        side, place = jnp.ones((3, 2)), jnp.arange(3)
        found = []
        for mask in (Everyone(), Causal()):
            for present in (None, jnp.array([True, False, True])):
                weights = Weights(Exponential(jnp.asarray(1.0)), mask, at_tokens=True, present=present)
                arguments = (weights, (side, place), (side, place), jnp.log(jnp.asarray([0.5, 0.1, 0.4])), Moments())
                found.append(series.trusted(arguments, jnp.zeros(3), jnp.asarray([0.5, 1e-9, 0.5])))
        return found

    assert [bool(trusted) for trusted in answers()] == [False, True, False, True]


@pytest.mark.long
def test_observables_leave_absent_rows_out():
    systems = prompts()
    together, beta = batch(systems), 2.0
    for k, alone in enumerate(systems[:2]):
        rows = together.present[k]
        padded = af.Tokens(together.positions[k], together.masses[k], place=together.place[k], present=rows)
        for function in (
            af.observe.order_parameter, af.observe.effective_rank, af.observe.spread, lambda t: af.observe.energy(t, beta), lambda t: af.observe.energy0(t, beta),
            lambda t: af.observe.log_energy(t, beta), lambda t: total_energy(af.Attention(beta), t),
            lambda t: total_energy(af.Attention(beta, sum=af.sums.Harmonics(1e-12, 40, 3)), t),
            lambda t: af.observe.dissipation(af.Attention(beta), t), lambda t: interaction_energy(af.Attention(beta), t),
            lambda t: af.observe.energy_rate(af.Attention(beta), t), lambda t: af.transport.distance(t, systems[0]),
            lambda t: af.observe.overlap_histogram(t)[0], lambda t: af.observe.modes(t, 20.0).heights,
        ):  # fmt: skip
            np.testing.assert_allclose(function(padded), function(alone), atol=100 * EPS, rtol=100 * EPS)
        np.testing.assert_allclose(af.observe.energy(together, beta)[k], af.observe.energy(alone, beta), rtol=100 * EPS)
        np.testing.assert_allclose(
            af.observe.speed(af.Attention(1.0), padded)[rows], af.observe.speed(af.Attention(1.0), alone)
        )
        found, want = (af.observe.clusters(t, scale=0.5) for t in (padded, alone))
        np.testing.assert_array_equal(found.labels[rows], want.labels)
        assert (found.labels[~rows] == -1).all()
        np.testing.assert_allclose(found.centres, want.centres, atol=10 * EPS)


def test_pure_observables_of_a_measure():
    """Under jit and grad, made inside."""
    alone = prompts()[0]
    there = np.array([True] * 4 + [False] * 2)
    x = np.concatenate([alone.positions, alone.positions[:2]])
    functions = (
        af.observe.order_parameter,
        af.observe.effective_rank,
        af.observe.spread,
        lambda mu: af.observe.energy(mu, 2.0),
    )

    @af.in_float64
    @jax.jit
    def both(x):
        padded = [jax.value_and_grad(lambda x, f=f: f(af.Measure(x, present=there)))(x) for f in functions]
        return padded, [jax.grad(lambda x, f=f: f(af.Measure(x)))(x[:4]) for f in functions]

    for function, (found, slope), plain in zip(functions, *both(x), strict=True):
        np.testing.assert_allclose(found, function(alone), rtol=40 * EPS)
        np.testing.assert_allclose(slope[:4], plain, atol=100 * EPS)
        assert (slope[4:] == 0).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda t: af.solve_long(af.Attention(1.0), t, 1.0),
        lambda t: af.merge_times(af.Attention(1.0), t),
        lambda t: af.observe.overlaps(t),
        lambda t: af.observe.attention_matrix(af.Attention(1.0), t),
        lambda t: af.observe.slow_motion(t, np.zeros(t.n, int), 1.0),
        lambda t: af.flow_map(af.Attention(1.0), t, 1.0),
        lambda t: af.stability.jacobian(af.Attention(1.0), t),
        lambda t: af.stability.energy_hessian(t, 1.0),
        lambda t: af.Rescaled(af.Attention(1.0)).matrix(0.0, af.Tokens(t.positions, space=af.Euclidean(3), present=t.present)),
    ],
)  # fmt: skip
def test_what_does_not_take_absent_rows_says_so(call):
    tokens = af.Tokens(prompts()[0].positions, present=[True, True, True, False])
    with pytest.raises(InvalidInput, match=r"`tokens` has absent rows, which .* does not take; leave them out by"):
        call(tokens)


@pytest.mark.slow
def test_clusters_and_maps_of_a_member():
    method = af.Fixed(0.1)
    flow = af.solve(af.Attention(4.0), batch(prompts()), 3.0, save=3, method=method, keep=["positions"])
    labels = flow.clusters()["label"].values
    assert (labels[0, :, SIZES[0] :] == -1).all()
    assert (labels[0, :, : SIZES[0]] >= 0).all()
    one = flow.member(prompt=0)
    moved = af.flows.FlowMap.of(one, method=method)(one.tokens(0)).positions
    np.testing.assert_allclose(moved, one.tokens(-1).positions, atol=1e-12)  # the same steps between the same frames
