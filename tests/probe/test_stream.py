"""Streams from anywhere: arrays of other packages, files, adapters; what is refused and what is noted."""

import json
import zipfile
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow.errors import InvalidInput, MissingExtra, RunError, TooLarge

RNG = np.random.default_rng(0)
LAYERS, HEADS, N, WIDTH = 3, 2, 7, 5
HIDDEN = RNG.standard_normal((LAYERS + 1, N, WIDTH))
ATTENTION = RNG.random((LAYERS, HEADS, N, N))
ATTENTION /= ATTENTION.sum(axis=-1, keepdims=True)
CAUSAL = ATTENTION * np.tri(N)
CAUSAL /= CAUSAL.sum(axis=-1, keepdims=True)
IDS = np.array([4, 4, 1, 0, 1, 2, 3])


class Tensor:
    """What of a torch tensor is used; half precision refuses to become an array, as torch's bfloat16 does."""

    def __init__(self, values, dtype="torch.float32", attached=True):
        self.values, self.dtype, self.attached = np.asarray(values), dtype, attached

    def detach(self):
        return Tensor(self.values, self.dtype, False)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.values, "torch.float32", self.attached)

    def __getitem__(self, at):
        return Tensor(self.values[at], self.dtype, self.attached)

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        if self.attached or "bfloat16" in self.dtype:
            raise TypeError("cannot convert")
        return self.values if dtype is None else self.values.astype(dtype)


SOURCES = {
    "list of layers": list(HIDDEN),
    "jax": jnp.asarray(HIDDEN),
    "torch": Tensor(HIDDEN),
    "bfloat16 of torch": Tensor(HIDDEN, "torch.bfloat16"),
    "xarray": xr.DataArray(HIDDEN.swapaxes(0, 1), dims=("token", "layer", "unit")),
}


@pytest.mark.parametrize("source", SOURCES)
def test_arrays_of_other_packages(source):
    stream = af.probe.Stream(SOURCES[source])
    assert (stream.layers, stream.width, stream.lengths, stream.one_text) == (LAYERS, WIDTH, (N,), True)
    assert stream.hidden[0] == pytest.approx(HIDDEN, rel=1e-6)  # JAX outside of 64-bit mode has float32


@pytest.mark.parametrize("names", [("layer", "head", "query", "key"), ("head", "layer", "token", "key")])
def test_attention_of_xarray_is_put_into_order(names):
    table = ATTENTION if names[0] == "layer" else ATTENTION.swapaxes(0, 1)
    stream = af.probe.Stream(HIDDEN, xr.DataArray(table, dims=names).transpose(*names[::-1]))
    assert np.array_equal(stream.attention[0], ATTENTION)


def test_half_precision_of_jax_becomes_single():
    assert af.probe.Stream(jnp.asarray(HIDDEN, jnp.bfloat16)).hidden[0].dtype == np.float32


