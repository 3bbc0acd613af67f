"""Where a field is asked is said by types: at the tokens, or at points; and so is what is summed."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.fields import AtPoints, AtTokens
from attnflow.sums import AbstractSum, Columns, Moments, Tiled
from tests.kit import drive
from tests.marks import graded

EPS = np.finfo(float).eps
SPHERE = af.uniform(af.Sphere(3), n=9, seed=1)
FLAT = af.Tokens(SPHERE.positions, space=af.Euclidean(3))
SEEN = []


class Spy(AbstractSum):
    """Tiles that note what they are asked; every one is another, so that a program with it is traced anew."""

    mark: int = eqx.field(static=True, default_factory=itertools.count().__next__)

    def __call__(self, weights, query, key, log_mass, charges):
        SEEN.append((weights.at_tokens, type(charges)))
        return Tiled()(weights, query, key, log_mass, charges)

    def shared(self, copies):
        return self

    def trusted(self, arguments, scale, total):
        return None

    @classmethod
    def offers(cls, case):
        return ()

    def error(self, kernel, masses):
        return 0.0

    def refusal(self, use, tokens):
        return ""


def spied(**arguments):
    return af.Attention(2.0, sum=Spy(), **arguments)


FIELDS = {
    "attention": (spied, SPHERE), "usa": (lambda: spied(normaliser=af.Unnormalised()), SPHERE),
    "causal": (lambda: spied(mask=af.Causal()), SPHERE), "total": (lambda: spied() + spied(), SPHERE),
    "composed": (lambda: af.Composed(af.Perceptron(np.eye(3)), spied()), SPHERE), "ngpt": (lambda: af.norms.Ngpt(spied()), SPHERE),
    "pre": (lambda: af.norms.Pre(spied()), FLAT), "peri": (lambda: af.norms.Peri(spied(), af.norms.RmsNorm()), FLAT),
    "post": (lambda: af.norms.Post(spied(), af.norms.RmsNorm(eps=0.1)), FLAT),
    "scaled": (lambda: af.norms.Scaled(spied()), FLAT), "mix": (lambda: af.norms.Mix(spied()), FLAT),
    "rescaled": (lambda: af.Rescaled(spied()), FLAT),
    "rescaled by V": (lambda: af.Rescaled(spied(value=np.diag([1.0, 2.0, 3.0]))), FLAT),
    "twice": (lambda: af.norms.Ngpt(af.norms.Ngpt(spied())), SPHERE),
}  # fmt: skip


def asked(call):
    SEEN.clear()
    found = call()
    assert SEEN
    return found, {at_tokens for at_tokens, _ in SEEN}


@af.in_float64
def traced(call):
    """What JAX traces of a call; nothing is compiled, nothing is run."""
    return eqx.filter_eval_shape(call)


@graded(
    "name",
    [
        pytest.param(name, marks=[] if name in ("attention", "total", "pre", "ngpt") else pytest.mark.slow)
        for name in FIELDS
    ],
    slow=1,
)
def test_at_the_tokens_stays_at_the_tokens(name):
    """Through every wrapper, by every way in; the same positions given as an array are points like any others."""
    make, tokens = FIELDS[name]
    field = make()
    here, kinds = asked(lambda: field.velocity(tokens, 0.1))
    assert kinds == {True}
    for call in (
        lambda: field.velocity(tokens, 0.1),
        lambda: field.velocity(tokens, 0.1, at=AtTokens()),
        lambda: field.velocity(tokens.measure, 0.1),
    ):
        SEEN.clear()
        np.testing.assert_allclose(call(), here, atol=40 * EPS)
        assert all(
            at_tokens for at_tokens, _ in SEEN
        )  # none where the program above, the only one so far, is run again
    inside = af.in_float64(
        jax.jit(lambda x: [field.velocity(tokens.moved(x), 0.1), field.velocity(tokens.measure.moved(x), 0.1)])
    )
    again, kinds = asked(lambda: inside(tokens.positions))
    assert kinds == {True}
    np.testing.assert_allclose(again, [here, here], atol=40 * EPS)
    for call in (
        lambda field: field.drive(tokens, 0.1),
        lambda field: af.advance(field, tokens, 0.0, 0.1, af.Layers(0.1)),
        lambda field: af.advance(field, tokens, 0.0, 0.1, af.Fixed(0.1)),
    ):
        assert asked(lambda call=call: traced(lambda: call(make())))[1] == {True}
    assert asked(lambda: af.solve(make(), tokens, 0.1, method=af.Fixed(0.1), save=1))[1] == {True}
    there, kinds = asked(lambda: field.velocity(tokens, 0.1, at=tokens.positions, place=tokens.place))
    assert kinds == {False}
    np.testing.assert_allclose(there, here, atol=40 * EPS)


def test_charges_are_moments_where_the_values_are_the_keys():
    """V = K = I and no encoding; Q may be anything."""
    turn = np.eye(4)[[1, 2, 3, 0]]
    tokens = af.uniform(af.Sphere(4), n=5)
    for arguments, kind in (
        ({}, Moments), ({"query": turn}, Moments), ({"mask": af.Causal()}, Moments), ({"key": turn}, Columns),
        ({"value": turn}, Columns), ({"encoding": af.encodings.Rotary()}, Columns), ({"encoding": af.encodings.Sinusoidal()}, Columns),
    ):  # fmt: skip
        field = af.Attention(1.0, sum=Spy(), **arguments)
        asked(lambda field=field: traced(lambda: field.velocity(tokens)))
        assert {charges for _, charges in SEEN} == {kind}


def test_the_fused_kernel_is_reached_through_velocity(faults):
    calls = faults.calls("sums of the fused kernel")
    tokens = af.uniform(af.Sphere(3), n=40).astype(np.float32)
    found = af.Attention(3.0, sum=af.sums.Fused(interpret=True)).velocity(tokens)
    assert calls
    exact = af.Attention(3.0).velocity(tokens.astype(float))
    # the kernel states its error; tokens are rounded to 6e-8, which the kernel magnifies by at most 2 beta
    assert np.abs(found - exact).max() <= af.sums.Fused.accuracy(40, 3.0) + 6e-7


def test_queries():
    mu = SPHERE.measure
    assert AtTokens().points(mu) is mu.positions
    assert AtTokens().place(mu) is mu.place
    assert AtTokens().at_tokens
    field = af.Attention(1.0, mask=af.Causal())
    for at, place, query in (
        (None, None, AtTokens()),
        (AtTokens(), None, None),
        (SPHERE.positions[:2], [4, 5], AtPoints(SPHERE.positions[:2], np.array([4, 5]))),
    ):
        found, expected = (drive(field, mu, x, 0.0, at_place) for x, at_place in ((at, place), (query, None)))
        np.testing.assert_array_equal(found, expected)
    points = AtPoints(SPHERE.positions[:2], [4, 5])
    assert points.place(mu) == [4, 5]
    assert not points.at_tokens
    np.testing.assert_array_equal(points.moved(lambda x: 2 * x).points(mu), 2 * SPHERE.positions[:2])
    assert AtTokens().moved(lambda x: 2 * x).points(mu) is mu.positions
    np.testing.assert_array_equal(AtPoints(jnp.ones((2, 3))).kept(mu, np.ones(2)), np.ones(2))


def test_places_of_queries_may_differ_between_members():
    tokens = af.uniform(af.Sphere(3), n=6, seed=[0, 1])
    field = af.Attention(2.0, mask=af.Causal(0.3))
    x, place = tokens.positions[:, :4], np.array([[0, 2, 4, 5], [3.5, 1, 1, 0]])
    found = field.velocity(tokens, at=x, place=place)
    for k in range(2):
        alone = field.velocity(tokens.member(seed=k), at=x[k], place=place[k])
        np.testing.assert_allclose(found[k], alone, atol=10 * EPS)
