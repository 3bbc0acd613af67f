"""Fields form a vector space: identities to rounding, and what a multiple does to sums, errors, energies and flows."""

import functools

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import Multiple, Total, breaks
from attnflow.flows import Alternate
from attnflow.meanfield import as_model
from attnflow.observe import dissipation, total_energy
from attnflow.sums import Circle
from tests.kit import drive

RNG = np.random.default_rng(3)
TOKENS = af.uniform(af.Sphere(3), n=12, seed=2)
FIELDS = (
    af.Attention(2.0),
    af.Attention(1.0, normaliser=af.Unnormalised(), value=RNG.standard_normal((3, 3))),
    af.Perceptron(RNG.standard_normal((4, 3)), RNG.standard_normal(4), RNG.standard_normal((3, 4)), "tanh"),
)
POTENTIAL = af.Potential(RNG.standard_normal((2, 3)), [0.1, -0.2], [0.5, -0.4], "gelu")
USA0 = af.Attention(1.5, normaliser=af.Unnormalised())
EPS = np.finfo(float).eps


@eqx.filter_jit
def at(fields):
    return [field.drive(TOKENS.measure, 0.3) for field in fields]


@functools.cache
def drives():
    return [np.asarray(drive) for drive in af.in_float64(at)(FIELDS)]


numbers = st.floats(-10, 10).filter(lambda x: abs(x) > 1e-3)


@pytest.mark.slow
@settings(deadline=None, max_examples=8)
@given(a=numbers, b=numbers, i=st.integers(0, 2), j=st.integers(0, 2))
def test_identities(a, b, i, j):
    (f, g), (u, v) = (FIELDS[i], FIELDS[j]), (drives()[i], drives()[j])
    made = {
        "a f + b g": (a * f + b * g, a * u + b * v),
        "a (f + g)": (a * (f + g), a * (u + v)),
        "(a b) f": (a * (f * b), a * b * u),
        "f - g": (f - g, u - v),
        "-f": (-f, -u),
        "f / a": (f / a, u / a),
        "sum": (sum([f, g, a * f]), u + v + a * u),
        "0": (f + -1.0 * f, 0 * u),
    }
    found = af.in_float64(at)([field for field, _ in made.values()])
    # a few roundings of terms that are no larger than this
    size = 8 * EPS * max(1, abs(a), 1 / abs(a)) * max(1, abs(b)) * max(np.abs(u).max(), np.abs(v).max())
    for (name, (_, want)), one in zip(made.items(), found, strict=True):
        np.testing.assert_allclose(one, want, rtol=0, atol=size, err_msg=name)


def test_multiples_are_folded_and_sums_stay_flat():
    f, g = FIELDS[:2]
    twice = 2 * (3 * f)
    assert isinstance(twice, Multiple)
    assert (twice.field, float(twice.factor)) == (f, 6.0)
    assert -1 * (-f) is f
    assert 2 * f / 2 is f
    assert isinstance(2 * (f + g) - f, Total)
    assert [type(part) for part in (2 * (f + g) - f).parts] == [Multiple] * 3
    for two in (np.float64(2), np.asarray(2.0), 2, jax.numpy.asarray(2.0)):
        assert isinstance(two * f, Multiple)
        assert isinstance(f * two, Multiple)
    scale = af.Along("scale", [1.0, 2.0, 4.0])
    assert (2 * (scale * f)).factor.values.tolist() == [2.0, 4.0, 8.0]
    assert (2 * (f / scale)).factor.coordinates.tolist() == [1.0, 2.0, 4.0], "labels are those that were given"


@pytest.mark.slow
def test_a_factor_may_be_a_batch_or_traced():
    f, own = FIELDS[0], np.asarray(FIELDS[0].velocity(TOKENS))
    batch = af.Along("scale", [1.0, -2.0]) * (af.Along("other", [1.0, 3.0, 5.0]) * f)
    want = np.multiply.outer([[1, -2], [3, -6], [5, -10]], own)
    np.testing.assert_allclose(batch.velocity(TOKENS), want, rtol=1e-14)
    flow = af.solve(af.Along("scale", [1.0, 2.0]) * f, TOKENS, 1.0, save=1, method=af.Fixed(0.05), keep=["positions"])
    assert flow.dims == ("scale",)
    half = af.solve(f, TOKENS, 2.0, save=1, method=af.Fixed(0.1), keep=["positions"])
    np.testing.assert_allclose(flow.positions.values[1], half.positions.values, atol=1e-13)  # 2 f is f, twice as fast
    slope = af.in_float64(jax.jit(jax.grad(lambda a: (a * f).drive(TOKENS.measure)[0, 0])))(2.0)
    assert slope == pytest.approx(drive(f, TOKENS)[0, 0], rel=1e-14)


