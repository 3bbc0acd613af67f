"""Who sees whom, and what weights sum to."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import AtTokens
from tests.kit import drive
from tests.marks import graded

EPS = np.finfo(float).eps
N, D = 24, 3


def tokens(n=N, equal=False):
    x = af.uniform(af.Sphere(D), n=n, seed=2).positions
    return af.Tokens(x, None if equal else np.random.default_rng(1).random(n) + 0.1)


def weights(mu, beta, bias):
    """m_j e^(beta (<x_i, x_j> - 1) + bias_ij)."""
    x = mu.positions
    return mu.masses[None, :] * np.exp(beta * (x @ x.T - 1) + bias)


def back(n=N):
    return np.arange(n)[:, None] - np.arange(n)[None, :]


MASKS = {
    "causal": (af.Causal(), np.where(back() >= 0, 0.0, -np.inf)),
    "alibi": (af.Causal(0.2), np.where(back() >= 0, -0.2 * back(), -np.inf)),
    "strict": (af.Causal(0.2, strict=True), np.where(back() > 0, -0.2 * back(), -np.inf)),
    "window": (af.Window(5), np.where((back() >= 0) & (back() < 5), 0.0, -np.inf)),
    "two-sided": (af.Window(5, 0.1, causal=False), np.where(np.abs(back()) < 5, -0.1 * np.abs(back()), -np.inf)),
    "table": (af.masks.Table(np.sin(back() + 0.0)), np.sin(back() + 0.0)),
    "boolean": (af.masks.Table(back() % 3 == 0), np.where(back() % 3 == 0, 0.0, -np.inf)),
}


@pytest.mark.parametrize("name", MASKS)
@graded("sizes", [(None, None), (5, 7)])
def test_masked_softmax_and_prefix_normalised_sums(name, sizes):
    """Softmax over what is seen; unnormalised weights with masses e^bias rescaled to 1 over what is seen."""
    mu = tokens()
    mask, bias = MASKS[name]
    w = weights(mu, 4.0, bias)
    seen = (mu.masses[None, :] * np.exp(bias)).sum(axis=1, keepdims=True)
    total = w.sum(axis=1, keepdims=True)
    alone = seen == 0  # strictly causal: the first token sees nobody and is not driven
    soft = np.where(alone, 0.0, w @ mu.positions / np.where(alone, 1, total))
    plain = np.where(alone, 0.0, w @ mu.positions / np.where(alone, 1, seen))
    tiles = af.sums.Tiled(*sizes)
    np.testing.assert_allclose(drive(af.Attention(4.0, mask=mask, sum=tiles), mu), soft, atol=100 * EPS)
    usa0 = af.Attention(4.0, mask=mask, normaliser=af.Unnormalised(), sum=tiles)
    np.testing.assert_allclose(drive(usa0, mu), plain, atol=100 * EPS)


def test_causal_models_of_the_theory():
    """x_i' = P sum_{k<i} w_ik e^(beta <x_i, x_k>) x_k with w_ik = e^(-lambda (i-k)/N) / sum, and beta times that."""
    mu, lam, beta = tokens(equal=True), 2.0, 1.3
    w = np.where(back() > 0, np.exp(-lam * back() / N), 0.0)
    w[1:] /= w[1:].sum(axis=1, keepdims=True)
    x = mu.positions
    want = (w * np.exp(beta * x @ x.T)) @ x
    mask = af.Causal(lam / N, strict=True)
    usa = drive(af.Attention(beta, mask=mask, normaliser=af.Unnormalised("USA")), mu)
    grad = drive(af.Attention(beta, mask=mask, normaliser=af.Unnormalised("grad")), mu)
    np.testing.assert_allclose(usa, want, atol=200 * EPS)
    np.testing.assert_allclose(grad, beta * want, atol=200 * EPS)
    assert np.all(usa[0] == 0)


PREFIXES = [
    ("alibi", af.Softmax()),
    ("causal", af.Unnormalised()),
    pytest.param("strict", af.Unnormalised(), marks=pytest.mark.slow),
    pytest.param("window", af.Hardmax(), marks=pytest.mark.slow),
]


