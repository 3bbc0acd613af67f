"""Pictures of tokens and of velocities: what is drawn where, and what is refused."""

import equinox as eqx
import jax
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, NoSuchItem

SPACES = [
    af.Sphere(2),
    af.Sphere(3),
    af.Sphere(7),
    af.Euclidean(2),
    af.Torus(2),
    af.Product(af.Sphere(2), af.Torus(1)),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_tokens_are_drawn_on_every_space(space):
    figure = af.uniform(space, n=30, seed=0).plot()
    shown = [c for c in figure.axes[0].collections if len(c.get_offsets())]
    assert sum(len(c.get_offsets()) for c in shown) == 30
    figure.canvas.draw()


def test_arrows_are_the_velocities_at_one_scale():
    tokens, field = af.uniform(af.Sphere(2), n=12, seed=1), af.Attention(3.0)
    figure = field.plot(tokens)
    (arrows,) = [c for c in figure.axes[0].collections if type(c).__name__ == "Quiver"]
    velocity = np.asarray(field.velocity(tokens))
    drawn = np.stack([arrows.U, arrows.V], axis=1)
    # pictures are differenced over 1e-6: of second order in that, over the size of an arrow
    np.testing.assert_allclose(drawn, 0.3 * velocity / np.linalg.norm(velocity, axis=1).max(), atol=1e-6)
    np.testing.assert_allclose(arrows.XY, tokens.positions, atol=1e-12)


def test_consensus_has_no_arrows():
    tokens = af.from_array(np.tile([1.0, 0.0], (5, 1)))
    (arrows,) = [c for c in af.Attention(3.0).plot(tokens).axes[0].collections if type(c).__name__ == "Quiver"]
    assert np.abs(arrows.U).max() < 1e-8


def test_a_batch_shows_its_first_member():
    batch = af.uniform(af.Sphere(2), n=9, seed=[4, 5])
    found = np.concatenate([c.get_offsets() for c in af.plot(batch).axes[0].collections if len(c.get_offsets())])
    np.testing.assert_allclose(found, batch.member(seed=0).positions)


def test_tokens_are_indexed():
    tokens = af.uniform(af.Sphere(3), n=4, seed=0)
    assert len(tokens) == 4
    np.testing.assert_array_equal(tokens[-1], tokens.positions[3])
    np.testing.assert_array_equal(np.stack(list(tokens)), tokens.positions)
    with pytest.raises(NoSuchItem, match="there are 4"):
        tokens[4]
    with pytest.raises(InvalidInput, match="at"):
        tokens["a"]
    batch = af.uniform(af.Sphere(3), n=4, seed=[7, 8])
    np.testing.assert_array_equal(batch[1].positions, af.uniform(af.Sphere(3), n=4, seed=8).positions)
    assert len(batch) == len(list(batch)) == 2
    with pytest.raises(InvalidInput, match=r"member\(beta=0"):
        af.stack("beta", [1.0], [batch])[0]


def test_what_is_not_tokens_is_refused():
    with pytest.raises(InvalidInput, match="tokens such as"):
        af.Attention(2.0).plot(np.eye(3))
    with pytest.raises(InvalidInput, match="a density or a schedule"):
        af.plot(af.Attention(2.0))


def test_tokens_are_no_array():
    tokens = af.Tokens(np.eye(3), [0.8, 0.1, 0.1], space=af.Sphere(3))
    for call in (
        lambda: np.asarray(tokens),
        lambda: af.from_array(tokens),
        lambda: af.Tokens(tokens, space=af.Sphere(3)),
    ):
        with pytest.raises(InvalidInput, match="positions"):
            call()
    assert tokens
    for tree in (jax.tree.map(lambda _: 0, tokens), eqx.partition(tokens, eqx.is_array)[1]):
        assert tree
        assert "Tokens" in repr(tree)


def test_a_batch_of_fields_is_refused_and_one_token_is_drawn():
    with pytest.raises(InvalidInput, match=r"batch along \['beta'\]"):
        af.Attention(af.Along("beta", [1.0, 4.0])).plot(af.uniform(af.Sphere(3), n=4))
    for n in (1, 2):
        figure = af.Attention(1.0).plot(af.uniform(af.Sphere(64), n=n))
        assert sum(len(c.get_offsets()) for c in figure.axes[0].collections if type(c).__name__ != "Quiver") == n
