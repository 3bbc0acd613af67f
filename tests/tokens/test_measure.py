import jax
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
        ({"positions": [[1.0, 0.0], [1.0]]}, "rows of one length"),
        ({"positions": X * 1j}, "dtype complex"),
        ({"positions": X, "masses": [1, -1, 1]}, r"masses\[1\] is -1"),
        ({"positions": X, "masses": [0, 0, 0]}, "sum to zero"),
        ({"positions": X, "masses": [1, 2]}, r"masses.* shape \(2,\)"),
        ({"positions": X, "masses": [1, np.inf, 1]}, r"masses\[1\] is inf"),
        ({"positions": X, "space": af.Sphere(2)}, "last axis of length 2"),
        ({"positions": X, "place": [0.5, 1]}, r"`place` has shape \(2,\)"),
        ({"positions": X, "place": [0.5, np.nan, 2]}, r"place\[1\] is nan"),
        ({"positions": X, "place": [True, False, True]}, "dtype bool"),
        ({"positions": X, "present": [1, 0, 1]}, "`present` has shape .* dtype int"),
        ({"positions": X, "present": [True, False]}, r"`present` has shape \(2,\)"),
        ({"positions": X, "present": [False] * 3}, "`present` has no token"),
        ({"positions": X, "present": [True, False, False], "masses": [0, 1, 1]}, "sum to zero"),
        ({"positions": X, "dims": ("time",)}, "shape"),
        ({"positions": X[None], "dims": ("a",), "coordinates": [[0], [1]]}, "2 entries for the batch dimensions"),
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
    assert batch.member(seed=1).single().measure.single("mu").n == 4
    with pytest.raises(InvalidInput, match=r"`mu` has batch dimensions \('seed',\); pick one system with `member`"):
        batch.single("mu")


def test_stack_refuses_systems_that_do_not_fit():
    a, b = af.uniform(af.Sphere(3), n=4), af.uniform(af.Sphere(2), n=4)
    with pytest.raises(InvalidTokens, match=r"systems\[1\] has shape"):
        af.stack("size", [4, 5], [a, b])
    with pytest.raises(InvalidInput, match="as many of each"):
        af.stack("size", [4], [a, a])
    with pytest.raises(InvalidInput, match=r"`systems\[1\]` is array"):
        af.stack("size", [4, 5], [a, a.positions])
    with pytest.raises(InvalidInput, match="`systems` is empty"):
        af.stack("size", [], [])


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 0], "has 0 more than once"),
        ([0.0, np.nan], "NaN is no label"),
        ([[0], [1]], "one number or text per member"),
        (["a", "a"], "has 'a' more than once"),
    ],
)
def test_bad_labels_are_refused(labels, words):
    one = af.uniform(af.Sphere(3), n=4)
    with pytest.raises(InvalidInput, match=f"`values`.*{words}"):
        af.stack("copy", labels, [one, one])
    with pytest.raises(InvalidInput, match=f"`coordinates` of 'copy'.*{words}"):
        af.Tokens([one.positions] * 2, dims=("copy",), coordinates=[labels])


def test_labels_are_kept_or_left_open():
    one = af.uniform(af.Sphere(3), n=4)
    assert af.stack("copy", ["a", "b"], [one, one]).astype(np.float32).coordinates == (("a", "b"),)
    bare = af.Tokens([one.positions] * 2, dims=("copy",))
    assert bare.astype(np.float32).coordinates == (None,)
    assert af.stack("twice", [0, 1], [bare, bare]).coordinates == ((0, 1), None)


def test_traced_positions_are_refused_with_the_way_out():
    with pytest.raises(InvalidTokens, match=r"being traced.*tokens\.moved"):
        jax.grad(lambda x: af.Tokens(x).positions.sum())(X)
