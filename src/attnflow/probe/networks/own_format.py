"""Networks in a format of our own: safetensors with a line of JSON, and random networks in it.

The metadata of the file have the entry `attnflow`: a JSON object with the fields of `Architecture` and a `name`. The
weights have our names: `layers.NAME` with the layer as first axis, and `outside.NAME`. The entry `attnflow_sha256` is
the checksum of all this; earlier versions did not write it.
"""

import dataclasses
import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.checks import shown, whole
from attnflow.errors import InvalidInput
from attnflow.parsing import parse_json
from attnflow.probe.arrays import CHECKSUM, checksum
from attnflow.probe.networks.families.base import Architecture, Stacked, is_matrix
from attnflow.probe.networks.families.names import make_architecture
from attnflow.probe.networks.files.base import AbstractWeights
from attnflow.probe.networks.model import Network
from attnflow.probe.stored import write_safetensors
from attnflow.text.tokenizers import Bytes
from attnflow.wording import fresh_path

FAMILIES = ("llama", "bert", "albert")
PLACES = 512
"""Places that a random encoder has."""


def random_network(
    family: str = "llama",
    *,
    layers: int = 4,
    heads: int = 4,
    width: int = 32,
    hidden: int | None = None,
    vocabulary: int = 256,
    seed: int = 0,
    dtype: Any = "float32",
) -> Network:
    """A network with random weights, which needs no file: for tests, and as a start.

    Matrices are N(0, 1/columns), gains N(1, 0.01), biases N(0, 0.01); the numbers of a weight come from
    `numpy.random.default_rng([seed, crc32(its name)])`. Not a fresh initialisation of a family: that is
    `null("init")`.

    Arguments:
        family: "llama" (pairs of heads share their keys), "bert", or "albert" (one layer, applied `layers` times).
        width: a multiple of `heads`; in the family Llama, of twice their number.
        hidden: width of the perceptron; twice `width` if left out.
    """
    if family not in FAMILIES:
        raise InvalidInput(f"`family` is {shown(family)}; use one of {', '.join(map(repr, FAMILIES))}.")
    seed, heads, width = whole("seed", seed, 0), whole("heads", heads, 1), whole("width", width, 1)
    unit = 2 * heads if family == "llama" else heads
    if width % unit:
        raise InvalidInput(f"`width` is {width}, which {heads} heads cannot share; give a multiple of {unit}.")
    is_llama, is_albert = family == "llama", family == "albert"
    shape = make_architecture(
        family="llama" if is_llama else "bert",
        layers=whole("layers", layers, 1),
        heads=heads,
        groups=heads // 2 if is_llama and heads % 2 == 0 else heads,
        width=width,
        key_width=width // heads,
        hidden=2 * width if hidden is None else whole("hidden", hidden, 1),
        vocabulary=whole("vocabulary", vocabulary, 1),
        eps=1e-5 if is_llama else 1e-12,
        activation="silu" if is_llama else "gelu",
        shared=is_albert,
        embedding=max(2, width // 2) if is_albert else 0,
        places=0 if is_llama else PLACES,
    )

    def drawn(name: str, size: tuple[int, ...]) -> np.ndarray:
        numbers = np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(size)
        if is_matrix(name):
            return (numbers / np.sqrt(size[-1])).astype(np.float32)
        return (0.1 * numbers + name.endswith(".gain")).astype(np.float32)

    stacked = {name: drawn(name, (shape.stored_layers, *size)) for name, size in shape.layer_shapes().items()}
    outside = {name: drawn(f"outside {name}", size) for name, size in shape.outside_shapes().items()}
    name = f"random {family}, seed {seed}"
    facts = {"network": name, "family": shape.family, "format": "random", "seed": seed}
    return Network(name, shape, Stacked(stacked, outside), Bytes(name, shape.vocabulary), facts, dtype)


def save_network(network: Network, path: str | os.PathLike[str]) -> Path:
    """Write all weights of a network, or of a null, into one file, which `network(path)` reads; returns the path.

    Its tokenizer is not kept: the network that is read back takes ids or reads texts as bytes, and shows tokens by
    their ids.
    """
    shape, target = network.architecture, fresh_path("path", Path(path))
    tables = [network.weights_of(number) for number in range(shape.stored_layers)]
    arrays = {f"layers.{name}": np.stack([table[name] for table in tables]) for name in tables[0]}
    arrays |= {f"outside.{name}": network.outside(name) for name in shape.outside_shapes()}
    text = json.dumps({**dataclasses.asdict(shape), "name": network.name, CHECKSUM: True})
    write_safetensors(target, arrays, {"attnflow": text, CHECKSUM: checksum(text, arrays)})
    return target


def is_own(weights: AbstractWeights) -> bool:
    """Whether a file is in our own format."""
    return weights.form == "safetensors" and "attnflow" in weights.facts


def is_checked(weights: AbstractWeights, source: Stacked) -> bool:
    """True if a file in our own format has the checksum that it carries, False if it carries none.

    Arguments:
        weights: the file.
        source: the weights that were read from it.

    Raises:
        InvalidInput: if the file was altered.
    """
    arrays = {f"layers.{name}": array for name, array in source.stacked.items()}
    arrays |= {f"outside.{name}": array for name, array in source.arrays.items()}
    text, digest = weights.facts["attnflow"], weights.facts.get(CHECKSUM)
    if digest is None and not parse_json(text).get(CHECKSUM):
        return False
    if digest != checksum(text, arrays):
        raise InvalidInput(f"{str(weights.path)!r} was altered or truncated (its checksum differs); save it again.")
    return True


def read_own(weights: AbstractWeights) -> tuple[str, Architecture, dict[str, str], dict[str, str]]:
    """(name, sizes, names of the stacked weights, names of the others) of a file in our own format."""
    try:
        header = parse_json(weights.facts["attnflow"])
        name = str(header.pop("name"))
        header.pop(CHECKSUM, None)
        shape = make_architecture(**header)
        flags = [shape.shared, shape.tied]
        words = [shape.family, shape.activation, shape.pairing]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"the header of {str(weights.path)!r} is damaged ({shown(str(error))}).") from None
    combinations = [("llama", "silu"), ("bert", "gelu"), ("bert", "gelu-tanh")]
    if (
        (shape.family, shape.activation) not in combinations
        or shape.pairing not in ("neighbours", "halves")
        or not all(isinstance(flag, bool) for flag in flags)
    ):
        raise InvalidInput(f"the header of {str(weights.path)!r} names the family or parts {shown(words)}.")
    inside = {name: f"layers.{name}" for name in shape.layer_shapes()}
    return name, shape, inside, {name: f"outside.{name}" for name in shape.outside_shapes()}
