"""Does a sweep survive the death of its workers and of its scheduler, and a full disk? Minutes on two cores.

    python campaigns/sweeps.py                          2,000 tasks, a worker killed every few seconds
    python campaigns/sweeps.py --tasks 200 --record trial.json

Two workers and a scheduler run as processes on loopback. While the sweep runs, a random worker is killed (SIGKILL)
every few seconds and the scheduler twice; the disk of the workers is full for a while; one task always fails. The sweep
must complete, its arrays must be those of a sweep that nothing happened to, bit for bit, and the journals may count at
most one unit more for every worker that died. Exit code 1 if one of these does not hold.
"""

import argparse
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import _record

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "campaigns"))
EVERY = 2.5
"""Seconds between two deaths of workers, on average."""
UNIT = 16
"""Tasks of a unit."""
WIDTH = 8
"""Flows of a unit that are done side by side."""
FULL = 15.0
"""Seconds for which the disk is full."""
SLEEP = 0.03
"""Seconds that a task sleeps, so that most deaths find a task at work."""


def flow(beta: float, seed: int) -> Any:
    """A small flow; one of them always fails."""
    import attnflow as af

    time.sleep(SLEEP)
    if seed == 7 and beta == 1.0:
        raise ValueError("this task always fails")
    tokens = af.uniform(af.Sphere(2), n=4, seed=seed)
    return af.flows.Solve(af.Attention(beta), tokens, 1.0, save=4, method=af.Fixed(0.125))


