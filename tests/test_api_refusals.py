"""What new users try first, in Python: it means something, or one sentence says what to write instead."""

import jax
import numpy as np
import pytest

import attnflow as af
from attnflow import observe, stability
from attnflow.errors import InvalidInput
from attnflow.runs import Run, execute, load_spec, parse_spec

X, SPHERE, FIELD = np.eye(3), af.Sphere(3), af.Attention(2.0)
TOKENS, BATCH = af.uniform(SPHERE, n=4), af.uniform(SPHERE, n=3, seed=[0, 1])


class Host(af.AbstractField):
    """A field in NumPy, which JAX cannot trace."""

    laws = FIELD.laws

    def formula(self, t, query, mu):
        return np.sin(np.asarray(query.points(mu)))

    def children(self, space):
        return ()

    def check_parameters(self, tokens):
        pass


REFUSED = [
    ("`tokens` is array", lambda: FIELD.choice(X)),
    ("`matrix` is [[1, 2], [3]]; give an array of real numbers", lambda: observe.leaders([[1, 2], [3]])),
    ("`points` is 'a'; give an array of real numbers", lambda: observe.distinct("a", 0.1)),
    ("`log_times` is 'a'; give an array of real numbers", lambda: observe.exit_distribution("a")),
    ("`path` is 3; give the path", lambda: af.animate(None, 3)),
    ("`at` is 'a'; give an integer.", lambda: TOKENS["a"]),
    ("`changes` is 'tokens.n=3'; give a list", lambda: load_spec("metastability", "tokens.n=3")),
    ("`changes` is [3]; give a list", lambda: load_spec("metastability", [3])),
    ("`tol` is 1e-300, below the rounding", lambda: af.solve(FIELD, TOKENS, 1.0, tol=1e-300)),
    ("`keep` is ['speed', 'speed']", lambda: af.solve(FIELD, TOKENS, 1.0, keep=["speed", "speed"])),
    ("give a smaller integer", lambda: af.uniform(SPHERE, n=3, seed=2**63)),
    ("`tokens` is array", lambda: af.solve(FIELD, X, 1.0)),
    ("`field` is Tokens", lambda: af.solve(TOKENS, FIELD, 1.0)),
    ("`method` is 'layers'", lambda: af.solve(FIELD, TOKENS, 1.0, method="layers")),
    ("`method` is the class Adaptive; write Adaptive()", lambda: af.solve(FIELD, TOKENS, 1.0, method=af.Adaptive)),
    ("`noise` is 0.1; give noise such as Brownian(0.1)", lambda: af.solve(FIELD, TOKENS, 1.0, noise=0.1)),
    ("`stop` is", lambda: af.solve(FIELD, TOKENS, 1.0, stop=lambda frame: True)),
    ("`check` is 'no'", lambda: af.solve(FIELD, TOKENS, 1.0, check="no")),
    ("`normaliser` is 'softmax'", lambda: af.Attention(1.0, normaliser="softmax")),
    ("`mask` is 'causal'", lambda: af.Attention(1.0, mask="causal")),
    ("`mask` is the class Causal; write Causal()", lambda: af.Attention(1.0, mask=af.Causal)),
    ("`beta` is '2'", lambda: af.Attention("2")),
    ("`beta` is True", lambda: af.Attention(True)),
    ("`space` is 3", lambda: af.uniform(3, n=3)),
    ("`seed` is", lambda: af.uniform(SPHERE, n=3, seed=jax.random.key(0))),
    ("more than once", lambda: af.uniform(SPHERE, n=3, seed=[1, 1])),
    ("has the labels [5.0, 7.0]", lambda: af.solve(af.Attention(af.Along("seed", [5.0, 7.0])), BATCH, 1.0)),
    ("`values` of Along('b')", lambda: af.Along("b", ["a"])),
    ("`positions` is", lambda: af.from_array([[1.0, 0, 0], [1.0]])),
    ("`normalise` is 'yes'", lambda: af.from_array(X, normalise="yes")),
    ("`dims` is 'seed'", lambda: af.Tokens(X[None], dims="seed")),
    ("`dims` is 3", lambda: af.Tokens(X, dims=3)),
    ("`dtype` is 'nonsense'", lambda: TOKENS.astype("nonsense")),
    ("`seed` is 7; give an integer from -2 to 1", lambda: BATCH.member(seed=7)),
    ("`seed` is 0.5", lambda: BATCH.member(seed=0.5)),
    ("`values` is 3", lambda: af.stack("seed", 3, [TOKENS])),
    ("`systems` is 3", lambda: af.stack("seed", [0], 3)),
    ("`radius` of Ellipsoid", lambda: af.spaces.Ellipsoid([1, 2, 3], radius=10**400)),
    ("`tokens` is array", lambda: observe.clusters(X, scale=0.1)),
    ("`tokens` is array", lambda: observe.effective_rank(X)),
    ("`tokens` is array", lambda: observe.overlap_histogram(X)),
    ("`bins` is -1", lambda: observe.overlap_histogram(TOKENS, bins=-1)),
    ("`bins` is 1000000000000", lambda: observe.overlap_histogram(TOKENS, bins=10**12)),
    ("`tokens` is array", lambda: observe.attention_matrix(FIELD, X)),
    ("`field` is array", lambda: observe.attention_matrix(X, TOKENS)),
    ("`tokens` is array", lambda: stability.spectrum(FIELD, X)),
    ("`field` is Tokens", lambda: stability.spectrum(TOKENS, FIELD)),
    ("`beta` is -1.0", lambda: observe.cluster_scale(-1.0)),
    ("`tokens` is array", lambda: af.advance(FIELD, X, 0.0, 1.0)),
    ("`t1` is nan", lambda: af.advance(FIELD, TOKENS, 0.0, np.nan)),
    ("`tokens` is array", lambda: af.merge_times(FIELD, X)),
    ("`tokens` is array", lambda: af.flow_map(FIELD, X, 1.0)),
    ("`at` is 'a'", lambda: FIELD.velocity(TOKENS, at="a")),
    ("`t` is 'a'", lambda: FIELD.velocity(TOKENS, "a")),
    ("at[0] is 8 away", lambda: FIELD.velocity(TOKENS, at=9 * X)),
    ("`result` is Attention", lambda: af.plot(FIELD)),
    ("`values` is array('a'", lambda: af.stack("seed", np.array("a"), [TOKENS])),
    ("`present` is [True, [False]]", lambda: af.Tokens(X, space=af.Sphere(3), present=[True, [False]])),
    ("`positions` has shape ()", lambda: af.from_array(2.0, normalise=True)),
    ("`spec` is 'a'", lambda: execute("a", "b")),
    ("`source` is 3", lambda: load_spec(3)),
    ("`text` is 3", lambda: parse_spec(3)),
    ("`path` is 3", lambda: Run.open(3)),
    ("`path` is 3", lambda: af.open_run(3)),
    (f"({__file__.rpartition('/')[2]}, line", lambda: Host().velocity(TOKENS)),
    ("write it with jax.numpy", lambda: af.advance(Host(), TOKENS, 0.0, 1.0, af.Fixed(0.5))),
    ("write it with jax.numpy", lambda: af.solve(Host(), TOKENS, 1.0, save=1, method=af.Fixed(0.5))),
    ("write it with jax.numpy",
     lambda: af.solve(af.Attention(1.0, value=af.weights.Function(lambda t: np.eye(3) * np.sin(t))), TOKENS, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_one_sentence_says_what_to_write(words, call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_frames_are_asked_for_by_whole_numbers():
    flow = af.solve(FIELD, TOKENS, 1.0, save=2, method=af.Fixed(0.5))
    for words, call in (
        ("`at` is 0.5; give an integer from -3 to 2", lambda: flow.tokens(0.5)),
        ("`at` is 99", lambda: flow.tokens(99)),
        ("`tokens` got 'seed'", lambda: flow.tokens(0, seed=1)),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()
    assert flow.tokens(np.int64(-1)).n == 4


def test_a_condition_must_speak_for_every_member():
    stop = af.stopping.When(lambda frame: [True, False, True])
    with pytest.raises(InvalidInput, match="one for each of the 1 members"):
        af.solve(FIELD, TOKENS, 1.0, save=2, method=af.Fixed(0.5), stop=stop)


def test_huge_vectors_are_normalised():
    assert np.allclose(af.from_array(np.full((2, 3), 1e308), normalise=True).positions, 3**-0.5)


@pytest.mark.parametrize("make", [af.Fixed, af.Layers, af.Heun, lambda step: af.Adaptive(rtol=step), af.Alternate])
def test_members_share_steps_and_tolerances(make):
    with pytest.raises(InvalidInput, match="is a batch along 'seed'; all members share it"):
        make(af.Along("seed", [0.1, 0.2]))


@pytest.mark.parametrize("keep", [np.array("positions"), [["positions"]], 3, "positions", ["colour"]])
def test_what_is_kept_is_named_in_a_list(keep):
    with pytest.raises(InvalidInput, match="`keep` is"):
        af.solve(FIELD, TOKENS, 1.0, keep=keep)