@graded(("name", "normaliser"), PREFIXES, ids=lambda p: p if isinstance(p, str) else type(p).__name__)
def test_later_tokens_change_no_bit_of_a_prefix(name, normaliser):
    """One program, other later tokens: bit for bit. A prefix alone is another program of other shapes: 1e-13.

    The compiler may round programs of different shapes differently, by an ulp a step; 80 velocities are evaluated.
    (`advance` at two times is a trajectory.)
    """
    whole = tokens(equal=True)
    other = af.from_array(np.concatenate([whole.positions[:10], -np.asarray(whole.positions[10:])]))
    prefix = af.from_array(whole.positions[:10])
    mask = MASKS[name][0]

    def at_two_times(field, mu):
        first = af.advance(field, mu, 0.0, 1.0, af.Fixed(0.1))
        return np.stack([first.positions, af.advance(field, first, 1.0, 2.0, af.Fixed(0.1)).positions])[:, :10]

    tiled = af.Attention(5.0, mask=mask, normaliser=normaliser, sum=af.sums.Tiled(8, 8))
    long = at_two_times(tiled, whole)
    assert np.array_equal(at_two_times(tiled, other), long)
    for field in (tiled, af.Attention(5.0, mask=mask, normaliser=normaliser)):
        np.testing.assert_allclose(at_two_times(field, prefix), long, atol=1e-13)


@pytest.mark.slow
def test_solve_repeats_a_prefix():
    whole = tokens(equal=True)
    other = af.from_array(np.concatenate([whole.positions[:10], -np.asarray(whole.positions[10:])]))
    field = af.Attention(5.0, mask=af.Causal(0.1), sum=af.sums.Tiled(8, 8))

    def frames(mu):
        return af.solve(
            field, mu, 3.0, method=af.Fixed(0.1), save=af.saving.At([1.0, 3.0]), keep=["positions"]
        ).positions.values[:, :10]

    assert np.array_equal(frames(other), frames(whole))
    np.testing.assert_allclose(frames(af.from_array(whole.positions[:10])), frames(whole), atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("normaliser", [af.Softmax(), af.Unnormalised()], ids=["SA", "USA0"])
def test_the_first_token_never_moves(normaliser):
    mu = tokens()
    for mask in (af.Causal(0.3), af.Causal(strict=True), af.Window(4)):
        end = af.advance(af.Attention(6.0, mask=mask, normaliser=normaliser), mu, 0.0, 5.0, af.Fixed(0.25)).positions
        # P_x x vanishes to rounding; 5 units of time
        np.testing.assert_allclose(end[0], mu.positions[0], atol=20 * EPS)
        assert np.abs(end[1] - mu.positions[1]).max() > 1e-6


def test_hardmax_is_the_limit_of_large_beta():
    mu = tokens()
    x = mu.positions
    others = af.masks.Table(~np.eye(N, dtype=bool))  # without itself the winner is the nearest other token
    hard = drive(af.Attention(1.0, mask=others, normaliser=af.Hardmax()), mu)
    nearest = np.argmax(x @ x.T - 4 * np.eye(N), axis=1)
    np.testing.assert_allclose(hard, x[nearest], atol=2 * EPS)  # m x / m
    soft = drive(af.Attention(1e4, mask=others), mu)
    ordered = np.sort(x @ x.T - 4 * np.eye(N), axis=1)
    gap = (ordered[:, -1] - ordered[:, -2]).min()
    assert np.abs(soft - hard).max() <= 4 * N * np.exp(-1e4 * gap) / mu.masses.min() + 1e-11


def test_hardmax_ties_share_by_mass():
    """Query e_3 is equally far from e_1 and e_2, of masses 1 and 3; a massless winner does not count."""
    mu = af.Tokens([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], [1.0, 3.0, 0.0])
    got = drive(af.Attention(2.0, normaliser=af.Hardmax()), mu, np.array([[0, 0, 1.0]]))
    np.testing.assert_allclose(got, [[0.25, 0.75, 0.0]], atol=EPS)


@af.in_float64
@eqx.filter_jit
def potential(field, mu):
    return field.normaliser.potential(field.pairs(0.0, AtTokens(), mu.measure)[0])


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.0, 1.0, 5.0])
def test_sinkhorn_is_doubly_stochastic(beta):
    """Rows and columns of pi sum to 1 against the masses, also for Q != K; and it is what scaling a matrix gives."""
    rng = np.random.default_rng(5)
    q, k = rng.standard_normal((2, D)), rng.standard_normal((2, D))
    for field in (
        af.Attention(beta, normaliser=af.Sinkhorn(1e-12)),
        af.Attention(beta, query=q, key=k, normaliser=af.Sinkhorn(1e-12)),
    ):
        mu = tokens()
        g = potential(field, mu)
        x, m = mu.positions, mu.masses
        a, b = (x, x) if field.features.is_plain else (x @ q.T, x @ k.T)
        logits = beta * a @ b.T
        kernel = np.exp(logits + g[None, :])
        pi = kernel / (kernel @ m)[:, None]
        np.testing.assert_allclose(pi @ m, 1.0, atol=1e-12)
        np.testing.assert_allclose(m @ pi, 1.0, atol=1e-11)
        np.testing.assert_allclose(drive(field, mu), (pi * m) @ x, atol=1e-11)


