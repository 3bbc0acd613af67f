"""Fields in plain NumPy: dense matrices, no tricks, nothing of attnflow. A case is a dictionary of words and numbers."""

import numpy as np
from scipy.linalg import expm


def rows(matrix, x):
    return x if matrix is None else x @ np.asarray(matrix).T


def unit(x):
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(size > 0, size, 1.0)


def features(case, matrix, x, place):
    """Q x or K x with the positional encoding."""
    if case["encoding"] == "sinusoidal":
        x = x + 0.7 * sinusoids(place, x.shape[1])
    x = rows(matrix, x)
    if case["encoding"] != "rotary":
        return x
    pairs = x.shape[1] // 2
    angle = place[:, None] * 1e4 ** (-np.arange(pairs) / pairs)
    even, odd = x[:, 0::2], x[:, 1::2]
    turned = np.stack([even * np.cos(angle) - odd * np.sin(angle), even * np.sin(angle) + odd * np.cos(angle)], axis=2)
    return turned.reshape(x.shape)


def sinusoids(place, d):
    pairs = d // 2
    angle = place[:, None] * 1e4 ** (-np.arange(pairs) / pairs)
    waves = np.stack([np.sin(angle), np.cos(angle)], axis=2).reshape(len(place), -1)
    return np.pad(waves, ((0, 0), (0, d % 2))) / np.sqrt(pairs)


def bias(mask, query, key):
    """log of how well a query sees a key."""
    kind, *numbers = mask
    back = query[:, None] - key[None, :]
    if kind == "everyone":
        return np.zeros(back.shape)
    if kind == "table":
        return np.asarray(numbers[0])[query][:, key]
    if kind == "causal":
        slope, strict = numbers
        seen = back > 0 if strict else back >= 0
    else:
        width, slope, causal = numbers
        seen = (np.abs(back) < width) & ((back >= 0) | (not causal))
    return np.where(seen, -slope * np.abs(back), -np.inf)


def kernel(case, beta, q, k):
    """log K of all pairs, K itself where it changes sign."""
    if case["kernel"] == "polynomial":
        return ((beta + q @ k.T) / (beta + 1)) ** 3
    if case["kernel"] == "cosine":
        return unit(q) @ unit(k).T
    square = ((q[:, None, :] - k[None, :, :]) ** 2).sum(2)
    if case["kernel"] == "gaussian":
        return -0.5 * beta * square
    return -np.sqrt(1 + beta**2 * square) if case["kernel"] == "pair" else beta * (q @ k.T - 1)


def head(case, beta, query, key, value, x, y, m, query_place, key_place):
    """What one head says at the points x, in the measure of the points y with masses m."""
    q, k = features(case, query, x, query_place), features(case, key, y, key_place)
    shift = bias(case["mask"], query_place, key_place)
    values = rows(value, y)
    if case["kernel"] in ("polynomial", "cosine"):
        mass = (np.exp(shift) * m[None, :]).sum(1) if case["mask"][0] != "everyone" else np.ones(len(x))
        weights = kernel(case, beta, q, k) * np.exp(shift) * m[None, :]
        return weights @ values / np.where(mass > 0, mass, 1.0)[:, None]
    log_weight = kernel(case, beta, q, k) + shift
    kind = case["normaliser"]
    with np.errstate(divide="ignore"):
        log_mass = np.log(m)[None, :]
    if kind == "hardmax":
        seen = np.where(log_mass > -np.inf, log_weight, -np.inf)
        top = seen.max(axis=1, keepdims=True)
        share = np.where((seen >= top - 1e-12) & np.isfinite(seen), m[None, :], 0.0)
        return share @ values / np.where(share.sum(1) > 0, share.sum(1), 1.0)[:, None]
    if kind in ("usa0", "usa", "grad"):
        mass = (np.exp(shift) * m[None, :]).sum(1) if case["mask"][0] != "everyone" else np.ones(len(x))
        speed = {"usa0": 1.0, "usa": np.exp(beta), "grad": beta * np.exp(beta)}[kind]
        return speed * (np.exp(log_weight) * m[None, :]) @ values / np.where(mass > 0, mass, 1.0)[:, None]
    if kind == "sinkhorn":
        own = features(case, query, y, key_place)
        log_weight = log_weight + columns(kernel(case, beta, own, k), m)[None, :]
    logits = log_weight + log_mass
    top = logits.max(axis=1, keepdims=True)
    weights = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(axis=1, keepdims=True)
    return weights @ values / np.where(total > 0, total, 1.0)


