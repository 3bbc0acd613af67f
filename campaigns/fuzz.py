"""Does bad input always end in an answer or in one sentence? Hours on two cores; part of `make long`.

    python campaigns/fuzz.py                                   100,000 validations and 1,000 runs, the record of today
    python campaigns/fuzz.py --validations 2000 --runs 10 --seed 3 --record trial.json
    python campaigns/fuzz.py --count calls=1000 --count environments=80 --validations 0 --runs 0

Examples come from the grammars in `tests/fuzz.py` and `tests/fuzz_commands.py`: specifications, calls of the API,
command lines on terminals of several encodings and files are checked in this process; small specifications are carried
out by `attnflow run`; odd environments, and Ctrl-C while modules are imported, get processes of their own. The record
counts them and holds every finding: a traceback, a warning, an example over its budget of CPU seconds, a file outside
of the folder that was asked for, a refusal that is not one sentence with its exit code. Exit code 1 if there is one.
Damaged folders are the business of `campaigns/strangers.py`.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import _record

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import fuzz  # noqa: E402
from tests import fuzz_commands as commands  # noqa: E402

SEED = 20261118
"""The seed of the next campaign; it is committed before the campaign begins."""
SHARES = {
    "specifications": 0.47, "calls": 0.42, "command lines": 0.068, "files": 0.04, "environments": 0.001,
    "interruptions": 0.001,
}  # fmt: skip
"""Of the validations."""
MOST_FINDINGS = 50


def examples(strategy: Any, count: int, number: int, check: Callable[[Any], None]) -> dict[str, Any]:
    """`count` examples of a strategy; findings do not end them."""
    findings: list[dict[str, str]] = []
    began, done = time.process_time(), 0

    @seed(number)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(example=strategy)
    def one(example: Any) -> None:
        nonlocal done
        done += 1
        try:
            check(example)
        except fuzz.Finding as finding:
            if str(finding)[-60:] not in {one["finding"][-60:] for one in findings} and len(findings) < MOST_FINDINGS:
                print(f"    {finding}\n        {example!r}"[:800], flush=True)
                findings.append({"finding": str(finding), "example": repr(example)[:2000]})

    one()
    return {"examples": done, "cpu_seconds": round(time.process_time() - began), "findings": findings}


def file_of(place: Path) -> Callable[[bytes], None]:
    """Read bytes as a specification."""

    def check(content: bytes) -> None:
        (place / "file.toml").write_bytes(content)
        commands.check_command(["run", "file.toml"], place)

    return check


def carried_out(place: Path) -> Callable[[Any], None]:
    """Carry a specification out by `attnflow run`."""

    def check(table: Any) -> None:
        (place / "file.toml").write_text(fuzz.as_toml(table))
        shutil.rmtree(place / "out", ignore_errors=True)
        commands.check_command(["run", "file.toml", "--out", "out"], place, runs=True, seconds=300.0)

    return check


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validations", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--count", action="append", default=[], metavar="KIND=N", help="another number of one kind")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--record", type=Path, help="default: campaigns/records/fuzz-DATE.json")
    options = parser.parse_args()
    counts = {kind: round(share * options.validations) for kind, share in SHARES.items()} | {"runs": options.runs}
    counts |= {kind: int(number) for kind, _, number in (one.partition("=") for one in options.count)}
    path, record = _record.begin(ROOT, "fuzz", options.record, seed=options.seed, kinds={})
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "here"
        commands.furnish(place)
        lines = commands.plain_lines
        work: dict[str, tuple[Any, Callable[[Any], None]]] = {
            "specifications": (fuzz.specifications(5), fuzz.check_specification),
            "calls": (fuzz.calls(), lambda call: fuzz.check_call(*call)),
            "command lines": (
                st.tuples(commands.command_lines, commands.ENCODINGS),
                lambda one: commands.check_command(one[0], place, encoding=one[1]),
            ),
            "files": (commands.texts_of_files(), file_of(place)),
            "environments": (
                st.tuples(commands.environments, lines),
                lambda one: commands.check_environment(place, *one),
            ),
            "interruptions": (
                st.tuples(st.integers(1, 2500), lines),
                lambda one: commands.check_interruption(place, *one),
            ),
            "runs": (fuzz.specifications(2).filter(fuzz.small), carried_out(place)),
        }
        for kind, (strategy, check) in work.items():
            if counts[kind]:
                print(f"{kind}: {counts[kind]}", flush=True)
                record["kinds"][kind] = examples(strategy, counts[kind], options.seed, check)
                _record.save(record, path)
    return bool(sum(len(found["findings"]) for found in record["kinds"].values()))


if __name__ == "__main__":
    sys.exit(main())
