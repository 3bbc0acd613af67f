"""The choice of a sum, what binds it to a field, and where fields fall back."""

import itertools

import jax
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.kernels import Exponential
from attnflow.sums import Circle, Cutoff, Dense, Fused, Harmonics, Offer, Tiled, Use, choose
from tests.marks import graded
from tests.sums.test_tiled import call, unit


def chosen(choice):
    return next(option for option in choice.options if option.sum is choice.sum)


@graded(
    ("n", "d", "beta", "evaluations", "name"),
    [
        (30, 2, 9.0, 1000, "Tiled"),
        (1_000, 2, 9.0, 20, "Tiled"),
        (1_000, 2, 9.0, 1000, "Circle"),
        (300, 3, 9.0, 1000, "Tiled"),
        (2_000, 3, 9.0, 1000, "FastSphere"),
        (20_000, 2, 9.0, 20, "Circle"),
        (20_000, 3, 9.0, 20, "FastSphere"),
        (20_000, 4, 0.5, 20, "Harmonics"),
        (20_000, 8, 9.0, 20, "Tiled"),
        (20_000, 8, 2000.0, 20, "Cutoff"),
    ],
    fast=5,
    slow=7,
)
def test_the_cheapest_that_meets_the_tolerance(n, d, beta, evaluations, name):
    choice = choose(af.uniform(af.Sphere(d), n=n), beta, tol=1e-10, flowing=evaluations == 1000, backend="cpu")
    option = chosen(choice)
    assert option.name == name
    assert option.accuracy <= 1e-10
    assert option.total(evaluations) == min(o.total(evaluations) for o in choice.options if not o.why_not)
    text = choice.explain()
    assert f"-> {option.name}" in text
    for o in choice.options:
        assert o.name in text
        assert (o.why_not in text) if o.why_not else (f"{o.seconds:.1e}" in text)


def test_costs_decide():
    """The time of tiles grows like n^2, that of a series like n; a GPU has costs of its own."""
    few, many = (choose(af.uniform(af.Sphere(2), n=n), 9.0, backend="cpu") for n in (10_000, 40_000))
    for name, power in (("Tiled", 2), ("Circle", 1)):
        one, other = (next(o for o in c.options if o.name == name).seconds for c in (few, many))
        assert np.log(other / one) / np.log(4) == pytest.approx(power, abs=0.1)
    tokens = af.uniform(af.Sphere(3), n=30_000)
    light = af.Tokens(tokens.positions, dtype=np.float32)
    on_gpu = choose(light, 9.0, backend="gpu")
    assert {o.name for o in on_gpu.options if not o.why_not} >= {"Fused", "Tiled"}
    assert next(o for o in on_gpu.options if o.name == "FastSphere").why_not


@pytest.mark.long
def test_compiling_counts():
    """Harmonics in four dimensions take longer to compile than 20 sums over pairs, and not than 1000."""
    tokens = af.uniform(af.Sphere(4), n=20_000).astype("float32")
    rest, flow = (choose(tokens, 9.0, tol=1e-3, flowing=flowing, backend="cpu") for flowing in (False, True))
    assert chosen(rest).name == "Tiled"
    assert chosen(flow).name == "Harmonics"
    assert "s of compiling" in rest.explain()
    fast, slow = Offer("Fast", None, 1.0, setup=50.0), Offer("Slow", None, 2.0)
    assert fast.total(49) > slow.total(49)
    assert fast.total(51) < slow.total(51)
    assert Offer("Fast", None, 1.0, doubtful=True, setup=50.0).total(10) == 110.0


def test_a_flow_is_prepared_for_many_evaluations(choices_of_a_cpu):
    """A series on the circle takes time to compile, which 1000 evaluations pay back and a few do not."""
    field, tokens = af.Attention(9.0), af.uniform(af.Sphere(2), n=1500, seed=0)
    assert isinstance(field.prepare(tokens).sum, Tiled)
    assert isinstance(af.flows.Solve(field, tokens, 1.0).checked().field.sum, Circle)


def test_a_batch_gets_no_sum_that_may_fall_back_on_tiles():
    """Under vmap both branches would run: of betas as of tokens."""
    tokens = af.uniform(af.Sphere(2), n=20_000)
    alone, batch = (choose(tokens, beta, tol=1e-12, backend="cpu") for beta in (9.0, af.Along("beta", [9.0, 8.0])))
    assert alone.sum.guarded
    assert not getattr(batch.sum, "guarded", False)
    assert "round-off" in next(o for o in batch.options if o.name == "Circle").why_not


@pytest.mark.usefixtures("choices_of_a_cpu")
def test_a_batch_of_masks_is_a_batch():
    """Slopes side by side, with as many tokens as make a series doubtful for one of them."""
    tokens = af.uniform(af.Sphere(2), n=20_000)
    field = af.Attention(9.0, mask=af.Causal(af.Along("slope", [0.01, 0.02])))
    chosen = field.choice(tokens, 1e-12)
    assert "round-off" in next(o for o in chosen.options if o.name == "Circle").why_not
    loose = field.choice(tokens, 1e-7)
    assert isinstance(loose.sum, Circle)
    assert not loose.sum.guarded


