"""Measures of streams: exact on a network whose layers are a flow, against plain NumPy on random arrays."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.probe import heads, states
from tests.probe.flow_network import FlowNetwork

IDS = np.random.default_rng(5).integers(0, 30, 24)
EXACT = 1e-9
"""Slopes of logarithms of weights that are rounded to 1e-16, over cosines with a variance above 1e-4 in 24 tokens."""


@pytest.fixture(scope="module", params=[False, True], ids=["everyone", "causal"])
def network(request):
    return FlowNetwork(causal=request.param)


@pytest.fixture(scope="module")
def stream(network):
    return network.run(IDS)


@pytest.fixture(scope="module")
def data(network, stream):
    return af.probe.measure(stream, network, sinks=[[]])


def test_tokens_of_a_stream_have_the_observables_of_the_flow(network, stream):
    flow = [af.Tokens(x) for x in network.flow(IDS).positions.values]
    tokens = stream.tokens()
    assert tokens.dims == ("layer",)
    for observable in (af.observe.order_parameter, af.observe.effective_rank, af.observe.energy.of(4.0)):
        alone = [observable(one) for one in flow]
        assert observable(tokens) == pytest.approx(np.array(alone), rel=1e-12)  # positions agree to 2e-16


def test_the_dataset_has_the_observables_of_the_flow(network, data):
    flow = [af.Tokens(x) for x in network.flow(IDS).positions.values]
    one = data.sel(kept="all", view="raw").isel(text=0)
    upper = np.triu_indices(len(IDS), 1)
    pairs = [af.observe.overlaps(mu)[upper] for mu in flow]
    assert one["overlap"].values == pytest.approx([p.mean() for p in pairs], rel=1e-12)
    wanted = [np.quantile(p, data["quantile"].values) for p in pairs]
    assert one["overlap_quantile"].values == pytest.approx(np.array(wanted), rel=1e-12)
    shares = [af.observe.overlap_histogram(mu, bins=100)[0] * 0.02 for mu in flow]
    assert one["overlap_histogram"].values == pytest.approx(np.array(shares), abs=1e-12)
    assert one["effective_rank"].values == pytest.approx(
        [float(af.observe.effective_rank(mu)) for mu in flow], rel=1e-12
    )
    found = [af.observe.clusters(mu, scale=np.arccos(0.9)) for mu in flow]
    assert one["clusters"].values.tolist() == [c.count for c in found]
    assert one["condensed"].values.tolist() == [c.condensed for c in found]
    assert one["energy"].values == pytest.approx(
        [float(af.observe.energy(mu, data.energy_beta)) for mu in flow], rel=1e-9
    )


def test_the_fit_finds_the_temperature_and_the_flow(network, data):
    """log A_ij = beta <x_i, x_j> + a_i exactly, and the attention update is step * velocity exactly."""
    layers = data.isel(layer=slice(0, network.layers), text=0)
    assert layers["beta"].values == pytest.approx(4.0, rel=EXACT)
    assert layers["beta_r2"].values == pytest.approx(1.0, abs=EXACT)
    assert (layers["beta_high"] - layers["beta_low"]).values == pytest.approx(0.0, abs=EXACT)
    for kept in layers["kept"].values:
        one = layers.sel(kept=kept)
        assert one["alignment"].values == pytest.approx(1.0, abs=1e-7)  # of both parts; 1 - cos is the square of errors
        assert one["effective_time"].sel(part="attention").values == pytest.approx(network.step, rel=1e-8)
        assert one["effective_time_r2"].sel(part="attention").values == pytest.approx(1.0, abs=1e-8)
        assert (one["effective_time"].sel(part="layer").values > 0.5 * network.step).all()
    assert np.isnan(data["beta"].isel(layer=-1)).all()
    change = layers["overlap_change_attention"] + layers["overlap_change_rest"]
    steps = np.diff(data["overlap"].sel(view="raw").isel(text=0).values, axis=-1)
    assert change.values == pytest.approx(steps, abs=1e-14)
    assert layers["overlap_change_rest"].values == pytest.approx(0.0, abs=1e-14)  # a norm changes no cosine


def test_the_last_state_takes_the_temperature_of_the_last_layer():
    """Attention whose logarithm has the slopes 2 and 5 on cosines, in layers of one head."""
    x = np.asarray(af.uniform(af.Sphere(3), n=12, seed=range(3)).positions)
    weights = np.exp(np.array([2.0, 5.0])[:, None, None] * (x @ np.swapaxes(x, 1, 2))[:2])
    stream = af.probe.Stream(x, (weights / weights.sum(axis=-1, keepdims=True))[:, None])
    betas = af.probe.measure(stream, families=["updates"], sinks=[[]])["velocity_beta"].values
    assert betas == pytest.approx(np.array([[2.0, 5.0, 5.0]]), rel=EXACT)


def test_matrices_are_looked_at(data, network):
    one = data.isel(layer=0, head=0)
    assert one["qk_singular_value"].values == pytest.approx(4.0, rel=1e-12)
    assert one["qk_antisymmetric_share"] == pytest.approx(0.0, abs=1e-7)  # a square root of rounding
    assert one["ov_sign"] == pytest.approx(1.0, rel=1e-12)
    assert one["qk_trace"] == pytest.approx(4.0 * network.width, rel=1e-12)
    rng = np.random.default_rng(1)
    q, k, v, o = (rng.standard_normal(shape) for shape in [(3, 9), (3, 9), (4, 9), (9, 4)])
    b, ov = q.T @ k, o @ v
    values, share, trace = heads.spectrum_of(q, k)
    assert values == pytest.approx(np.linalg.svd(b, compute_uv=False)[:3], rel=1e-10)
    assert share == pytest.approx(np.linalg.norm(b - b.T) / (2 * np.linalg.norm(b)), rel=1e-10)
    assert trace == pytest.approx(np.trace(b), rel=1e-10)
    assert heads.sign_of(v, o) == pytest.approx(np.trace(ov) / np.abs(np.linalg.eigvals(ov)).sum(), rel=1e-6)


def test_the_lens_reads_next_token_distributions(stream, data, network):
    """RMS norm of a state x is sqrt(d) x/|x|, so the read-out has the inverse temperature sqrt(d)."""
    tokens = stream.tokens().member(layer=network.layers)
    law = af.text.next_token_distribution(tokens, network.embedding, beta=np.sqrt(network.width))
    last = data.isel(text=0, layer=-1)
    assert last["next_token_entropy"].sel(readout="mixture") == pytest.approx(float(law.entropy), rel=1e-10)
    assert last["next_token_alternatives"].sel(readout="mixture") == pytest.approx(float(law.alternatives), rel=1e-10)
    assert last["next_token_information"].sel(readout="last token") == pytest.approx(0.0, abs=1e-12)
    by_function = af.probe.Stream(
        stream.hidden[0],
        unembedding=lambda x: np.sqrt(12) * x @ network.embedding.T / np.linalg.norm(x, axis=1)[:, None],
    )
    gain = np.linspace(1, 2, 12)
    by_gain = af.probe.Stream(stream.hidden[0], unembedding=network.embedding / gain, final_gain=gain)
    for one in (by_function, by_gain):
        again = af.probe.measure(one, families=["lens"])
        assert again["next_token_entropy"].values == pytest.approx(data["next_token_entropy"].values, rel=1e-10)


def test_a_fit_in_plain_numpy():
    """A loop over rows, with weights that are no softmax of cosines; level of the interval not tested."""
    rng = np.random.default_rng(2)
    n, kept = 9, np.arange(9) != 4
    cosine = states.cosines(rng.standard_normal((n, 5)))
    weights = rng.random((2, n, n)) * np.tri(n)
    weights /= weights.sum(axis=-1, keepdims=True)
    fit = af.probe.fit_beta(cosine, weights, kept, bootstrap=50, seed=3)
    for head in range(2):
        x, y = [], []
        for i in np.flatnonzero(kept):
            js = [j for j in range(i) if kept[j]]
            if len(js) >= 3:
                x.append(cosine[i, js] - cosine[i, js].mean())
                y.append(np.log(weights[head, i, js]) - np.log(weights[head, i, js]).mean())
        x, y = np.concatenate(x), np.concatenate(y)
        assert fit.beta[head] == pytest.approx(x @ y / (x @ x), rel=1e-10)
        assert fit.r2[head] == pytest.approx((x @ y) ** 2 / (x @ x) / (y @ y), rel=1e-10)
        assert fit.low[head] < fit.beta[head] < fit.high[head]


def test_an_interval_covers():
    """With noise of one size on every logit the true slope is in the 95 % interval of 190 of 200 heads, give or take.

    The bootstrap over 40 rows is a little too narrow: coverage of 0.93 is expected. Fewer than 170 of 200 has a
    probability below 1e-4 at 0.93 (binomial).
    """
    rng = np.random.default_rng(4)
    cosine = states.cosines(rng.standard_normal((40, 8)))
    logits = 3.0 * cosine + 0.5 * rng.standard_normal((200, 40, 40))
    weights = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    fit = af.probe.fit_beta(cosine, weights, np.ones(40, bool), seed=5)
    covered = (fit.low <= 3.0) & (fit.high >= 3.0)
    assert 170 <= covered.sum() < 200


def test_sinks_are_found_and_left_out():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((3, 20, 6))
    plain = [states.mean_cosine(one[1:]) for one in x]
    x[1, 7] *= 100.0
    x[:, 0] *= 40.0
    marks = af.probe.find_sinks(af.probe.Stream(x))
    assert np.flatnonzero(marks[0]).tolist() == [0, 7]
    assert np.flatnonzero(af.probe.find_sinks(af.probe.Stream(rng.standard_normal((3, 20, 6)), causal=True))[0]) == [0]
    data = af.probe.measure(af.probe.Stream(x), sinks=[[0]], families=["overlaps", "norms"])
    assert data["overlap"].sel(kept="without sinks", view="raw").values[0] == pytest.approx(plain, rel=1e-12)
    assert (
        (data["norm_largest"].sel(kept="all") > data["norm_largest"].sel(kept="without sinks")).values[0, [0, 2]].all()
    )


def test_views_take_massive_coordinates_out():
    """iid tokens with three large constant coordinates: the raw overlap is theirs, without them it is near 0."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((1, 60, 40))
    x[..., [3, 11, 30]] += [9.0, 6.0, 4.0]
    data = af.probe.measure(af.probe.Stream(x, ids=np.arange(60) % 50), families=["overlaps"]).isel(
        text=0, kept=0, layer=0
    )
    assert data["largest_coordinate"].values[:3].tolist() == [3, 11, 30]
    overlap = dict(zip(data["view"].values, data["overlap"].values, strict=True))
    assert overlap["raw"] > 0.7
    assert abs(overlap["without top 3"]) < 5 / np.sqrt(40 * 60 * 59 / 2)  # five standard deviations of iid in d
    u = states.unit(x[0])
    centred, *fewer = states.tables(u)[1:]
    for table, count in zip(fewer, states.REMOVED, strict=True):
        without = np.delete(u, data["largest_coordinate"].values[:count], axis=1)
        assert np.abs(table - states.cosines(without)).max() < 1e-14
    assert (states.tables(u[:, :6])[-1] == 0).all()  # of six coordinates ten are taken away
    centred = centred[np.triu_indices(60, 1)]
    assert overlap["centred"] == pytest.approx(centred.mean(), rel=1e-12)
    assert data["pairs_of_equal_ids"] == 10
    pairs = (10 * data["overlap_equal_ids"] + (1770 - 10) * data["overlap_different_ids"]) / 1770
    assert pairs.values == pytest.approx(data["overlap"].values, rel=1e-10)


