"""How spread out a measure is and how fast it moves: order parameter, effective rank, radius, speed."""

from typing import Any

import numpy as np

from attnflow.fields import AbstractField
from attnflow.tokens import Tokens


def order_parameter(tokens: Tokens) -> Any:
    """|sum_i m_i x_i|: 1 at consensus, near 0 for spread-out tokens (Kuramoto's r on the circle)."""
    return np.linalg.norm(np.einsum("...n,...nd->...d", tokens.masses, tokens.positions), axis=-1)


def effective_rank(tokens: Tokens) -> Any:
    """Exp of the entropy of the normalised eigenvalues of sum_i m_i x_i x_i^T: from 1 (a line) to d (isotropic)."""
    moment = np.einsum("...n,...nd,...ne->...de", tokens.masses, tokens.positions, tokens.positions)
    values = np.clip(np.linalg.eigvalsh(moment), 0.0, None)
    shares = values / values.sum(axis=-1, keepdims=True)
    return np.exp(-np.sum(np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1.0)), 0.0), axis=-1))


def spread(tokens: Tokens) -> Any:
    """max_i |x_i - mean| over tokens of positive mass: the diameter is between it and twice it."""
    mean = np.einsum("...n,...nd->...d", tokens.masses, tokens.positions)
    away = np.linalg.norm(np.asarray(tokens.positions) - mean[..., None, :], axis=-1)
    return np.max(np.where(np.asarray(tokens.masses) > 0, away, 0.0), axis=-1)


def speed(field: AbstractField, tokens: Tokens, t: float = 0.0) -> Any:
    """The speed |X_t[mu](x_i)| of every token; batch dimensions first."""
    return np.linalg.norm(field.velocity(t, tokens.positions, tokens, tokens.place), axis=-1)
