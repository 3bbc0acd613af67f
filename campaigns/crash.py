"""Does a run survive the death of its process, or a disk that fails? An hour on two cores; part of `make long`.

    python campaigns/crash.py                              1,000 deaths and every change of every kind of run
    python campaigns/crash.py --kills 20 --every 50 --record trial.json

Deaths: processes are killed (SIGKILL) at instants spread evenly over the phases of a run, which are announced by the
process: its imports, the time up to the first saved rows (compiling among it), the rows, the figures. One in five is
killed again while it resumes. Failures: one change of the files of a run fails as on a full disk (ENOSPC) or a broken
one (EIO), once or from then on. After each of these the run is carried on, and its arrays must be those of a run that
nothing happened to, bit for bit. The record holds the phase and the instant of every death, the counts of the failures,
and every finding. Exit code 1 if there is one.
"""

import argparse
import contextlib
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _record

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PHASES = ("import", "compile", "rows", "figures")
AGAIN = 0.2
"""The share of runs that are killed once more, while they resume."""
IMPORTS = 0.05
"""The share of deaths during imports, which take a fresh interpreter each."""


def victim(kind: str, path: str, drawn: bool, phases: Any) -> None:
    """Carry a run out or on, and announce its phases; runs in a process of its own."""
    from tests.runs.failing import carried_on

    from attnflow.plots.report import draw_run

    def draw(run: Any, result: Any) -> dict[str, Any]:
        phases.send("figures")
        return draw_run(run, result)

    said = []

    def on_progress(at: Any) -> None:
        if at.steps > 0 and not said:
            said.append(True)
            phases.send("rows")

    phases.send("compile")
    carried_on(Path(path), kind, draw=draw if drawn else None, on_progress=on_progress)
    phases.send("end")


