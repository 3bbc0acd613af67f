"""Does bad input always end in an answer or in one sentence? Hours on two cores; part of `make long`.

    python campaigns/fuzz.py                                   100,000 validations and 1,000 runs, the record of today
    python campaigns/fuzz.py --validations 2000 --runs 10 --seed 3 --record trial.json

Examples come from the grammar in `tests/fuzz.py`: specifications, calls of the API, command lines, files and damaged
run folders are checked in this process without being run; small specifications are carried out by `attnflow run`. The
record counts them and holds every finding: a traceback, an example over its budget of CPU seconds, a file outside of
the folder that was asked for, a refusal that is not one sentence with its exit code. Exit code 1 if there is one.
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

SHARES = {"specifications": 0.45, "calls": 0.4, "command lines": 0.06, "files": 0.04, "damaged folders": 0.05}
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


def damaged(place: Path) -> Callable[[Any], None]:
    """Damage a copy of a run, then show, list and resume it."""

    def check(example: Any) -> None:
        change, command = example
        other = place / "damaged"
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(place / "run", other / "run")
        fuzz.damage(other / "run", *change)
        rest = ["--root", "damaged"] if command[0] == "list" else ["damaged/run"]
        fuzz.check_command([*command, *rest], place, runs=True)

    return check


def file_of(place: Path) -> Callable[[bytes], None]:
    """Read bytes as a specification."""

    def check(content: bytes) -> None:
        (place / "file.toml").write_bytes(content)
        fuzz.check_command(["run", "file.toml"], place)

    return check


def carried_out(place: Path) -> Callable[[Any], None]:
    """Carry a specification out by `attnflow run`."""

    def check(table: Any) -> None:
        (place / "file.toml").write_text(fuzz.as_toml(table))
        shutil.rmtree(place / "out", ignore_errors=True)
        fuzz.check_command(["run", "file.toml", "--out", "out"], place, runs=True, seconds=300.0)

    return check


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validations", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="default: campaigns/records/fuzz-DATE.json")
    options = parser.parse_args()
    path, record = _record.begin(ROOT, "fuzz", options.record, seed=options.seed, kinds={})
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "here"
        place.mkdir()
        (place / "good.toml").write_text(fuzz.as_toml(fuzz.GOOD["solve"]))
        (place / "bad.toml").write_text("[solve]\nuntil = ")
        code, _, err = fuzz.command(["run", "good.toml", "--out", "run"], place)
        if code:
            print(err, file=sys.stderr)
            return 2
        shutil.copytree(place / "run", place / "broken")
        (place / "broken" / "manifest.json").write_text("[1, 2]")
        commands = st.sampled_from([["show"], ["show", "--json"], ["list"], ["resume"]])
        work: dict[str, tuple[Any, Callable[[Any], None]]] = {
            "specifications": (fuzz.specifications(5), fuzz.check_specification),
            "calls": (fuzz.calls(), lambda call: fuzz.check_call(*call)),
            "command lines": (fuzz.command_lines, lambda line: fuzz.check_command(line, place)),
            "files": (fuzz.texts_of_files(), file_of(place)),
            "damaged folders": (st.tuples(fuzz.damages(), commands), damaged(place)),
        }
        for kind, (strategy, check) in work.items():
            count = round(SHARES[kind] * options.validations)
            print(f"{kind}: {count}", flush=True)
            record["kinds"][kind] = examples(strategy, count, options.seed, check) if count else {"findings": []}
            _record.save(record, path)
        if options.runs:
            print(f"runs: {options.runs}", flush=True)
            small = fuzz.specifications(2).filter(fuzz.small)
            record["kinds"]["runs"] = examples(small, options.runs, options.seed, carried_out(place))
            _record.save(record, path)
    return bool(sum(len(found["findings"]) for found in record["kinds"].values()))


if __name__ == "__main__":
    sys.exit(main())
