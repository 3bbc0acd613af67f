"""The machinery of campaigns/strangers.py: it sees what must not happen, it damages, and it stops between two changes."""

import importlib
import json
import random
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from attnflow.errors import RunCorrupted
from attnflow.folders import Folder
from tests import fuzz

ROOT = Path(__file__).parents[1]

assert fuzz.sentence, "what a refusal is measured by is imported before memory is measured"


@pytest.fixture(scope="module")
def machinery():
    """The modules of the campaign, which are scripts beside the package."""
    sys.path.insert(0, str(ROOT / "campaigns"))
    try:
        yield {name: importlib.import_module(name) for name in ("_damages", "_deaths", "_doors", "strangers")}
    finally:
        sys.path.remove(str(ROOT / "campaigns"))


@pytest.fixture
def outside(machinery, tmp_path):
    tree = machinery["_doors"].Outside(tmp_path / "outside")
    tree.lay()
    return tree


NUMBERS = {"x": np.arange(4.0), "y": np.ones((2, 4))}


def refuse(path):
    raise RunCorrupted("it is damaged; run it again.")


def stumble(path):
    raise ValueError("raw")


def wait(path):
    while True:
        pass


def hoard(path):
    bytearray(b"1" * (64 << 20))


@pytest.mark.parametrize(
    ("door", "outcome"),
    [
        (lambda path: NUMBERS, "right"),
        (lambda path: {"x": NUMBERS["x"][:2], "y": NUMBERS["y"][:, :2]}, "right"),
        (lambda path: {}, "right"),
        (refuse, "refused"),
        (lambda path: NUMBERS | {"x": np.zeros(4)}, "silent other number"),
        (lambda path: NUMBERS | {"x": np.zeros(2)}, "silent other number"),
        (lambda path: NUMBERS | {"z": np.zeros(2)}, "silent other number"),
        (stumble, "raw exception"),
        (wait, "hang"),
        (hoard, "memory"),
        (lambda path: "what 5e1f-sentinel says", "outside read"),
    ],
)
def test_what_a_door_does_is_seen(door, outcome, machinery, monkeypatch, tmp_path):
    doors = machinery["_doors"]
    monkeypatch.setattr(doors, "PATIENCE", 1)
    monkeypatch.setattr(doors, "MEMORY", 32 << 20)
    assert doors.visit(door, tmp_path, [NUMBERS], None, False, True)[0] == outcome


def test_numbers_of_a_forger_are_his_and_rows_that_lack_are_seen_where_all_must_be_there(machinery, tmp_path):
    visit = machinery["_doors"].visit
    other, fewer = {"x": np.zeros(4), "y": NUMBERS["y"]}, {"x": NUMBERS["x"][:2], "y": NUMBERS["y"]}
    assert visit(lambda path: other, tmp_path, [NUMBERS], None, True, False)[0] == "another valid folder"
    assert visit(lambda path: fewer, tmp_path, [NUMBERS], None, False, False)[0] == "silent other number"


def test_tasks_of_a_sweep_that_are_not_done_have_no_numbers_to_compare(machinery):
    from _specimens import is_right

    done = np.array([[True, False]])
    whole = {"done": np.array([[True, True]]), "error": np.array([["", ""]]), "sum": np.array([[1.0, 2.0]])}
    numbers = {"done": done, "error": np.array([["", ""]]), "sum": np.array([[1.0, np.nan]])}
    assert is_right(numbers, whole, partial=True)
    assert not is_right(numbers, whole)
    assert not is_right(numbers | {"sum": np.array([[2.0, np.nan]])}, whole, partial=True)


def test_a_file_outside_that_changes_is_seen(outside):
    before = outside.state()
    assert outside.state() == before
    (outside.path / "home" / ".bashrc").write_text("evil")
    assert outside.state() != before


def folder_of_a_run(path):
    """A folder that looks like that of a run, with an archive and an array."""
    (path / "arrays.zarr" / "x" / "c").mkdir(parents=True)
    about = {
        "node_type": "array",
        "shape": [4],
        "codecs": [],
        "data_type": "float64",
        "chunk_grid": {"configuration": {}},
    }
    (path / "arrays.zarr" / "x" / "zarr.json").write_text(json.dumps(about))
    (path / "arrays.zarr" / "x" / "c" / "0").write_bytes(bytes(range(32)))
    (path / "arrays.zarr" / "x" / "c" / "1").write_bytes(bytes(range(32, 64)))
    (path / "spec.toml").write_text('name = "x"\n[solve]\nuntil = 1.0\n')
    np.savez(path / "part.npz", x=np.arange(3.0))
    (path / "manifest.json").write_text(
        json.dumps({"status": "finished", "versions": {}, "checksums": {"spec.toml": ""}})
    )
    return path


def entries(path):
    def content(file):
        return file.readlink() if file.is_symlink() else file.read_bytes() if file.is_file() else file.is_dir()

    return {file: content(file) for file in path.rglob("*")}


def test_every_way_changes_a_folder_and_runs_nothing(machinery, tmp_path, outside):
    damages = machinery["_damages"]
    twin = folder_of_a_run(tmp_path / "twin")
    (twin / "arrays.zarr" / "x" / "c" / "0").write_bytes(bytes(32))
    (tmp_path / "zeros.npz").write_bytes(b"stands for a GiB of zeros")
    assert len(damages.WAYS) >= 30
    for name, act in damages.WAYS.items():
        for seed in range(3):
            path = folder_of_a_run(tmp_path / f"{name.replace('/', '')} {seed}" / "it")
            before, rng = entries(path.parent), random.Random(seed)
            victim = damages.Victim(path, "run", twin, outside.path)
            said = None
            while said is None:  # some files have nothing of the kind
                said = act(rng, victim)
            assert entries(path.parent) != before, name
            assert not (outside.path / "ran").exists()
            outside.lay()


def test_the_archive_of_zeros_is_one(machinery, tmp_path):
    (tmp_path / "zeros.npz").write_bytes(machinery["_damages"].bomb_of_zeros(8 << 20))
    with zipfile.ZipFile(tmp_path / "zeros.npz") as archive:
        (entry,) = archive.infolist()
        with archive.open(entry) as stream:
            assert stream.read(6) == b"\x93NUMPY"
    assert entry.file_size > 500 * entry.compress_size


def test_copies_between_changes_have_the_old_file_or_the_new_one(machinery, tmp_path):
    deaths = machinery["_deaths"]
    folder = tmp_path / "here" / "it"
    folder.mkdir(parents=True)
    (folder / "x").write_bytes(b"old")
    with deaths.Recorder(folder, tmp_path / "states", set(range(9))).hearing() as recorder:
        Folder(folder).write("x", b"new, and longer")
    states = {number: state / "it" for number, (state, _) in recorder.copies.items()}
    contents = [(state / "x").read_bytes() for _, state in sorted(states.items())]
    assert len(contents) >= 2
    assert contents == sorted(contents, reverse=True)
    assert set(contents) <= {b"old", b"new, and longer"}
    written = [(state, name) for state, name in recorder.copies.values() if name]
    assert written
    state, name = written[-1]
    deaths.tear(state, name, 0.5)
    assert [file.stat().st_size for file in state.rglob(name)] == [7]
