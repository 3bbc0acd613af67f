"""Iid tokens of high-dimensional spheres, turned into the space that they span."""

from typing import Any

import numpy as np

from attnflow.experiments.randomness import Salted
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, uniform


def in_span(parameters: Salted, n: int, dims: tuple[int, ...], draws: int) -> Tokens:
    """Iid tokens on S^(d-1), n for every d and draw, turned into R^n: a batch along `d` and `seed`.

    n tokens move within their span, whatever d is, and attention with Q = K = V = I sees only their overlaps. So one
    compiled program of n tokens in R^n serves all d.
    """
    positions = np.zeros((len(dims), draws, n, n))
    for k, d in enumerate(dims):
        seeds = parameters.seeds(range(k * draws, (k + 1) * draws))
        drawn = np.asarray(uniform(Sphere(d), n=n, seed=seeds).positions)
        corner = np.linalg.qr(np.swapaxes(drawn, 1, 2), mode="r")
        positions[k, :, :, : min(n, d)] = np.swapaxes(corner, 1, 2)
    return Tokens(positions, space=Sphere(n), dims=("d", "seed"), coordinates=(dims, range(draws)))


def pair_overlaps(positions: Any) -> np.ndarray:
    """<x_i, x_j> of all pairs i < j, on the last axis."""
    first, second = np.triu_indices(positions.shape[-2], 1)
    return np.asarray(np.sum(positions[..., first, :] * positions[..., second, :], axis=-1))


def with_overlaps(tokens: Tokens, change: Any) -> Tokens:
    """Tokens whose overlaps are `change` of those of `tokens`, or the nearest that tokens can have; for mutations."""
    gram = np.asarray(tokens.positions) @ np.swapaxes(tokens.positions, -1, -2)
    values, vectors = np.linalg.eigh(np.where(np.eye(tokens.n, dtype=bool), 1.0, change(gram)))
    rows = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return Tokens(rows, dims=tokens.dims, coordinates=tokens.coordinates)
