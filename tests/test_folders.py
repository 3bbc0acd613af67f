"""Folders that may come from somebody else: what lies in them is read and written there, or refused."""

import os

import numpy as np
import pytest
import zarr

from attnflow import certify, control
from attnflow.errors import RunCorrupted, RunError
from attnflow.fields import Drift
from attnflow.folders import Folder, is_temporary, write_file
from attnflow.probe import Stream
from attnflow.probe.networks import random_network, save_network
from attnflow.runs.chunks import FolderStore
from attnflow.spaces import Euclidean

STRANGE = "is a link, a pipe or a device"


@pytest.fixture
def outside(tmp_path):
    """A file and a folder that nothing may touch; checked at the end."""
    made = tmp_path / "outside"
    made.mkdir()
    (made / "file").write_bytes(b"mine")
    yield made
    assert [path.name for path in made.iterdir()] == ["file"]
    assert (made / "file").read_bytes() == b"mine"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "given").mkdir()
    return Folder(tmp_path / "given")


def test_files_are_written_whole_and_leave_nothing_beside_them(folder):
    folder.make("a/b")
    folder.write("a/b/c", b"one")
    folder.write("a/b/c", b"two")
    assert not folder.create("a/b/c", b"three")
    assert folder.create("a/d", b"four")
    with pytest.raises(TypeError), folder.writing("a/b/c") as stream:
        stream.writelines([b"five", "no bytes"])
    with folder.writing_path("e.txt") as path:
        path.write_text("six")
    assert {name: folder.read(name) for name in folder.names()} == {"a/b/c": b"two", "a/d": b"four", "e.txt": b"six"}
    inner = folder.inside("a")
    assert (inner.entries(), inner.read("b/c"), inner.size("d")) == (["b", "d"], b"two", 4)
    folder.remove_folder("a")
    assert folder.names() == ["e.txt"]


@pytest.mark.parametrize("name", ["../outside/file", "/etc/passwd", "a//b", "./a", "a/..", "a\0b", ""])
def test_names_stay_inside(folder, outside, name):
    with pytest.raises(RunCorrupted, match="no name inside a folder|is a link") as refusal:
        (folder.inside("figures") if not name else folder).read(name or "../../outside/file")
    assert "inside a folder" in str(refusal.value)


@pytest.mark.parametrize("verb", ["read", "open", "checksum", "write", "create", "writing", "writing_path", "make"])
def test_links_inside_are_not_followed(folder, outside, verb):
    """A linked file is refused, or replaced by a file; a linked folder is refused by every verb."""
    (folder.path / "file").symlink_to(outside / "file")
    (folder.path / "figures").symlink_to(outside, target_is_directory=True)
    arguments = {"write": [b"theirs"], "create": [b"theirs"]}.get(verb, [])
    with pytest.raises(RunCorrupted, match=STRANGE), _used(getattr(folder, verb)("figures/file", *arguments)):
        pass
    if verb in ("read", "open", "checksum", "make", "create"):
        with pytest.raises(RunCorrupted, match=STRANGE):
            getattr(folder, verb)("file", *arguments)
    else:
        with _used(getattr(folder, verb)("file", *arguments)):
            pass
        assert not (folder.path / "file").is_symlink()
    with pytest.raises(RunCorrupted, match=STRANGE):
        folder.names()


class _used:
    """Enter a context manager, or nothing."""

    def __init__(self, manager):
        self.manager = manager

    def __enter__(self):
        return self.manager.__enter__() if hasattr(self.manager, "__enter__") else None

    def __exit__(self, *error):
        return self.manager.__exit__(*error) if hasattr(self.manager, "__exit__") else None


def test_removing_a_folder_removes_links_and_not_what_they_lead_to(folder, outside):
    folder.make("deep/er")
    (folder.path / "deep" / "link").symlink_to(outside, target_is_directory=True)
    folder.remove_folder("deep")
    assert folder.entries() == []


def test_a_pipe_is_refused_at_once(folder):
    os.mkfifo(folder.path / "pipe")
    for verb in (folder.read, folder.checksum, folder.require_plain, lambda name: folder.names()):
        with pytest.raises(RunCorrupted, match=STRANGE):
            verb("pipe")


