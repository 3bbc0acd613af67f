"""Networks: a layer and its field are one map, every format gives one network, nulls take away what they say."""

import json
import tracemalloc

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.flows.methods.layer_updates import Renormalise
from attnflow.probe.networks import network, random_network, save_network
from tests import kit
from tests.probe.small import IDS, SIZES, folder, small, states_of

FAMILIES = ("llama", "bert", "albert")
ROUNDING = 2e-12
"""Relative to the largest coordinate: sums of at most 64 products of numbers of order 1, in float64, some ten of them a
layer and three layers, whose norms and softmax magnify errors by less than 10: 64 * 30 * 10 * 1.1e-16 = 2e-12."""


def relative(found, expected):
    return np.abs(np.asarray(found) - expected).max() / np.abs(expected).max()


@pytest.fixture(scope="module", params=FAMILIES)
def net(request):
    return small(request.param)


@pytest.fixture(scope="module")
def states(net):
    return states_of(net)


def test_states_have_the_shapes_of_the_contract(net, states):
    n, d = len(IDS), SIZES["width"]
    assert states.hidden.shape == (4, n, d)
    assert states.after_attention.shape == (3, n, d)
    assert states.attention.shape == (3, 4, n, n)
    assert np.abs(states.attention.sum(axis=-1) - 1).max() < 1e-14
    assert states.stream.causal is net.causal is (net.architecture.family == "llama")
    assert (np.triu(states.attention[0, 0], 1) == 0).all() == net.causal
    assert states.ids.tolist() == IDS.tolist()
    assert len(states.labels) == n
    assert states.stream.name == net.name
    assert states.stream.facts == net.facts
    assert (net.layers, net.heads, net.width) == (3, 4, 32)


def test_a_layer_is_one_step_of_its_field(net, states):
    """Two routes that share no code: the forward pass, and `Alternate` over fields; attention, then perceptron."""
    method = af.Alternate(1.0, update=Renormalise(), sublayers=2)
    for k in (0, 2):
        tokens = af.Tokens(states.hidden[k], space=af.Euclidean(net.width))
        frames = kit.frames(net.field(k), tokens, 1.0, save=2, method=method)
        assert relative(frames[1], states.after_attention[k]) < ROUNDING
        assert relative(frames[2], states.hidden[k + 1]) < ROUNDING


def test_heads_are_those_of_the_field(net, states):
    """Attention weights from the factored matrices: softmax of x^T Q^T R_(j - i) K y / sqrt(d_k) + biases.

    R_p turns pair k of coordinates by the angle p base^(-k/pairs) in the family Llama; the others have no R.
    """
    heads, shape = net.heads_of(1), net.architecture
    assert heads.query.shape == heads.key.shape == heads.value.shape == (4, 8, 32)
    assert heads.output.shape == (4, 32, 8)
    assert heads.query.dtype == np.float64
    own = net.weights_of(1)
    x = states.hidden[1]
    if net.causal:  # the first token sees itself alone, and stands at place 0
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + shape.eps) * own["norm1.gain"]
        change = sum(o @ v @ x[0] for o, v in zip(heads.output, heads.value, strict=True))
        assert relative(states.hidden[1][0] + change, states.after_attention[1][0]) < ROUNDING
        assert (heads.key[0] == heads.key[1]).all()  # two heads share their keys
        assert (heads.query[0] != heads.query[1]).any()
        angles = np.arange(len(x))[:, None] * shape.base ** (-np.arange(4) / 4)

        def turned(vectors):
            pairs = np.stack(
                np.split(vectors, 2, axis=-1) if shape.pairing == "halves" else [vectors[..., ::2], vectors[..., 1::2]]
            )
            first, second = pairs
            return np.concatenate(
                [first * np.cos(angles) - second * np.sin(angles), first * np.sin(angles) + second * np.cos(angles)],
                axis=-1,
            )

        logits = turned(x @ heads.query.mT) @ turned(x @ heads.key.mT).mT / np.sqrt(8)
        weights = np.exp(logits) * np.tri(len(x))
        assert relative(weights / weights.sum(-1, keepdims=True), states.attention[1]) < ROUNDING
        return
    bias = {name: own[f"{name}.bias"].reshape(4, 1, 8).astype(float) for name in ("query", "key")}
    query, key = (x @ getattr(heads, name).mT + bias[name] for name in ("query", "key"))
    weights = np.exp(query @ key.mT / np.sqrt(8))
    assert relative(weights / weights.sum(-1, keepdims=True), states.attention[1]) < ROUNDING