def test_one_sum_serves_all_betas_and_neighbours_are_for_tokens_at_rest():
    tokens = af.uniform(af.Sphere(2), n=20_000)
    betas = af.Along("beta", [1.0, 50.0])
    batch = choose(tokens, betas, tol=1e-7, backend="cpu")
    assert isinstance(batch.sum, Circle)
    assert not batch.sum.refusal(
        Use(tokens.space, Exponential(betas), af.masks.Everyone(), True, True), tokens
    )  # a degree that is too low
    moving = choose(af.uniform(af.Sphere(8), n=20_000), 2000.0, tol=1e-10, flowing=True, backend="cpu")
    assert "condense" in next(o for o in moving.options if o.name == "Cutoff").why_not


@pytest.mark.parametrize(
    ("tol", "dtype", "words"),
    [
        (1e-9, np.float32, "float32 reaches about .* give tokens in float64"),
        (0.0, np.float64, r"in \(0, 1\)"),
        ("fine", np.float64, "absolute error"),
    ],
)
def test_tolerances_that_cannot_be_met(tol, dtype, words):
    tokens = af.Tokens(unit(np.random.default_rng(0), 50, 2), dtype=dtype)
    with pytest.raises(InvalidInput, match=words):
        af.Attention(9.0).prepare(tokens, tol)


@pytest.mark.slow
@pytest.mark.usefixtures("choices_of_a_cpu")
def test_a_series_below_its_floor_is_out_and_says_why():
    tokens = af.uniform(af.Sphere(2), n=20_000)
    option = choose(tokens, 9.0, tol=1e-15, backend="cpu").options[2]
    assert option.name == "Circle"
    assert "round-off over the least weight seen" in option.why_not
    masses = np.ones(20_000)
    masses[0] = 0.0
    light = af.Tokens(tokens.positions, masses)
    assert "mass zero" in af.Attention(9.0).choice(light).options[2].why_not
    assert "mask Window" in af.Attention(9.0, mask=af.Window(3)).choice(tokens).options[2].why_not
    assert "beta >= 0" in af.Attention(-1.0).choice(tokens).options[2].why_not
    assert "harmonics" in af.Attention(9.0).choice(af.uniform(af.Sphere(12), n=5000)).options[2].why_not


def test_every_cheaper_option_that_is_not_chosen_has_a_reason():
    """Over dimensions, sizes, masks and batches: no option stands above the chosen one without saying why it is out."""
    for d, n, beta, mask in itertools.product((2, 3, 5), (50, 1_000, 5_000), (1.0, 30.0), (None, af.Causal())):
        for betas in (beta, af.Along("beta", [beta, 2 * beta])):
            choice = choose(af.uniform(af.Sphere(d), n=n), betas, mask=mask, tol=1e-7, backend="cpu")
            best = chosen(choice)
            assert all(o.why_not or o.total(20) >= best.total(20) for o in choice.options)


@pytest.mark.slow
@pytest.mark.usefixtures("choices_of_a_cpu")
def test_prepare_binds_once_and_reaches_the_parts():
    tokens = af.uniform(af.Sphere(2), n=5000)
    field = af.Attention(9.0).prepare(tokens, 1e-10, flowing=True)
    assert isinstance(field.sum, Circle)
    assert field.prepare(tokens, 1e-4) is field
    both = (af.Attention(9.0) + af.Attention(1.0, value=-np.eye(2))).prepare(tokens, 1e-10, flowing=True)
    assert [type(part.sum) for part in both.parts] == [Circle, Circle]
    plain = af.Attention(9.0)
    velocity = plain.velocity(tokens)
    assert np.abs(field.velocity(tokens) - velocity).max() <= 1e-10


@pytest.mark.parametrize("normaliser", [af.Softmax(), af.Unnormalised()], ids=["SA", "USA0"])
@graded("mask", [af.masks.Everyone(), af.Causal(0.01)], ids=["everyone", "causal"])
def test_all_that_is_made_of_sums(normaliser, mask):
    """Velocities of every normaliser, with the same sums."""
    tokens = af.uniform(af.Sphere(2), n=200)
    ours, theirs = (
        af.Attention(4.0, normaliser=normaliser, mask=mask, sum=s).velocity(tokens)
        for s in (Circle(1e-11, 48), Tiled())
    )
    assert np.abs(ours - theirs).max() <= 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("sum_", [Circle(1e-9, 64), Cutoff(1e-9)], ids=["circle", "cutoff"])
