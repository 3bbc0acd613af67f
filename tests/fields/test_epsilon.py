"""Norms with an epsilon, as trained networks have them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields.norms import LayerNorm, RmsNorm, direction


@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.3])
def test_norms_with_epsilon_against_numpy(eps):
    """Long, short and tiny rows; with eps = 0 every bit is that of sqrt(d) x/|x|, and a row of zeros stays."""
    x = np.array([[3.0, -4.0, 1.0], [1e-3, 2e-3, -1e-3], [1e-9, 0.0, 2e-9], [0.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    gain, bias = np.array([0.5, 1.0, -2.0]), np.array([0.1, 0.0, -0.3])
    rms, layer = RmsNorm(gain, bias, eps), LayerNorm(gain, bias, eps)

    @af.in_float64
    @jax.jit
    def of(x):
        slopes = [jax.grad(lambda x, norm=norm: jnp.sum(norm(0.0, x) ** 2))(x) for norm in (rms, layer)]
        root = jnp.asarray(np.sqrt(3), x.dtype)
        plain = root * direction(x), root * direction(x - jnp.mean(x, axis=-1, keepdims=True))
        return [norm(0.0, x) for norm in (RmsNorm(eps=eps), LayerNorm(eps=eps), rms, layer)], slopes, plain

    found, slopes, plain = of(x)
    with np.errstate(invalid="ignore"):
        want = [y / np.sqrt(np.mean(y**2, axis=1, keepdims=True) + eps) for y in (x, x - x.mean(axis=1, keepdims=True))]
    want = [np.where(np.isnan(one), 0.0, one) for one in want]  # 0/0
    for bare, full, one in zip(found[:2], found[2:], want, strict=True):
        np.testing.assert_allclose(bare, one, rtol=0, atol=1e-14)
        np.testing.assert_allclose(full, gain * one + bias, rtol=0, atol=1e-14)
    assert np.isfinite(slopes).all()
    if eps == 0:
        np.testing.assert_array_equal(found[:2], plain)
    assert not RmsNorm(bias=bias).is_isotropic
    assert RmsNorm(eps=eps).is_isotropic


def test_epsilon_in_float32():
    """Ones that float32 takes for 0 leave a row of zeros where it is."""
    x = np.zeros((1, 3), np.float32)
    for eps in (1e-60, 1e-5):
        found = af.in_float64(RmsNorm(eps=eps))(0.0, x)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, 0)


@pytest.mark.parametrize("eps", [-1e-5, np.nan, np.inf, "small", [1e-5, 1e-6], af.Along("eps", [0.0, 1.0])])
@pytest.mark.parametrize("norm", [RmsNorm, LayerNorm])
def test_other_epsilons_are_refused(norm, eps):
    with pytest.raises(InvalidInput, match=r"^`eps` .*\.$"):
        norm(eps=eps)
