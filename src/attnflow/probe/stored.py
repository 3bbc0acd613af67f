"""Streams in files: `.npz` of NumPy, and `.safetensors`."""

import contextlib
import inspect
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.archives import DAMAGED, open_npz
from attnflow.checks import shown
from attnflow.errors import InvalidInput, MissingExtra, RunError, TooLarge
from attnflow.parsing import parse_json
from attnflow.probe.stream import Stream
from attnflow.reading import open_file

PARTS = ("hidden", "attention", "after_attention", "ids")
"""Arrays that a stream has for each text: `hidden` of one text, or `hidden.0`, `hidden.1` of several."""
READ_OUT = ("unembedding", "final_gain")
"""Arrays that all texts share."""



def open_stream(path: str | Path, **options: Any) -> Stream:
    """The stream in a file, `.npz` or `.safetensors`, that `Stream.save` or another program has written.

    The arrays are called `hidden`, `attention`, `after_attention`, `ids`, `unembedding` and `final_gain`; those of
    several texts `hidden.0`, `hidden.1`, and so on. `options` are arguments of `Stream`, such as causal=True; they
    replace what the file says. No code of a file is executed.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(f"`path` is {shown(path)}; give a .npz or .safetensors file.")
    file = Path(path)
    names = [name for name in inspect.signature(Stream).parameters if name != "hidden"]
    if unknown := [name for name in options if name not in names]:
        raise InvalidInput(f"`{unknown[0]}` is no option of a stream; use {', '.join(names)}.")
    if not file.is_file():
        raise InvalidInput(f"`path` is {shown(str(path))}, which is no file; give a .npz or .safetensors file.")
    arrays, said = (_read_npz if file.suffix == ".npz" else _read_safetensors)(file)
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
    return Stream(**given | said | options)


def write(stream: Stream, file: Path) -> Path:
    """The stream in a new file, written beside it first and then moved, so that no half of it is ever there."""
    arrays: dict[str, np.ndarray] = {}
    for part in PARTS:
        if (found := getattr(stream, part)) is not None:
            arrays |= {part: found[0]} if stream.one_text else {f"{part}.{k}": one for k, one in enumerate(found)}
    arrays |= {name: part for name in READ_OUT if isinstance(part := getattr(stream, name), np.ndarray)}
    labels = None if stream.labels is None else [one.tolist() for one in stream.labels]
    said = {"name": stream.name, "causal": stream.causal, "facts": stream.facts}
    text = json.dumps(said | {"labels": labels[0] if labels and stream.one_text else labels}, default=str)
    beside = file.with_name(f".{file.name}.part")
    try:
        if file.suffix == ".npz":
            with beside.open("wb") as out:
                np.savez(out, attnflow=np.array(text), **arrays)  # type: ignore[arg-type]
        elif file.suffix == ".safetensors":
            _library().numpy.save_file(
                {name: np.ascontiguousarray(a) for name, a in arrays.items()}, beside, metadata={"attnflow": text}
            )
        else:
            raise InvalidInput(f"`path` is {shown(str(file))}; end it in .npz or .safetensors.")
        beside.replace(file)
    except OSError as error:
        why = "there is no such folder" if not file.parent.is_dir() else error.strerror or str(error)
        raise RunError(f"cannot write {str(file)!r} ({why}); give another file.") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    return file


def _read_npz(file: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        with open_file(file) as opened, open_npz(opened) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except TooLarge:
        raise
    except (*DAMAGED, AttributeError, MemoryError) as error:
        raise InvalidInput(f"{file.name} cannot be read as .npz ({error}); write it by numpy.savez.") from None
    text = arrays.pop("attnflow", None)
    return arrays, {} if text is None else _said(file, str(text))


def _read_safetensors(file: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    library = _library()
    try:
        with library.safe_open(file, framework="numpy") as stored:
            arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (no mapping)
            text = (stored.metadata() or {}).get("attnflow")
    except (library.SafetensorError, OSError, TypeError, ValueError) as error:
        raise InvalidInput(f"{file.name} cannot be read as .safetensors ({error}); write the file again.") from None
    return arrays, {} if text is None else _said(file, text)


def _said(file: Path, text: str) -> dict[str, Any]:
    try:
        found = parse_json(text)
        return {key: found[key] for key in ("name", "causal", "facts", "labels") if key in found}
    except (ValueError, TypeError):
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
