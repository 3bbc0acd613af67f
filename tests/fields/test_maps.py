"""Maps that are not square, and maps with biases: in every role, in heads, per layer, after cut sums; what refuses them."""

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractLinearMap, Biased, Identity, Perceptron, PerLayer, Random
from tests.kit import drive

RNG = np.random.default_rng(0)
N, D, ROWS, HEADS = 12, 3, 2, 2
TOKENS = af.uniform(af.Sphere(D), n=N, seed=0)
M, B = RNG.standard_normal((2, 4, HEADS, ROWS, D)), RNG.standard_normal((2, 4, HEADS, ROWS))
OUT, SHIFT = RNG.standard_normal((2, HEADS, D, ROWS)), RNG.standard_normal((2, D))


class LowRank(AbstractLinearMap):
    """x -> L R x, as an outsider would write it."""

    left: np.ndarray
    right: np.ndarray
    heads = None
    is_linear = True
    is_continuous = True

    def __call__(self, t, x):
        return (x @ jnp.asarray(self.right, x.dtype).T) @ jnp.asarray(self.left, x.dtype).T

    def rows(self, dim):
        return len(self.left)

    def bound(self, t, dtype):
        return jnp.asarray(np.linalg.norm(self.left @ self.right, 2), dtype)

    def check(self, dim, heads):
        """Fits."""


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def in_numpy(layer, x):
    """Two heads with biases everywhere; the bias of the output comes once, whatever the average."""
    heads = []
    for h in range(HEADS):
        q, k, v = (x @ M[layer, i, h].T + B[layer, i, h] for i in range(3))
        heads.append(softmax(1.5 * q @ k.T) @ v @ OUT[layer, h].T)
    return sum(heads) / np.sqrt(HEADS) + SHIFT[layer]


def test_biases_of_every_layer_in_heads():
    maps = [Biased(PerLayer(M[:, i], 0.5), PerLayer(B[:, i], 0.5)) for i in range(3)]
    output = Biased(PerLayer(OUT, 0.5), PerLayer(SHIFT, 0.5))
    field = af.Attention(1.5, query=maps[0], key=maps[1], value=maps[2], output=output, average="root")
    for layer, t in ((0, 0.2), (1, 0.5)):
        np.testing.assert_allclose(drive(field, TOKENS, t=t), in_numpy(layer, TOKENS.positions), atol=1e-13)
    assert not field.laws.steady
    assert not field.laws.rotation
    np.testing.assert_array_equal(af.fields.breaks(field, 1.0), [0.5])


def test_shared_and_own_biases():
    """A matrix shared by heads with biases of their own, and the other way round; a batch of biases."""
    x = TOKENS.positions
    own = Biased(M[0, 0, 0], B[0, 0])
    shared = Biased(M[0, 1], B[0, 1, 0])
    field = af.Attention(1.5, query=own, key=shared)
    q = [x @ M[0, 0, 0].T + b for b in B[0, 0]]
    k = [x @ m.T + B[0, 1, 0] for m in M[0, 1]]
    want = sum(softmax(1.5 * a @ b.T) @ x for a, b in zip(q, k, strict=True)) / HEADS
    np.testing.assert_allclose(drive(field, TOKENS), want, atol=1e-13)
    value = Biased(np.eye(D), af.Along("bias", SHIFT))
    many = af.Attention(1.5, value=value).velocity(TOKENS)
    for one, shift in zip(many, SHIFT, strict=True):
        want = af.Attention(1.5).drive(TOKENS) + shift  # weights sum to 1
        np.testing.assert_allclose(one, TOKENS.space.tangent(x, want), atol=1e-14)


def test_a_map_of_ones_own_need_not_be_square():
    left, right = RNG.standard_normal((5, 2)), RNG.standard_normal((2, D))
    back = RNG.standard_normal((D, 5))
    field = af.Attention(0.3, query=LowRank(left, right), key=left @ right, value=LowRank(left, right), output=back)
    q = TOKENS.positions @ (left @ right).T
    np.testing.assert_allclose(drive(field, TOKENS), softmax(0.3 * q @ q.T) @ q @ back.T, atol=1e-12)
    with pytest.raises(InvalidInput, match="`value` maps to dimension 5"):
        af.Attention(1.0, value=LowRank(left, right)).check(TOKENS)
    with pytest.raises(InvalidInput, match="`query` maps to dimension 5 and `key` to 3"):
        af.Attention(1.0, query=LowRank(left, right)).check(TOKENS)