def test_a_shared_layer_is_iterated_past_its_depth():
    net = small("albert")
    deep = states_of(net, depth=7)
    assert (deep.hidden[:4] == states_of(net).hidden).all()
    tokens = af.Tokens(deep.hidden[0], space=af.Euclidean(net.width))
    method = af.Alternate(1.0, update=Renormalise(), sublayers=2)
    after = kit.frames(net.field(0), tokens, 7.0, save=14, method=method)
    assert relative(after[::2], deep.hidden) < 10 * ROUNDING  # seven layers
    for depth, words in ((0, "`depth` is 0"), (1.5, "`depth` is 1.5")):
        with pytest.raises(InvalidInput, match=words):
            net.run(IDS, depth=depth)
    with pytest.raises(InvalidInput, match="layers of random llama, seed 3 differ"):
        small("llama").run(IDS, depth=2)


def test_float32_is_float64_to_its_rounding(net, states):
    """5e-6 is 40 eps of float32: three layers of sums of 64 products."""
    single = small({True: "llama", False: "albert" if net.architecture.shared else "bert"}[net.causal], "float32")
    found = states_of(single)
    assert found.hidden.dtype == found.attention.dtype == np.float32
    assert 0 < relative(found.hidden, states.hidden) < 5e-6


FORMATS = [
    ("llama", "gguf"),
    ("llama", "safetensors"),
    ("bert", "safetensors"),
    ("bert", "legacy"),
    ("albert", "zip"),
    ("albert", "legacy"),
]


@pytest.mark.parametrize(("family", "form"), FORMATS)
def test_every_format_gives_the_same_network(tmp_path, family, form):
    """As GGUF, transformers and torch save it, and in our own format: the same states, bit by bit, or to the rounding of
    `base` and `eps` in float32, and of the other order of the pairs."""
    read = network(folder(tmp_path / "net", family, form), dtype="float64")
    expected = states_of(small(family))
    found = states_of(read)
    assert relative(found.hidden, expected.hidden) < (1e-7 if form == "gguf" else ROUNDING)
    assert found.facts["format"] == {"zip": "torch", "legacy": "torch"}.get(form, form)
    assert len(found.facts["sha256"]) == 64
    own = network(save_network(read, tmp_path / "own.safetensors"), dtype="float64")
    assert own.architecture == read.architecture
    assert (states_of(own).hidden == found.hidden).all()
    if family == "llama":
        assert relative(own.unembedding, small(family).unembedding) < 1e-7
        last = expected.hidden[-1]
        final = last / np.sqrt((last**2).mean(axis=-1, keepdims=True)) * small(family).outside("final.gain")
        logits = final @ small(family).outside("words").T
        gain, words = expected.stream.final_gain, expected.unembedding
        assert relative(gain * last / np.sqrt((last**2).mean(-1, keepdims=True)) @ words.T, logits) < 1e-6
    else:
        assert found.unembedding is None


# -- nulls -------------------------------------------------------------------------------------------------------------


