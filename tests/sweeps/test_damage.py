"""Every file of a sweep is damaged in turn: numbers stay true, or one sentence says what is wrong."""

import contextlib
import errno
import os
import shutil
import time

import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow.errors import AttnflowError, RunCorrupted, RunError
from tests.faults import temporary_faults
from tests.marks import graded
from tests.sweeps.tasks import same, unequal

OVER = {"a": [1, 2], "b": ["x", "y"]}


def files_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A sweep of four points, three shards and two generations; one point fails."""
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    af.sweep(unequal, {"a": [1], "b": ["x", "y"]}, folder, workers=2)
    af.sweep(unequal, OVER, folder)
    assert "sweep-2.json" in files_of(folder)
    return folder


@pytest.fixture(scope="module")
def truth(finished):
    return af.open_sweep(finished).dataset.load()


@pytest.fixture
def copied(finished, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(finished, tmp_path / "copy")


def flipped(path, share):
    content = bytearray(path.read_bytes())
    content[int(share * (len(content) - 1))] ^= 1
    path.write_bytes(content)


def from_another(path):
    """The content of another file of the folder with the same ending, if there is one."""
    root = next(folder for folder in path.parents if (folder / "shards").is_dir())
    others = [other for other in sorted(root.rglob(f"*{path.suffix}")) if other.is_file() and other != path]
    differing = [other for other in others if other.read_bytes() != path.read_bytes()]
    shutil.copyfile(differing[0] if differing else root / "sweep.json", path)


def linked(path):
    """A link to a copy of the file, outside of the folder."""
    outside = path.with_name("outside")
    shutil.move(path, outside)
    path.symlink_to(outside)


DAMAGES = {
    "a byte in the middle": lambda path: flipped(path, 0.5),
    "the last byte": lambda path: flipped(path, 1.0),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "deleted": lambda path: path.unlink(),
    "garbage": lambda path: path.write_bytes(b"{" * path.stat().st_size),
    "another file": from_another,
    "link": linked,
}
ALWAYS = ("a byte in the middle", "deleted", "link")
"""The damages of `make test`."""


@graded("damage", [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.slow) for name in DAMAGES], slow=1)
def test_damage_is_refused_or_repaired(damage, finished, truth, tmp_path):
    names = [name for name in files_of(finished) if not name.startswith("journal/")]
    refused = []
    for number, name in enumerate(names):
        folder = shutil.copytree(finished, tmp_path / str(number))
        DAMAGES[damage](folder / name)
        try:
            sweep = af.open_sweep(folder)
            data, status = sweep.dataset.load(), sweep.status
        except AttnflowError as error:
            refused.append((name, str(error)))
            continue
        if name.startswith("shards/") and damage == "deleted":
            assert status.missing == 4 - int((data["done"] | (data["error"] != "")).sum()) > 0
            np.testing.assert_array_equal(data["sum"], truth["sum"].where(data["done"]))
        else:
            assert same(data, truth), name
            assert (status.done, status.failed, status.of) == (3, 1, 4), name
            assert len(sweep.errors) == 1
        shutil.rmtree(folder)
    assert not [words for _, words in refused if "\n" in words]
    assert not [name for name, _ in refused if name.startswith(("results", "index"))], "these are made again"


def test_a_chunk_that_is_damaged_after_the_dataset_was_opened_is_made_again(copied, truth):
    data = af.open_sweep(copied).dataset
    flipped(next((copied / "results.zarr" / "sum" / "c").rglob("0/0")), 0.5)
    (copied / "results.zarr" / "steps" / "c" / "0" / "0" / "0").unlink()
    assert same(data.load(), truth)
    repaired = xr.open_zarr(copied / "results.zarr", consolidated=False)
    for name in ("sum", "steps"):
        np.testing.assert_array_equal(repaired[name], truth[name])


@contextlib.contextmanager
def read_only():
    """A file system that refuses all writing."""

    def refuse(path, flags, *arguments, **options):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, "Read-only file system")
        return reading(path, flags, *arguments, **options)

    with temporary_faults() as faults:
        reading = faults.replace("open a file", refuse)
        faults.replace("access of a file", lambda path, mode: not mode & os.W_OK)
        yield


def test_a_read_only_folder_is_read(copied, truth, faults):
    """A whole dataset is used, a damaged one is put together from the shards; what is noticed later is refused."""
    with read_only():
        data = af.open_sweep(copied).dataset
        assert same(data.load(), truth)
        later = af.open_sweep(copied).dataset
    flipped(copied / "results.zarr" / "sum" / "c" / "0" / "0", 0.5)
    (copied / "results.zarr" / "sum" / "zarr.json").unlink()
    before = files_of(copied)
    with read_only():
        assert same(af.open_sweep(copied).dataset.load(), truth)
        with pytest.raises(RunCorrupted, match=r"was truncated or altered; copy the sweep to where it can be written"):
            later["sum"].load()
        faults.replace("bytes of results in memory", 10)
        with pytest.raises(RunError, match="are too much for memory; copy the sweep"):
            af.open_sweep(copied).dataset  # noqa: B018
    assert files_of(copied) == before


def test_a_deleted_plan_of_an_extension_is_noticed(copied):
    (copied / "sweep-2.json").unlink()
    with pytest.raises(RunCorrupted, match=r"'sweep-2\.json' is missing or a file was added"):
        af.open_sweep(copied)


def test_equal_sweeps_give_equal_bytes(finished, tmp_path):
    """Extended or made at once elsewhere: the bytes of the dataset depend on the results alone."""
    folder = tmp_path / "again"
    af.sweep(unequal, OVER, folder, workers=1)
    names = [name for name in files_of(finished) if name.startswith("results.zarr/")]
    assert [name for name in files_of(folder) if name.startswith("results.zarr/")] == names
    for name in names:
        assert (folder / name).read_bytes() == (finished / name).read_bytes(), name
    variables = list(af.open_sweep(folder).dataset.data_vars)
    assert variables == sorted(variables) == list(af.open_sweep(finished).dataset.data_vars)


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP])
def test_a_file_system_without_hard_links(number, finished, tmp_path, faults):
    faults.fail("link a file", OSError(number, os.strerror(number)))
    folder = tmp_path / "s"
    af.sweep(unequal, {"a": [1], "b": ["x", "y"]}, folder, workers=2)
    sweep = af.sweep(unequal, OVER, folder)
    assert (sweep.status.done, sweep.status.failed) == (3, 1)
    assert same(sweep.dataset.load(), af.open_sweep(finished).dataset.load())


def test_what_killed_processes_left_is_removed(copied):
    """Temporaries that are older than an hour, of this version and an earlier one; fresh ones may be in use."""
    names = [".attnflow-0123456789abcdef", f".sweep.json.{'0' * 32}", f"shards/.u.npz.{'1' * 32}"]
    for age, end in ((7200, "0"), (0, "1")):
        for name in names:
            path = copied / f"{name[:-1]}{end}"
            path.write_bytes(b"litter")
            os.utime(path, (time.time() - age,) * 2)
    (copied / ".attnflow-store").mkdir()
    (copied / "index.sqlite").write_bytes(b"of an earlier version")
    (copied / "notes.tmp").write_bytes(b"mine")
    os.utime(copied / "notes.tmp", (0, 0))
    before = files_of(copied)
    af.sweep(unequal, OVER, copied)
    assert set(before) - set(files_of(copied)) == {f"{name[:-1]}0" for name in names} | {"index.sqlite"}


@pytest.mark.parametrize("name", ["shards", "claims", "journal", "results.zarr"])
def test_linked_folders_inside_are_not_followed(name, copied, tmp_path, truth):
    (tmp_path / "outside").mkdir()
    shutil.rmtree(copied / name)
    (copied / name).symlink_to(tmp_path / "outside", target_is_directory=True)
    if name == "results.zarr":
        assert same(af.sweep(unequal, OVER, copied).dataset.load(), truth)
        assert not (copied / name).is_symlink()
    else:
        with pytest.raises(RunCorrupted, match="is a link"):
            af.sweep(unequal, OVER, copied)
    assert os.listdir(tmp_path / "outside") == []
