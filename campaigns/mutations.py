"""Does the test suite notice when one line of the package is wrong? Hours on two cores; part of `make long`.

    python campaigns/mutations.py                       120 mutants, all processors, the record of today
    python campaigns/mutations.py --list --count 12     which lines would be changed, and how
    python campaigns/mutations.py --only theory/landscape/rings.py --count 5 --no-whole --record trial.json
    python campaigns/mutations.py --slice 1/4 --budget 240 --limit 60 --jobs 16 --record part-1.json
    python campaigns/mutations.py --merge part-*.json --record campaigns/records/mutations-2026-01-31.json
    python campaigns/mutations.py --mutants campaigns/records/mutations-2026-01-31.json      the same ones again

Mutants (one small change of one line, see `_mutants.py`) are drawn by a seed: half of them, as many in each, from the
six rooms that hold mathematics, and half, by the next seed, from all others; the files in no folder of the package are
a room too. Each is applied to a copy of the whole tree in a temporary folder, never to the tree itself, and the copy is
what the tests import: PYTHONPATH points to it, and nothing begins if `attnflow` comes from elsewhere.

A mutant meets, until a test fails: the tests of its room, files that name the module or what it defines first, and the
conformance tests ("near"); those elsewhere that name it ("wide"); then all ("whole"). These are the tests that CI
runs, all without the mark `long`; `--marks "not slow and not long"` leaves those of `make test`. A test that fails must
fail twice, and pass without the change; one that does not end in its time counts as failed. The record says which test
killed a mutant and its mark: `slow`, or `test` if it has none.

With --mutants the changes of a record are made again, found by their text where lines have moved, and each meets first
the test that killed it. Those whose line no longer exists are `gone`, and a person looks for what is there instead.
What was killed and survives now is lost: it is named at the end, with exit code 1.

The record is written every few seconds and at the end; no git is needed (`--commit` says what the tree is). Started
again with the same options, the campaign goes on where it stopped (the package must be the same; when tests were added,
`--retry` runs the survivors again). A survivor shows a test that is missing, unless the change makes no difference: a
person who can say why writes file, before, after and the reason into `equivalent.toml`. Verdicts: killed, survived,
equivalent, gone. Exit code 1 if a mutant survived.
"""

import argparse
import concurrent.futures
import datetime
import heapq
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _record
from _bench import Bench, Stopped, nearest
from _mutants import Mutant, draw, find, place, rooms

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "campaigns" / "records"
EQUIVALENT = ROOT / "campaigns" / "equivalent.toml"
PAUSE = 5.0
"""Seconds between two times that the record is written while mutants run."""


