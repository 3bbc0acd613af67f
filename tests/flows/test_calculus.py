"""Ito and Stratonovich: laws, orders of convergence along the same W, refusals, seeds, noisy `advance`."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import Laws
from attnflow.flows import AbstractIto, AbstractNoise, AbstractStratonovich, RandomValues
from attnflow.flows.methods.fixed import stop_label
from tests import kit
from tests.flows.fields import WORDS
from tests.marks import graded

A, SIGMA, T = 0.3, 0.8, 1.0
KAPPA = SIGMA**2 / 2
PATHS = af.from_array(np.ones((4096, 1)), space=af.Euclidean(1))
FIVE = af.uniform(af.Sphere(3), n=5, seed=2)
ANGLE = 1.0
CIRCLE = af.from_array(np.tile([np.cos(ANGLE), np.sin(ANGLE)], (4096, 1)))


class Growth(af.AbstractField):
    """X(x) = rate x."""

    rate: float = A

    def formula(self, t, query, mu):
        return self.rate * query.points(mu)

    def children(self, space):
        return ()

    def check_parameters(self, tokens):
        pass

    @property
    def laws(self):
        return Laws(True, True, True, True)


class GeometricIto(AbstractIto):
    """dX = sigma X dW, sigma^2 = 2 kappa."""

    kappa: float = KAPPA
    seed: int = 0

    def driver(self, mu):
        return jax.ShapeDtypeStruct((mu.n, 1), mu.positions.dtype)

    def push(self, t, query, mu, w):
        return query.points(mu) * jnp.broadcast_to(w, mu.positions.shape)

    def check(self, tokens):
        pass


class GeometricStratonovich(AbstractStratonovich):
    """dX = sigma X o dW."""

    kappa: float = KAPPA
    seed: int = 0

    def driver(self, mu):
        return GeometricIto().driver(mu)

    def push(self, t, query, mu, w):
        return GeometricIto().push(t, query, mu, w)

    def check(self, tokens):
        pass


class WindIto(AbstractIto):
    """dX = sigma P_X e_1 dW: on the circle an angle moves by -sigma sin(angle) dW."""

    kappa: float = KAPPA
    seed: int = 0

    def driver(self, mu):
        return GeometricIto().driver(mu)

    def push(self, t, query, mu, w):
        return jnp.concatenate([w, jnp.zeros_like(w)], axis=1)

    def check(self, tokens):
        pass


class WindStratonovich(AbstractStratonovich):
    """dX = sigma P_X e_1 o dW."""

    kappa: float = KAPPA
    seed: int = 0

    def driver(self, mu):
        return GeometricIto().driver(mu)

    def push(self, t, query, mu, w):
        return WindIto().push(t, query, mu, w)

    def check(self, tokens):
        pass


class Neither(AbstractNoise):
    """Noise that does not say in which sense it is meant."""

    kappa: float = KAPPA
    seed: int = 0

    def driver(self, mu):
        return GeometricIto().driver(mu)

    def push(self, t, query, mu, w):
        return GeometricIto().push(t, query, mu, w)

    def check(self, tokens):
        pass


class TwoDrivers(AbstractIto, AbstractStratonovich):
    """dX = sqrt(2 kappa) (dW + dV), W private and V common; or a mistake."""

    kappa: float = 0.5
    seed: int = 0
    mistake: str = ""

    def driver(self, mu):
        shape, dtype = mu.positions.shape, mu.positions.dtype
        if self.mistake == "driver":
            return shape
        return {"own": jax.ShapeDtypeStruct(shape, dtype), "common": jax.ShapeDtypeStruct(shape[-1:], dtype)}

    def push(self, t, query, mu, w):
        return w["common"] if self.mistake == "push" else w["own"] + w["common"][None, :]

    def check(self, tokens):
        pass


def last(field, tokens, method, noise):
    return kit.end(field, tokens, T, method=method, noise=noise)


@af.in_float64
def increments(noise, tokens, h):
    """W(T) of `Layers(h)`, summed up from the increments of its layers."""
    draw = jax.jit(jax.vmap(lambda k: noise.draw(k[None], tokens.measure, h)))
    return np.asarray(draw(jnp.arange(round(T / h)))).sum(axis=0)


@af.in_float64
def brownian_tree(noise, tokens):
    """W(T) of `Heun`, whatever the step."""
    import diffrax

    zero = jnp.asarray(0.0)
    tree = diffrax.VirtualBrownianTree(zero, T, 0.1, noise.driver(tokens.measure), noise.key(stop_label(zero)))
    return np.asarray(tree.evaluate(zero, jnp.asarray(T)))


def near(sample, expected, slack):
    """Within four standard errors of independent samples (one miss in 16,000), and `slack` for the step."""
    error = sample.std() / np.sqrt(sample.size)
    assert abs(sample.mean() - expected) < 4 * error + slack, (sample.mean(), expected, error, slack)


@pytest.mark.slow
def test_geometric_brownian_motion_in_the_sense_of_ito():
    """X(T) = exp((a - sigma^2/2) T + sigma W(T)), mean e^(aT); strong order 1/2 along the same W.

    The leading error of a path is X sigma^2/2 sum (h - dW^2), of variance X^2 sigma^4 h T / 2, plus O(h) of the drift.
    """
    steps, errors = (1 / 16, 1 / 64, 1 / 256), []
    for h in steps:
        x = last(Growth(), PATHS, af.Layers(h), GeometricIto())
        exact = np.exp((A - SIGMA**2 / 2) * T + SIGMA * increments(GeometricIto(), PATHS, h))
        errors.append(np.sqrt(np.mean((x - exact) ** 2)))
        expected = np.sqrt(np.mean(exact**2) * SIGMA**4 * h * T / 2)
        assert abs(errors[-1] / expected - 1) < 0.2
        near(x, np.exp(A * T), np.exp(A * T) * A**2 * h * T)
    assert all(1.7 < a / b < 2.3 for a, b in itertools.pairwise(errors))  # steps of a quarter, half the error


@pytest.mark.slow
def test_fixed_steps_and_alternating_layers_are_ito_too():
    for method, field in ((af.Fixed(1 / 64), Growth()), (af.Alternate(1 / 64), Growth(A / 3) + Growth(2 * A / 3))):
        near(last(field, PATHS, method, GeometricIto()), np.exp(A * T), 0.01 * np.exp(A * T) / 64)


@pytest.mark.long
def test_geometric_brownian_motion_in_the_sense_of_stratonovich():
    """X(T) = exp(a T + sigma W(T)), mean e^((a + sigma^2/2) T); strong order 1 along the same W, as W is one number."""
    exact = np.exp(A * T + SIGMA * brownian_tree(GeometricStratonovich(), PATHS))
    errors = []
    for h in (1 / 16, 1 / 32, 1 / 64):
        x = last(Growth(), PATHS, af.Heun(h), GeometricStratonovich())
        errors.append(np.sqrt(np.mean((x - exact) ** 2)))
    assert all(1.6 < a / b < 2.6 for a, b in itertools.pairwise(errors)), errors
    mean = np.exp((A + SIGMA**2 / 2) * T)
    near(x, mean, errors[-1])
    assert mean - np.exp(A * T) > 10 * x.std() / np.sqrt(x.size)  # the two senses are told apart


def angles(x):
    return np.arctan2(x[:, 1], x[:, 0])


def test_a_wind_on_the_circle_in_the_sense_of_ito_is_a_martingale():
    """The angle moves by -atan(sigma sin(angle) dW) a step: its mean stays exactly, for every step."""
    found = angles(last(Growth(0.0), CIRCLE, af.Layers(0.02), WindIto()))
    near(found, ANGLE, 0.0)
    # in the sense of Stratonovich u = log tan(angle/2) moves by -sigma W, which gives another mean
    other = quad(lambda z: 2 * np.arctan(np.tan(ANGLE / 2) * np.exp(SIGMA * z)) * norm.pdf(z), -9, 9)[0]
    assert abs(other - ANGLE) > 10 * found.std() / np.sqrt(found.size)


@pytest.mark.long
def test_a_wind_on_the_circle_in_the_sense_of_stratonovich_has_a_known_path():
    """tan(angle/2) = tan(angle(0)/2) e^(-sigma W): the chain rule holds."""
    exact = 2 * np.arctan(np.tan(ANGLE / 2) * np.exp(-SIGMA * brownian_tree(WindStratonovich(), CIRCLE)[:, 0]))
    errors = [
        np.sqrt(np.mean((angles(last(Growth(0.0), CIRCLE, af.Heun(h), WindStratonovich())) - exact) ** 2))
        for h in (1 / 16, 1 / 32)
    ]
    assert errors[1] < 0.02
    assert 1.6 < errors[0] / errors[1] < 2.6


@graded("method", [af.Layers(0.25), pytest.param(af.Heun(0.5), marks=pytest.mark.slow)])
def test_a_driver_may_be_several_arrays(method):
    """In R^2, exactly: variance 2 T, covariance T of the same coordinate of two tokens, 0 of different coordinates."""
    tokens = af.from_array(np.zeros((3, 2)), space=af.Euclidean(2))
    field, noise = Growth(0.0), TwoDrivers(seed=af.Along("seed", range(8192)))
    x = af.solve(field, tokens, T, save=1, method=method, noise=noise, keep=["positions"]).positions.values[:, -1]
    want = np.kron(np.ones((3, 3)) + np.eye(3), np.eye(2)) * T
    # a product of two Gaussians of variance 2 has a standard deviation of at most sqrt(8)
    assert np.abs(x.reshape(-1, 6).T @ x.reshape(-1, 6) / 8192 - want).max() < 4.5 * np.sqrt(8 / 8192)


EXAMPLES = {"brownian": {"kappa": 0.1}, "random-values": {"field": af.Attention(2.0)}}


@graded("name", WORDS["noise"])
def test_every_registered_noise_is_linear_tangent_and_leaves_absent_rows(name):
    noise = WORDS["noise"][name](**EXAMPLES.get(name, {}))
    there = np.array([True, True, True, False, True])
    for dtype, rounding in ((np.float64, 1e-14), (np.float32, 1e-5)):
        mu = af.Tokens(FIVE.positions, present=there).astype(np.dtype(dtype)).measure

        @af.in_float64
        def moved(k, mu=mu):
            w, v = (noise.draw(jnp.array([k, j]), mu, 1.0) for j in range(2))
            both = jax.tree.map(lambda a, b: 2 * a - 3 * b, w, v)
            return tuple(noise.displacement(0.2, mu, u) for u in (w, v, both))

        w, v, both = jax.tree.map(np.asarray, moved(0))
        assert w.dtype == dtype
        np.testing.assert_allclose(2 * w - 3 * v, both, atol=rounding)
        assert np.abs(np.sum(w * mu.positions, axis=-1)).max() < rounding
        assert (w[3] == 0).all()
        assert (np.abs(w[there]).max(axis=1) > 1e-3).all()


NOISES = {"ito": GeometricIto(), "stratonovich": GeometricStratonovich(), "both": af.Brownian(0.1)}
FITS = {
    "adaptive": (), "fixed": ("ito", "both"), "layers": ("ito", "both"), "alternate": ("ito", "both"),
    "heun": ("stratonovich", "both"),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in WORDS["method"] if name not in ("long-time", "exact")])
def test_a_method_refuses_noise_in_another_sense(name):
    """Every registered method; `solve` and `advance` say the same, before anything is compiled."""
    method = WORDS["method"][name]()
    field = Growth() + Growth()
    for sense, noise in NOISES.items():
        assert (method.calculus is not None and isinstance(noise, method.calculus)) == (sense in FITS[name])
        if sense in FITS[name]:
            continue
        fix = {"ito": r"Layers\(step\) or Fixed\(step\)\.", "stratonovich": r"use Heun\(step\)\."}.get(sense, "use")
        for call in (
            lambda noise=noise: af.solve(field, PATHS, 1.0, method=method, noise=noise),
            lambda noise=noise: af.advance(field, PATHS, 0.0, 1.0, method, noise=noise),
        ):
            with pytest.raises(InvalidInput, match=f"`method` is {type(method).__name__}, which follows.*{fix}"):
                call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: af.solve(Growth(), PATHS, 1.0, noise=Neither()), "Neither.*derive it from AbstractIto"),
        (lambda: af.advance(Growth(), PATHS, 1.0, 0.0, noise=GeometricIto()), "t1 = 0 .*noise.*backwards"),
        (lambda: af.advance(Growth(), PATHS, 0.0, 1.0, noise=0.1), "`noise` is 0.1; give noise such as"),
        (lambda: GeometricIto(-1.0), "`kappa` is -1"),
        (lambda: GeometricIto(seed=0.5), "`seed` is 0.5"),
        (lambda: af.Brownian(0.1, seed=jax.random.split(jax.random.key(0), 3)), r"`seed` is an array of keys.*\(3,\)"),
        (lambda: af.solve(Growth(), FIVE, 1.0, noise=TwoDrivers(mistake="driver")), "`driver` is 5; give jax.Shape"),
        (lambda: af.solve(Growth(), FIVE, 1.0, noise=TwoDrivers(mistake="push")), r"`push`.*\(3,\); give \(5, 3\)"),
        (lambda: RandomValues(2.0), "`field` is 2.0; give a field"),
        (
            lambda: af.solve(Growth(), FIVE, 1.0, noise=RandomValues(af.Attention(1.0, value=np.eye(2)))),
            r"`value` has shape \(2, 2\)",
        ),
        (
            lambda: af.advance(
                Growth(), af.uniform(af.spaces.Ellipsoid([1.0, 2.0]), n=3), 0.0, 1.0, noise=af.Brownian(0.1)
            ),
            "`noise` on Ellipsoid.*orthogonal projection",
        ),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


@pytest.mark.long
def test_a_key_is_a_seed():
    """Of noise and of random weights; folded in as it is, so that seed 3 and its key are the same."""
    key = jax.random.key(3, impl="threefry2x32")
    for make in (
        lambda seed: {"field": Growth(), "noise": af.Brownian(0.1, seed=seed)},
        lambda seed: {"field": af.Perceptron(af.weights.Random((3, 3), seed=seed))},
    ):
        one, other, third = (
            kit.end(**make(seed), tokens=FIVE, until=0.5, method=af.Layers(0.1))
            for seed in (3, key, jax.random.split(key)[0])
        )
        assert np.array_equal(one, other)
        assert np.abs(one - third).max() > 0.01


@graded("method", [af.Layers(0.1), af.Fixed(0.07), pytest.param(af.Heun(0.1), marks=pytest.mark.slow)], slow=1)
def test_advance_follows_the_path_of_solve(method):
    """Also under `vmap` over seeds or keys, from any time on, with jumps of the field (not with `Heun`)."""
    noise = af.Brownian(0.2, seed=3)
    values = np.eye(3) + 0.3 * np.random.default_rng(0).standard_normal((6, 3, 3))
    fields = [af.Perceptron(values[0]), af.Perceptron(af.weights.PerLayer(values, 0.3))]
    for field in fields[: 1 if isinstance(method, af.Heun) else 2]:
        pure = af.advance(field, FIVE, 0.0, 1.0, method, noise=noise).positions
        np.testing.assert_allclose(pure, kit.end(field, FIVE, 1.0, method=method, noise=noise), atol=1e-13)
        assert np.abs(pure - FIVE.positions).max() > 0.1

    def end(seed, t1=1.0):
        return af.advance(fields[0], FIVE, 0.0, t1, method, noise=af.Brownian(0.2, seed=seed)).positions

    alone = end(3)
    if isinstance(method, af.Heun):  # takes long to compile: seeds and a traced end in one
        many = af.in_float64(jax.jit(jax.vmap(end, in_axes=(0, None))))(np.arange(5), 1.0)
        np.testing.assert_allclose(many[3], alone, atol=1e-13)
        return
    many = af.in_float64(jax.jit(jax.vmap(end)))(np.arange(5))
    np.testing.assert_allclose(many[3], alone, atol=1e-13)
    keys = jax.vmap(lambda k: jax.random.key(k, impl="threefry2x32"))(jnp.arange(5))
    np.testing.assert_allclose(af.in_float64(jax.jit(jax.vmap(end)))(keys)[3], alone, atol=1e-13)
    np.testing.assert_allclose(af.in_float64(jax.jit(end))(3, 1.0), alone, atol=1e-13)  # a traced t1: no grid
    if isinstance(method, af.Layers):
        half = af.advance(fields[0], FIVE, 0.0, 0.5, method, noise=noise)
        np.testing.assert_allclose(
            af.advance(fields[0], half, 0.5, 1.0, method, noise=noise).positions, alone, atol=1e-13
        )


@pytest.mark.long
def test_heun_is_differentiable_in_reverse_mode():
    def value(kappa):
        moved = af.advance(af.Perceptron(np.eye(3)), FIVE, 0.0, 0.3, af.Heun(0.1), noise=af.Brownian(kappa, seed=1))
        return jnp.sum(moved.positions[:, 0])

    h, both = 1e-5, af.in_float64(jax.jit(jax.value_and_grad(value)))
    numeric = (both(0.3 + h)[0] - both(0.3 - h)[0]) / (2 * h)
    np.testing.assert_allclose(both(0.3)[1], numeric, rtol=1e-7)
