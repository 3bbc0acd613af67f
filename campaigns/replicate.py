"""Do the claims of the gallery hold for fresh random numbers? Hours on two cores; part of `make long`.

    python campaigns/replicate.py                     all experiments in full, three salts, the record of today
    python campaigns/replicate.py vertices --salts 7 8 --runs /tmp/again

Every random stream of an experiment depends on its salt (`attnflow reproduce NAME --salt 7`). The record holds every
claim that failed, with what was found; a statistical claim may fail at the level that its text states. Runs that are
finished in the folder are not repeated, so that an interrupted campaign continues. Exit code 1 if a claim failed.
"""

import argparse
import concurrent.futures
import datetime
import json
import subprocess
import sys
from pathlib import Path

import _record

ROOT = Path(__file__).resolve().parent.parent
SALTS = (1, 2, 3)


def one(name: str, salt: int, folder: Path) -> tuple[str, int, dict]:
    """One experiment with one salt, in a process of its own; {"error"} where it could not be carried out."""
    where = folder / f"{name}-{salt}"
    verb = ["resume", str(where)] if (where / "manifest.json").exists() else ["reproduce", name, "--salt", str(salt)]
    verb += [] if verb[0] == "resume" else ["--out", str(where)]
    command = [sys.executable, "-c", "from attnflow.cli import main; main()", *verb]
    done = subprocess.run(command, capture_output=True, text=True)
    if not (where / "claims.json").exists():
        return name, salt, {"error": (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]}
    claims = json.loads((where / "claims.json").read_text())
    facts = json.loads((where / "manifest.json").read_text())
    return name, salt, {
        "claims": len(claims), "wall_time": round(facts["wall_time"]), "commit": facts["commit"],
        "failed": [{k: one[k] for k in ("statement", "predicted", "measured", "tolerance", "detail")}
                   for one in claims if not one["holds"]],
    }  # fmt: skip


def main() -> int:
    """Run the campaign."""
    from attnflow.experiments import find, names
    from attnflow.experiments.randomness import Salted

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="experiments; all by default")
    parser.add_argument("--salts", type=int, nargs="+", default=SALTS)
    parser.add_argument("--jobs", type=int, default=2, help="experiments at a time")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "replicate", help="where the run folders go")
    parser.add_argument("--record", type=Path, help="default: campaigns/records/replicate-DATE.json")
    options = parser.parse_args()
    chosen = [name for name in options.names or names() if issubclass(find(name).module().Parameters, Salted)]
    path = options.record or ROOT / "campaigns" / "records" / f"replicate-{datetime.date.today()}.json"
    record = _record.load(path) if path.exists() else {"runs": {}}
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = [pool.submit(one, name, salt, options.runs) for salt in options.salts for name in chosen]
        for future in concurrent.futures.as_completed(work):
            name, salt, found = future.result()
            failed = found.get("failed", [])
            bad += "error" in found or bool(failed)
            words = found.get("error") or f"{len(failed)} of {found['claims']} claims fail, {found['wall_time']} s"
            print(f"{name}, salt {salt}: {words}", *(f"\n    {row['statement']}: {row['measured']} against "
                  f"{row['predicted']} ± {row['tolerance']}" for row in failed), flush=True)  # fmt: skip
            record["runs"].setdefault(name, {})[str(salt)] = found
            record["runs"] = dict(sorted(record["runs"].items()))
            _record.save(record, path)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
