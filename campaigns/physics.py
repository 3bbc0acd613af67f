"""Does every claim of the gallery notice broken physics? About an hour on two cores; part of `make long`.

    python campaigns/physics.py                    all experiments, the record of today
    python campaigns/physics.py zonal staircase    these only; other rows of the record stay
    python campaigns/physics.py --jobs 2 --record trial.json

Every experiment runs in its quick version, as it is and under each of its mutations (`MUTATIONS`): changes of the
simulation, never of stored data or predictions. The record says which claims fail under which mutation, and for which
`program` (`_program.py`): it stands until the experiment computes something else, whatever its words are. Exit code 1
if a claim survives all mutations of its experiment, or fails without one.
"""

import argparse
import concurrent.futures
import datetime
import json
import subprocess
import sys
import time
from pathlib import Path

import _record
from _program import program_hash

ROOT = Path(__file__).resolve().parent.parent
ONE = """
import dataclasses, json, sys
from attnflow.experiments import find, kill_matrix
module = find(sys.argv[1]).module()
found = kill_matrix(module, module.QUICK)
print(json.dumps(dataclasses.asdict(found)))
"""


def one(name: str) -> tuple[str, dict | str]:
    """The matrix of one experiment, made in a process of its own, or what went wrong."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", ONE, name], capture_output=True, text=True)
    if done.returncode:
        return name, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
    return name, json.loads(done.stdout.splitlines()[-1]) | {"seconds": round(time.monotonic() - began)}


def main() -> int:
    """Run the campaign."""
    from attnflow.experiments import names

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="experiments; all by default")
    parser.add_argument("--jobs", type=int, default=2, help="experiments at a time")
    parser.add_argument("--record", type=Path, help="default: campaigns/records/physics-DATE.json")
    options = parser.parse_args()
    unknown = set(options.names) - set(names())
    if unknown:
        parser.error(f"there is no experiment {', '.join(sorted(unknown))}; known are {', '.join(names())}")
    path = options.record or ROOT / "campaigns" / "records" / f"physics-{datetime.date.today()}.json"
    record = _record.load(path) if path.exists() else {"experiments": {}}
    bad, commit = 0, _record.git(ROOT, "rev-parse", "HEAD").strip()
    if _record.git(ROOT, "status", "--porcelain", "src"):
        print("src differs from the commit that the record will name; commit first.", file=sys.stderr)
        return 2
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(one, name) for name in options.names or names()]):
            name, found = future.result()
            if isinstance(found, str):
                print(f"{name}: {found}", flush=True)
                bad += 1
                continue
            survivors = [claim for claim, row in zip(found["claims"], found["killed"], strict=True) if not any(row)]
            bad += bool(survivors)
            counts = (
                f"{len(found['claims'])} kinds of claims, {len(found['mutations'])} mutations, {found['seconds']} s"
            )
            print(f"{name}: {counts}", *(f"\n    SURVIVES: {claim}" for claim in survivors), flush=True)
            folder = ROOT / "src" / "attnflow_gallery" / name.replace("-", "_")
            program = program_hash(sorted(folder.glob("*.py")))
            record["experiments"][name] = found | {"commit": commit, "program": program}
            record["experiments"] = dict(sorted(record["experiments"].items()))
            _record.save(record, path)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
