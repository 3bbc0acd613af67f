"""A small random network in every format, and what its layers are called elsewhere."""

import functools
import json
from types import SimpleNamespace

import numpy as np

from attnflow.probe.networks import random_network, save_network
from attnflow.probe.networks.families.names import ALBERT, BERT, GGUF, LLAMA, known_names
from tests.probe import hostile

SIZES = {"layers": 3, "heads": 4, "width": 32, "vocabulary": 300}
IDS = np.random.default_rng(5).integers(0, 256, 12)


@functools.cache
def small(family, dtype="float64"):
    return random_network(family, seed=3, dtype=dtype, **SIZES)


def states_of(net, ids=IDS, **options):
    """The arrays of one text."""
    stream = net.run(ids, **options)
    parts = ("hidden", "after_attention", "attention", "ids", "labels")
    return SimpleNamespace(
        stream=stream,
        facts=stream.facts,
        unembedding=stream.unembedding,
        **{name: getattr(stream, name)[0] for name in parts},
    )


def renamed(net, naming, prefix=""):
    """The arrays of a network as a file of this naming has them."""
    shape = net.architecture
    inside, outside = known_names(shape, naming)
    found = {prefix + theirs: net.weights_of(k)[ours] for (ours, k), theirs in inside.items()}
    for ours, theirs in outside.items():
        values = net.outside(ours)
        found[prefix + theirs] = np.stack([values, values + 1]) if ours == "kind" else values
    return found


def halves(net, arrays):
    """Rows of Q and K from neighbours, as we have them, to halves, as transformers has them."""
    k = net.architecture.key_width
    order = np.concatenate([np.arange(0, k, 2), np.arange(1, k, 2)])
    for name, values in arrays.items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            arrays[name] = values.reshape(-1, k, values.shape[1])[:, order].reshape(values.shape)
    return arrays


def facts(net):
    """The keys of a GGUF file, with the bytes as words."""
    shape = net.architecture
    return {
        "general.architecture": "llama",
        "llama.block_count": shape.layers,
        "llama.embedding_length": shape.width,
        "llama.feed_forward_length": shape.hidden,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": shape.groups,
        "llama.attention.layer_norm_rms_epsilon": shape.eps,
        "llama.vocab_size": shape.vocabulary,
        "llama.rope.freq_base": shape.base,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": ["<end>", "a", "b", "c", "ab", "Ġ", "Ġab", "1", "2"],
        "tokenizer.ggml.merges": ["a b", "Ġ ab"],
        "tokenizer.ggml.token_type": [3] + 8 * [1],
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.bos_token_id": 0,
    }


def config(net, kind):
    """The config.json of a network."""
    shape = net.architecture
    found = {
        "model_type": kind,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "hidden_size": shape.width,
        "intermediate_size": shape.hidden,
        "vocab_size": shape.vocabulary,
    }
    if kind == "llama":
        more = {"num_key_value_heads": shape.groups, "rms_norm_eps": shape.eps, "tie_word_embeddings": True}
    else:
        more = {"hidden_act": "gelu", "layer_norm_eps": shape.eps, "max_position_embeddings": shape.places}
    return found | more | ({"embedding_size": shape.embedding} if kind == "albert" else {})


def folder(where, family, form):
    """A folder with a small network as another program would have saved it."""
    from safetensors.numpy import save_file

    net = small(family)
    where.mkdir(parents=True)
    naming, prefix = {"llama": (LLAMA, ""), "bert": (BERT, ""), "albert": (ALBERT, "albert.")}[family]
    if form == "gguf":
        (where / "model.gguf").write_bytes(hostile.gguf_file(facts(net), renamed(net, GGUF)))
        return where
    arrays = renamed(net, naming, prefix)
    if family == "llama":
        arrays = halves(net, arrays)
    (where / "config.json").write_text(json.dumps(config(net, family)))
    if form == "safetensors":
        save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, where / "model.safetensors")
    else:
        (where / "pytorch_model.bin").write_bytes(hostile.torch_file(arrays, legacy=form == "legacy"))
    return where


def wholes(where):
    """Whole files of all formats, small enough to be mutated many times: name -> bytes."""
    tiny = random_network("llama", layers=1, heads=2, width=32, vocabulary=8, seed=1)
    save_network(tiny, where / "own.safetensors")
    arrays = renamed(tiny, GGUF)
    encoder = random_network("albert", layers=2, heads=2, width=4, vocabulary=8, seed=1)
    tensors = renamed(encoder, ALBERT, "albert.")
    (where / "config.json").write_text(json.dumps(config(encoder, "albert")))
    return {
        "safetensors": (where / "own.safetensors").read_bytes(),
        "gguf": hostile.gguf_file(facts(tiny), arrays),
        "torch": hostile.torch_file(tensors),
        "torch-legacy": hostile.torch_file(tensors, legacy=True),
    }
