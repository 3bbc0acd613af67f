import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, InvalidTokens

X = np.eye(3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"positions": [[1.0, 0.0], [np.nan, 0.0]]}, r"positions\[1, 0\] is nan"),
        ({"positions": [[0.0, 0.0, 0.0]]}, "norm is 0.*unit vectors"),
        ({"positions": [[2.0, 0.0, 0.0]]}, "1 away from .*normalise=True"),
        ({"positions": np.ones(3)}, r"shape \(3,\)"),
        ({"positions": np.ones((0, 3))}, "no token"),
        ({"positions": [["a", "b"]]}, "dtype"),
        ({"positions": X * 1j}, "dtype complex"),
        ({"positions": X, "masses": [1, -1, 1]}, r"masses\[1\] is -1"),
        ({"positions": X, "masses": [0, 0, 0]}, "sum to zero"),
        ({"positions": X, "masses": [1, 2]}, r"masses.* shape \(2,\)"),
        ({"positions": X, "masses": [1, np.inf, 1]}, r"masses\[1\] is inf"),
        ({"positions": X, "space": af.Sphere(2)}, "last axis of length 2"),
        ({"positions": X, "place": [0.5, 1, 2]}, "place"),
        ({"positions": X, "dims": ("time",)}, "shape"),
    ],
)
def test_bad_tokens_are_refused_in_one_sentence(arguments, words):
    with pytest.raises(InvalidTokens, match=words) as caught:
        af.Tokens(**arguments)
    assert "\n" not in str(caught.value)


def test_zero_rows_cannot_be_normalised():
    with pytest.raises(InvalidTokens, match=r"positions\[1\] is the zero vector"):
        af.from_array([[1.0, 0], [0, 0]], normalise=True)


def test_masses_are_rescaled_and_zero_is_legal():
    tokens = af.Tokens(X, [0, 1, 3])
    np.testing.assert_allclose(tokens.masses, [0, 0.25, 0.75], rtol=1e-15)


def test_float32_data_is_moved_onto_the_sphere():
    x = af.uniform(af.Sphere(3), n=20).positions.astype(np.float32)
    tokens = af.from_array(x)
    assert tokens.positions.dtype == np.float64
    assert np.max(af.Sphere(3).defect(tokens.positions)) < 1e-15


def test_member_picks_one_system():
    batch = af.uniform(af.Sphere(3), n=4, seed=[5, 9])
    assert batch.dims == ("seed",)
    assert batch.coordinates == ((5, 9),)
    assert np.array_equal(batch.member(seed=1).positions, af.uniform(af.Sphere(3), n=4, seed=9).positions)
    with pytest.raises(InvalidInput, match="batch dimensions"):
        batch.member(sed=1)


def test_stack_refuses_unequal_systems():
    a, b = af.uniform(af.Sphere(3), n=4), af.uniform(af.Sphere(3), n=5)
    with pytest.raises(InvalidTokens, match=r"systems\[1\] has shape"):
        af.stack("size", [4, 5], [a, b])
    with pytest.raises(InvalidInput, match="as many of each"):
        af.stack("size", [4], [a, a])