def test_queries_far_from_all_tokens_fall_back_on_tiles(sum_):
    """Z is e^(-2 beta) = 1e-26 at the antipode of a cluster: no absolute accuracy could give the mean there."""
    rng = np.random.default_rng(0)
    angle = 0.05 * rng.standard_normal(64)
    tokens = af.from_array(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    x = np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    for beta in (30.0, 40.0):
        ours, theirs = (af.Attention(beta, sum=s).velocity(tokens, at=x) for s in (sum_, Tiled()))
        assert np.abs(ours - theirs).max() <= 1e-9


@pytest.mark.long
def test_a_plateau_is_not_resolved_by_a_series():
    """Four clusters at beta = 100 drift by 4e-41; a series would return its rounding as if it were real."""
    x = np.repeat([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], 16, axis=0)
    x[:16] = [[np.cos(0.02), np.sin(0.02)]]
    flow = af.solve(af.Attention(100.0, sum=Circle(1e-12, 112)), af.from_array(x), 1.0, save=af.saving.Evenly(4))
    assert flow.outcome.ending.value == "frozen" or not flow.resolved.values.any()
    assert (flow.dataset["speed"].values > 0).any()


@pytest.mark.long
def test_solve_and_energy_use_the_sums():
    """A flow by series is that by tiles, to the tolerance of the integration; and so is its energy."""
    tokens = af.uniform(af.Sphere(2), n=300)
    flows = [
        af.solve(af.Attention(6.0, sum=s), tokens, 1.0, method=af.Fixed(0.1), save=af.saving.Evenly(3))
        for s in (Circle(1e-12, 48), Tiled())
    ]
    # ten steps of four stages, each off by 1e-12, grow by at most e^(2 t)
    assert np.abs(flows[0].positions.values - flows[1].positions.values).max() <= 40 * 1e-12 * np.e**2
    assert np.abs(flows[0].energy.values - flows[1].energy.values).max() <= 40 * 1e-12 * np.e**2


@graded("d", [2, 3, 6])
def test_the_fused_kernel_interpreted(d):
    """The arithmetic of the GPU kernel, run by the interpreter: sums, padding and derivatives."""
    rng = np.random.default_rng(0)
    x, masses = unit(rng, 70, d).astype(np.float32), (rng.random(70) + 0.1).astype(np.float32)
    want = call(Tiled(), 9.0, x.astype(float), x.astype(float), masses.astype(float), None)
    for charges in (None, np.concatenate([np.ones((70, 1)), x], axis=1).astype(np.float32)):
        got = _fused(x, masses, charges)
        error = np.abs(got[:, 1:] / got[:, :1] - want[:, 1:] / want[:, :1]).max()
        assert error <= Fused.accuracy(70, 9.0)


def test_shapes_of_the_fused_kernel_in_few_dimensions():
    """Traced and not compiled: what is loaded is padded to whole blocks."""
    x, masses = np.ones((70, 3), np.float32), np.ones(70, np.float32)
    scale, sums = jax.eval_shape(lambda: _fused_sums(x, masses, None))
    assert (scale.shape, sums.shape) == ((70,), (70, 4))


def _fused(x, masses, charges):
    with jax.enable_x64(True):
        scale, sums = jax.jit(_fused_sums)(x, masses, charges)
        return np.asarray(np.exp(scale)[:, None] * sums, float)


def _fused_sums(x, masses, charges):
    import jax.numpy as jnp

    from attnflow.masks import Everyone
    from attnflow.sums import Columns, Moments, Weights

    side = (jnp.asarray(x), jnp.arange(len(x)))
    weights = Weights(Exponential(jnp.asarray(9.0, jnp.float32)), Everyone(), True)
    arguments = (weights, side, side, jnp.log(jnp.asarray(masses)))
    return Fused(interpret=True)(*arguments, Moments() if charges is None else Columns(jnp.asarray(charges)))


@pytest.mark.parametrize("sum_", [Dense(), Tiled(), None])
def test_sums_over_all_pairs_state_no_error(sum_, four):
    assert af.Attention(3.0, sum=sum_).error(four) == 0.0


def test_what_fused_refuses():
    tokens = af.uniform(af.Sphere(3), n=10)
    with pytest.raises(InvalidInput, match="float32"):
        af.Attention(1.0, sum=Fused()).check(tokens)
    with pytest.raises(InvalidInput, match="does not support the mask Causal"):
        af.Attention(1.0, mask=af.Causal(), sum=Fused()).check(tokens)


def test_harmonics_choose_no_degree_that_underflows():
    option = choose(af.uniform(af.Sphere(3), n=5000), 3e4, tol=1e-10, backend="cpu").options[2]
    assert option.name == "Harmonics"
    assert option.why_not
    assert isinstance(Harmonics(1e-10, 10, 3), Harmonics)


def test_a_strong_kernel_costs_digits_of_float32():
    """Rounding of the exponent is relative rounding of a weight."""
    tokens = af.Tokens(af.uniform(af.Sphere(3), n=100).positions, dtype=np.float32)
    assert choose(tokens, Exponential(9.0), tol=1e-5).tol == 1e-5
    with pytest.raises(InvalidInput, match="float32 reaches about 1e-04 at beta = 500"):
        choose(tokens, Exponential(500.0), tol=1e-5)
