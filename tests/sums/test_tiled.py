import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnflow.sums import Tiled
from attnflow.sums.tiled import TILE


def dense(x, y, masses, charges, beta):
    return (masses * np.exp(beta * (x @ y.T - 1))) @ charges


@pytest.mark.parametrize("sizes", [(None, None), (4, 6), (100, 3), (3, 100)])
@pytest.mark.parametrize("beta", [0.0, 5.0, 400.0])
def test_any_charges_any_tiles(sizes, beta):
    """The linear map S(x; y, charges), zero masses and incomplete tiles included."""
    rng = np.random.default_rng(0)
    x, y = (
        v / np.linalg.norm(v, axis=1, keepdims=True)
        for v in (rng.standard_normal((11, 3)), rng.standard_normal((17, 3)))
    )
    masses, charges = rng.random(17), rng.standard_normal((17, 4))
    masses[[2, 16]] = 0.0
    with jax.enable_x64(True):
        scale, sums = Tiled(*sizes)(
            lambda q, k: beta * (q @ k.T - 1.0),
            jnp.asarray(x),
            jnp.asarray(y),
            jnp.log(jnp.asarray(masses)),
            jnp.asarray(charges),
        )
        got = np.asarray(jnp.exp(scale)[:, None] * sums)
    terms = dense(x, y, masses, np.abs(charges), beta)
    # each logit is off by 2 eps beta, each sum by a few eps of its terms
    assert np.all(np.abs(got - dense(x, y, masses, charges, beta)) <= 2.3e-16 * (8 * beta + 40) * terms + 1e-300)


def test_a_tile_fits_the_cache_whatever_the_sizes():
    for n_query, n_key in ((1, 1), (32, 32), (1000, 100_000), (100_000, 7), (10**6, 10**6)):
        q, k = Tiled().sizes(n_query, n_key)
        assert q * k <= max(TILE, 2048)
        assert Tiled().shared(64).sizes(n_query, n_key)[0] * k * 64 <= max(TILE, 2048 * 64)
        assert q <= n_query
        assert k <= n_key
