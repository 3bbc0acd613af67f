"""Several heads, matrices of key dimension, and encodings of places in the logits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from tests.kit import drive
from tests.marks import graded

EPS = np.finfo(float).eps
N, D, H, DK = 20, 4, 3, 2


def tokens():
    return af.Tokens(af.uniform(af.Sphere(D), n=N, seed=1).positions, np.random.default_rng(0).random(N) + 0.1)


def matrices(seed=0, rows=DK):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((H, rows, D)), rng.standard_normal((H, rows, D)), rng.standard_normal((H, D, D))


def head(x, m, q, k, v, beta):
    """One softmax head, over all pairs."""
    logits = beta * (x @ q.T) @ (x @ k.T).T
    w = m[None, :] * np.exp(logits - logits.max(axis=1, keepdims=True))
    return (w / w.sum(axis=1, keepdims=True)) @ x @ v.T


@pytest.mark.parametrize(("average", "factor"), [("mean", 1 / H), ("root", H**-0.5), ("sum", 1.0)])
def test_heads_are_averaged(average, factor):
    mu = tokens()
    q, k, v = matrices()
    got = drive(af.Attention(1.5, query=q, key=k, value=v, average=average), mu)
    want = factor * sum(head(mu.positions, mu.masses, q[h], k[h], v[h], 1.5) for h in range(H))
    # logits of size 1.5 |Qx||Kx| ~ 20, values of size ~ 5, three heads
    np.testing.assert_allclose(got, want, atol=EPS * (2 * 20 + N) * 5 * H)


def test_an_output_matrix_joins_heads_of_low_rank():
    """V_h of shape (d_v, d), O_h of shape (d, d_v): the standard block."""
    mu = tokens()
    rng = np.random.default_rng(3)
    q, k, _ = matrices()
    v, o = rng.standard_normal((H, DK, D)), rng.standard_normal((H, D, DK))
    got = drive(af.Attention(1.0, query=q, key=k, value=v, output=o, average="sum"), mu)
    want = sum(head(mu.positions, mu.masses, q[h], k[h], v[h], 1.0) @ o[h].T for h in range(H))
    np.testing.assert_allclose(got, want, atol=EPS * (2 * 20 + N) * 20 * H)


def test_one_head_and_shared_matrices_are_attention():
    mu = tokens()
    q, k, v = matrices()
    single = af.Attention(2.0, query=q[0], key=k[0], value=v[0])
    np.testing.assert_allclose(
        drive(af.Attention(2.0, query=q[:1], key=k[:1], value=v[:1]), mu), drive(single, mu), atol=1e-14
    )
    shared = af.Attention(2.0, query=q[0], key=k[0], value=np.repeat(v[:1], 3, axis=0))
    np.testing.assert_allclose(drive(shared, mu), drive(single, mu), atol=1e-14)
    plain = af.Attention(2.0)
    np.testing.assert_allclose(drive(plain, mu), drive(af.Attention(2.0), mu), atol=1e-15)


@graded("normaliser", [af.Softmax(), af.Unnormalised(), af.Hardmax(), af.Sinkhorn()], ids=str, fast=1)
def test_every_normaliser_and_small_tiles(normaliser):
    """Heads side by side give what heads one by one give, and tiles do not matter."""
    mu = tokens()
    q, k, v = (0.5 * a for a in matrices())
    field = af.Attention(1.0, query=q, key=k, value=v, normaliser=normaliser, average="sum")
    each = [af.Attention(1.0, query=q[h], key=k[h], value=v[h], normaliser=normaliser) for h in range(H)]
    want = sum(drive(one, mu) for one in each)
    tolerance = 1e-8 if isinstance(normaliser, af.Sinkhorn) else 1e-13  # Sinkhorn stops at 1e-10 in log weights
    np.testing.assert_allclose(drive(field, mu), want, atol=tolerance)
    cut = af.Attention(
        1.0, query=q, key=k, value=v, normaliser=normaliser, average="sum", sum=af.sums.Tiled(queries=8, keys=6)
    )
    np.testing.assert_allclose(drive(cut, mu), want, atol=tolerance)


@pytest.mark.slow
def test_heads_can_be_random_per_layer_and_batched():
    seeds = [0, 1, 2]
    field = af.Attention(
        1.0,
        query=af.weights.Random((H, DK, D), seed=af.Along("seed", seeds), step=0.1),
        key=af.weights.Random((H, DK, D), seed=af.Along("seed", seeds), step=0.1),
        value=af.weights.Random((H, D, D), seed=af.Along("seed", seeds), step=0.1),
        average="root",
    )
    mu = tokens()
    batch = af.advance(field, mu, 0.0, 0.4, af.Layers(0.1)).positions
    assert batch.shape == (3, N, D)
    one = af.Attention(
        1.0,
        query=af.weights.Random((H, DK, D), seed=1, step=0.1),
        key=af.weights.Random((H, DK, D), seed=1, step=0.1),
        value=af.weights.Random((H, D, D), seed=1, step=0.1),
        average="root",
    )
    alone = af.advance(one, mu, 0.0, 0.4, af.Layers(0.1)).positions
    np.testing.assert_allclose(batch[1], alone, atol=1e-13)
    assert np.abs(batch[1] - batch[2]).max() > 1e-2


def test_rotary_reads_only_differences_of_places():
    mu = tokens()
    field = af.Attention(3.0, encoding=af.encodings.Rotary())
    shifted = af.Tokens(mu.positions, mu.masses, place=mu.place + 1000)
    np.testing.assert_allclose(drive(field, shifted), drive(field, mu), atol=1e-12)  # angles of 1e3, error 1e3 eps
    assert np.abs(drive(field, mu) - drive(af.Attention(3.0), mu)).max() > 1e-2


def test_rotary_against_complex_numbers():
    """Pairs of features as complex numbers, turned by e^(i place rate)."""
    mu = tokens()
    z = mu.positions[:, 0::2] + 1j * mu.positions[:, 1::2]
    z = z * np.exp(1j * mu.place[:, None] * 1e4 ** (-np.arange(D // 2) / (D // 2)))
    logits = 3.0 * (z @ z.conj().T).real
    w = mu.masses * np.exp(logits - logits.max(axis=1, keepdims=True))
    want = (w / w.sum(axis=1, keepdims=True)) @ mu.positions
    np.testing.assert_allclose(drive(af.Attention(3.0, encoding=af.encodings.Rotary()), mu), want, atol=1e-13)


@pytest.mark.parametrize("turned", [None, 0, 2, 4, 6])
def test_halves_and_parts_of_the_features(turned):
    """x cos + rotate_half(x) sin on the first features, as networks write it; neighbours are halves in another order."""
    rng, base, rows, place = np.random.default_rng(0), 50.0, 6, np.array([0, 3, 4, 11])
    x = rng.standard_normal((2, 4, rows))  # heads, tokens, features
    r = rows if turned is None else turned
    half = r // 2
    angle = np.tile(place[:, None] * base ** (-np.arange(half) * 2 / max(r, 1)), 2)
    front = x[..., :r]
    turned_half = np.concatenate([-front[..., half:], front[..., :half]], axis=-1)
    want = np.concatenate([front * np.cos(angle) + turned_half * np.sin(angle), x[..., r:]], axis=-1)
    halves = af.encodings.Rotary(base, "halves", turned)
    neighbours = af.encodings.Rotary(base, turned=turned)

    @af.in_float64
    @jax.jit
    def after(x, other):
        return halves.after(x, place), neighbours.after(other, place), af.encodings.Rotary(base).after(other, place)

    order = np.concatenate([np.arange(r).reshape(2, half).T.ravel(), np.arange(r, rows)]).astype(int)
    found, other, whole = after(x, x[..., order])
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-14)
    np.testing.assert_allclose(other, want[..., order], rtol=0, atol=1e-14)
    if r == rows:
        np.testing.assert_array_equal(other, whole)
    if r == 0:
        np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: af.encodings.Rotary(pairing="interleaved"), "`pairing` is 'interleaved'; use one of"),
        (lambda: af.encodings.Rotary(pairing=np.ones(2)), "`pairing` is"),
        (lambda: af.encodings.Rotary(turned=3), "`turned` is 3, but features turn in pairs"),
        (lambda: af.encodings.Rotary(turned=-2), "`turned` is -2"),
        (lambda: af.encodings.Rotary(turned=1.5), "`turned` is 1.5"),
        (lambda: af.encodings.Rotary(turned=D + 2), "`turned` is 6, but there are 4 features"),
    ],
)
def test_other_pairings_are_refused(make, words):
    with pytest.raises(InvalidInput, match=words):
        af.Attention(1.0, encoding=make()).check(tokens())


def test_additive_encoding_is_attention_on_shifted_logits():
    mu = tokens()
    shifted = mu.positions + 0.7 * af.encodings.sinusoids(mu.place, D)
    logits = 3.0 * shifted @ shifted.T
    w = mu.masses * np.exp(logits - logits.max(axis=1, keepdims=True))
    want = (w / w.sum(axis=1, keepdims=True)) @ mu.positions
    np.testing.assert_allclose(drive(af.Attention(3.0, encoding=af.encodings.Sinusoidal(0.7)), mu), want, atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(af.encodings.sinusoids(np.arange(50), 6), axis=1), 1.0, atol=4 * EPS)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (lambda: af.Attention(1.0, query=np.ones((2, 3, D)), key=np.ones((3, 3, D))), "2 and 3 heads"),
        (lambda: af.Attention(1.0, query=np.ones((2, 3, D)), key=np.ones((2, 5, D))), "same number of rows"),
        (lambda: af.Attention(1.0, value=np.ones((2, 3, D))), "`value` maps to dimension 3"),
        (lambda: af.Attention(1.0, value=np.ones((2, 3, D)), output=np.ones((2, 3, D))), r"give \(2, 4, 3\)"),
        (lambda: af.Attention(1.0, query=np.ones((2, 3, D))), "same number of rows"),
        (lambda: af.Attention(1.0, query=np.ones((2, 3, D + 1))), "`query` has shape"),
        (lambda: af.Attention(1.0, output=np.ones((3, D))), r"give \(4, 4\)"),
        (lambda: af.Attention(1.0, query=np.ones((3, D)), key=np.ones((3, D)), encoding=af.encodings.Rotary()), "even"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(field, words):
    with pytest.raises(InvalidInput, match=words):
        field().check(tokens())


def test_unknown_average_is_refused():
    with pytest.raises(InvalidInput, match="'median'"):
        af.Attention(1.0, average="median")


def test_a_function_of_time_is_a_matrix():
    mu = tokens()
    field = af.Attention(1.0, value=lambda t: jnp.eye(D) * jnp.cos(t))
    np.testing.assert_allclose(drive(field, mu, t=0.3), np.cos(0.3) * drive(af.Attention(1.0), mu, t=0.3), atol=1e-15)


def test_without_matrices_there_is_one_head():
    mu = tokens()
    one = drive(af.Attention(2.0), mu)
    for average in ("sum", "root", "mean"):
        field = af.Attention(2.0, average=average)
        assert field.heads is None
        np.testing.assert_allclose(drive(field, mu), one, atol=1e-15)
