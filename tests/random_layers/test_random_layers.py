"""Random attention: the network as a field, against plain NumPy with the same matrices."""

import equinox as eqx
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.random_layers import random_attention
from attnflow.runs import parse_spec
from tests.marks import graded

N, D = 4, 5
TOKENS = af.uniform(af.Sphere(D), n=N, seed=1)


def matrices(field, layer, step):
    """Q, K, V of one layer, head first."""
    maps = (field.features.query, field.features.key, field.value)
    found = (af.in_float64(m.weight.at)(layer * step * (1 + 1e-15), np.float64) for m in maps)
    return [m if m.ndim == 3 else m[None] for m in found]


def plain_layer(x, beta, step, q, k, v):
    """x <- N(x + (step/H) sum_h V_h m_h)."""
    total = np.zeros_like(x)
    for one in range(len(q)):
        logits = beta * (x @ q[one].T) @ (x @ k[one].T).T
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        total += weights / weights.sum(axis=1, keepdims=True) @ x @ v[one].T
    x = x + step / len(q) * total
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def solved(field, until, step, tokens=TOKENS, **given):
    given = {"save": af.saving.EveryLayer(), "keep": ["positions"], **given}
    return af.solve(field, tokens, until, method=af.Layers(step), **given).positions.values


@graded(("heads", "d_k", "mean"), [(1, 3, 0.0), (3, None, 0.7)])
def test_layers_are_those_of_numpy(heads, d_k, mean):
    """To rounding: 6 layers of products of length 5 multiply errors by less than 100."""
    b, step, layers = 1.5, 0.3, 6
    field = random_attention(TOKENS, b, heads, d_k, step=step, seed=7, mean_value=mean)
    assert field.heads == (None if heads == 1 else heads)
    x = solved(field, layers * step, step)
    want, seen = np.asarray(TOKENS.positions), []
    for layer in range(layers):
        q, k, v = matrices(field, layer, step)
        assert q.shape == k.shape == (heads, d_k or D, D)
        seen += [q, k, v - mean * np.eye(D)]
        want = plain_layer(want, b, step, q, k, v)
        np.testing.assert_allclose(x[layer + 1], want, atol=1e-13)
    flat = np.concatenate([a.reshape(-1) for a in seen])
    assert len(np.unique(flat)) == flat.size, "every matrix of every layer and head has numbers of its own"


def test_the_matrices_have_the_scales_of_the_model():
    """sigma_Q sigma_K sqrt(d_k) = 1, so that beta is b, and V has entries N(v, 1/d): 4.5 standard errors of 32 x 15."""
    field = random_attention(D, 2.0, 32, 3, seed=2, mean_value=0.25)
    q, k, v = matrices(field, 3, 0.1)
    v = v - 0.25 * np.eye(D)
    for sample, variance in ((q, 3**-0.5), (k, 3**-0.5), (v, 1 / D)):
        assert abs(sample.mean()) < 4.5 * np.sqrt(variance / sample.size)
        assert abs(sample.var() / variance - 1) < 4.5 * np.sqrt(2 / sample.size)
    assert float(field.beta) == 2.0
    # the logits of unit tokens: Cov(l_ij, l_i'j') = b^2 R_ii' R_jj', here for one (i, j), over 32 heads
    x = np.asarray(TOKENS.positions)
    logits = 2.0 * np.einsum("hka,a,hkb,b->h", q, x[0], k, x[1])
    assert 0.25 < logits.var() / 4.0 < 2.2  # 32 heads of a heavy-tailed product


@pytest.mark.long
def test_a_batch_of_networks_a_longer_run_and_a_specification():
    step, b = 0.2, 1.0
    both = solved(random_attention(D, b, 2, 3, step=step, seed=af.Along("seed", [4, 9])), 8 * step, step)
    assert both.shape == (2, 9, N, D)
    field = random_attention(D, b, 2, 3, step=step, seed=9)
    alone = solved(field, 8 * step, step)
    np.testing.assert_allclose(both[1], alone, atol=1e-13)
    assert np.abs(both[0, -1] - alone[-1]).max() > 0.1
    half = af.solve(field, TOKENS, 4 * step, method=af.Layers(step), save=af.saving.EveryLayer())
    longer = half.continued(8 * step, save=4)
    assert np.array_equal(longer.positions.values, alone), "resumed, bit by bit"
    weight = '{{ name = "random", shape = [2, {}, 5], seed = 9, step = 0.2, scale = {!r} }}'
    spec = parse_spec(f"""
    [tokens]
    name = "uniform"
    n = 4
    seed = 1
    space = {{ name = "sphere", dim = 5 }}
    [field]
    name = "attention"
    beta = 1.0
    query = {weight.format(3, 3**-0.25)}
    key = {weight.format(3, 3**-0.25)}
    value = {weight.format(5, 5**-0.5)}
    [solve]
    until = 1.6
    method = {{ name = "layers", step = 0.2 }}
    save = {{ name = "every-layer" }}
    """)
    made = spec.work
    assert eqx.tree_equal(made.field, field)
    assert eqx.tree_equal(made.tokens, TOKENS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random_attention(1, 1.0), "`dim` is 1"),
        (lambda: random_attention(D, -1.0), "`logit_scale` is -1"),
        (lambda: random_attention(D, 1.0, 0), "`heads` is 0"),
        (lambda: random_attention(D, 1.0, 1, 0), "`d_k` is 0"),
        (lambda: random_attention(D, 1.0, step=0.0), "`step` is 0"),
        (lambda: random_attention(D, 1.0, seed=0.5), "`seed` is 0.5"),
        (lambda: random_attention(D, 1.0, mean_value=np.eye(3)), r"`mean_value` .*\(5, 5\)"),
        (lambda: solved(random_attention(D + 1, 1.0), 0.2, 0.1), "live in dimension 5"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        call()
    assert 20 <= len(str(caught.value)) <= 400
    assert str(caught.value).endswith(".")
