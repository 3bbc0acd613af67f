"""Does the test suite notice when one line of the package is wrong? Hours on two cores; part of `make long`.

    python campaigns/mutations.py                       60 mutants, all processors, the record of today
    python campaigns/mutations.py --list --count 12     which lines would be changed, and how
    python campaigns/mutations.py --only theory/rings.py --count 5 --no-whole --record trial.json
    python campaigns/mutations.py --slice 1/4 --budget 240 --jobs 16 --record part-1.json
    python campaigns/mutations.py --merge part-*.json --record campaigns/records/mutations-2026-01-31.json

Mutants (one small change of one line, see `_mutants.py`) are drawn by a seed, as many in each of the six rooms that
hold mathematics. Each is applied to a copy of the whole tree in a temporary folder, never to the tree itself, and the
copy is what the tests import: PYTHONPATH points to it, and nothing begins if `attnflow` comes from elsewhere.

First the nearest tests run: those of its room, beginning with the files that name the module or what it defines, then
the conformance tests. A mutant that survives them meets the whole suite of `make test`. Before that, every test file
runs once without a change: it must pass, and three times its seconds (at least 300) are the time limit of a mutant;
what takes longer counts as killed. A test that fails must fail twice, so that no accident kills a mutant.

The record is written after every mutant. Started again with the same options, the campaign goes on where it stopped
(the package must be the same; when tests were added, `--retry` runs the survivors again). A survivor shows a test that
is missing, unless the change makes no difference: a person who can say why writes file, before, after and the reason
into `equivalent.toml`. Verdicts: killed, survived, equivalent. Exit code 1 if a mutant survived.
"""

import argparse
import concurrent.futures
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _record
from _bench import Bench, Stopped, nearest
from _mutants import ROOMS, Mutant, choose

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "campaigns" / "records"
EQUIVALENT = ROOT / "campaigns" / "equivalent.toml"
LEAST = 300.0
"""Seconds that every mutant is given."""
WHOLE = "the whole suite"