class Deaths:
    """Runs that are killed, and what became of them."""

    def __init__(self, place: Path, seed: int):
        from tests.runs.kinds import KINDS

        self.place, self.chance = place, random.Random(seed)
        self.context: Any = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["attnflow.runs.execution", "attnflow.plots.report", "tests.runs.failing"])
        self.kinds = list(KINDS)
        self.whole: dict[tuple[str, bool], Path] = {}
        self.lasts: dict[tuple[str, bool], dict[str, float]] = {}
        self.deaths: list[dict[str, Any]] = []
        self.findings: list[dict[str, Any]] = []

    def start(self, kind: str, path: Path, drawn: bool) -> tuple[Any, Any]:
        """A process that carries a run out, and what it announces."""
        ours, theirs = self.context.Pipe(duplex=False)
        child = self.context.Process(target=victim, args=(kind, str(path), drawn, theirs))
        child.start()
        theirs.close()
        return child, ours

    def learn(self, kind: str, drawn: bool) -> None:
        """Two runs that nothing happens to: the second one says how long the phases are once programs are on disk."""
        for number in range(2):
            path = self.place / f"whole-{kind}-{drawn}-{number}"
            child, phases = self.start(kind, path, drawn)
            times = {}
            with contextlib.suppress(EOFError):
                while True:
                    times[phases.recv()] = time.perf_counter()
            child.join()
            if child.exitcode:
                raise SystemExit(f"a run of the kind {kind} fails by itself.")
        order = [phase for phase in (*PHASES, "end") if phase in times]
        self.lasts[kind, drawn] = {a: times[b] - times[a] for a, b in itertools.pairwise(order)}
        self.whole[kind, drawn] = path

    def kill(self, kind: str, phase: str, path: Path) -> None:
        """Kill a run within a phase, at an instant that is spread evenly over it."""
        drawn = phase == "figures"
        if phase == "import":
            after = self.chance.uniform(0.0, 3.0)
            script = ROOT / "tests" / "runs" / "boundaries.py"
            (path.parent / "spec.toml").write_text(_text(kind), encoding="utf-8")
            words = [sys.executable, str(script), "execute", str(path.parent / "spec.toml"), str(path), "0", "-1"]
            fresh = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(after)
            fresh.send_signal(signal.SIGKILL)
            code = fresh.wait()
        else:
            after = self.chance.uniform(0.0, self.lasts[kind, drawn].get(phase, 0.05))
            child, phases = self.start(kind, path, drawn)
            with contextlib.suppress(EOFError):
                while phases.recv() != phase:
                    pass
            time.sleep(after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            child.join()
            code = child.exitcode
        late = code != -signal.SIGKILL
        self.deaths.append({"kind": kind, "phase": phase, "seconds": round(after, 4), "too late": late})

    def one(self, number: int, phase: str) -> None:
        """Kill a run once or twice, carry it on, and compare."""
        from tests.runs.failing import carried_on
        from tests.runs.kinds import is_the_run

        from attnflow.plots.report import draw_run

        kind, drawn = self.kinds[number % len(self.kinds)], phase == "figures"
        path = self.place / "run" / "it"
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        try:
            self.kill(kind, phase, path)
            if phase != "import" and self.chance.random() < AGAIN:
                self.kill(kind, phase, path)
            carried_on(path, kind, draw=draw_run if drawn else None)
            is_the_run(path, self.whole[kind, drawn])
            if drawn and not (path / "report.html").stat().st_size:
                raise AssertionError("there is no report")
        except Exception as error:
            found = self.deaths[-1] | {"number": number, "finding": f"{type(error).__name__}: {error}"[:500]}
            print(f"    {found}", flush=True)
            self.findings.append(found)

    def counts(self) -> dict[str, int]:
        """Deaths in each phase."""
        return {phase: sum(d["phase"] == phase and not d["too late"] for d in self.deaths) for phase in PHASES}


def _text(kind: str) -> str:
    from tests.runs.kinds import TEXTS

    return TEXTS[kind]


def failures(kind: str, every: int, place: Path) -> dict[str, Any]:
    """Let every change of a run of one kind fail, each in one of four ways in turn."""
    from tests.runs.failing import FAULTS, changes_of, survive
    from tests.runs.kinds import of

    from attnflow.runs import execute

    whole, folder = place / "whole", place / "run"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    execute(of(kind), whole)
    total, said, findings = changes_of(kind, place / "count"), 0, []
    ways = [(fault, lasting) for lasting in (False, True) for fault in FAULTS]
    for k in range(0, total, every):
        shutil.rmtree(folder, ignore_errors=True)
        fault, lasting = ways[k % len(ways)]
        try:
            said += survive(kind, k, fault, lasting, folder, whole)
        except Exception as error:
            found = {
                "change": k,
                "fault": fault,
                "lasting": lasting,
                "finding": f"{type(error).__name__}: {error}"[:500],
            }
            print(f"    {kind}: {found}", flush=True)
            findings.append(found)
    return {"changes": total, "failed": len(range(0, total, every)), "refused": said, "findings": findings}


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--every", type=int, default=1, help="let every so many-th change fail; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="default: campaigns/records/crash-DATE.json")
    options = parser.parse_args()
    path, record = _record.begin(ROOT, "crash", options.record, seed=options.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        os.environ |= {"JAX_COMPILATION_CACHE_DIR": str(place / "compiled"), "EQX_ON_ERROR": "nan"}
        os.environ |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        deaths = Deaths(place, options.seed)
        if options.kills:
            for kind in deaths.kinds:
                deaths.learn(kind, False)
                deaths.learn(kind, True)
            later = [phase for phase in PHASES if phase != "import"]
            for number in itertools.count():
                if sum(deaths.counts().values()) >= options.kills:
                    break
                early = number % round(1 / IMPORTS) == 0
                deaths.one(number, "import" if early else later[(number // len(deaths.kinds)) % len(later)])
                if number % 50 == 49:
                    print(f"{number + 1} runs, {len(deaths.deaths)} deaths: {deaths.counts()}", flush=True)
                    record |= {"deaths": {"counts": deaths.counts(), "findings": deaths.findings, "all": deaths.deaths}}
                    _record.save(record, path)
            record |= {"deaths": {"counts": deaths.counts(), "findings": deaths.findings, "all": deaths.deaths}}
        if options.every:
            record["failures"] = {}
            for kind in deaths.kinds:
                record["failures"][kind] = failures(kind, options.every, place / "failing")
                print(f"{kind}: {record['failures'][kind]}", flush=True)
                _record.save(record, path)
        _record.save(record, path)
    found = [*record.get("deaths", {}).get("findings", [])]
    found += [one for kind in record.get("failures", {}).values() for one in kind["findings"]]
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