@pytest.mark.slow
def test_sinkhorn_derivative_is_that_of_the_fixed_point():
    mu = tokens()
    direction = np.random.default_rng(0).standard_normal(mu.positions.shape)

    @af.in_float64
    @jax.jit
    def slope(x):
        x, v = jnp.asarray(x), jnp.asarray(direction)

        def total(x):
            field = af.Attention(3.0, normaliser=af.Sinkhorn(1e-13))
            return jnp.sum(jnp.sin(3 * field.drive(mu.moved(x))))

        both = jax.jvp(total, (x,), (v,))[1], jnp.sum(jax.grad(total)(x) * v)
        h = 1e-5
        return *both, (total(x + h * v) - total(x - h * v)) / (2 * h)

    forward, reverse, difference = slope(mu.positions)
    # differences: h^2 |f'''| ~ 1e-10 * 1e2 and 1e-13 / h; the linear solve stops at 1e-10
    np.testing.assert_allclose([forward, reverse], difference, rtol=1e-6)


@pytest.mark.slow
def test_sinkhorn_gives_up_with_a_word():
    """Convergence is refused, not faked: too few iterations give a failed flow."""
    field = af.Attention(8.0, normaliser=af.Sinkhorn(1e-12, iterations=2))
    with pytest.raises(InvalidInput, match="not finite at .* points.*Sinkhorn does not converge; use more") as refusal:
        field.velocity(tokens())
    assert "sum=Tiled()" not in str(refusal.value)  # Sinkhorn takes no other sum
    flow = af.solve(field, tokens(), 1.0, method=af.Layers(0.5), save=af.saving.EveryLayer(), check=False)
    assert flow.outcome.ending.value == "failed"


@pytest.mark.parametrize(
    "mask", [af.Causal(), af.Window(3), af.masks.Table(np.zeros((N, N)))], ids=["causal", "window", "table"]
)
def test_sinkhorn_refuses_masks_with_a_reason(mask):
    with pytest.raises(InvalidInput, match="rows and columns"):
        af.Attention(1.0, mask=mask, normaliser=af.Sinkhorn())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: af.Window(0), "`width` is 0"),
        (lambda: af.Causal(-0.1), "`slope` is -0.1"),
        (lambda: af.masks.Table(np.ones((2, 3))), r"shape \(2, 3\)"),
        (lambda: af.masks.Table([[0.0, np.nan], [0.0, 0.0]]), "NaN"),
        (lambda: af.masks.Table(np.zeros((9000, 9000), bool)), "Causal or Window"),
        (lambda: af.Attention(1.0, mask=af.masks.Table(np.eye(3, dtype=bool))).check(tokens()), "knows 0 to 2"),
        (lambda: af.Attention(-1.0, normaliser=af.Hardmax()), "`beta` is -1"),
        (lambda: af.solve(af.Attention(1.0, normaliser=af.Hardmax()), tokens(), 1.0), "discontinuous"),
        (lambda: af.Attention(1.0, mask=af.Window(3)).drive(tokens(), at=tokens().positions), "Window needs `place`"),
    ],
)
def test_bad_masks_are_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_slopes_make_a_batch():
    mu = tokens()
    v = af.Attention(3.0, mask=af.Causal(af.Along("slope", [0.0, 0.5]))).velocity(mu)
    assert v.shape == (2, N, D)
    one = af.Attention(3.0, mask=af.Causal(0.5)).velocity(mu)
    np.testing.assert_allclose(v[1], one, atol=1e-15)


