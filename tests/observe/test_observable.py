"""Observables in one form: what a flow reads off its frames is what is read off tokens."""

import copy
import inspect
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow import observe, transport
from attnflow.errors import InvalidInput
from attnflow.runs import parse_spec
from tests.flows import fields
from tests.flows.fields import fingerprint
from tests.marks import graded

CIRCLE = af.Sphere(2)
FIELD = af.Attention(2.0)
START = af.uniform(CIRCLE, n=3, seed=0)
FEW = af.from_array(START.positions, masses=[0.2, 0.3, 0.5])
MORE = af.from_array(af.uniform(CIRCLE, n=4, seed=1).positions, masses=[0.1, 0.2, 0.3, 0.4])
TOGETHER = af.stack("prompt", ["a", "b"], [FEW, MORE])
ROWS = np.random.default_rng(0).standard_normal((4, 4))
WORDS = {
    "order-parameter": (observe.order_parameter, {}),
    "effective-rank": (observe.effective_rank, {}),
    "spread": (observe.spread, {}),
    "clusters": (observe.cluster_count, {"scale": 0.6, "share": 1.0}),
    "modes": (observe.mode_count, {"beta": 8.0}),
    "overlaps": (observe.overlaps, {}),
    "energy": (observe.energy, {"beta": 2.0}),
    "energy0": (observe.energy0, {"beta": 2.0}),
    "log-energy": (observe.log_energy, {"beta": 2.0}),
    "speed": (observe.speed, {"field": FIELD}),
    "total-energy": (observe.total_energy, {"field": FIELD}),
    "dissipation": (observe.dissipation, {"field": FIELD}),
    "interaction-energy": (observe.interaction_energy, {"field": FIELD}),
    "energy-rate": (observe.energy_rate, {"field": FIELD}),
    "attention-matrix": (observe.attention_matrix, {"field": FIELD}),
    "distance": (transport.distance, {"nu": START, "order": 1}),
    "metric-speed": (transport.metric_speed, {"field": FIELD}),
    "energy-slope": (transport.energy_slope, {"field": FIELD}),
    "balance-gap": (transport.balance_gap, {"field": FIELD}),
    "gradient-alignment": (transport.gradient_alignment, {"field": FIELD}),
}
"""word of specifications -> the observable, and what is filled in."""
FULL = ("overlaps", "attention-matrix")
"""Observables that take no absent rows."""
TABLES = {
    "beta": "beta = {}",
    "scale": "scale = {}",
    "share": "share = {}",
    "field": 'field = {{ name = "attention", beta = 2.0 }}',
    "nu": 'nu = {{ name = "uniform", space = {{ name = "sphere", dim = 2 }}, n = 3, seed = 0 }}',
}


def bound(word):
    one, options = WORDS[word]
    return one.of(**options) if options else one


def frames(tokens, words):
    seen = {f"x{k}": bound(word) for k, word in enumerate(WORDS) if word in words}
    return af.solve(FIELD, tokens, 1.0, save=2, method=af.Layers(0.5), observe=seen, keep=("positions",))


@pytest.fixture(scope="module")
def flows():
    """A batch with absent rows, and one system in float32; masses differ."""
    return frames(TOGETHER, set(WORDS) - set(FULL)), frames(MORE.astype(np.float32), WORDS)


def test_every_observable_of_the_room_has_a_word():
    rooms = [(name, getattr(room, name)) for room in (observe, transport) for name in room.__all__]
    room = {name for name, one in rooms if isinstance(one, af.Observable)}
    assert {one.name for one, _ in WORDS.values()} == room
    assert set(fields.WORDS["observable"]) == set(WORDS)


@pytest.mark.long
@pytest.mark.parametrize("word", WORDS)
def test_a_flow_reads_what_is_read_off_tokens(word, flows):
    name, one, (batch, single) = f"x{list(WORDS).index(word)}", bound(word), flows
    if word not in FULL:
        for k in (0, 2):
            for member in (0, 1):
                want = one(batch.tokens(k, prompt=member))
                found = np.asarray(batch.dataset[name].values[member, k])
                found = found[: len(want)] if found.ndim else found  # the speed of absent rows is 0
                np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-14)
    for k in (0, 2):
        want = one(single.tokens(k))
        np.testing.assert_allclose(single.dataset[name].values[k], want, rtol=3e-6, atol=1e-7)
        assert np.shape(single.dataset[name].values[k]) == np.shape(want)


