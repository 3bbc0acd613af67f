"""Streams in files: `.npz` of NumPy, and `.safetensors`."""

import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.archives import open_npz
from attnflow.checks import shown
from attnflow.errors import InvalidInput, MissingExtra, TooLarge
from attnflow.folders import Folder, saving
from attnflow.parsing import parse_json
from attnflow.probe.arrays import CHECKSUM, checksum, plain
from attnflow.probe.stream import Stream
from attnflow.reading import open_file

PARTS = ("hidden", "attention", "after_attention", "ids")
"""Arrays that a stream has for each text: `hidden` of one text, or `hidden.0`, `hidden.1` of several."""
READ_OUT = ("unembedding", "final_gain")
"""Arrays that all texts share."""
DESCRIPTION = "attnflow"
"""The entry of a file that says what is known beside the arrays, as JSON."""


def open_stream(path: str | Path, **options: Any) -> Stream:
    """The stream in a file, `.npz` or `.safetensors`, that `Stream.save` or another program has written.

    The arrays are called `hidden`, `attention`, `after_attention`, `ids`, `unembedding` and `final_gain`; those of
    several texts `hidden.0`, `hidden.1`, and so on. `options` are arguments of `Stream`, such as causal=True; they
    replace what the file says. No code of a file is executed. A file that `Stream.save` has written carries a checksum
    of all that it holds and is refused if it was altered; `checked` of the stream is False where a file has none.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(f"`path` is {shown(path)}; give a .npz or .safetensors file.")
    file = Path(path)
    names = [name for name in inspect.signature(Stream).parameters if name != "hidden"]
    if unknown := [name for name in options if name not in names]:
        raise InvalidInput(f"`{unknown[0]}` is no option of a stream; use {', '.join(names)}.")
    if not file.is_file():
        raise InvalidInput(f"`path` is {shown(str(path))}, which is no file; give a .npz or .safetensors file.")
    arrays, text, digest = (_read_npz if file.suffix == ".npz" else _read_safetensors)(file)
    said = {} if text is None else _said(file, text)
    is_checked = bool(said.pop(CHECKSUM, False)) or digest is not None
    if is_checked and digest != checksum(text or "", arrays):
        raise InvalidInput(f"{file.name} was altered or truncated (its checksum differs); write it again.")
    given: dict[str, Any] = {}
    for part in PARTS:
        if part in arrays:
            given[part] = arrays[part]
        elif f"{part}.0" in arrays:
            count = sum(name.startswith(f"{part}.") for name in arrays)
            given[part] = [arrays[name] for k in range(count) if (name := f"{part}.{k}") in arrays]
    if "hidden" not in given:
        present = ", ".join(sorted(arrays)[:6]) or "none"
        raise InvalidInput(
            f"{file.name} has no array `hidden`, only {present}; rename the one of shape (layer, token, d)."
        )
    given |= {name: arrays[name] for name in READ_OUT if name in arrays}
    stream = Stream(**given | said | options)
    stream.checked = is_checked
    return stream


def write(stream: Stream, file: Path) -> Path:
    """Write the stream to a file with a checksum of all that it holds; the file is there whole or not at all."""
    arrays: dict[str, np.ndarray] = {}
    for part in PARTS:
        if (texts := getattr(stream, part)) is not None:
            arrays |= {part: texts[0]} if stream.one_text else {f"{part}.{k}": text for k, text in enumerate(texts)}
    arrays |= {name: part for name in READ_OUT if isinstance(part := getattr(stream, name), np.ndarray)}
    arrays = {name: plain(array) for name, array in arrays.items()}
    labels = None if stream.labels is None else [words.tolist() for words in stream.labels]
    said = {"name": stream.name, "causal": stream.causal, "facts": stream.facts, CHECKSUM: True}
    text = json.dumps(said | {"labels": labels[0] if labels and stream.one_text else labels}, default=str)
    about = {DESCRIPTION: text, CHECKSUM: checksum(text, arrays)}
    if file.suffix == ".npz":
        stored: Any = {name: np.array(words) for name, words in about.items()} | arrays
        with saving(file), Folder(file.parent).writing(file.name) as target:
            np.savez(target, **stored)
    elif file.suffix == ".safetensors":
        write_safetensors(file, arrays, about)
    else:
        raise InvalidInput(f"`path` is {shown(str(file))}; end it in .npz or .safetensors.")
    return file


def write_safetensors(file: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, str]) -> None:
    """Write arrays and texts to a file of safetensors, which is there whole or not at all.

    Arguments:
        file: where it comes to.
        arrays: the tensors by name.
        about: the metadata by name.
    """
    library = _library()
    with saving(file), Folder(file.parent).writing_path(file.name) as path:
        try:
            library.numpy.save_file(dict(arrays), path, metadata=dict(about))
        except library.SafetensorError as error:  # of a full disk, too
            raise OSError(str(error)) from None


Content = tuple[dict[str, np.ndarray], str | None, str | None]
"""Arrays, description and checksum; None where a file has none."""


def _read_npz(file: Path) -> Content:
    try:
        with open_file(file) as opened, open_npz(opened) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except TooLarge:
        raise
    except Exception as error:  # zipfile, zlib and NumPy each raise their own
        raise InvalidInput(f"{file.name} cannot be read as .npz ({error}); write it by numpy.savez.") from None
    words = [None if (entry := arrays.pop(name, None)) is None else str(entry) for name in (DESCRIPTION, CHECKSUM)]
    return arrays, words[0], words[1]


def _read_safetensors(file: Path) -> Content:
    library = _library()
    try:
        with library.safe_open(file, framework="numpy") as stored:
            arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (no mapping)
            about = stored.metadata() or {}
    except Exception as error:  # of the library, of the system, of NumPy
        raise InvalidInput(f"{file.name} cannot be read as .safetensors ({error}); write the file again.") from None
    return arrays, about.get(DESCRIPTION), about.get(CHECKSUM)


def _said(file: Path, text: str) -> dict[str, Any]:
    try:
        found = parse_json(text)
        return {key: found[key] for key in ("name", "causal", "facts", "labels", CHECKSUM) if key in found}
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput(f"{file.name} has a description that is no JSON; write it again by Stream.save.") from None


def _library() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise MissingExtra(
            "files of safetensors need the package safetensors; install `attnflow[probe]`, or save the arrays as .npz."
        ) from None
    return safetensors