@pytest.mark.slow
def test_retrieval_closure_of_causal_attention():
    """E P_1(<x_i(t), x_j(0)>) = exp(t a_1 W)_ij + O(1/N^2) on the circle (arXiv:2605.09213), by Monte Carlo.

    N = 64, beta = 1, lambda = 1, t = 0.5, clock grad: a_1 = I_1(1); the standard error N/sqrt(2R) of
    600 systems is improved by subtracting the first-order displacement, whose mean is exactly a t w_ij.
    """
    n, systems, t, lam = 64, 600, 0.5, 1.0
    a = scipy.special.iv(1, 1.0)
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, (systems, n))
    x0 = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    mu = af.Tokens(x0, dims=["seed"])
    field = af.Attention(1.0, mask=af.Causal(lam / n, strict=True), normaliser=af.Unnormalised("grad"))
    end = af.advance(field, mu, 0.0, t, af.Fixed(0.125)).positions
    w = np.where(back(n) > 0, np.exp(-lam * back(n) / n), 0.0)
    w[1:] /= w[1:].sum(axis=1, keepdims=True)
    closure = scipy.linalg.expm(t * a * w)[-1]
    # control variates with known means: <x_N(0), x_j(0)> (mean 0) and the first-order displacement (mean a t w)
    first = field.velocity(mu, at=x0, place=mu.place)[:, -1]
    got = np.einsum("sd,sjd->sj", end[:, -1], x0)[:, n // 8 : -1]
    controls = [np.einsum("sd,sjd->sj", v, x0)[:, n // 8 : -1] for v in (x0[:, -1], t * first)]
    sample = got - controls[0] - controls[1] + (t * a * w[-1])[None, n // 8 : -1]
    mean, error = n * sample.mean(), n * sample.mean(axis=1).std() / np.sqrt(systems)
    want = n * closure[n // 8 : -1].mean()
    assert error < 0.1 * want
    assert abs(mean - want) < 0.02 * want + 3 * error  # finite-N bias of the closure: 1.3/N = 2 %


@graded(("beta", "dtype"), [(1.7, np.float32), (300.0, np.float32), (1e4, np.float64)])
def test_hardmax_never_loses_its_winner_to_rounding(beta, dtype):
    """A log weight is computed twice, in tiles of other shapes: an ulp between the two must not leave a query alone."""
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 4, 4))
    mu = af.Tokens(af.uniform(af.Sphere(4), n=200, seed=3).positions, dtype=dtype, space=af.Euclidean(4))
    field = af.Attention(beta, query=q, key=k, normaliser=af.Hardmax(), sum=af.sums.Tiled(5, 4))
    drive = field.velocity(mu)
    x = np.asarray(mu.positions, float)
    logits = (x @ q.T) @ (x @ k.T).T
    top = np.sort(logits, axis=1)
    clear = top[:, -1] - top[:, -2] > 1e-4  # the others may tie in float32
    assert clear.sum() > 150
    np.testing.assert_allclose(drive[clear], x[logits.argmax(axis=1)][clear], atol=1e-6)
    assert (np.linalg.norm(drive, axis=1) > 0.1).all()


def test_a_velocity_inside_of_other_traced_code_is_left_alone():
    mu = tokens()
    with jax.enable_x64(True):
        found = jax.jit(lambda s: s * af.Attention(2.0).velocity(mu).sum())(1.0)
        assert float(found) == pytest.approx(float(np.sum(af.Attention(2.0).velocity(mu))))


def test_models_of_theory_by_name():
    """One way from a name to a normaliser, and back from the field."""
    for name, normaliser in (("SA", af.Softmax()), ("USA0", af.Unnormalised()), ("USA", af.Unnormalised("USA"))):
        field = af.Attention(2.0, normaliser=name)
        assert field == af.Attention(2.0, normaliser=normaliser)
        assert field.model == name
    for other in (af.Hardmax(), af.Sinkhorn(), af.Unnormalised("grad")):
        with pytest.raises(InvalidInput, match="theory has no model with"):
            _ = af.Attention(2.0, normaliser=other).model
