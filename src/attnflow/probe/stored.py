"""Streams in files: `.npz` of NumPy, and `.safetensors`."""

import inspect
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.checks import shown
from attnflow.errors import InvalidInput, MissingExtra, RunError, TooLarge
from attnflow.feasible import require_memory
from attnflow.folders import Folder
from attnflow.probe.arrays import CHECKSUM, checksum, plain
from attnflow.probe.stream import Stream

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
    folder = Folder(file.parent)
    try:
        if file.suffix == ".npz":
            with folder.writing(file.name) as target:
                np.savez(target, **{name: np.array(words) for name, words in about.items()}, **arrays)  # type: ignore[arg-type]
        elif file.suffix == ".safetensors":
            library = _library()
            with folder.writing_path(file.name) as path:
                library.numpy.save_file(arrays, path, metadata=about)
        else:
            raise InvalidInput(f"`path` is {shown(str(file))}; end it in .npz or .safetensors.")
    except OSError as error:
        why = "there is no such folder" if not file.parent.is_dir() else error.strerror or str(error)
        raise RunError(f"cannot write {str(file)!r} ({why}); give another file.") from None
    return file


Content = tuple[dict[str, np.ndarray], str | None, str | None]
"""Arrays, description and checksum; None where a file has none."""


def _read_npz(file: Path) -> Content:
    try:
        with file.open("rb") as opened:
            with zipfile.ZipFile(opened) as archive:  # a few bytes may stand for any number of zeros
                unpacked = sum(entry.file_size for entry in archive.infolist())
            require_memory(unpacked, f"the arrays of {file.name}", "save fewer layers or texts in a file")
            opened.seek(0)
            with np.load(opened, allow_pickle=False) as stored:
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
        found = json.loads(text)
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
