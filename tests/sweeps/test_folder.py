"""A sweep folder: what is done is not done again, what is refused leaves it as it was, and it is read without attnflow."""

import errno
import hashlib
import json
import os
import pickle
import shutil

import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow.errors import InvalidInput, RunCorrupted, RunError
from tests.faults import environment
from tests.sweeps.tasks import events, same, unequal

OVER = {"a": "range(4)", "b": ["x", "y"]}


def tasks_done(folder):
    return sum(event["tasks"] for event in events(folder) if event["event"] == "done")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    af.sweep(unequal, OVER, folder)
    return folder


def test_the_dataset_is_read_without_attnflow(finished):
    data = xr.open_zarr(finished / "results.zarr", consolidated=False)
    assert data["a"].values.tolist() == [0, 1, 2, 3]
    assert data["b"].values.tolist() == ["x", "y"]
    assert np.array_equal(data["sum"].sel(b="x"), [3, 13, 23, 33])
    assert np.array_equal(data["steps"].sel(a=1, b="y"), [0, 1, np.nan, np.nan], equal_nan=True)
    assert data["word"].sel(a=3, b="y") == "y"
    assert np.isnan(data["sum"].sel(a=2, b="y"))
    assert data["error"].sel(a=2, b="y") == "ValueError: two and y"
    assert data["done"].values.sum() == 7


def test_results_of_tasks_in_one_shard_belong_to_their_points(tmp_path):
    """Of 12 tasks on one worker three share a shard; their arrays have different lengths."""
    over = {"a": "range(0,3)", "b": ["w", "x", "z", "v"]}
    data = af.sweep(unequal, over, tmp_path / "s", workers=1).dataset.load()
    assert len(list((tmp_path / "s" / "shards").iterdir())) < 12
    for a in range(3):
        for b in over["b"]:
            point = data.sel(a=a, b=b)
            assert (float(point["sum"]), str(point["word"].values)) == (10 * a + 3.0, b)
            assert np.array_equal(point["steps"], [*range(a + 1), *[np.nan] * (2 - a)], equal_nan=True)


def test_a_sweep_as_an_object(finished):
    sweep = af.open_sweep(finished)
    assert sweep.errors == [({"a": 2, "b": "y"}, "ValueError: two and y")]
    assert (sweep.status.done, sweep.status.failed, sweep.status.missing) == (7, 1, 0)
    assert len(sweep.table) == 8
    assert "two and y" in sweep._repr_html_()
    mean = sweep.mean(over="b")
    assert mean["sum"].values.tolist() == [3, 13, 23, 33]
    assert np.array_equal(mean["sum_error"], [0, 0, np.nan, 0], equal_nan=True)  # of one value there is none
    with pytest.raises(InvalidInput, match="did you mean 'a'"):
        sweep.mean(over="aa")


