"""The suite runs with JAX as users have it (32-bit by default), and with its strictest promotion rules."""

import jax
import numpy as np
import pytest

import attnflow as af

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def four():
    """The four tokens of the field oracle."""
    return af.from_array(np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1], [-0.6, 0, 0.8]]))


def rotation(d, seed=0):
    """A Haar orthogonal matrix."""
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    return q * np.sign(np.diag(r))
