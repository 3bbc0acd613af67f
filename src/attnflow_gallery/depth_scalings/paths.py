"""The diffusion that random layers tend to, in plain NumPy: steps along great circles, and its mean overlap.

dx_i = P_{x_i} dXi_i - (1/2) ((d-1)/d) s_ii x_i dtau, E dXi_i dXi_j^T = (1/d) s_ij I dtau, s_ij = E <m_i, m_j>. In place
of s a step of time h has the products <m_i, m_j> of one head: their mean is s, and steps are independent.
"""

from typing import Any

import numpy as np


def softmax_means(b: float, d_k: int, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Softmax means m_i (draw, n, k) of one head each, for tokens x (draw, n, k)."""
    queries, keys = rng.standard_normal((2, len(x), d_k, x.shape[2]))
    logits = b / np.sqrt(d_k) * (x @ np.swapaxes(queries, 1, 2)) @ np.swapaxes(x @ np.swapaxes(keys, 1, 2), 1, 2)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ x)


def over_pairs(products: np.ndarray) -> np.ndarray:
    """The mean over pairs i < j of (path, n, n)."""
    n = products.shape[1]
    return np.asarray(products[:, *np.triu_indices(n, 1)].mean(axis=1))


def estimates(parameters: Any, steps: int, rng: np.random.Generator) -> np.ndarray:
    """(path,) independent estimates of the mean overlap at tau = 1, from orthonormal tokens.

    The mean overlap is the mean of its drift along the path, since noise has mean 0. From it a multiple of the noise is
    taken off, fitted over the paths, which changes the mean by O(1/paths) and makes it more certain.
    """
    n, d, count, h = parameters.n, parameters.d, parameters.paths, 1 / steps
    x = np.tile(np.eye(n, d), (count, 1, 1))
    drift, noise = np.zeros((2, count))
    for _ in range(steps):
        m = softmax_means(parameters.b, d, x, rng)
        moved = np.sqrt(h / d) * m @ rng.standard_normal((count, d, d))
        gram, heard = x @ np.swapaxes(x, 1, 2), m @ np.swapaxes(m, 1, 2)
        own = np.einsum("pii->pi", heard)
        both = own[:, :, None] + own[:, None, :]
        drift += h / d * over_pairs((d - 2 + gram**2) * heard - (d - 1) / 2 * gram * both)
        across = moved - np.einsum("pik,pik->pi", moved, x)[:, :, None] * x
        pushed = x @ np.swapaxes(across, 1, 2)
        noise += over_pairs(pushed + np.swapaxes(pushed, 1, 2))
        angle = np.linalg.norm(across, axis=2, keepdims=True)
        x = np.cos(angle) * x + np.sinc(angle / np.pi) * across
        x /= np.linalg.norm(x, axis=2, keepdims=True)
    return np.asarray(drift - (drift @ noise) / (noise @ noise) * noise)