def test_the_same_sweep_again_does_nothing(finished, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    before = tasks_done(folder)
    af.sweep(unequal, OVER, folder)
    assert tasks_done(folder) == before == 8


def test_more_values_do_only_the_new_points(finished, tmp_path):
    folder, at_once = tmp_path / "copy", tmp_path / "at-once"
    shutil.copytree(finished, folder)
    wider = {"a": [0, 5, 1, 2, 3], "b": ["x", "y", "z"]}
    grown = af.sweep(unequal, wider, folder)
    assert tasks_done(folder) == 8 + 7
    assert same(grown.dataset, af.sweep(unequal, wider, at_once).dataset)
    assert af.sweep(unequal, wider, folder).status.of == 15  # the extended sweep, found again
    assert tasks_done(folder) == 15


def test_missing_shards_are_done_again_and_caches_are_made_again(finished, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    sweep = af.open_sweep(folder)
    before = sweep.dataset.load()
    sorted((folder / "shards").iterdir())[0].unlink()
    assert sweep.status.missing == 1
    assert sweep.dataset["done"].values.sum() in (6, 7)
    (folder / "index.json").write_bytes(b"no table")
    shutil.rmtree(folder / "results.zarr")
    af.sweep(unequal, OVER, folder)
    assert same(sweep.dataset, before)


def other(a, b):
    return a


@pytest.mark.parametrize(
    ("what", "over", "words"),
    [
        (other, OVER, "another sweep"),
        (unequal, {"a": "range(3)", "b": ["x", "y"]}, "has the value 3, which is left out"),
        (unequal, {"b": ["x", "y"], "a": "range(4)"}, "choose another folder"),
        (unequal, {"aa": [1]}, "did you mean 'a'"),
        (other, {"a": [1]}, "needs the argument 'b'"),
        (3, OVER, "give a specification"),
    ],
)
def test_what_does_not_fit_the_folder_is_refused(what, over, words, finished):
    names = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    with pytest.raises((InvalidInput, RunError), match=words):
        af.sweep(what, over, finished)
    assert names == {path: path.stat().st_mtime_ns for path in finished.rglob("*")}


def test_other_versions_are_refused(finished, faults):
    faults.replace("versions that decide bits", lambda: {"attnflow": "0", "jax": "1.2.3"})
    with pytest.raises(RunError, match=r"begun with attnflow \d"):
        af.sweep(unequal, OVER, finished)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match="holds no sweep"):
        af.sweep(unequal, OVER, tmp_path)
    with pytest.raises(RunError, match="no sweep"):
        af.open_sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


def write_plan(folder, plan):
    """Write a plan as an attacker does, who computes its digest anew."""
    digest = hashlib.sha256(json.dumps(["sweep.json", plan], sort_keys=True).encode()).hexdigest()
    (folder / "sweep.json").write_text(json.dumps(plan | {"digest": digest}))


def hostile(kind, folder):
    shard = sorted((folder / "shards").iterdir())[0]
    plan = json.loads((folder / "sweep.json").read_text())
    del plan["digest"]
    if kind == "pickle":
        np.savez(shard, about=np.array([Evil()], dtype=object))
    elif kind == "pickled file":
        shard.write_bytes(pickle.dumps(Evil()))
    elif kind == "cut off":
        shard.write_bytes(shard.read_bytes()[:-40])
    elif kind == "of others":
        shard.write_bytes(sorted((folder / "shards").iterdir())[1].read_bytes())
    elif kind == "paths":
        plan["units"][0]["names"] = ["../../../../etc/passwd"]
        write_plan(folder, plan)
    elif kind == "points":
        plan["units"][0]["points"] = [10**9]
        write_plan(folder, plan)
    else:
        (folder / "sweep.json").write_text("{")


@pytest.mark.parametrize("kind", ["pickle", "pickled file", "cut off", "of others", "paths", "points", "no json"])
def test_a_hostile_folder_is_refused_in_one_sentence(kind, finished, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    (folder / "index.json").unlink()
    hostile(kind, folder)
    with pytest.raises(RunCorrupted) as refusal:
        af.open_sweep(folder).dataset  # noqa: B018
    assert "\n" not in str(refusal.value)


@pytest.mark.slow
def test_results_grow_while_the_sweep_runs(tmp_path, faults):
    seen = []
    faults.replace("seconds between collections", 0.0)
    faults.replace("share of time between collections", 0.0)
    faults.replace("bytes of a block of results", 16)  # many blocks

    def look(progress):
        if progress.done:
            data = xr.open_zarr(tmp_path / "s" / "results.zarr", consolidated=False) if seen else None
            seen.append(-1 if data is None else int(data["done"].sum()))

    af.sweep(unequal, {"a": "range(6)", "b": ["x", "z"]}, tmp_path / "s", on_progress=look, workers=3)
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def test_arrays_of_shards_are_plain(finished):
    for path in (finished / "shards").iterdir():
        with np.load(path, allow_pickle=False) as shard:
            kinds = {name: array.dtype.kind for name, array in shard.items()}
        assert kinds.pop("about") == "u"  # bytes of JSON
        assert set(kinds.values()) <= set("fU")


def interrupted(k):
    if k == 5 and "INTERRUPT" in os.environ:
        raise KeyboardInterrupt
    return k


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    folder = tmp_path / "s"
    with environment(INTERRUPT="yes"), pytest.raises(KeyboardInterrupt):
        af.sweep(interrupted, {"k": range(9)}, folder, workers=3)
    assert list((folder / "claims").iterdir()) == []
    assert af.open_sweep(folder).status.done == 5
    assert af.sweep(interrupted, {"k": range(9)}, folder).dataset["value"].values.tolist() == list(range(9))
    assert tasks_done(folder) == 9


def test_a_full_disk_is_waited_for(tmp_path, faults, capsys):
    full = iter([True] * 3 + [False] * 2 + [True] * 4)

    def fsync(descriptor):
        if next(full, False):
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    sync = faults.replace("flush a file", fsync)
    faults.replace("sleep", lambda seconds: None)
    sweep = af.sweep(unequal, OVER, tmp_path / "s", workers=8)
    assert sweep.status.done == 7
    assert next(full, None) is None
    said = capsys.readouterr().err
    assert 1 <= said.count("is full; the sweep waits") <= 3  # one for each file that had to wait
    left = [path.name for folder in ("shards", "claims", "journal") for path in (tmp_path / "s" / folder).glob(".*")]
    assert left == []


def moody(k):
    if k == 1 and "MOODY" in os.environ:
        raise ValueError("not today")
    return k


def test_failed_tasks_are_done_again_if_that_is_asked_for(tmp_path):
    with environment(MOODY="yes"):
        assert af.sweep(moody, {"k": range(3)}, tmp_path / "s").status.failed == 1
    assert af.sweep(moody, {"k": range(3)}, tmp_path / "s").status.failed == 1
    again = af.sweep(moody, {"k": range(3)}, tmp_path / "s", retry=True)
    assert again.errors == []
    assert again.dataset["value"].values.tolist() == [0, 1, 2]