def test_nulls_take_away_what_they_say(net, states):
    trained, shape = net.weights_of(1), net.architecture
    for kind in ("permuted", "init"):
        null = net.null(kind, seed=4)
        own = null.weights_of(1)
        again, other = net.null(kind, seed=4).weights_of(1), net.null(kind, seed=5).weights_of(1)
        for name, values in own.items():
            assert values.shape == trained[name].shape
            assert (values == again[name]).all()
            if name.endswith((".gain", ".bias")):
                same = trained[name] if kind == "permuted" else float(name.endswith(".gain"))
                assert (values == same).all()
                continue
            assert (values != other[name]).any()
            assert (values != trained[name]).any()
            if kind == "permuted":
                assert (np.sort(values, axis=None) == np.sort(trained[name], axis=None)).all()
            else:  # 5 standard errors of the deviation of so many normal numbers
                assert abs(values.std() / shape.scale - 1) < 5 / np.sqrt(2 * values.size)
        embedded = states_of(null).hidden[0]
        assert (embedded == states.hidden[0]).all() == (kind == "permuted")
        assert null.facts["null"] == kind
        assert null.name == f"{net.name}, {kind}, seed 4"
        assert (not shape.shared and (null.weights_of(0)["query"] != own["query"]).any()) or shape.shared


def test_halves_of_a_layer_are_left_out(net, states):
    x, is_pre = states.hidden[0], net.architecture.family == "llama"
    attention = states_of(net.null("attention only"))
    assert (attention.after_attention[0] == states.after_attention[0]).all()
    perceptron = states_of(net.null("perceptron only"))
    if is_pre:
        assert (attention.hidden[1] == states.after_attention[0]).all()
        assert (perceptron.after_attention[0] == x).all()
        return

    def normed(x, k):
        own = net.weights_of(0)
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True)) * own[f"norm{k}.gain"] + own[f"norm{k}.bias"]

    assert relative(attention.hidden[1], normed(states.after_attention[0], 2)) < ROUNDING
    assert relative(perceptron.after_attention[0], normed(x, 1)) < ROUNDING
    norms = states_of(net.null("norms only"))
    assert relative(norms.hidden[1], normed(normed(x, 1), 2)) < ROUNDING
    tokens = af.Tokens(x, space=af.Euclidean(net.width))
    method = af.Alternate(1.0, update=Renormalise(), sublayers=2)
    frames = kit.frames(net.null("norms only").field(0), tokens, 1.0, save=2, method=method)
    assert relative(frames[2], norms.hidden[1]) < ROUNDING
    for kind, zero in (("biases zero", ".bias"), ("norm biases zero", ("norm1.bias", "norm2.bias"))):
        for name, values in net.null(kind).weights_of(0).items():
            assert (values == (0 if name.endswith(zero) else net.weights_of(0)[name])).all()


def test_a_null_keeps_no_copy_of_the_weights():
    """Made layer by layer: what is held while a null of 16 layers runs is a few blocks, not the network again."""
    net = random_network("bert", layers=16, heads=2, width=128, vocabulary=16, seed=0)
    whole = sum(values.nbytes for k in range(16) for values in net.weights_of(k).values())
    null = net.null("permuted")
    tracemalloc.start()
    try:
        for k in range(16):
            null.weights_of(k)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < whole / 4  # one layer and a half: permutations hold a copy of a matrix


