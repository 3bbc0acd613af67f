"""Open a network: by the name of a fetched one, by the path of a file, or a random one."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.checks import shown
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory
from attnflow.folders import file_checksum
from attnflow.parsing import parse_json
from attnflow.probe.networks.catalogue import NETWORKS
from attnflow.probe.networks.families.base import Architecture, Shapes, Stacked
from attnflow.probe.networks.families.names import Naming, is_ignored, known_names, of_config, of_gguf
from attnflow.probe.networks.fetching import fetch, read_record
from attnflow.probe.networks.files import open_weights
from attnflow.probe.networks.files.base import AbstractWeights
from attnflow.probe.networks.model import Network
from attnflow.probe.networks.own_format import FAMILIES, is_checked, is_own, random_network, read_own
from attnflow.probe.networks.tokenizers import Ids, Vocabulary, from_gguf, from_json
from attnflow.reading import read_file
from attnflow.text.tokenizers import AbstractTokenizer

FILES = ("model.gguf", "model.safetensors", "pytorch_model.bin")
"""What a folder may hold, beside config.json."""
RANDOM = {f"random-{family}": family for family in FAMILIES}
LARGEST_CONFIG = 1 << 20


def network(which: str | os.PathLike[str], *, seed: int = 0, dtype: Any = "float32") -> Network:
    """A network by its name or its path.

    Arguments:
        which: a name of `known_networks()`, which is fetched if it is not there; a file or a folder of the families
            Llama (GGUF, or safetensors with config.json), BERT or ALBERT (safetensors or torch with config.json); a
            file of `save_network`; or "random-llama", "random-bert", "random-albert".
        seed: of a random network.
        dtype: in which it is run, "float32" or "float64"; weights are kept as float32.

    Raises: `InvalidInput` for a file that is damaged, hostile or of another family; `FetchFailed`.
    """
    name = os.fspath(which) if isinstance(which, str | os.PathLike) else which
    if not isinstance(name, str):
        raise InvalidInput(f"`which` is {shown(which)}; give a name or a path.")
    if name in RANDOM:
        return random_network(RANDOM[name], seed=seed, dtype=dtype)
    if name in NETWORKS:
        return _open(fetch(name), name, dtype)
    path = Path(name)
    if not path.exists():
        names = ", ".join([*NETWORKS, *RANDOM])
        raise InvalidInput(f"`which` is {shown(name)}, neither a file nor one of the networks {names}.")
    return _open(path, path.stem if path.is_file() else path.resolve().name, dtype)


def _open(path: Path, name: str, dtype: Any) -> Network:
    folder = path if path.is_dir() else path.parent
    file = path
    if path.is_dir():
        found = [path / one for one in FILES if (path / one).is_file()]
        if not found:
            raise InvalidInput(f"{str(path)!r} holds none of {', '.join(FILES)}; give the folder of a network.")
        file = found[0]
    weights = open_weights(file)
    tokenizer: AbstractTokenizer
    is_verified = None
    if is_own(weights):
        name, shape, inside, outside = read_own(weights)
        source = _stacked(weights, shape, inside, outside)
        is_verified = is_checked(weights, source)
        tokenizer = Ids(name, shape.vocabulary)
    else:
        shape, naming = _described(weights, folder)
        source = _named(weights, shape, naming)
        tokenizer = _tokenizer(weights, folder, name, shape)
    record = read_record(folder)
    facts: dict[str, Any] = {
        "network": name,
        "family": shape.family,
        "format": weights.form,
        "encodings": sorted({one.encoding for one in weights.stored.values()}),
        "sha256": file_checksum(file),
        **({} if is_verified is None else {"checked": is_verified}),
        **{key: record[key] for key in ("package", "licence", "wheel_sha256") if key in record},
    }
    return Network(name, shape, source, tokenizer, facts, dtype)


def _described(weights: AbstractWeights, folder: Path) -> tuple[Architecture, Naming]:
    if weights.form == "gguf":
        return of_gguf(weights.facts, tied="output.weight" not in weights.stored)
    file = folder / "config.json"
    try:
        config = parse_json(read_file(file, LARGEST_CONFIG))
    except OSError as error:
        raise InvalidInput(f"cannot read {str(file)!r} ({error.strerror}), which says what the weights are.") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{str(file)!r} is no JSON ({shown(str(error))}); fetch it again.") from None
    if not isinstance(config, Mapping):
        raise InvalidInput(f"{str(file)!r} is no table of JSON; give the config.json of a network.")
    return of_config(config)


def _tokenizer(weights: AbstractWeights, folder: Path, name: str, shape: Architecture) -> AbstractTokenizer:
    if weights.form == "gguf":
        return from_gguf(weights.facts)
    if (folder / "tokenizer.json").is_file():
        return from_json(folder / "tokenizer.json")
    if shape.embedding and (folder / "vocab.txt").is_file():
        return Vocabulary(folder / "vocab.txt")
    return Ids(name, shape.vocabulary)


def _named(weights: AbstractWeights, shape: Architecture, naming: Naming) -> Stacked:
    """The weights of a foreign file, each layer of its own."""
    prefixed = {name.removeprefix(naming.prefix): name for name in weights.stored}
    inside, outside = known_names(shape, naming)
    needed = {*inside.values(), *outside.values()}
    strange = [name for name in prefixed if name not in needed and not is_ignored(naming, name)]
    if strange:
        raise InvalidInput(
            f"{str(weights.path)!r} has {len(strange)} tensors that the family {shape.family} does not have, such as "
            f"{shown(strange[0])}; give a file of a plain network of that family."
        )
    layers = {ours: [prefixed.get(inside[ours, k]) for k in range(shape.stored_layers)] for ours in naming.inside}
    arrays = {ours: prefixed.get(theirs) for ours, theirs in outside.items()}
    _check(weights, shape.layer_shapes(), [(ours, one) for ours, names in layers.items() for one in names])
    shapes = {**shape.outside_shapes()}
    kinds = weights.stored.get(arrays.get("kind") or "")
    if kinds is not None and len(kinds.shape) == 2 and kinds.shape[0] > 0:
        shapes["kind"] = (kinds.shape[0], *shapes["kind"])  # the first kind of segment is the one of a single text
    _check(weights, shapes, list(arrays.items()))
    _require(weights, [name for names in layers.values() for name in names if name])
    stacked = {}
    for ours, size in shape.layer_shapes().items():
        stacked[ours] = np.empty((shape.stored_layers, *size), np.float32)
        for place, name in zip(stacked[ours], layers[ours], strict=True):
            weights.array(str(name), place)
    outer = {ours: weights.array(str(name)) for ours, name in arrays.items()}
    if "kind" in outer:
        outer["kind"] = outer["kind"][0].copy()
    return _finite(weights, Stacked(stacked, outer))


def _stacked(weights: AbstractWeights, shape: Architecture, inside: dict[str, str], outside: dict[str, str]) -> Stacked:
    """The weights of a file in our own format."""
    shapes = {name: (shape.stored_layers, *size) for name, size in shape.layer_shapes().items()}
    held = {name: name if name in weights.stored else None for name in (*inside.values(), *outside.values())}
    _check(weights, shapes, [(ours, held[theirs]) for ours, theirs in inside.items()])
    _check(weights, shape.outside_shapes(), [(ours, held[theirs]) for ours, theirs in outside.items()])
    stacked = {ours: weights.array(theirs) for ours, theirs in inside.items()}
    return _finite(weights, Stacked(stacked, {ours: weights.array(theirs) for ours, theirs in outside.items()}))


def _check(weights: AbstractWeights, shapes: Shapes, names: list[tuple[str, str | None]]) -> None:
    """Refuse weights that are missing or have another shape than the sizes of the network say."""
    for ours, name in names:
        if name is None:
            raise InvalidInput(f"{str(weights.path)!r} lacks the weight `{ours}`; give the file of a whole network.")
        if weights.stored[name].shape != shapes[ours]:
            raise InvalidInput(
                f"{str(weights.path)!r} has `{ours}` with the shape {weights.stored[name].shape} where the network has "
                f"{shapes[ours]}; the file does not fit its description."
            )


def _require(weights: AbstractWeights, names: list[str]) -> None:
    """Refuse layers that are one and the same tensor again and again, and networks that the machine cannot hold."""
    if sum(weights.stored[name].size for name in names) > weights.path.stat().st_size:
        raise InvalidInput(f"{str(weights.path)!r} says that its layers have more numbers than it holds.")
    numbers = sum(int(np.prod(weights.stored[name].shape)) for name in names)
    require_memory(4 * numbers, f"the network of {str(weights.path)!r}", "use a smaller network")


def _finite(weights: AbstractWeights, source: Stacked) -> Stacked:
    for name, values in (*source.stacked.items(), *source.arrays.items()):
        for row in values:
            if not np.isfinite(row).all():
                raise InvalidInput(f"{str(weights.path)!r} has numbers in `{name}` that are not finite.")
    return source