class Campaign:
    """The mutants of one call, and the record that they fill."""

    def __init__(self, options: argparse.Namespace, bench: Bench, record: dict[str, Any], chosen: list[Mutant]):
        self.options, self.bench, self.record = options, bench, record
        k, n = options.slice
        self.order = {mutant.key(): at for at, mutant in enumerate(chosen)}
        self.mine = chosen[k - 1 :: n]
        self.deadline = time.monotonic() + options.budget
        self.killers = {entry["again"]: entry["by"] for entry in options.again if entry["again"]}
        self.equivalents = _record.equivalents(EQUIVALENT)
        self.entries = {_key(entry): entry for entry in record["mutants"]}
        self.saved = time.monotonic()

    def entry(self, mutant: Mutant) -> dict[str, Any]:
        """The entry of a mutant in the record, or a new one."""
        if mutant.key() in self.entries:
            return self.entries[mutant.key()]
        file, line, before, after = mutant.key()
        source = (self.bench.base / "src" / "attnflow" / file).read_text(encoding="utf-8")
        return {
            "file": file, "line": line, "place": place(source, line), "kind": mutant.kind, "before": before,
            "after": after, "verdict": "survived", "mark": "", "by": "", "met": [], "seconds": 0.0, "why": "",
        }  # fmt: skip

    def keep(self, *entries: dict[str, Any]) -> None:
        """Judge entries and put them into the record."""
        _record.judge({"mutants": entries}, self.equivalents)
        self.entries |= {_key(entry): entry for entry in entries}
        if time.monotonic() > self.saved + PAUSE:
            self.save()

    def save(self) -> None:
        """Write the record, mutants in the order in which they were drawn."""
        self.record["mutants"] = sorted(
            self.entries.values(), key=lambda entry: self.order.get(_key(entry), len(self.order))
        )
        _record.save(self.record, self.options.record)
        self.saved = time.monotonic()

    def tests(self, mutant: Mutant, stage: str) -> list[str]:
        """The arguments for pytest."""
        if stage == "whole":
            parallel = ["-n", str(self.options.workers), "--dist", "worksteal"] if self.options.workers > 1 else []
            return [*parallel, "tests"]
        near, wide = nearest(self.bench.base, mutant.file)
        return near if stage == "near" else wide

    def meet(self, mutant: Mutant, stage: str) -> dict[str, Any]:
        """Apply a mutant to a copy, run the tests of a stage, and put the file back; its entry."""
        entry, began = self.entry(mutant), time.monotonic()
        end = min(began + self.options.limit, self.deadline)
        by = self.killers.get(mutant.key(), "")
        tests, verdict = self.tests(mutant, stage), "survived"
        copy = self.bench.free.get()
        try:
            mutant.apply(copy / "src" / "attnflow")
            if "::" in by and stage == "near" and self.bench.sound(by):
                verdict, by = self.bench.check(copy, [by], end - time.monotonic())
            if verdict != "killed" and tests:
                verdict, by = self.bench.check(copy, tests, end - time.monotonic())
        finally:
            shutil.copy2(self.bench.base / "src" / "attnflow" / mutant.file, copy / "src" / "attnflow" / mutant.file)
            self.bench.free.put(copy)
        entry = entry | {"seconds": round(entry["seconds"] + time.monotonic() - began, 1)}
        if verdict == "killed":
            return entry | {"verdict": "killed", "mark": self.bench.marks[by], "by": by, "why": ""}
        return entry | {"met": entry["met"] + [stage] * (verdict == "survived")}

    def run(self) -> None:
        """All that is left of this slice: early stages first, each mutant as far as it survives.

        What a person called equivalent in the record that is run again is so again.
        """
        same = {entry["again"] for entry in self.options.again if entry["verdict"] == "equivalent"}
        self.keep(*(self.entry(mutant) for mutant in self.mine if mutant.key() in same))
        self.side_by_side(["near", "wide"], self.options.jobs)
        if self.options.whole:
            self.side_by_side(["whole"], max(1, self.options.jobs // self.options.workers))

    def side_by_side(self, stages: list[str], jobs: int) -> None:
        """Let every mutant meet these stages; none begins after the budget is spent."""
        waiting: list[tuple[int, int]] = []
        running: dict[concurrent.futures.Future[dict[str, Any]], tuple[int, int]] = {}

        def queue(at: int, behind: int = -1) -> None:
            entry = self.entry(self.mine[at])
            left = [k for k, stage in enumerate(stages) if stage not in entry["met"] and k > behind]
            if left and entry["verdict"] == "survived":
                heapq.heappush(waiting, (left[0], at))

        for at in range(len(self.mine)):
            queue(at)
        with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
            try:
                while running or (waiting and time.monotonic() < self.deadline):
                    while waiting and len(running) < jobs and time.monotonic() < self.deadline:
                        stage, at = heapq.heappop(waiting)
                        running[pool.submit(self.meet, self.mine[at], stages[stage])] = (stage, at)
                    done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                    for future in done:
                        stage, at = running.pop(future)
                        entry = future.result()
                        self.keep(entry)
                        finished = stages[stage] in entry["met"]
                        word = f"{entry['mark']}: {entry['by']}" if entry["verdict"] == "killed" else stages[stage]
                        verdict = entry["verdict"] if finished or entry["verdict"] == "killed" else "cut"
                        print(
                            f"{entry['seconds']:6.0f} s  {verdict:9s}{entry['file']}:{entry['line']} {word}", flush=True
                        )
                        queue(at, stage)  # what was cut short waits for another call
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.bench.stop()
                raise
            finally:
                self.save()

    def report(self) -> int:
        """Say what was found; exit code 1 if a mutant survived or was lost."""
        gone = [
            one | {"verdict": "gone", "by": "", "mark": "", "met": []} for one in self.options.again if not one["again"]
        ]
        self.keep(*({key: value for key, value in one.items() if key != "again"} for one in gone))
        self.save()
        mine = {mutant.key() for mutant in self.mine}
        entries = [one for one in self.record["mutants"] if _key(one) in mine or one["verdict"] == "gone"]
        counts: dict[str, int] = {}
        for one in entries:
            name = f"killed ({one['mark']})" if one["verdict"] == "killed" else one["verdict"]
            counts[name] = counts.get(name, 0) + 1
        words = ", ".join(f"{count} {name}" for name, count in counts.items())
        print(f"{len(entries)} of {len(self.mine)} mutants: {words}; written to {self.options.record}")
        for one in (one for one in entries if one["verdict"] in ("survived", "gone")):
            print(f"\n{one['verdict']} {one['file']}:{one['line']}\n- {one['before']}\n+ {one['after']}")
        lost = _record.lost(_record.load(self.options.mutants), self.record) if self.options.mutants else []
        for line in lost:
            print(f"lost: {line}")
        return 1 if lost or "survived" in counts else 0


def _key(entry: dict[str, Any]) -> tuple[str, int, str, str]:
    return entry["file"], entry["line"], entry["before"], entry["after"]


def _chosen(package: Path, options: argparse.Namespace) -> list[Mutant]:
    """The mutants of this call: drawn, or those of a record whose lines still exist."""
    options.again = []
    if options.mutants is None:
        return draw(package, options.count, options.seed, options.only)
    old = _record.load(options.mutants)
    options.seed, options.count, options.only = old["seed"], old["count"], old["only"]
    chosen = []
    for entry in old["mutants"]:
        mutant = find(package, entry)
        options.again.append(entry | {"again": mutant and mutant.key()})
        chosen += [mutant] if mutant else []
    return chosen


def _begin(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """The record so far, or a new one; refuses one of another campaign."""
    new = {
        "date": "", "commit": options.commit, "source": _record.of_folder(bench.base), **bench.facts(),
        "seed": options.seed, "count": options.count, "only": options.only,
        "again": options.mutants.name if options.mutants else None, "marks": options.marks,
        "options": options.pytest, "mutants": [],
    }  # fmt: skip
    if not options.record.exists():
        return new
    old = _record.load(options.record)
    for key in _record.SAME:
        if old.get(key) != new[key]:
            raise SystemExit(
                f"{options.record} is of another campaign ({key} {old.get(key)}, not {new[key]}); give --record."
            )
    kept = [one for one in old["mutants"] if not (options.retry and one["verdict"] == "survived")]
    return new | {"mutants": kept}


def _commit() -> str:
    try:
        return _record.git(ROOT, "rev-parse", "HEAD").strip()
    except (OSError, subprocess.CalledProcessError):
        return ""  # the digest of the source says what ran


def _slice(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found.group(1)) <= int(found.group(2)):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with 1 <= K <= N, such as 2/4")
    return int(found.group(1)), int(found.group(2))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = os.cpu_count() or 1
    today = RECORDS / f"mutations-{datetime.date.today()}.json"
    parser.add_argument("--count", type=int, default=120, help="mutants in all (120)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--only", metavar="FILE", help="of this file alone, such as theory/landscape/rings.py")
    parser.add_argument("--list", action="store_true", help="print the changes and run nothing")
    parser.add_argument(
        "--slice", type=_slice, default=(1, 1), metavar="K/N", help="every N-th mutant from the K-th on"
    )
    parser.add_argument(
        "--budget", type=float, default=float("inf"), metavar="SECONDS", help="begin nothing after that"
    )
    parser.add_argument("--jobs", type=int, default=cores, metavar="J", help=f"mutants at a time ({cores})")
    parser.add_argument("--workers", type=int, metavar="W", help="processes for one whole suite (as many as --jobs)")
    parser.add_argument("--whole", action=argparse.BooleanOptionalAction, default=True, help="survivors meet all tests")
    parser.add_argument("--retry", action="store_true", help="run the survivors of the record again")
    parser.add_argument("--python", default=sys.executable, help="the interpreter with the test environment (this one)")
    parser.add_argument(
        "--pytest",
        action="append",
        default=[],
        metavar="OPTION",
        help="for every test run, such as --pytest=--deselect=T",
    )
    parser.add_argument(
        "--costs", type=Path, metavar="FILE", help='lines of JSON with "id" and "wall": cheap tests first'
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="for one stage, which is cut short after that",
    )
    parser.add_argument(
        "--marks",
        default="not long",
        metavar="EXPRESSION",
        help='tests that mutants meet, as for pytest -m ("not long")',
    )
    parser.add_argument("--mutants", type=Path, metavar="RECORD", help="those of this record, instead of drawing")
    parser.add_argument("--commit", help="what the tree is, where there is no git")
    parser.add_argument("--record", type=Path, metavar="FILE", help=f"default {today.relative_to(ROOT)}")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="join these records into --record")
    options = parser.parse_args()
    if options.list:
        every = _chosen(ROOT / "src" / "attnflow", options)
        for mutant in every[options.slice[0] - 1 :: options.slice[1]]:
            print(mutant.diff())
        return 0
    if options.record is None and (options.merge or options.slice != (1, 1) or options.only):
        parser.error("a part of a campaign needs --record FILE")
    options.record = (options.record or today).resolve()
    if options.merge:
        merged = _record.merge([_record.load(path) for path in options.merge])
        _record.judge(merged, _record.equivalents(EQUIVALENT))
        _record.save(merged, options.record)
        print(f"{len(merged['mutants'])} of {merged['count']} mutants; written to {options.record}")
        return 0
    options.workers = options.workers or options.jobs
    options.commit = options.commit or _commit()
    # a venv is known by the path of its interpreter: make it absolute, but follow no link
    options.python = os.path.abspath(options.python) if os.sep in options.python else options.python
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        costs = [f"--costs={options.costs.resolve()}"] if options.costs else []
        bench = Bench(ROOT, Path(folder), options.python, options.jobs, ["-m", options.marks, *options.pytest, *costs])
        chosen = _chosen(bench.base / "src" / "attnflow", options)
        missing = set(rooms(bench.base / "src" / "attnflow")) - {mutant.room for mutant in chosen}
        if missing and not (options.only or options.mutants):
            raise SystemExit(f"--count {options.count} is too few, no mutant is in {', '.join(sorted(missing))}.")
        campaign = Campaign(options, bench, _begin(options, bench), chosen)
        try:
            campaign.run()
        except (KeyboardInterrupt, Stopped):
            print("stopped; the same command goes on from here.", file=sys.stderr)
            return 130
        finally:
            bench.stop()
        return campaign.report()


if __name__ == "__main__":
    sys.exit(main())