def test_float32_stays():
    few = af.Tokens(np.float32(TOKENS.positions), space=af.Sphere(3), dtype="float32")
    assert (2 * FIELDS[0]).velocity(few).dtype == np.float32


def test_sums_are_chosen_inside(choices_of_a_cpu):
    many = af.uniform(af.Sphere(2), n=3000, seed=0)
    chosen = (af.Attention(4.0) + -3.0 * af.Attention(9.0)).prepare(many, flowing=True)
    assert isinstance(chosen.parts[1].field.sum, Circle)


@pytest.mark.slow
def test_the_stated_error_is_multiplied():
    few = af.uniform(af.Sphere(2), n=40, seed=1)
    cut = af.Attention(4.0, sum=Circle(1e-3, 6))
    fields = (cut, -3.0 * cut, 2 * cut + cut / 2)
    stated = af.in_float64(eqx.filter_jit(lambda fields: [field.error(few) for field in fields]))(fields)
    assert (stated[0] > 0).all()
    np.testing.assert_allclose(stated[1], 3 * stated[0], rtol=1e-14)
    np.testing.assert_allclose(stated[2], 2.5 * stated[0], rtol=1e-14)
    off = drive(-3.0 * cut, few) - -3.0 * drive(af.Attention(4.0), few)
    assert (np.linalg.norm(off, axis=1) <= stated[1]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "field",
    [2 * af.Attention(1.5), -0.5 * USA0, 3 * USA0 - 0.7 * POTENTIAL, 2 * (USA0 + POTENTIAL)],
    ids=["SA", "USA0", "sum", "twice"],
)
def test_energies_have_the_factors(field):
    """dE/dt is the dissipation, by a difference of the energy along the flow; E has the factors."""
    h = 1e-4
    ahead, behind = (af.advance(field, TOKENS, 0.0, s, af.Fixed(h)) for s in (h, -h))
    rate = float(dissipation(field, TOKENS))
    slope = float(total_energy(field, ahead) - total_energy(field, behind)) / (2 * h)
    assert slope == pytest.approx(rate, rel=1e-5)  # h^2 times derivatives of size 1e3
    assert rate > 0
    mixed = 3 * total_energy(USA0, TOKENS) - 0.7 * np.mean(POTENTIAL.potential(np.asarray(TOKENS.positions)))
    assert float(total_energy(3 * USA0 - 0.7 * POTENTIAL, TOKENS)) == pytest.approx(float(mixed), rel=1e-13)


@pytest.mark.slow
def test_parts_move_in_turn():
    f, g = FIELDS[0], FIELDS[2]
    exact = af.advance(f + 2 * g, TOKENS, 0.0, 0.8, af.Fixed(0.01)).positions
    errors = [
        np.abs(af.advance(f + 2 * g, TOKENS, 0.0, 0.8, Alternate(h, symmetric=True)).positions - exact).max()
        for h in (0.1, 0.05)
    ]
    assert 3.4 < errors[0] / errors[1] < 4.6  # order 2


def test_breaks_are_those_inside():
    jumping = af.Attention(1.0, value=af.weights.PerLayer(np.stack([np.eye(3), 2 * np.eye(3)]), 0.25))
    np.testing.assert_array_equal(breaks(FIELDS[0] - 2 * jumping, 1.0), [0.25])


def test_refusals():
    f = FIELDS[0]
    with pytest.raises(InvalidInput, match="Mix has layers of its own, which a multiple would lose"):
        (2 * af.norms.Mix(f)).check(af.uniform(af.Euclidean(3), n=4))
    with pytest.raises(InvalidInput, match="`factor` is nan; give a finite number"):
        np.nan * f
    with pytest.raises(InvalidInput, match="`factor` is inf; give a finite number"):
        f / 0
    with pytest.raises(InvalidInput, match="`factor` is .*; give a real number"):
        f * f
    with pytest.raises(InvalidInput, match="`factor` has shape"):
        [1.0, 2.0] * f
    with pytest.raises(InvalidInput, match="the part Multiple; densities follow"):
        as_model(2 * f)
    for wrong in (lambda: 1 + f, lambda: f - 1, lambda: 2 / f):
        with pytest.raises(TypeError):
            wrong()