class Chaos:
    """A scheduler and workers that die and are started again."""

    def __init__(self, place: Path, seed: int, limit: float):
        self.place, self.chance, self.limit = place, random.Random(seed), limit
        self.over = threading.Event()
        self.kills: list[dict[str, Any]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.flag = place / "full"
        self.scheduler, self.workers = self._scheduler(), self._workers()

    def _start(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "campaigns"), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path, "ATTNFLOW_CAMPAIGN_FULL": str(self.flag)}
        environment |= {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "3"}
        with (self.place / "log").open("ab") as log:
            command = [sys.executable, "-m", module, *options]
            return subprocess.Popen(
                command, env=environment, cwd=self.place, stdout=log, stderr=log, start_new_session=True
            )

    def _scheduler(self) -> subprocess.Popen[bytes]:
        options = ("--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        return self._start("distributed.cli.dask_scheduler", *options)

    def _workers(self) -> subprocess.Popen[bytes]:
        options = ["--nworkers", "2", "--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard"]
        options += ["--preload", "attnflow.sweeps.preload", "--preload", "_full_disk"]
        return self._start("distributed.cli.dask_worker", f"tcp://127.0.0.1:{self.port}", *options)

    def rage(self, folder: Path, units: int) -> None:
        """Kill until the sweep is over. Schedulers die when a third and two thirds of the units are done."""
        marks, full_at = [units // 3, 2 * units // 3], units // 2
        began = time.monotonic()
        until, begun = 0.0, 0
        while not self.over.wait(self.chance.expovariate(1 / EVERY) if self.kills else 4.0):
            done = len(list((folder / "shards").glob("*.npz")))
            if time.monotonic() - began > self.limit:
                return
            if full_at and done >= full_at:
                full_at, until = 0, time.monotonic() + FULL
                self.flag.touch()
            if self.flag.exists() and time.monotonic() > until:
                self.flag.unlink()
            if marks and done >= marks[0]:
                marks.pop(0)
                _end(self.scheduler)
                self.kills.append({"what": "scheduler", "at": round(time.monotonic() - began, 2), "units done": done})
                time.sleep(1.0)
                self.scheduler = self._scheduler()
            elif not self.flag.exists() and (starts := _starts(folder)) > begun:
                begun = starts  # workers that die before they begin anything would only be started again
                self._kill_a_worker(began, done)
            if self.workers.poll() is not None:
                self.workers = self._workers()

    def _kill_a_worker(self, began: float, done: int) -> None:
        import psutil

        try:
            children = psutil.Process(self.workers.pid).children(recursive=True)
            processes = [one for one in children if "spawn_main" in " ".join(one.cmdline())]
            if processes:
                self.chance.choice(processes).kill()
                self.kills.append({"what": "worker", "at": round(time.monotonic() - began, 2), "units done": done})
        except psutil.Error:
            return

    def end(self) -> None:
        """Stop, and end the processes that were started here."""
        self.over.set()
        self.flag.unlink(missing_ok=True)
        for one in (self.workers, self.scheduler):
            _end(one)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _starts(folder: Path) -> int:
    """Units that workers have begun so far."""
    return sum(path.read_bytes().count(b'"start"') for path in (folder / "journal").glob("*.jsonl"))


def differences(one: Any, other: Any) -> list[str]:
    """The variables of two datasets that differ in a bit."""
    names = set(one.variables) ^ set(other.variables)
    for name in set(one.variables) & set(other.variables):
        if one[name].values.tobytes() != other[name].values.tobytes():
            names.add(name)
    return sorted(map(str, names))


def main() -> None:
    import attnflow as af
    from attnflow.sweeps.journal import events

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds after which nothing is killed any more")
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    path, record = _record.begin(ROOT, "sweeps", given.record, seed=given.seed)
    import sweeps  # the function under the name by which workers find it

    over = {"beta": [1.0, 2.0, 4.0, 8.0], "seed": range(given.tasks // 4)}
    workers = max(1, given.tasks // (4 * UNIT))
    with tempfile.TemporaryDirectory() as place:
        calm = af.sweep(sweeps.flow, over, Path(place) / "calm", workers=workers, width=WIDTH)
        units = len(calm.plan.units)
        largest = max(len(unit.names) for _, unit in calm.plan.units.values())
        folder, chaos = Path(place) / "chaos", Chaos(Path(place), given.seed, given.limit)
        time.sleep(5.0)
        thread = threading.Thread(target=chaos.rage, args=(folder, units), daemon=True)
        began = time.monotonic()
        try:
            thread.start()
            address = f"tcp://127.0.0.1:{chaos.port}"
            wild = af.sweep(sweeps.flow, over, folder, on=address, workers=workers, width=WIDTH)
            seconds = time.monotonic() - began
            chaos.over.set()
            thread.join()
        finally:
            chaos.end()
        log = list(events(folder))
        waits = (Path(place) / "log").read_text(errors="replace").count("is full; the sweep waits")
        completions = sum(event["tasks"] for event in log if event["event"] == "done")
        kills = len(chaos.kills)
        differ = differences(calm.dataset.load(), wild.dataset.load())
        findings = [f"{name} differs" for name in differ]
        bound = wild.plan.count + kills * largest
        findings += [f"{completions} completions, at most {bound} are allowed"] if completions > bound else []
        findings += [] if wild.status.missing == 0 else [f"{wild.status.missing} tasks are missing"]
        findings += [] if wild.status.failed == 1 else [f"{wild.status.failed} tasks failed, and one should"]
        findings += [] if waits else ["no worker met the full disk"]
        record |= {
            "tasks": wild.plan.count,
            "units": units,
            "side by side": WIDTH,
            "largest unit": largest,
            "seconds": round(seconds, 1),
            "kills": chaos.kills,
            "workers killed": sum(one["what"] == "worker" for one in chaos.kills),
            "schedulers killed": sum(one["what"] == "scheduler" for one in chaos.kills),
            "starts": sum(event["tasks"] for event in log if event["event"] == "start"),
            "completions": completions,
            "bound": bound,
            "full disks met": waits,
            "findings": findings,
        }
    _record.save(record, path)
    print({key: value for key, value in record.items() if key != "kills"})
    raise SystemExit(1 if findings else 0)


if __name__ == "__main__":
    main()