def test_tokens_are_unit_vectors_with_a_dimension_layer():
    stream = af.probe.Stream([HIDDEN, HIDDEN[:, :4]], name="two")
    tokens = stream.tokens()
    assert (tokens.dims, tokens.positions.shape) == (("text", "layer"), (2, LAYERS + 1, N, WIDTH))
    assert tokens.present.sum(axis=-1).tolist() == [[N] * 4, [4] * 4]
    member = tokens.member(text=1, layer=2)
    assert member.positions == pytest.approx(HIDDEN[2, :4] / np.linalg.norm(HIDDEN[2, :4], axis=1, keepdims=True))
    kept = stream.tokens([np.arange(N) > 0, np.arange(4) > 1])
    assert kept.present.sum(axis=-1).tolist() == [[N - 1] * 4, [2] * 4]
    assert stream.text(1).lengths == (4,)
    assert "texts: 2, tokens: 4 to 7" in repr(stream)
    assert "two" in stream._repr_html_()


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
@pytest.mark.parametrize("texts", [1, 2])
def test_files_give_the_stream_back(tmp_path, ending, texts):
    hidden, attention, ids, labels = HIDDEN, CAUSAL, IDS, list("abcdefg")
    if texts == 2:
        short = CAUSAL[..., :4, :4] / CAUSAL[..., :4, :4].sum(axis=-1, keepdims=True)
        hidden, attention, ids, labels = [HIDDEN, HIDDEN[:, :4]], [CAUSAL, short], [IDS, IDS[:4]], [labels, labels[:4]]
    stream = af.probe.Stream(
        hidden,
        attention,
        ids,
        True,
        labels=labels,
        name="small",
        facts={"seed": 3},
        unembedding=np.eye(WIDTH),
        final_gain=np.arange(WIDTH),
    )
    path = stream.save(tmp_path / f"stream{ending}")
    again = af.probe.open_stream(path)
    for part in ("hidden", "attention", "ids"):
        assert all(np.array_equal(a, b) for a, b in zip(getattr(stream, part), getattr(again, part), strict=True))
    assert (again.name, again.causal, again.facts, again.one_text) == ("small", True, {"seed": 3}, texts == 1)
    assert again.labels[0].tolist() == list("abcdefg")
    assert np.array_equal(again.unembedding, np.eye(WIDTH))
    assert np.array_equal(again.final_gain, np.arange(WIDTH))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def everything(stream):
    """All that a stream of two texts holds, to be compared."""
    parts = (stream.hidden, stream.attention, stream.ids, stream.labels)
    return [array.tolist() for part in parts for array in part], stream.name, stream.causal, stream.facts


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_no_bit_of_a_saved_stream_turns_unnoticed(tmp_path, ending):
    """A bit turns in the header, in every array, in what the file says, in the archive around them: in each byte of a
    .safetensors, in every seventh of an .npz, which takes longer to read."""
    hidden = [np.arange(2.0 * n * 2).reshape(2, n, 2) + 1 for n in (3, 2)]
    attention = [(np.tri(n) / np.arange(1, n + 1)[:, None])[None, None] for n in (3, 2)]
    ids, labels = [np.arange(n) for n in (3, 2)], [list("abc"), list("de")]
    stream = af.probe.Stream(hidden, attention, ids, True, labels=labels, name="two", facts={"seed": 3})
    path = stream.save(tmp_path / f"stream{ending}")
    content, expected = path.read_bytes(), everything(stream)
    kept = af.probe.open_stream(path)
    assert everything(kept) == expected
    assert kept.checked
    assert "checksum: verified" in repr(kept)
    refused, places = 0, range(0, len(content), 1 if ending == ".safetensors" else 7)
    for place in places:
        altered = bytearray(content)
        altered[place] ^= 1 << place % 8
        path.write_bytes(altered)
        try:
            assert everything(af.probe.open_stream(path)) == expected, place
        except InvalidInput:
            refused += 1
    assert refused == len(places) if ending == ".safetensors" else refused > len(places) / 2  # zip has idle fields


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_a_stream_without_a_checksum_is_read_and_says_so(tmp_path, ending):
    """Arrays of another program, and what `Stream.save` wrote in earlier versions."""
    from safetensors.numpy import save_file

    path, text = tmp_path / f"stream{ending}", json.dumps({"name": "earlier", "causal": True})
    if ending == ".npz":
        np.savez(path, hidden=HIDDEN, attnflow=np.array(text))
    else:
        save_file({"hidden": HIDDEN}, path, metadata={"attnflow": text})
    stream = af.probe.open_stream(path)
    assert (stream.name, stream.causal, stream.checked) == ("earlier", True, False)
    assert "checksum: none in the file" in repr(stream)
    assert af.probe.Stream(HIDDEN).checked is None


def test_bad_files_give_one_sentence(tmp_path, faults):
    for name in ("none.npz", "x.npz", "x.safetensors"):
        if name != "none.npz":
            (tmp_path / name).write_bytes(b"PK\x03\x04nothing")
        with pytest.raises(InvalidInput, match="no file|cannot be read"):
            af.probe.open_stream(tmp_path / name)
    np.savez(tmp_path / "other.npz", states=HIDDEN)
    with pytest.raises(InvalidInput, match="has no array `hidden`, only states"):
        af.probe.open_stream(tmp_path / "other.npz")
    np.savez(tmp_path / "objects.npz", hidden=np.array([{}], dtype=object))
    with pytest.raises(InvalidInput, match="cannot be read as .npz"):
        af.probe.open_stream(tmp_path / "objects.npz")
    claims = "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 1099511627776, 8), }".ljust(117) + "\n"
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:  # 280 terabytes, and no data
        archive.writestr("hidden.npy", b"\x93NUMPY\x01\x00" + len(claims).to_bytes(2, "little") + claims.encode())
    with pytest.raises(InvalidInput, match="cannot be read as .npz"):
        af.probe.open_stream(tmp_path / "huge.npz")
    np.savez_compressed(tmp_path / "zeros.npz", hidden=np.zeros((4, 2**16, 4)))  # 8 MiB in a few kilobytes
    memory = faults.replace("memory of the machine", lambda: 2.0**20)
    with pytest.raises(TooLarge, match="the arrays of the file would take 8"):
        af.probe.open_stream(tmp_path / "zeros.npz")
    faults.replace("memory of the machine", memory)
    with pytest.raises(InvalidInput, match="`foo` is no option of a stream; use attention, ids, causal"):
        af.probe.open_stream(tmp_path / "other.npz", foo=1)
    with pytest.raises(InvalidInput, match=r"`path` is None; give a \.npz or \.safetensors file\."):
        af.probe.open_stream(None)
    with pytest.raises(InvalidInput, match="end it in .npz or .safetensors"):
        af.probe.Stream(HIDDEN).save(tmp_path / "x.bin")
    with pytest.raises(RunError, match=r"cannot write '.*x.npz' \(there is no such folder\); give another file"):
        af.probe.Stream(HIDDEN).save(tmp_path / "none" / "x.npz")
    faults.module("safetensors")
    with pytest.raises(MissingExtra, match=r"install `attnflow\[probe\]`"):
        af.probe.Stream(HIDDEN).save(tmp_path / "y.safetensors")