def test_nulls_that_a_family_lacks_are_refused():
    llama = small("llama")
    assert llama.nulls == ("permuted", "init", "attention only", "perceptron only")
    assert set(small("bert").nulls) - set(llama.nulls) == {"norms only", "norm biases zero", "biases zero"}
    for kind, words in (("norms only", "no token moves"), ("biases zero", "no biases"), ("frozen", "use one of 'perm")):
        with pytest.raises(InvalidInput, match=words):
            llama.null(kind)
    with pytest.raises(InvalidInput, match="is a null already"):
        llama.null("init").null("permuted")
    with pytest.raises(InvalidInput, match="`seed` is -1"):
        llama.null("init", seed=-1)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random_network("gpt"), "`family` is 'gpt'; use one of 'llama', 'bert', 'albert'"),
        (lambda: random_network(width=30), "`width` is 30, which 4 heads cannot share; give a multiple of 8"),
        (lambda: random_network(dtype="float16"), "`dtype` is 'float16'"),
        (lambda: small("llama").run([]), "`ids` is"),
        (lambda: small("llama").run([[1, 2]]), "`ids` is"),
        (lambda: small("llama").run([0.5]), "`ids` is"),
        (lambda: small("llama").run([0, 300]), "`ids` go from 0 to 300; random llama, seed 3 has 0 to 299"),
        (lambda: small("llama").run("  "), "`text` is"),
        (lambda: small("bert").run([1] * 513), "has 513 tokens, but random bert, seed 3 knows 512 places"),
        (lambda: small("llama").field(3), "`layer` is 3, but .* has the layers 0 to 2"),
        (lambda: small("llama").heads_of(-1), "`layer` is -1"),
        (lambda: small("llama").outside("places"), "`name` is 'places'; .* has 'words', 'final.gain'"),
        (lambda: random_network(vocabulary=8).encode("a"), "has 8 ids and no words"),
        (lambda: network(3), "`which` is 3"),
    ],
)
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_random_networks_by_name_and_by_bytes():
    net = network("random-bert", seed=7)
    assert (net.weights_of(0)["query"] == random_network("bert", seed=7).weights_of(0)["query"]).all()
    assert net.encode("ab é").tolist() == [97, 98, 32, 195, 169]
    assert net.words([97, 195]) == ("a", "<195>")
    assert repr(net) == "<random bert, seed 7: bert, 4 layers, 4 heads, width 32>"


