"""Batch dimensions: their labels, and the numbers that parameters are made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.axes import Along, as_seed, finite_array, members, positive, scalar
from attnflow.errors import InvalidInput
from attnflow.runs import parse_spec

SEEDS = af.uniform(af.Sphere(3), n=4, seed=[0, 1])
SPEC = """
tokens = { name = "uniform", space = { name = "sphere", dim = 3 }, n = 4 }
field = { name = "attention", beta = 2.0 }
solve = { until = 1.0 }
"""


def refused(words, call):
    with pytest.raises(InvalidInput, match=words) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 350


def labels(field, tokens=SEEDS):
    return {name: own.tolist() for name, own in members(field, tokens).dims.items()}


def test_labels_that_disagree_are_refused():
    refused(
        r"'seed' has the labels \[5\.0, 7\.0\] in one place and \[0, 1\] in another.*labels=",
        lambda: members(af.Attention(Along("seed", [5, 7])), SEEDS),
    )
    encoding = af.encodings.Sinusoidal(Along("beta", [0.1, 0.2]))
    refused(
        r"'beta' has the labels \[1\.0, 2\.0\] .* \[0\.1, 0\.2\]",
        lambda: members(af.Attention(Along("beta", [1.0, 2.0]), encoding=encoding), SEEDS),
    )
    many = np.arange(10_000.0)
    refused(
        r"\[4998\.0, 4999\.0, 5000\.0, .*\[4998\.0, 4999\.0, -1\.0, .* from member 4998",
        lambda: members((Along("a", many), Along("a", np.where(many == 5000, -1, many))), SEEDS),
    )


def test_parameters_are_zipped_by_giving_labels():
    sizes = Along("beta", [0.1, 0.2], labels=[1.0, 2.0])
    field = af.Attention(Along("beta", [1.0, 2.0]), encoding=af.encodings.Sinusoidal(sizes))
    assert labels(field) == {"beta": [1, 2], "seed": [0, 1]}
    flat = members(field, SEEDS).field
    np.testing.assert_array_equal(flat.kernel.beta, [1, 1, 2, 2])
    np.testing.assert_array_equal(flat.features.encoding.size, [0.1, 0.1, 0.2, 0.2])


def test_what_has_no_labels_takes_those_of_others():
    arrays = Along("case", np.ones((2, 3, 3)))
    assert labels(af.Attention(1.0, value=arrays)) == {"case": [0, 1], "seed": [0, 1]}
    named = af.Attention(Along("case", [3.0, 4.0], labels=["low", "high"]), value=arrays)
    assert labels(named) == {"case": ["low", "high"], "seed": [0, 1]}
    assert labels(af.Attention(1.0, value=Along("seed", np.ones((2, 3, 3)))), SEEDS) == {"seed": [0, 1]}
    assert labels(af.Attention(Along("seed", [5.0, 5.0], labels=()))) == {"seed": [0, 1]}
    bare = af.Tokens(SEEDS.positions, dims=("beta",))
    assert labels(af.Attention(2.0), bare) == {"beta": [0, 1]}
    assert labels(af.Attention(Along("beta", [3.0, 4.0])), bare) == {"beta": [3, 4]}
    assert labels(af.Attention(Along("beta", [3.0, 4.0])), bare.astype(np.float32)) == {"beta": [3, 4]}


def test_labels_stay_when_values_are_mapped():
    beta = Along("beta", [1.0, 4.0])
    assert beta.map(np.sqrt).coordinates.tolist() == [1.0, 4.0]
    np.testing.assert_array_equal(beta.map(np.sqrt).values, [1, 2])
    arrays = Along("v", np.stack([np.eye(2), np.eye(2)]))
    assert arrays.map(lambda v: v[:, 0, 0]).coordinates is None
    # labels that are values follow the values, those that were given stay
    assert jax.tree.map(lambda v: 2 * v, beta).coordinates.tolist() == [2.0, 8.0]
    named = jax.tree.map(lambda v: 2 * v, Along("beta", [1.0, 4.0], labels=[10, 20]))
    assert named.coordinates.tolist() == [10, 20]


def test_labels_pass_through_jit():
    """They are static: part of the structure, equal for equal labels; values are traced."""
    traces = []

    @jax.jit
    def total(along):
        traces.append(along.coordinates)
        return jnp.sum(along.values)

    with jax.enable_x64(True):
        assert total(Along("a", [1.0, 2.0])) == 3
        assert total(Along("a", [1.0, 3.0])) == 4
        assert total(Along("a", [1.0, 3.0], labels=["x", "y"])) == 4
    assert traces[0] is None
    assert traces[1].tolist() == ["x", "y"]
    assert len(traces) == 2


def test_batches_are_differentiable():
    """A traced batch has no labels of its own, and takes those of the tokens."""

    @af.in_float64
    def slopes(betas):
        def loss(betas):
            field = af.Attention(Along("seed", betas, labels=()))
            return jnp.sum(members(field, SEEDS).field.kernel.beta ** 2)

        return jax.grad(loss)(betas)

    np.testing.assert_allclose(slopes(np.array([3.0, 4.0])), [6, 8])
    af.in_float64(jax.jit(lambda betas: members(af.Attention(Along("seed", betas)), SEEDS).field.kernel.beta))(
        np.ones(2)
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Along("a", [1.0, 1.0]), r"`values` of Along\('a'\) has 1\.0 more than once.*labels=range\(2\)"),
        (lambda: Along("a", [1.0, 2.0], labels=[3, 3]), r"`labels` of Along\('a'\) has 3 more than once"),
        (lambda: Along("a", [1.0, 2.0], labels=[3, np.nan]), r"`labels` of Along\('a'\) is \[3\.0, nan\]"),
        (lambda: Along("a", [1.0, 2.0], labels=[3]), "1 entries for 2 members"),
        (lambda: Along("a", [1.0, 2.0], labels=[[3], [4]]), "one number or text per member"),
        (lambda: Along("a", [1.0, 2.0], labels=[True, False]), "one number or text per member"),
        (lambda: Along("a", [1.0, 2.0], labels=3), "one number or text per member"),
        (lambda: Along("a", ["b"]), r"`values` of Along\('a'\) is \['b'\]"),
        (lambda: Along("a", [True, False]), r"is \[True, False\]"),
        (lambda: Along("a", [1.0, True]), r"is \[1\.0, True\]"),
        (lambda: Along("a", [[1.0, 2.0], [3.0]]), "arrays of one shape"),
        (lambda: Along("a", 3.0), "at least one value"),
        (lambda: Along(3, [1.0]), "`dim` is 3"),
        (lambda: Along("two words", [1.0]), "identifier"),
    ],
)
def test_bad_batches_are_refused(call, words):
    refused(words, call)


UNREAL = ["2", True, np.True_, None, 1j, 10**400, 10**5000, [1.0], [[1.0], [1.0, 2.0]], {}]


@pytest.mark.parametrize("value", UNREAL, ids=lambda value: type(value).__name__)
def test_what_is_not_a_real_number_is_refused(value):
    for convert in (scalar("beta"), positive("beta")):
        refused("`beta` (is|has)", lambda convert=convert: convert(value))
    refused("`seed` (is|has)", lambda: as_seed(value))


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2), np.int64(2), np.asarray(2), np.asarray(2.0), jnp.asarray(2), jnp.float32(2)]
)
def test_every_kind_of_number_is_accepted(value):
    for convert in (scalar("beta"), positive("beta"), as_seed):
        assert convert(value) == 2
        assert convert(value).dtype == np.float64
    assert jax.make_jaxpr(lambda b: scalar("beta")(b) + 1)(1.0) is not None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((-1.0, 0.0, np.inf), "`x` is -1.0; give a finite number of at least 0."),
        ((2.0, 0.0, 1.0), r"`x` is 2.0; give a number in \[0, 1\]."),
        ((np.inf, -np.inf, np.inf), "`x` is inf; give a finite number."),
    ],
)
def test_ranges_are_said_plainly(given, words):
    value, low, high = given
    refused(f"^{words}$", lambda: scalar("x", low=low, high=high)(value))


def test_positive_is_said_plainly():
    refused("^`x` is 0.0; give a finite number above 0.$", lambda: positive("x")(0))


@pytest.mark.parametrize("value", ["ab", [["a"]], [True, False], [1.0, True], [[1.0], [1.0, 2.0]], [np.nan], 1j, None])
def test_what_is_not_an_array_of_numbers_is_refused(value):
    refused("`w` (is|of)", lambda: finite_array("`w`", value))
    if isinstance(value, list):
        refused("`value` (is|of)", lambda: af.Attention(1.0, value=value))


def test_batches_of_arrays_are_finite():
    refused("not finite", lambda: af.Attention(1.0, value=Along("v", np.full((2, 3, 3), np.nan))))


@pytest.mark.parametrize(
    "change", ["field.beta=true", "field.beta='2'", "field.beta=[1.0, true]", "tokens.seed=[0, 0]"]
)
def test_specifications_refuse_them_too(change):
    refused("beta|seed", lambda: parse_spec(SPEC, [change]))