@graded("space", [af.Euclidean(3), af.Torus(2), af.spaces.Ellipsoid([1.0, 2.0, 3.0])])
def test_on_every_space(space):
    rows = jnp.asarray(ROWS[:, : space.dim])
    start = af.from_array(np.asarray(af.in_float64(space.retract)(rows)), space=space)
    seen = {"r": observe.order_parameter, "w": observe.spread, "v": observe.speed.of(FIELD)}
    seen["c"] = observe.cluster_count.of(scale=1.0)
    flow = af.solve(FIELD, start, 1.0, save=2, method=af.Fixed(0.5), observe=seen, keep=("positions",))
    for name, one in seen.items():
        np.testing.assert_allclose(flow.dataset[name].values[2], one(flow.tokens(2)), rtol=1e-13, atol=1e-14)


def test_of_fills_in_arguments():
    assert observe.energy.of(2.0)(MORE) == observe.energy.of(beta=2.0)(MORE) == observe.energy(MORE, 2.0)
    assert observe.energy.of(2.0)(MORE, beta=3.0) == observe.energy(MORE, 3.0)
    speed = observe.speed.of(FIELD)
    np.testing.assert_array_equal(speed(MORE), observe.speed(FIELD, MORE))
    np.testing.assert_array_equal(speed(0.0, MORE.measure), speed(MORE))
    assert observe.energy.of(2.0)(TOGETHER).shape == (2,)
    moving = af.Attention(1.0, query=af.weights.Interpolated(np.stack([np.eye(2), 3 * np.eye(2)]), 1.0))
    matrix = observe.attention_matrix.of(moving)
    np.testing.assert_array_equal(matrix(0.5, MORE.measure), observe.attention_matrix(moving, MORE, t=0.5))
    np.testing.assert_array_equal(matrix.of(t=0.5)(9.0, MORE.measure), matrix(MORE, t=0.5))
    for call, words in (
        (lambda: observe.energy.of(gamma=1.0), "`energy.of` is given 'gamma'; the arguments to fill in are: `beta`"),
        (lambda: observe.spread.of(1.0), "`spread.of` is given 1 values; the arguments to fill in are: none"),
        (lambda: observe.energy(0.0, MORE.measure), "`energy` needs 'beta'; in a flow fill it in by `of"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()
    with pytest.raises(TypeError, match="takes at most 1 arguments, and 2 were given"):
        observe.energy.of(2.0)(MORE, 3.0)


def test_what_has_no_value_on_a_flow_is_one_sentence():
    flat = af.from_array(np.eye(3), space=af.Euclidean(3))
    betas = af.Along("beta", [1.0, 2.0])
    for tokens, one, words in (
        (MORE, observe.energy, "the observable 'a' is refused: `energy` needs 'beta'"),
        (MORE, observe.energy.of(betas), "`energy` is given a batch along 'beta'; in a flow fill in the values of one"),
        (MORE, observe.speed.of(af.Attention(betas)), "`speed` is given a batch along 'beta'"),
        (MORE, observe.speed.of(3.0), "the observable 'a' is refused: `field` is 3.0; give a field"),
        (MORE, lambda mu: observe.clusters(mu, scale=0.1), "the observable 'a' returns a Clusters; return one number"),
        (flat, observe.energy.of(2.0), "`tokens` live on Euclidean"),
        (flat, observe.mode_count.of(2.0), "must be one system on a sphere"),
        (TOGETHER, observe.overlaps, "absent rows, which the matrix of overlaps does not take"),
    ):
        with pytest.raises(InvalidInput, match=words):
            af.solve(FIELD, tokens, 1.0, save=2, observe={"a": one})
    density = af.meanfield.perturbed(af.meanfield.CircleBasis(8), 1, 0.3)
    with pytest.raises(InvalidInput, match="the observable 'a' is refused: `tokens` is Density"):
        af.meanfield.evolve(FIELD, density, 1.0, save=2, observe={"a": observe.order_parameter})


@af.Observable
def height(mu, axis: int = 0):
    """The mean of a coordinate."""
    return mu.masses @ mu.positions[:, axis]


def test_an_observable_of_ones_own():
    assert height.__doc__ == "The mean of a coordinate."
    assert list(inspect.signature(height).parameters) == ["mu", "axis"]
    want = [FEW.masses @ FEW.positions[:, 1], MORE.masses @ MORE.positions[:, 1]]
    for found in (
        height.of(1)(TOGETHER),
        height(TOGETHER, axis=1),
        height(TOGETHER, 1),
        height.of(axis=1)(0.0, TOGETHER),
    ):
        np.testing.assert_allclose(found, want, rtol=1e-15)
    host = af.Observable(lambda mu: float(mu.positions[0, 0]))
    clock = af.Observable(lambda t, mu: jnp.asarray(2.0 * t))
    assert host(MORE) == MORE.positions[0, 0]
    assert clock(TOGETHER, t=3.0).tolist() == [6.0, 6.0]
    assert clock(TOGETHER).tolist() == [0.0, 0.0]
    seen = {"high": height.of(axis=1), "alone": lambda mu: mu.masses @ mu.positions[:, 1], "clock": clock, "host": host}
    seen |= {"early": lambda t, mu=None: 2.0 * t, "several": lambda *args: 2.0 * args[0]}
    flow = af.solve(FIELD, TOGETHER, 1.0, save=2, method=af.Layers(0.5), observe=seen, keep=("positions",))
    np.testing.assert_array_equal(flow.dataset["high"], flow.dataset["alone"])
    np.testing.assert_allclose(flow.dataset["high"].values[1, 2], height(flow.tokens(2, prompt=1), 1), rtol=1e-15)
    np.testing.assert_array_equal(flow.dataset["host"], flow.positions.values[:, :, 0, 0])
    for name in ("clock", "early", "several"):
        assert flow.dataset[name].values.tolist() == [[0.0, 1.0, 2.0]] * 2, name


def test_names_of_axes_and_nan_of_an_observable():
    named = af.Observable(observe.overlaps, dims=("row", "column"), allow_nan=True)
    np.testing.assert_array_equal(named(MORE), observe.overlaps(MORE))
    assert (named.dims, named.allow_nan) == (("row", "column"), True)
    assert (named.of(limit=9).dims, named.of(limit=9).allow_nan) == (named.dims, True)
    assert observe.speed.of(FIELD).dims == ("token",)


def test_observables_are_copied_and_pickled():
    for one in (observe.spread, observe.energy.of(2.0), af.Observable(observe.spread, allow_nan=True)):
        for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
            assert (again(MORE), again.allow_nan) == (one(MORE), one.allow_nan)
            assert fingerprint(again) == fingerprint(one)
    assert pickle.loads(pickle.dumps(observe.spread)) is observe.spread
    assert repr(observe.energy.of(2.0)) == "<observable energy of beta=2.0>"


def test_fingerprints_are_the_same_in_every_process():
    assert fingerprint(observe.order_parameter).startswith("3d68b3ab23b487b5")
    assert fingerprint(observe.energy.of(2.0)).startswith("e1725216b5feb3ff")
    assert fingerprint(observe.energy.of(beta=2.0)) == fingerprint(observe.energy.of(2.0))
    clocks = [af.Attention(2.0, normaliser=af.Unnormalised(clock)) for clock in ("USA0", "USA", "grad")]
    found = [fingerprint(observe.speed.of(field)) for field in (FIELD, af.Attention(3.0), *clocks)]
    assert len(set(found)) == len(found)
    assert fingerprint(observe.speed.of(af.Attention(2.0))) == found[0]


def test_every_word_of_specifications():
    lines = []
    for k, (word, (_, options)) in enumerate(WORDS.items()):
        keys = "".join(
            f", {TABLES[key].format(value)}" for key, value in options.items() if key not in ("share", "order")
        )
        lines.append(f'x{k} = {{ name = "{word}"{keys} }}')
    text = '[tokens]\nname = "ring"\nspace = { name = "sphere", dim = 2 }\nn = 3\n[field]\nname = "attention"\nbeta = 2.0\n'
    spec = parse_spec(text + "[solve]\nuntil = 1.0\n[solve.observe]\n" + "\n".join(lines))
    assert spec.table["solve"]["observe"]["x3"] == {"name": "clusters", "scale": 0.6, "share": 1.0}
    for word, made in zip(WORDS, spec.work.observe.values(), strict=True):
        assert fingerprint(made) == fingerprint(bound(word)), word
    with pytest.raises(InvalidInput, match="known are field"):
        parse_spec(text + '[solve]\nuntil = 1.0\n[solve.observe]\nx = { name = "speed", t = 1.0 }')