class Campaign:
    """The mutants of one call, and the record that they fill."""

    def __init__(self, options: argparse.Namespace, bench: Bench, record: dict[str, Any], chosen: list[Mutant]):
        self.options, self.bench, self.record = options, bench, record
        k, n = options.slice
        order = {mutant.key(): at for at, mutant in enumerate(chosen)}
        self.mine, self.order = chosen[k - 1 :: n], order
        self.lock, self.deadline = threading.Lock(), time.monotonic() + options.budget

    def known(self, mutant: Mutant) -> dict[str, Any] | None:
        """Its entry in the record."""
        return next((one for one in self.record["mutants"] if _key(one) == mutant.key()), None)

    def keep(self, entry: dict[str, Any] | None, seconds: dict[str, float]) -> None:
        """Put a verdict or the time of a test file into the record, and write it."""
        with self.lock:
            self.record["seconds"] |= {name: round(value, 1) for name, value in seconds.items()}
            if entry is not None:
                others = [one for one in self.record["mutants"] if _key(one) != _key(entry)]
                self.record["mutants"] = sorted([*others, entry], key=lambda one: self.order.get(_key(one), 0))
            _record.judge(self.record, _record.equivalents(EQUIVALENT))
            _record.save(self.record, self.options.record)

    def side_by_side(self, work: Callable[[Any], None], items: list[Any], jobs: int) -> None:
        """Work through the items; none begins after the budget is spent."""

        def one(item: Any) -> None:
            if time.monotonic() < self.deadline:
                work(item)

        with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
            futures = [pool.submit(one, item) for item in items]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.bench.stop()
                raise

    def time_tests(self, name: str) -> None:
        """Run a test file, or all, without a change: it must pass."""
        arguments = self.whole() if name == WHOLE else [name]
        code, by, seconds = self.bench.pytest(self.bench.base, arguments, None)
        if code not in (0, 5):
            raise SystemExit(f"without any change {by} fails; a campaign begins with tests that pass.")
        print(f"{seconds:6.0f} s  {name} without a change", flush=True)
        self.keep(None, {name: seconds})

    def whole(self) -> list[str]:
        """The arguments for all tests; the record does not judge itself."""
        side = ["-n", str(self.options.workers), "--dist", "worksteal"] if self.options.workers > 1 else []
        return [*side, "--ignore=tests/test_records.py", "tests"]

    def meet(self, mutant: Mutant, suite: str) -> None:
        """Apply a mutant to a copy, run the tests, and put the file back."""
        tests = nearest(self.bench.base, mutant.file) if suite == "near" else self.whole()
        names = tests if suite == "near" else [WHOLE]
        usual = sum(self.record["seconds"].get(name, LEAST) for name in names)
        copy = self.bench.free.get()
        try:
            mutant.apply(copy / "src" / "attnflow")
            killed, by, seconds = self.bench.check(copy, tests, max(LEAST, 3 * usual))
        finally:
            shutil.copy2(self.bench.base / "src" / "attnflow" / mutant.file, copy / "src" / "attnflow" / mutant.file)
            self.bench.free.put(copy)
        file, line, before, after = mutant.key()
        spent = seconds + ((self.known(mutant) or {}).get("seconds", 0.0) if suite == "whole" else 0.0)
        verdict = "killed" if killed else "survived"
        self.keep(
            {"file": file, "line": line, "kind": mutant.kind, "before": before, "after": after, "verdict": verdict,
             "by": by, "seconds": round(spent, 1), "suite": suite, "why": ""}, {}
        )  # fmt: skip
        print(f"{seconds:6.0f} s  {verdict:9s}{file}:{line} {('by ' + by) if killed else suite}", flush=True)

    def run(self) -> None:
        """All that is left of this slice."""
        left = [mutant for mutant in self.mine if self.known(mutant) is None]
        names = dict.fromkeys(name for mutant in left for name in nearest(self.bench.base, mutant.file))
        self.side_by_side(self.time_tests, [n for n in names if n not in self.record["seconds"]], self.options.jobs)
        timed = [m for m in left if all(n in self.record["seconds"] for n in nearest(self.bench.base, m.file))]
        self.side_by_side(lambda mutant: self.meet(mutant, "near"), timed, self.options.jobs)
        if not self.options.whole or time.monotonic() > self.deadline:
            return
        entries = [(mutant, self.known(mutant)) for mutant in self.mine]
        alive = [m for m, one in entries if one and (one["verdict"], one["suite"]) == ("survived", "near")]
        if alive and WHOLE not in self.record["seconds"]:
            self.time_tests(WHOLE)
        self.side_by_side(
            lambda mutant: self.meet(mutant, "whole"), alive, max(1, self.options.jobs // self.options.workers)
        )

    def report(self) -> int:
        """Say what was found; exit code 1 if a mutant survived."""
        self.keep(None, {})  # equivalents may have been added since the last mutant ran
        entries = [one for mutant in self.mine if (one := self.known(mutant))]
        verdicts = {
            name: sum(one["verdict"] == name for one in entries) for name in ("killed", "survived", "equivalent")
        }
        words = ", ".join(f"{count} {name}" for name, count in verdicts.items())
        print(f"{len(entries)} of {len(self.mine)} mutants: {words}; written to {self.options.record}")
        for one in (one for one in entries if one["verdict"] == "survived"):
            print(f"\n{one['file']}:{one['line']}\n- {one['before']}\n+ {one['after']}")
        return 1 if verdicts["survived"] else 0


def _key(entry: dict[str, Any]) -> tuple[str, int, str, str]:
    return entry["file"], entry["line"], entry["before"], entry["after"]


def _begin(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """The record so far, or a new one; refuses one of another campaign."""
    new = {
        "date": "", "commit": options.commit, "source": _record.of_folder(bench.base), **bench.facts(),
        "seed": options.seed, "count": options.count, "only": options.only, "deselected": options.deselect,
        "seconds": {}, "mutants": [],
    }  # fmt: skip
    if not options.record.exists():
        return new
    old = _record.load(options.record)
    for key in _record.SAME:
        if old[key] != new[key]:
            raise SystemExit(
                f"{options.record} is of another campaign ({key} {old[key]}, not {new[key]}); give --record."
            )
    kept = [one for one in old["mutants"] if not (options.retry and one["verdict"] == "survived")]
    return new | {"mutants": kept, "seconds": {} if options.retry else old["seconds"]}


def _commit() -> str:
    try:
        if _record.git(ROOT, "status", "--porcelain", "--", "src", "tests").strip():
            print(
                "src or tests differ from the last commit: commit first, or the record will not pass.", file=sys.stderr
            )
        return _record.git(ROOT, "rev-parse", "HEAD").strip()
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit("there is no git here: say which commit this is with --commit.") from None


def _slice(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found.group(1)) <= int(found.group(2)):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with 1 <= K <= N, such as 2/4")
    return int(found.group(1)), int(found.group(2))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = os.cpu_count() or 1
    today = RECORDS / f"mutations-{datetime.date.today()}.json"
    parser.add_argument("--count", type=int, default=60, help="mutants in all (60)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--only", metavar="FILE", help="of this file alone, such as theory/rings.py")
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
        "--deselect", action="append", default=[], metavar="TEST", help="leave out a test that this machine cannot run"
    )
    parser.add_argument("--commit", help="what the tree is, where there is no git")
    parser.add_argument("--record", type=Path, metavar="FILE", help=f"default {today.relative_to(ROOT)}")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="join these records into --record")
    options = parser.parse_args()
    if options.list:
        every = choose(ROOT / "src" / "attnflow", options.count, options.seed, options.only)
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
        bench = Bench(ROOT, Path(folder), options.python, options.jobs, options.deselect)
        chosen = choose(bench.base / "src" / "attnflow", options.count, options.seed, options.only)
        if {mutant.room for mutant in chosen} != set(ROOMS) and not options.only:
            raise SystemExit(f"--count {options.count} is too few for {len(ROOMS)} rooms.")
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