def test_a_link_to_a_folder_is_followed(folder, tmp_path):
    (tmp_path / "short").symlink_to(folder.path, target_is_directory=True)
    Folder(tmp_path / "short").write("a", b"one")
    assert folder.read("a") == b"one"


def test_a_file_anywhere_replaces_a_link(outside, tmp_path):
    (tmp_path / "page.html").symlink_to(outside / "file")
    write_file(tmp_path / "page.html", b"new")
    assert (tmp_path / "page.html").read_bytes() == b"new"
    assert not [path for path in tmp_path.iterdir() if is_temporary(path.name)]


def test_zarr_in_a_folder(folder):
    """Arrays come back; of files with known checksums one that is missing or altered is an error, and not zeros."""
    values = np.arange(24.0).reshape(6, 4)
    arrays = folder.inside("arrays.zarr")
    group = zarr.create_group(FolderStore(arrays), overwrite=True, zarr_format=3)
    for name in ("x", "y", "z"):
        group.create_array(name, data=values, chunks=(2, 4), compressors=None)
    checksums = {name: arrays.checksum(name) for name in arrays.names()}
    assert {"x/zarr.json", "x/c/0/0", "x/c/2/0"} <= set(checksums)
    store = FolderStore(arrays, checksums=checksums, advice="ask for it again", read_only=True)
    assert np.array_equal(zarr.open_group(store, mode="r")["x"][...], values)
    arrays.make("u")
    arrays.write("u/zarr.json", arrays.read("x/zarr.json"))
    arrays.remove("x/c/1/0")
    arrays.write("y/c/1/0", bytes(64))
    arrays.remove_folder("z")
    group = zarr.open_group(store, mode="r")
    with pytest.raises(RunCorrupted, match=r"'x/c/1/0' of .* is missing; ask for it again\."):
        group["x"][...]
    with pytest.raises(RunCorrupted, match=r"'y/c/1/0' of .* was truncated or altered; ask for it again\."):
        group["y"][...]
    with pytest.raises(RunCorrupted, match=r"'z/zarr\.json' of .* is missing"):
        list(group.array_keys())
    assert "u" not in group


def test_zarr_follows_no_links(folder, outside):
    group = zarr.create_group(FolderStore(folder), overwrite=True, zarr_format=3)
    group.create_array("x", data=np.ones(4), chunks=(2,))
    (folder.path / "x" / "c" / "0").unlink()
    (folder.path / "x" / "c" / "0").symlink_to(outside / "file")
    with pytest.raises(RunCorrupted, match=STRANGE):
        zarr.open_group(FolderStore(folder, read_only=True), mode="r")["x"][...]


def write_certificate(path):
    certify.dominant_degree((5.0, 5.1), 2).save(path)


def write_schedule(path):
    control.save(control.Schedule(Euclidean(2), [(Drift([1.0, 0.0]), 0.5)]), path)


def write_stream(path):
    Stream(np.ones((2, 3, 4))).save(path)


def write_network(path):
    save_network(random_network(layers=1, heads=2, width=4, vocabulary=4), path)


WRITERS = {
    "a.json": write_certificate,
    "a.npz": write_schedule,
    "b.npz": write_stream,
    "a.safetensors": write_stream,
    "b.safetensors": write_network,
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_saved_anywhere_replaces_links_and_is_whole(name, outside, tmp_path, faults):
    """Links lie where the file comes to, and where earlier versions began it; then the disk fails in the last step."""
    place = tmp_path / "place"
    place.mkdir()
    links = [place / link for link in (name, f"{name}.part", f".{name}.part", f"{name}.tmp")]
    for link in links:
        link.symlink_to(outside / "file")
    WRITERS[name](place / name)
    saved = (place / name).read_bytes()
    assert not (place / name).is_symlink()
    assert sorted(place.iterdir()) == sorted(links)
    faults.fail("rename a file", FileNotFoundError(2, "No such file or directory"))
    with pytest.raises(RunError, match="cannot write"):
        WRITERS[name](place / name)
    assert (place / name).read_bytes() == saved
    assert sorted(place.iterdir()) == sorted(links)
