"""Layers of trained networks, written as fields, against plain NumPy: GPT-2, Llama and GPT-NeoX with random weights."""

import numpy as np
from scipy.special import expit, ndtr

import attnflow as af
from attnflow.fields import Biased, GatedPerceptron, LayerNorm, PerLayer, Pre, RmsNorm
from tests.kit import drive, frames

N, D, HEADS, ROWS, WIDTH, LAYERS = 6, 8, 2, 4, 12, 2
RNG = np.random.default_rng(3)
TOKENS = af.Tokens(2 * RNG.standard_normal((N, D)), space=af.Euclidean(D))
METHOD = {
    "method": af.Alternate(1.0, update=af.layer_updates.Renormalise(), sublayers=2),
    "save": af.saving.EveryLayer(),
}


def weights(*shape):
    return RNG.standard_normal((LAYERS, *shape)) / np.sqrt(shape[-1])


def stacked(*arrays):
    return [PerLayer(array, 1.0) for array in arrays]


def layer_norm(x, gain, bias):
    return gain * (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) + bias


def rms_norm(x, gain):
    return gain * x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6)


def gelu_tanh(z):
    return z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))) / 2


def turned(x, turned, base=1e4):
    """x cos + rotate_half(x) sin on the first features, for all places."""
    rate = base ** (-np.arange(0, turned, 2) / turned)
    angle = np.tile(np.arange(len(x))[:, None] * rate, 2)
    front = x[:, :turned]
    half = np.concatenate([-front[:, turned // 2 :], front[:, : turned // 2]], axis=1)
    return np.concatenate([front * np.cos(angle) + half * np.sin(angle), x[:, turned:]], axis=1)


def causal(q, k, v):
    logits = q @ k.T / np.sqrt(q.shape[1])
    logits[np.triu_indices(len(q), 1)] = -np.inf
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True) @ v


def attention(query, key, value, output, encoding=None):
    parts = {"query": query, "key": key, "value": value, "output": output}
    return af.Attention(ROWS**-0.5, mask=af.Causal(), average="sum", encoding=encoding, **parts)


def test_gpt2():
    """Pre-norm with epsilon, biases everywhere, heads, causal mask, the approximate GELU; frames after both halves."""
    q, k, v, o = (*weights(3, HEADS, ROWS, D).transpose(1, 0, 2, 3, 4), weights(HEADS, D, ROWS))
    bq, bk, bv, bo = (*weights(3, HEADS, ROWS).transpose(1, 0, 2, 3), weights(D))
    a, ba, c, bc = weights(WIDTH, D), weights(WIDTH), weights(D, WIDTH), weights(D)
    g1, b1, g2, b2 = weights(4, D).transpose(1, 0, 2)
    maps = [Biased(*stacked(m, b)) for m, b in ((q, bq), (k, bk), (v, bv), (o, bo), (a, ba), (c, bc))]
    first = Pre(attention(*maps[:4]), LayerNorm(*stacked(g1, b1), eps=1e-5))
    second = Pre(af.Perceptron(maps[4], outer=maps[5], activation="gelu-tanh"), LayerNorm(*stacked(g2, b2), eps=1e-5))
    x = TOKENS.positions
    want = [x]
    for i in range(LAYERS):
        y = layer_norm(x, g1[i], b1[i])
        heads = [causal(*(y @ m[i, h].T + b[i, h] for m, b in ((q, bq), (k, bk), (v, bv)))) for h in range(HEADS)]
        joined = np.concatenate(heads, axis=1) @ np.concatenate(list(o[i]), axis=1).T + bo[i]
        want += [x + joined]
        y = layer_norm(want[-1], g2[i], b2[i])
        want += [want[-1] + gelu_tanh(y @ a[i].T + ba[i]) @ c[i].T + bc[i]]
        x = want[-1]
    found = frames(first + second, TOKENS, float(LAYERS), **METHOD)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)


def test_llama():
    """RMS norm with epsilon, rotary encoding in halves with a base of its own, grouped keys and values, SwiGLU."""
    q, o = weights(HEADS, ROWS, D), weights(HEADS, D, ROWS)
    k, v = weights(ROWS, D), weights(ROWS, D)  # one group: shared by all heads
    gate, up, down = weights(WIDTH, D), weights(WIDTH, D), weights(D, WIDTH)
    g1, g2 = weights(2, D).transpose(1, 0, 2)
    first = Pre(attention(*stacked(q, k, v, o), af.encodings.Rotary(5e5, "halves")), RmsNorm(*stacked(g1), eps=1e-6))
    second = Pre(GatedPerceptron(*stacked(gate, up, down)), RmsNorm(*stacked(g2), eps=1e-6))
    x = TOKENS.positions
    want = [x]
    for i in range(LAYERS):
        y = rms_norm(x, g1[i])
        key, value = turned(y @ k[i].T, ROWS, 5e5), y @ v[i].T
        joined = [causal(turned(y @ q[i, h].T, ROWS, 5e5), key, value) @ o[i, h].T for h in range(HEADS)]
        want += [x + sum(joined)]
        y = rms_norm(want[-1], g2[i])
        z = y @ gate[i].T
        want += [want[-1] + (z * expit(z) * (y @ up[i].T)) @ down[i].T]
        x = want[-1]
    found = frames(first + second, TOKENS, float(LAYERS), **METHOD)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)


def test_gpt_neox():
    """Both halves at once, from the same x; a quarter of the features turns."""
    q, k, v, bq, bk, bv = (*weights(3, HEADS, 8, D)[0], *weights(3, HEADS, 8)[0])
    o, bo, a, ba, c, bc = (w[0] for w in (weights(HEADS, D, 8), weights(D), weights(WIDTH, D), weights(WIDTH),
                                          weights(D, WIDTH), weights(D)))  # fmt: skip
    g1, b1, g2, b2 = weights(4, D)[0]
    rotary = af.encodings.Rotary(pairing="halves", turned=2)
    heads = af.Attention(
        8**-0.5, query=Biased(q, bq), key=Biased(k, bk), value=Biased(v, bv), output=Biased(o, bo), average="sum",
        mask=af.Causal(), encoding=rotary,
    )  # fmt: skip
    block = af.Perceptron(Biased(a, ba), outer=Biased(c, bc), activation="gelu")
    field = Pre(heads, LayerNorm(g1, b1, 1e-5)) + Pre(block, LayerNorm(g2, b2, 1e-5))
    x = TOKENS.positions
    y, z = layer_norm(x, g1, b1), layer_norm(x, g2, b2)
    parts = [
        causal(turned(y @ q[h].T + bq[h], 2), turned(y @ k[h].T + bk[h], 2), y @ v[h].T + bv[h]) @ o[h].T
        for h in range(HEADS)
    ]
    hidden = z @ a.T + ba
    want = sum(parts) + bo + (hidden * ndtr(hidden)) @ c.T + bc
    np.testing.assert_allclose(drive(field, TOKENS), want, rtol=0, atol=1e-12)