@pytest.mark.slow
def test_texts_of_unequal_length_are_measured_one_by_one():
    network = FlowNetwork()
    streams = [network.run(IDS[:n]) for n in (24, 12)]
    batch = af.probe.Stream(
        [s.hidden[0] for s in streams],
        [s.attention[0] for s in streams],
        [s.ids[0] for s in streams],
        after_attention=[s.after_attention[0] for s in streams],
    )
    assert batch.tokens().dims == ("text", "layer")
    assert batch.tokens().present is not None
    # an odd number of tokens of the shorter text are sinks; the fitted beta is 4 in both, so that energies agree
    both = af.probe.measure(batch, sinks=[[3], [0, 1, 2]])
    for text, (stream, gone) in enumerate(zip(streams, ([3], [0, 1, 2]), strict=True)):
        alone = af.probe.measure(stream, sinks=[gone], families=["overlaps", "rank", "clusters", "energy", "updates"])
        for name in ("overlap", "effective_rank_centred", "clusters", "energy", "alignment", "effective_time_r2"):
            found = both[name].isel(text=text).values
            assert found == pytest.approx(alone[name].isel(text=0).values, rel=1e-7, abs=1e-9, nan_ok=True), name


def test_every_variable_says_what_it_is(data):
    assert all(data[name].attrs["about"] for name in data)
    assert {"text", "layer", "head", "kept", "view"} <= set(data.dims)