@pytest.mark.parametrize(
    ("family", "change", "words"),
    [
        ("bert", {"model_type": "gpt2"}, "names the family 'gpt2'"),
        ("bert", {"hidden_act": "relu"}, "sets `hidden_act`"),
        ("bert", {"hidden_act": ["gelu"]}, "sets `hidden_act`"),
        ("bert", {"num_hidden_layers": 2}, "has 16 tensors that the family bert does not have"),
        ("bert", {"num_hidden_layers": 4}, "lacks the weight `query`"),
        ("bert", {"num_hidden_layers": 1e9}, "`layers` is 1000000000.0"),
        ("bert", {"hidden_size": 64}, "does not fit its description"),
        ("bert", {"layer_norm_eps": "small"}, "`eps` is 'small'"),
        ("bert", {"num_attention_heads": 5}, "`key_width` is None"),
        ("llama", {"rope_scaling": {"factor": 2}}, "sets `rope_scaling`"),
        ("llama", {"num_key_value_heads": 3}, "share 3 keys"),
        ("llama", {"tie_word_embeddings": False}, "lacks the weight `read-out`"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(tmp_path, family, change, words):
    where = folder(tmp_path / "net", family, "safetensors")
    config = json.loads((where / "config.json").read_text())
    (where / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InvalidInput, match=words):
        network(where)


def test_a_description_that_is_no_json_is_refused(tmp_path):
    where = folder(tmp_path / "net", "bert", "safetensors")
    for content, words in (
        ("{", "is no JSON"),
        ("[1]", "is no table of JSON"),
        ("[" * 100_000, "is no JSON"),
        (" " * 2_000_000, "it has 2 MB, more than 1.05 MB"),
    ):
        (where / "config.json").write_text(content)
        with pytest.raises(InvalidInput, match=words):
            network(where)
    (where / "config.json").unlink()
    with pytest.raises(InvalidInput, match="which says what the weights are"):
        network(where)


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    net = random_network("bert", layers=1, heads=2, width=8, vocabulary=8)
    net.outside("words")[3, 1] = np.nan
    with pytest.raises(InvalidInput, match="`words` that are not finite"):
        network(save_network(net, tmp_path / "a.safetensors"))


def test_without_a_tokenizer_tokens_are_shown_by_their_ids_and_a_note_says_so(tmp_path):
    net = network(folder(tmp_path / "net", "bert", "safetensors"))
    stream = net.run("ab")
    assert stream.labels[0].tolist() == ["<97>", "<98>"]
    assert any("has no tokenizer" in note for note in stream.notes)
    comparison = af.probe.compare(net, ["ab ba", "bab"], nulls=(), shuffles=1, families=["norms"])
    assert "has no tokenizer" in str(comparison)
    assert not any("tokenizer" in note for note in random_network(layers=1).run("ab").notes)


@pytest.mark.slow
def test_no_bit_of_a_saved_network_turns_unnoticed(tmp_path):
    """In every eleventh byte a bit turns; a file of an earlier version has no checksum, is read, and says so."""
    net = random_network("albert", layers=1, heads=1, width=2, hidden=1, vocabulary=1)
    path = save_network(net, tmp_path / "a.safetensors")
    assert network(path).facts["checked"] is True
    content = path.read_bytes()
    for place in range(0, len(content), 11):
        altered = bytearray(content)
        altered[place] ^= 1 << place % 8
        path.write_bytes(altered)
        with pytest.raises(InvalidInput):
            network(path)
    path.write_bytes(content)
    with safetensors.safe_open(path, framework="numpy") as stored:
        arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (no mapping)
        header = json.loads(stored.metadata()["attnflow"])
    del header["attnflow_sha256"]
    safetensors.numpy.save_file(arrays, path, metadata={"attnflow": json.dumps(header)})
    assert network(path).facts["checked"] is False


@pytest.mark.parametrize("entry", ["family", "activation", "pairing"])
def test_headers_of_another_type_are_refused(tmp_path, entry):
    """The header of a file in our own format says [] where a word belongs."""
    path = save_network(random_network("llama", layers=1, heads=2, width=8, vocabulary=8), tmp_path / "a.safetensors")
    with safetensors.safe_open(path, framework="numpy") as stored:
        arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (no mapping)
        header = json.loads(stored.metadata()["attnflow"])
    safetensors.numpy.save_file(arrays, path, metadata={"attnflow": json.dumps(header | {entry: []})})
    with pytest.raises(InvalidInput, match=r"names the family or parts \[.*\[\]"):
        network(path)


def test_texts_of_gguf_and_of_reactions(tmp_path):
    net = network(folder(tmp_path / "net", "llama", "gguf"))
    ids = net.encode("ab ab21 c")
    assert net.words(ids) == (
        "<end>",
        "ab",
        " ab",
        "2",
        "1",
        " ",
        "c",
    )  # digits stand alone, the first token comes first
    where = folder(tmp_path / "reactions", "albert", "zip")
    (where / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "C", "Cl", ">>", "[nH]", "%12", "("])
    )
    net = network(where)
    assert net.words(net.encode("C(Cl)[nH]%12 >>C")) == (
        "[CLS]",
        "C",
        "(",
        "Cl",
        "[UNK]",
        "[nH]",
        "%12",
        ">>",
        "C",
        "[SEP]",
    )
    (where / "vocab.txt").write_text("C\n")
    with pytest.raises(InvalidInput, match=r"lacks the words \[CLS\], \[SEP\], \[UNK\]"):
        network(where)


@pytest.mark.parametrize("family", ["llama", "albert"])
def test_a_null_whose_weights_are_held_is_the_same(family):
    null = small(family).null("init", 4)
    for one, other in zip(null.run(IDS).hidden[0], null.held().run(IDS).hidden[0], strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(InvalidInput, match="is a null already"):
        null.held().null("init")


def test_absent_rows_change_nothing():
    """Lengths below, at and above one of a program: every token of a decoder's prefix is that of the whole text."""
    net = small("llama")
    ids = np.random.default_rng(8).integers(0, 256, 40)
    whole = net.run(ids).hidden[0]
    for n in (15, 16, 17, 32, 33):
        # rounding of float64 through 3 layers, whose sums have 33 terms at most: 1e-13 of entries of order 1
        np.testing.assert_allclose(net.run(ids[:n]).hidden[0], whole[:, :n], rtol=1e-10, atol=1e-10)