def columns(log_weight, m):
    """The log factors of the columns that make attention between the tokens doubly stochastic."""
    g = np.zeros(len(m))
    weights = np.exp(log_weight)
    for _ in range(20_000):
        f = 1 / (weights @ (m * np.exp(g)))
        new = -np.log(weights.T @ (m * f))
        new -= (m * new).sum() / m.sum()
        if np.abs(new - g).max() < 1e-13:
            break
        g = new
    return g


def attention(case, beta, t, x, y, m, query_place, key_place):
    """Softmax attention and its relatives, with one head or several."""
    q, k, v, o = (case["matrices"].get(name) for name in "qkvo")
    if case["heads"] is None:
        return head(case, beta, q, k, v, x, y, m, query_place, key_place)
    total = 0.0
    for h in range(case["heads"]):
        pick = [a if a is None or np.ndim(a) == 2 else a[h] for a in (q, k, v, o)]
        total = total + rows(pick[3], head(case, beta, *pick[:3], x, y, m, query_place, key_place))
    return total / case["heads"] ** case["average"]


def perceptron(case, x):
    inner, offset, outer = case["perceptron"]
    return np.tanh(x @ inner.T + offset) @ outer.T


def drive(case, beta, t, x, y, m, query_place, key_place):
    """The whole field: attention inside its wrapper."""

    def inner(x, y):
        return attention(case, beta, t, x, y, m, query_place, key_place)

    kind = case["wrapper"]
    if kind == "none":
        return inner(x, y)
    if kind == "total":
        return inner(x, y) + perceptron(case, x)
    if kind == "multiple":
        return -1.5 * inner(x, y)
    if kind == "composed":
        return perceptron(case, inner(x, y))
    if kind == "ngpt":
        return 0.7 * (unit(inner(x, y)) - x)
    if kind == "rescaled":  # x = e^(tV) z
        v = case["matrices"].get("v", np.eye(x.shape[1]))
        return inner(x @ expm(t * v).T, y @ expm(t * v).T) @ expm(-t * v).T - x @ v.T
    normed = inner(norm(case, x), norm(case, y))
    if kind == "pre":
        return normed
    if kind == "peri":
        return unit(normed)
    if kind == "scaled":
        return normed / np.sqrt(1 + t)
    assert kind == "mix"
    if t >= 0.25:
        return normed
    theta, size = unit(x), np.linalg.norm(x, axis=1, keepdims=True)
    return size * (normed - (theta * normed).sum(1, keepdims=True) * theta)


def norm(case, x):
    d = x.shape[1]
    if case["norm"] == "unit":
        return unit(x)
    if case["norm"] == "rms":
        return np.sqrt(d) * unit(x) * np.linspace(0.8, 1.3, d)
    return np.sqrt(d) * unit(x - x.mean(1, keepdims=True))


def tangent(case, x, v):
    """The part of v along the space at x."""
    kind, gain = case["space"], case["gain"]
    if kind == "euclidean":
        return v
    v, theta = v / gain, spherical(kind, x / gain)
    if kind == "centred":
        v = v - v.mean(1, keepdims=True)
    return gain * without(kind, theta, v)


def retract(case, x):
    kind, gain = case["space"], case["gain"]
    if kind == "euclidean":
        return x
    x = x / gain
    if kind == "centred":
        x = x - x.mean(1, keepdims=True)
    return gain * spherical(kind, x)


def spheres(kind, x):
    """The coordinates of each of the round spheres of which a space is made."""
    ends = {"torus": [2, 4], "product": [3, 5]}.get(kind, [x.shape[1]])
    return np.split(x, ends[:-1], axis=1)


def spherical(kind, x):
    return np.concatenate([unit(part) for part in spheres(kind, x)], axis=1)


def without(kind, theta, v):
    """v - <theta, v> theta on every sphere."""
    pairs = zip(spheres(kind, theta), spheres(kind, v), strict=True)
    return np.concatenate([b - (a * b).sum(1, keepdims=True) * a for a, b in pairs], axis=1)
