"""Claims: one owner at a time, none that a dead process keeps."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import pytest

import attnflow as af
from attnflow.folders import Folder
from attnflow.runs.claims import Claim, Watch, content, owner_is_gone, take_away
from tests.sweeps.tasks import events, slow


def test_one_of_many_threads_gets_the_claim(tmp_path):
    place, found = (Folder(tmp_path), "unit"), []
    barrier = threading.Barrier(8)

    def attempt():
        barrier.wait()
        found.append(Claim.take(*place))

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    mine = [claim for claim in found if claim is not None]
    assert len(mine) == 1
    assert os.listdir(tmp_path) == ["unit"]
    mine[0].release()
    assert os.listdir(tmp_path) == []


def test_a_living_claim_stays_and_a_silent_one_is_taken_over(tmp_path):
    path, place = tmp_path / "unit", (Folder(tmp_path), "unit")
    claim = Claim.take(*place)
    watch = Watch(patience=0.0)
    assert not owner_is_gone(content(*place))
    elsewhere = json.loads(content(*place)) | {"machine": "another"}
    path.write_bytes(json.dumps(elsewhere).encode())
    assert not owner_is_gone(content(*place))  # whether a process of another machine lives is not known
    patient = Watch(patience=1e6)
    assert not patient.is_free(*place)
    assert not patient.is_free(*place)
    assert watch.is_free(*place)
    assert not path.exists()
    again = Claim.take(*place)
    claim.beat()
    claim.release()  # the first owner wakes up, and leaves the second alone
    assert content(*place) is not None
    again.release()


def test_a_claim_that_shows_life_is_put_back(tmp_path):
    path, place = tmp_path / "unit", (Folder(tmp_path), "unit")
    claim = Claim.take(*place)
    seen = content(*place)
    claim.beat()
    assert not take_away(*place, seen)
    claim.beat()
    assert json.loads(content(*place))["beat"] == "000000003"  # the same file
    claim.release()
    assert not path.exists()


def test_a_file_system_without_links(tmp_path, faults):
    faults.fail("link a file", PermissionError(1, "no links here"))
    claim = Claim.take(Folder(tmp_path), "unit")
    assert claim is not None
    assert Claim.take(Folder(tmp_path), "unit") is None
    claim.release()
    assert os.listdir(tmp_path) == []


def test_the_claim_of_a_dead_process_of_this_machine_is_free_at_once(tmp_path):
    code = "import os, sys; from pathlib import Path; from attnflow.folders import Folder\n"
    code += "from attnflow.runs.claims import Claim\nClaim.take(Folder(Path(sys.argv[1])), 'unit'); os._exit(9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert owner_is_gone(content(Folder(tmp_path), "unit"))
    assert Watch(patience=1e6).is_free(Folder(tmp_path), "unit")


def share(folder):
    af.sweep(slow, {"k": "range(0,24)", "seconds": [0.05]}, folder, workers=3)


@pytest.mark.long
def test_two_processes_share_a_folder_and_do_nothing_twice(tmp_path):
    """Another process and this one, which waits until the other has begun."""
    folder = tmp_path / "s"
    af.sweep(slow, {"k": "range(0,2)", "seconds": [0.05]}, folder, workers=3)
    other = multiprocessing.get_context("spawn").Process(target=share, args=(folder,))
    other.start()
    while other.is_alive() and len(list((folder / "journal").iterdir())) < 2:
        time.sleep(0.01)
    share(folder)
    other.join()
    assert other.exitcode == 0
    owners = [len(path.read_bytes()) for path in (folder / "journal").iterdir()]
    assert len(owners) == 2
    done = [event["unit"] for event in events(folder) if event["event"] == "done"]
    sweep = af.open_sweep(folder)
    assert sorted(done) == sorted(sweep.plan.units)
    data = sweep.dataset
    assert data["square"].values[:, 0].tolist() == [float(k * k) for k in range(24)]
    assert os.listdir(folder / "claims") == []
