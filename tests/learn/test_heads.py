"""Many heads: the field is the fit, heads that are there are found, odd maps only, a bias, nested heads, refusals."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput


def softmax(x, matrix):
    logits = np.einsum("pia,ba,pjb->pij", x, matrix, x)
    share = np.exp(logits)
    return share / share.sum(axis=2, keepdims=True) @ x


def constant(x):
    return np.broadcast_to(np.eye(1, x.shape[2]), x.shape)


def test_heads_that_are_in_the_dictionary_are_found():
    """V (3 x 3) of one of six heads; least squares of well separated columns, cond below 1e4: 1e-11."""
    rng = np.random.default_rng(0)
    matrices, value = rng.standard_normal((6, 3, 3)), rng.standard_normal((3, 3))
    found = af.fit_heads(
        lambda x: softmax(x, matrices[2]) @ value.T, heads=6, tokens=4, dim=3, matrices=matrices, samples=128
    )
    assert found.error < 1e-11
    np.testing.assert_allclose(found.values[2], value, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
def test_the_field_is_the_fit(bias):
    found = af.fit_heads(np.sin, heads=3, tokens=4, dim=3, samples=128, residual=True, bias=bias)
    tokens = af.uniform(af.Sphere(3), n=4, seed=1)
    drive = np.asarray(found.field.drive(tokens))
    np.testing.assert_allclose(drive + tokens.positions, found(tokens.positions[None])[0], atol=1e-13)


def test_an_even_target_is_missed_entirely_and_a_bias_finds_it():
    """On prompts with their antipodes odd and even maps are orthogonal: the fit of a constant is 0 to rounding."""
    for heads in (2, 16):
        assert af.fit_heads(constant, heads=heads, tokens=3, dim=2, samples=256).error == pytest.approx(1, abs=1e-12)
    assert af.fit_heads(constant, heads=2, tokens=3, dim=2, samples=256, bias=True).error < 1e-12


def test_the_error_of_a_sum_is_that_of_its_parts():
    """Odd plus even: squares of errors add up, by the same orthogonality."""
    odd, options = np.sin, {"heads": 8, "tokens": 3, "dim": 2, "samples": 256}
    alone, both = (af.fit_heads(f, **options).error for f in (odd, lambda x: odd(x) + constant(x)))
    fresh = np.random.default_rng(0)
    af.Sphere(2).sample(fresh, 256 * 3)
    size = np.mean(np.sum(np.sin(af.Sphere(2).sample(fresh, 256 * 3)) ** 2, axis=1))
    assert both**2 * (size + 1) == pytest.approx(alone**2 * size + 1, rel=1e-10)


def test_heads_are_nested():
    few, many = (af.fit_heads(np.sin, heads=h, tokens=2, dim=2, samples=128, seed=4).matrices for h in (3, 5))
    np.testing.assert_array_equal(few, many[:3])


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"heads": 17}, "at most 16 heads"),
        ({"heads": 0}, "`heads`"),
        ({"samples": 3}, "`heads`"),
        ({"matrices": np.eye(2)}, "`matrices`"),
        ({"matrices": [[1], [2, 3]]}, "`matrices`"),
        ({"target": np.zeros_like}, "`target` gives 0"),
        ({"scales": 3.0}, "`scales`"),
        ({"seed": -1}, "`seed`"),
        ({"target": lambda x: x[0]}, "`target`"),
        ({"target": lambda x: np.nan * x}, "`target`"),
        ({"target": 3.0}, "`target`"),
        ({"scales": (0.0, 1.0)}, "`scales`"),
    ],
)
def test_bad_input(given, named):
    with pytest.raises(InvalidInput, match=named):
        af.fit_heads(**{"target": np.sin, "heads": 4, "tokens": 3, "dim": 2, "samples": 128, **given})
