"""Streams from other packages. Nothing of them is imported: each function reads attributes of what it is given."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.probe.arrays import as_array, as_reals
from attnflow.probe.stream import Stream

FINAL_NORMS = ("model.norm", "transformer.ln_f", "ln_f", "norm", "model.final_layernorm", "gpt_neox.final_layer_norm")
"""Where decoders of transformers keep the norm after the last layer."""
NEAR = 1e-2
"""Relative error of logits above which an unembedding is not the one of the model; half precision has three digits."""


def from_transformers(model: Any, inputs: Mapping[str, Any], *, before_perceptron: str | None = None) -> Stream:
    """The stream of a model of Hugging Face transformers at `inputs`, what its tokenizer returns as tensors.

    Load the model with `attn_implementation="eager"`: other implementations return no attention. `hidden_states[-1]`
    of decoders is after the final norm; the state before it is taken from that norm. Padding is left out by
    `attention_mask`. `before_perceptron` is the name, inside each layer, of a norm that receives the residual stream
    after attention: "post_attention_layernorm" in Llama, "ln_2" in GPT-2; not so in Gemma 2.
    """
    modules, kept, middle = dict(model.named_modules()), [], {}
    final = next((modules[name] for name in FINAL_NORMS if name in modules), None)
    hooks = [] if final is None else [final.register_forward_pre_hook(lambda _, given: kept.append(given[0]))]
    wanted = [name for name in modules if before_perceptron and name.endswith(f".{before_perceptron}")]
    for name in wanted:
        hooks.append(modules[name].register_forward_pre_hook(lambda _, given, at=name: middle.update({at: given[0]})))
    try:
        out = model(**inputs, output_hidden_states=True, output_attentions=True)
    finally:
        for hook in hooks:
            hook.remove()
    if not out.attentions or out.attentions[0] is None:
        raise InvalidInput('the model returned no attention; load it with attn_implementation="eager".')
    states = [*out.hidden_states[:-1], kept[-1] if kept else out.hidden_states[-1]]
    causal = bool(getattr(model.config, "is_decoder", False) or kept)
    mask = inputs.get("attention_mask")
    parts = _texts(states, out.attentions, inputs["input_ids"], mask, [middle[name] for name in wanted])
    read = _read_out(model, final, states[-1], getattr(out, "logits", None))
    name = str(getattr(model.config, "name_or_path", "") or type(model).__name__)
    return Stream(**parts, causal=causal, **read, name=name)


def from_transformer_lens(cache: Any, ids: Any, *, causal: bool = True) -> Stream:
    """The stream of an ActivationCache of TransformerLens; `ids` are the tokens that the model was run on.

    Load the model by `from_pretrained_no_processing`: folded layer norms and centred weights change every cosine.
    """
    count = cache.model.cfg.n_layers
    states = [cache["resid_pre", layer] for layer in range(count)] + [cache["resid_post", count - 1]]
    middle = [cache["resid_mid", layer] for layer in range(count)]
    parts = _texts(states, [cache["pattern", layer] for layer in range(count)], ids, None, middle)
    stream = Stream(**parts, causal=causal, name=str(getattr(cache.model.cfg, "model_name", "")))
    notes = []
    if str(getattr(cache.model.cfg, "normalization_type", "")).endswith("Pre"):
        notes.append("layer norms were folded into weights (fold_ln); load the model without processing.")
    means = max(float(np.abs(one.mean(axis=-1)).max() / np.abs(one).max()) for one in stream.hidden)
    if means < 1e-5:
        notes.append("the mean over coordinates is 0 (center_writing_weights), which changes every raw cosine.")
    stream.notes = (*stream.notes, *notes)
    return stream


def from_nnsight(hidden: Sequence[Any], attention: Sequence[Any] | None = None, **options: Any) -> Stream:
    """The stream of values that were saved in a trace of nnsight, one a layer.

    `hidden` are inputs of the layers and the output of the last one, each (text, token, d) or (token, d); `attention`
    are (text, head, token, token). Saved proxies give their `value`; of a tuple, the output of most layers, the first
    entry is taken. `options` are those of `Stream`; ids, labels and after_attention as for one stream.
    """

    def value(saved: Any) -> Any:
        saved = getattr(saved, "value", saved)
        return as_reals("hidden", saved[0] if isinstance(saved, tuple) else saved)

    states = [value(one) for one in hidden]
    tables = None if attention is None else [value(one) for one in attention]
    if states[0].ndim == 2:
        return Stream(states, tables, **options)
    return Stream(np.stack(states, axis=1), None if tables is None else np.stack(tables, axis=1), **options)


def _texts(states: Any, attention: Any, ids: Any, mask: Any, middle: Any) -> dict[str, Any]:
    """Arguments of `Stream` from arrays with the batch first; padding is left out."""
    hidden = np.stack([as_reals("hidden", one) for one in states], axis=1)
    tables = np.stack([as_reals("attention", one) for one in attention], axis=1)
    given = as_array("ids", ids)
    kept = np.ones(given.shape, bool) if mask is None else as_array("attention_mask", mask).astype(bool)
    after = np.stack([as_reals("after_attention", one) for one in middle], axis=1) if middle else None
    return {
        "hidden": [one[:, rows] for one, rows in zip(hidden, kept, strict=True)],
        "attention": [one[:, :, rows][..., rows] for one, rows in zip(tables, kept, strict=True)],
        "ids": [one[rows] for one, rows in zip(given, kept, strict=True)],
        "after_attention": None if after is None else [one[:, rows] for one, rows in zip(after, kept, strict=True)],
    }


def _read_out(model: Any, final: Any, state: Any, logits: Any) -> dict[str, Any]:
    """Rows of words and the gain of the final norm, if they give the logits of the model; else nothing."""
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if head is None or logits is None or getattr(final, "weight", None) is None:
        return {}
    words, gain = as_reals("unembedding", head.weight), as_reals("gain", final.weight)
    x, wanted = as_reals("hidden", state)[0, -1], as_reals("logits", logits)[0, -1]
    found = words @ (gain * x * np.sqrt(len(x)) / np.linalg.norm(x))
    near = np.abs(found - wanted).max() <= NEAR * np.abs(wanted).max()
    return {"unembedding": words, "final_gain": gain} if near else {}