BAD = {
    "layers of unequal length": (([HIDDEN[0], HIDDEN[1, :4]],), "the same tokens in every layer"),
    "texts of unequal depth": (([HIDDEN, HIDDEN[:2]],), "layers and width must be the same"),
    "one layer": ((HIDDEN[0],), r"`hidden` has shape \(7, 5\)"),
    "nan": ((np.where(np.arange(WIDTH) == 2, np.nan, HIDDEN),), r"`hidden` has nan at \[0, 0, 2\]"),
    "words": (([["a"]],), "real numbers"),
    "logits": ((HIDDEN, np.log(ATTENTION)), "give the weights after the softmax"),
    "columns": ((HIDDEN, ATTENTION.swapaxes(-1, -2)), "in the order"),
    "too few layers": ((HIDDEN, ATTENTION[:1]), "has 1 layers and `hidden` 4 states"),
    "other tokens": ((HIDDEN, ATTENTION[..., :4, :4]), "for 7 tokens"),
    "looks ahead": ((HIDDEN, ATTENTION, None, True), "looks ahead"),
    "ids": ((HIDDEN, None, IDS[:3]), "give one entry for each token"),
    "real ids": ((HIDDEN, None, IDS + 0.5), "give whole numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_refusals(case):
    given, words = BAD[case]
    with pytest.raises(InvalidInput, match=words):
        af.probe.Stream(*given)


def test_a_zero_state_has_no_direction():
    states = HIDDEN.copy()
    states[1, 2] = 0.0
    stream = af.probe.Stream(states)
    with pytest.raises(InvalidInput, match=r"is zero at \[1, 2\]"):
        stream.tokens()


def test_states_whose_squares_leave_float_range_keep_their_direction():
    for scale in (1e200, 1e-200):
        np.testing.assert_allclose(
            af.probe.Stream(scale * HIDDEN).tokens().positions, af.probe.Stream(HIDDEN).tokens().positions, rtol=1e-15
        )


def test_notes():
    normalised = HIDDEN / np.linalg.norm(HIDDEN, axis=-1, keepdims=True)
    assert "states after a norm" in af.probe.Stream(3 * normalised).notes[0]
    last = np.concatenate([HIDDEN[:-1], normalised[-1:]])
    assert "after the final norm" in af.probe.Stream(last).notes[0]
    assert "causal=True for a decoder" in af.probe.Stream(HIDDEN, CAUSAL).notes[0]
    assert af.probe.Stream(HIDDEN, CAUSAL, causal=True).notes == ()
    assert "np.stack(states, axis=1)" in af.probe.Stream([HIDDEN[:1], HIDDEN[1:2]]).notes[0]


class Module:
    """A module of torch with hooks, as far as adapters use it."""

    def __init__(self, weight=None):
        self.weight, self.hooks = weight, []

    def register_forward_pre_hook(self, hook):
        self.hooks.append(hook)
        return SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def __call__(self, given):
        for hook in self.hooks:
            hook(self, (given,))


class Decoder:
    """Stands in for a decoder of transformers: the last hidden state is after the final norm; one text is padded."""

    config = SimpleNamespace(is_decoder=False, name_or_path="small")

    def __init__(self, eager=True):
        self.eager, self.gain, self.words = eager, RNG.random(WIDTH) + 0.5, RNG.standard_normal((9, WIDTH))
        self.norm, self.inner = Module(Tensor(self.gain)), Module()

    def named_modules(self):
        return [("model.norm", self.norm), ("model.layers.0.post_attention_layernorm", self.inner)]

    def get_output_embeddings(self):
        return Module(Tensor(self.words))

    def __call__(self, input_ids, attention_mask, output_hidden_states, output_attentions):
        states = np.stack([HIDDEN[:2], HIDDEN[:2] + 1.0], axis=1)
        self.inner(Tensor(states[0] + 0.5))
        self.norm(Tensor(states[1]))
        normed = self.gain * states[1] * np.sqrt(WIDTH) / np.linalg.norm(states[1], axis=-1, keepdims=True)
        table = np.stack([CAUSAL[0], CAUSAL[0]])
        return SimpleNamespace(
            hidden_states=(Tensor(states[0]), Tensor(normed)),
            attentions=(Tensor(table),) if self.eager else (None,),
            logits=Tensor(normed @ self.words.T),
        )


def test_the_adapter_of_transformers():
    model = Decoder()
    mask = np.ones((2, N))
    mask[1, 5:] = 0
    inputs = {"input_ids": Tensor(np.stack([IDS, IDS])), "attention_mask": Tensor(mask)}
    stream = af.probe.from_transformers(model, inputs, before_perceptron="post_attention_layernorm")
    assert (stream.lengths, stream.layers, stream.heads, stream.causal, stream.name) == (
        (N, 5),
        1,
        HEADS,
        True,
        "small",
    )
    assert np.array_equal(stream.hidden[0], HIDDEN[:2])  # the state before the final norm, not hidden_states[-1]
    assert np.array_equal(stream.hidden[1], HIDDEN[:2, :5] + 1.0)
    assert np.array_equal(stream.after_attention[0][0], HIDDEN[0] + 0.5)
    assert np.array_equal(stream.unembedding, model.words)
    assert np.array_equal(stream.final_gain, model.gain)
    assert (model.norm.hooks, model.inner.hooks) == ([], [])
    model.words = model.words + 1.0  # an unembedding that does not give the logits is not taken
    model.get_output_embeddings = lambda: Module(Tensor(model.words * 2))
    assert af.probe.from_transformers(model, inputs).unembedding is None
    with pytest.raises(InvalidInput, match='attn_implementation="eager"'):
        af.probe.from_transformers(Decoder(eager=False), inputs)


def test_the_adapter_of_transformer_lens():
    class Cache(dict):
        model = SimpleNamespace(cfg=SimpleNamespace(n_layers=LAYERS, model_name="lens", normalization_type="LN"))

    cache = Cache({("resid_pre", layer): Tensor(HIDDEN[layer][None]) for layer in range(LAYERS)})
    cache |= {("resid_mid", layer): Tensor(HIDDEN[layer][None] + 0.1) for layer in range(LAYERS)}
    cache |= {("pattern", layer): Tensor(CAUSAL[layer][None]) for layer in range(LAYERS)}
    cache["resid_post", LAYERS - 1] = Tensor(HIDDEN[-1][None])
    stream = af.probe.from_transformer_lens(cache, Tensor(IDS[None]))
    assert np.array_equal(stream.hidden[0], HIDDEN)
    assert np.array_equal(stream.attention[0], CAUSAL)
    assert np.array_equal(stream.after_attention[0], HIDDEN[:-1] + 0.1)
    assert (stream.name, stream.causal, stream.notes) == ("lens", True, ())
    cache.model.cfg.normalization_type = "LNPre"
    centred = HIDDEN - HIDDEN.mean(axis=-1, keepdims=True)
    cache |= {("resid_pre", layer): Tensor(centred[layer][None]) for layer in range(LAYERS)}
    cache["resid_post", LAYERS - 1] = Tensor(centred[-1][None])
    notes = af.probe.from_transformer_lens(cache, Tensor(IDS[None])).notes
    assert "fold_ln" in notes[0]
    assert "center_writing_weights" in notes[1]


def test_the_adapter_of_nnsight():
    saved = [SimpleNamespace(value=(Tensor(state[None]), "cache")) for state in HIDDEN]
    tables = [SimpleNamespace(value=Tensor(table[None])) for table in CAUSAL]
    stream = af.probe.from_nnsight(saved, tables, ids=[IDS], causal=True)
    assert np.array_equal(stream.hidden[0], HIDDEN)
    assert np.array_equal(stream.attention[0], CAUSAL)
    alone = af.probe.from_nnsight(list(HIDDEN))
    assert np.array_equal(alone.hidden[0], HIDDEN)


def test_notes_need_more_than_one_token():
    """One token has the norm of its layer, whatever that is; a zero state gets no warning of NumPy."""
    assert af.probe.Stream(HIDDEN[:, :1]).notes == ()
    assert len(af.probe.Stream(HIDDEN / np.linalg.norm(HIDDEN, axis=-1, keepdims=True)).notes) == 1
    zero = np.array(HIDDEN)
    zero[1] = 0.0
    assert af.probe.Stream(zero).notes == ()
