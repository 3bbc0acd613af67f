"""The adapters of `attnflow.probe` on the libraries themselves: a part of `campaigns/oracle.py`, in its environment.

Small models with random weights, so that nothing is fetched. A model of transformers is saved and read back by
`probe.network`, whose forward pass shares no code with it; the stream of the adapter has to be that of the network.
Prints one line of JSON: for every library its version and the largest relative error of every part of a stream.
"""

import contextlib
import importlib.metadata
import json
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers

import attnflow as af

TEXTS = ([3, 17, 5, 9, 9, 40, 2, 61, 17, 8], [7, 1, 30, 30, 12, 4])
SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
LARGE = 0.2
"""Deviation of random weights: attention is then far from uniform."""


def llama(attention: str = "eager") -> Any:
    config = transformers.LlamaConfig(
        **SIZES, num_key_value_heads=2, vocab_size=64, initializer_range=LARGE, tie_word_embeddings=False
    )
    config._attn_implementation = attention
    return transformers.LlamaForCausalLM(config).eval()


def bert() -> Any:
    config = transformers.BertConfig(**SIZES, vocab_size=64, initializer_range=LARGE)
    config._attn_implementation = "eager"
    return transformers.BertModel(config, add_pooling_layer=False).eval()


def gpt2() -> Any:
    config = transformers.GPT2Config(n_embd=32, n_layer=3, n_head=4, vocab_size=64, initializer_range=LARGE)
    config._attn_implementation = "eager"
    return transformers.GPT2LMHeadModel(config).eval()


def padded() -> dict[str, torch.Tensor]:
    """Two texts of unequal length, as a tokenizer gives them."""
    longest = max(map(len, TEXTS))
    ids = torch.tensor([[*one, *[0] * (longest - len(one))] for one in TEXTS])
    mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in TEXTS])
    return {"input_ids": ids, "attention_mask": mask}


def apart(found: Any, expected: Any) -> float:
    """The largest error, relative to the largest number."""
    one, other = np.asarray(found, float), np.asarray(expected, float)
    if one.shape != other.shape:
        raise SystemExit(f"shapes differ: {one.shape} and {other.shape}")
    return float(f"{np.abs(one - other).max() / np.abs(other).max():.2g}")


def read_back(model: Any) -> list[Any]:
    """Our streams of the texts, from the files that the model writes."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        net = af.probe.network(folder)
    return [net.run(np.array(ids)) for ids in TEXTS]


def errors(stream: Any, ours: Sequence[Any]) -> dict[str, float]:
    """The stream of an adapter against ours, one for each of its texts."""
    found: dict[str, float] = {}
    for part in ("hidden", "attention", "after_attention"):
        if (given := getattr(stream, part)) is not None:
            found[part] = max(apart(one, getattr(own, part)[0]) for one, own in zip(given, ours, strict=True))
    if stream.unembedding is not None:
        found["unembedding"] = apart(stream.unembedding, ours[0].unembedding)
        found["final_gain"] = apart(stream.final_gain, ours[0].final_gain)
    return found


def of_transformers() -> dict[str, Any]:
    """Llama and BERT against our forward passes, GPT-2 against inputs of its blocks; no attention is refused."""
    found: dict[str, Any] = {}
    with torch.no_grad():
        model = llama()
        stream = af.probe.from_transformers(model, padded(), before_perceptron="post_attention_layernorm")
        require(stream.causal and not stream.notes, stream)
        found["llama"] = errors(stream, read_back(model))
        encoder = bert()
        stream = af.probe.from_transformers(encoder, padded())
        require(not stream.causal, stream)
        found["bert"] = errors(stream, read_back(encoder))
        model, came = gpt2(), []
        for block in model.transformer.h:
            block.register_forward_pre_hook(lambda _, given: came.append(given[0]))
            block.register_forward_hook(lambda _, given, out: came.append(out[0] if isinstance(out, tuple) else out))
        one = {"input_ids": torch.tensor([TEXTS[0]])}
        stream = af.probe.from_transformers(model, one, before_perceptron="ln_2")
        require(stream.causal and stream.after_attention is not None, stream)
        blocks = np.stack([x[0].numpy() for x in [*came[::2], came[-1]]])
        found["gpt2"] = {"hidden": apart(stream.hidden[0], blocks)}
        try:
            af.probe.from_transformers(llama("sdpa"), padded())
        except af.errors.InvalidInput as error:
            found["without attention"] = str(error)
    return found


def of_transformer_lens() -> dict[str, Any]:
    """The cache of a bridge to a Llama against our forward pass; weights of GPT-2 that were processed get a note."""
    from tokenizers import Tokenizer, models
    from transformer_lens.model_bridge import TransformerBridge

    ids, words = torch.tensor([TEXTS[0]]), {str(k): k for k in range(64)}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="0")), bos_token="1", eos_token="2", pad_token="0"
    )

    def bridged(model: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            return TransformerBridge.boot_transformers(folder, hf_model=model, device="cpu")

    def looked(bridge: Any) -> Any:
        with torch.no_grad():
            return af.probe.from_transformer_lens(bridge.run_with_cache(ids)[1], ids)

    model = llama()
    ours = read_back(model)
    stream = looked(bridged(model))
    require(stream.causal and not stream.notes, stream)
    bridge = bridged(gpt2())
    require(not looked(bridge).notes, "notes on GPT-2 as it is")
    bridge.enable_compatibility_mode()
    processed = looked(bridge)
    require(any("center_writing_weights" in one for one in processed.notes), processed)
    return {"llama": errors(stream, ours[:1]), "notes on processed weights": list(processed.notes)}


def of_nnsight() -> dict[str, Any]:
    """Inputs of layers and the last output, saved in a trace, against our forward pass."""
    import nnsight

    model, ids = llama(), torch.tensor([TEXTS[0]])
    ours = read_back(model)
    wrapped = nnsight.NNsight(model)
    with wrapped.trace(ids):
        states = nnsight.save([*(layer.input for layer in wrapped.model.layers), wrapped.model.norm.input])
    stream = af.probe.from_nnsight(states, ids=[np.array(TEXTS[0])], causal=True)
    return {"llama": errors(stream, ours[:1])}


def require(holds: bool, stream: Any) -> None:
    if not holds:
        raise SystemExit(f"not as expected: {stream}")


def version(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""


def main(wanted: Sequence[str]) -> None:
    torch.manual_seed(0)
    looks = {"transformers": of_transformers, "transformer_lens": of_transformer_lens, "nnsight": of_nnsight}
    found: dict[str, Any] = {}
    for name in wanted or looks:
        try:
            found[name] = {"version": version(name), **looks[name]()}
        except ImportError as error:
            found[name] = {"missing": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