def test_random_maps_of_one_seed_are_independent():
    """The role of a weight is given where the map is used: query, key, and their biases."""
    made = Biased(Random((D, D), seed=1), Random((D,), seed=1))
    field = af.Attention(1.0, query=made, key=made)
    drawn = [w.at(0.0, np.float32) for m in (field.features.query, field.features.key) for w in (m.matrix, m.bias)]
    plain = af.Attention(1.0, query=Random((D, D), seed=1)).features.query.weight.at(0.0, np.float32)
    np.testing.assert_array_equal(drawn[0], plain)
    assert not np.allclose(drawn[0], drawn[2])
    assert not np.allclose(drawn[1], drawn[3])


@pytest.mark.slow
@pytest.mark.parametrize("normaliser", [pytest.param(af.Softmax(), marks=pytest.mark.slow), af.Unnormalised()])
def test_sums_cut_at_a_tolerance_account_for_biases(normaliser):
    """Values V y + b are as large as |V| + |b|: the stated error grows with b, and holds."""
    tokens = af.uniform(af.Sphere(2), n=N, seed=1)
    errors = []
    for size in (0.0, 300.0):
        value = Biased(np.eye(2), np.array([0.0, size]))
        cut = af.Attention(6.0, value=value, normaliser=normaliser, sum=af.sums.Circle(1e-3, 10))
        exact = drive(af.Attention(6.0, value=value, normaliser=normaliser), tokens)
        stated = np.asarray(cut.error(tokens))
        assert (np.linalg.norm(drive(cut, tokens) - exact, axis=1) <= stated + 1e-12).all()
        errors.append(stated)
        assert not cut.is_plain
    np.testing.assert_allclose(errors[1], 301 * errors[0], rtol=1e-12)
    (summed,) = cut.children(tokens.space)
    assert summed.size() == 301  # by which `prepare` divides its tolerance


def test_sums_for_unit_vectors_are_refused_behind_biases():
    for role in ("query", "key"):
        field = af.Attention(2.0, sum=af.sums.Harmonics(1e-3, 16, D), **{role: Biased(np.eye(D), np.ones(D))})
        with pytest.raises(InvalidInput):
            field.check(TOKENS)


def test_fields_with_biases_have_no_energy():
    for parts in ({"query": Biased(np.eye(D), np.zeros(D))}, {"output": Biased(np.eye(D), np.zeros(D))}):
        field = af.Attention(2.0, **parts)
        assert not field.is_plain
        with pytest.raises(InvalidInput):
            af.observe.total_energy(field, TOKENS)


EYE, ONES = np.eye(D), np.ones(D)
FLAT = af.Tokens(TOKENS.positions, space=af.Euclidean(D))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: af.Attention(1.0, query=Biased(EYE, np.ones(2))), r"the bias of `query` has shape \(2,\).*give shape"),
        (lambda: af.Attention(1.0, key=Biased(np.ones((D, 2)), ONES)), "`key` has shape"),
        (lambda: af.Attention(1.0, value=Biased(M[0, 0], np.ones((3, ROWS)))), "for 3 heads"),
        (lambda: af.Attention(1.0, value=M[0, 0], output=Biased(OUT[0], np.ones((2, D)))), "added once"),
        (lambda: af.Attention(1.0, value=Biased(M[0, 0], ONES[:2])), "`value` maps to dimension 2"),
        (lambda: af.Attention(1.0, output=LowRank(EYE, EYE)), "`output` is"),
        (lambda: Biased(EYE, [np.nan] * 3), "`bias` of shape"),
        (lambda: Biased(Identity(), ONES), "`matrix` is"),
        (lambda: Perceptron(Biased(EYE, ONES), ONES), "`bias` is given"),
        (lambda: Perceptron(EYE, outer=Biased(EYE, np.ones(2))), r"the bias of `outer` has shape \(2,\)"),
        (lambda: Perceptron(Identity()), "`inner` is"),
        (lambda: af.fields.Affine(Biased(EYE, ONES)), "`matrix` is"),
        (lambda: af.Rescaled(af.Attention(1.0, query=Biased(EYE, ONES))), "a bias in `query`"),
        (lambda: af.Rescaled(af.Attention(1.0, value=Biased(EYE, ONES))), "a bias in `value`"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(InvalidInput, match=words) as refusal:
        call().check(TOKENS)
    assert str(refusal.value).endswith(".")
    assert "\n" not in str(refusal.value)
