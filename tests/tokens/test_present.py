"""Measures made inside compiled code; places of any kind; systems of unequal size in one batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.axes import members
from attnflow.errors import InvalidInput

EPS = np.finfo(float).eps
SIZES = (3, 7, 5)
PROMPTS = [af.uniform(af.Sphere(3), n=n, seed=n) for n in SIZES]
BATCH = af.stack("prompt", ["a", "b", "c"], PROMPTS)


def test_a_measure_is_made_inside_compiled_code():
    """With the defaults of `Tokens`: equal masses, places 0, 1, 2, ..., the unit sphere."""
    tokens = PROMPTS[1]
    field = af.Attention(3.0, mask=af.Causal(0.2)) + af.Potential(np.eye(3), np.zeros(3), np.ones(3))

    def value(x):
        mu = af.Measure(x)
        assert (mu.n, mu.dim, mu.space) == (7, 3, af.Sphere(3))
        return jnp.sum(field.velocity(mu, 0.3) ** 2)

    both = af.in_float64(jax.jit(jax.value_and_grad(value)))
    found, slope = both(tokens.positions)
    np.testing.assert_allclose(found, np.sum(field.velocity(tokens, 0.3) ** 2), rtol=40 * EPS)
    step = np.random.default_rng(0).standard_normal((7, 3))
    h = 1e-6
    ends = [both(tokens.positions + sign * h * step)[0] for sign in (1, -1)]
    # differences of numbers of order 1: rounding over h, and h^2 times a third derivative
    np.testing.assert_allclose(np.sum(slope * step), (ends[0] - ends[1]) / (2 * h), atol=1e-8)


def test_a_measure_moves_with_advance():
    tokens = PROMPTS[0]
    moved = af.in_float64(jax.jit(lambda x: af.advance(af.Attention(2.0), af.Measure(x), 0.0, 1.0, af.Fixed(0.1))))
    found = moved(tokens.positions)
    assert isinstance(found, af.Measure)
    alone = af.advance(af.Attention(2.0), tokens, 0.0, 1.0, af.Fixed(0.1))
    np.testing.assert_allclose(found.positions, alone.positions, atol=100 * EPS)


def test_the_measure_of_tokens():
    mu = PROMPTS[0].measure
    assert mu.positions is PROMPTS[0].positions
    assert mu.measure is mu
    there = mu.on(af.Euclidean(3), 2 * mu.positions)
    assert (there.space, there.n, there.dims) == (af.Euclidean(3), 3, ())
    with pytest.raises(InvalidInput, match=r"batch dimensions \('prompt',\); pick one"):
        _ = BATCH.measure
    some = af.Measure(np.eye(3), present=np.array([True, False, True]))
    np.testing.assert_array_equal(some.masses, [0.5, 0, 0.5])
    assert int(some.count) == 2


def test_unequal_systems_are_filled_up():
    assert BATCH.positions.shape == (3, 7, 3)
    np.testing.assert_array_equal(BATCH.present.sum(axis=1), SIZES)
    for k, (n, one) in enumerate(zip(SIZES, PROMPTS, strict=True)):
        np.testing.assert_array_equal(BATCH.positions[k, n:], np.broadcast_to(one.positions[-1], (7 - n, 3)))
        np.testing.assert_array_equal(BATCH.place[k, n:], n - 1)
        np.testing.assert_array_equal(BATCH.masses[k, n:], 0)
        back = BATCH.member(prompt=k)
        assert back.present is None
        np.testing.assert_array_equal(back.positions, one.positions)
        np.testing.assert_array_equal(back.place, one.place)
        np.testing.assert_allclose(back.masses, one.masses, rtol=2 * EPS)
    assert BATCH.astype(np.float32).present is not None
    twice = af.stack("copy", [0, 1], [BATCH, BATCH])
    np.testing.assert_array_equal(twice.member(copy=1, prompt=2).positions, PROMPTS[2].positions)


def test_what_absent_rows_are_given_is_of_no_consequence():
    """Padding by zeros, NaN places and large masses."""
    there = np.array([False, True, True, False])
    x = np.array([[0.0, 0], [1, 0], [0, 1], [0, 0]])
    tokens = af.Tokens(x, [9.0, 1, 3, 9], place=[np.nan, 0.5, 0.1, np.nan], present=there)
    np.testing.assert_array_equal(tokens.masses, [0, 0.25, 0.75, 0])
    np.testing.assert_array_equal(tokens.place, [0.1, 0.5, 0.1, 0.1])
    np.testing.assert_array_equal(tokens.positions[[0, 3]], x[[2, 2]])
    assert af.Tokens(np.eye(2), present=[True, True]).present is None


def test_members_have_the_member_axis_first():
    systems = members(af.Attention(af.Along("beta", [1.0, 2.0])), BATCH)
    mu = systems.measure
    assert systems.dims["prompt"].tolist() == ["a", "b", "c"]
    assert [leaf.shape for leaf in (mu.positions, mu.masses, mu.present, mu.place)] == [(6, 7, 3), *[(6, 7)] * 3]
    np.testing.assert_array_equal(mu.place[4], BATCH.place[1])
    one = members(af.Attention(af.Along("beta", [1.0, 2.0])), PROMPTS[0]).measure
    assert one.place.shape == (2, 3)
    assert one.present is None
    assert members(af.Attention(1.0), PROMPTS[0]).measure.positions is PROMPTS[0].positions


def test_places_of_each_member():
    one = af.uniform(af.Sphere(3), n=4)
    other = af.Tokens(one.positions, place=[0.9, 0.1, 0.4, 0.2])
    both = af.stack("order", [0, 1], [one, other])
    assert both.place.shape == (2, 4)
    assert both.present is None
    field = af.Attention(2.0, mask=af.Causal(0.5), encoding=af.encodings.Sinusoidal(0.3))
    found = field.velocity(both)
    for k, alone in enumerate((one, other)):
        np.testing.assert_allclose(found[k], field.velocity(alone), atol=10 * EPS)
    flow = af.solve(field, both, 0.5, method=af.Layers(0.25), save=1, keep=["positions"])
    assert flow.dataset["place"].dims == ("order", "token")
    np.testing.assert_array_equal(flow.tokens(-1, order=1).place, other.place)


@pytest.mark.parametrize("width", [0.25, 3])
def test_masks_compare_real_places(width):
    place = np.array([0.0, 0.3, 0.05, 0.95, 0.3])
    back = place[:, None] - place[None]
    for mask, seen in (
        (af.Causal(0.4), back >= 0), (af.Causal(0.4, strict=True), back > 0),
        (af.Window(width, 0.4), (np.abs(back) < width) & (back >= 0)), (af.Window(width, 0.4, causal=False), np.abs(back) < width),
    ):  # fmt: skip
        with jax.enable_x64(True):
            found = np.asarray(mask.bias(jnp.asarray(place), jnp.asarray(place)))
        np.testing.assert_allclose(found, np.where(seen, -0.4 * np.abs(back), -np.inf), rtol=4 * EPS)


def test_a_window_of_a_fraction_of_a_place_is_refused_for_whole_places():
    x, field = np.eye(3), af.Attention(1.0, mask=af.Window(2.5))
    with pytest.raises(InvalidInput, match="`width` of Window is 2.5, but the places of the tokens are whole numbers"):
        field.velocity(af.Tokens(x))
    far = field.velocity(af.Tokens(x, place=[0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(far, af.Attention(1.0, mask=af.Window(3)).velocity(af.Tokens(x)))


def test_masked_rows_are_absent():
    """Whatever stands in them: they have no norm to divide by, and no mass."""
    x = np.array([[2.0, 0.0], [np.nan, 0.0], [0.0, 3.0]])
    masked = np.ma.array(x, mask=np.array([[0, 0], [1, 1], [0, 0]], bool))
    tokens = af.from_array(masked, normalise=True, masses=[1.0, 5.0, 3.0])
    np.testing.assert_array_equal(tokens.present, [True, False, True])
    np.testing.assert_array_equal(tokens.masses, [0.25, 0.0, 0.75])
    np.testing.assert_array_equal(tokens.positions[[0, 2]], np.eye(2))
    assert af.from_array(np.ma.array(np.eye(2))).present is None
    unit = np.ma.array(np.eye(2), mask=np.eye(2, dtype=bool))
    for call, words in (
        (lambda: af.from_array(unit), r"positions\[0\] is masked in part; mask the whole row"),
        (lambda: af.Tokens(masked, present=[True, True, False]), "masked array and `present` is given"),
        (lambda: af.Tokens(np.eye(2), np.ma.array([1.0, 1.0], mask=[True, False])), "`masses` is a masked array"),
        (lambda: af.Tokens(np.eye(2), place=np.ma.array([1.0, 1.0], mask=[True, False])), "`place` is a masked array"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()


def test_a_table_refuses_real_places():
    field, tokens = (
        af.Attention(1.0, mask=af.masks.Table(np.eye(3, dtype=bool))),
        af.Tokens(np.eye(3), place=[0.0, 1.0, 2.0]),
    )
    for call in (lambda: field.velocity(tokens), lambda: af.in_float64(jax.jit(lambda x: field.drive(tokens.moved(x))))(np.eye(3))):  # fmt: skip
        with pytest.raises(InvalidInput, match="float64.*Causal or Window"):
            call()
    with pytest.raises(InvalidInput, match="`width` is 0"):
        af.Window(0.0)