def test_refusals(stream):
    with pytest.raises(InvalidInput, match="`families` has 'overlap'; choose from overlaps"):
        af.probe.measure(stream, families=["overlap"])
    with pytest.raises(InvalidInput, match="`sinks` has 2 entries for 1 texts"):
        af.probe.measure(stream, sinks=[[0], [1]])
    with pytest.raises(InvalidInput, match="give numbers of tokens from 0 to 23"):
        af.probe.measure(stream, sinks=[[24]])
    for look in (af.probe.measure, af.probe.find_sinks):
        with pytest.raises(InvalidInput, match="`stream` is"):
            look(stream.hidden[0])
    for given, words in (
        ({"quantiles": [0.5, 2.0]}, r"`quantiles` is 2.0; give a number in \[0, 1\]"),
        ({"quantiles": "half"}, "`quantiles` is 'half'; give a list of numbers"),
        ({"network": 3}, "`network` is 3; give an object with heads_of and layers"),
        ({"seed": -1}, "`seed` is -1"),
    ):
        with pytest.raises(InvalidInput, match=words):
            af.probe.measure(stream, **given)


def test_blocks_of_states_change_nothing(faults):
    """Blocks of two states of five, of which the last two overlap, give the numbers of one block."""
    stream = FlowNetwork().run(IDS)
    families = ["rank", "energy", "updates"]
    whole = af.probe.measure(stream, families=families, bootstrap=0)
    assert [*map(str, states.blocks(stream))] == [f"slice(0, {stream.states}, None)"]
    faults.replace("bytes of a block of states", 2 * 8 * states.program_size(len(IDS)) * stream.width)
    many = states.blocks(stream)
    assert {one.stop - one.start for one in many} == {2}
    assert sorted({k for one in many for k in range(one.start, one.stop)}) == [*range(stream.states)]
    found = af.probe.measure(stream, families=families, bootstrap=0)
    for name in whole:
        assert found[name].values == pytest.approx(whole[name].values, rel=1e-9, abs=1e-12, nan_ok=True), name
