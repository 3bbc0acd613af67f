"""What files call the weights of a network, and what they say about its sizes."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from attnflow.checks import shown
from attnflow.errors import InvalidInput
from attnflow.probe.networks.families.base import Architecture

LARGEST = {"layers": 4096, "heads": 4096, "vocabulary": 1 << 24, "width": 1 << 17, "hidden": 1 << 19, "places": 1 << 24}
"""Sizes that no network has."""
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh"}


@dataclasses.dataclass(frozen=True)
class Naming:
    """The names that one kind of file gives to weights."""

    prefix: str
    """In front of all names in some files."""
    layer: str
    """In front of the names of a layer; {} is its number."""
    inside: Mapping[str, str]
    """Our name of a weight of a layer -> theirs."""
    outside: Mapping[str, str]
    """Our name of an array outside of the layers -> theirs."""
    ignored: str
    """A regular expression of names that the forward pass does not need."""


GGUF = Naming(
    "",
    "blk.{}.",
    {
        "norm1.gain": "attn_norm.weight",
        "query": "attn_q.weight",
        "key": "attn_k.weight",
        "value": "attn_v.weight",
        "output": "attn_output.weight",
        "norm2.gain": "ffn_norm.weight",
        "gate": "ffn_gate.weight",
        "up": "ffn_up.weight",
        "outer": "ffn_down.weight",
    },
    {"words": "token_embd.weight", "final.gain": "output_norm.weight", "read-out": "output.weight"},
    r"$^",
)
LLAMA = Naming(
    "",
    "model.layers.{}.",
    {
        "norm1.gain": "input_layernorm.weight",
        "query": "self_attn.q_proj.weight",
        "key": "self_attn.k_proj.weight",
        "value": "self_attn.v_proj.weight",
        "output": "self_attn.o_proj.weight",
        "norm2.gain": "post_attention_layernorm.weight",
        "gate": "mlp.gate_proj.weight",
        "up": "mlp.up_proj.weight",
        "outer": "mlp.down_proj.weight",
    },
    {"words": "model.embed_tokens.weight", "final.gain": "model.norm.weight", "read-out": "lm_head.weight"},
    r".*rotary_emb\.inv_freq|lm_head\.weight",
)
_EMBEDDINGS = {
    "words": "embeddings.word_embeddings.weight",
    "places": "embeddings.position_embeddings.weight",
    "kind": "embeddings.token_type_embeddings.weight",
    "start.gain": "embeddings.LayerNorm.weight",
    "start.bias": "embeddings.LayerNorm.bias",
}


def _affine(**modules: str) -> dict[str, str]:
    """Matrix and bias of every module."""
    pairs = (("", ".weight"), (".bias", ".bias"))
    return {ours + ending: theirs + their for ours, theirs in modules.items() for ending, their in pairs}


def _norms(first: str, second: str) -> dict[str, str]:
    pairs = ((".gain", ".weight"), (".bias", ".bias"))
    return {f"norm{k}{ours}": name + theirs for k, name in ((1, first), (2, second)) for ours, theirs in pairs}


BERT = Naming(
    "bert.",
    "encoder.layer.{}.",
    _affine(
        query="attention.self.query",
        key="attention.self.key",
        value="attention.self.value",
        output="attention.output.dense",
        inner="intermediate.dense",
        outer="output.dense",
    )
    | _norms("attention.output.LayerNorm", "output.LayerNorm"),
    _EMBEDDINGS,
    r"pooler\..*|cls\..*|classifier\..*|embeddings\.position_ids",
)
ALBERT = Naming(
    "albert.",
    "encoder.albert_layer_groups.{}.albert_layers.0.",
    _affine(
        query="attention.query",
        key="attention.key",
        value="attention.value",
        output="attention.dense",
        inner="ffn",
        outer="ffn_output",
    )
    | _norms("attention.LayerNorm", "full_layer_layer_norm"),
    _EMBEDDINGS
    | {
        "start": "encoder.embedding_hidden_mapping_in.weight",
        "start-map.bias": "encoder.embedding_hidden_mapping_in.bias",
    },
    r"pooler\..*|predictions\..*|sop_classifier\..*|embeddings\.position_ids",
)


def of_gguf(facts: Mapping[str, Any], tied: bool) -> tuple[Architecture, Naming]:
    """The network that the keys of a GGUF file describe."""
    if (family := facts.get("general.architecture")) != "llama":
        raise InvalidInput(f"the file holds a network of the family {shown(family)}; GGUF is read of 'llama' alone.")

    def get(key: str, default: Any = None) -> Any:
        return facts.get(f"llama.{key}", default)

    heads, width = get("attention.head_count"), get("embedding_length")
    shape = make_architecture(
        family="llama",
        layers=get("block_count"),
        heads=heads,
        groups=get("attention.head_count_kv", heads),
        width=width,
        key_width=get("attention.key_length", _share(width, heads)),
        hidden=get("feed_forward_length"),
        vocabulary=get("vocab_size", len(facts.get("tokenizer.ggml.tokens", []))),
        eps=get("attention.layer_norm_rms_epsilon"),
        base=get("rope.freq_base", 1e4),
        activation="silu",
        tied=tied,
    )
    odd = {
        "rope.scaling.type": get("rope.scaling.type", "none") not in ("none", ""),
        "expert_count": bool(get("expert_count", 0)),
        "rope.dimension_count": get("rope.dimension_count", shape.key_width) != shape.key_width,
        "attention.value_length": get("attention.value_length", shape.key_width) != shape.key_width,
    }
    _refuse_odd(odd, "llama.")
    return shape, GGUF


def of_config(config: Mapping[str, Any]) -> tuple[Architecture, Naming]:
    """The network that a config.json describes."""
    kind = config.get("model_type")
    if kind not in ("llama", "bert", "albert"):
        raise InvalidInput(f"config.json names the family {shown(kind)}; use 'llama', 'bert' or 'albert'.")
    get = config.get
    heads, width = get("num_attention_heads"), get("hidden_size")
    common = {
        "layers": get("num_hidden_layers"),
        "heads": heads,
        "width": width,
        "hidden": get("intermediate_size"),
        "vocabulary": get("vocab_size"),
        "scale": get("initializer_range", 0.02),
    }
    if kind == "llama":
        rope = get("rope_parameters") or {}
        odd = {
            "hidden_act": get("hidden_act", "silu") != "silu",
            "attention_bias": bool(get("attention_bias")),
            "mlp_bias": bool(get("mlp_bias")),
            "rope_scaling": get("rope_scaling") is not None,
            "rope_parameters": not isinstance(rope, dict) or rope.get("rope_type", "default") != "default",
        }
        _refuse_odd(odd)
        shape = make_architecture(
            family="llama",
            groups=get("num_key_value_heads") or heads,
            key_width=get("head_dim") or _share(width, heads),
            eps=get("rms_norm_eps", 1e-6),
            base=rope.get("rope_theta", get("rope_theta", 1e4)),
            pairing="halves",
            activation="silu",
            tied=bool(get("tie_word_embeddings", False)),
            **common,
        )
        return shape, LLAMA
    odd = {
        "hidden_act": get("hidden_act") not in tuple(ACTIVATIONS),  # a list or table has no hash
        "position_embedding_type": get("position_embedding_type", "absolute") != "absolute",
        "is_decoder": bool(get("is_decoder")),
        "num_hidden_groups": kind == "albert" and get("num_hidden_groups", 1) != 1,
        "inner_group_num": kind == "albert" and get("inner_group_num", 1) != 1,
    }
    _refuse_odd(odd)
    shape = make_architecture(
        family="bert",
        groups=heads,
        key_width=_share(width, heads),
        eps=get("layer_norm_eps", 1e-12),
        activation=ACTIVATIONS[config["hidden_act"]],
        places=get("max_position_embeddings"),
        shared=kind == "albert",
        embedding=get("embedding_size", 128) if kind == "albert" else 0,
        **common,
    )
    return shape, BERT if kind == "bert" else ALBERT


def known_names(shape: Architecture, naming: Naming) -> tuple[dict[tuple[str, int], str], dict[str, str]]:
    """Their names by (our name, layer), and of what is outside of the layers."""
    layers = range(shape.stored_layers)
    inside = {(ours, k): naming.layer.format(k) + naming.inside[ours] for ours in shape.layer_shapes() for k in layers}
    return inside, {ours: naming.outside[ours] for ours in shape.outside_shapes()}


def is_ignored(naming: Naming, name: str) -> bool:
    """Whether the forward pass does not need a tensor of this name, its prefix taken off."""
    return re.fullmatch(naming.ignored, name) is not None


def make_architecture(**sizes: Any) -> Architecture:
    """Checked: sizes are integers in a reasonable range, and fit each other."""
    for name in ("layers", "heads", "groups", "width", "key_width", "hidden", "vocabulary", "places", "embedding"):
        least = 0 if name in ("places", "embedding") else 1
        value, most = sizes.get(name, 0 if not least else None), LARGEST.get(name, 1 << 17)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise InvalidInput(f"the file says that `{name}` is {shown(value)}; a network has {least} to {most}.")
    for name in ("eps", "base", "scale"):
        value = sizes.get(name, 1.0)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e12:
            raise InvalidInput(f"the file says that `{name}` is {shown(value)}; a network has a positive number.")
    if sizes["heads"] % sizes["groups"] or (sizes["family"] == "llama" and sizes["key_width"] % 2):
        raise InvalidInput(
            f"the file says that {sizes['heads']} heads of width {sizes['key_width']} share {sizes['groups']} keys, "
            "which do not fit each other."
        )
    return Architecture(**sizes)


def _share(width: Any, heads: Any) -> Any:
    fits = isinstance(width, int) and isinstance(heads, int) and heads > 0 and width % heads == 0
    return width // heads if fits else None


def _refuse_odd(odd: Mapping[str, bool], prefix: str = "") -> None:
    for name, is_odd in odd.items():
        if is_odd:
            raise InvalidInput(f"the file sets `{prefix}{name}` to something that this forward pass does not have.")
